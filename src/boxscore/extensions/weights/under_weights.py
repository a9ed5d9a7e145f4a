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
from boxscore.extensions.weights.weight_sums import Room
from boxscore.extensions.weights.weighted import ImageWeights
from boxscore.extensions.weights.weighted_curves import CurvesUnderWeights, has_points
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import MOST_VALUES, HeldValues
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import counted_for, kind_of
from boxscore.scoring.summary import (
    Key,
    WeightedMetrics,
    images_of_class,
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


Tables = Callable[[Sequence[FloatArray]], FloatArray]
"""Computes summary rows under some sets of weights, [sets, rows, K + 1]."""

LARGEST_BATCH = 64
"""Maximum sets of weights that are counted together, each on a copy of the matches."""

COUNTED_TOGETHER = 1 << 16
"""Maximum detections and ground truths of all copies."""

VALUES_TOGETHER = 1 << 18
"""Maximum values [T, R, K] of all copies, 8 bytes each, to fit a processor's cache."""

MOST_ENTRIES = 3 << 20
"""Maximum entries of precision, 16 bytes each, of the sets of weights that are computed together."""

WEIGHTS_TOGETHER = 1 << 25
"""Maximum weights of images, detections and ground truths of these sets."""

LEAST_BATCH = 4
"""Minimum number of such sets, which are two pairs: two sets, or the sides of two swaps."""


def weighted_metrics(
    matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow], weights: Iterable[FloatArray]
) -> WeightedMetrics:
    """Compute summary rows for each set of image weights, whole numbers, [images].

    Many sets are counted together. Means of recall, and of precision at recall points, are computed faster.
    """
    # Count objects and detections per image once; a set of weights then needs one dot product of whole
    # numbers.
    matches = counted_for(matches, protocol)
    images, K = len(matches.images), len(matches.categories)
    truths = np.bincount(matches.truth_image[matches.counted(0)], minlength=images)
    detections = np.bincount(matches.image, minlength=images)
    # Prepare the rows of either way.
    fast: list[int] = []
    slow: list[int] = []
    values = matches.threshold_count * len(protocol.ap.recall_points) * K
    can_be_fast = protocol.ap.pool == "none" and has_points(protocol.ap) and values <= MOST_VALUES
    for number, row in enumerate(rows):
        is_mean = can_be_fast and row.metric in ("AP", "AR") and not row.harmonic_of
        (fast if is_mean else slow).append(number)
    ways: list[tuple[list[int], Tables]] = []
    together = 1
    if fast:
        together, tables = _of_points(matches, protocol, [rows[number] for number in fast])
        ways.append((fast, tables))
    if slow:
        size, tables = _of_copies(matches, protocol, [rows[number] for number in slow])
        together = max(together, size)
        ways.append((slow, tables))
    made, counts = [], []
    sets = iter(weights)
    while batch := list(itertools.islice(sets, together)):
        made.append(np.empty((len(batch), len(rows), K + 1)))
        for numbers, tables in ways:
            made[-1][:, numbers] = tables(batch)
        counts += [(one @ truths, one @ detections) for one in batch]
    whole = np.array(counts, dtype=np.int64).reshape(-1, 2)
    table = np.concatenate(made) if made else np.empty((0, len(rows), K + 1))
    return WeightedMetrics(table, whole[:, 0], whole[:, 1])


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


def _of_points(matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow]) -> tuple[int, Tables]:
    """Prepare summary rows that are means of recall, or of precision at recall points.

    Returns
    -------
    int
        Number of sets of weights to compute together.
    callable
        Computes :func:`summary_table` of some sets, [sets, rows, K + 1].
    """
    # Prepare each area range and limit once, for all rows that need it.
    of_key: dict[Key, list[int]] = {}
    for number, row in enumerate(rows):
        of_key.setdefault(protocol.position_of(row), []).append(number)
    rooms = [Room() for _ in range(5)]
    prepared = {
        key: CurvesUnderWeights(
            matches,
            protocol,
            *key,
            best=any(rows[n].metric == "AP" for n in numbers),
            single=_single_thresholds(protocol, [rows[n] for n in numbers]),
            rooms=rooms,
        )
        for key, numbers in of_key.items()
    }
    entries = max(1, *(one.size for one in prepared.values()))
    values = matches.threshold_count * len(protocol.ap.recall_points) * max(len(matches.categories), 1)
    counted = len(matches) + len(matches.truth_image) + len(matches.images)
    together = min(MOST_ENTRIES // entries, MOST_VALUES // values, WEIGHTS_TOGETHER // max(counted, 1))
    # NumPy copies rows of a power of two bytes faster.
    together = max(1 << max(min(together, LARGEST_BATCH), 1).bit_length() - 1, LEAST_BATCH)

    def tables(sets: Sequence[FloatArray]) -> FloatArray:
        # Fill the last batch with sets that are left out again; the sides of a swap stay neighbors.
        filled = list(itertools.islice(itertools.cycle(sets), -(-len(sets) // LEAST_BATCH) * LEAST_BATCH))
        made = np.empty((len(filled), len(rows), len(matches.categories) + 1))
        for key, numbers in of_key.items():
            curves = prepared[key].of(filled)
            chosen = [rows[number] for number in numbers]
            made[:, numbers] = summary_tables(chosen, protocol, lambda *_, curves=curves: curves, len(filled))
        return made[: len(sets)]

    return together, tables


def _single_thresholds(protocol: Protocol, rows: Sequence[SummaryRow]) -> list[int]:
    """Return the positions of the thresholds at which some rows need AP alone."""
    asked = {row.iou for row in rows if row.metric == "AP" and row.iou is not None}
    return [t for t, iou in enumerate(protocol.matching.iou_thresholds) if iou in asked]


def _of_copies(matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow]) -> tuple[int, Tables]:
    """Prepare summary rows of any kind, as :func:`_of_points`: sets are counted on copies of the matches."""
    size = _copies(matches, protocol, rows)

    @functools.cache
    def prepared(area: int, cap: int, pooled: str | None) -> ImageWeights:
        chosen = matches if pooled is None else counted_for(matches.pooled(pooled), protocol)
        return ImageWeights(chosen if size == 1 else chosen.repeated(size), protocol, area, cap)

    def tables(sets: Sequence[FloatArray]) -> FloatArray:
        made = []
        for low in range(0, len(sets), size):
            some = [*sets[low : low + size]]
            weights = np.concatenate(some + [some[0]] * (size - len(some)))

            @functools.cache
            def curves_of(
                area: int, cap: int, pooled: str | None = None, /, weights: FloatArray = weights
            ) -> Curves:
                counts = prepared(area, cap, pooled).counts(weights)
                return Curves(counts, protocol.ap, categories=matches.categories)

            made.append(summary_tables(rows, protocol, curves_of, size)[: len(some)])
        return np.concatenate(made)

    return size, tables
