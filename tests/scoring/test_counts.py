"""Counts at every score against a loop over thresholds."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import confidence_curve, localization_recall_precision
from support.curves import RANGES, K, outcomes_at, tables


@pytest.mark.long
@pytest.mark.parametrize("scores", [4, 10**9])
@pytest.mark.parametrize("area", RANGES)
@pytest.mark.parametrize("iou", [0.5, 0.7])
def test_every_score(iou: float, area: str, scores: int) -> None:
    rules = {"extends": "coco", "ignore": {"area_ranges": RANGES}, "summary": []}
    evaluation = boxscore.evaluate(*tables(11, scores=scores), protocol=rules)
    curve = confidence_curve(evaluation, iou_threshold=iou, area=area)
    alone = outcomes_at(11, iou, area, 100, scores)
    rows = alone.matches[alone.matches["outcome"].isin(["true positive", "false positive"])]
    positive = [*alone.class_counts["ground_truths"], alone.class_counts["ground_truths"].sum()]
    for k in range(K + 1):
        mine = rows if k == K else rows[rows["class"] == str(k)]
        rates = curve.of_class(k)
        assert rates.score.tolist() == sorted(set(mine["score"]), reverse=True)
        for score, true, false, missed in zip(*rates[:4], strict=True):
            kept = mine[mine["score"] >= score]["outcome"].tolist()
            assert true == kept.count("true positive")
            assert false == kept.count("false positive")
            assert missed == positive[k] - true
    for score in curve.total.score[::9].tolist():
        table = localization_recall_precision(evaluation, iou_threshold=iou, area=area, at_score=score)
        found = rows[(rows["score"] >= score) & (rows["outcome"] == "true positive")]
        distance = (1 - found["iou"]).groupby(found["class"]).mean().reindex(evaluation.labels)
        np.testing.assert_allclose(table.to_frame()["localization"], distance, atol=1e-12, rtol=0)


def test_nothing_counted() -> None:
    truth, found = tables(3)
    evaluation = boxscore.evaluate(truth, found.take(np.empty(0, dtype=np.intp)))
    curve = confidence_curve(evaluation)
    assert curve.bounds.tolist() == [0] * (K + 2)
    assert len(curve.to_frame()) == len(curve.total_frame()) == 0
    assert np.isnan(localization_recall_precision(evaluation).to_frame()["localization"]).all()
