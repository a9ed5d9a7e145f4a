"""Statistics of a table that no process holds: counts add up, quantiles are read off sorted files.

Conventions
-----------
- Each part of the images writes its values of a quantity to a folder, sorted; areas once more, by class.
- A quantile lies between two values of known rank. Which those are is found by halving the range of 64-bit
  numbers: how many values are not larger is a binary search in each part. So the bits are those of one table,
  and no values need to be in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.data.statistics import (
    QUANTILES,
    TableCounts,
    TableStatistics,
    areas_by_class,
    described,
    quantities,
    table_counts,
)
from boxscore.data.tables import Detections, GroundTruth

BYTES = np.dtype(np.float64)
BY_CLASS = "areas by class"


class CountedPart(NamedTuple):
    """What some images have."""

    counts: TableCounts
    folder: Path
    """Of its sorted values: a file for each quantity."""
    lengths: dict[str, int]


def counted_part(
    truth: GroundTruth, detections: Detections, *_: object, folder: Path, **__: object
) -> CountedPart:
    """Count the detections of some images, and write what is measured of them to a folder in ``folder``."""
    counts = table_counts(detections)
    own = Path(tempfile.mkdtemp(dir=folder))
    measured = {name: np.sort(values.astype(BYTES)) for name, values in quantities(detections).items()}
    groups = np.split(areas_by_class(detections), np.cumsum(counts.per_class)[:-1])
    measured[BY_CLASS] = np.concatenate([np.sort(group) for group in groups]) if groups else np.empty(0)
    for number, values in enumerate(measured.values()):
        values.astype(BYTES).tofile(own / f"{number}")
    return CountedPart(counts, own, {name: len(values) for name, values in measured.items()})


def statistics_of_parts(parts: Sequence[CountedPart], folder: Path) -> TableStatistics:
    """Describe all images; the files of the parts are joined, and removed."""
    counts = reduce(add, (part.counts for part in parts))
    quantiles = {}
    for number, name in enumerate([*counts.quantities, BY_CLASS]):
        values = _joined([part.folder / f"{number}" for part in parts], folder / f"{number}")
        ends = np.cumsum([part.lengths[name] for part in parts])
        if name == BY_CLASS:
            medians = _medians(values, parts, ends)
        elif len(values):
            quantiles[name] = _quantiles([part for part in np.split(values, ends[:-1]) if len(part)])
    return described(counts, quantiles, medians)


def _joined(files: Sequence[Path], whole: Path) -> NDArray[Any]:
    """Put files one after the other, and map them."""
    with whole.open("wb") as output:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, output)
            file.unlink()
    return np.memmap(whole, BYTES, "r") if whole.stat().st_size else np.empty(0)


def _medians(values: NDArray[Any], parts: Sequence[CountedPart], ends: IntArray) -> list[float]:
    """Return the median of each class."""
    per_class = np.stack([part.counts.per_class for part in parts])
    stops = np.cumsum(per_class, axis=1) + (ends - per_class.sum(axis=1))[:, None]
    medians = []
    for sizes, own_stops in zip(per_class.T, stops.T, strict=True):
        count = int(sizes.sum())
        slices = zip(sizes.tolist(), own_stops.tolist(), strict=True)
        held = [values[stop - size : stop] for size, stop in slices if size]
        ranks = np.array([(count - 1) // 2, count // 2])
        medians.append(float(np.median(of_rank(held, ranks))) if count else float("nan"))
    return medians


def _quantiles(parts: Sequence[NDArray[Any]]) -> list[float]:
    """Return the quantiles of sorted arrays together, as numpy's are."""
    places = np.array(QUANTILES) * (sum(map(len, parts)) - 1)
    below = np.floor(places)
    around = np.stack([below, np.ceil(places)]).astype(np.int64)
    values = of_rank(parts, around.ravel()).reshape(around.shape)
    shares = (places - below).tolist()
    return [float(np.quantile(pair, share)) for pair, share in zip(values.T, shares, strict=True)]


def of_rank(parts: Sequence[NDArray[Any]], ranks: IntArray) -> FloatArray:
    """Return the values of some ranks, counted from 0, among sorted arrays together.

    Parameters
    ----------
    parts : sequence of ndarray of float64
        Each ascending and not empty, without NaN.
    ranks : ndarray of int64, [R]

    Returns
    -------
    ndarray of float64, [R]
    """
    low = np.full(len(ranks), min(_ordinal(part[0]) for part in parts))
    high = np.full(len(ranks), max(_ordinal(part[-1]) for part in parts))
    while (low < high).any():
        middle = low + (high - low) // np.uint64(2)
        tried = _value(middle)
        reached = sum(np.searchsorted(part, tried, side="right") for part in parts) > ranks
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + np.uint64(1), high))
    return _value(low) + 0.0  # never -0


SIGN = np.uint64(1 << 63)


def _ordinal(value: FloatArray) -> NDArray[np.uint64]:
    """Return numbers whose order is that of the values."""
    bits = np.asarray(value, dtype=BYTES).view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def _value(ordinal: NDArray[np.uint64]) -> FloatArray:
    bits = np.where(ordinal & SIGN, ordinal ^ SIGN, ~ordinal)
    return bits.view(BYTES)
