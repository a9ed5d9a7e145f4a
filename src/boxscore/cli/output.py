"""Format the output of commands: tables in all output forms, and collected warnings."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from boxscore._utils.records import NamedTuple
from boxscore._utils.text import (
    Columns,
    Digits,
    Paint,
    csv_table,
    json_text,
    latex_comment,
    latex_table,
    markdown_table,
    text_table,
    wrapped,
)
from boxscore.cli.streams import settings, signature_lines, table_width, width
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.evaluation import Evaluation
from boxscore.reports import text
from boxscore.reports.rows import ALL_ROWS, Rows
from boxscore.reports.shown_columns import shown_columns

if TYPE_CHECKING:
    pass


class Section(NamedTuple):
    """A table with its title and note.

    ``first_out`` are the columns to drop first in a narrow terminal; ``paint`` colors cells of text tables.
    """

    title: str
    columns: Columns
    note: str = ""
    digits: Digits = 4
    first_out: Sequence[str | tuple[str, ...]] = ()
    paint: Paint | None = None


def written(
    form: str,
    sections: Sequence[Section],
    *,
    value: Mapping[str, Any],
    table: Columns | None = None,
    footer: str = "",
    longest: int = 40,
    shown: Sequence[str] | None = None,
) -> str:
    """Format tables in a form of ``--output``; JSON uses ``value``, CSV uses ``table`` or the first section.

    ``shown`` are the columns to include: by default those of ``--show``, all if empty.
    """
    shown = settings().columns if shown is None else shown
    if form == "json":
        refuse_columns_of_json(shown)
        return json_text(value)
    if form == "csv":
        columns = shown_columns([sections[0].columns if table is None else table], shown)[0]
        return csv_table(columns).removesuffix("\n")
    chosen = shown_columns([section.columns for section in sections], shown)
    sections = [
        section._replace(columns=columns, first_out=_present(section.first_out, columns))
        for section, columns in zip(sections, chosen, strict=True)
        if columns or not shown
    ]
    write = {"text": _as_text, "markdown": _as_markdown, "latex": _as_latex}[form]
    blocks = [write(section, longest) for section in sections]
    if footer:
        blocks.append(
            {"text": signature_lines(footer), "markdown": f"`{footer}`", "latex": latex_comment(footer)}[form]
        )
    return "\n\n".join(blocks)


def refuse_columns_of_json(shown: Sequence[str]) -> None:
    """Reject ``--show`` for JSON."""
    if shown:
        rule = "be left out with --output json, which has every column"
        raise InputError("--show", rule, got=repr(" ".join(shown)))


def _present(first_out: Sequence[str | tuple[str, ...]], columns: Columns) -> Sequence[str | tuple[str, ...]]:
    return [
        names for names in first_out if not {*([names] if isinstance(names, str) else names)} - {*columns}
    ]


def _as_text(section: Section, longest: int) -> str:
    columns = width()
    head = "\n".join(
        wrapped(line, columns) for text in (section.title, section.note) if text for line in text.split("\n")
    )
    if not len(next(iter(section.columns.values()), ())):
        return f"{head}\n\n(none)"
    table = text_table(
        section.columns,
        digits=section.digits,
        longest=longest,
        width=table_width(),
        first_out=section.first_out,
        paint=section.paint,
    )
    return f"{head}\n\n{table}"


def rows_of(arguments: argparse.Namespace, *, sort: str = "") -> Rows:
    """Return the row selection of ``--sort`` and ``--top``; ``sort`` is the default of the table."""
    rows = Rows(arguments.sort or sort, arguments.top)
    rows.check()
    return rows


def evaluation_as(
    form: str,
    evaluation: Evaluation,
    *,
    per_class: bool = False,
    rows: Rows = ALL_ROWS,
    messages: Sequence[str] = (),
) -> str:
    """Format an evaluation in a form of ``--output``; selecting rows implies the table per class."""
    per_class = per_class or rows != ALL_ROWS
    columns = settings().columns
    if form == "latex":
        return text.as_latex(evaluation, per_class=per_class, rows=rows, columns=columns)
    if form == "json":
        refuse_columns_of_json(columns)
        return _for_stdout(text.as_json(evaluation, warnings=messages, rows=rows))
    if form == "csv":
        return text.as_csv(evaluation, per_class=per_class, rows=rows, columns=columns).rstrip("\n")
    if form == "markdown":
        return text.as_markdown(evaluation, per_class=per_class, rows=rows, columns=columns)
    return evaluation_text(evaluation, per_class=per_class, rows=rows)


def _for_stdout(text: str) -> str:
    """Escape characters that stdout cannot encode as in JSON; they only occur in strings."""
    encoding = getattr(sys.stdout, "encoding", None) or ""
    if settings().file is not None or encoding.lower().replace("-", "") == "utf8":
        return text
    import json

    return re.sub(r"[^\x00-\x7f]", lambda match: json.dumps(match[0])[1:-1], text)


def evaluation_text(evaluation: Evaluation, *, per_class: bool = False, rows: Rows = ALL_ROWS) -> str:
    """Format an evaluation for the terminal."""
    lines = text.as_text(
        evaluation,
        per_class=per_class,
        rows=rows,
        columns=settings().columns,
        width=width(),
        table_width=table_width(),
    )
    return lines.removesuffix(evaluation.signature) + signature_lines(evaluation.signature)


def _as_markdown(section: Section, _: int) -> str:
    table = markdown_table(section.columns, digits=section.digits)
    return "\n\n".join(filter(None, [f"## {section.title}", section.note, table]))


def _as_latex(section: Section, _: int) -> str:
    head = [latex_comment(text) for text in (section.title, section.note) if text]
    return "\n".join([*head, latex_table(section.columns, digits=section.digits)])


class Remembered(list[str]):
    """Collected warnings and their texts; ``held`` are postponed calls of ``showwarning``."""

    def __init__(self) -> None:
        super().__init__()
        self.warnings: list[BoxscoreWarning] = []
        self.held: list[tuple[Any, ...]] = []

    @property
    def each(self) -> tuple[BoxscoreWarning, ...]:
        """The warnings with distinct texts."""
        return tuple({str(warning): warning for warning in self.warnings}.values())

    def forget_held(self, codes: Collection[str], evaluation: Evaluation) -> None:
        """Drop postponed warnings that findings with these codes repeat."""
        sources = tuple(f"{table.source}: " for table in (evaluation.ground_truth, evaluation.detections))
        self.held = [
            call for call in self.held if call[0].code not in codes or not str(call[0]).startswith(sources)
        ]


@contextlib.contextmanager
def remembered_warnings(*, hold_box_forms: bool = False) -> Iterator[Remembered]:
    """Collect warnings of boxscore for the report, and show them as usual.

    Warnings of boxes in another form may be postponed to the end, and dropped if findings repeat them.
    """
    shown, messages = warnings.showwarning, Remembered()

    # Keep each text once for the report; show postponed warnings at the end, unless they are dropped.
    def remember(warning: Warning | str, category: type[Warning], *rest: Any) -> None:
        if isinstance(warning, BoxscoreWarning):
            if str(warning) not in messages:
                messages.append(str(warning))
            messages.warnings.append(warning)
            if hold_box_forms and warning.code.endswith("-box-order"):
                messages.held.append((warning, category, *rest))
                return
        shown(warning, category, *rest)

    warnings.showwarning = remember  # type: ignore[assignment]
    # Always restore the old function, and show postponed warnings.
    try:
        yield messages
    finally:
        warnings.showwarning = shown
        for call in messages.held:
            shown(*call)
