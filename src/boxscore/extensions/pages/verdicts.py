"""Choose the images of comparison pages: where detectors differ most, and the region that shows it.

Conventions
-----------
- Images differ by their number of mistakes, each detector at its own operating score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import group_starts
from boxscore.extensions.pages.gallery import Gallery
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE

MOST_SHOWN = 6
"""Images in which an overview shows the detectors side by side."""

LEAST_PART = 0.4
"""Minimum size of a shown region, relative to the width and height of the image."""


class Part(NamedTuple):
    """A region of an image, in its pixels."""

    left: float
    top: float
    width: float
    height: float


def differing_images(mistakes: NDArray[np.int64], *, most: int = MOST_SHOWN) -> list[int]:
    """Return the rows of the images whose numbers of mistakes, [N, images], differ most."""
    spread = mistakes.max(axis=0) - mistakes.min(axis=0)
    order = np.argsort(-spread, kind="stable")[:most]
    rows: list[int] = order[spread[order] > 0].tolist()
    return rows


class Differences:
    """The regions of an image in which detectors differ.

    Parameters
    ----------
    galleries : sequence of Gallery
        One gallery per detector, with one ground truth.
    """

    def __init__(self, galleries: Sequence[Gallery]) -> None:
        self._truth = galleries[0].evaluation.ground_truth
        outcomes = np.stack([each.evaluation.outcomes.truth(each.score_threshold) for each in galleries])
        rows = np.flatnonzero((outcomes == MISSED).any(axis=0) & (outcomes == TRUE_POSITIVE).any(axis=0))
        self._rows = rows[np.argsort(self._truth.image[rows], kind="stable")]
        self._bounds = group_starts(self._truth.image[self._rows], len(self._truth.images))

    def part(self, image: int, records: Sequence[Mapping[str, Any]]) -> Part:
        """Return the region around the objects that some detectors miss, or around false positives.

        ``records`` are those of the image in each gallery.
        """
        boxes = self._truth.boxes[self._rows[self._bounds[image] : self._bounds[image + 1]]]
        if not len(boxes):
            false = [box[:4] for record in records for box in record["boxes"] if box[5] == FALSE_POSITIVE]
            boxes = np.array(false, dtype=np.float64).reshape(-1, 4)
            boxes[:, 2:] += boxes[:, :2]
        width, height = float(max(records[0]["width"], 1)), float(max(records[0]["height"], 1))
        return _around(boxes, width, height) if len(boxes) else Part(0.0, 0.0, width, height)


def _around(boxes: NDArray[np.float64], width: float, height: float) -> Part:
    """Return the region around boxes, with a margin and a minimum size relative to the image."""
    ends = []
    for axis, side in ((0, width), (1, height)):
        low = float(np.clip(boxes[:, axis].min(), 0, side))
        high = float(np.clip(boxes[:, axis + 2].max(), 0, side))
        size = min(max(1.3 * (high - low), LEAST_PART * side), side)
        start = min(max((low + high - size) / 2, 0), side - size)
        ends.append((round(start, 1), round(size, 1)))
    (left, wide), (top, tall) = ends
    return Part(left, top, wide, tall)
