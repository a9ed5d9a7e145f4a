r"""Write the table of a paper: one detector per row, one summary metric per column.

Conventions
-----------
- Numbers are multiplied by 100 and have one decimal, as is usual for AP; ``scale=1`` gives fractions with
  three decimals.
- The line below a detector has the intervals of its numbers on very many images
  (:mod:`boxscore.extensions.diagnostics.bootstrap`). AP of few images can be above its interval, and the
  caption says why.
- The best number of a column is bold only if its difference from the second is significant among all pairs of
  detectors (``DetectorComparison.pairs``); the caption says so.
- LaTeX needs ``\usepackage{booktabs}``. Names are escaped, so they cannot contain commands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.text import counted, fixed, latex_comment, latex_text, markdown_text, printable
from boxscore.errors import InputError
from boxscore.extensions.decisions.compare import DetectorComparison
from boxscore.extensions.weights.left_out import is_corrected
from boxscore.protocols.metric_names import metric_named

PaperForm = Literal["latex", "markdown"]

MOST_DECIMALS = 10
PDFLATEX_KNOWS = "\u024f"
"""The last of the accented letters that pdflatex supports without further packages."""


class _Cell(NamedTuple):
    """The texts of a metric of a detector."""

    value: str
    estimate: str
    """The metric corrected for small-sample bias; empty without such a bias or an interval."""
    interval: str
    bold: bool

    @property
    def uncertainty(self) -> str:
        """The estimate and the interval."""
        return f"{self.estimate} {self.interval}".strip()


def paper_table(
    comparison: DetectorComparison,
    *,
    form: PaperForm = "latex",
    metrics: Sequence[str] | None = None,
    scale: float = 100,
    decimals: int | None = None,
    intervals: bool = True,
    label: str = "tab:detectors",
) -> str:
    r"""Write detectors and their metrics as a table for a paper.

    Parameters
    ----------
    comparison : DetectorComparison
    form : {"latex", "markdown"}, default "latex"
    metrics : sequence of str, optional
        The columns; by default the AP metrics, F1 without scores, or otherwise all.
    scale : {100, 1}, default 100
        Factor of the numbers.
    decimals : int, optional
        By default 1, and 3 with ``scale=1``.
    intervals : bool, default True
        Write the intervals of its numbers below each detector, after AP without the bias of few images.
    label : str, default "tab:detectors"
        Label for ``\ref``; letters, digits and ``:._+/-``.

    Returns
    -------
    str
        LaTeX: a ``table`` with a caption. Markdown: a table, with the caption below.

    Raises
    ------
    InputError
        When an option is invalid.
    """
    checks.one_of(form, get_args(PaperForm), name="form")
    if scale not in (100, 1):
        raise InputError("scale", "be 100 or 1", got=scale)
    places = (1 if scale == 100 else 3) if decimals is None else decimals
    checks.whole_number(places, 0, name="decimals", high=MOST_DECIMALS)
    if not re.fullmatch(r"[A-Za-z0-9:._+/-]+", label):
        raise InputError("label", "contain only letters, digits and :._+/-", got=repr(label))
    columns = _columns(comparison, metrics)
    rows = _cells(comparison, columns, scale, places)
    keys = [comparison.metrics[m] for m in columns]
    sentences = _caption(comparison, rows, scale, intervals=intervals)
    if form == "markdown":
        return _markdown(comparison, keys, rows, sentences, intervals=intervals)
    return _latex(comparison, keys, rows, sentences, label, intervals=intervals)


def _columns(comparison: DetectorComparison, metrics: Sequence[str] | None) -> list[int]:
    """Return the positions of the metrics of a table."""
    known = comparison.metrics
    if metrics is not None:
        return [known.index(metric_named(name, known, option="metrics")) for name in metrics]
    kinds = {row.key: row.metric for row in comparison.evaluations[comparison.first].protocol.rows}
    chosen = [[m for m, key in enumerate(known) if kinds[key] == kind] for kind in ("AP", "micro_F1")]
    return next(filter(None, chosen), list(range(len(known))))


def _cells(
    comparison: DetectorComparison, columns: Sequence[int], scale: float, decimals: int
) -> list[list[_Cell]]:
    """Return the cells by detector and column."""
    # Undefined numbers become dashes; only a significantly best number is bold.
    ends = comparison.intervals
    rows = {row.key: row for row in comparison.evaluations[comparison.first].protocol.rows}
    has_interval = np.isfinite(ends.low)

    def text(value: float) -> str:
        return "--" if np.isnan(value) else fixed(scale * value, decimals)

    best = {m: comparison.clear_best(m) for m in columns}
    return [
        [
            _Cell(
                text(ends.value[i, m]),
                text(ends.estimate[i, m])
                if has_interval[i, m] and is_corrected(rows[comparison.metrics[m]])
                else "",
                f"[{text(ends.low[i, m])}, {text(ends.high[i, m])}]" if has_interval[i, m] else "",
                best[m] == i,
            )
            for m in columns
        ]
        for i in range(len(comparison.names))
    ]


def _caption(
    comparison: DetectorComparison, rows: Sequence[Sequence[_Cell]], scale: float, *, intervals: bool
) -> list[str]:
    """Describe the table in plain text."""
    # Describe the data, the interval and the test, in singular or plural.
    first = comparison.evaluations[comparison.first]
    how, count = comparison.resampling, len(comparison.names)
    counts = first.counts
    level = f"{100 * how.confidence:.4g}%"
    resamples = f"{counted(how.resamples, 'resample')}, seed {how.seed}"
    share = f"{100 * (1 - how.confidence):.4g}%"
    unit = ", times 100" if scale == 100 else ""
    names = (("images", "image"), ("ground_truths", "ground truth"), ("classes", "class"))
    # First the data, then the test.
    data = ", ".join(counted(counts[key], noun) for key, noun in names)
    family = "" if count == 2 else f", Holm-adjusted for {count * (count - 1) // 2} pairs of detectors"
    name = "paired permutation test over" if how.test == "swap" else "intervals of differences over"
    unit_name = "images" if how.group is None else "groups of images"
    test = f"{name} {unit_name}, {share}{family}"
    test += f"; {resamples}"
    sentences = [f"{first.protocol.title or first.protocol.name}{unit}: {data}."]
    # Explain the numbers in brackets, and those before them.
    if intervals:
        cells = [cell for row in rows for cell in row]
        before = "; before it, AP without the bias of few images, which raises AP" * any(
            cell.estimate for cell in cells
        )
        if any(cell.interval for cell in cells):
            sentences.append(
                f"In brackets: {level} interval of the metric on very many images like these, from leaving "
                f"out groups of images{before}."
            )
        sentences += filter(None, [comparison.scores_text])
    # Explain bold numbers, or say that no number is bold.
    if any(cell.bold for row in rows for cell in row):
        sentences.append(f"Bold: best, if significantly different from the second best ({test}).")
    else:
        sentences.append(f"No best value differs significantly from the second best ({test}).")
    return sentences


def _latex(
    comparison: DetectorComparison,
    keys: Sequence[str],
    rows: Sequence[Sequence[_Cell]],
    sentences: Sequence[str],
    label: str,
    *,
    intervals: bool,
) -> str:
    # A signature is one long word, so allow line breaks after each of its parts.
    signature = latex_text(comparison.evaluations[comparison.first].signature)
    signature = signature.replace(r"\textbar{}", r"\textbar\allowbreak{}").replace(",", r",\allowbreak{}")
    # Escape all user text for LaTeX.
    caption = " ".join(map(latex_text, sentences)).replace(r" \%", r"\,\%")
    names = [latex_text(name) for name in comparison.names]
    lines = []
    if any(mark > PDFLATEX_KNOWS for name in names for mark in name):
        lines.append(
            latex_comment("A name has characters that pdflatex does not support: use lualatex or xelatex.")
        )
    # Write a table in the style of booktabs.
    lines += [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption} \texttt{{{signature}}}.}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{@{{}}l{'r' * len(keys)}@{{}}}}",
        r"\toprule",
        rf"{' & '.join(['Detector', *map(latex_text, keys)])} \\",
        r"\midrule",
    ]
    # Write intervals in a second line under the numbers.
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        if number and intervals:
            lines.append(r"\addlinespace")
        values = [rf"\textbf{{{cell.value}}}" if cell.bold else cell.value for cell in row]
        lines.append(rf"{' & '.join([name, *values])} \\")
        if intervals:
            spans = [rf"{{\scriptsize {cell.uncertainty}}}" if cell.interval else "" for cell in row]
            lines.append(rf"{' & '.join(['', *spans])} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _markdown(
    comparison: DetectorComparison,
    keys: Sequence[str],
    rows: Sequence[Sequence[_Cell]],
    sentences: Sequence[str],
    *,
    intervals: bool,
) -> str:
    # A signature is put between backticks, so it must not contain any.
    signature = printable(comparison.evaluations[comparison.first].signature).replace("`", "'")
    lines = [["Detector", *map(markdown_text, keys)], ["---", *["---:"] * len(keys)]]
    # Write intervals after the number in the same cell.
    for name, row in zip(comparison.names, rows, strict=True):
        cells = []
        for cell in row:
            value = f"**{cell.value}**" if cell.bold else cell.value
            after = f"{';' if cell.estimate else ''} {markdown_text(cell.uncertainty)}".rstrip()
            cells.append(f"{value}{after}" if intervals else value)
        lines.append([markdown_text(name), *cells])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{' '.join(map(markdown_text, sentences))} `{signature}`"
