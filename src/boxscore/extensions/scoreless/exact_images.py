"""Count images with the exact number: as many detections as objects, over all classes.

Conventions
-----------
- Ignored detections and objects do not count. An image without either is exact.
- For a single class, an image is exact if the class has the exact number.
- Differences of an image are added up over the classes, which may be counted separately: for each class, only
  the images with a difference are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import distinct
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.counts import Outcomes
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind


class _Differences(NamedTuple):
    """Images of classes in which the numbers of detections and objects differ at some threshold."""

    category: IntArray
    """[N]"""
    image: IntArray
    """[N]"""
    more: IntArray
    """Number of detections minus number of objects, [T, N]."""


class ExactImages(HeldValues):
    """Numbers of exact images per threshold and class; over all classes, images whose differences cancel.

    Parameters
    ----------
    differences : _Differences
    weights : ndarray of float64, [I]
        Weight of each image.
    class_count : int
        Number of classes, K.
    """

    is_mean_of_classes = False

    def __init__(self, differences: _Differences, weights: FloatArray, class_count: int) -> None:
        self._differences, self._weights, self._class_count = differences, weights, class_count
        category, image, more = differences
        differs = [
            np.bincount(category[row != 0], weights[image[row != 0]], minlength=class_count) for row in more
        ]
        super().__init__(weights.sum() - np.array(differs).reshape(len(more), class_count))

    def _select(self, chosen: NDArray[np.bool_]) -> ExactImages:
        """Select some classes, [K]."""
        category, image, more = self._differences
        some = chosen[category]
        left = _Differences((np.cumsum(chosen) - 1)[category[some]], image[some], more[:, some])
        return ExactImages(left, self._weights, int(chosen.sum()))

    def __getitem__(self, thresholds: Sequence[int]) -> ExactImages:
        """Select thresholds."""
        more = self._differences.more[list(thresholds)]
        return ExactImages(self._differences._replace(more=more), self._weights, self._class_count)

    def of_classes(self, chosen: NDArray[np.bool_]) -> ExactImages:
        """Select classes, [K]."""
        return self._select(chosen)

    def repeated(self, multiplicity: NDArray[np.int64]) -> ExactImages:
        """Select classes that count; repeating a class does not change whether an image is exact."""
        return self._select(multiplicity > 0)

    def beside(self, others: Sequence[HeldValues]) -> ExactImages:
        """Append the values of more classes."""
        every = [self, *(other for other in others if isinstance(other, ExactImages))]
        starts = np.cumsum([0, *(one._class_count for one in every)])
        columns = [one._differences for one in every]
        joined = _Differences(
            np.concatenate([one.category + start for one, start in zip(columns, starts, strict=False)]),
            np.concatenate([one.image for one in columns]),
            np.concatenate([one.more for one in columns], axis=1),
        )
        return ExactImages(joined, self._weights, int(starts[-1]))

    def mean_of_defined(self) -> float:
        """Average the number of images that are exact over all classes together over the thresholds."""
        _, image, more = self._differences
        exact = []
        for row in more:
            total = np.bincount(image, row, minlength=len(self._weights))
            exact.append(self._weights[total == 0].sum())
        return float(np.mean(exact)) if exact else float("nan")

    def mean_of_slots(self) -> float:
        """Return :meth:`mean_of_defined`, because classes are not averaged."""
        return self.mean_of_defined()

    def weighted_mean(self, weights: FloatArray) -> float:
        """Use the classes with a positive weight, regardless of its size."""
        return self._select(weights > 0).mean_of_defined()

    def of_copies(self, count: int) -> list[HeldValues]:
        """Return these values: images of copies are counted separately."""
        assert count == 1, "an image has all classes"
        return [self]

    def means_of_copies(self, count: int) -> FloatArray:
        """Return :meth:`mean_of_defined` of the only copy, [1]."""
        return np.array([one.mean_of_defined() for one in self.of_copies(count)])


def _differences(outcomes: Outcomes) -> _Differences:
    """Compare the numbers of detections and objects in every class and image that has either."""
    matches = outcomes.matches
    assert matches is not None
    # Number each (class, image) that has a detection or an object; only those can differ, so no dense table
    # is needed.
    images, K = max(len(matches.images), 1), len(outcomes.positive)
    objects = np.flatnonzero(matches.counted(outcomes.area))
    of_object = matches.truth_category[objects].astype(np.int64) * images + matches.truth_image[objects]
    of_detection = matches.category.astype(np.int64) * images + matches.image
    keys = distinct(np.concatenate([of_object, of_detection]))
    # Unmatched detections minus objects, [N]: the same at every threshold.
    at = np.searchsorted(keys, of_detection)
    unmatched = np.bincount(at[outcomes.unmatched_counts], minlength=len(keys))
    unmatched -= np.bincount(np.searchsorted(keys, of_object), minlength=len(keys))
    # Correct the counts by matches, threshold by threshold, [T, N].
    candidate, counts = at[outcomes.detection], outcomes.unmatched_counts[outcomes.detection]
    more = np.tile(unmatched, (len(outcomes.true), 1))
    for row, true, ignored in zip(more, outcomes.true, outcomes.ignored, strict=True):
        row += np.bincount(candidate[true & ~counts], minlength=len(keys))
        row -= np.bincount(candidate[ignored & counts], minlength=len(keys))
    # Keep differences at some threshold.
    some = more.any(axis=0)
    assert K * images >= len(keys)
    return _Differences(keys[some] // images, keys[some] % images, more[:, some])


def _values(curves: Curves, protocol: Protocol) -> Values:
    outcomes, weights = curves.counts.outcomes, curves.counts.image_weights
    assert outcomes is not None
    every = np.ones(outcomes.images) if weights is None else weights
    return ExactImages(_differences(outcomes), every, len(outcomes.positive))


KINDS = (Kind("exact_images", "Images with the exact number", _values),)
