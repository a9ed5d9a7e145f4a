"""Calibration errors against direct loops."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import calibration_error, reliability
from support.examples import first_of


def direct(evaluation, label, bins):
    """ECE, MCE and LaECE of one class by a loop over bins."""
    rows = evaluation.matches
    rows = rows[rows["outcome"].isin(["true positive", "false positive"])]
    if label != "(all)":
        rows = rows[rows["class"] == label]
    expected, worst, localised = 0.0, 0.0, 0.0
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        inside = rows[((rows["score"] > low) | (b == 0)) & (rows["score"] <= high + 1e-15)]
        if not len(inside):
            continue
        hits = inside[inside["outcome"] == "true positive"]
        accuracy, confidence = len(hits) / len(inside), inside["score"].mean()
        gap = abs(accuracy - confidence)
        overlap = hits["iou"].mean() if len(hits) else 0.0
        share = len(inside) / len(rows)
        expected += share * gap
        worst = max(worst, gap)
        localised += share * abs(accuracy * overlap - confidence)
    return expected, worst, localised


@pytest.mark.parametrize("bins", [10, 7])
@pytest.mark.parametrize("seed", first_of(1, range(3)))
def test_equal_to_a_loop(scene, seed, bins):
    evaluation = boxscore.evaluate(*scene(seed, images=40))
    table = calibration_error(evaluation, bins=bins).printed_frame().set_index("class")
    for label in [*evaluation.labels, "(all)"]:
        if table.loc[label, "detections"]:
            row = table.loc[label, ["expected_error", "maximum_error", "localisation_expected_error"]]
            np.testing.assert_allclose(row.astype(float), direct(evaluation, label, bins), atol=1e-12)


def test_mean_over_classes(scene):
    result = calibration_error(boxscore.evaluate(*scene(1, images=40)))
    mean = result.to_frame()["expected_error"].mean()
    assert result.mean.expected_error == pytest.approx(mean)
    assert result.total_frame()["class"].tolist() == ["(all)", "(mean)"]


def test_equal_counts(scene):
    counts = reliability(boxscore.evaluate(*scene(1, images=40)), bins=5, binning="count").total.detections
    assert counts.max() - counts.min() <= 1


def test_perfect_detector():
    truth = boxscore.GroundTruth.from_arrays(range(50), [1] * 50, [[0, 0, 9, 9]] * 50)
    found = boxscore.Detections.from_arrays(range(50), [1] * 50, [[0, 0, 9, 9]] * 50, [1.0] * 50)
    errors = calibration_error(boxscore.evaluate(truth, found)).per_class
    assert errors.expected_error.tolist() == [0]
    assert errors.maximum_error.tolist() == [0]
    assert errors.localisation_expected_error.tolist() == [0]


def test_scores_must_be_probabilities(scene):
    truth, detections = scene(0)
    percent = dataclasses.replace(detections, scores=detections.scores * 100)
    with pytest.raises(boxscore.InputError, match=r"lie in \[0, 1\] for calibration"):
        calibration_error(boxscore.evaluate(truth, percent))
