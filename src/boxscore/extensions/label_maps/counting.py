"""Count the pixels of each pair of labels of two maps: a joint histogram of two integer images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.errors import InputError
from boxscore.extensions.training.tensors import as_array

LabelMap = NDArray[np.integer[Any]]
"""Labels or segment ids, [H, W], of any integer dtype."""

LARGEST_ID = 2**24 - 1
"""The largest id that three bytes of color can store."""

LEAST_BINS = 1 << 16
BINS_PER_PIXEL = 2


class PixelPairs(NamedTuple):
    """The P pairs of labels that occur, ascending, and their pixel counts; int64 [P]."""

    truth: NDArray[np.int64]
    prediction: NDArray[np.int64]
    pixels: NDArray[np.int64]


class LabelClasses(NamedTuple):
    """The labels and names of the K classes."""

    labels: tuple[int, ...]
    names: tuple[str, ...]


class LabelCounts(NamedTuple):
    """Pixel counts by image and pair of labels, before any rules; N rows."""

    image: NDArray[np.int32]
    truth: NDArray[np.int32]
    prediction: NDArray[np.int32]
    pixels: NDArray[np.int64]

    @classmethod
    def of(cls, pairs: Sequence[PixelPairs], *, first: int = 0) -> LabelCounts:
        """Concatenate the pairs of the images ``first``, ``first`` + 1, ..."""
        sizes = [len(each.pixels) for each in pairs]
        image = np.repeat(np.arange(first, first + len(pairs), dtype=np.int32), sizes)
        columns = [
            np.concatenate([np.zeros(0, dtype=np.int64), *(each[i] for each in pairs)]) for i in range(3)
        ]
        return cls(image, columns[0].astype(np.int32), columns[1].astype(np.int32), columns[2])


def label_map(values: Any, *, name: str, place: str = "", low: int, high: int) -> LabelMap:
    """Check a map of labels: integers [H, W] between two bounds."""
    array = as_array(values, name)
    if array.ndim != 2 or array.size == 0:
        raise InputError(name, "have shape [H, W], not empty", got=f"shape {list(array.shape)}", place=place)
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.dtype.kind not in "iu":
        cause = "take the argmax over classes first" if array.dtype.kind == "f" else ""
        raise InputError(name, "be whole numbers", got=f"dtype {array.dtype}", place=place, cause=cause)
    info = np.iinfo(array.dtype)
    if info.min < low or info.max > high:
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            got = least if least < low else most
            raise InputError(name, f"have labels in [{low}, {high}]", got=got, place=place)
    return array


def segment_map(values: Any, *, name: str, place: str = "") -> LabelMap:
    """Check a map of segment ids: [H, W], or colors [H, W, 3], which mean R + 256 G + 65536 B."""
    array = as_array(values, name)
    if array.ndim == 3 and array.shape[2] == 3 and array.dtype == np.uint8:
        wide = array.astype(np.uint32)
        array = wide[..., 0] | wide[..., 1] << np.uint32(8) | wide[..., 2] << np.uint32(16)
    return label_map(array, name=name, place=place, low=0, high=LARGEST_ID)


def count_pairs(truth: LabelMap, prediction: LabelMap, *, name: str, place: str = "") -> PixelPairs:
    """Count the pixels of every pair of labels of two maps of equal size."""
    if truth.shape != prediction.shape:
        sizes = [f"{array.shape[1]} x {array.shape[0]}" for array in (truth, prediction)]
        rule = f"be as large as the truth ({sizes[0]})"
        raise InputError(
            name, rule, got=sizes[1], place=place, cause="resize it with nearest-neighbor interpolation"
        )
    # Shift both maps to start at 0, so that the table of pairs is as small as possible.
    low = int(prediction.min())
    span = int(prediction.max()) - low + 1
    first = int(truth.min())
    bins = (int(truth.max()) - first + 1) * span
    if bins <= max(LEAST_BINS, BINS_PER_PIXEL * truth.size):
        # Encode a pair of labels as one number below ``bins``. Count with a table if it is small enough;
        # 16-bit codes take a quarter of the memory of 64-bit ones.
        kind = np.uint16 if bins < 1 << 16 else np.int64
        codes = _from_zero(truth, first, kind)
        codes *= kind(span)
        codes += _from_zero(prediction, low, kind)
        counts = np.bincount(codes.ravel())
        distinct = np.flatnonzero(counts)
        pixels = counts[distinct]
    else:
        distinct, pixels = _count_by_runs(truth, prediction, first, low, span)
    return PixelPairs(distinct // span + first, distinct % span + low, pixels)


def _from_zero(array: LabelMap, low: int, kind: type[np.integer[Any]]) -> LabelMap:
    """Return the array minus its minimum; unsigned arrays subtract in their own dtype, which cannot wrap."""
    if array.dtype.kind == "u":
        return (array - array.dtype.type(low)).astype(kind)
    return (array.astype(np.int64) - low).astype(kind)


def _count_by_runs(
    truth: LabelMap, prediction: LabelMap, first: int, low: int, span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count pairs with sparse codes: sort runs of equal neighbors, since most neighbors are equal."""
    codes = (truth.ravel().astype(np.int64) - first) * span
    codes += prediction.ravel().astype(np.int64) - low
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    lengths = np.diff(starts, append=codes.size)
    distinct, rows = np.unique(codes[starts], return_inverse=True)
    pixels = np.bincount(rows.ravel(), weights=lengths, minlength=len(distinct))  # exact: far below 2 ** 53
    return distinct, pixels.astype(np.int64)
