"""Compute statistics of a table that does not fit in memory: add counts, read quantiles from sorted files.

Conventions
-----------
- Each set of images writes its values of each quantity to a folder as sorted keys, and its areas also by
  class.
- A quantile is interpolated between two values of known rank, found in memory-mapped files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boxscore._utils.array_types import IntArray, KeyArray
from boxscore.data.tables import Detections, GroundTruth
from boxscore.extensions.data_tools.statistics import (
    QUANTILES,
    TableCounts,
    TableStatistics,
    areas_by_class,
    described,
    quantities,
    table_counts,
)
from boxscore.extensions.large.ranks import Lower, lower_in, quantiles, sorted_keys, values_of_ranks

BY_CLASS = "areas by class"


class CountedPart(NamedTuple):
    """Counts and sorted values of some images."""

    counts: TableCounts
    folder: Path
    """Folder of sorted keys, one file per quantity."""
    lengths: dict[str, int]


def counted_part(
    truth: GroundTruth, detections: Detections, *_: object, folder: Path, **__: object
) -> CountedPart:
    """Count the detections of some images, and write their measured values to a folder in ``folder``."""
    counts = table_counts(detections)
    own = Path(tempfile.mkdtemp(dir=folder))
    keys = {name: sorted_keys(values) for name, values in quantities(detections).items()}
    groups = np.split(areas_by_class(detections), np.cumsum(counts.per_class)[:-1])
    keys[BY_CLASS] = np.concatenate([sorted_keys(group) for group in groups])
    for number, some in enumerate(keys.values()):
        some.tofile(own / f"{number}")
    return CountedPart(counts, own, {name: len(some) for name, some in keys.items()})


def statistics_of_parts(parts: Sequence[CountedPart], folder: Path) -> TableStatistics:
    """Compute the statistics of all images; the files of the parts are joined and deleted."""
    counts = reduce(add, (part.counts for part in parts))
    sizes = {}
    for number, name in enumerate([*counts.quantities, BY_CLASS]):
        keys = _joined([part.folder / f"{number}" for part in parts], folder / f"{number}")
        ends = np.cumsum([part.lengths[name] for part in parts])
        if name == BY_CLASS:
            medians = _medians(keys, parts, ends)
        elif len(keys):
            lower = _lower(np.split(keys, ends[:-1]))
            sizes[name] = quantiles(len(keys), np.array(QUANTILES), lower).tolist()
    return described(counts, sizes, medians)


def _joined(files: Sequence[Path], whole: Path) -> KeyArray:
    """Concatenate files, and map the result."""
    with whole.open("wb") as output:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, output)
            file.unlink()
    return np.memmap(whole, np.uint64, "r") if whole.stat().st_size else np.empty(0, np.uint64)


def _medians(keys: KeyArray, parts: Sequence[CountedPart], ends: IntArray) -> list[float]:
    """Return the median area per class."""
    per_class = np.stack([part.counts.per_class for part in parts])
    stops = np.cumsum(per_class, axis=1) + (ends - per_class.sum(axis=1))[:, None]
    medians = []
    for sizes, own_stops in zip(per_class.T, stops.T, strict=True):
        count = int(sizes.sum())
        slices = zip(sizes.tolist(), own_stops.tolist(), strict=True)
        held = [keys[stop - size : stop] for size, stop in slices if size]
        ranks = np.array([(count - 1) // 2, count // 2])
        medians.append(float(np.median(values_of_ranks(ranks, _lower(held)))) if count else float("nan"))
    return medians


def _lower(parts: Sequence[KeyArray]) -> Lower:
    """Return a function that counts lower keys in all arrays."""
    return lambda tried: sum(lower_in(part, tried) for part in parts)
