"""What is taken for a DataFrame: pandas' own, and any table with Arrow's interface."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

__all__ = ["FrameLike", "is_frame"]

FrameLike: TypeAlias = Any
"""A DataFrame of pandas or Polars, or a table of Arrow; none of them is imported to say so."""


def is_frame(value: object) -> TypeGuard[FrameLike]:
    """Whether a value is a DataFrame, or a table with Arrow's interface."""
    return hasattr(value, "__arrow_c_stream__") or (hasattr(value, "columns") and hasattr(value, "iloc"))
