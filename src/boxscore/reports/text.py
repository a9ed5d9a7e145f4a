"""Write an evaluation as text, Markdown, LaTeX, CSV and JSON, and as flat metrics for trackers.

Conventions
-----------
- Keys of trackers are ``<prefix><metric>`` and, on request, ``<prefix>per_class/AP/<class>``; values are
  floats. Undefined numbers are left out: trackers draw NaN as a gap, or reject it.
- Keys only use letters, digits, ``_ - . /`` and spaces, which TensorBoard, MLflow and W&B all accept. Class
  names that become equal get a number. A key is never the folder of another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from boxscore._utils.records import NamedTuple
from boxscore._utils.text import (
    Columns,
    csv_table,
    enumerated,
    json_text,
    latex_comment,
    latex_table,
    markdown_table,
    markdown_text,
    text_table,
    wrapped,
)
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.evaluation.result import COUNTS_AT_SCORE, extension
from boxscore.reports.rows import ALL_ROWS, Rows, with_rows
from boxscore.reports.shown_columns import shown_columns

SCHEMA_VERSION = 1
"""Version of the JSON form; within a version keys may be added, but never changed or dropped."""

LONGEST = 120
"""Largest number of characters of a class in a tracker's key; MLflow allows 250 for the whole key."""


def class_columns(evaluation: Evaluation) -> dict[str, Any]:
    """Columns of the per-class table, without pandas."""
    columns: dict[str, Any] = {"class": evaluation.labels}
    for name, values in evaluation._class_table.items():
        columns[name] = values.tolist()
    return columns


def _answers_text(evaluation: Evaluation) -> str:
    """Describe how many answers of a model were read; empty for files of boxes."""
    return str(extension("answers_text")(evaluation.answers)) if evaluation.answers else ""


class _ClassTable(NamedTuple):
    """The rows of the per-class table that are shown, and the title that describes them."""

    columns: dict[str, list[Any]]
    title: str

    @classmethod
    def of(cls, evaluation: Evaluation, rows: Rows, *, narrow: bool = False) -> _ClassTable:
        columns, protocol = class_columns(evaluation), evaluation.protocol
        falling = {protocol.class_keys.get(key, key) for key in protocol.lower_is_better}
        if rows.top is not None and not rows.sort:  # show the worst classes
            rows = rows._replace(sort=next(iter(evaluation.class_values), ""))
        if (
            evaluation._without_class_rates
            and rows.sort
            and rows.sort.split(":")[0] in {"precision", "recall", "F1"} - {*columns}
        ):
            cause = evaluation._without_class_rates
            raise InputError("--sort", "name a column of the table", got=repr(rows.sort), cause=cause)
        shown, words = rows.of(columns, falling=falling)
        if narrow:  # --show picks these
            columns = {name: values for name, values in columns.items() if name not in COUNTS_AT_SCORE}
        parts = [
            f"Per class, {words}" if words else "Per class",
            _rates_text(evaluation, columns) or evaluation._without_class_rates,
        ]
        return cls(with_rows(columns, shown), "; ".join(filter(None, parts)))


def _rates_text(evaluation: Evaluation, columns: Columns) -> str:
    """Return the score and IoU of the rates and counts in these columns as text; empty without any."""
    names = [name for name in evaluation.class_rates if name in columns]
    if not names:
        return ""
    listed = enumerated(names)
    score, iou = evaluation.operating_score, evaluation.protocol.matching.iou_thresholds[0]
    which = "all detections" if score == -math.inf else f"score >= {score:.4g}, the best overall F1"
    return f"{listed} at IoU >= {iou:.2f} and {which}"


def _printed_tables(
    evaluation: Evaluation, *, per_class: bool, rows: Rows, columns: Sequence[str], narrow: bool = False
) -> tuple[dict[str, Any], _ClassTable | None]:
    """Return the summary, and the per-class table if it is printed; ``columns`` may leave out either.

    A ``narrow`` table has the counts at the score of the rates only if ``columns`` names them. Naming a
    column of the per-class table asks for that table.
    """
    summary = summary_columns(evaluation)
    if not columns:
        return summary, _ClassTable.of(evaluation, rows, narrow=narrow) if per_class else None
    if not per_class:
        try:
            return shown_columns([summary], columns)[0], None
        except InputError:  # the columns may belong to the per-class table
            pass
    table = _ClassTable.of(evaluation, rows)
    summary, classes = shown_columns([summary, table.columns], columns)
    if not classes:
        return summary, None
    # Mention the score only with the rates that are printed.
    parts = [table.title.partition(";")[0], _rates_text(evaluation, classes)]
    return summary, _ClassTable(classes, "; ".join(filter(None, parts)))


def summary_columns(evaluation: Evaluation) -> dict[str, Any]:
    """Columns of the summary table, without pandas."""
    rows, protocol = evaluation.protocol.rows, evaluation.protocol
    return {
        "metric": [row.key for row in rows],
        "value": [evaluation.metrics[row.key] for row in rows],
        "iou": [protocol.iou_text(row) for row in rows],
        "area": [row.area for row in rows],
        **evaluation._summary_classes,
        "max_detections": [protocol.caps[row.cap] or "all" for row in rows],
    }


def as_text(
    evaluation: Evaluation,
    *,
    per_class: bool = False,
    rows: Rows = ALL_ROWS,
    columns: Sequence[str] = (),
    width: int | None = None,
    table_width: int | None = None,
) -> str:
    """Format an evaluation as text of these widths; the last line, the signature, may be longer.

    A table per class of limited width has the counts at the score of the rates only if ``columns`` names
    them; it first drops the counts other than ground truths, then the last metrics.
    """
    protocol = evaluation.protocol
    summary, table = _printed_tables(
        evaluation, per_class=per_class, rows=rows, columns=columns, narrow=table_width is not None
    )
    if "value" in summary:
        summary["value"] = ["undefined" if value != value else f"{value:.4f}" for value in summary["value"]]
    blocks = [protocol.title or protocol.name, wrapped(evaluation._counts_text, width)]
    if evaluation.answers:
        blocks.append(wrapped(_answers_text(evaluation), width))
    blocks += [wrapped(evaluation._remark, width)] if evaluation._remark else []
    blocks += ["", text_table(summary, width=table_width)] if summary else []
    if table is not None:
        counts = [name for name in list(evaluation.class_counts)[1:] if name in table.columns]
        blocks += ["", wrapped(table.title, width), ""]
        blocks.append(text_table(table.columns, digits=3, width=table_width, first_out=counts[::-1]))
    return "\n".join([*blocks, "", evaluation.signature])


def as_markdown(
    evaluation: Evaluation,
    *,
    per_class: bool = False,
    rows: Rows = ALL_ROWS,
    columns: Sequence[str] = (),
) -> str:
    """Format an evaluation in GitHub's Markdown."""
    protocol = evaluation.protocol
    summary, table = _printed_tables(evaluation, per_class=per_class, rows=rows, columns=columns, narrow=True)
    blocks = [
        f"## {protocol.title or protocol.name}",
        evaluation._counts_text,
        *filter(None, [markdown_text(_answers_text(evaluation))]),
        *([evaluation._remark] if evaluation._remark else []),
        *([markdown_table(summary)] if summary else []),
    ]
    if table is not None:
        blocks += [markdown_text(table.title), markdown_table(table.columns, digits=3)]
    return "\n\n".join([*blocks, f"`{evaluation.signature}`"])


def as_latex(
    evaluation: Evaluation,
    *,
    per_class: bool = False,
    rows: Rows = ALL_ROWS,
    columns: Sequence[str] = (),
) -> str:
    """Format an evaluation as LaTeX tables; title, counts and signature are comments."""
    protocol = evaluation.protocol
    summary, table = _printed_tables(evaluation, per_class=per_class, rows=rows, columns=columns, narrow=True)
    head = [protocol.title or protocol.name, evaluation._counts_text]
    head += filter(None, [_answers_text(evaluation)])
    head += [evaluation._remark] if evaluation._remark else []
    blocks = ["\n".join([*map(latex_comment, head), *([latex_table(summary)] if summary else [])])]
    if table is not None:
        blocks.append("\n".join([latex_comment(table.title), latex_table(table.columns, digits=3)]))
    return "\n\n".join([*blocks, latex_comment(evaluation.signature)])


def as_csv(
    evaluation: Evaluation,
    *,
    per_class: bool = False,
    rows: Rows = ALL_ROWS,
    columns: Sequence[str] = (),
) -> str:
    """Format the summary, or the per-class table, as CSV."""
    summary, table = _printed_tables(evaluation, per_class=per_class, rows=rows, columns=columns)
    return csv_table(summary if table is None else table.columns)


def as_dict(evaluation: Evaluation, *, warnings: Sequence[str] = (), rows: Rows = ALL_ROWS) -> dict[str, Any]:
    """Return the JSON form as Python values."""
    # Leave out empty keys, so that existing readers of the files are not affected.
    columns = _ClassTable.of(evaluation, rows).columns
    lines = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
    return {
        "schema": SCHEMA_VERSION,
        "protocol": evaluation.protocol.name,
        "signature": evaluation.signature,
        "metrics": evaluation.metrics,
        **({"remark": evaluation._remark} if evaluation._remark else {}),
        **_falling(evaluation),
        "per_class": lines,
        **_operating_point(evaluation),
        "counts": evaluation.counts,
        **({"answers": dict(evaluation.answers)} if evaluation.answers else {}),
        "images_digest": evaluation._image_fingerprint,
        "warnings": list(warnings),
    }


def _falling(evaluation: Evaluation) -> dict[str, list[str]]:
    """Return the metrics where lower is better, if any."""
    falling = list(evaluation.protocol.lower_is_better)
    return {"lower_is_better": falling} if falling else {}


def _operating_point(evaluation: Evaluation) -> dict[str, dict[str, float | None]]:
    """Return the score and IoU of precision, recall and F1 per class, if the result has these rates."""
    if not evaluation.class_rates:
        return {}
    score = evaluation.operating_score if evaluation.has_scores else None
    return {"operating_point": {"score": score, "iou": evaluation.protocol.matching.iou_thresholds[0]}}


def as_json(evaluation: Evaluation, *, warnings: Sequence[str] = (), rows: Rows = ALL_ROWS) -> str:
    """Format an evaluation as one JSON object."""
    return json_text(as_dict(evaluation, warnings=warnings, rows=rows))


def flat_metrics(evaluation: Evaluation, *, prefix: str = "", per_class: bool = False) -> dict[str, float]:
    """Flatten an evaluation for an experiment tracker.

    Parameters
    ----------
    evaluation : Evaluation
    prefix : str, default ""
        Prefix of every key, for example ``"val/"``.
    per_class : bool, default False
        Add the first summary metric per class.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1], ["cat"], [[10, 10, 50, 50]])
    >>> detections = Detections.from_arrays([1], ["cat"], [[10, 10, 50, 50]], [0.9])
    >>> flat = flat_metrics(evaluate(truth, detections, protocol="voc2012"), prefix="val/", per_class=True)
    >>> flat
    {'val/mAP': 1.0, 'val/per_class/AP/cat': 1.0}
    """
    flat = {f"{prefix}{key}": float(value) for key, value in evaluation.metrics.items() if value == value}
    if not per_class or not evaluation.class_values:
        return flat
    metric, values = next(iter(evaluation.class_values.items()))
    for label, value in zip(evaluation.labels, values.tolist(), strict=True):
        if value == value:
            key = name = f"{prefix}per_class/{metric}/{_key(label)}"
            number = 2
            while key in flat:
                key = f"{name}_{number}"
                number += 1
            flat[key] = value
    return flat


def _key(label: str) -> str:
    """Replace characters of a class name that some tracker rejects."""
    return re.sub(r"[^A-Za-z0-9_.\- ]", "_", label)[:LONGEST].strip(" .") or "_"
