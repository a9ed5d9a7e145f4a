"""Hold masks as spans of foreground pixels, and compute areas, boxes and run lengths from them.

Conventions
-----------
- Pixels are numbered column by column, continuously over all masks of a batch: mask k starts at ``base[k]``.
- A span is [start, end). The spans of a mask ascend and do not overlap; they may touch or be empty.
- An RLE may have a run of length 0 after its first. Encoders never write one, but the overlaps of the
  reference depend on it, so their positions are stored.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import Positions
from boxscore._utils.ordering import run_starts, sort_runs
from boxscore.extensions.masks.run_lengths import Runs


def equal_sizes(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Group consecutive masks of equal size."""
    keys = sizes[:, 0] << 32 | sizes[:, 1]
    return list(itertools.pairwise([*run_starts(keys).tolist(), len(sizes)]))


class Spans(NamedTuple):
    """Spans of several masks, mask by mask."""

    bounds: NDArray[np.int32]  # [S,2], start and end
    counts: Positions  # [N]
    base: NDArray[np.int64]  # [N]
    sizes: NDArray[np.int64]  # [N,2], height and width
    empty_runs: NDArray[np.int32]  # [Z], positions of runs of length 0 after the first of an RLE

    @property
    def area(self) -> NDArray[np.int64]:
        """Area of each mask in pixels, [N]."""
        length = self.bounds[:, 1] - self.bounds[:, 0]
        area = np.zeros(len(self.counts), dtype=np.int64)
        some = self.counts.nonzero()[0]
        if len(some):
            area[some] = np.add.reduceat(length, (np.cumsum(self.counts) - self.counts)[some])
        return area

    def boxes(self) -> NDArray[np.float64]:
        """Return the box ``x1, y1, x2, y2`` around each mask, [N, 4]; all 0 for an empty mask."""
        # Drop empty spans.
        boxes = np.zeros((len(self.counts), 4))
        full = self.bounds[:, 1] > self.bounds[:, 0]
        counts, bounds = self.counts, self.bounds
        if not full.all():
            counts = np.bincount(np.repeat(np.arange(len(counts)), counts)[full], minlength=len(counts))
            bounds = bounds[full]
        stops = np.append(0, np.cumsum(counts))
        for low, high in equal_sizes(self.sizes):
            # Take the spans of masks of one size, relative to their first pixel; ``starts`` is the first span
            # of each non-empty mask.
            some = counts[low:high].nonzero()[0] + low
            if not len(some):
                continue
            height, width = (np.int32(side) for side in self.sizes[low].tolist())
            part = bounds[stops[low] : stops[high]] - np.int32(self.base[low])
            starts = stops[some] - stops[low]
            # Convert the first and last pixel of each span to column and row. Columns are numbered
            # continuously over masks of one size, so a division by one scalar suffices.
            x1 = part[:, 0] // height
            y1 = part[:, 0] - x1 * height
            end = part[:, 1] - np.int32(1)
            x2 = end // height
            y2 = end - x2 * height
            # As in rleToBbox, a span that reaches the next column covers the full height.
            over = x1 < x2
            if over.any():
                y1[over], y2[over] = 0, height - 1
            # Spans ascend, so the first and last span of a mask give its columns; rows need a minimum and a
            # maximum over its spans.
            boxes[some, 0] = x1[starts] % width
            boxes[some, 1] = np.minimum.reduceat(y1, starts)
            boxes[some, 2] = x2[np.append(starts[1:], len(part)) - 1] % width + 1
            boxes[some, 3] = np.maximum.reduceat(y2, starts) + 1
        return boxes

    def merged(self) -> Spans:
        """Return the same pixels without empty or touching spans."""
        # Keep the non-empty spans, each with its mask.
        filled = (self.bounds[:, 1] > self.bounds[:, 0]).nonzero()[0]
        mask = np.repeat(np.arange(len(self.counts)), self.counts)[filled]
        bounds = self.bounds[filled]
        # Start a new span unless it touches the previous span of the same mask.
        apart = ((bounds[1:, 0] != bounds[:-1, 1]) | (mask[1:] != mask[:-1])).nonzero()[0]
        first = np.concatenate([np.arange(len(filled))[:1], apart + 1])
        last = np.append(apart, len(filled) - 1)[: len(first)]
        return self._replace(
            bounds=np.stack([bounds[first, 0], bounds[last, 1]], axis=1),
            counts=np.bincount(mask[first], minlength=len(self.counts)),
        )

    def runs(self) -> tuple[NDArray[np.int64], Positions]:
        """Return alternating runs of background and foreground, none empty, and their number per mask."""
        spans = self.merged()
        bounds, counts = spans.bounds.astype(np.int64), spans.counts
        # Append the end of each mask to its spans, unless the last span ends there.
        end = self.base + self.sizes.prod(axis=1)
        stops = np.cumsum(counts)
        closed = np.zeros(len(counts), dtype=bool)
        some = counts > 0
        closed[some] = bounds[stops[some] - 1, 1] == end[some]
        # Runs are differences of consecutive edges; the first run of a mask starts at its first pixel.
        edges = np.insert(bounds.ravel(), 2 * stops[~closed], end[~closed])
        counts = 2 * counts + ~closed
        starts = np.cumsum(counts) - counts
        runs = np.diff(edges, prepend=0)
        runs[starts] = edges[starts] - self.base
        return runs, counts


def spans_of_runs(runs: Runs, sizes: NDArray[np.int64]) -> Spans | None:
    """Return the spans of runs; None if those of any mask do not add up to its size [N, 2].

    The last span of every mask is empty.
    """
    # Number the pixels of all masks [N] continuously: ``base`` is the first of each.
    pixels = sizes[:, 0] * sizes[:, 1]
    ends = np.cumsum(pixels)
    base = ends - pixels
    lengths, starts = runs.lengths, runs.starts
    # The runs of a mask start with a zero, so the cumulative sum over all masks gives starts and ends of
    # spans in turn. A sum that wraps is detected, because it falls below 0 first.
    bounds = np.cumsum(lengths, dtype=np.int32)
    if (
        runs.damaged.any()
        or lengths.min() < 0
        or bounds.min() < 0
        or bounds[-1] != ends[-1]
        or (bounds[starts] != base).any()
    ):
        return None
    # Count the zeros of a valid RLE. If there are more, find the runs of length 0 inside RLEs, where rleIou
    # stops.
    empty_runs = np.empty(0, dtype=np.int32)
    # Expected zeros: one per mask, an empty first run, and padding of an odd number of runs.
    filled = len(starts) + int((lengths[starts + 1] == 0).sum()) + int((runs.given & 1 == 0).sum())
    if len(lengths) - np.count_nonzero(lengths) != filled + 1:
        empty = (lengths[:-1] == 0).nonzero()[0]
        mask = np.searchsorted(starts, empty, side="right") - 1
        run = empty - starts[mask] - 1
        in_code = (run > 0) & (run < runs.given[mask]) & (bounds[empty] < ends[mask])
        empty_runs = bounds[empty[in_code]]
    return Spans(bounds[1:].reshape(-1, 2), runs.counts, base, sizes, empty_runs)


def union_of_parts(bounds: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the sorted union [U, 2] of spans [S, 2]; spans of the union may touch."""
    bounds = bounds[bounds[:, 1] > bounds[:, 0]]
    # With starts and ends sorted separately, a new span starts where all previous spans have ended.
    starts, ends = bounds.T.copy()
    sort_runs(starts)
    sort_runs(ends)
    apart = (starts[1:] >= ends[:-1]).nonzero()[0]
    union = np.empty((len(apart) + min(len(starts), 1), 2), dtype=np.int32)
    if len(starts):
        union[0, 0], union[-1, 1] = starts[0], ends[-1]
        union[1:, 0], union[:-1, 1] = starts[apart + 1], ends[apart]
    return union


def joined_spans(parts: list[Spans]) -> Spans:
    """Concatenate several batches."""
    if len(parts) == 1:
        return parts[0]
    shift = np.cumsum([0, *(int(part.sizes.prod(axis=1).sum()) for part in parts)])
    return Spans(
        np.concatenate([part.bounds + np.int32(by) for part, by in zip(parts, shift, strict=False)]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.base + by for part, by in zip(parts, shift, strict=False)]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.empty_runs + np.int32(by) for part, by in zip(parts, shift, strict=False)]),
    )
