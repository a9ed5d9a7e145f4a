"""Check boxes and rank them inside their groups: the first stage of every method.

Goal
----
Check once, sort once, and split into blocks of whole groups small enough for the cache.

Conventions
-----------
- ``order`` [N] names the rows of the input by group, inside a group by descending score, ties by lowest
  index. A *position* counts along ``order``; a pair of positions is written (high, low), ``high < low``.
- Boxes below ``score_threshold`` or beyond ``pre_top_k`` never enter ``order``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import descending_order, group_order
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BOX_FORMATS, ROUNDING, BoxFormat, without_inverted
from boxscore.errors import InputError
from boxscore.similarity.measures import Measure, MeasureOf, box_measure
from boxscore.similarity.pairs import Overlap

if TYPE_CHECKING:
    from boxscore.data.tables import Detections

ValuedPairs = tuple[IntArray, IntArray, FloatArray]
"""(better, worse, overlap), in positions of a block; a better box has a lower position."""

BLOCK = 1 << 16
"""Boxes processed together: their columns fit a second-level cache."""

MANY = 20
"""From this many boxes on, chance does not put every x1,y1,x2,y2 where x,y,w,h would be."""


class HeldPairs(NamedTuple):
    """All pairs of a block that overlap by more than ``threshold``, by better, then worse."""

    threshold: float
    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    overlap: FloatArray

    def above(self, threshold: float) -> ValuedPairs:
        """Return those that overlap by more than another threshold, no lower than this one."""
        above = np.flatnonzero(self.overlap > threshold)
        better, worse = (column.take(above).astype(np.int64) for column in (self.better, self.worse))
        return better, worse, self.overlap.take(above)


@dataclass(frozen=True)
class Block:
    """Whole groups, ranked: positions ``start`` to ``start + len`` of the order."""

    start: int
    measure: Measure
    rows: IntArray  # [n], rows of the input
    scores: FloatArray  # [n]
    starts: IntArray  # [g+1], where each group starts, counted from the block's first box
    held: HeldPairs | None = None

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def group(self) -> IntArray | None:
        """Group of each position, counted from the block's first group, [n]; None where there is but one."""
        if len(self.starts) <= 2:
            return None
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@dataclass(frozen=True)
class Ranked:
    """Checked boxes and their order.

    ``measure_of`` gives the measure of some rows of the input. It is called once per block, so that memory
    never holds the columns of a whole data set, except for ``held``: blocks that several settings share.
    """

    scores: FloatArray  # [N], in input order
    order: IntArray  # [n], rows of the input
    starts: IntArray  # [G+1], positions
    measure_of: MeasureOf
    held: tuple[Block, ...] | None = None

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """Cut into blocks of whole groups with about ``size`` boxes."""
        # Blocks with shared pairs exist already; a single group is a single block.
        if self.held is not None:
            yield from self.held
            return
        if len(self.starts) == 2:
            yield Block(0, self.measure_of(self.order), self.order, self.scores.take(self.order), self.starts)
            return
        # Add groups to a block until it is full. A group is never cut, so blocks can be decided one by one.
        first = 0
        while first < len(self.starts) - 1:
            begin = int(self.starts[first])
            last = max(first + 1, int(np.searchsorted(self.starts, begin + size, side="right")) - 1)
            rows = self.order[begin : int(self.starts[last])]
            starts = self.starts[first : last + 1] - begin
            yield Block(begin, self.measure_of(rows), rows, self.scores.take(rows), starts)
            first = last

    def by_score(self, keep: BoolArray) -> IntArray:
        """Rows of the input where ``keep`` [n] is set, by descending score, ties by lowest index."""
        rows = self.order.compress(keep)
        if len(self.starts) <= 2:
            return rows
        chosen = np.zeros(len(self.scores), dtype=bool)
        chosen[rows] = True
        rows = np.flatnonzero(chosen)  # ascending without a sort
        return rows.take(descending_order(self.scores.take(rows)))


class BoxOptions(NamedTuple):
    """The options of all functions of upright boxes: how boxes are read and compared, and which take part."""

    box_format: BoxFormat = "xyxy"
    pixel_offset: float = 0
    overlap: Overlap = "iou"
    score_threshold: float | None = None
    pre_top_k: int | None = None


def prepare(
    boxes: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike | None,
    options: BoxOptions,
    *,
    groups_name: str = "groups",
) -> Ranked:
    """Check and rank the input of a public function."""
    box_format, pixel_offset, overlap, score_threshold, pre_top_k = options
    box_array = check_boxes(boxes, box_format=box_format)
    return rank(
        check_scores(scores, length=len(box_array)),
        None if groups is None else check_groups(groups, length=len(box_array), name=groups_name),
        box_measure(box_array, box_format=box_format, pixel_offset=pixel_offset, overlap=overlap),
        score_threshold=score_threshold,
        pre_top_k=pre_top_k,
    )


def rank(
    scores: FloatArray,
    groups: IntArray | None,
    measure_of: MeasureOf,
    *,
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
) -> Ranked:
    """Order checked boxes by group and score; at most ``pre_top_k`` per group."""
    # ``rows`` [n] maps the boxes at or above the threshold to rows of the input; None keeps all, without a
    # copy.
    rows = None
    if score_threshold is not None:
        rows = np.flatnonzero(scores >= threshold(score_threshold))
        groups = None if groups is None else groups.take(rows)
    eligible = scores if rows is None else scores.take(rows)
    if len(eligible) == 0:
        return Ranked(scores, np.empty(0, np.int64), np.zeros(1, np.int64), measure_of)
    # Both sorts are stable: equal scores keep the order of the input. A group starts where its number
    # changes.
    if groups is None:
        order = descending_order(eligible)
        starts = np.array([0, len(order)])
    else:
        order = group_order(groups, eligible)
        sorted_groups = groups.take(order)
        inner = np.flatnonzero(sorted_groups[1:] != sorted_groups[:-1]) + 1
        starts = np.concatenate([[0], inner, [len(order)]])
    # Cap each group, then translate positions back to rows of the input.
    if pre_top_k is not None:
        order, starts = _top(order, starts, checks.whole_number(pre_top_k, 1, name="pre_top_k"))
    return Ranked(scores, order if rows is None else rows.take(order), starts, measure_of)


def _top(order: IntArray, starts: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """Cut each group after its first ``k``."""
    counts = np.diff(starts)
    position = np.arange(len(order)) - np.repeat(starts[:-1], counts)
    return order[position < k], np.concatenate([[0], np.cumsum(np.minimum(counts, k))])


def threshold(value: float) -> float:
    """Check a score threshold: any number but NaN."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):
        raise InputError("score_threshold", "be a number", got=repr(value))
    return number


def check_boxes(boxes: ArrayLike, *, box_format: BoxFormat) -> FloatArray:
    """Check boxes [N, 4]; warn where many are given as ``x, y, w, h`` and all fit ``x1, y1, x2, y2``."""
    array = checks.float_array(boxes, name="boxes", columns=4)
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    if len(array) == 0:
        return array
    # Two reductions check all numbers; the slower check that names a row runs only on failure.
    limit = checks.LARGEST_COORDINATE
    if not (array.min() >= -limit and array.max() <= limit):  # NaN compares false
        checks.finite(array, name="boxes")
    first, second = array[:, :2], array[:, 2:]
    if box_format == "xyxy":
        if not (second >= first).all():
            checks.sizes_not_negative(second - first, name="boxes", cause="are these x,y,w,h?")
        return array
    if second.min() < 0:
        checks.sizes_not_negative(second, name="boxes")
    if len(array) >= MANY and (second >= first).all() and first.max() > 0:
        warn_user(
            f"boxes are given as {box_format}, and each of the {len(array):,} has a width and height no "
            "smaller than its first two numbers; are these x1,y1,x2,y2? Then say box_format='xyxy'.",
        )
    return array


def boxes_of(detections: Detections) -> FloatArray:
    """Return the corners of a table [N, 4]; sides below 0 by rounding, as some files have, are 0."""
    boxes = detections.boxes
    if not len(boxes) or (boxes[:, 2:] >= boxes[:, :2]).all():
        return boxes
    checks.sizes_not_negative(
        boxes[:, 2:] - boxes[:, :2],
        place=lambda row: f"row {row} of {detections.source}",
        cause="such a box is scored as a false positive, and has nothing to suppress or merge",
        lowest=-ROUNDING,
    )
    return without_inverted(boxes)


def check_scores(scores: ArrayLike, *, length: int, of: str = "boxes") -> FloatArray:
    """Scores [N] as float64, not NaN, one per box."""
    array = checks.float_array(scores, name="scores")
    checks.same_length(length, of=of, scores=array)
    if len(array) and np.isnan(array.min()):
        row = int(np.argmax(np.isnan(array)))
        raise InputError("scores", "be numbers", got="nan", place=f"row {row}", cause="a diverged model?")
    return array


def require_images(images: ArrayLike | None, max_per_image: int | None) -> None:
    """Check that a cap per image comes with images."""
    if max_per_image is not None and images is None:
        raise InputError("images", "be given with max_per_image", got="None", cause="the image of each box")


def check_groups(groups: ArrayLike, *, length: int, name: str = "groups", of: str = "boxes") -> IntArray:
    """Check groups [N], one per box: int64 >= 0; names become the numbers of their sorted values."""
    # An empty list becomes an array of floats, without groups.
    array = checks.any_array(groups, name=name)
    if array.size == 0 and array.ndim <= 1:
        array = array.astype(np.int64)
    if array.ndim != 1:
        raise InputError(name, "have shape [N]", got=f"shape {list(array.shape)}")
    checks.same_length(length, of=of, **{name: array})
    # Reject floats, dates, bytes and records, and mixtures of numbers and names, which have no common order.
    if array.dtype.kind in "fcmMSV":
        raise InputError(name, "be whole numbers or names", got=f"values of type {array.dtype}")
    if array.dtype == object and len({isinstance(value, str) for value in array.tolist()}) > 1:
        raise InputError(name, "be whole numbers or names", got="both")
    # Integers keep their values, or are shifted to start at 0: small numbers sort in fewer passes, and only
    # equality counts.
    if array.dtype.kind in "iub" and array.dtype != np.uint64:
        array = array.astype(np.int64, copy=False)
        lowest = int(array.min()) if length else 0
        if 0 <= lowest <= 1 << 20:
            return array
        if int(array.max()) - lowest < 1 << 63:  # Python's integers, which never overflow
            return array - lowest
    # Number names, and integers that would overflow, by their sorted values.
    return np.unique(array, return_inverse=True)[1].astype(np.int64)
