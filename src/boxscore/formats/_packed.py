"""Convert numeric JSON records to columns without a Python loop over the records.

Records decode to msgspec structs of floats. Encoded as MessagePack, where every float takes a marker and
eight bytes, the structs form a NumPy record array whose fields are the columns. This is three times faster
than reading the attributes of every struct.

Conventions
-----------
- Columns are preallocated for the number of records estimated from the first slice; untouched memory pages
  cost nothing.
- The fields of a struct are ``float``, a tuple of floats, or ``None``, which does not become a column.

References
----------
https://github.com/msgpack/msgpack/blob/master/spec.md: maps, strings, arrays and ``float 64``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, get_args, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.memory import paused_collector

Columns = dict[str, NDArray[Any]]

_NUMBER = np.dtype({"names": ["number"], "formats": [">f8"], "offsets": [1], "itemsize": 9})
_SPARE = 17 / 16
"""Allocate this multiple of the estimated number of records."""


def numbers_of(values: Sequence[Any], code: str) -> NDArray[Any]:
    """Convert Python numbers to an array; ``struct`` is several times faster than NumPy."""
    return np.frombuffer(struct.pack(f"{len(values)}{code}", *values), dtype=code)


def packed_columns(
    slices: Iterable[list[msgspec.Struct]], kind: type[msgspec.Struct], *, expected_slices: float
) -> Columns:
    """Convert slices of numeric records to columns [N] or [N, n]."""
    # As MessagePack, a struct of floats has a fixed layout.
    layout = _layout(kind)
    encode = msgspec.msgpack.Encoder().encode
    columns = _allocate(layout, 0)
    count = room = 0
    with paused_collector():
        for records in slices:
            end = count + len(records)
            # Allocate by the estimate of the first slice; if that is too little, double the capacity.
            if end > room:
                room = int(max(end * 2, len(records) * expected_slices * _SPARE) if count == 0 else end * 2)
                larger = _allocate(layout, room)
                for name, column in columns.items():
                    larger[name][:count] = column[:count]
                columns = larger
            packed = encode(records)
            # The header of the list takes 1 to 5 bytes, so locate the records from the end.
            rows = np.frombuffer(packed, layout, offset=len(packed) - len(records) * layout.itemsize)
            for name, column in columns.items():
                column[count:end] = rows[name]["number"]
            count = end
    return {name: column[:count] for name, column in columns.items()}


def _layout(kind: type[msgspec.Struct]) -> np.dtype[Any]:
    """Return the layout of a record in MessagePack: a map from names to floats or arrays of floats."""
    offset = 1
    names, formats, offsets = [], [], []
    hints = get_type_hints(kind)
    for name in kind.__struct_fields__:
        hint = hints[name]
        offset += 1 + len(name)
        if hint is type(None):
            offset += 1  # nil
            continue
        shape = (len(get_args(hint)),) if get_args(hint) else ()
        offset += len(shape) * (1 if len(get_args(hint)) < 16 else 3)  # the marker of an array
        names.append(name)
        formats.append((_NUMBER, shape))
        offsets.append(offset)
        offset += _NUMBER.itemsize * int(np.prod(shape))
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": offset})


def _allocate(layout: np.dtype[Any], room: int) -> Columns:
    return {name: np.empty((room, *layout[name].shape)) for name in layout.names or ()}
