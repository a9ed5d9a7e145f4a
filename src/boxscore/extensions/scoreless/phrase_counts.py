"""Compute SAM 3's counts for pictures and phrases: boxes, and whether a phrase was found at all.

Conventions
-----------
- Each picture with a phrase is an image. A phrase is *positive* if its image has an object. At the image
  level, only whether anything was detected counts: a positive phrase with detections is a true positive, a
  negative phrase without detections is a true negative.
- Denominators of boxes have :data:`~boxscore.extensions.scoreless.annotators.EPSILON` added, those of images
  :data:`IMAGE_EPSILON`: a perfect result for one object has an F1 of 0.99985.
- ``positive_micro`` leaves out false positives of negative phrases. ``positive_macro_F1`` divides by the
  number of positive phrases with a detection.
- Sums are exact and rounded once, so the order of images does not matter. SAM 3 adds in the order of its
  images, so its ``positive_macro_F1`` may differ in the last bit.
- Protocols with such metrics pool their classes: there is one class, K is 1.

References
----------
https://github.com/facebookresearch/sam3, ``sam3/eval/cgf1_eval.py`` (``accumulate``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import verb
from boxscore._utils.user_warnings import warn_user
from boxscore.extensions.scoreless.annotators import SmoothedRates
from boxscore.extensions.scoreless.image_counts import ImageCounts
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind

IMAGE_EPSILON = 1e-6


class PhraseRates(NamedTuple):
    """Metrics at each IoU threshold, [T] each."""

    all_boxes: SmoothedRates
    positive: SmoothedRates
    """Without the false positives of negative phrases."""
    macro_f1: FloatArray
    image_precision: FloatArray
    image_recall: FloatArray
    image_f1: FloatArray
    image_false_positive_rate: FloatArray
    image_correlation: FloatArray
    """Matthews' correlation coefficient."""
    negatives: FloatArray
    """Number of negative phrases."""

    @classmethod
    def of(cls, curves: Curves) -> PhraseRates:
        """Count the images of curves; cached."""
        return curves.once("rates of phrases", lambda: cls._count(ImageCounts.of(curves)))

    @classmethod
    def _count(cls, counts: ImageCounts) -> PhraseRates:
        """Compute all rates from the counts of images."""
        # Count boxes per threshold and image, [T, I]. A phrase is positive if its image has an object.
        times, true = counts.times, counts.true
        false, missed = counts.detections - true, counts.objects - true
        positive = np.broadcast_to(counts.objects > 0, true.shape)
        found = counts.detections > 0
        # Add up over the images by multiplicity: whole numbers, exact in any order.
        sums = [(each * times).sum(axis=1) for each in (true, false, missed)]
        of_positive = (false * positive * times).sum(axis=1)
        # Compute F1 of each positive phrase; the mean adds them exactly and rounds once.
        f1 = np.where(positive, SmoothedRates.of(true, false, missed).f1, 0.0)
        repeated = np.repeat(f1, times.astype(np.intp), axis=1)
        # Classify each image as a whole: whether anything was found against whether anything is there, [T].
        hits, alarms, rejections, misses = (
            (each * times).sum(axis=1)
            for each in (positive & found, ~positive & found, ~positive & ~found, positive & ~found)
        )
        # Compute rates of images, with SAM 3's epsilon in each denominator; the correlation uses the same
        # four counts.
        precision, recall = hits / (hits + alarms + IMAGE_EPSILON), hits / (hits + misses + IMAGE_EPSILON)
        spread = (hits + alarms) * (hits + misses) * (rejections + alarms) * (rejections + misses)
        with np.errstate(invalid="ignore"):
            macro = np.array([math.fsum(row) for row in repeated.tolist()]) / hits
        return cls(
            SmoothedRates.of(*sums),
            SmoothedRates.of(sums[0], of_positive, sums[2]),
            macro,
            precision,
            recall,
            2 * precision * recall / (precision + recall + IMAGE_EPSILON),
            alarms / (alarms + rejections + IMAGE_EPSILON),
            (hits * rejections - alarms * misses) / (np.sqrt(spread) + IMAGE_EPSILON),
            alarms + rejections,
        )


def _kind(
    name: str,
    title: str,
    figure: Callable[[PhraseRates], FloatArray],
    *,
    lower_is_better: bool = False,
    check: Callable[[Any], None] | None = None,
) -> Kind:
    """Make a kind from a function of the rates of phrases."""

    def values(curves: Curves, protocol: Protocol) -> Values:
        return HeldValues(figure(PhraseRates.of(curves))[:, None])

    return Kind(name, title, values, lower_is_better=lower_is_better, check=check)


def _warn_of_phrases(result: Any) -> None:
    """Warn if cgF1 is 0 for any boxes, or falls as boxes get better."""
    # cgF1 is a product with the image-level correlation, which can be 0 or negative.
    protocol = result.protocol
    rows = [row for row in protocol.rows if row.metric == "cgF1"]
    rates = PhraseRates.of(result.curves_of(*protocol.position_of(rows[0])))
    correlation = float(rates.image_correlation.min(initial=0.0))
    # Without negative phrases the correlation is undefined, and counts as 0.
    names, last = ", ".join(row.key for row in rows), "pmF1 (positive_micro_F1) measures the boxes alone."
    if not rates.negatives.any():
        warn_user(
            f"{result.ground_truth.source}: every image has an object, so there are only positive "
            f"phrases: IL_MCC is 0, and {names} {verb(len(rows), 'are')} 0 for any boxes. {last}"
        )
    elif correlation < 0:
        warn_user(
            f"{result.detections.source}: IL_MCC is {correlation:.4f}: negative phrases have detections "
            f"more often than positive ones, and {names} {verb(len(rows), 'fall')} as boxes get better. "
            f"{last}"
        )


KINDS = (
    # F1 of the boxes of positive phrases, times the image-level correlation.
    _kind(
        "cgF1",
        "Classification-gated F1 (cgF1)",
        lambda rates: rates.positive.f1 * rates.image_correlation,
        check=_warn_of_phrases,
    ),
    # Rates of all boxes.
    _kind("smoothed_precision", "Precision, as SAM 3 divides", lambda rates: rates.all_boxes.precision),
    _kind("smoothed_recall", "Recall, as SAM 3 divides", lambda rates: rates.all_boxes.recall),
    _kind("smoothed_F1", "F1, as SAM 3 divides", lambda rates: rates.all_boxes.f1),
    # Sum of F1 of positive phrases over the number of those with a detection.
    _kind("positive_macro_F1", "F1, mean of positive phrases", lambda rates: rates.macro_f1),
    # Without the false positives of negative phrases.
    _kind("positive_micro_F1", "F1 of positive phrases", lambda rates: rates.positive.f1),
    _kind(
        "positive_micro_precision",
        "Precision of positive phrases",
        lambda rates: rates.positive.precision,
    ),
    # Whether anything was found for a phrase, against whether the phrase is positive.
    _kind("IL_precision", "Precision of images", lambda rates: rates.image_precision),
    _kind("IL_recall", "Recall of images", lambda rates: rates.image_recall),
    _kind("IL_F1", "F1 of images", lambda rates: rates.image_f1),
    _kind(
        "IL_FPR",
        "False positive rate of images",
        lambda rates: rates.image_false_positive_rate,
        lower_is_better=True,
    ),
    _kind("IL_MCC", "Correlation of images (MCC)", lambda rates: rates.image_correlation),
)
