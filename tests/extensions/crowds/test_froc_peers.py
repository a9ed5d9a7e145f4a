"""FROC beside the tools that people cite for it; skipped where they are not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import froc_scores
from support.curves import K, tables

FPPI = (0.125, 0.25, 0.5, 1, 2, 4, 8)
CASES = [(seed, levels) for seed in range(4) for levels in (3, 12, 10**9)]


def outcomes(seed: int, levels: int) -> tuple[boxscore.Evaluation, Any]:
    """An evaluation, and its counted detections."""
    protocol = {"extends": "coco", "matching": {"iou_thresholds": [0.2]}}
    evaluation = boxscore.evaluate(*tables(seed, scores=levels), protocol=protocol)
    rows = evaluation.matches[evaluation.matches["outcome"].isin(["true positive", "false positive"])]
    return evaluation, rows


@pytest.mark.parametrize(("seed", "levels"), CASES)
def test_monai(seed: int, levels: int) -> None:
    metrics = pytest.importorskip("monai.metrics")
    evaluation, rows = outcomes(seed, levels)
    ours = froc_scores(evaluation)
    assert ours.total.mean > 0.05
    truth = evaluation.ground_truth
    for label, expected in (("0", ours.per_class.mean[0]), ("1", ours.per_class.mean[1])):
        mine = rows[rows["class"] == label]
        true = (mine["outcome"] == "true positive").to_numpy()
        objects = int((~truth.crowd & (truth.category == int(label))).sum())
        scores = mine["score"].to_numpy() + 1  # MONAI's missed objects have 0
        missed = np.zeros(objects - int(true.sum()))
        assert len(missed)  # or MONAI would leave out the lowest score
        hits = np.concatenate([scores[true], missed])
        curve = metrics.compute_froc_curve_data(scores[~true], hits, objects, len(truth.images))
        assert metrics.compute_froc_score(*curve, eval_thresholds=FPPI) == expected


@pytest.mark.parametrize(("seed", "levels"), CASES)
def test_luna16(seed: int, levels: int) -> None:
    """``computeFROC`` of LUNA16 and nnDetection: scikit-learn's ROC, its axes scaled."""
    metrics = pytest.importorskip("sklearn.metrics")
    evaluation, rows = outcomes(seed, levels)
    ours = froc_scores(evaluation)
    truth = evaluation.ground_truth
    of_classes = [(rows[rows["class"] == str(k)], (truth.category == k) & ~truth.crowd) for k in range(K)]
    expected = []
    for mine, counted in [*of_classes, (rows, ~truth.crowd)]:
        true = (mine["outcome"] == "true positive").to_numpy()
        if not counted.sum() or not len(mine):
            expected.append([0.0 if counted.sum() else np.nan] * len(FPPI))
            continue
        false_rate, true_rate, _ = metrics.roc_curve(true, mine["score"])
        per_image = false_rate * (~true).sum() / len(truth.images)
        expected.append(np.interp(FPPI, per_image, true_rate * true.sum() / counted.sum()))
    got = np.vstack([ours.per_class.sensitivity, ours.total.sensitivity])
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15)
