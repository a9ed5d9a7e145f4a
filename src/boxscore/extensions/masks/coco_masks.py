"""Read masks from COCO records as columns, a slice of records at a time.

Conventions
-----------
- ``segmentation`` is polygons or an RLE, whose ``counts`` are text or a list. ``[]`` means no mask: many
  programs write it for plain boxes.
"""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore.data.tables import BoxTable
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.mask_columns import LIST, MISSING, POLYGONS, TEXT, MaskColumns
from boxscore.formats._coco_records import Columns, Field, Readers, RecordShape
from boxscore.formats._packed import numbers_of


class _Code(msgspec.Struct, gc=False):
    size: tuple[int, int]
    counts: str | list[int]


Segmentation = list[list[float]] | _Code | None

_KINDS = {_Code: TEXT, list: POLYGONS, type(None): MISSING}

LARGEST = 1 << 40
"""Larger numbers are clipped to it, since it is rejected anyway and fits an int64."""


def mask_columns(records: list[Any], name: str) -> MaskColumns:
    """Return the masks of some records as columns."""
    values = list(map(operator.attrgetter(name), records))
    try:
        return _of_texts(values)
    except (AttributeError, TypeError):
        return _of_any(values)


def _of_texts(values: list[_Code]) -> MaskColumns:
    """Return masks that are all compressed RLEs, the usual form of results."""
    text, length = _joined(list(map(operator.attrgetter("counts"), values)))
    return MaskColumns(
        np.full(len(values), TEXT, dtype=np.uint8),
        _sizes(values),
        np.cumsum(length) - length,
        length,
        text,
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty(0),
    )


def _of_any(values: list[Any]) -> MaskColumns:
    # Find the kind of each value: no mask, RLE text, RLE list, or polygons.
    kind = np.fromiter(map(_KINDS.__getitem__, map(type, values)), np.uint8, len(values))
    codes = [value for value in values if type(value) is _Code]
    if len(codes):
        listed = np.fromiter([type(code.counts) is list for code in codes], bool, len(codes))
        kind[np.flatnonzero(kind == TEXT)[listed]] = LIST
    # An empty list means no mask, though it has the type of polygons.
    if len(codes) < len(values):
        kind[np.fromiter([value == [] for value in values], bool, len(values))] = MISSING
    # Concatenate the masks of each kind in one flat array, so that no object per mask is left.
    text_rows, list_rows, polygon_rows = (np.flatnonzero(kind == code) for code in (TEXT, LIST, POLYGONS))
    size = np.full((len(values), 2), -1, dtype=np.int64)
    start, count = np.zeros((2, len(values)), dtype=np.int64)
    text, lengths = _joined([values[row].counts for row in text_rows.tolist()])
    numbers = [values[row].counts for row in list_rows.tolist()]
    polygons = [values[row] for row in polygon_rows.tolist()]
    # Flatten polygons on two levels: rings of a mask, and numbers of a ring.
    rings: list[list[float]] = list(itertools.chain.from_iterable(polygons))
    ring_count = np.fromiter(map(len, rings), np.int64, len(rings))
    points: list[float] = []
    for ring in rings:
        points += ring
    # Record the start and length of each mask in its flat array.
    for rows, counts in (
        (text_rows, lengths),
        (list_rows, list(map(len, numbers))),
        (polygon_rows, list(map(len, polygons))),
    ):
        count[rows] = counts
        start[rows] = np.cumsum(count[rows]) - count[rows]
    size[(kind == TEXT) | (kind == LIST)] = _sizes(codes)
    return MaskColumns(
        kind,
        size,
        start,
        count,
        text,
        _whole_numbers(list(itertools.chain.from_iterable(numbers))),
        np.cumsum(ring_count) - ring_count,
        ring_count,
        numbers_of(points, "d"),
    )


def _joined(texts: list[str]) -> tuple[bytes, NDArray[np.int64]]:
    """Return the concatenated texts as bytes, and their lengths."""
    text = "".join(texts)
    if text.isascii():
        return text.encode("ascii"), np.fromiter(map(len, texts), np.int64, len(texts))
    parts = [counts.encode("utf-8", "surrogatepass") for counts in texts]
    return b"".join(parts), np.fromiter(map(len, parts), np.int64, len(parts))


def _sizes(codes: list[_Code]) -> NDArray[np.int64]:
    sizes = map(operator.attrgetter("size"), codes)
    return _whole_numbers(list(itertools.chain.from_iterable(sizes))).reshape(-1, 2)


def _whole_numbers(values: list[int]) -> NDArray[np.int64]:
    try:
        return numbers_of(values, "q")
    except struct.error:
        return np.array([max(-1, min(value, LARGEST)) for value in values], dtype=np.int64)


def _segmentation(mask: Any) -> Any:
    """Return polygons or an RLE in the form of COCO records; None for a row without a mask."""
    if not isinstance(mask, dict):
        return None if mask is None else [np.asarray(part, dtype=np.float64).tolist() for part in mask]
    counts = mask["counts"]
    if isinstance(counts, bytes):
        counts = counts.decode("ascii")
    elif not isinstance(counts, str):
        counts = np.asarray(counts).tolist()
    return {"size": np.asarray(mask["size"]).tolist(), "counts": counts}


class _Masks(RecordShape):
    readers: ClassVar[Readers] = {"segmentation": mask_columns}

    def fields(self, *, of_results: bool) -> Sequence[Field]:
        return [("segmentation", Segmentation, None)]

    def columns(
        self, records: Columns, image_sizes: Callable[[], FloatArray], place: Place
    ) -> dict[str, Any]:
        columns: MaskColumns = records["segmentation"]
        if (columns.kind == MISSING).all():
            return {"masks": None}
        return {"masks": Masks.of_columns(columns, image_sizes=image_sizes(), place=place)}

    def written(self, table: BoxTable) -> dict[str, list[Any]]:
        assert table.masks is not None
        return {"segmentation": list(map(_segmentation, table.masks.given))}


MASKS = _Masks()
