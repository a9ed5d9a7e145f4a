"""Print pandas tables for the commands of several extensions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from boxscore._utils.text import Digits
from boxscore.cli.output import Section, written
from boxscore.cli.streams import show
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.reports.rows import ALL_ROWS, Rows

if TYPE_CHECKING:
    import pandas as pd

MOST_PRINTED = 1 << 24
"""Maximum cells of a printed table; each takes about 100 bytes as text."""


def print_frame(
    frame: pd.DataFrame,
    evaluation: Evaluation,
    form: str,
    *,
    title: str,
    digits: Digits = 4,
    first_out: Sequence[str | tuple[str, ...]] = (),
    words: str = "",
    note: str = "",
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print a table of an evaluation: with title, counts and signature, or only the table as CSV.

    ``words`` describe which rows are shown in which order; a terminal shows ``note`` below the counts.
    ``more`` has further entries of JSON.
    """
    if frame.size > MOST_PRINTED:
        raise InputError(
            "a table to print",
            f"have at most {MOST_PRINTED:,} cells",
            got=f"{len(frame):,} rows of {len(frame.columns):,}",
            cause="print a part (--classes, or --top), or take it from the Python API",
        )
    value = {
        "table": title,
        "protocol": evaluation.protocol.name,
        "signature": evaluation.signature,
        "rows": table_rows(frame),
        **(more or {}),
    }
    head = f"{title}, {words}" if words else title
    notes = [evaluation._counts_text, *([note] if note and form == "text" else [])]
    section = Section(head, table_columns(frame), "\n".join(notes), digits, first_out)
    show(written(form, [section], value=value, footer=evaluation.signature))


def table_columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the columns of a frame as plain values, with None for missing ones and joined lists."""
    return {
        str(name): [_plain(value, join=True) for value in values.astype(object)]
        for name, values in frame.items()
    }


def chosen_rows(
    frame: pd.DataFrame, rows: Rows, *, falling: Collection[str] = ()
) -> tuple[pd.DataFrame, str]:
    """Return the selected rows of a table, and describe the selection."""
    if rows == ALL_ROWS:
        return frame, ""
    chosen, words = rows.of({str(name): values.tolist() for name, values in frame.items()}, falling=falling)
    return frame.iloc[chosen], words


def table_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as mappings for JSON, with None for missing values."""
    columns = {
        str(name): [_plain(value) for value in column.astype(object)] for name, column in frame.items()
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _plain(value: Any, *, join: bool = False) -> Any:
    import pandas as pd

    if isinstance(value, list):
        return " ".join(map(str, value)) if join else value
    return None if value is pd.NA else value
