"""Erode masks by a square, column by column, to remove their boundary.

Conventions
-----------
- A pixel is inner if the square of ``2 d + 1`` pixels around it is in the mask; pixels beyond the image are
  outside.
- Erosion first goes down the columns, where a run loses ``d`` at both ends, and then across them, where the
  runs of ``2 d + 1`` columns are intersected.
- After the first step, runs of a column are at least ``2 d + 1`` apart. So a band of that height has at most
  one of them, and intersecting columns is a minimum again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import Positions
from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore.extensions.masks.column_runs import NONE, SHORT, ColumnRuns, one_integer, run_lengths
from boxscore.extensions.masks.spans import Spans, equal_sizes

DENSE = 1 << 20
"""Columns of bands eroded together."""


def inner_runs(
    spans: Spans, runs: ColumnRuns, distance: NDArray[np.int64]
) -> tuple[ColumnRuns, NDArray[np.int64]]:
    """Return the inner pixels of masks by column, and their number; ``distance`` [N] is ``d``."""
    # Copy the lanes; use int32 if a height plus the distance exceeds an int16.
    height, room = spans.sizes[:, 0], len(runs.dense) - 1
    wide = int((height + distance).max()) >= SHORT
    lanes = runs.lanes.astype(np.int32 if wide else np.int16)
    end = np.append(runs.begin, room)
    # Masks with one distance are a slice of columns. Shorten the runs at both ends (both lanes shrink), then
    # intersect neighboring columns.
    groups = equal_sizes(np.stack([distance, distance], axis=1))
    inner = np.full_like(lanes, NONE)
    for low, high in groups:
        some = slice(end[low], end[high])
        # Runs that are too short get a negative length, and a minimum keeps it negative.
        np.subtract(lanes[some], lanes.dtype.type(distance[low]), out=lanes[some])
        inner[some] = _eroded(lanes[some], int(distance[low]))
    # Shorten further runs too, and drop the empty ones.
    mask = np.repeat(np.arange(len(height)), np.diff(runs.more))
    bottom, top = runs.low + distance[mask], runs.high - distance[mask]
    left = np.flatnonzero(bottom < top)
    further = (runs.column[:0], runs.low[:0], runs.high[:0])
    # Erode masks with further runs again, band by band, and rewrite their columns: the first run of a column
    # is dense, the others further.
    if len(left):
        mask = mask[left]
        column, bottom, top = _in_bands(
            lanes, end, runs.column[left], bottom[left], top[left], mask, distance
        )
        for one in mask[run_starts(mask)].tolist():
            inner[end[one] : end[one + 1]] = NONE
        # Runs are sorted by column and row, so the first run of each column becomes dense.
        new = run_starts(column)
        inner[column[new], 0], inner[column[new], 1] = -bottom[new] - 1, top[new] - 1
        further = np.delete(column, new), np.delete(bottom, new), np.delete(top, new)
    # Count the inner pixels of each mask: dense runs, then further ones. Integer sums are exact.
    area = np.add.reduceat(run_lengths(inner), runs.begin, dtype=np.int64)
    more = np.searchsorted(further[0], end)
    if len(further[0]):
        np.add.at(area, np.repeat(np.arange(len(area)), np.diff(more)), further[2] - further[1])
    # Inner columns begin ``distance`` later and end ``distance`` earlier.
    reach = np.maximum(runs.right - distance, runs.left + distance)
    made = ColumnRuns(one_integer(inner), runs.begin + distance, runs.left + distance, reach, *further, more)
    return made, area


def _eroded(lanes: NDArray[Any], distance: int) -> NDArray[Any]:
    """Intersect the runs of the ``2 distance + 1`` columns around each column."""
    inner = np.full_like(lanes, NONE)
    window, span = 2 * distance + 1, 1
    if len(lanes) < window:
        return inner
    # Double the window; the last step may take columns twice, which does not change a minimum.
    least = lanes
    while span < window:
        step = min(span, window - span)
        least = np.minimum(least[:-step], least[step:])
        span += step
    inner[distance : len(lanes) - distance] = least
    return inner


def _in_bands(
    lanes: NDArray[Any],
    end: Positions,
    column: Positions,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    mask: Positions,
    distance: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Erode masks that have further runs; return the remaining runs by column."""
    # Collect all runs of these masks: non-empty dense runs, and the given further ones.
    masks = np.unique(mask)
    first_runs = ragged_ranges(end[masks], end[masks + 1] - end[masks])  # columns with a run in ``lanes``
    first_runs = first_runs[lanes[first_runs, 0].astype(np.int64) + lanes[first_runs, 1] > -2]
    column = np.concatenate([first_runs, column])
    low = np.concatenate([~lanes[first_runs, 0].astype(np.int64), low])
    high = np.concatenate([lanes[first_runs, 1].astype(np.int64) + 1, high])
    mask = np.searchsorted(end, column, side="right") - 1
    # Split every run at multiples of the band height 2 d + 1. Runs of a column are at least this far apart,
    # so a band has at most one of them.
    size = 2 * distance[mask] + 1
    first, last = low // size, (high - 1) // size
    count = last - first + 1
    run = np.repeat(np.arange(len(column)), count)
    band = ragged_ranges(first, count)
    low = np.maximum(low[run], band * size[run])
    high = np.minimum(high[run], (band + 1) * size[run])
    column, mask = column[run], mask[run]
    # Sort by mask, band and column: each (mask, band) is then a dense array of columns with one run each.
    order = _order(mask, band, column)
    column, low, high, band, mask = column[order], low[order], high[order], band[order], mask[order]
    # ``width`` is the number of columns per item (mask, band), ``stops`` the end of its runs.
    starts = run_starts((mask.astype(np.int64) << 32) | band)
    width = (end[1:] - end[:-1])[mask[starts]]
    stops = np.append(starts[1:], len(column))
    parts = []
    # Erode a bounded number of dense columns together.
    cuts = run_starts(np.cumsum(width) // DENSE)
    for from_, to in zip(cuts.tolist(), [*cuts[1:].tolist(), len(starts)], strict=True):
        some = slice(starts[from_], stops[to - 1])
        # Fill the dense columns of some items; columns without a run hold NONE.
        offset = np.cumsum(width[from_:to]) - width[from_:to]
        shift = np.repeat(offset - end[mask[starts[from_:to]]], stops[from_:to] - starts[from_:to])
        dense = np.full((int(width[from_:to].sum()), 2), NONE, dtype=np.int32)
        at = column[some] + shift
        dense[at, 0], dense[at, 1] = -low[some] - 1, high[some] - 1
        # Erode items with the same distance in one call. Empty columns between masks keep windows apart.
        bounds = np.append(offset, len(dense))
        distances = distance[mask[starts[from_:to]]]
        same = run_starts(distances)
        for one, next_ in zip(same.tolist(), [*same[1:].tolist(), to - from_], strict=True):
            part = slice(bounds[one], bounds[next_])
            dense[part] = _eroded(dense[part], int(distances[one]))
        # Collect the remaining runs, in the columns of the batch.
        left = np.flatnonzero(dense[:, 0] + dense[:, 1] > -2)
        item = np.searchsorted(bounds, left, side="right") - 1
        back = left - (offset - end[mask[starts[from_:to]]])[item]
        parts.append(np.stack([back, ~dense[left, 0].astype(np.int64), dense[left, 1].astype(np.int64) + 1]))
    # Sort the runs by column and first row. Runs of two bands may touch but not overlap.
    runs = np.concatenate(parts, axis=1)
    runs = runs.take(_order(runs[0], runs[1]), axis=1)
    return runs[0], runs[1], runs[2]


def _order(*keys: NDArray[np.int64]) -> Positions:
    """Sort by several keys, the first key first; combine them in one integer if they fit, which is faster."""
    bits = [int(key.max(initial=0)).bit_length() for key in keys]
    if sum(bits) > 63:
        return np.lexsort(keys[::-1])
    together = keys[0].astype(np.int64)
    for key, size in zip(keys[1:], bits[1:], strict=True):
        together <<= size
        together |= key
    return np.argsort(together)
