"""Decode ``tf.train.Example``, the one protocol buffer message that TFRecord files need.

References
----------
https://protobuf.dev/programming-guides/encoding, tensorflow's ``example.proto`` and ``feature.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import numpy as np

Values = list[bytes] | list[float] | list[int]

MOST_VALUES = 10_000_000
"""Maximum number of values of one feature."""


def features(record: memoryview, wanted: Callable[[str], bool]) -> dict[str, Values]:
    """Return the requested features of an ``Example``; raise ``ValueError`` for any other message."""
    values: dict[str, Values] = {}
    for field, inner in _fields(record):
        if field != 1 or not isinstance(inner, memoryview):
            continue
        for _, entry in _fields(inner):
            if not isinstance(entry, memoryview):
                raise ValueError("a feature that is not a message")
            parts = {number: value for number, value in _fields(entry) if isinstance(value, memoryview)}
            name = bytes(parts.get(1, b"")).decode("utf-8")
            if wanted(name):
                values[name] = _values(parts.get(2, memoryview(b"")))
    return values


def _values(feature: memoryview) -> Values:
    """Return the list of a feature: bytes (1), floats (2) or whole numbers (3)."""
    # A feature has one list; bytes have one field per value.
    for kind, inner in _fields(feature):
        if not isinstance(inner, memoryview):
            raise ValueError("a list that is not a message")
        if kind == 1:
            return [bytes(value) for _, value in _fields(inner) if isinstance(value, memoryview)]
        # Floats are packed into one field, which NumPy reads in one call, or have one field each.
        if kind == 2:
            floats: list[float] = []
            for _, value in _fields(inner):
                if isinstance(value, memoryview):
                    if len(value) % 4:
                        raise ValueError("floats that are cut off")
                    floats += np.frombuffer(value, "<f4").astype(np.float64).tolist()
                else:
                    floats += struct.unpack("<f", struct.pack("<I", value & 0xFFFFFFFF))
            return floats
        # So are integers; each byte holds seven bits, so packed ones are decoded one by one.
        numbers: list[int] = []
        for _, value in _fields(inner):
            if isinstance(value, memoryview):
                position = 0
                while position < len(value):
                    number, position = _varint(value, position)
                    numbers.append(_signed(number))
                if len(numbers) > MOST_VALUES:
                    raise ValueError("too many numbers")
            else:
                numbers.append(_signed(value))
        return numbers
    return []


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field of a message."""
    # A tag has the field's number and its wire type; type 0 is a number.
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        wire = tag & 7
        if wire == 0:
            number, position = _varint(message, position)
            yield tag >> 3, number
            continue
        # Type 2 states its length, 1 and 5 have eight and four bytes; the old group types are errors.
        if wire == 2:
            length, position = _varint(message, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")
        # Slicing a memoryview does not copy.
        if length > len(message) - position:
            raise ValueError("a field that is cut off")
        value = message[position : position + length]
        yield tag >> 3, value if wire == 2 else int.from_bytes(value, "little")
        position += length


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 64:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a number that is cut off")


def _signed(value: int) -> int:
    value &= (1 << 64) - 1  # two's complement of 64 bits
    return value - (1 << 64) if value >> 63 else value
