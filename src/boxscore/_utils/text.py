"""Format tables as text, Markdown, LaTeX, CSV, JSON and, for notebooks, HTML.

Conventions
-----------
- A table is a mapping from column names to sequences of equal length. For a DataFrame, pass
  ``dict(frame.items())``.
- Negative zero is written as zero.
- Undefined is ``-`` in text and Markdown, ``--`` in LaTeX, empty in CSV, ``null`` in JSON.
- Names come from files and are not trusted, in headers and in cells: control characters never reach a
  terminal; ``|``, ``<`` and newlines never end a Markdown cell; a name is never a LaTeX command; and a CSV
  cell never starts a formula. Only JSON preserves all names exactly, with escapes.
- Widths are terminal columns: a Chinese character takes two, a combining mark zero. Long text is wrapped
  between words if possible. Only :func:`cut` drops characters, and marks this with ``…``.
- Tests and user scripts compare printed bytes, so any changed character here changes the output.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np


def display_width(text: str) -> int:
    """Return the width of a printable text in terminal columns."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def aligned(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text with spaces."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def cut(text: str, width: int) -> str:
    """Truncate a text that is too wide, and mark its end."""
    return text if display_width(text) <= width else f"{text[: _fitting_length(text, width - 1)]}…"


def _fitting_length(text: str, width: int) -> int:
    """Return how many leading characters fit, at least one."""
    taken = 0
    for count, character in enumerate(text):
        taken += _width(character)
        if taken > width:
            return max(count, 1)
    return len(text)


def wrapped(text: str, width: int | None, *, indent: str = "", whole: bool = False) -> str:
    """Wrap a line between words; later lines start with ``indent``.

    Words that are too wide are broken, unless ``whole`` is set, for example for paths to copy.
    """
    if width is None or display_width(text) <= width:
        return text
    return "\n".join(_break_lines(re.findall(r"\s*\S+", text), width, indent, whole=whole))


def folded(text: str, width: int | None, *, after: str) -> str:
    """Wrap a line only after these characters; joining the lines restores it."""
    if width is None or display_width(text) <= width:
        return text
    return "\n".join(_break_lines(re.findall(rf"[^{after}]*[{after}]|[^{after}]+", text), width, ""))


def _break_lines(words: list[str], width: int, indent: str, *, whole: bool = False) -> Iterator[str]:
    """Fill lines with words, each of which includes its leading spaces."""
    line = ""
    for word in words:
        if line.strip() and display_width(line + word) > width:
            yield line
            line = indent
            word = word.lstrip()
        line += word
        while display_width(line) > width and not whole:
            count = max(_fitting_length(line, width), len(indent) + 1)
            yield line[:count]
            line = indent + line[count:]
    if line.strip():
        yield line


Columns = Mapping[str, Sequence[Any]]
"""Values by column name."""

Digits = int | Mapping[str, int]
"""Number of decimals, for all columns or by column name; the default is 4."""

Paint = Callable[[int, str, str], str]
"""Add color to a cell, given its row, column and text."""

_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: str) -> str:
    """Replace characters that may control a terminal or be invisible: control and direction marks."""
    if text.isascii() and text.isprintable():
        return text
    import unicodedata

    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _UNPRINTABLE else c for c in text
    )


def decimals_of(values: Iterable[float]) -> int:
    """Return the number of decimals, 4 to 8, for three digits of the smallest number, ignoring 0 and NaN.

    Examples
    --------
    >>> decimals_of([0.0146, 0.0000712])
    7
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    return min(8, max(4, 2 - math.floor(math.log10(min(sizes))))) if sizes else 4


MOST_DECIMALS = 6
"""Most decimals of a difference that is almost 0."""


def fixed(value: float | np.floating[Any], digits: int = 4, *, signed: bool = False) -> str:
    """Format a number with a fixed number of decimals; zero never has a sign."""
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return text.lstrip("+-") if text[0] in "+-" and not float(text) else text


def signed_text(value: float) -> str:
    """Format a difference with its sign and three decimals, or as many as show that it is not 0."""
    digits = 3
    while value and digits < MOST_DECIMALS and not float(f"{value:.{digits}f}"):
        digits += 1
    return fixed(value, digits, signed=True)


def short_list(values: Iterable[Any], most: int = 8) -> str:
    """List the first few of many values."""
    names = [printable(str(value)) for value in itertools.islice(values, most + 1)]
    return (", ".join(names[:most]) + (", ..." if len(names) > most else "")) or "none"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun: ``1 box``, ``1,040 boxes``."""
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{count:,} {noun}{ending}"


def enumerated(parts: Sequence[str]) -> str:
    """Join items as in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def counted_of(count: int, total: int, noun: str) -> str:
    """Format a count of a total with its noun: ``1 of 1 box``, ``3 of 1,040 boxes``."""
    return f"{count:,} of {counted(total, noun)}"


def verb(count: int, plural: str) -> str:
    """Return the form of a verb that agrees with a count: ``have`` or ``has``, ``reach`` or ``reaches``."""
    if count != 1:
        return plural
    return {"have": "has", "are": "is", "do": "does", "reach": "reaches"}.get(plural, f"{plural}s")


def html_lines(text: str) -> str:
    """Show the lines of a short ``repr`` in a notebook, the first in bold."""
    import html

    first, *others = (html.escape(line) for line in text.split("\n"))
    return f"<div><b>{first}</b>{''.join(f'<br>{line}' for line in others)}</div>"


_TABLE = "border-collapse:collapse;white-space:nowrap;margin:.3em 0"
_HEAD = "border-bottom:1px solid rgba(128,128,128,.6);"


def html_table(columns: Columns, *, digits: Digits = 4, most: int | None = None) -> str:
    """Format a table for a notebook in its color theme, without scripts and external resources.

    If there are more than ``most`` rows, only the first and the last ones are shown.
    """
    import html

    # Omit the middle of a long table.
    lines = _lines(columns, digits)
    if most is not None and len(lines) > most:
        gap = ["\N{VERTICAL ELLIPSIS}"] * len(columns)
        lines = [*lines[: most - most // 2], gap, *lines[len(lines) - most // 2 :]]
    # Escape all cells, because names come from files.
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
    """Format a title, a line of metrics, additional HTML and a footer for a notebook."""
    import html

    return (
        f"<div><b>{html.escape(printable(title))}</b>"
        f"{html_table({name: [value] for name, value in metrics.items()})}{inner}"
        f'<code style="font-size:85%">{html.escape(printable(footer))}</code></div>'
    )


def html_folded(summary: str, inner: str) -> str:
    """Collapse a section of notebook output under a summary line."""
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
        return "-" if math.isnan(value) else fixed(value, digits)
    return printable(str(value))


def _cells(columns: Columns, digits: Digits) -> dict[str, list[str]]:
    of = digits if isinstance(digits, Mapping) else dict.fromkeys(columns, digits)
    return {name: [_cell(value, of.get(name, 4)) for value in values] for name, values in columns.items()}


def _lines(columns: Columns, digits: Digits) -> list[list[str]]:
    return [list(line) for line in zip(*_cells(columns, digits).values(), strict=True)]


def _is_numeric(values: Iterable[Any]) -> bool:
    return all(value is None or isinstance(value, (int, float, np.number)) for value in values)


def text_table(
    columns: Columns,
    *,
    digits: Digits = 4,
    longest: int = 40,
    width: int | None = None,
    first_out: Sequence[str | tuple[str, ...]] = (),
    paint: Paint | None = None,
) -> str:
    """Format a table for a terminal, with right-aligned numbers and names truncated to ``longest`` columns.

    To fit into ``width``, headers are wrapped after ``_``, then text is wrapped between words, then columns
    are dropped: first those in ``first_out``, in this order (the columns of a tuple together), then from the
    right. The first column is always kept. A line below the table lists dropped columns. ``paint`` adds color
    to a cell, given its row, its column and its padded text.
    """
    # Truncate long texts so that different ones stay different.
    names = list(columns)
    heads = {name: printable(name) for name in names}
    cells = {name: _truncate_distinct(texts, longest) for name, texts in _cells(columns, digits).items()}
    right = {name: _is_numeric(values) for name, values in columns.items()}
    # Drop columns one by one until the table fits.
    shown = names
    widths = _fitting_widths(heads, cells, right, width)
    removable = [item if isinstance(item, tuple) else (item,) for item in first_out]
    removable += [(name,) for name in reversed(names) if not any(name in some for some in removable)]
    while width is not None and len(shown) > 1 and _total(widths) > width:
        removed = removable.pop(0)
        shown = [name for name in shown if name not in removed or name == names[0]]
        widths = _fitting_widths({name: heads[name] for name in shown}, cells, right, width)
    # A wrapped cell takes several lines of a row.
    cut_heads = _truncate_distinct([heads[name] for name in shown], longest)
    lines = _head_lines(dict(zip(shown, cut_heads, strict=True)), widths, right)
    for row in range(len(cells[names[0]]) if names else 0):
        parts = {name: wrapped(cells[name][row], widths[name]).split("\n") for name in shown}
        # Fill up cells with fewer lines.
        for number in range(max(map(len, parts.values()))):
            line = []
            for name in shown:
                text = parts[name][number] if number < len(parts[name]) else ""
                text = aligned(text, widths[name], right=right[name])
                line.append(text if paint is None else paint(row, name, text))
            lines.append("  ".join(line).rstrip())
    # List the dropped columns, and how to see them.
    left_out = [heads[name] for name in names if name not in shown]
    if left_out:
        note = f"Columns hidden to fit {width} characters (--wide shows them): {short_list(left_out, 16)}"
        lines.append(wrapped(note, width, indent="  "))
    return "\n".join(lines)


def _truncate_distinct(texts: Sequence[str], longest: int) -> list[str]:
    """Truncate texts that are too wide; if two become equal, keep their ends too, or the whole text."""
    # Truncate at the end, if different texts stay different.
    short = [cut(text, longest) for text in texts]
    if short == list(texts) or len(set(short)) == len(set(texts)):
        return short
    # Otherwise use the first unique form of each text: truncated at the end, in the middle, or complete.
    middle = {text: f"{cut(text, longest // 2)}{text[len(text) - (longest - 1) // 4 :]}" for text in texts}
    sources: dict[str, set[str]] = {}
    for shortened in (dict(zip(texts, short, strict=True)), middle):
        for text, form in shortened.items():
            sources.setdefault(form, set()).add(text)
    return [
        next((form for form in (first, middle[text]) if sources[form] == {text}), text)
        for first, text in zip(short, texts, strict=True)
    ]


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + 2 * (len(widths) - 1)


def _fitting_widths(
    heads: Mapping[str, str],
    cells: Mapping[str, Sequence[str]],
    right: Mapping[str, bool],
    width: int | None,
) -> dict[str, int]:
    """Return the width of each column: its full width, or less if the table is too wide."""
    content = {name: max(map(display_width, cells[name]), default=0) for name in heads}
    widths = {name: max(content[name], display_width(head)) for name, head in heads.items()}
    if width is None or _total(widths) <= width:
        return widths
    # Wrap headers after ``_`` or spaces, starting with the one that exceeds its column most.
    for name in sorted(heads, key=lambda name: content[name] - widths[name]):
        parts = re.findall("[^_ ]*[_ ]?", heads[name])
        widths[name] = max(content[name], *(display_width(part.rstrip()) for part in parts))
        if _total(widths) <= width:
            return widths
    # Narrow text columns, starting with the widest, down to their longest word.
    least = {name: max(_longest_word(cells[name]), LEAST_TEXT) for name in heads if not right[name]}
    while (over := _total(widths) - width) > 0:
        wide = [name for name in least if widths[name] > least[name]]
        if not wide:
            break
        widest = max(wide, key=lambda name: widths[name])
        others = [widths[name] for name in wide if widths[name] < widths[widest]]
        room = widths[widest] - max(least[widest], *others, 0)  # down to the next widest column
        widths[widest] -= max(1, min(over, room))
    return widths


def _longest_word(texts: Sequence[str]) -> int:
    return max((display_width(word) for text in texts for word in text.split()), default=0)


LEAST_TEXT = 16
"""Minimum width of a text column; if that is too wide, the table drops columns."""


def _head_lines(heads: Mapping[str, str], widths: Mapping[str, int], right: Mapping[str, bool]) -> list[str]:
    """Format headers, wrapped after ``_`` or spaces if they are wider than their columns."""
    parts = {name: folded(head, widths[name], after="_ ").split("\n") for name, head in heads.items()}
    height = max(map(len, parts.values()), default=0)
    lines = []
    for number in range(height):
        line = []
        for name, part in parts.items():
            at = number - (height - len(part))
            line.append(aligned(part[at].rstrip() if at >= 0 else "", widths[name], right=right[name]))
        lines.append("  ".join(line).rstrip())
    return lines


def markdown_table(columns: Columns, *, digits: Digits = 4) -> str:
    """Format a table in GitHub Markdown."""
    right = [_is_numeric(values) for values in columns.values()]
    lines = [
        [markdown_text(name) for name in columns],
        ["---:" if to_right else "---" for to_right in right],
        *([markdown_text(cell) for cell in line] for line in _lines(columns, digits)),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    """Escape a text for GitHub Markdown."""
    text = printable(text)
    for mark in "\\`*_[]|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex_table(columns: Columns, *, digits: Digits = 4) -> str:
    r"""Format a table as a LaTeX ``tabular`` with booktabs rules (``\usepackage{booktabs}``)."""
    # Escape all text except numbers.
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
    """Format a LaTeX comment."""
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
        "[": "{[}",  # at the start of a row, [ and * would belong to the previous row end
        "]": "{]}",
        "*": "{*}",
        **{mark: f"\\{mark}" for mark in "{}$&#%_"},
    }
)


def latex_text(text: str) -> str:
    """Escape a text for LaTeX, and prevent ligatures of dashes and quotes."""
    return re.sub("([-'])(?=\\1)", r"\1{}", printable(text).translate(_LATEX))


def csv_table(columns: Columns) -> str:
    """Format a table as CSV with all digits; quote text that a spreadsheet would run as a formula."""
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(_csv_line([_csv_cell(value) for value in line]) for line in lines)


def _csv_line(cells: list[Any]) -> str:
    import csv
    import io

    output = io.StringIO()
    csv.writer(output, lineterminator="\r\n").writerow(cells)  # quotes \r and \n in cells
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
"""Control characters except for tabs and newlines, which CSV quotes."""

_FORMULA = re.compile(r"[\t\r]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""Prefixes of formulas in spreadsheets, which skip whitespace; some accept full-width signs."""


_AS_THEY_ARE = frozenset({bool, int, str, type(None)})
_PLAIN = _AS_THEY_ARE | {float}


def json_value(value: Any) -> Any:
    """Convert NumPy values to JSON values; NaN and infinity become null, -0.0 becomes 0.0."""
    # Convert lists of plain values, the usual case, without a call per item.
    if isinstance(value, (list, tuple, np.ndarray)):
        items = value.tolist() if isinstance(value, np.ndarray) else value
        kinds = set(map(type, items))
        if kinds <= _AS_THEY_ARE:
            return list(items)
        if kinds <= _PLAIN:
            return [
                item if type(item) is not float else item + 0.0 if math.isfinite(item) else None
                for item in items
            ]
        return [json_value(item) for item in items]
    # Convert other values one by one.
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    return value


def json_text(value: Any) -> str:
    """Format JSON with an indentation of two spaces, without escaping non-ASCII characters."""
    import json

    text = json.dumps(json_value(value), indent=2, ensure_ascii=False, allow_nan=False)
    # Escape control characters that json does not escape.
    return re.sub("[\x7f-\x9f]", lambda match: f"\\u{ord(match[0]):04x}", text)
