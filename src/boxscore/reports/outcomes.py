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
    made = matched.detection_outcomes(0, 0)
    detection = np.full(D, IGNORED, dtype=np.int8)
    detection[matched.row] = np.select([made.true, made.counted], [TRUE_POSITIVE, FALSE_POSITIVE], IGNORED)
    hit = np.flatnonzero(made.matched)
    truth_of, iou = np.full(D, -1, dtype=np.int64), np.full(D, np.nan)
    truth_of[matched.row[hit]] = matched.truth_row[made.truth[hit]]
    iou[matched.row] = made.iou
    counted = np.zeros(G, dtype=bool)
    counted[matched.truth_row] = matched.counted(0)
    found_at = np.full(G, np.nan)
    true = np.flatnonzero(made.true)
    found_at[matched.truth_row[made.truth[true]]] = matched.score[true]
    return Outcomes(detection, truth_of, iou, counted, found_at)
