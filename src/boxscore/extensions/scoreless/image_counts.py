"""Count true positives, objects and detections per image, over all classes.

Conventions
-----------
- Ignored objects and detections do not count.
- Means over images are exact sums that are rounded once, so the order of images does not matter.
- Protocols with such metrics pool their classes: there is one class, K is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind


class ImageCounts(NamedTuple):
    """Counts per image; T IoU thresholds, I images."""

    true: NDArray[np.int64]
    """True positives, [T, I]."""
    objects: NDArray[np.int64]
    """[I]"""
    detections: NDArray[np.int64]
    """True and false positives, [T, I]."""
    times: FloatArray
    """Weight of each image, [I]."""

    @classmethod
    def of(cls, curves: Curves) -> ImageCounts:
        """Count true positives, objects and detections of each image behind curves."""
        outcomes, weights = curves.counts.outcomes, curves.counts.image_weights
        assert outcomes is not None
        matches, images = outcomes.matches, outcomes.images
        assert matches is not None

        def count(image: NDArray[Any]) -> NDArray[np.int64]:
            return np.bincount(image, minlength=images)

        # Count the detections per image that count unmatched, once for all thresholds.
        candidate, unmatched = matches.image[outcomes.detection], outcomes.unmatched_counts
        may_count = unmatched[outcomes.detection]
        of_unmatched = count(matches.image[unmatched])
        true, detections = (np.empty((len(outcomes.true), images), dtype=np.int64) for _ in range(2))
        # Per threshold, count the true positives [I] and correct the detections by matches.
        for t, (hit, ignored) in enumerate(zip(outcomes.true, outcomes.ignored, strict=True)):
            true[t] = count(candidate[hit])
            moved = count(candidate[hit & ~may_count]) - count(candidate[ignored & may_count])
            detections[t] = of_unmatched + moved
        objects = count(matches.truth_image[matches.counted(outcomes.area)])
        return cls(true, objects, detections, np.ones(images) if weights is None else weights)

    def shares(self, wholes: NDArray[np.int64]) -> FloatArray:
        """Return the true positives as fractions of the objects or the detections of each image, [T, I].

        The value is 1 for an image without objects and detections; 0 if only one of them is missing.
        """
        shares = np.divide(self.true, wholes, out=np.zeros(self.true.shape), where=wholes > 0)
        return np.where((self.objects == 0) & (self.detections == 0), 1.0, shares)

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the mean of values [T, I] over the images; NaN without images, [T]."""
        total = float(self.times.sum())
        sums = [math.fsum(row) for row in np.repeat(values, self.times.astype(np.intp), axis=1).tolist()]
        return np.array(sums) / total if total else np.full(len(sums), np.nan)


def mean_precision_and_recall(curves: Curves) -> tuple[FloatArray, FloatArray]:
    """Return the means over images of precision and of recall, [T] each."""

    def compute() -> tuple[FloatArray, FloatArray]:
        counts = ImageCounts.of(curves)
        wholes = counts.detections, np.broadcast_to(counts.objects, counts.true.shape)
        precision, recall = (counts.mean(counts.shares(whole)) for whole in wholes)
        return precision, recall

    return curves.once("precision and recall of images", compute)


def f1_of(precision: FloatArray, recall: FloatArray) -> FloatArray:
    """Return the harmonic mean of precision and recall; 0 where both are 0."""
    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.where(total == 0, 0.0, np.nan), where=total > 0)


def _kind(name: str, title: str, figure: Callable[[FloatArray, FloatArray], FloatArray]) -> Kind:
    """Make a kind from a function of the mean precision and recall over images."""

    def values(curves: Curves, protocol: Protocol) -> Values:
        return HeldValues(figure(*mean_precision_and_recall(curves))[:, None])

    return Kind(name, title, values)


KINDS = (
    _kind("image_precision", "Precision, mean of images", lambda precision, recall: precision),
    _kind("image_recall", "Recall, mean of images", lambda precision, recall: recall),
    _kind("image_F1", "F1 of the means of images", f1_of),
)
