"""Hold numbers of whole classes that add up over disjoint images, without curves.

Conventions
-----------
- ``+`` adds the numbers of other images. Recall and counts at fixed scores do not need a curve, and therefore
  no rows of other images.
- In memory, :class:`~boxscore.scoring.counts.TruePositiveCounts` has these numbers; :class:`Totals` holds
  them if the rows are in another process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.records import NamedTuple, record
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.counts import ClassNumbers


@record(frozen=True, eq=False)
class Totals:
    """Numbers of whole classes at one area range and max detections.

    Attributes
    ----------
    positive : ndarray, [K]
        Ground truths in the denominator of recall.
    images : int
    recalled : ndarray, [T, K]
        True positives; the sums of their weights if ground truths have weights.
    counted : ndarray of int64, [T, K]
        Counted detections.
    has_detections : ndarray of bool, [K]
    images_of_class : ndarray of int64, [K]
        Images with an object in the denominator of recall; zeros if not needed.
    at_steps : pair of ndarray of int64, [T, S, K] each
        True positives and counted detections with at least each of the protocol's fixed scores.
    """

    positive: NDArray[Any]
    images: int
    recalled: NDArray[Any]
    counted: IntArray
    has_detections: NDArray[np.bool_]
    images_of_class: IntArray
    at_steps: tuple[IntArray, IntArray]

    @classmethod
    def of(cls, counts: ClassNumbers, protocol: Protocol) -> Totals:
        """Copy the numbers of a counter."""
        T, steps = len(counts.recalled), protocol.ap.score_steps
        return cls.of_images(counts, protocol, thresholds=T, steps=steps).followed_by(counts, protocol.ap)

    @classmethod
    def of_curves(cls, counts: ClassNumbers, protocol: Protocol) -> Totals:
        """Copy the numbers that curves with known values need: everything but counted detections."""
        objects = cls.of_images(counts, protocol)
        return dataclasses.replace(objects, recalled=counts.recalled, has_detections=counts.has_detections)

    @classmethod
    def of_images(
        cls, counts: ClassNumbers, protocol: Protocol, *, thresholds: int = 0, steps: int = 0
    ) -> Totals:
        """Make the numbers of objects and images that means need, before any detection."""
        by_images = protocol.ap.class_mean == "by_images"
        images = counts.images_of_class if by_images else np.zeros(len(counts.positive), dtype=np.int64)
        return cls.of_objects(counts.positive, counts.images, images, thresholds=thresholds, steps=steps)

    @classmethod
    def of_objects(
        cls,
        positive: IntArray,
        images: int,
        images_of_class: IntArray,
        *,
        thresholds: int = 0,
        steps: int = 0,
    ) -> Totals:
        """Make totals from numbers of objects and images, [K] each, before any detection."""
        K = len(positive)
        nothing, at_steps = (
            np.zeros(shape, dtype=np.int64) for shape in ((thresholds, K), (thresholds, steps, K))
        )
        has_none = np.zeros(K, dtype=bool)
        return cls(positive, images, nothing, nothing, has_none, images_of_class, (at_steps, at_steps))

    def followed_by(self, counts: ClassNumbers, rules: ApRules) -> Totals:
        """Add the detections of the next range of scores."""
        at_steps = self.at_steps
        if rules.score_steps:
            true, counted = counts.at_scores(score_steps(rules))
            at_steps = at_steps[0] + true, at_steps[1] + counted
        return dataclasses.replace(
            self,
            recalled=self.recalled + counts.recalled,
            counted=self.counted + counts.counted,
            has_detections=self.has_detections | counts.has_detections,
            at_steps=at_steps,
        )

    def __add__(self, other: Totals) -> Totals:
        """Add the totals of disjoint images."""
        return Totals(
            self.positive + other.positive,
            self.images + other.images,
            self.recalled + other.recalled,
            self.counted + other.counted,
            self.has_detections | other.has_detections,
            self.images_of_class + other.images_of_class,
            (self.at_steps[0] + other.at_steps[0], self.at_steps[1] + other.at_steps[1]),
        )

    @classmethod
    def beside(cls, blocks: Sequence[ClassNumbers]) -> Totals:
        """Concatenate blocks of classes of the same images."""

        def joined(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
            return np.concatenate(list(arrays), axis=-1)

        nothing = np.empty(0)
        true, counted = zip(*(block.at_scores(nothing) for block in blocks), strict=True)
        return cls(
            joined(block.positive for block in blocks),
            blocks[0].images,
            joined(block.recalled for block in blocks),
            joined(block.counted for block in blocks),
            joined(block.has_detections for block in blocks),
            joined(block.images_of_class for block in blocks),
            (joined(true), joined(counted)),
        )

    def at_scores(self, scores: NDArray[np.float64]) -> tuple[IntArray, IntArray]:
        """Return the counts at the protocol's fixed scores."""
        return self.at_steps


class Before(NamedTuple):
    """Counts of the ranges with higher scores: true positives and counted detections, [T, K] each."""

    true_positives: IntArray
    counted: IntArray


def score_steps(rules: ApRules) -> NDArray[np.float64]:
    """Return the fixed scores that AP is read at, descending, [S]; empty if every detection is a point."""
    steps = rules.score_steps
    return 1 - (np.arange(steps) + 1) / steps if steps else np.empty(0)
