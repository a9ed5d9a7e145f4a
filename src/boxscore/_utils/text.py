"""Tables as text, Markdown, LaTeX, CSV and JSON.

Conventions
-----------
- A table here is a mapping of column name to a sequence of values, all of one length. For a DataFrame pass
  ``dict(frame.items())``.
- Undefined is ``-`` in text and Markdown, ``--`` in LaTeX, empty in CSV, ``null`` in JSON.
- Names come from files and are not trusted, in heads as in cells: control characters never reach a terminal,
  ``|``, ``<`` and line ends never end a Markdown cell, no name is a LaTeX command, and a CSV cell never
  starts a formula. JSON alone gives every name back: it has escapes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "Columns",
    "csv_table",
    "html_folded",
    "html_lines",
    "html_summary",
    "html_table",
    "json_text",
    "json_value",
    "latex_comment",
    "latex_table",
    "latex_text",
    "markdown_table",
    "markdown_text",
    "printable",
    "short_list",
    "text_table",
]

Columns = Mapping[str, Sequence[Any]]
"""Values by column name."""

_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: str) -> str:
    """Replace what could steer a terminal or hide in a line: control and direction marks."""
    import unicodedata

    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _UNPRINTABLE else c for c in text
    )


def short_list(values: Iterable[Any], most: int = 8) -> str:
    """Name the first few of many."""
    names = [printable(str(value)) for value in itertools.islice(values, most + 1)]
    return (", ".join(names[:most]) + (", ..." if len(names) > most else "")) or "none"


def html_lines(text: str) -> str:
    """Show the lines of a short ``repr`` in a notebook, the first in bold."""
    import html

    first, *others = (html.escape(line) for line in text.split("\n"))
    return f"<div><b>{first}</b>{''.join(f'<br>{line}' for line in others)}</div>"


_TABLE = "border-collapse:collapse;white-space:nowrap;margin:.3em 0"
_HEAD = "border-bottom:1px solid rgba(128,128,128,.6);"


def html_table(columns: Columns, *, digits: int = 4, most: int | None = None) -> str:
    """Write a table for a notebook: colours are the notebook's own, and nothing in it is run or fetched.

    Of more than ``most`` rows the first and the last are shown.
    """
    import html

    lines = _lines(columns, digits)
    if most is not None and len(lines) > most:
        gap = ["\N{VERTICAL ELLIPSIS}"] * len(columns)
        lines = [*lines[: most - most // 2], gap, *lines[len(lines) - most // 2 :]]
    sides = ["right" if _is_numeric(values) else "left" for values in columns.values()]

    def row(tag: str, cells: Iterable[str], more: str = "") -> str:
        styled = zip(cells, sides, strict=True)
        made = (
            f'<{tag} style="{more}text-align:{side}">{html.escape(cell)}</{tag}>' for cell, side in styled
        )
        return f"<tr>{''.join(made)}</tr>"

    head = row("th", map(printable, columns), _HEAD)
    body = "".join(row("td", line) for line in lines)
    return (
        f'<div style="overflow-x:auto"><table cellpadding="4" style="{_TABLE}">'
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div>"
    )


def html_summary(title: str, metrics: Mapping[str, float | int], footer: str, inner: str = "") -> str:
    """Show a title, metrics in a line, and what stands below, in a notebook."""
    import html

    return (
        f"<div><b>{html.escape(printable(title))}</b>"
        f"{html_table({name: [value] for name, value in metrics.items()})}{inner}"
        f'<code style="font-size:85%">{html.escape(printable(footer))}</code></div>'
    )


def html_folded(summary: str, inner: str) -> str:
    """Fold a part of a notebook's output under one line."""
    import html

    return f"<details><summary>{html.escape(printable(summary))}</summary>{inner}</details>"


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return "-" if math.isnan(value) else f"{value:.{digits}f}"
    return printable(str(value))


def _lines(columns: Columns, digits: int) -> list[list[str]]:
    cells = [[_cell(value, digits) for value in values] for values in columns.values()]
    return [list(line) for line in zip(*cells, strict=True)]


def _is_numeric(values: Iterable[Any]) -> bool:
    return all(value is None or isinstance(value, (int, float, np.number)) for value in values)


def text_table(columns: Columns, *, digits: int = 4, longest: int = 40) -> str:
    """Lay a table out for a terminal; numbers to the right, names cut at ``longest`` characters."""
    lines = [list(map(printable, columns)), *_lines(columns, digits)]
    lines = [[_shortened(cell, longest) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [_is_numeric(values) for values in columns.values()]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def markdown_table(columns: Columns, *, digits: int = 4) -> str:
    """Write a table in GitHub's Markdown."""
    right = [_is_numeric(values) for values in columns.values()]
    lines = [
        [markdown_text(name) for name in columns],
        ["---:" if to_right else "---" for to_right in right],
        *([markdown_text(cell) for cell in line] for line in _lines(columns, digits)),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    """Escape a text for GitHub's Markdown."""
    text = printable(text)
    for mark in "\\`*_[]|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex_table(columns: Columns, *, digits: int = 4) -> str:
    r"""Write a table as a LaTeX ``tabular`` with the rules of booktabs (``\usepackage{booktabs}``)."""
    right = [_is_numeric(values) for values in columns.values()]
    rows = [
        [
            _latex_number(cell) if to_right else latex_text(cell)
            for cell, to_right in zip(line, right, strict=True)
        ]
        for line in _lines(columns, digits)
    ]
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{''.join('r' if to_right else 'l' for to_right in right)}}}",
            "\\toprule",
            _latex_row([latex_text(name) for name in columns]),
            "\\midrule",
            *map(_latex_row, rows),
            "\\bottomrule",
            "\\end{tabular}",
        ]
    )


def latex_comment(text: str) -> str:
    """Write a LaTeX comment."""
    return f"% {printable(text)}"


def _latex_row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _latex_number(cell: str) -> str:
    return "--" if cell == "-" else cell.replace("-", "$-$")


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        "[": "{[}",  # after a line's end an option would begin, and with a star a command
        "]": "{]}",
        "*": "{*}",
        **{mark: f"\\{mark}" for mark in "{}$&#%_"},
    }
)


def latex_text(text: str) -> str:
    """Escape a text for LaTeX; two dashes or quotes do not become one sign."""
    return re.sub("([-'])(?=\\1)", r"\1{}", printable(text).translate(_LATEX))


def csv_table(columns: Columns) -> str:
    """Write a table as CSV with every digit; text that a spreadsheet would run as a formula is quoted."""
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(_csv_line([_csv_cell(value) for value in line]) for line in lines)


def _csv_line(cells: list[Any]) -> str:
    import csv
    import io

    output = io.StringIO()
    csv.writer(output, lineterminator="\r\n").writerow(cells)  # so that \r and \n in a cell are quoted
    return output.getvalue().removesuffix("\r\n") + "\n"


def _csv_cell(value: Any) -> Any:
    value = json_value(value)
    if value is None:
        return ""
    if isinstance(value, str):
        value = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
        return f"'{value}" if _FORMULA.match(value) else value
    return value


_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters but tabs and line ends, which CSV quotes."""

_FORMULA = re.compile(r"[\t\r]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""What spreadsheets may run: they skip white space, and some take the wide forms of the signs."""


def json_value(value: Any) -> Any:
    """Turn NumPy values, NaN and infinities into what JSON has; NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [json_value(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_text(value: Any) -> str:
    """Write JSON, two spaces deep, names as they are."""
    import json

    text = json.dumps(json_value(value), indent=2, ensure_ascii=False, allow_nan=False)
    return re.sub(
        "[\x7f-\x9f]", lambda match: f"\\u{ord(match[0]):04x}", text
    )  # the others are escaped already
