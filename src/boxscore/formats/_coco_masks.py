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

LARGEST = 1 << 40
"""Numbers beyond it are refused as this one is; it fits an int64."""


def mask_columns(records: list[Any], name: str) -> MaskColumns:
    """Return the masks of some records."""
    values = list(map(operator.attrgetter(name), records))
    kind = np.fromiter(map(_kind, values), np.uint8, len(values))
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
    codes = np.sort(np.concatenate([text_rows, list_rows]))
    size[codes] = _sizes([values[row].size for row in codes.tolist()])
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


def _kind(value: Any) -> int:
    if not value:
        return MISSING
    if type(value) is list:
        return POLYGONS
    return TEXT if type(value.counts) is str else LIST


def _sizes(sizes: list[tuple[int, int]]) -> Any:
    return _numbers(list(itertools.chain.from_iterable(sizes))).reshape(-1, 2)


def _numbers(values: list[int]) -> Any:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array([max(-1, min(value, LARGEST)) for value in values], dtype=np.int64)
