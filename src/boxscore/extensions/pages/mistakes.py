"""Describe each mistake: the object of a false positive, or the detection nearest to a missed object.

Goal
----
Describe each mistake in one line: "hexagon, IoU .70: wrong class".

Conventions
-----------
- Mistakes follow the protocol's matching at its first threshold and a score; their kinds follow TIDE's rules
  (``extensions/diagnostics/tide.py``), so that a page counts and shows the same kinds.
- Overlaps below ``BACKGROUND_IOU``, or with ignored objects, do not count.
- All detections and objects are classified together, in columns; ``of_detection`` and ``of_truth`` return one
  row.
- A mistake is ``[kind, class, overlap, score]``: the kind as a position in ``KINDS``; class and overlap of
  the other box, None without one; the score if the other box is a detection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.naming_errors import ERROR_TYPES, largest_overlaps
from boxscore.extensions.pages.curve_view import significant
from boxscore.matching.outcomes import MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import listed_scores, ranked_by

KINDS = (*ERROR_TYPES, "below_threshold")
"""TIDE's kinds, and objects that only a detection below the score matches."""

BACKGROUND_IOU = 0.1

Rows = NDArray[np.intp]


class Named(NamedTuple):
    """The description of each row of a table as a mistake; arrays [N]."""

    kind: NDArray[np.int8]
    """Position in :data:`KINDS`."""
    category: NDArray[np.int32]
    """Class of the other box; -1 for none."""
    overlap: NDArray[np.float64]
    """Overlap with the other box; NaN for none."""
    score: NDArray[np.float64]
    """Score of the other box if it is a detection; else NaN."""

    def row(self, row: int) -> list[Any]:
        """Return the fields of one mistake, as the page uses them."""
        category = int(self.category[row])
        overlap, score = (values[row : row + 1] for values in (self.overlap, self.score))
        return [
            int(self.kind[row]),
            None if category < 0 else category,
            significant(overlap, 2)[0],
            significant(score, 3)[0],
        ]


class Mistakes:
    """Describes the mistakes of an evaluation at a score.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float
        Leave out detections that score below this.

    Attributes
    ----------
    detections : Named, [D]
        Description of each detection if it is a false positive.
    truths : Named, [G]
        Description of each object if it is missed.
    """

    def __init__(self, evaluation: Evaluation, *, score_threshold: float) -> None:
        ignored = evaluation._matcher.ignoring.ignored
        # Use the overlaps of the kinds of error, without their cap.
        pairs = evaluation._matcher.across_classes(iou_threshold=BACKGROUND_IOU, by_foreground=ignored)
        counting = np.flatnonzero(~ignored[pairs.truth])
        overlaps = pairs.detection[counting], pairs.truth[counting], pairs.iou[counting]
        outcome = evaluation.outcomes.truth(score_threshold)
        # Find the detection that matched each ground truth, at any score; -1 for none.
        match = np.full(len(outcome), -1, dtype=np.intp)
        matched = np.flatnonzero(evaluation.outcomes.detection == TRUE_POSITIVE)
        match[evaluation.outcomes.truth_row[matched]] = matched
        self.detections = _of_detections(evaluation, *overlaps, outcome, match)
        self.truths = _of_truths(evaluation, *overlaps, outcome, match, score_threshold)

    def of_detection(self, row: int) -> list[Any]:
        """Return the kind of a false positive, and its object."""
        return self.detections.row(row)

    def of_truth(self, row: int) -> list[Any]:
        """Return the detection nearest to a missed object."""
        return self.truths.row(row)


def _of_detections(
    evaluation: Evaluation,
    detection: Rows,
    truth: Rows,
    overlap: NDArray[np.float64],
    outcome: NDArray[np.int8],
    match: Rows,
) -> Named:
    # Find the largest overlap of each detection: with its class, another class, and a detected object.
    objects, detections = evaluation.ground_truth, evaluation.detections
    threshold, count = evaluation.protocol.matching.iou_thresholds[0], len(detections)
    same_class = objects.category[truth] == detections.category[detection]
    same, same_overlap = largest_overlaps(detection, truth, overlap, same_class, count)
    other, other_overlap = largest_overlaps(detection, truth, overlap, ~same_class, count)
    detected = same_class & (outcome[truth] == TRUE_POSITIVE)
    twice, twice_overlap = largest_overlaps(detection, truth, overlap, detected, count)
    # Apply TIDE's rules in TIDE's order: the first that holds decides.
    kinds = [KINDS.index(name) for name in ("localization", "classification", "duplicate", "background")]
    rules = [
        (same_overlap >= BACKGROUND_IOU) & (same_overlap <= threshold),
        other_overlap >= threshold,
        twice_overlap >= threshold,
        (same < 0) & (other < 0),
    ]
    # A detection without a rule has both errors; its partner has the largest overlap.
    nearest = np.where(other_overlap > same_overlap, other, same)
    partner = np.select(rules, [same, other, twice, -1], nearest)
    value = np.select(
        rules,
        [same_overlap, other_overlap, twice_overlap, np.nan],
        np.maximum(same_overlap, other_overlap),
    )
    kind = np.select(rules, kinds, KINDS.index("both")).astype(np.int8)
    # For a duplicate, take the score of the matched detection.
    score = np.full(count, np.nan)
    duplicates = np.flatnonzero(kind == KINDS.index("duplicate"))
    score[duplicates] = listed_scores(detections)[match[partner[duplicates]]]
    return Named(kind, _classes_of(objects.category, partner), value, score)


def _of_truths(
    evaluation: Evaluation,
    detection: Rows,
    truth: Rows,
    overlap: NDArray[np.float64],
    outcome: NDArray[np.int8],
    match: Rows,
    score_threshold: float,
) -> Named:
    # For each object, find the shown detection of any class with the largest overlap.
    detections = evaluation.detections
    by_truth = np.lexsort((detection, truth))
    detection, truth, overlap = detection[by_truth], truth[by_truth], overlap[by_truth]
    shown = ranked_by(detections)[detection] >= score_threshold
    partner, value = largest_overlaps(truth, detection, overlap, shown, len(outcome))
    value[partner < 0] = np.nan
    # An object matched only below the score threshold is described by that match.
    below = np.flatnonzero((match >= 0) & (outcome == MISSED))
    partner[below] = match[below]
    value[below] = evaluation.outcomes.iou[match[below]]
    kind = np.full(len(outcome), KINDS.index("missed"), dtype=np.int8)
    kind[below] = KINDS.index("below_threshold")
    # Take the score of the described detection.
    score = np.full(len(outcome), np.nan)
    some = np.flatnonzero(partner >= 0)
    score[some] = listed_scores(detections)[partner[some]]
    return Named(kind, _classes_of(detections.category, partner), value, score)


def _classes_of(category: NDArray[np.int32], rows: Rows) -> NDArray[np.int32]:
    """Return the classes of rows; -1 for row -1."""
    classes = np.full(len(rows), -1, dtype=np.int32)
    some = np.flatnonzero(rows >= 0)
    classes[some] = category[rows[some]]
    return classes
