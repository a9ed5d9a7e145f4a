"""Compute the overlap of upright boxes, for many pairs in one call.

Matching, suppression, fusion and the public functions all use this module, so that a pair has the same IoU to
the last bit everywhere.

Conventions
-----------
- The functions of lengths and areas take columns that fit the pairs asked for, or broadcast to them.
- ``offset`` is added to every length: 0 for continuous rectangles, 1 for inclusive pixels.
- Areas are passed separately from corners: ``w * h`` of a box given as ``x, y, w, h`` can differ in the last
  bit from the area computed from its corners.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray, Positions
from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore._utils.records import NamedTuple
from boxscore.errors import InputError

CHUNK_PAIRS = 1 << 16
"""Pairs in a chunk: their columns fit a core's cache."""

LARGE_GROUP = 1 << 13
"""Pairs of a group from which it is faster to sort its boxes by x than to compare them all."""


Overlap = Literal["iou", "ios", "diou"]
"""Intersection over union, over the smaller area, or IoU less a penalty for the distance of the centers."""


class Columns(NamedTuple):
    """Boxes as separate contiguous columns, [N] each."""

    x1: FloatArray
    y1: FloatArray
    x2: FloatArray
    y2: FloatArray
    area: FloatArray


class Comparison(NamedTuple):
    """The rows of two tables to compare: ground truth ``g`` with a run of detections."""

    truth_rows: Positions  # [g]
    rows: Positions  # [d], of detections
    starts: Positions  # [g], where the run starts in ``rows``
    counts: Positions  # [g], length of the run
    by_foreground: NDArray[np.bool_] | None  # [g], whether the detection's area is the denominator
    lowest: float  # pairs below it are dropped
    most: int = sys.maxsize  # more pairs raise TooManyPairsError
    workers: int = 1  # processes that may share the work


class TooManyPairsError(Exception):
    """More pairs than fit in memory; the caller then compares fewer detections per call.

    Parameters
    ----------
    compared : int
        Number of pairs compared before the error.
    """

    def __init__(self, compared: int) -> None:
        super().__init__(compared)
        self.compared = compared


class PairValues(NamedTuple):
    """Pairs that agree enough."""

    truth: Positions  # [P], in Comparison.truth_rows
    detection: Positions  # [P], in Comparison.rows
    value: FloatArray  # [P], at least Comparison.lowest

    @classmethod
    def none(cls) -> PairValues:
        """Return an empty set of pairs."""
        return cls(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def check_paired(first: int, second: int, *, names: tuple[str, str] = ("boxes1", "boxes2")) -> None:
    """Check that two lists that are compared row by row have one length."""
    if first != second:
        raise InputError(names[1], f"be as long as {names[0]} ({first}) when paired", got=f"length {second}")


def rows_of_pairs(
    first: int, second: int, *, paired: bool, names: tuple[str, str] = ("boxes1", "boxes2")
) -> tuple[IntArray, IntArray, tuple[int, ...]]:
    """Return the rows of every pair of two lists, or row by row, and the shape of their values."""
    if paired:
        check_paired(first, second, names=names)
        rows = np.arange(first)
        return rows, rows, (first,)
    return *np.divmod(np.arange(first * second), max(1, second)), (first, second)


def shared_length(
    low1: FloatArray,
    high1: FloatArray,
    low2: FloatArray,
    high2: FloatArray,
    offset: float,
    first: Positions | None = None,
    second: Positions | None = None,
) -> FloatArray:
    """Length that two intervals share; negative when they do not meet.

    ``first`` and ``second`` select rows of the first and the second columns. They are gathered here, two
    columns at a time: more columns in memory cost page faults.
    """
    length: FloatArray = np.minimum(_rows(high1, first), _rows(high2, second))
    length -= np.maximum(_rows(low1, first), _rows(low2, second))
    if offset:
        length += offset
    return length


def _rows(column: FloatArray, rows: Positions | None) -> FloatArray:
    return column if rows is None else column.take(rows)


def hull_length(
    low1: FloatArray, high1: FloatArray, low2: FloatArray, high2: FloatArray, offset: float
) -> FloatArray:
    """Length of the smallest interval around two."""
    length: FloatArray = np.maximum(high1, high2)
    length -= np.minimum(low1, low2)
    if offset:
        length += offset
    return length


def over(shared: FloatArray, area1: FloatArray, area2: FloatArray, kind: Overlap = "iou") -> FloatArray:
    """Denominator of the shared area, written to ``area1``: area of the union, or of the smaller box."""
    if kind == "ios":
        return np.minimum(area1, area2, out=area1)
    area1 += area2
    area1 -= shared
    return area1


def center_distance(
    x: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    y: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    offset: float,
) -> tuple[FloatArray, FloatArray]:
    """Squared distance of the centers, and squared diagonal of the smallest box around both.

    ``x`` and ``y`` are low and high of the first, low and high of the second.
    """
    (apart_x, around_x), (apart_y, around_y) = (
        (((low1 + high1) / 2 - (low2 + high2) / 2) ** 2, hull_length(low1, high1, low2, high2, offset) ** 2)
        for low1, high1, low2, high2 in (x, y)
    )
    return apart_x + apart_y, around_x + around_y


def overlapping(
    truths: Columns,
    boxes: Columns,
    comparison: Comparison,
    *,
    offset: float,
    epsilon: float = 0.0,
) -> PairValues:
    """Compare boxes chunk by chunk; pairs apart in x are dropped before y is compared.

    ``truths`` are those of ``comparison.truth_rows``, ``boxes`` those of its ``rows``. ``epsilon`` is added
    to the denominator.
    """
    starts, counts, by_foreground = comparison.starts, comparison.counts, comparison.by_foreground
    may_underflow = not boxes.area.all()  # 0 / 0 needs an area of 0 on both sides, so test one side
    collected = CollectedPairs(comparison)
    # If most pairs are in large groups, skip boxes that end before a ground truth or begin after it.
    near = None if offset else _near_in_x(truths, boxes, comparison)
    if near is not None:
        order, starts, counts = near
        boxes = Columns(*(column.take(order) for column in boxes))
    # A chunk of whole ground truths, about as many pairs [P] as fit the cache: each with the run of boxes in
    # its group.
    for low, high in chunks(counts, CHUNK_PAIRS):
        size = counts[low:high]
        box = ragged_ranges(starts[low:high], size)
        truth = np.repeat(np.arange(low, high), size)
        # pycocotools' bbIou skips a pair whose width or height is not above 0. Most pairs are apart in x, so
        # test x first, and gather the other columns only for the remaining pairs.
        width = shared_length(boxes.x1, boxes.x2, truths.x1, truths.x2, offset, box, truth)
        wide = np.flatnonzero(width > 0)
        box, truth, width = box.take(wide), truth.take(wide), width.take(wide)

        height = shared_length(boxes.y1, boxes.y2, truths.y1, truths.y2, offset, box, truth)
        high_enough = np.flatnonzero(height > 0)
        box, truth = box.take(high_enough), truth.take(high_enough)

        # The order of bbIou: width * height, then the sum of both areas less the shared one.
        shared = width.take(high_enough)
        shared *= height.take(high_enough)
        area, truth_area = np.take(boxes.area, box), np.take(truths.area, truth)
        denominator = over(shared, truth_area, area)
        # Against a crowd region, bbIou divides by the area of the detection alone.
        if by_foreground is not None:
            denominator = np.where(np.take(by_foreground, truth), area, denominator)
        if epsilon:
            denominator += epsilon
        if may_underflow:
            value = _divided(shared, denominator)
        else:
            value = shared / denominator
        # Keep what reaches the lowest threshold: memory holds only the pairs that can match.
        enough = np.flatnonzero(value >= comparison.lowest)
        collected.add(PairValues(truth.take(enough), box.take(enough), value.take(enough)), high)
    pairs = joined(collected.parts)
    if near is None:
        return pairs
    # Restore the order of the given boxes.
    detection = order.take(pairs.detection)
    back = np.lexsort((detection, pairs.truth))
    return PairValues(pairs.truth.take(back), detection.take(back), pairs.value.take(back))


def _near_in_x(
    truths: Columns, boxes: Columns, comparison: Comparison
) -> tuple[Positions, Positions, Positions] | None:
    """Sort the boxes of large groups by x1, and find those that may meet each ground truth in x.

    Return the order of the boxes, [d], and the start and length of the runs in this order, [g]; None if most
    pairs are in small groups. Boxes outside a run share no width above 0 with its ground truth.
    """
    # The ground truths of a group follow each other, and have the same run of boxes. A run without boxes
    # starts where the next one does, so a change of the start or of the count begins a group.
    starts, counts = comparison.starts, comparison.counts
    changes = (starts[1:] != starts[:-1]) | (counts[1:] != counts[:-1])
    lows = np.flatnonzero(np.append(len(starts) > 0, changes))
    highs = np.append(lows[1:], len(starts))
    pairs = counts[lows] * (highs - lows)
    large = pairs >= LARGE_GROUP
    if 2 * pairs[large].sum() <= pairs.sum():
        return None
    order, starts, counts = np.arange(len(boxes.x1)), starts.copy(), counts.copy()
    for low, high in zip(lows[large].tolist(), highs[large].tolist(), strict=True):
        run = slice(int(starts[low]), int(starts[low] + counts[low]))
        by_x = np.argsort(boxes.x1[run], kind="stable")
        order[run] = run.start + by_x
        # The boxes before the first that reaches beyond x1, and those from the first that begins at x2.
        reach = np.maximum.accumulate(boxes.x2[run].take(by_x))
        before = np.searchsorted(reach, truths.x1[low:high], side="right")
        after = np.searchsorted(boxes.x1[run].take(by_x), truths.x2[low:high])
        starts[low:high] += before
        counts[low:high] = np.maximum(after - before, 0)
    return order, starts, counts


def _divided(shared: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide, with 1 for 0 / 0: boxes that meet, whose areas are too small for a float.

    In pycocotools this quotient is NaN, which reaches every threshold.
    """
    with np.errstate(invalid="ignore"):
        value = shared / denominator
    value[np.isnan(value)] = 1.0
    return value


def at_least(pairs: PairValues, lowest: float) -> PairValues:
    """Select the pairs that agree by at least ``lowest``."""
    enough = np.flatnonzero(pairs.value >= lowest)
    return PairValues(pairs.truth[enough], pairs.detection[enough], pairs.value[enough])


def in_chunks(
    comparison: Comparison, value: Callable[[Positions, Positions, slice], FloatArray], *, size: int
) -> PairValues:
    """Compare every detection with every ground truth of its group, about ``size`` pairs at a time.

    ``value`` gets positions of detections and ground truths, [P] each, and the ground truths of the chunk.
    """
    starts, counts = comparison.starts, comparison.counts
    collected = CollectedPairs(comparison)
    # Measure the pairs [P] of some ground truths, and keep those that can match; the matrix of all pairs is
    # never built.
    for low, high in chunks(counts, size):
        detection = ragged_ranges(starts[low:high], counts[low:high])
        truth = np.repeat(np.arange(low, high), counts[low:high])
        pairs = PairValues(truth, detection, value(detection, truth, slice(low, high)))
        collected.add(at_least(pairs, comparison.lowest), high)
    return joined(collected.parts)


class CollectedPairs:
    """The pairs of the chunks so far; raises an error if there are more than a comparison may hold."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._room = comparison.most
        self.parts = [PairValues.none()]

    def add(self, pairs: PairValues, end: int) -> None:
        """Add the pairs of a chunk that ends before ground truth ``end``."""
        self._room -= len(pairs.value)
        if self._room < 0:
            raise TooManyPairsError(int(self._comparison.counts[:end].sum()))
        self.parts.append(pairs)


def joined(parts: list[PairValues]) -> PairValues:
    """Concatenate the pairs of several chunks."""
    truth, detection, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PairValues(truth, detection, value)


def chunks(counts: Positions, size: int) -> list[tuple[int, int]]:
    """Split ground truths into runs of about ``size`` pairs."""
    # Cut where the running count of pairs passes a multiple of ``size``, after the ground truth that passes
    # it. A ground truth with more pairs fills several multiples: drop the repeated bounds.
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(size, total + size, size))
    bounds = np.concatenate([[0], np.minimum(cuts + 1, len(counts))])
    return list(itertools.pairwise(bounds[run_starts(bounds)].tolist()))
