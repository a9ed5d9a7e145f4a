"""Count the pixels that two masks share, column by column.

Most columns of most masks have one run of pixels, and two runs share a minimum minus a maximum. So one run
per column is stored in a dense array, and a pair takes one gather and one minimum over the columns that both
masks reach. Further runs of a column are rare, and compared one by one.

Conventions
-----------
- A run from ``low`` to its last pixel ``top`` is stored as ``-low - 1, top``: the minimum of two runs is the
  run that they share, and its length is the sum of the two numbers plus 2. ``-1, -1`` means no run: its
  minimum with any run has length 0 or less.
- Dense columns are those that the masks of a batch reach, mask by mask; an empty column follows each mask.
- Memory is proportional to the runs and the columns that they reach; pairs are compared a few at a time.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import Positions
from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore.extensions.masks.spans import Spans, equal_sizes


def one_integer(lanes: NDArray[Any]) -> NDArray[Any]:
    """View pairs of integers [C, 2] as single integers of twice the width."""
    return lanes.view(np.int32 if lanes.dtype == np.int16 else np.int64).reshape(-1)


def lanes_of(integers: NDArray[Any]) -> NDArray[Any]:
    """View integers [C] as pairs of half their width."""
    return integers.view(np.int16 if integers.dtype == np.int32 else np.int32).reshape(-1, 2)


COLUMNS_TOGETHER = 1 << 17
"""Columns of pairs compared together, so that gathered values fit the cache of a core."""

SHORT = 1 << 15
"""Heights below it fit an int16."""

NONE = -1
"""Two lanes of -1: no run."""

END = one_integer(np.array([[0, 1]], dtype=np.int32))
"""Subtracted from a span, it turns the end into the last pixel."""


class ColumnRuns(NamedTuple):
    """The runs of several masks by column."""

    dense: NDArray[Any]  # [C+1], one run per column: two int16 or int32 (-low - 1, top) as one integer
    begin: Positions  # [N], offset of each mask's columns in ``dense``
    left: Positions  # [N], first column of the mask
    right: Positions  # [N], one past its last column
    column: Positions  # [E], column of each further run in ``dense``, ascending
    low: NDArray[np.int64]  # [E]
    high: NDArray[np.int64]  # [E], one past the last pixel
    more: Positions  # [N+1], offset of each mask's further runs

    @property
    def lanes(self) -> NDArray[Any]:
        """``dense`` as [C+1,2]."""
        return lanes_of(self.dense)

    def touch(self) -> bool:
        """Return whether a run starts where another run of its column ends."""
        column, low, high = self.column, self.low, self.high
        first = self.lanes[column]
        with_first = (high == ~first[:, 0].astype(np.int64)) | (low == first[:, 1].astype(np.int64) + 1)
        return bool(with_first.any() or ((column[1:] == column[:-1]) & (low[1:] == high[:-1])).any())


def column_runs(spans: Spans) -> ColumnRuns:
    """Split the spans of masks into runs within one column each."""
    # Compute the first and last column of every span [S], and its rows as lanes.
    counts, heights = spans.counts, spans.sizes[:, 0]
    columns, lanes, origin = _in_columns(spans)
    first, last = columns.T
    left, right = _extents(spans, first, last, origin)
    # Lay out the columns of the masks, mask by mask. ``place`` [S] is the dense column of each span.
    widths = right - left + 1  # one empty column after each mask
    begin = np.cumsum(widths) - widths
    room = int(widths.sum())
    place = first + (begin - left - origin).astype(np.int32).repeat(counts)
    runs = one_integer(lanes)
    # Most spans stay in one column. Move empty spans to the spare place at the end. Split spans that cross
    # columns: the first column is filled to its top, and ``cut`` holds the rest.
    cut = None
    apart = (first != last).nonzero()[0]
    if len(apart):
        empty = apart[first[apart] > last[apart]]  # at the end of a column
        place[empty], runs[empty] = room, NONE
        over = apart[first[apart] < last[apart]]
        if len(over):
            height = np.repeat(heights, counts)[over]
            cut = _cut(place[over].astype(np.intp), last[over] - first[over], lanes[over, 1], height)
            lanes[over, 1] = height - 1
    dense = np.full(room + 1, NONE, dtype=runs.dtype)
    dense[place.astype(np.intp)] = runs  # the last run of a column wins
    # Collect the further runs [E]: spans that are followed by another span in the same column.
    further = (place[1:] == place[:-1]).nonzero()[0]
    extra = _full_runs(place.take(further).astype(np.intp), lanes_of(runs.take(further)))
    # The rests of split spans start at the bottom of their columns. They take the dense place, and the run
    # there becomes a further run.
    if cut is not None:
        extra = _with_cut(dense, extra, cut)
    more = np.searchsorted(extra[0], np.append(begin, room))
    return ColumnRuns(dense, begin, left, right, *extra, more)


def _in_columns(spans: Spans) -> tuple[NDArray[np.int32], NDArray[Any], Positions]:
    """Return columns [S, 2] and rows [S, 2] of the first and last pixels of spans; rows as runs store them.

    Columns are numbered continuously over masks of equal size; the third array, [N], has each mask's first
    one. The last pixel of an empty span is the one before its first.
    """
    # View starts and ends as one integer: a single subtraction turns ends into last pixels.
    sizes, stops = spans.sizes, 2 * np.append(0, np.cumsum(spans.counts))
    origin = np.zeros(len(sizes), dtype=np.intp)
    pixels = (spans.bounds.reshape(-1).view(np.int64) - END).view(np.int32)
    columns = np.empty_like(pixels)
    # Divide by the height once per group of masks of equal size, in place; all numbers fit an int32.
    for low, high in equal_sizes(sizes):
        some = slice(stops[low], stops[high])
        height, width = sizes[low].tolist()
        if low:
            pixels[some] -= np.int32(spans.base[low])
        origin[low:high] = np.arange(high - low) * width
        np.floor_divide(pixels[some], np.int32(height), out=columns[some])
        pixels[some] -= columns[some] * np.int32(height)
    # Use int16 for small heights: half the memory, twice as many per instruction.
    if int(sizes[:, 0].max()) < SHORT:
        heights: NDArray[Any] = pixels.astype(np.int16)
    else:
        heights = pixels
    heights = heights.reshape(-1, 2)
    # ``-low - 1`` is the complement of low: flip the first lane with one exclusive or.
    runs = one_integer(heights)
    runs ^= one_integer(np.array([[-1, 0]], dtype=heights.dtype))  # -low - 1
    return columns.reshape(-1, 2), heights, origin


def _extents(
    spans: Spans, first: NDArray[np.int32], last: NDArray[np.int32], origin: Positions
) -> tuple[Positions, Positions]:
    """Return the first column of each mask, and one past its last column."""
    # A mask without spans has left = right = 0.
    left, right = np.zeros((2, len(spans.counts)), dtype=np.intp)
    stops = np.cumsum(spans.counts)
    some = spans.counts.nonzero()[0]
    ends = stops[some] - 1
    # Skip an empty span at the end of the image, which RLEs may end with.
    closing = (first[ends] > last[ends]) & (spans.counts[some] > 1)
    left[some] = first[stops[some] - spans.counts[some]] - origin[some]
    right[some] = last[ends - closing] + 1 - origin[some]
    np.maximum(left, right, out=right)
    return left, right


def _full_runs(
    columns: Positions, lanes: NDArray[Any]
) -> tuple[Positions, NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns, starts and ends of non-empty runs."""
    low, high = ~lanes[:, 0].astype(np.int64), lanes[:, 1].astype(np.int64) + 1
    full = (high > low).nonzero()[0]
    return columns[full], low[full], high[full]


def _cut(
    place: Positions, further: NDArray[np.int32], top: NDArray[Any], height: NDArray[np.int64]
) -> tuple[Positions, NDArray[np.int64]]:
    """Return the further columns of spans that cross columns, and the end of the run in each.

    ``further`` is the number of these columns, ``top`` the last pixel in the last of them.
    """
    # Repeat each span once per further column. All are full except the last, which ends at ``top``.
    ends = np.cumsum(further)
    span = np.repeat(np.arange(len(place)), further)
    piece = np.arange(1, len(span) + 1) - np.repeat(ends - further, further)
    highs = height[span]
    highs[ends - 1] = top.astype(np.int64) + 1
    return place[span] + piece, highs


def _with_cut(
    dense: NDArray[Any],
    extra: tuple[Positions, NDArray[np.int64], NDArray[np.int64]],
    cut: tuple[Positions, NDArray[np.int64]],
) -> tuple[Positions, NDArray[np.int64], NDArray[np.int64]]:
    """Insert runs that start at the bottom into ``dense``; the previous runs become further runs."""
    columns, highs = cut
    lanes = lanes_of(dense)
    moved = _full_runs(columns, lanes[columns])
    if len(moved[0]):
        column, low, high = (np.concatenate(pair) for pair in zip(extra, moved, strict=True))
        order = np.lexsort((low, column))
        extra = column[order], low[order], high[order]
    lanes[columns, 0], lanes[columns, 1] = -1, highs - 1
    return extra


def shared_pixels(one: ColumnRuns, other: ColumnRuns, i: Positions, j: Positions) -> NDArray[np.int64]:
    """Count the pixels that masks ``i`` [P] of one batch share with masks ``j`` of another, of equal size."""
    # Find the columns that both masks of a pair reach, [P].
    left = np.maximum(one.left[i], other.left[j])
    width = np.maximum(np.minimum(one.right[i], other.right[j]) - left, 0)
    shared = np.zeros(len(i), dtype=np.int64)
    meeting = width.nonzero()[0]
    i, j, left, width = i[meeting], j[meeting], left[meeting], width[meeting]
    # Compare dense runs, a bounded number at a time, then further runs with both kinds. Integer sums are
    # exact.
    counted = np.empty(len(meeting), dtype=np.int64)
    cuts = run_starts(np.cumsum(width) // COLUMNS_TOGETHER).tolist()
    for low, high in itertools.pairwise([*cuts, len(meeting)]):
        some = slice(low, high)
        counted[some] = _of_dense_runs(one, other, i[some], j[some], left[some], width[some])
    counted += _of_further_runs(one, other, i, j, pairwise=True)
    counted += _of_further_runs(other, one, j, i, pairwise=False)
    shared[meeting] = counted
    return shared


def _of_dense_runs(
    one: ColumnRuns, other: ColumnRuns, i: Positions, j: Positions, left: Positions, width: Positions
) -> NDArray[Any]:
    # Gather the dense columns of the first masks of all pairs, from ``left`` on.
    ends = np.cumsum(width)
    starts = ends - width
    origin = one.begin.take(i) - one.left.take(i)
    columns = np.arange(ends[-1])
    columns += (origin + left - starts).repeat(width)
    runs = lanes_of(one.dense.take(columns))
    # Shift to the same columns of the other masks.
    columns += (other.begin.take(j) - other.left.take(j) - origin).repeat(width)
    others = lanes_of(other.dense.take(columns))
    # Intersect both lanes with one minimum, then sum per pair.
    if runs.dtype != others.dtype:
        runs, others = runs.astype(np.int32), others.astype(np.int32)
    np.minimum(runs, others, out=runs)
    return np.add.reduceat(run_lengths(runs), starts)


def run_lengths(runs: NDArray[Any]) -> NDArray[Any]:
    """Return the lengths [C] of runs ``-low - 1, top`` [C, 2]; 0 for no run."""
    both = one_integer(runs)
    half = 4 * both.dtype.itemsize
    # After the shift, the low half is 0, so nothing carries into the high half: it holds the sum of the two
    # numbers, and shifting back extends its sign. This avoids a stride of two.
    length: NDArray[Any] = both << half
    length += both
    length >>= half
    np.clip(length, -2, np.iinfo(length.dtype).max, out=length)
    length += 2
    return length


def _of_further_runs(
    one: ColumnRuns, other: ColumnRuns, i: Positions, j: Positions, *, pairwise: bool
) -> NDArray[np.int64]:
    """Count pixels that further runs of ``one`` share with dense runs, and ``pairwise`` with further runs."""
    shared = np.zeros(len(i), dtype=np.int64)
    # Most pairs have no further runs and stay 0.
    counts = one.more[i + 1] - one.more[i]
    some = counts.nonzero()[0]
    cuts = run_starts(np.cumsum(counts[some]) // COLUMNS_TOGETHER).tolist()
    for low, high in itertools.pairwise([*cuts, len(some)]):
        # Expand (pair, further run), a bounded number at a time.
        pairs = some[low:high]
        size = counts[pairs]
        run = ragged_ranges(one.more[i[pairs]], size)
        a, b = i[pairs], j[pairs]
        # Translate the column to the other batch. If the other mask does not have it, use the last place,
        # which has no run.
        column = one.column[run] + np.repeat(
            other.begin[b] - other.left[b] - one.begin[a] + one.left[a], size
        )
        beyond = np.repeat(other.begin[b] + other.right[b] - other.left[b], size)
        column[(column < np.repeat(other.begin[b], size)) | (column > beyond)] = len(other.dense) - 1
        # Intersect each further run with the dense run of that column.
        bottom, top = one.low[run], one.high[run]
        lanes = lanes_of(other.dense.take(column))
        length = np.minimum(top, lanes[:, 1].astype(np.int64) + 1)
        length -= np.maximum(bottom, ~lanes[:, 0].astype(np.int64))
        np.maximum(length, 0, out=length)
        # Compare further runs with further runs in one of the two calls only, to count them once.
        if pairwise:
            length += _covered(other, column, bottom, top)
        shared[pairs] = np.add.reduceat(length, np.cumsum(size) - size)
    return shared


def _covered(
    other: ColumnRuns, column: Positions, bottom: NDArray[np.int64], top: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the pixels of runs that further runs of ``other`` cover."""
    covered = np.zeros(len(column), dtype=np.int64)
    if not len(other.column):
        return covered
    # Select columns with further runs of ``other`` by table lookup.
    has_more = np.zeros(len(other.dense), dtype=bool)
    has_more[other.column] = True
    rows = has_more[column].nonzero()[0]
    if not len(rows):
        return covered
    # Place the columns on one axis, where further runs do not overlap: pixels before a point are a prefix
    # sum.
    stride = int(max(other.high.max(), top.max())) + 1
    starts, ends = other.column * stride + other.low, other.column * stride + other.high
    before = np.append(0, np.cumsum(other.high - other.low))

    def pixels_before(point: NDArray[np.int64]) -> NDArray[np.int64]:
        run = np.searchsorted(starts, point, side="right")
        over: NDArray[np.int64] = np.maximum(ends[run - 1] - point, 0)
        return before[run] - np.where(run > 0, over, 0)

    # Subtract the pixels before the start from those before the end: two binary searches per run.
    point = column[rows] * stride
    covered[rows] = pixels_before(point + top[rows]) - pixels_before(point + bottom[rows])
    return covered
