"""Pixels that two masks share, counted column by column.

Goal
----
Most columns of most masks hold one run of pixels, and two runs share a minimum less a maximum. So one run
of every column is kept in a dense array, where a pair is one gather and one minimum over the columns that
both masks reach. Further runs of a column are few, and compared one by one.

Conventions
-----------
- A run is kept as ``-low, high``: the minimum of two of these is the run that they share, and none where its
  length is not positive. 0, 0 is none.
- Dense columns are those of all masks of a batch one after the other, each followed by an empty one.
- Memory is that of the runs and the images' widths; pairs are compared a few at a time.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore.data.spans import Spans, equal_sizes

__all__ = ["SHORT", "ColumnRuns", "column_runs", "packed", "shared_pixels"]

Positions = NDArray[np.intp]

COLUMNS_TOGETHER = 1 << 17
"""Columns of pairs compared together: what is gathered for them fits a core's cache."""

SHORT = 1 << 15
"""Heights below it fit an int16."""


class ColumnRuns(NamedTuple):
    """The runs of several masks by column."""

    dense: NDArray[Any]  # [C], two int16 or int32 (-low, high) as one integer: one run of each column
    begin: Positions  # [N], where a mask's columns begin in ``dense``
    left: Positions  # [N], first column that it reaches
    right: Positions  # [N], column after the last one
    column: Positions  # [E], of the other runs, ascending, in ``dense``
    low: NDArray[np.int64]  # [E]
    high: NDArray[np.int64]  # [E]
    more: Positions  # [N+1], where a mask's further runs begin

    @property
    def lanes(self) -> NDArray[Any]:
        """``dense`` as [C,2]."""
        return _lanes(self.dense)


def column_runs(spans: Spans) -> ColumnRuns:
    """Cut the spans of masks into runs of one column each."""
    widths = spans.sizes[:, 1] + 1
    begin = np.cumsum(widths) - widths
    bounds, counts = spans.bounds, spans.counts
    stops = np.append(0, np.cumsum(counts))
    column, last, low, high = np.empty((4, len(bounds)), dtype=np.int32)
    for low_mask, high_mask in equal_sizes(spans.sizes):
        some = slice(stops[low_mask], stops[high_mask])
        height, width = spans.sizes[low_mask].tolist()
        part = bounds[some] - np.int32(spans.base[low_mask])
        _in_columns(
            part, height, width, int(begin[low_mask]), (column[some], last[some], low[some], high[some])
        )
    over = np.flatnonzero(last > column)
    cut = _cut(column, last, high, over, np.repeat(spans.sizes[:, 0], counts)[over]) if len(over) else None
    tall = int(spans.sizes[:, 0].max()) >= SHORT
    runs = packed(-low, high, tall=tall)
    first = np.zeros(int(widths.sum()) + 1, dtype=runs.dtype)  # an empty span may lie past the last column
    first[column] = runs  # the last of a column's runs remains
    further = np.flatnonzero(column[1:] == column[:-1])
    extra = column[further].astype(np.intp), low[further].astype(np.int64), high[further].astype(np.int64)
    if cut is not None:
        extra = _with_cut(first, extra, cut)
    starts = np.searchsorted(column, begin)
    ends = np.searchsorted(column, begin + widths)
    some_runs = np.flatnonzero(ends > starts)
    left, right = np.zeros((2, len(counts)), dtype=np.intp)
    left[some_runs] = column[starts[some_runs]] - begin[some_runs]
    right[some_runs] = last[ends[some_runs] - 1] - begin[some_runs] + 1
    return ColumnRuns(
        first, begin, left, right, *extra, np.searchsorted(extra[0], np.append(begin, len(first)))
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
    high: NDArray[np.int32],
    over: Positions,
    height: NDArray[np.int64],
) -> tuple[Positions, NDArray[np.int64]]:
    """End spans that go on at their first column's end; return further columns, and how high each goes."""
    pieces = (last[over] - column[over]).astype(np.intp)
    span = np.repeat(np.arange(len(over)), pieces)
    piece = np.arange(1, len(span) + 1) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    columns = column[over][span] + piece
    tops = np.minimum(high[over].astype(np.int64)[span] - piece * height[span], height[span])
    high[over] = height
    return columns.astype(np.intp), tops


def _with_cut(
    first: NDArray[Any],
    extra: tuple[Positions, NDArray[np.int64], NDArray[np.int64]],
    cut: tuple[Positions, NDArray[np.int64]],
) -> tuple[Positions, NDArray[np.int64], NDArray[np.int64]]:
    """Put in what starts at a column's top: it takes the dense place, and what was there is a further one."""
    columns, tops = cut
    lanes = _lanes(first)
    taken = np.flatnonzero(first[columns])
    if len(taken):
        moved = columns[taken]
        column = np.concatenate([extra[0], moved])
        low = np.concatenate([extra[1], -lanes[moved, 0].astype(np.int64)])
        high = np.concatenate([extra[2], lanes[moved, 1].astype(np.int64)])
        order = np.lexsort((low, column))
        extra = column[order], low[order], high[order]
    lanes[columns, 0], lanes[columns, 1] = 0, tops
    return extra


def shared_pixels(one: ColumnRuns, other: ColumnRuns, i: Positions, j: Positions) -> NDArray[np.int64]:
    """Count the pixels that masks ``i`` [P] of one batch share with ``j`` of another, of equal sizes."""
    left = np.maximum(one.left[i], other.left[j])
    width = np.maximum(np.minimum(one.right[i], other.right[j]) - left, 0)
    shared = np.zeros(len(i), dtype=np.int64)
    meeting = np.flatnonzero(width)
    i, j, left, width = i[meeting], j[meeting], left[meeting], width[meeting]
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
    ends = np.cumsum(width)
    starts = ends - width
    columns = np.arange(ends[-1])
    columns += np.repeat(one.begin[i] + left - starts, width)
    runs = _lanes(one.dense.take(columns))
    columns += np.repeat(other.begin[j] - one.begin[i], width)
    others = _lanes(other.dense.take(columns))
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
        lanes = _lanes(other.dense.take(column))
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
    has_more = np.zeros(len(other.dense), dtype=bool)
    has_more[other.column] = True
    rows = np.flatnonzero(has_more[column])
    if not len(rows):
        return covered
    # On one axis, column after column, the further runs do not overlap: what lies before a point is a sum.
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


def packed(minus_low: NDArray[Any], high: NDArray[Any], *, tall: bool) -> NDArray[Any]:
    """Put runs into one integer each, see :func:`_lanes`; ``minus_low`` is overwritten."""
    kind, bits = (np.int64, 32) if tall else (np.int32, 16)
    runs: NDArray[Any] = high.astype(kind)
    np.left_shift(runs, kind(bits), out=runs)
    lower: NDArray[Any] = minus_low.astype(kind, copy=False)
    np.bitwise_and(lower, kind((1 << bits) - 1), out=lower)
    np.bitwise_or(runs, lower, out=runs)
    return runs


def _lanes(packed: NDArray[Any]) -> NDArray[Any]:
    """See runs as ``-low, high``, [C,2]."""
    lanes: NDArray[Any] = packed.view(np.int16 if packed.dtype == np.int32 else np.int32).reshape(-1, 2)
    return lanes[:, :: 1 if sys.byteorder == "little" else -1]
