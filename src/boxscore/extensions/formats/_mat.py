"""Read cells, numbers and text from MATLAB version 5 files.

Conventions
-----------
- A cell array becomes a list in MATLAB's (column) order, numbers an array of float64, text a string.
- Structures, objects, functions and sparse arrays are errors; so are files of version 7.3 (HDF5).

References
----------
MathWorks, "MAT-File Format", version 5.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.files import read_at_most
from boxscore.errors import FileFormatError
from boxscore.formats import _json

LARGEST = 1 << 29
"""Maximum size in bytes of a file, and of its decompressed content."""
DEEPEST = 32

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _TEXT, _NUMERIC = 1, 4, range(6, 16)


def is_mat(head: bytes) -> bool:
    """Whether a file starts like a MATLAB file of any version."""
    return head.startswith(b"MATLAB ")


class _Element(NamedTuple):
    kind: int
    data: memoryview
    end: int


def read_mat(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read some variables of a file."""
    # Reject files that are too large, of version 7.3 (HDF5) or without the header.
    with _json.open_binary(path) as file:
        content = read_at_most(file, LARGEST + 1)
    if len(content) > LARGEST:
        raise FileFormatError("a MATLAB file", f"have at most {LARGEST:,} bytes", got="more", place=str(path))
    if content[:16].startswith(b"MATLAB 7.3") or content[:8] == b"\x89HDF\r\n\x1a\n":
        cause = "save it with -v7"
        raise FileFormatError("a MATLAB file", "be of version 5", got="7.3", place=str(path), cause=cause)
    if len(content) < 128 or content[126:128] not in (b"IM", b"MI") or not is_mat(content):
        raise FileFormatError("a MATLAB file", "begin with its header", got="another", place=str(path))
    # The mark is IM or MI, depending on the byte order.
    order = "<" if content[126:128] == b"IM" else ">"
    try:
        return _Reader(order, names).variables(memoryview(content)[128:])
    except (
        struct.error,
        ValueError,
        IndexError,
        OverflowError,
        TypeError,
        zlib.error,
        RecursionError,
    ) as error:
        cause = "is it complete?" if not isinstance(error, _UnknownError) else ""
        got = str(error)[:100]
        raise FileFormatError(
            "a MATLAB file", "hold cells, numbers and text", got=got, place=str(path), cause=cause
        ) from None


class _UnknownError(ValueError):
    """A class of array that is not supported."""


class _Reader:
    def __init__(self, order: str, names: Collection[str]) -> None:
        self._order, self._names = order, names
        self._unpacked = 0

    def variables(self, content: memoryview) -> dict[str, Any]:
        # A file is a list of elements with kind and length; decompression has a size limit.
        values: dict[str, Any] = {}
        position = 0
        while position + 8 <= len(content):
            element = self._element(content, position)
            position = element.end
            # All compressed elements share the limit.
            if element.kind == _COMPRESSED:
                engine = zlib.decompressobj()
                unpacked = engine.decompress(bytes(element.data), LARGEST - self._unpacked + 1)
                self._unpacked += len(unpacked)
                if self._unpacked > LARGEST:
                    raise ValueError(f"more than {LARGEST:,} bytes unpacked")
                element = self._element(memoryview(unpacked), 0)
            # Keep the requested variables.
            if element.kind == _MATRIX:
                name, value = self._matrix(element.data, 0)
                if name in self._names:
                    values[name] = value
        return values

    def _element(self, content: memoryview, position: int) -> _Element:
        (tag,) = struct.unpack_from(self._order + "I", content, position)
        if tag >> 16:  # the small form: size and kind in one word, the data in the next
            size, kind = tag >> 16, tag & 0xFFFF
            if size > 4:
                raise ValueError("a small element of more than 4 bytes")
            return _Element(kind, content[position + 4 : position + 4 + size], position + 8)
        (size,) = struct.unpack_from(self._order + "I", content, position + 4)
        start = position + 8
        if start + size > len(content):
            raise ValueError("an element that is cut short")
        padding = 0 if tag == _COMPRESSED else -size % 8  # other elements end at a multiple of 8 bytes
        return _Element(tag, content[start : start + size], start + size + padding)

    def _numbers(self, element: _Element) -> np.ndarray[Any, Any]:
        if element.kind not in _NUMBERS:
            raise _UnknownError(f"numbers of kind {element.kind}")
        return np.frombuffer(element.data, dtype=self._order + _NUMBERS[element.kind])

    def _matrix(self, content: memoryview, depth: int) -> tuple[str, Any]:
        # An empty cell is zero bytes long.
        if not len(content):
            return "", np.empty((0, 0))
        if depth > DEEPEST:
            raise _UnknownError("cells that are nested too deep")
        # A matrix starts with flags, shape and name; its values follow.
        flags = self._element(content, 0)
        shape_element = self._element(content, flags.end)
        name_element = self._element(content, shape_element.end)
        kind = int(self._numbers(flags)[0]) & 0xFF
        shape = tuple(self._numbers(shape_element).tolist())
        name = bytes(name_element.data).decode("ascii", errors="replace")
        # Skip other variables.
        if not depth and name not in self._names:
            return name, None
        # Cells hold matrices, one after another in column order.
        count, position = int(np.prod(shape, dtype=np.int64)), name_element.end
        if kind == _CELL:
            cells = []
            for _ in range(count):
                element = self._element(content, position)
                cells.append(self._matrix(element.data, depth + 1)[1])
                position = element.end
            return name, cells
        # Text is UTF-8, or one number per character.
        if kind == _TEXT:
            element = self._element(content, position)
            if element.kind == 16:
                return name, bytes(element.data).decode("utf-8")
            return name, "".join(map(chr, self._numbers(element).tolist()))
        if kind not in _NUMERIC:
            raise _UnknownError(f"an array of class {kind}")
        # Numbers are stored in the smallest type that holds them, down the columns; float64 holds them all.
        values = self._numbers(self._element(content, position)).astype(np.float64)
        return name, values.reshape(shape, order="F")
