"""Compute summary metrics under many sets of image weights, from the same matches.

Conventions
-----------
- For a small data set, many sets of weights are counted together, each on a copy of the matches with classes
  of its own. The results equal those of one set at a time to the last bit.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import NamedTuple
from boxscore.extensions.weights.weighted import ImageWeights
from boxscore.extensions.weights.weighted_curves import CurvesUnderWeights
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import HeldValues
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import counted_for, kind_of
from boxscore.scoring.summary import (
    WeightedMetrics,
    images_of_class,
    summary_keys,
    summary_tables,
    summary_total,
)
from boxscore.scoring.totals import Totals


class ClassValues(NamedTuple):
    """The values of one class that a summary metric averages."""

    values: FloatArray
    """[T, ...]"""
    positive: NDArray[Any]
    """Ground truths in the denominator of recall, []."""
    images: NDArray[Any]
    """Images with such an object, [], if the mean over classes is weighted by images."""


LARGEST_BATCH = 64
"""Maximum sets of weights that are counted together, each on a copy of the matches."""

SETS_TOGETHER = 8
"""Maximum number of copies."""

COUNTED_TOGETHER = 1 << 16
"""Maximum detections and ground truths of all copies."""

VALUES_TOGETHER = 1 << 18
"""Maximum values [T, R, K] of all copies, 8 bytes each, to fit a processor's cache."""


def weighted_metrics(
    matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow], weights: Iterable[FloatArray]
) -> WeightedMetrics:
    """Compute summary rows for each set of image weights, whole numbers, [images].

    Many sets of a small data set are counted together: each on a copy of the matches, with its own classes.
    """
    # Count objects and detections per image once; a set of weights then needs one dot product of whole
    # numbers.
    matches = counted_for(matches, protocol)
    images = len(matches.images)
    truths = np.bincount(matches.truth_image[matches.counted(0)], minlength=images)
    detections = np.bincount(matches.image, minlength=images)
    # Process several sets of weights as copies of the matches in the same operations.
    size = _copies(matches, protocol, rows)
    tables = _tables_of_copies(matches, protocol, rows, size)
    made = []
    sets = iter(weights)
    while batch := list(itertools.islice(sets, SETS_TOGETHER * size)):
        # Neighboring sets, which may be the two sides of a swap, use the same copy.
        count = -(-len(batch) // size)
        filled = batch + [batch[0]] * (count * size - len(batch))
        # Copy c takes the sets from c * count on, so set i is number i % count of copy i // count.
        values = tables([np.concatenate(filled[first::count]) for first in range(count)])
        made += [
            (values[i % count][i // count], one @ truths, one @ detections) for i, one in enumerate(batch)
        ]
    K = len(matches.categories)
    return WeightedMetrics(
        np.array([values for values, _, _ in made]).reshape(len(made), len(rows), K + 1),
        np.array([count for _, count, _ in made], dtype=np.int64),
        np.array([count for _, _, count in made], dtype=np.int64),
    )


def class_values(
    matches: Matches, protocol: Protocol, row: SummaryRow, weights: Iterable[FloatArray]
) -> Iterator[ClassValues]:
    """Yield the values that a summary row averages under each set of image weights, for one class."""
    matches = counted_for(matches, protocol)
    size = _copies(matches, protocol, [row])
    many = matches if size == 1 else matches.repeated(size)
    prepared = ImageWeights(many, protocol, *protocol.position_of(row))
    sets = iter(weights)
    while batch := list(itertools.islice(sets, size)):
        counts = prepared.counts(np.concatenate(batch + [batch[0]] * (size - len(batch))))
        curves = Curves(counts, protocol.ap, categories=matches.categories)
        values, images = held(row, protocol, curves).values, images_of_class(curves, protocol)
        for copy in range(len(batch)):
            yield ClassValues(values[..., copy], curves.positive[copy], images[copy])


def held(row: SummaryRow, protocol: Protocol, curves: Curves) -> HeldValues:
    """Return the values behind a summary row, for few enough classes to keep them in memory."""
    values = kind_of(row.metric).values_of(curves, protocol)
    assert isinstance(values, HeldValues), "so many values are computed block by block"
    return values


def total_with(
    row: SummaryRow, protocol: Protocol, curves: Curves, replaced: Mapping[int, ClassValues]
) -> float:
    """Return a summary row over all classes, with the values of some classes replaced."""
    values = held(row, protocol, curves).values.copy()
    positive, images = curves.positive.copy(), images_of_class(curves, protocol).copy()
    for k, one in replaced.items():
        values[..., k], positive[k], images[k] = one
    totals = Totals.of_objects(positive, curves.totals.images, images)
    mixed = Curves.of_numbers(curves.rules, totals, {row.metric: HeldValues(values)}, curves.categories)
    return summary_total(row, protocol, lambda area, cap, pooled=None: mixed)


def _copies(matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow]) -> int:
    """Return the number of sets of weights to count together; 1 if classes depend on each other."""
    if not all(kind_of(row.metric).of_classes_alone for row in rows):
        return 1
    counted = max(len(matches) + len(matches.truth_image), 1)
    values = matches.threshold_count * len(protocol.ap.recall_points) * max(len(matches.categories), 1)
    return max(1, min(LARGEST_BATCH, COUNTED_TOGETHER // counted, VALUES_TOGETHER // values))


def _tables_of_copies(
    matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow], size: int
) -> Callable[[Sequence[FloatArray]], list[FloatArray]]:
    """Return a function that computes :func:`summary_table` of each copy, [size, rows, K + 1].

    It takes some sets of weights of all copies.
    """
    # Prepare each area range and limit once, on all copies, for all rows that need it.
    kinds = summary_keys(rows, protocol)

    @functools.cache
    def prepared(area: int, cap: int, pooled: str | None) -> CurvesUnderWeights:
        chosen = matches if pooled is None else counted_for(matches.pooled(pooled), protocol)
        copies = chosen if size == 1 else chosen.repeated(size)
        folds = [kind_of(name).fold for name in kinds[area, cap]]
        best = any("best" in fold(protocol) for fold in folds if fold is not None)
        return CurvesUnderWeights(copies, protocol, area, cap, matches.categories, best=best)

    # For each set of weights, take the next curves of every area range: they are computed in step.
    def tables(weights: Sequence[FloatArray]) -> list[FloatArray]:
        @functools.cache
        def curves(area: int, cap: int, pooled: str | None) -> Iterator[Curves]:
            return prepared(area, cap, pooled).of(weights)

        def table() -> FloatArray:
            @functools.cache
            def curves_of(area: int, cap: int, pooled: str | None = None, /) -> Curves:
                return next(curves(area, cap, pooled))

            return summary_tables(rows, protocol, curves_of, size)

        return [table() for _ in weights]

    return tables
