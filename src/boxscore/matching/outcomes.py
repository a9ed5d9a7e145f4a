"""Read the outcome of every row of the two tables, at one IoU threshold and area range.

Tables, galleries, drawings and lists of won and lost images share these outcomes instead of matching again.

Conventions
-----------
- :func:`outcomes_by_row` converts outcomes from the class order of
  :class:`~boxscore.matching.matches.Matches` to the row order of the tables.
- Greedy matching takes detections by descending score, so detections below a score never change the outcomes
  of those above: outcomes at a score do not need a second matching. Protocols where this fails reject the way
  ``cuts`` (:mod:`boxscore.protocols.acting`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import record
from boxscore._utils.text import counted
from boxscore.matching.matches import Matches

TRUE_POSITIVE, FALSE_POSITIVE, IGNORED, MISSED = range(4)
OUTCOMES = ("true positive", "false positive", "ignored", "missed")
"""Names of these codes, in order."""


@record(frozen=True, eq=False)
class Outcomes:
    """Columns in the row order of the tables.

    Attributes
    ----------
    detection : ndarray of int8, [D]
        ``TRUE_POSITIVE``, ``FALSE_POSITIVE`` or ``IGNORED``; a detection beyond max detections is ignored.
    truth_row : ndarray of int64, [D]
        Row of the matched ground truth; -1 if unmatched.
    iou : ndarray of float64, [D]
        Overlap with it; NaN if unmatched.
    rank : ndarray of int64, [D]
        Position among the detections of the same image and class, from 0; -1 beyond max detections.
    counted : ndarray of bool, [G]
        Whether the ground truth is counted; otherwise it is ignored.
    matched_score : ndarray of float64, [G]
        Score of the true positive that matched it; NaN if unmatched.
    """

    detection: NDArray[np.int8]
    truth_row: NDArray[np.int64]
    iou: NDArray[np.float64]
    rank: NDArray[np.int64]
    counted: NDArray[np.bool_]
    matched_score: NDArray[np.float64]

    def __repr__(self) -> str:
        return (
            f"Outcomes({counted(len(self.rank), 'detection')}, {counted(len(self.counted), 'ground truth')})"
        )

    def truth(self, score_threshold: float = -np.inf) -> NDArray[np.int8]:
        """Outcome of each ground truth, [G], when only detections of at least this score count."""
        matched = np.where(self.matched_score >= score_threshold, TRUE_POSITIVE, MISSED)
        return np.where(self.counted, matched, IGNORED).astype(np.int8)


def outcomes_by_row(
    matches: Matches, detection_count: int, truth_count: int, *, threshold: int = 0, area: int = 0
) -> Outcomes:
    """Return the outcomes at an IoU threshold and area range, given as positions on the axes T and A."""
    made = matches.detection_outcomes(threshold, area)
    detection = np.full(detection_count, IGNORED, dtype=np.int8)
    detection[matches.row] = np.select([made.true, made.counted], [TRUE_POSITIVE, FALSE_POSITIVE], IGNORED)
    matched = np.flatnonzero(made.matched)
    truth_row = np.full(detection_count, -1, dtype=np.int64)
    truth_row[matches.row[matched]] = matches.truth_row[made.truth[matched]]
    iou, rank = np.full(detection_count, np.nan), np.full(detection_count, -1)
    iou[matches.row], rank[matches.row] = made.iou, matches.rank
    counted = np.zeros(truth_count, dtype=bool)
    counted[matches.truth_row] = matches.counted(area)
    matched_score = np.full(truth_count, np.nan)
    true = np.flatnonzero(made.true)
    matched_score[matches.truth_row[made.truth[true]]] = matches.score[true]
    return Outcomes(detection, truth_row, iou, rank, counted, matched_score)
