"""What every diagnostic returns: arrays, and a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EVERY_CLASS", "Counts", "DiagnosticResult", "Floats", "mean_over_classes"]

EVERY_CLASS = "(all)"
"""Stands in a ``class`` column for all classes together."""

Floats = Any
"""A float64 array, or one such number: the values of classes, and those of all classes together."""

Counts = Any
"""The same of int64."""

SHOWN_ROWS, SHOWN_COLUMNS = 10, 14


class DiagnosticResult:
    """The answer to one question: attributes hold arrays, computed once; :meth:`to_frame` makes a table.

    A subclass is a frozen dataclass. Totals over all classes are attributes of their own and the one row of
    :meth:`total_frame`, never a row among the classes.
    """

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a DataFrame: one row per class, or per whatever the result lists."""
        raise NotImplementedError

    def total_frame(self) -> pd.DataFrame | None:
        """Return the same columns for all classes together; None where there is no such total."""
        return None

    def printed_frame(self) -> pd.DataFrame:
        """Return what a page or terminal prints: the rows, and the totals below them."""
        import pandas as pd

        total = self.total_frame()
        rows = self.to_frame()
        return rows if total is None else pd.concat([rows, total], ignore_index=True)

    def __repr__(self) -> str:
        frame = self.printed_frame()
        text = frame.to_string(max_rows=SHOWN_ROWS, max_cols=SHOWN_COLUMNS)
        return f"{type(self).__name__}, {len(frame)} rows\n{text}"

    def _repr_html_(self) -> str:
        html: str = self.printed_frame().to_html(
            max_rows=SHOWN_ROWS, max_cols=SHOWN_COLUMNS, border=0, escape=True
        )
        return html


def mean_over_classes(values: NDArray[np.float64]) -> np.float64:
    """Mean of the classes [K] that define a value; NaN when none does."""
    defined = ~np.isnan(values)
    count = defined.sum()
    mean: np.float64 = np.where(defined, values, 0.0).sum() / count if count else np.float64(np.nan)
    return mean
