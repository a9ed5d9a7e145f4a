"""Pixels that two masks share, counted column by column.

Goal
----
Most columns of most masks hold one run of pixels, and two runs share a minimum less a maximum. So the first
run of every column is kept in a dense array, where a pair is one gather and one minimum over the columns that
both masks reach. Further runs of a column are few, and compared one by one.

Conventions
-----------
- A run is kept as ``-low, high``: the minimum of two of these is the run that they share. 0, 0 is none.
- Dense columns are those of all masks of a batch one after the other, each followed by an empty one.
- Memory is that of the runs and the images' widths; pairs are compared a few at a time.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore.data.spans import Spans

__all__ = ["ColumnRuns", "column_runs", "equal_sizes", "shared_pixels"]

Positions = NDArray[np.intp]

COLUMNS_TOGETHER = 1 << 17
"""Columns of pairs compared together: what is gathered for them fits a core's cache."""

SHORT = 1 << 15
"""Heights below it fit an int16."""


class ColumnRuns(NamedTuple):
    """The runs of several masks by column."""

    first: NDArray[Any]  # [C], two int16 or int32 (-low, high) as one integer: the first run of each column
    begin: Positions  # [N], where a mask's columns begin in ``first``
    left: Positions  # [N], first column that it reaches
    right: Positions  # [N], column after the last one
    column: Positions  # [E], of the runs that are not the first of theirs, ascending, in ``first``
    low: NDArray[np.int64]  # [E]
    high: NDArray[np.int64]  # [E]
    more: Positions  # [N+1], where a mask's further runs begin

    @property
    def lanes(self) -> NDArray[Any]:
        """``first`` as [C,2]."""
        return _lanes(self.first)


def equal_sizes(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut masks into neighbours of equal size."""
    keys = sizes[:, 0] << 32 | sizes[:, 1]
    return list(itertools.pairwise([*run_starts(keys).tolist(), len(sizes)]))


def column_runs(spans: Spans) -> ColumnRuns:
    """Cut the spans of masks into runs of one column each."""
    widths = spans.sizes[:, 1] + 1
    begin = np.cumsum(widths) - widths
    bounds, counts = spans.bounds, spans.counts
    full = bounds[:, 0] < bounds[:, 1]
    if not full.all():
        counts = np.bincount(np.repeat(np.arange(len(counts)), counts)[full], minlength=len(counts))
        bounds = bounds[full]
    stops = np.append(0, np.cumsum(counts))
    column, last, low, high = np.empty((4, len(bounds)), dtype=np.int32)
    heights = np.empty(0)
    for low_mask, high_mask in equal_sizes(spans.sizes):
        some = slice(stops[low_mask], stops[high_mask])
        _in_columns(
            bounds[some] - np.int32(spans.base[low_mask]),
            *spans.sizes[low_mask].tolist(),
            int(begin[low_mask]),
            (column[some], last[some], low[some], high[some]),
        )
    over = last > column
    if over.any():
        heights = np.repeat(spans.sizes[:, 0], counts)
        column, low, high = _cut(column, last, low, high, heights)
    tall = int(spans.sizes[:, 0].max()) >= SHORT
    runs = np.empty((len(column), 2), dtype=np.int32 if tall else np.int16)
    np.negative(low, out=runs[:, 0], casting="unsafe")
    runs[:, 1] = high
    packed = runs.view(np.int64 if tall else np.int32).ravel()
    first = np.zeros(int(widths.sum()), dtype=packed.dtype)
    new = np.empty(len(column), dtype=bool)
    new[:1] = True
    np.not_equal(column[1:], column[:-1], out=new[1:])
    further = np.flatnonzero(~new)
    if len(further):
        first[column[new]] = packed[new]
    else:
        first[column] = packed
    starts = np.searchsorted(column, begin)
    ends = np.searchsorted(column, begin + widths)
    some_runs = np.flatnonzero(ends > starts)
    left, right = np.zeros((2, len(counts)), dtype=np.intp)
    left[some_runs] = column[starts[some_runs]] - begin[some_runs]
    right[some_runs] = column[ends[some_runs] - 1] - begin[some_runs] + 1
    extra = column[further].astype(np.intp)
    return ColumnRuns(
        first,
        begin,
        left,
        right,
        extra,
        low[further].astype(np.int64),
        high[further].astype(np.int64),
        np.searchsorted(extra, np.append(begin, len(first))),
    )


def _in_columns(
    bounds: NDArray[np.int32],
    height: int,
    width: int,
    begin: int,
    out: tuple[NDArray[np.int32], ...],
) -> None:
    """Say in which columns spans of masks of one size start and end, and at which heights of the first."""
    column, last, low, high = out
    start, end = bounds[:, 0], bounds[:, 1]
    np.floor_divide(start, np.int32(height), out=column)
    np.floor_divide(end - np.int32(1), np.int32(height), out=last)
    np.multiply(column, np.int32(height), out=low)
    np.subtract(end, low, out=high)
    np.subtract(start, low, out=low)
    mask = column // np.int32(width)  # each mask's columns are followed by an empty one
    mask += np.int32(begin)
    column += mask
    last += mask


def _cut(
    column: NDArray[np.int32],
    last: NDArray[np.int32],
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    heights: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Cut spans that go on into further columns."""
    pieces = (last - column) + 1
    span = np.repeat(np.arange(len(column)), pieces)
    piece = np.arange(len(span)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    height = heights[span]
    top = high[span] - piece * height
    return (
        (column[span] + piece).astype(np.int32),
        np.where(piece > 0, 0, low[span]).astype(np.int32),
        np.minimum(top, height).astype(np.int32),
    )


def shared_pixels(
    one: ColumnRuns, other: ColumnRuns, i: Positions, j: Positions
) -> NDArray[np.int64]:
    """Count the pixels that masks ``i`` [P] of one batch share with masks ``j`` of another, of equal sizes."""
    left = np.maximum(one.left[i], other.left[j])
    width = np.maximum(np.minimum(one.right[i], other.right[j]) - left, 0)
    shared = np.zeros(len(i), dtype=np.int64)
    meeting = np.flatnonzero(width)
    i, j, left, width = i[meeting], j[meeting], left[meeting], width[meeting]
    counted = np.empty(len(meeting), dtype=np.int64)
    cuts = run_starts(np.cumsum(width) // COLUMNS_TOGETHER).tolist()
    for low, high in itertools.pairwise([*cuts, len(meeting)]):
        some = slice(low, high)
        counted[some] = _of_first_runs(one, other, i[some], j[some], left[some], width[some])
    counted += _of_further_runs(one, other, i, j, pairwise=True)
    counted += _of_further_runs(other, one, j, i, pairwise=False)
    shared[meeting] = counted
    return shared


def _of_first_runs(
    one: ColumnRuns, other: ColumnRuns, i: Positions, j: Positions, left: Positions, width: Positions
) -> NDArray[Any]:
    ends = np.cumsum(width)
    starts = ends - width
    columns = np.arange(ends[-1])
    columns += np.repeat(one.begin[i] + left - starts, width)
    runs = _lanes(one.first.take(columns))
    columns += np.repeat(other.begin[j] - one.begin[i], width)
    others = _lanes(other.first.take(columns))
    if runs.dtype != others.dtype:
        runs, others = runs.astype(np.int32), others.astype(np.int32)
    np.minimum(runs, others, out=runs)
    length = runs[:, 0] + runs[:, 1]
    np.maximum(length, 0, out=length)
    return np.add.reduceat(length, starts, dtype=np.int32)


def _of_further_runs(
    one: ColumnRuns, other: ColumnRuns, i: Positions, j: Positions, *, pairwise: bool
) -> NDArray[np.int64]:
    """Pixels that further runs of ``one`` share with first runs, and ``pairwise`` with further runs too."""
    shared = np.zeros(len(i), dtype=np.int64)
    counts = one.more[i + 1] - one.more[i]
    some = np.flatnonzero(counts)
    cuts = run_starts(np.cumsum(counts[some]) // COLUMNS_TOGETHER).tolist()
    for low, high in itertools.pairwise([*cuts, len(some)]):
        pairs = some[low:high]
        size = counts[pairs]
        run = ragged_ranges(one.more[i[pairs]], size)
        column = one.column[run] + np.repeat(other.begin[j[pairs]] - one.begin[i[pairs]], size)
        bottom, top = one.low[run], one.high[run]
        lanes = _lanes(other.first.take(column))
        length = np.minimum(top, lanes[:, 1]) - np.maximum(bottom, -lanes[:, 0].astype(np.int64))
        np.maximum(length, 0, out=length)
        if pairwise:
            length += _covered(other, column, bottom, top)
        shared[pairs] = np.add.reduceat(length, np.cumsum(size) - size)
    return shared


def _covered(
    other: ColumnRuns, column: Positions, bottom: NDArray[np.int64], top: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Pixels of runs in columns that further runs of ``other`` cover."""
    covered = np.zeros(len(column), dtype=np.int64)
    if not len(other.column):
        return covered
    has_more = np.zeros(len(other.first), dtype=bool)
    has_more[other.column] = True
    rows = np.flatnonzero(has_more[column])
    if not len(rows):
        return covered
    # All further runs on one axis, column after column, do not overlap; what lies before a point on it is a sum.
    stride = int(max(other.high.max(), top.max())) + 1
    starts, ends = other.column * stride + other.low, other.column * stride + other.high
    before = np.append(0, np.cumsum(other.high - other.low))

    def pixels_before(point: NDArray[np.int64]) -> NDArray[np.int64]:
        run = np.searchsorted(starts, point, side="right")
        over: NDArray[np.int64] = np.maximum(ends[run - 1] - point, 0)
        return before[run] - np.where(run > 0, over, 0)

    point = column[rows] * stride
    covered[rows] = pixels_before(point + top[rows]) - pixels_before(point + bottom[rows])
    return covered


def _lanes(packed: NDArray[Any]) -> NDArray[Any]:
    lanes: NDArray[Any] = packed.view(np.int16 if packed.dtype == np.int32 else np.int32).reshape(-1, 2)
    return lanes
