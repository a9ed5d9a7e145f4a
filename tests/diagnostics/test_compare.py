"""Paired comparison."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import bootstrap_intervals, compare_detectors


def two(scene, *, noise):
    """A detector, and the same with noise on its scores."""
    truth, detections = scene(0, images=80)
    random = np.random.default_rng(0)
    worse = dataclasses.replace(
        detections, scores=detections.scores + noise * random.normal(size=len(detections))
    )
    return {"good": boxscore.evaluate(truth, detections), "noisy": boxscore.evaluate(truth, worse)}


def test_equal_detectors(scene):
    results = two(scene, noise=0)
    row = compare_detectors(results, metrics=["AP"], resamples=50).total_frame().iloc[0]
    assert (row["delta"], row["low"], row["high"], row["probability"]) == (0, 0, 0, 0.5)
    assert row["verdict"] == "cannot tell"


def test_deltas_are_of_the_scores(scene):
    results = two(scene, noise=0.3)
    comparison = compare_detectors(results, resamples=50)
    table = comparison.to_frame()
    for row in comparison.total_frame().itertuples():
        assert row.delta == pytest.approx(
            results["noisy"].metrics[row.metric] - results["good"].metrics[row.metric], abs=1e-12, nan_ok=True
        )
    assert set(table["class"]) == {*results["good"].labels}
    for row in table.itertuples():
        k = results["good"].labels.index(row._3)
        values = [result.class_values[row.metric][k] for result in results.values()]
        assert (row.value_first, row.value_other) == pytest.approx(tuple(values), abs=1e-12, nan_ok=True)


def test_pairing_is_surer_than_two_intervals(scene):
    results = two(scene, noise=0.05)
    apart = [
        bootstrap_intervals(r, metrics=["AP50"], resamples=200).total.standard_error[0]
        for r in results.values()
    ]
    paired = compare_detectors(results, metrics=["AP50"], resamples=200).total.standard_error[0, 0]
    assert paired < 0.7 * np.hypot(*apart)


def test_a_real_difference_is_found(scene):
    truth, detections = scene(0, images=80)
    shifted = dataclasses.replace(detections, boxes=detections.boxes + 8)
    results = {"good": boxscore.evaluate(truth, detections), "shifted": boxscore.evaluate(truth, shifted)}
    row = compare_detectors(results, metrics=["AP"], resamples=200).total_frame().iloc[0]
    assert row["verdict"] == "worse"
    assert row["probability"] < 0.025
    assert row["decided_by_ties"] is False


def test_decided_by_ties():
    truth = boxscore.GroundTruth.from_arrays([1, 2], [1, 1], [[0, 0, 9, 9]] * 2)
    boxes = [[0, 0, 9, 9], [50, 50, 59, 59]]
    results = {
        name: boxscore.evaluate(truth, boxscore.Detections.from_arrays([1, 1], [1, 1], order, [0.5, 0.5]))
        for name, order in (("hit first", boxes), ("hit last", boxes[::-1]))
    }
    row = compare_detectors(results, metrics=["AP"], resamples=5).total_frame().iloc[0]
    assert row["delta"] < 0
    assert row["decided_by_ties"] is True


def test_refusals(scene):
    results = two(scene, noise=0)
    with pytest.raises(boxscore.InputError, match="two results or more"):
        compare_detectors({"one": results["good"]})
    with pytest.raises(boxscore.InputError, match="one ground truth"):
        compare_detectors({"a": results["good"], "b": boxscore.evaluate(*scene(1))})
    truth, detections = scene(0, images=80)
    with pytest.raises(boxscore.InputError, match="one protocol"):
        compare_detectors(
            {"a": results["good"], "b": boxscore.evaluate(truth, detections, protocol="voc2012")}
        )
