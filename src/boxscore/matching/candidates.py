"""Candidate pairs: the detections and ground truths of one image and class that agree enough to match.

Goal
----
Avoid the full matrix of detections and ground truths, which is almost empty. Pairs are made only inside an
(image, category) group that has both; the similarity decides what is compared, and how. A detection without
a pair is a false positive at every threshold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import ragged_ranges, run_starts, stable_order
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.ignoring import Ignoring
from boxscore.matching.ranking import Ranking
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.pairs import Comparison
from boxscore.similarity.registry import similarity_of

__all__ = ["Pairs", "candidate_pairs"]


class Pairs(NamedTuple):
    """Overlapping pairs in group order, and inside one detection in file order of the ground truths."""

    detection: NDArray[np.intp]  # [P] positions in class order (Ranking.rows)
    ground_truth: NDArray[np.intp]  # [P] rows of the table
    iou: NDArray[np.float64]  # [P]


def candidate_pairs(
    ground_truth: GroundTruth,
    detections: Detections,
    ranking: Ranking,
    protocol: Protocol,
    ignoring: Ignoring,
) -> Pairs:
    """Find every pair whose similarity reaches the lowest threshold."""
    category_count = len(ground_truth.categories)
    truth_group = ground_truth.image.astype(np.int64) * category_count + ground_truth.category
    truth_rows = stable_order(truth_group, len(ground_truth.images) * category_count)
    truth_rows = truth_rows[~ignoring.deleted[truth_rows]]
    truth_group = truth_group[truth_rows]
    truth_starts = run_starts(truth_group)
    groups = truth_group[truth_starts]  # the (image, category) groups that have a ground truth

    grouped_rows = np.take(ranking.rows, ranking.grouped)
    starts = np.searchsorted(ranking.group, groups, side="left")
    counts = np.searchsorted(ranking.group, groups, side="right") - starts

    # Compact: only detections in a group with a ground truth, still in group order.
    positions = ragged_ranges(starts, counts)
    compact_starts = np.cumsum(counts) - counts
    truths_in_group = np.diff(np.append(truth_starts, len(truth_rows)))
    pairs = similarity_of(protocol).of_pairs(
        ground_truth,
        detections,
        Comparison(
            truth_rows,
            np.take(grouped_rows, positions),
            np.repeat(compact_starts, truths_in_group),
            np.repeat(counts, truths_in_group),
            ignoring.by_foreground[truth_rows] if ignoring.by_foreground.any() else None,
            float(protocol.matching.effective_thresholds[0]),
        ),
    )
    order = stable_order(pairs.detection, len(positions))
    detection = np.take(ranking.grouped, np.take(positions, pairs.detection[order]))
    return Pairs(detection, np.take(truth_rows, pairs.truth[order]), pairs.value[order])
