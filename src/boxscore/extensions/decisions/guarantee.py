"""Choose score thresholds with guarantees for new images: recall, precision or false positives per image.

Goal
----
A threshold chosen on some images is optimal for these images only. This module gives a statement about new
images from the same source, valid for any detector and score distribution, and the number of images that the
statement needs.

Conventions
-----------
- The unit is the image. Images are independent, and new ones come from the same source; frames of one video
  are not independent. The detector was neither trained nor selected on them.
- Recall and false positives per image are monotonic in the threshold, so conformal risk control applies.
  Among n images and a new one, each is equally likely to be the new one, whose loss is at most B. The
  threshold is the first at which (sum of losses + B) / (n + 1) is small enough. Then the loss of a new image
  is small enough *on average*, over sets of n images and new images; for a single set it may be larger.
- Recall: the loss of an image is the fraction of its objects that is missed, B = 1. Images without objects
  are left out. If even the lowest score misses too much, the threshold is undefined. The average then counts
  such a set as a loss of 0, because the theorem needs a threshold without loss. Near that limit, the existing
  thresholds miss more than requested.
- False positives per image: the loss of an image is their number, at most ``at_most`` = B. All images count.
- Precision is not monotonic, so it is tested (learn then test) at thresholds fixed in advance, from high to
  low. The null hypothesis is that the mean precision of images with a detection above the threshold is too
  low; the p-value is that of Hoeffding and Bentkus. With the requested confidence, precision is high enough
  at the threshold for *this* set.
- The guaranteed quantity is a mean over images. Recall and precision pooled over objects and detections give
  crowded images more weight; their loss is unbounded unless the number of objects is bounded.
- The matches of all detections are used. Matching takes detections by descending score, so dropping low
  scores does not change the others: the counts at a threshold equal those of evaluating the remaining
  detections.

References
----------
- A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster, *Conformal Risk Control*, 2022 (ICLR 2024).
- A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan, L. Lei, *Learn then Test*, 2021: fixed sequence
  testing with several starts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import group_order, group_starts, rank_in_runs, stable_order
from boxscore._utils.text import counted
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import area_index, threshold_index
from boxscore.extensions.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.extensions.diagnostics._units import warn_of_frames
from boxscore.matching.matches import Matches
from boxscore.protocols.tables.labels import TRUTH_WEIGHT

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-9
"""Tolerance for sums of fractions, relative to the number of images."""

NEAR = 2
"""Number of standard errors of the recall at the lowest score within which another set might lack a
threshold.
"""

GRID = np.arange(99, -1, -1) / 100
"""Thresholds at which precision is tested, descending."""

STARTS = tuple(range(0, len(GRID), 10))
"""Positions on the grid at which a sequence of tests starts; each has its share of the error."""

NEVER = -np.inf
"""Score of an object that no detection matches."""

INDEPENDENT = "a guarantee that treats them as independent images may not hold. Use one frame of each video"
"""Advice for images that look like frames of videos."""


class Guaranteed(NamedTuple):
    """Thresholds with a guarantee, and the number of images behind them; arrays of one shape, or scalars."""

    score: Floats
    """The threshold, float64; NaN without a guarantee."""
    value: Floats
    """The guaranteed quantity on these images: a mean over images, float64."""
    pooled: Floats
    """The same, pooled over all objects or detections; not guaranteed, float64."""
    images: Counts
    """Number of images that the guarantee is based on, int64."""
    images_needed: Counts
    """The minimum number of images for a detector without errors; int64."""
    note: Any
    """Text: why the threshold is missing, whether it is close to missing, or how many images have more false
    positives than are counted.
    """


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ThresholdGuarantees(ClassResult):
    """One threshold with a guarantee per class, and one for all classes together.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Guaranteed, [K]
        Each class has its own guarantee, based on its own images.
    total : Guaranteed, scalars
    measure : {"recall", "precision", "fppi"}
    level : float
        The requested level.
    promise : str
        One sentence that says what the thresholds guarantee.
    """

    per_class: Guaranteed
    total: Guaranteed
    measure: str
    level: float
    promise: str

    first_out = ("pooled", "images_needed")
    """Columns that a narrow terminal drops first."""

    @property
    def title(self) -> str:
        """Heading of the table."""
        sign = "<=" if self.measure == "fppi" else ">="
        what = "false positives" if self.measure == "fppi" else f"mean {self.measure}"
        return f"Score thresholds that guarantee {what} per image {sign} {self.level:g}"

    def terminal_rows(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
        """Return the rows, and the guarantee."""
        return frame, self.promise


class Sample(NamedTuple):
    """Detections and objects of one class, or of all, in the form that guarantees use."""

    image: NDArray[np.int32]
    """Image of each counted detection, [D]."""
    score: FloatArray
    true: BoolArray
    weight: FloatArray
    """Weight of each detection if it is true, [D]."""
    truth_image: NDArray[np.int32]
    """Image of each counted ground truth, [G]."""
    truth_score: FloatArray
    """Highest score of a true positive of each ground truth; ``NEVER`` without one, [G]."""
    truth_weight: FloatArray

    def take(self, detections: Any, truths: Any) -> Sample:
        """Select some detections and some ground truths."""
        columns = [column[detections] for column in self[:4]], [column[truths] for column in self[4:]]
        return Sample(*columns[0], *columns[1])

    def pooled_recall(self, score: float) -> float:
        """Return the fraction of all objects that is detected."""
        detected = self.truth_weight[self.truth_score >= score].sum()
        return float(detected / self.truth_weight.sum()) if len(self.truth_weight) else math.nan

    def pooled_precision(self, score: float) -> float:
        """Return the fraction of all detections that is true."""
        left = self.score >= score
        true, false = self.weight[left & self.true].sum(), np.count_nonzero(left & ~self.true)
        return float(true / (true + false)) if left.any() else math.nan


@once_per_evaluation
def threshold_guarantee(
    evaluation: Evaluation,
    *,
    recall: float | None = None,
    precision: float | None = None,
    fppi: float | None = None,
    iou_threshold: float | None = None,
    area: str = "all",
    at_most: int | None = None,
    confidence: float | None = None,
) -> ThresholdGuarantees:
    """Choose thresholds with a guarantee for new images: recall, precision or false positives per image.

    Parameters
    ----------
    evaluation : Evaluation
        Evaluation of independent images on which the detector was neither trained nor selected.
    recall : float, optional
        The expected recall of a new image with objects is at least this, in (0, 1).
    precision : float, optional
        The mean precision of new images with a detection above the threshold is at least this, in (0, 1),
        with the given confidence.
    fppi : float, optional
        The expected false positives of a new image are at most this.
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first).
    area : str, default "all"
        One of the protocol's area ranges.
    at_most : int, optional
        For ``fppi``: maximum number of false positives that count per image (default: the max detections of
        the protocol, multiplied by the number of classes for all classes together).
    confidence : float, optional
        For ``precision``: the probability that the threshold from such a set of images is right, in (0, 1)
        (default: 0.95).

    Returns
    -------
    ThresholdGuarantees
        For recall the highest allowed thresholds, for the others the lowest.

    Raises
    ------
    InputError
        When not exactly one of ``recall``, ``precision`` and ``fppi`` is given, a value is out of range,
        there are too few images for every class, max detections are shared between images, or scores are
        outside [0, 1] with ``precision``.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> images, labels, boxes = range(9), ["cat"] * 9, [[0, 0, 9, 9]] * 9
    >>> truth = GroundTruth.from_arrays(images, labels, boxes)
    >>> scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    >>> detections = Detections.from_arrays(images, labels, boxes, scores)
    >>> result = threshold_guarantee(evaluate(truth, detections), recall=0.7)
    >>> float(result.total.score), float(result.total.value), int(result.total.images_needed)
    (0.3, 0.7777777777777778, 3)
    """
    # Accept one measure and its options. Matching must treat images separately, or they are not independent.
    asked = {"recall": recall, "precision": precision, "fppi": fppi}
    measure, level = _measure_and_level({name: value for name, value in asked.items() if value is not None})
    _refuse_unread(measure, at_most=at_most, confidence=confidence)
    evaluation._require_scores()
    protocol = evaluation.protocol
    if not protocol.scope.is_matched_alone:
        raise InputError(
            "a guarantee for new images",
            "use a protocol that matches each image separately",
            got=protocol.name,
            cause="in this one, which detections of an image count depends on the other images",
        )
    warn_of_frames(evaluation, None, INDEPENDENT)
    # Extract the detections and objects of the evaluation once, for all classes and for each.
    t, a = threshold_index(evaluation, iou_threshold), area_index(evaluation, area)
    whole, parts = samples_of(evaluation.matched, t, a)
    # Compute the guarantee of each class and of all together; the text states the guaranteed quantities and
    # those that are not.
    if measure == "recall":
        answers = [guaranteed_recall(one, level) for one in (*parts, whole)]
        promise = (
            f"guaranteed: mean recall per image of at least {level:g} over new images of the same source "
            "that contain objects; not guaranteed: recall pooled over all objects"
        )
    elif measure == "precision":
        # Precision is tested on a fixed grid, so scores must be within its range.
        share = _share(0.95 if confidence is None else confidence, "confidence")
        _check_scores(whole.score)
        answers = [guaranteed_precision(one, level, share) for one in (*parts, whole)]
        promise = (
            f"guaranteed with confidence {share:.6g}: mean precision per image of at least {level:g} "
            "over new images of the same source with a detection above the threshold; not guaranteed: "
            "precision pooled over all detections"
        )
    else:
        # False positives are unbounded, so an image counts at most ``at_most``.
        count, caps = evaluation._image_count, _caps(evaluation, at_most, len(parts))
        answers = [
            guaranteed_fppi(one, level, images=count, at_most=cap)
            for one, cap in zip((*parts, whole), caps, strict=True)
        ]
        in_all = f" per class and {caps[-1]:,} in total" if caps[0] != caps[-1] else ""
        promise = (
            f"guaranteed: a mean of at most {level:g} false positives per image over new images of the "
            f"same source, counting up to {caps[0]:,}{in_all}"
        )
    # If no class has enough images, raise an error with the smallest number needed.
    if all(one.images < one.images_needed for one in answers):
        nearest = min(answers[::-1], key=lambda one: (one.images_needed, -one.images))
        raise InputError(
            f"images {_WHICH[measure]}".strip(),
            f"be at least {nearest.images_needed:,} to guarantee {measure} {level:g}"
            + (f" with at most {caps[0]:,} counted per image" if measure == "fppi" else ""),
            got=f"{nearest.images:,}",
            cause=_advice(measure, nearest.images),
        )
    # Turn the answers into columns, one entry per class, with explicit types for empty lists.
    total = answers.pop()
    columns: list[Any] = [np.array(column) for column in zip(*answers, strict=True)]
    columns[-1] = np.array([one.note for one in answers], dtype=object)
    if not answers:
        columns = [np.zeros(0, dtype=kind) for kind in (float, float, float, np.int64, np.int64, object)]
    return ThresholdGuarantees(evaluation.labels, Guaranteed(*columns), total, measure, level, promise)


# ---------------------------------------------------------------- options


_READ_FOR = {"at_most": "fppi", "confidence": "precision"}
_WHICH = {"recall": "with objects", "precision": "with detections", "fppi": ""}


def _measure_and_level(given: dict[str, float]) -> tuple[str, float]:
    """Return the measure to guarantee, and its level."""
    if len(given) != 1:
        raise InputError(
            "a guarantee",
            "be for one of recall, precision and fppi",
            got=" and ".join(given) or "none",
        )
    ((measure, level),) = given.items()
    if measure == "fppi":
        return measure, checks.number_between(level, 0, 1e9, name="fppi", open_low=True)
    return measure, _share(level, measure)


def _share(value: float, name: str) -> float:
    if value == 1:
        raise InputError(
            name, "be below 1", got="1", cause="no number of images is enough for a guarantee of 1"
        )
    return checks.number_between(value, 0, 1, name=name, open_low=True)


def _refuse_unread(measure: str, **given: float | None) -> None:
    for name, value in given.items():
        if value is not None and measure != _READ_FOR[name]:
            raise InputError(name, f"not be set for a guarantee of {measure}", got=value)


def _check_scores(scores: FloatArray) -> None:
    outside = scores[(scores < 0) | (scores > 1)]
    if len(outside):
        raise InputError(
            "scores",
            "be between 0 and 1 for a guarantee of precision",
            got=f"{outside[0]:g}",
            cause="only thresholds from 0.99 to 0 are tested: scale the scores",
        )


def _caps(evaluation: Evaluation, at_most: int | None, classes: int) -> list[int]:
    """Return the maximum counted false positives per image, for each class and for all together."""
    if at_most is not None:
        return [checks.whole_number(at_most, 1, name="at_most")] * (classes + 1)
    most, matching = evaluation.protocol.caps[-1], evaluation.protocol.matching
    if most is None:
        raise InputError(
            "at_most",
            f"be set for a guarantee of fppi: protocol {evaluation.protocol.name} does not limit detections",
            got="none",
            cause="an unbounded number of false positives cannot be guaranteed",
        )
    return [most] * classes + [most if matching.caps_image else most * max(classes, 1)]


def _advice(measure: str, images: int) -> str:
    """Suggest what to do about too few images."""
    if measure == "recall":
        return f"these images can guarantee {images / (images + 1):.4g} at best: evaluate more"
    if measure == "precision":
        return "evaluate more images, or lower the confidence"
    return "evaluate more images, or count fewer false positives per image: --at-most (in Python at_most=)"


# ---------------------------------------------------------------- data


def samples_of(matched: Matches, threshold: int, area: int) -> tuple[Sample, list[Sample]]:
    """Extract the counted detections and objects of all classes, and of each."""
    # Give each object the score of its true positive, or NEVER. The maximum matters only if an object has
    # several.
    outcomes = matched.detection_outcomes(threshold, area)
    truths = np.flatnonzero(matched.counted(area))
    pairs, best = matched.pairs_true(threshold, area), np.full(len(matched.truth_image), NEVER)
    np.maximum.at(best, matched.pair_truth[pairs], matched.score[matched.pair_detection[pairs]])
    truth_weight = TRUTH_WEIGHT.of(matched.extra)
    whole = Sample(
        matched.image,
        matched.score,
        outcomes.true,
        np.ones(len(matched)) if outcomes.weight is None else outcomes.weight,
        matched.truth_image,
        best,
        np.ones(len(best)) if truth_weight is None else truth_weight,
    )
    # Sort counted detections and objects by class, so that a class is a slice of each.
    detections = np.flatnonzero(outcomes.counted)
    classes = len(matched.categories)
    edges = group_starts(matched.category[detections], classes)
    truths = truths[stable_order(matched.truth_category[truths], classes)]
    truth_edges = group_starts(matched.truth_category[truths], classes)
    whole = whole.take(detections, truths)
    slices = [
        (slice(*edges[k : k + 2].tolist()), slice(*truth_edges[k : k + 2].tolist())) for k in range(classes)
    ]
    return whole, [whole.take(*rows) for rows in slices]


# ---------------------------------------------------------------- conformal risk control


def guaranteed_recall(sample: Sample, level: float) -> Guaranteed:
    """Return the highest threshold at which the expected recall of an image is at least the level."""
    # Weight each object by 1 over the number of objects in its image: the sum over found objects is the
    # recall of the image.
    images, of_image = np.unique(sample.truth_image, return_inverse=True)
    n = len(images)
    share = sample.truth_weight / np.bincount(of_image, weights=sample.truth_weight, minlength=n)[of_image]
    # Add up the recalls over distinct scores, from the highest down.
    needed = _ceiling(level / (1 - level))
    seen = sample.truth_score > NEVER
    score, total = _sums_down(sample.truth_score[seen], share[seen])
    # Require sum of losses + 1 <= (1 - level) (n + 1), written with recalls.
    enough = np.flatnonzero(total >= (level - ROUNDING) * (n + 1))
    # The threshold is undefined if images are too few, or if even the lowest score misses too much.
    if n < needed:
        return _missing(n, needed, _too_few(n, needed, "with objects"))
    if not len(enough):
        most = _round_down(total[-1] / (n + 1)) if len(total) else 0
        return _missing(n, needed, f"highest possible: {most:g}" if most else "no object is detected")
    # Add a note if the largest possible recall is close to the level, in standard errors.
    most = float(total[-1] / (n + 1))
    at_lowest = np.bincount(of_image[seen], weights=share[seen], minlength=n)
    is_near = most - level < NEAR * float(at_lowest.std()) / math.sqrt(n)
    note = f"close to the limit {_round_down(most):g}" if is_near else ""
    chosen = float(score[enough[0]])
    return Guaranteed(chosen, float(total[enough[0]] / n), sample.pooled_recall(chosen), n, needed, note)


def guaranteed_fppi(sample: Sample, level: float, *, images: int, at_most: int) -> Guaranteed:
    """Return the lowest score at which the expected false positives of an image are at most the level."""
    # Count at most ``at_most`` false positives per image, those with the highest scores: rank them in their
    # image.
    needed = max(_ceiling(at_most / level - 1), 1)
    order = group_order(sample.image, sample.score)
    false = order[~sample.true[order]]
    counts = np.zeros(len(sample.score))
    counts[false[rank_in_runs(sample.image[false]) < at_most]] = 1
    # Add them up from the highest score down; the condition adds the largest loss of a new image.
    score, total = _sums_down(sample.score, counts)
    few_enough = np.flatnonzero(total + at_most <= (level + ROUNDING) * (images + 1))
    # The threshold is undefined if images are too few, or if no score is low enough.
    if images < needed:
        return _missing(images, needed, _too_few(images, needed, ""))
    if not len(few_enough):
        return _missing(images, needed, "false positives score highest" if len(score) else "no detections")
    # The count is capped, so report how many images have more false positives.
    chosen = float(score[few_enough[-1]])
    left = sample.image[~sample.true & (sample.score >= chosen)]
    more = int(np.count_nonzero(np.bincount(left) > at_most))
    note = f"more than {at_most:,} in {counted(more, 'image')}" if more else ""
    value, pooled = float(total[few_enough[-1]] / images), len(left) / images
    return Guaranteed(chosen, value, pooled, images, needed, note)


def _sums_down(score: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct scores, descending, and the sums of the weights at or above each."""
    distinct, at = np.unique(score, return_inverse=True)
    return distinct[::-1], np.cumsum(np.bincount(at, weights=weight, minlength=len(distinct))[::-1])


def _round_down(value: float) -> float:
    return math.floor(1e4 * value) / 1e4


def _ceiling(value: float) -> int:
    return math.ceil(value * (1 - ROUNDING))


def _too_few(images: int, needed: int, which: str) -> str:
    return " ".join(f"needs {needed:,} images {which}".split()) + f", has {images:,}"


def _missing(images: int, needed: int, reason: str) -> Guaranteed:
    return Guaranteed(math.nan, math.nan, math.nan, images, needed, reason)


# ---------------------------------------------------------------- learn then test


def guaranteed_precision(sample: Sample, level: float, confidence: float) -> Guaranteed:
    """Return the lowest threshold of the grid that passes its test."""
    # Divide the allowed error over the starts of the sequences (Bonferroni); fewer images than ``needed`` can
    # never pass.
    error = (1 - confidence) / len(STARTS)
    needed = _ceiling(math.log(error) / math.log(level))
    images, of_image = np.unique(sample.image, return_inverse=True)
    if len(images) < needed:
        return _missing(len(images), needed, _too_few(len(images), needed, "with detections"))

    def losses(position: int) -> FloatArray:
        """Return the fraction of false positives of each image that has a detection above the threshold."""
        # Only images with a detection above the threshold have a precision, [images].
        left = sample.score >= GRID[position]
        true = np.bincount(of_image[left], sample.weight[left] * sample.true[left], len(images))
        false = np.bincount(of_image[left & ~sample.true], minlength=len(images))
        some = np.flatnonzero(true + false)
        shares: FloatArray = false[some] / (true + false)[some]
        return shares

    # Test from high thresholds to low and stop at the first failure, so no adjustment over thresholds is
    # needed.
    lowest = lowest_passed(lambda position: p_value(losses(position), 1 - level), error)
    if lowest < 0:
        return _missing(len(images), needed, "no threshold passes the test")
    chosen, shares = float(GRID[lowest]), losses(lowest)
    return Guaranteed(
        chosen, float(1 - shares.mean()), sample.pooled_precision(chosen), len(shares), needed, ""
    )


def lowest_passed(p_value_at: Callable[[int], float], error: float) -> int:
    """Return the last position on the grid that a sequence of tests reaches, or -1.

    Each sequence continues while the p-value is at most ``error``.
    """
    lowest = -1
    for start in STARTS:
        position = start
        while lowest < position < len(GRID) and p_value_at(position) <= error:
            lowest, position = position, position + 1
    return lowest


def p_value(losses: FloatArray, risk: float) -> float:
    """Return the Hoeffding-Bentkus p-value for the null that the mean loss, of [n], is above the risk."""
    n = len(losses)
    mean = float(losses.mean()) if n else 1.0
    if mean >= risk:
        return 1.0
    # Take the smaller of both bounds: Hoeffding's by relative entropy, and Bentkus's by a binomial tail.
    divergence = (1 - mean) * math.log((1 - mean) / (1 - risk))
    if mean > 0:
        divergence += mean * math.log(mean / risk)
    return min(math.exp(-n * divergence), math.e * _binomial_tail(_ceiling(n * mean), n, risk))


def _binomial_tail(most: int, n: int, chance: float) -> float:
    """Return the probability of at most ``most`` successes in n trials."""
    k = np.arange(1, most + 1)
    log_ratio = np.log((n - k + 1) / k) + math.log(chance / (1 - chance))
    log_terms = n * math.log1p(-chance) + np.append(0.0, np.cumsum(log_ratio))
    return float(np.exp(log_terms).sum())
