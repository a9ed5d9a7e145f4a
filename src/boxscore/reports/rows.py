"""Select and sort the rows of a table, the worst first by default.

Conventions
-----------
- Worst is the lowest score, the largest cost or the largest number of mistakes. Counts are sorted from the
  largest, names from A. ``COLUMN:asc`` and ``COLUMN:desc`` override this.
- Undefined values come last. Equal rows keep the order of the table.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import Columns, printable
from boxscore.errors import InputError

COSTS = frozenset(
    {
        *("FP", "FN", "false_positives", "false_negatives", "false_positive", "false_negative"),
        *("cost", "lrp", "localization", "expected_error", "maximum_error", "localization_expected_error"),
        *("debiased_error", "standard_error", "suspicion", "MAE", "RMSE"),
    }
)
"""Columns where larger is worse; other counts are also sorted from the largest."""

SCORES = frozenset({"TP", "true_positives"})
"""Counts where lower is worse."""

IDS = frozenset({"image_id", "annotation_id", "category_id"})
"""Integers that are not counts."""


class Rows(NamedTuple):
    """A selection of rows.

    Attributes
    ----------
    sort : str
        Column names separated by commas, most significant first; empty keeps the order of the table.
    top : int, optional
        Number of rows; all by default.
    """

    sort: str = ""
    top: int | None = None

    def check(self) -> None:
        """Reject a number of rows below 1."""
        if self.top is not None:
            checks.whole_number(self.top, 1, name="--top")

    def of(self, columns: Columns, *, falling: Collection[str] = ()) -> tuple[list[int], str]:
        """Select rows, and describe the selection; the text is empty for all rows in the order of the table.

        Parameters
        ----------
        columns : mapping of str to sequence
        falling : collection of str
            Metrics of the table where lower is better.
        """
        # Sort by the last word first: Python's sort is stable, so earlier words win.
        self.check()
        count = len(next(iter(columns.values()), ()))
        rows, words = list(range(count)), []
        for word in reversed([word.strip() for word in self.sort.split(",") if word.strip()]):
            name, descends = _sense(word, columns, falling)
            values = columns[name]
            # Put undefined values last in both directions.
            rows.sort(key=functools.partial(_key, values, descends), reverse=descends)
            rows = [row for row in rows if not _undefined(values[row])] + [
                row for row in rows if _undefined(values[row])
            ]
            words.append(_in_words(name, values, descends=descends))
        # Describe the selection.
        shown = count if self.top is None else min(self.top, count)
        parts = [f"{shown:,} of {count:,}"] if shown < count else []
        if words:
            parts.append(f"sorted by {', then '.join(reversed(words))}")
        return rows[:shown], ", ".join(parts)


ALL_ROWS = Rows()
"""Every row, in the order of the table."""


def with_rows(columns: Columns, rows: Sequence[int]) -> dict[str, list[Any]]:
    """Return some rows of a table, in the given order."""
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def _sense(word: str, columns: Columns, falling: Collection[str]) -> tuple[str, bool]:
    """Return the column of a sort word, and whether its largest value comes first."""
    from boxscore.protocols.metric_names import metric_meant

    # A word is a column, a metric by another name, or either with its direction.
    word = metric_meant(word, list(columns)) or word
    name, _, way = word.rpartition(":")
    name = metric_meant(name, list(columns)) or name
    if word not in columns and way in ("asc", "desc") and name in columns:
        return name, way == "desc"
    if word not in columns:
        near = checks.did_you_mean(word, columns)
        known = f"the columns are {', '.join(map(printable, columns))}"
        raise InputError("--sort", "name a column of the table", got=repr(word), cause=near or known)
    # Without a direction, the worst comes first: the lowest metric, the highest cost, the largest count.
    numbers = [value for value in columns[word] if not _undefined(value)]
    if word in falling or word in COSTS:
        return word, True
    counts = bool(numbers) and all(isinstance(value, (int, np.integer)) for value in numbers)
    return word, counts and word not in SCORES and word not in IDS


def _undefined(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))


def _key(values: Sequence[Any], descends: bool, row: int) -> Any:
    """Make values comparable: numbers before texts; undefined values are moved to the end afterwards."""
    value = values[row]
    if _undefined(value):
        return (0, 0.0)
    if isinstance(value, (int, float, np.number)):
        return (0, value)
    return (1, str(value))


def _in_words(name: str, values: Sequence[Any], *, descends: bool) -> str:
    if any(isinstance(value, str) for value in values):
        return f"{printable(name)} {'from Z' if descends else 'from A'}"
    return f"{'highest' if descends else 'lowest'} {printable(name)}"
