"""Masks of COCO's records as columns, a slice of records at a time.

Conventions
-----------
- ``segmentation`` is polygons or an RLE, whose ``counts`` are text or a list. ``[]`` is none: many programs
  write it where there are only boxes.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import msgspec
import numpy as np

from boxscore.data.mask_columns import LIST, MISSING, POLYGONS, TEXT, MaskColumns

__all__ = ["Segmentation", "mask_columns"]


class _Code(msgspec.Struct, gc=False):
    size: tuple[int, int]
    counts: str | list[int]


Segmentation = list[list[float]] | _Code | None

_KINDS = {_Code: TEXT, list: POLYGONS, type(None): MISSING}

LARGEST = 1 << 40
"""Numbers beyond it are refused as this one is; it fits an int64."""


def mask_columns(records: list[Any], name: str) -> MaskColumns:
    """Return the masks of some records."""
    values = list(map(operator.attrgetter(name), records))
    kind = np.fromiter(map(_KINDS.__getitem__, map(type, values)), np.uint8, len(values))
    codes = [value for value in values if type(value) is _Code]
    if len(codes):
        listed = np.fromiter([type(code.counts) is list for code in codes], bool, len(codes))
        kind[np.flatnonzero(kind == TEXT)[listed]] = LIST
    if len(codes) < len(values):
        kind[np.fromiter([value == [] for value in values], bool, len(values))] = MISSING
    text_rows, list_rows, polygon_rows = (np.flatnonzero(kind == one) for one in (TEXT, LIST, POLYGONS))
    size = np.full((len(values), 2), -1, dtype=np.int64)
    start, count = np.zeros((2, len(values)), dtype=np.int64)
    texts = [values[row].counts for row in text_rows.tolist()]
    text = "".join(texts)
    if text.isascii():
        joined, lengths = text.encode("ascii"), list(map(len, texts))
    else:
        parts = [one.encode("utf-8", "surrogatepass") for one in texts]
        joined, lengths = b"".join(parts), list(map(len, parts))
    numbers = [values[row].counts for row in list_rows.tolist()]
    polygons = [values[row] for row in polygon_rows.tolist()]
    rings = list(itertools.chain.from_iterable(polygons))
    ring_count = np.fromiter(map(len, rings), np.int64, len(rings))
    for rows, counts in (
        (text_rows, lengths),
        (list_rows, list(map(len, numbers))),
        (polygon_rows, list(map(len, polygons))),
    ):
        count[rows] = counts
        start[rows] = np.cumsum(count[rows]) - count[rows]
    size[(kind == TEXT) | (kind == LIST)] = _numbers(
        list(itertools.chain.from_iterable([code.size for code in codes]))
    ).reshape(-1, 2)
    return MaskColumns(
        kind,
        size,
        start,
        count,
        joined,
        _numbers(list(itertools.chain.from_iterable(numbers))),
        np.cumsum(ring_count) - ring_count,
        ring_count,
        np.fromiter(itertools.chain.from_iterable(rings), np.float64, int(ring_count.sum())),
    )


def _numbers(values: list[int]) -> Any:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array([max(-1, min(value, LARGEST)) for value in values], dtype=np.int64)
