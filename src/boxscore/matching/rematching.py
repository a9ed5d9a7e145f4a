"""Matching some rows of one table again and again, without measuring any overlap twice.

Goal
----
Suppression settings, score thresholds and the like choose rows, and may lower scores; how much a detection
overlaps a ground truth stays. So the overlaps of all rows are found once, and every choice is only matched.

Conventions
-----------
The matches are, to the bit, those of :func:`boxscore.evaluation.match_tables` with the chosen rows: a test
compares them.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import ragged_ranges, stable_order
from boxscore.data.alignment import pool_classes
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.candidates import Pairs, candidate_pairs, detection_areas, with_needed_columns
from boxscore.matching.greedy import Matches, match
from boxscore.matching.ranking import Ranking, rank_detections
from boxscore.protocols.protocol import Protocol

__all__ = ["Rematcher"]


class Rematcher:
    """The overlaps of two tables, for matching any of the detections.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        With the same vocabularies.
    protocol : Protocol
    """

    def __init__(self, ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> None:
        detections = with_needed_columns(ground_truth, detections, protocol)
        self._place = np.arange(len(detections))  # [D], where a row stands in the table that is matched
        if not protocol.matching.per_class:
            self._place[stable_order(detections.category, len(detections.categories))] = self._place.copy()
            ground_truth, detections = pool_classes(ground_truth), pool_classes(detections)
        self._truth, self._detections, self._protocol = ground_truth, detections, protocol
        self._areas = detection_areas(detections, protocol)
        group = detections.image.astype(np.int64) * len(detections.categories) + detections.category
        rows = stable_order(group, len(detections.images) * len(detections.categories))
        everyone = np.arange(len(rows))
        ranking = Ranking(rows, np.zeros(len(rows), dtype=np.int32), everyone, group[rows])
        found = candidate_pairs(ground_truth, detections, ranking, protocol)
        row = rows[found.detection]
        by_row = stable_order(row, len(rows))
        self._pair_truth, self._iou = found.ground_truth[by_row], found.iou[by_row]
        self._count = np.bincount(row, minlength=len(rows))  # [D]
        self._start = np.cumsum(self._count) - self._count

    def match(self, rows: NDArray[np.int64], scores: NDArray[np.float64]) -> Matches:
        """Match some detections.

        Parameters
        ----------
        rows : ndarray of int64, [K]
            Of the table, each once, in any order: they are matched in that of the table.
        scores : ndarray of float64, [K]
            Their scores, which may differ from the table's.

        Returns
        -------
        Matches
            ``row`` counts among the chosen rows in the order of the table.
        """
        lowered = np.full(len(self._place), np.nan)
        lowered[self._place[rows]] = scores
        place = np.flatnonzero(~np.isnan(lowered))
        chosen = dataclasses.replace(self._detections.take(place), scores=lowered[place])
        ranking = rank_detections(chosen, self._protocol)
        row = place[ranking.rows[ranking.grouped]]
        counts = self._count[row]
        pairs = ragged_ranges(self._start[row], counts)
        candidates = Pairs(np.repeat(ranking.grouped, counts), self._pair_truth[pairs], self._iou[pairs])
        return match(self._truth, chosen, ranking, candidates, self._areas[place], self._protocol)
