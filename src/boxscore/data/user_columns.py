"""The user's own columns: copied when they are given, and what a DataFrame makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.errors import InputError


def user_columns(columns: Mapping[str, Any] | None, count: int, *, of: str) -> dict[str, NDArray[Any]]:
    """Return copies of the user's own columns by name; each must have ``count`` values."""
    arrays = {}
    for name, values in (columns or {}).items():
        if not isinstance(name, str):
            raise InputError("a name in columns", "be a string", got=repr(name))
        arrays[name] = np.array(checks.any_array(values, name=f"column {name}"))
        if arrays[name].ndim == 0 or len(arrays[name]) != count:
            got = f"length {len(arrays[name])}" if arrays[name].ndim else "one value"
            raise InputError(name, f"be as long as {of} ({count})", got=got)
    return arrays


def in_frame(columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the user's own columns; Python objects stay what they are, None among texts too."""
    import pandas as pd

    return {
        name: pd.Series(column, dtype=object) if column.dtype == object else column
        for name, column in columns.items()
    }


def check_one_number(name: str, column: NDArray[Any]) -> None:
    """Refuse a column with more than one value per row, which a DataFrame cannot hold."""
    if column.ndim != 1:
        got = f"shape {list(column.shape)}"
        raise InputError(f"column {name}", "have one value per row to go into a DataFrame", got=got)
