"""What counts as a DataFrame: one of pandas, and any table with Arrow's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

if TYPE_CHECKING:
    import pandas as pd


class _ArrowTable(Protocol):
    """A table of Polars or Arrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return its stream of batches."""


FrameLike: TypeAlias = "pd.DataFrame | _ArrowTable"
"""A DataFrame of pandas or Polars, or a table of Arrow; none of them is imported."""


def is_frame(value: object) -> TypeGuard[FrameLike]:
    """Whether a value is a DataFrame, or a table with Arrow's interface."""
    return hasattr(value, "__arrow_c_stream__") or (hasattr(value, "columns") and hasattr(value, "iloc"))
