"""Images with the exact number: as many detections as objects, over all classes.

Conventions
-----------
- Detections that are ignored do not count, and objects that are. An image without either is one.
- Of a class alone it is the images in which the class has its exact number.
- An image's numbers are added up over the classes, which may be counted apart: what is kept of each class is
  the images in which its numbers differ, and by how much.
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
    """Images of classes in which the number of detections is not that of objects, at some threshold."""

    category: IntArray
    """[N]"""
    image: IntArray
    """[N]"""
    more: IntArray
    """How many detections more than objects there are, [T, N]."""


class ExactImages(HeldValues):
    """Numbers of images, of thresholds and classes; of all classes the images where all differences cancel.

    Parameters
    ----------
    differences : _Differences
    weights : ndarray of float64, [I]
        How often each image counts.
    class_count : int
        K.
    """

    is_mean_of_classes = False

    def __init__(self, differences: _Differences, weights: FloatArray, class_count: int) -> None:
        self._differences, self._weights, self._class_count = differences, weights, class_count
        category, image, more = differences
        differs = [
            np.bincount(category[row != 0], weights[image[row != 0]], minlength=class_count) for row in more
        ]
        super().__init__(weights.sum() - np.array(differs).reshape(len(more), class_count))

    def _of(self, chosen: NDArray[np.bool_]) -> ExactImages:
        """Take the differences of some classes alone, [K]."""
        category, image, more = self._differences
        some = chosen[category]
        left = _Differences((np.cumsum(chosen) - 1)[category[some]], image[some], more[:, some])
        return ExactImages(left, self._weights, int(chosen.sum()))

    def __getitem__(self, thresholds: Sequence[int]) -> ExactImages:
        """Choose among the thresholds."""
        more = self._differences.more[list(thresholds)]
        return ExactImages(self._differences._replace(more=more), self._weights, self._class_count)

    def of_classes(self, chosen: NDArray[np.bool_]) -> ExactImages:
        """Choose among the classes, [K]."""
        return self._of(chosen)

    def repeated(self, multiplicity: NDArray[np.int64]) -> ExactImages:
        """Take classes that count; an image is exact or not, however often a class is taken."""
        return self._of(multiplicity > 0)

    def beside(self, others: Sequence[HeldValues]) -> ExactImages:
        """Put the values of more classes behind these."""
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
        """Mean over the thresholds of the images with the exact number of all classes together."""
        _, image, more = self._differences
        exact = []
        for row in more:
            total = np.bincount(image, row, minlength=len(self._weights))
            exact.append(self._weights[total == 0].sum())
        return float(np.mean(exact)) if exact else float("nan")

    def mean_of_slots(self) -> float:
        """:meth:`mean_of_defined`: nothing is averaged over classes."""
        return self.mean_of_defined()

    def weighted_mean(self, weights: FloatArray) -> float:
        """Take the classes that count, however much."""
        return self._of(weights > 0).mean_of_defined()

    def of_copies(self, count: int) -> list[HeldValues]:
        """Return these: images of copies are counted apart."""
        assert count == 1, "an image has all classes"
        return [self]

    def means_of_copies(self, count: int) -> FloatArray:
        """:meth:`mean_of_defined` of the one copy, [1]."""
        return np.array([one.mean_of_defined() for one in self.of_copies(count)])


def _differences(outcomes: Outcomes) -> _Differences:
    """Compare the numbers of detections and objects in every class and image that has either."""
    matches = outcomes.matches
    assert matches is not None
    # Number each (class, image) that has a detection or an object; only those can differ, so no table of
    # classes times images is made.
    images, K = max(len(matches.images), 1), len(outcomes.positive)
    objects = np.flatnonzero(matches.counted(outcomes.area))
    of_object = matches.truth_category[objects].astype(np.int64) * images + matches.truth_image[objects]
    of_detection = matches.category.astype(np.int64) * images + matches.image
    keys = distinct(np.concatenate([of_object, of_detection]))
    # Unmatched detections minus objects, [N]: the same at every threshold.
    at = np.searchsorted(keys, of_detection)
    unmatched = np.bincount(at[outcomes.unmatched_counts], minlength=len(keys))
    unmatched -= np.bincount(np.searchsorted(keys, of_object), minlength=len(keys))
    # Matches move detections in or out, threshold by threshold, [T, N].
    candidate, counts = at[outcomes.detection], outcomes.unmatched_counts[outcomes.detection]
    more = np.tile(unmatched, (len(outcomes.true), 1))
    for row, true, ignored in zip(more, outcomes.true, outcomes.ignored, strict=True):
        row += np.bincount(candidate[true & ~counts], minlength=len(keys))
        row -= np.bincount(candidate[ignored & counts], minlength=len(keys))
    # Keep what differs at some threshold.
    some = more.any(axis=0)
    assert K * images >= len(keys)
    return _Differences(keys[some] // images, keys[some] % images, more[:, some])


def _values(curves: Curves, protocol: Protocol) -> Values:
    outcomes, weights = curves.counts.outcomes, curves.counts.image_weights
    assert outcomes is not None
    every = np.ones(outcomes.images) if weights is None else weights
    return ExactImages(_differences(outcomes), every, len(outcomes.positive))


KINDS = (Kind("exact_images", "Images with the exact number", _values),)
