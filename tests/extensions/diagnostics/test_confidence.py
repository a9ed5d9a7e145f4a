"""Operating points against a brute-force sweep."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import confidence_curve, operating_points


def sweep(frame, labels):
    """Precision, recall and F1 of every threshold of every class, from one row a detection."""
    detections, positive = frame
    for label in [*labels, "(all)"]:
        chosen = detections if label == "(all)" else detections[detections["class"] == label]
        count = sum(positive.values()) if label == "(all)" else positive[label]
        points = {}
        for threshold in sorted(set(chosen["score"]), reverse=True):
            kept = chosen[chosen["score"] >= threshold]
            true = int((kept["outcome"] == "true positive").sum())
            false = int((kept["outcome"] == "false positive").sum())
            if true + false:
                f1 = 2 * true / (2 * true + false + count - true)
                points[threshold] = (true, false, count - true, f1)
        yield label, count, points


def detections_and_positives(evaluation):
    matches = evaluation.matches
    matches = matches[matches["outcome"].isin(["true positive", "false positive"])]
    counts = evaluation.per_class.set_index("class")["ground_truths"]
    return matches, counts.to_dict()


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_a_sweep(scene, seed):
    evaluation = boxscore.evaluate(*scene(seed, decimals=1 if seed % 2 else None))
    curve = confidence_curve(evaluation).printed_frame().set_index(["class", "score"])
    best = operating_points(evaluation).printed_frame().set_index("class")
    for label, count, points in sweep(detections_and_positives(evaluation), evaluation.labels):
        assert len(points) == len(curve.loc[[label]] if label in curve.index else [])
        for threshold, (true, false, missed, f1) in points.items():
            row = curve.loc[(label, threshold)]
            assert (row["true_positives"], row["false_positives"], row["false_negatives"]) == (
                true,
                false,
                missed,
            )
            assert row["f_score"] == pytest.approx(f1, abs=1e-12)
            assert row["precision"] == true / (true + false)
        if points and count:
            highest = max(point[-1] for point in points.values())
            assert best.loc[label, "f_score"] == pytest.approx(highest, abs=1e-12)
            assert best.loc[label, "score"] == max(
                t for t, p in points.items() if p[-1] == pytest.approx(highest, abs=1e-12)
            )


def test_asked_for(scene):
    evaluation = boxscore.evaluate(*scene(3, images=60))
    overall = confidence_curve(evaluation).total
    at = operating_points(evaluation, at_precision=0.5).total
    assert at.score == overall.score[overall.precision >= 0.5].min()
    at = operating_points(evaluation, at_recall=0.3).total
    assert at.score == overall.score[overall.recall >= 0.3].max()
    at = operating_points(evaluation, at_score=0.5).total
    assert at.score == 0.5
    assert at.true_positives == overall.true_positives[overall.score >= 0.5].max()
    high = operating_points(evaluation, at_score=2.0)
    assert (high.per_class.true_positives == 0).all()
    assert (high.per_class.false_negatives == evaluation.class_counts["ground_truths"]).all()
    assert np.isnan(high.per_class.precision).all()
    assert np.nanmax(high.per_class.recall) == np.nanmax(high.per_class.f_score) == 0


def test_beta_moves_the_threshold(scene):
    evaluation = boxscore.evaluate(*scene(5, images=60))
    precise, complete = (operating_points(evaluation, beta=beta).total for beta in (0.25, 4))
    assert precise.score >= complete.score
    assert precise.precision >= complete.precision


def test_nothing_qualifies(scene):
    evaluation = boxscore.evaluate(*scene(1))
    result = operating_points(evaluation, at_recall=1.0)
    assert np.isnan(result.total.score)
    assert result.total_frame()["true_positives"].isna().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"at_score": 0.5, "at_recall": 0.5},
            "an operating point must be chosen in one way. Got at_score and at_recall",
        ),
        ({"iou_threshold": 0.61}, "threshold of the protocol"),
        ({"area": "tiny"}, "area must be one of"),
        ({"beta": 0}, "beta must be"),
        ({"at_precision": 1.5}, "at_precision must be"),
    ],
)
def test_refusals(scene, options, message):
    with pytest.raises(boxscore.InputError, match=message):
        operating_points(boxscore.evaluate(*scene(0)), **options)
