"""Counts at every score against a loop over thresholds; outcomes of made-up detections."""

from __future__ import annotations

import numpy as np
import pytest
from tests.scoring.test_curves import RANGES, K, tables

import boxscore
from boxscore.scoring.counts import HitCounts, Outcomes, ScoreCounts, counted_detections


@pytest.mark.parametrize("scores", [4, 10**9])
@pytest.mark.parametrize("area", range(3))
def test_score_counts(area: int, scores: int) -> None:
    rules = {"extends": "coco", "ignore": {"area_ranges": RANGES}, "summary": []}
    evaluation = boxscore.evaluate(*tables(11, scores=scores), protocol=rules)
    matches = evaluation.matched
    counts = evaluation.score_counts(0, area)
    assert evaluation.score_counts(0, area) is counts
    outcomes = matches.detection_outcomes(0, area)
    for k in range(K + 1):
        mine = outcomes.counted & ((matches.category == k) | (k == K))
        part = counts.part(k)
        assert counts.score[part].tolist() == sorted(set(matches.score[mine].tolist()), reverse=True)
        for score, true, false, distance in zip(
            counts.score[part], counts.true[part], counts.false[part], counts.distance[part], strict=True
        ):
            kept = mine & (matches.score >= score)
            assert true == (kept & outcomes.true).sum()
            assert false == (kept & ~outcomes.true).sum()
            assert distance == pytest.approx((1 - outcomes.iou[kept & outcomes.true]).sum(), abs=1e-12)
    assert counts.positive.tolist() == [*matches.positives(area), matches.positives(area).sum()]


def test_nothing_counted() -> None:
    truth, found = tables(3)
    nothing = found.take(np.empty(0, dtype=np.intp))
    counts = ScoreCounts.of(counted_detections(boxscore.evaluate(truth, nothing).matched, 0, 0))
    assert len(counts.score) == 0
    assert counts.bounds.tolist() == [0] * (K + 2)


def test_counts_of_detections_that_are_made_up() -> None:
    """Two classes; the second detection is ignored, and counts neither for nor against."""
    outcomes = Outcomes.all_counted(
        np.array([0, 0, 0, 1]),
        np.array([0.9, 0.8, 0.7, 0.6]),
        np.array([[True, False, True, False]]),
        np.array([3, 0]),
        ignored=np.array([[False, True, False, False]]),
    )
    counts = HitCounts(outcomes)
    assert counts.hits.tolist() == [[2, 0]]
    assert counts.totals().tolist() == [[2, 1]]
    assert [(nth.tolist(), counted.tolist()) for nth, counted in counts.lines()] == [([1, 2], [1, 2])]
    assert counts.hit_detections().tolist() == [0, 2]
    first, has_first = counts.first_detections()
    assert (first.tolist(), has_first.tolist()) == ([0, 3], [True, True])
