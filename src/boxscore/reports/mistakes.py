"""What each mistake in an image is: the object of a false positive, the detection nearest to a missed object.

Goal
----
One line per mistake that says what to look at: "hexagon, IoU .70: wrong class".

Conventions
-----------
- Mistakes are those of the protocol's matching at its first threshold, at a score; their kinds are named by
  TIDE's rules (``diagnostics/tide.py``), so a page counts and shows the same kinds.
- Overlaps below ``BACKGROUND_IOU`` do not count, nor do those with ignored objects.
- A mistake is ``[kind, class, overlap, score]``: the kind as a position in ``KINDS``; class and overlap of
  the other box, None where there is none; the score where the other box is a detection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.diagnostics.tide import ERROR_TYPES
from boxscore.evaluation import Evaluation
from boxscore.matching.outcomes import MISSED, TRUE_POSITIVE
from boxscore.reports.curve_view import significant

KINDS = (*ERROR_TYPES, "below_threshold")
"""TIDE's kinds, and objects that only a detection below the score matches."""

BACKGROUND_IOU = 0.1

Rows = NDArray[np.intp]


class Mistakes:
    """Names the mistakes of an evaluation at a score.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float
        Detections below it are left out.
    """

    def __init__(self, evaluation: Evaluation, *, score_threshold: float) -> None:
        self._truth, self._detections = evaluation.ground_truth, evaluation.detections
        self._outcomes = evaluation.outcomes
        self._threshold = evaluation.protocol.matching.iou_thresholds[0]
        ignored = evaluation.matcher.ignoring.ignored
        # The same overlaps as those of the kinds of error, without their cap.
        pairs = evaluation.matcher.across_classes(iou_threshold=BACKGROUND_IOU, by_foreground=ignored)
        counting = np.flatnonzero(~ignored[pairs.truth])
        detection, truth, overlap = pairs.detection[counting], pairs.truth[counting], pairs.iou[counting]
        self._of_detection = _Best(detection, truth, overlap, len(self._detections))
        shown = np.flatnonzero(self._detections.scores[detection] >= score_threshold)
        self._of_truth = _Best(truth[shown], detection[shown], overlap[shown], len(self._truth))
        outcome = self._outcomes.truth(score_threshold)
        matched = np.flatnonzero(self._outcomes.detection == TRUE_POSITIVE)
        # By ground truth the detection that matched it, at any score; -1 for none.
        self._match_of_truth = np.full(len(self._truth), -1, dtype=np.intp)
        self._match_of_truth[self._outcomes.truth_row[matched]] = matched
        self._detected = outcome == TRUE_POSITIVE
        self._missed = outcome == MISSED

    def of_detection(self, row: int) -> list[Any]:
        """Say which kind of mistake a false positive is, and of which object."""
        truths, overlaps = self._of_detection.all(row)
        same_class = self._truth.category[truths] == self._detections.category[row]
        same = _first(truths[same_class], overlaps[same_class])
        other = _first(truths[~same_class], overlaps[~same_class])
        detected = same_class & self._detected[truths]
        duplicate = _first(truths[detected], overlaps[detected])
        if BACKGROUND_IOU <= same[1] <= self._threshold:
            return self._mistake("localisation", *same)
        if other[1] >= self._threshold:
            return self._mistake("classification", *other)
        if duplicate[1] >= self._threshold:
            return self._mistake("duplicate", *duplicate, self._match_of_truth[duplicate[0]])
        if not len(truths):
            return self._mistake("background")
        nearest = other if other[1] > same[1] else same
        return self._mistake("both", *nearest)

    def of_truth(self, row: int) -> list[Any]:
        """Say which detection is nearest to a missed object."""
        match = int(self._match_of_truth[row])
        if match >= 0 and self._missed[row]:
            detections = self._detections
            score = significant(detections.scores[match : match + 1], 3)[0]
            overlap = significant(self._outcomes.iou[match : match + 1], 2)[0]
            return [KINDS.index("below_threshold"), int(detections.category[match]), overlap, score]
        rows, overlaps = self._of_truth.all(row)
        if not len(rows):
            return [KINDS.index("missed"), None, None, None]
        nearest = int(rows[0])
        score = significant(self._detections.scores[nearest : nearest + 1], 3)[0]
        overlap = significant(overlaps[:1], 2)[0]
        return [KINDS.index("missed"), int(self._detections.category[nearest]), overlap, score]

    def _mistake(self, kind: str, truth: int = -1, overlap: float = 0.0, match: int = -1) -> list[Any]:
        category = None if truth < 0 else int(self._truth.category[truth])
        value = None if truth < 0 else significant(np.array([overlap]), 2)[0]
        score = None if match < 0 else significant(self._detections.scores[match : match + 1], 3)[0]
        return [KINDS.index(kind), category, value, score]


class _Best:
    """Partners of each row, the largest overlap first; of equal ones the first row."""

    def __init__(self, rows: Rows, partners: Rows, overlap: NDArray[np.float64], count: int) -> None:
        order = np.lexsort((partners, -overlap, rows))
        self._partner, self._overlap = partners[order], overlap[order]
        self._bounds = np.searchsorted(rows[order], np.arange(count + 1))

    def all(self, row: int) -> tuple[Rows, NDArray[np.float64]]:
        part = slice(self._bounds[row], self._bounds[row + 1])
        return self._partner[part], self._overlap[part]


def _first(rows: Rows, overlaps: NDArray[np.float64]) -> tuple[int, float]:
    """Return the first of some partners and its overlap; row -1 and overlap 0 for none."""
    return (int(rows[0]), float(overlaps[0])) if len(rows) else (-1, 0.0)
