"""Combine the masks of one object: their union, or the pixels that most of their weight covers."""

from __future__ import annotations

import itertools

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.rasterizing import batches
from boxscore.extensions.masks.run_lengths import code_text

SPANS_TOGETHER = 1 << 20
"""Spans of pixels that are combined in one batch."""


def combined_masks(masks: Masks, group: IntArray, weight: FloatArray, threshold: float) -> Masks:
    """Return one mask per group: the pixels whose mean over its masks exceeds a threshold.

    Parameters
    ----------
    masks : Masks, [N]
        Those of a group have one size.
    group : ndarray of int64, [N]
        Ascending; every number from 0 to the last one occurs.
    weight : ndarray of float64, [N]
        Weight of each mask in the mean; the sum of a group is positive.
    threshold : float
        0 gives the union.

    Returns
    -------
    Masks, [G]
    """
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    bounds, counts = _spans(masks)
    # Combine whole groups, a bounded number of spans at a time.
    stops = np.append(0, np.cumsum(counts))
    first_rows = np.append(heads, len(group))
    cuts = [*run_starts(stops[first_rows[1:]] // SPANS_TOGETHER).tolist(), len(heads)]
    texts: list[bytes] = []
    for low, high in itertools.pairwise(cuts):
        rows = slice(first_rows[low], first_rows[high])
        some = bounds[stops[rows.start] : stops[rows.stop]]
        pixels = masks.sizes[heads[low:high]].prod(axis=1)
        texts += _combined(some, counts[rows], group[rows] - low, weight[rows], pixels, threshold)
    sizes = masks.sizes[heads].tolist()
    return Masks([{"size": size, "counts": text} for size, text in zip(sizes, texts, strict=True)])


def _spans(masks: Masks) -> tuple[IntArray, IntArray]:
    """Return the spans [S, 2] of all masks, in the pixels of their images, and their number per mask [N]."""
    bounds, counts = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)]
    for low, high in batches(masks.weights):
        spans, position = masks[low:high].spans()
        starts, some = (np.cumsum(spans.counts) - spans.counts)[position], spans.counts[position]
        base = np.repeat(spans.base[position], some)
        bounds.append(spans.bounds[ragged_ranges(starts, some)] - base[:, None])
        counts.append(some)
    return np.concatenate(bounds), np.concatenate(counts)


def _combined(
    bounds: IntArray,
    counts: IntArray,
    group: IntArray,
    weight: FloatArray,
    pixels: IntArray,
    threshold: float,
) -> list[bytes]:
    """Return the RLE text of each group, given the spans of its masks and the pixels of its image, [G]."""
    # Place the images of all groups on one axis, one after the other. All ends of spans, and the ends of the
    # images, cut the axis into intervals; inside one, all pixels are in the same masks.
    origin = np.cumsum(pixels) - pixels
    bounds = bounds + np.repeat(origin[group], counts)[:, None]
    edges = np.unique(np.concatenate([bounds.ravel(), origin, [int(pixels.sum())]]))
    # Add the weight of each mask to the intervals that it covers. ``bincount`` adds in the order of the
    # masks, as a plain loop would.
    first, last = np.searchsorted(edges, bounds.T)
    interval = ragged_ranges(first, last - first)
    weights = np.repeat(np.repeat(weight, counts), last - first)
    votes = np.bincount(interval, weights=weights, minlength=len(edges))[:-1]
    total = np.bincount(group, weights=weight, minlength=len(pixels))
    owner = np.searchsorted(origin, edges[:-1], side="right") - 1
    chosen = votes / total[owner] > threshold
    # Find where the foreground of each group starts and ends; each image starts with background.
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    before = np.append(False, chosen[:-1])
    before[starts] = False
    turns = np.flatnonzero(chosen != before)
    # Run lengths are the distances between these places, from the start to the end of the image.
    of_turn = owner[turns]
    places = np.concatenate([origin, edges[turns], origin + pixels])
    of_place = np.concatenate([np.arange(len(pixels)), of_turn, np.arange(len(pixels))])
    order = np.argsort(of_place, kind="stable")
    places, of_place = places[order], of_place[order]
    inner = of_place[1:] == of_place[:-1]
    return code_text(np.diff(places)[inner], np.bincount(of_place, minlength=len(pixels)) - 1)
