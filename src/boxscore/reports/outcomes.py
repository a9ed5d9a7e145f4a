"""What became of every detection and every ground truth, as plain columns.

Goal
----
One small value that galleries, drawings and "won and lost" lists read, so that none of them matches again.

Conventions
-----------
- Outcomes are those at the protocol's first IoU threshold and first area range.
- Greedy matching goes by descending score, so detections below a score never change what became of those
  above it: reading the columns "at a score" needs no second matching.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from boxscore.evaluation import Evaluation

__all__ = ["FALSE_POSITIVE", "IGNORED", "MISSED", "OUTCOMES", "TRUE_POSITIVE", "Outcomes", "read_outcomes"]

TRUE_POSITIVE, FALSE_POSITIVE, IGNORED, MISSED = range(4)
OUTCOMES = ("true positive", "false positive", "ignored", "missed")
"""Names of the codes above."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """Columns in the row order of the tables.

    Attributes
    ----------
    detection : ndarray of int8, [D]
        ``TRUE_POSITIVE``, ``FALSE_POSITIVE`` or ``IGNORED``; a detection beyond the cap is ignored.
    truth_of : ndarray of int64, [D]
        Row of the ground truth that the detection matched; -1 for none.
    iou : ndarray of float64, [D]
        Overlap with it; NaN for none.
    counted : ndarray of bool, [G]
        Whether the ground truth counts, or is ignored.
    found_at : ndarray of float64, [G]
        Score of the detection that found it; NaN where none did.
    """

    detection: NDArray[np.int8]
    truth_of: NDArray[np.int64]
    iou: NDArray[np.float64]
    counted: NDArray[np.bool_]
    found_at: NDArray[np.float64]

    def truths_at(self, score: float) -> NDArray[np.int8]:
        """Outcome of each ground truth, [G], when only detections of at least ``score`` are kept."""
        found = np.where(self.found_at >= score, TRUE_POSITIVE, MISSED)
        return np.where(self.counted, found, IGNORED).astype(np.int8)


def read_outcomes(evaluation: Evaluation) -> Outcomes:
    """Read the outcomes from an evaluation's matches.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    Outcomes
    """
    matched = evaluation.matched
    D, G = len(evaluation.detections), len(evaluation.ground_truth)
    rows = evaluation.unpooled_rows(evaluation.detections)[matched.row]
    truth_rows = evaluation.unpooled_rows(evaluation.ground_truth)[matched.truth_row]
    cap = evaluation.protocol.caps[-1]
    inside = (matched.in_range & 1).astype(bool)
    if cap is not None:
        inside &= matched.rank < cap
    detection = np.full(D, IGNORED, dtype=np.int8)
    detection[rows] = np.where(inside, FALSE_POSITIVE, IGNORED)

    pairs = np.flatnonzero(matched.matched[:, 0] & 1)
    true = (matched.counted_pairs[pairs, 0] & 1).astype(bool)
    matched_rows, matched_truths = rows[matched.pair_detection[pairs]], truth_rows[matched.pair_truth[pairs]]
    detection[matched_rows] = np.where(true, TRUE_POSITIVE, IGNORED)
    truth_of, iou = np.full(D, -1, dtype=np.int64), np.full(D, np.nan)
    truth_of[matched_rows], iou[matched_rows] = matched_truths, matched.iou[pairs]

    counted = np.zeros(G, dtype=bool)
    counted[truth_rows] = (matched.counted & 1).astype(bool)
    found_at = np.full(G, np.nan)
    found_at[matched_truths[true]] = evaluation.detections.scores[matched_rows[true]]
    return Outcomes(detection, truth_of, iou, counted, found_at)
