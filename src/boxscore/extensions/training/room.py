"""Preallocate columns that arrive in chunks, so that joining them copies nothing.

A training loop adds a few megabytes at a time. Joining them at the end would hold them in memory twice and
leave the freed memory fragmented. So rows are written to their final place in a buffer. The system allocates
a page only when it is written, so unused space costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import BoxTable


class Rooms:
    """Preallocated arrays by name; a new one is allocated when the next chunk does not fit."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        # The unused rest.
        self._left: dict[str, NDArray[Any]] = {}
        self._numbers: NDArray[Any] = np.empty(0, dtype=np.int32)

    def numbers(self, count: int) -> NDArray[Any]:
        """Return 0, 1, ... as a view of one array."""
        if len(self._numbers) < count:
            self._numbers = np.arange(count, dtype=np.int32)
        return self._numbers[:count]

    def put(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Append a chunk to the buffer, and return it as a view."""
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
        """Append the columns of a table to the buffers."""
        table.drop_derived_sizes()
        names = [column.name for column in table.schema.needed if column.name in vars(table)]
        names += [name for name in table.instances.names if table.instances.is_read(name)]
        for name in names:
            values = table.instances[name] if name in table.instances else getattr(table, name)
            if isinstance(values, np.ndarray):
                table.hold(name, self.put(f"{table.schema.name} {name}", values))
