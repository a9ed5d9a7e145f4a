"""Turn outlines with holes into masks, because lists of polygons are unions.

Conventions
-----------
- Without separate holes, a pixel inside an even number of outlines is outside, as tools fill paths.
- Outlines are rasterized like those of COCO, and the mask is a run-length encoding of the whole image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray

_MOST_PAIRED = 1000
"""Number of outlines up to which pairs of them are compared."""


def may_overlap(outlines: Sequence[FloatArray]) -> bool:
    """Whether the boxes around any two outlines ``x, y, x, y, ...`` overlap."""
    if not 1 < len(outlines) <= _MOST_PAIRED:
        return len(outlines) > 1
    low = np.array([(outline[0::2].min(), outline[1::2].min()) for outline in outlines])
    high = np.array([(outline[0::2].max(), outline[1::2].max()) for outline in outlines])
    shared = (low[:, None] < high[None]).all(axis=2) & (low[None] < high[:, None]).all(axis=2)
    return int(shared.sum()) > len(outlines) - int((low == high).any(axis=1).sum())


def with_holes(
    outlines: Sequence[FloatArray],
    holes: Sequence[FloatArray],
    size: tuple[float, float],
    place: str,
) -> tuple[Any, float] | None:
    """Return the mask of outlines without their holes, and its area; None if the outlines' union is the same.

    Without ``holes``, outlines inside outlines are holes.
    """
    parts = [_spans(outline, size, place) for outline in outlines]
    cut = [_spans(hole, size, place) for hole in holes]
    edges = np.unique(np.concatenate([part.ravel() for part in (*parts, *cut)]))
    # Count the outlines, and holes, over the pixels from each edge to the next.
    depth, cut_depth = _depth(parts, edges), _depth(cut, edges)
    union = depth > 0
    inside: BoolArray = union & (cut_depth == 0) if cut else depth % 2 == 1
    if np.array_equal(union, inside):
        return None
    # Encode the edges where the mask starts or ends.
    changes = edges[np.diff(inside, prepend=False)]
    width, height = int(size[0]), int(size[1])
    runs = np.diff(np.concatenate([[0], changes, [width * height]])).tolist()
    mask = {"size": [height, width], "counts": runs if runs[-1] or len(runs) < 2 else runs[:-1]}
    return mask, float(sum(runs[1::2]))


def _spans(outline: FloatArray, size: tuple[float, float], place: str) -> NDArray[np.int64]:
    """Return start and end of the pixels of an outline, [S, 2]."""
    from boxscore.extensions.masks.column import Masks

    masks = Masks([[outline.tolist()]], image_sizes=[size], place=lambda _: place)
    return masks.spans()[0].bounds.astype(np.int64)


def _depth(parts: Sequence[NDArray[np.int64]], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of outlines around the pixel after each edge."""
    bounds = np.concatenate([np.empty((0, 2), dtype=np.int64), *parts])
    started, ended = (np.searchsorted(np.sort(side), edges, side="right") for side in bounds.T)
    return np.asarray(started - ended)
