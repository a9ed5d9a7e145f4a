"""Choose score thresholds fairly when a detector with scores is compared with one without.

Goal
----
Boxes without scores are simply counted. A detector with scores is counted at a score threshold. Choosing the
threshold of its best F1 on the images where it is then counted would favor it.

Conventions
-----------
- The images are split randomly into two halves, by the seed; groups stay together. On each half, the
  threshold with the best F1 over all classes is found, at IoU 0.5 if the protocol has it and otherwise at the
  first IoU threshold. The boxes of the *other* half with at least that score count. After that, scores are
  not used.
- Halves and thresholds belong to the detector: resampled and swapped images keep them.

References
----------
V. Chernozhukov et al., "Double/debiased machine learning for treatment and structural parameters", The
Econometrics Journal 21, 2018 (cross-fitting).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from boxscore._utils.array_types import BoolArray
from boxscore._utils.text import printable
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.confidence import operating_points
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.weights.resampling import Units, unit_count
from boxscore.matching.matcher import Matcher
from boxscore.protocols import without_scores
from boxscore.protocols.protocol import Protocol

IOU = 0.5


class CrossFit(NamedTuple):
    """The score thresholds of a detector compared with one without scores."""

    iou_threshold: float
    """IoU threshold of the best F1."""
    score_thresholds: tuple[float, float]
    """Thresholds of the first half of the images, chosen on the second, and of the second half."""

    def text(self, name: str) -> str:
        """Describe the thresholds in one line."""
        first, second = self.score_thresholds
        return (
            f"{printable(name)} has scores: its boxes count from the score with the best F1 at IoU "
            f"{self.iou_threshold:g}, chosen for each half of the images on the other half ({first:.4g} "
            f"and {second:.4g})."
        )


def counted_alike(
    evaluations: Mapping[str, Evaluation], units: Units | None, seed: int
) -> tuple[dict[str, Evaluation], dict[str, CrossFit]]:
    """Count boxes with scores like those without if both occur; otherwise change nothing."""
    without = [one for one in evaluations.values() if not _is_ranked(one)]
    if not without or len(without) == len(evaluations):
        return dict(evaluations), {}
    results, fits = {}, {}
    for name, result in evaluations.items():
        results[name] = result
        if _is_ranked(result):
            results[name], fits[name] = _cross_fit(name, result, without[0].protocol, units, seed)
    return results, fits


def _is_ranked(evaluation: Evaluation) -> bool:
    return evaluation.has_scores


def _cross_fit(
    name: str, evaluation: Evaluation, protocol: Protocol, units: Units | None, seed: int
) -> tuple[Evaluation, CrossFit]:
    """Return the result of the boxes that count, under a protocol without scores."""
    _check(name, evaluation, protocol)
    thresholds = evaluation.protocol.matching.iou_thresholds
    iou = IOU if IOU in thresholds else thresholds[0]
    first = _first_half(evaluation._image_count, units, seed)
    best = [_best(name, evaluation, half, iou) for half in (~first, first)]
    of_image = np.where(first, *best)
    detections = evaluation.detections
    kept = detections.scores >= of_image[detections.image]
    matcher = Matcher(
        evaluation.ground_truth, detections.take(np.flatnonzero(kept)).without_scores(), protocol
    )
    result = Evaluation(matcher.ground_truth, matcher.detections, protocol, matcher.match())
    return result, CrossFit(iou, (best[0], best[1]))


def _check(name: str, evaluation: Evaluation, protocol: Protocol) -> None:
    """Reject results that cannot be counted again without their files."""
    if not source_of(evaluation).is_here:
        rule = "be evaluated in memory if the others lack scores"
        cause = (
            "its boxes are counted again from the score with the best F1, and saved parts do not "
            "contain boxes"
        )
        raise InputError("a result with scores", rule, got=f"parts of {name!r}", cause=cause)
    if without_scores(evaluation.protocol).scope.prepared_by != protocol.scope.prepared_by:
        rule = "prepare boxes in the same way"
        raise InputError(
            "the protocols of results with scores and without",
            rule,
            got=f"{evaluation.protocol.name!r} and {protocol.name!r}",
            cause="use one protocol for both",
        )


def _first_half(images: int, units: Units | None, seed: int) -> BoolArray:
    """Return whether each image belongs to the first half, [I]."""
    count = unit_count(images, units)
    order = np.random.default_rng(seed).permutation(count)
    first = np.zeros(count, dtype=bool)
    first[order[: count // 2]] = True
    return first if units is None else first[units]


def _best(name: str, evaluation: Evaluation, half: BoolArray, iou: float) -> float:
    """Return the score threshold with the best F1 in some images."""
    some = dataclasses.replace(evaluation, matched=evaluation.matched.take_images(half))
    area = next(iter(evaluation.protocol.ignore.area_ranges))
    score = float(operating_points(some, iou_threshold=iou, area=area).total.score)
    if np.isnan(score):
        raise InputError(
            "each half of the images",
            "have objects and detections, to choose the score threshold for the other half",
            got="none in one half",
            place=name,
            cause="with too few images, use --scoreless (in Python Detections.without_scores()) to count "
            "all boxes",
        )
    return score
