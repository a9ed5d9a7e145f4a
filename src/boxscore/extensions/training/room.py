"""Preallocate columns that arrive in chunks, so that joining them copies nothing.

A training loop brings a few megabytes at a time. Joined at the end, they are in memory twice, and what is
freed then lies in pieces between what is not. So rows are put where the next ones will follow. The system
gives memory page by page, when it is written to: room that nothing comes into costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import BoxTable


class Rooms:
    """Arrays by name, with room for some rows each; a new one where the next piece does not fit."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._left: dict[str, NDArray[Any]] = {}  # what nothing has come into

    def put(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Put a piece behind the one before; returns it there."""
        if values.dtype == object:
            return values
        left = self._left.get(name)
        if left is None or left.dtype != values.dtype or left.shape[1:] != values.shape[1:]:
            left = np.empty((0, *values.shape[1:]), dtype=values.dtype)
        if len(left) < len(values):
            left = np.empty((max(self._rows, len(values)), *values.shape[1:]), dtype=values.dtype)
        here, self._left[name] = left[: len(values)], left[len(values) :]
        here[:] = values
        return here

    def take_in(self, table: BoxTable) -> None:
        """Put the columns of a table behind those of the ones before."""
        names = [column.name for column in table.schema.needed]
        names += [name for name in table.instances.names if table.instances.is_read(name)]
        for name in names:
            values = table.instances[name] if name in table.instances else getattr(table, name)
            if isinstance(values, np.ndarray):
                table.hold(name, self.put(f"{table.schema.name} {name}", values))
