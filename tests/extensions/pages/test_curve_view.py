"""Thinning keeps the shape: every dropped point lies within the tolerance of what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore import diagnostics
from boxscore.extensions.pages.choices import Choices
from boxscore.extensions.pages.curve_view import MOST_CURVES, TOLERANCE, curve_view, thin
from boxscore.extensions.pages.diagnosis import STEP_TOLERANCE, analysis_view
from support.evaluations import empty_evaluation, evaluation, shapes


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.sampled_from([0.0, 0.001, 0.01, 0.1]))
def test_a_thinned_curve_stays_within_its_tolerance(seed: int, count: int, tolerance: float) -> None:
    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(0, 1, count))
    y = np.minimum.accumulate(random.uniform(0, 1, count).round(2))
    kept = thin(x, y, tolerance=tolerance)
    assert kept[0] == 0
    assert kept[-1] == count - 1
    assert (np.diff(kept) > 0).all()
    drawn = np.interp(x, x[kept], y[kept])
    assert np.abs(drawn - y).max() <= tolerance + 1e-12 or len(np.unique(x)) < count


def test_the_page_draws_the_curve_that_the_evaluation_has() -> None:
    result = shapes()
    view = curve_view(result)
    frame = result.curves()
    for k, lines in view["classes"].items():
        mine = frame[frame["class"] == result.labels[int(k)]]
        for iou, (x, y, _) in zip(view["thresholds"], lines, strict=True):
            truth = mine[np.isclose(mine["iou"], iou)]
            positive = truth["precision"] > 0
            if positive.any():
                whole = truth[positive]
                end = np.array(y) > 0
                drawn = np.interp(whole["recall"], np.array(x)[end] / 1000, np.array(y)[end] / 10_000)
                assert np.abs(drawn - whole["precision"]).max() < TOLERANCE + 0.0006


@pytest.mark.slow
@pytest.mark.parametrize("points", [101, 11])
def test_every_point_of_the_page_is_one_of_the_curve(points: int) -> None:
    """Whatever points the protocol averages over, with the score that reaches it, or none."""
    result = shapes()
    rules = {"extends": "coco", "ap": {"recall_points": np.linspace(0, 1, points).tolist()}}
    view = curve_view(boxscore.evaluate(result.ground_truth, result.detections, protocol=rules))
    frame, names, seen = result.curves(), result.labels, 0
    frame["at"] = (frame["recall"] * 1000).round().astype(int)
    for k, lines in view["classes"].items():
        for iou, line in zip(view["thresholds"], lines, strict=True):
            mine = frame[(frame["class"] == names[int(k)]) & np.isclose(frame["iou"], iou)].set_index("at")
            for at, precision, score in zip(*line, strict=True):
                own = mine.loc[at]
                if score is None and precision == 0:  # where it stops, it falls to zero at once
                    continue
                assert precision == pytest.approx(own["precision"] * 10_000, abs=0.5)
                assert score == (None if np.isnan(own["score"]) else float(f"{own['score']:.4g}"))
                seen += score is not None
    assert seen > 100


def test_many_curves_are_capped() -> None:
    view = curve_view(evaluation(classes=1203, images=2000))
    lines = sum(len(curves) for curves in view["classes"].values())
    assert lines <= MOST_CURVES
    assert view["left_out"] + len(view["thresholds"]) == 10


def test_the_steps_of_coco_s_analysis_are_those_of_the_diagnostic() -> None:
    result = shapes()
    view = analysis_view(result, Choices.of(result))
    assert view is not None
    curves, areas = diagnostics.error_curves(result), diagnostics.error_areas(result)
    shown = {"mean": (curves.mean, areas.total, view["mean"])}
    for k, lines in view["classes"].items():
        of_class = [float(values[int(k)]) for values in areas.per_class]
        shown[k] = (curves.precision[int(k)], of_class, lines)
    assert len(shown) == 6
    for precision, of_class, (rounded, lines) in shown.values():
        np.testing.assert_allclose(rounded, of_class, rtol=0.005)
        line: Any = None
        for step, packed in enumerate(lines):
            line = packed or line
            drawn = np.interp(curves.recall, np.array(line[0]) / 100, np.array(line[1]) / 1000)
            assert np.abs(drawn - precision[step]).max() < STEP_TOLERANCE + 0.0006


def test_the_classes_of_the_analysis_are_capped() -> None:
    many = evaluation(classes=300, images=300)
    view = analysis_view(many, Choices.of(many))
    assert view is not None
    assert len(view["classes"]) == 200
    assert view["left_out"] > 50
    assert analysis_view(empty_evaluation(), Choices.of(empty_evaluation())) is None
