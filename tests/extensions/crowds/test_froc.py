"""The free-response ROC by hand, by loops over every confidence, and under image weights."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import bootstrap_intervals, froc_curve, froc_scores
from boxscore.protocols import load_protocol
from boxscore.protocols.summary import summary_title
from support.curves import RANGES, K, tables
from support.each import each
from support.every_cell import summary_of, weighted_summary, with_every_cell
from support.weights import evaluated_anew

pytestmark = pytest.mark.usefixtures("no_findings")

POINTS = np.array([0, 0.125, 1 / 6, 1 / 3, 0.5, 1, 2, 4, 8, 100])
RULES = ["linear", "step"]
ALL_SIZES = {"area_ranges": {"all": [0, 1e10]}}


def rules(**changes: Any) -> Any:
    matching = {"iou_thresholds": [0.2, 0.5, 0.7], "max_detections": [100]}
    return load_protocol({"extends": "coco", "name": "case", "matching": matching, **changes})


def read_at(point: float, interpolation: str, **changes: Any) -> Any:
    """Return a protocol whose summary is the sensitivity at one point, of each threshold and area range."""
    matching = {"iou_thresholds": [0.2, 0.5, 0.7], "max_detections": [100]}
    froc = {"false_positives_per_image": [point], "interpolation": interpolation}
    return with_every_cell({"extends": "coco", "matching": matching, "froc": froc, **changes}, "FROC")


def slow(rows: Any, positive: int, images: int, fppi: float, interpolation: str) -> float:
    """Read one value, trying every confidence; ``rows`` are detections with score and outcome."""
    if not positive:
        return float("nan")
    points = [(0.0, 0.0)]
    for threshold in sorted(rows["score"].unique(), reverse=True):
        outcomes = rows["outcome"][rows["score"] >= threshold].tolist()
        points.append((outcomes.count("false positive") / images, outcomes.count("true positive") / positive))
    left = max(i for i, (spent, _) in enumerate(points) if spent <= fppi)
    (x, y), after = points[left], points[left + 1 :]
    if interpolation == "step" or not after or x == fppi:
        return y
    return (after[0][1] - y) / (after[0][0] - x) * (fppi - x) + y


@pytest.mark.long
@pytest.mark.parametrize("interpolation", RULES)
@pytest.mark.parametrize(("seed", "levels"), [(0, 2), (1, 12), (2, 10**9), (3, 1)])
def test_each_class_and_all_together_by_loops(seed: int, levels: int, interpolation: str) -> None:
    truth, found = tables(seed, scores=levels)
    protocol = rules(froc={"interpolation": interpolation})
    evaluation = boxscore.evaluate(truth, found, protocol=protocol)
    got = froc_scores(evaluation, fppi=POINTS.tolist())
    rows = evaluation.matches
    for k, fppi in itertools.product(range(K), range(len(POINTS))):
        mine = rows[rows["class"] == str(k)]
        positive = int((~truth.crowd & (truth.category == k)).sum())
        expected = slow(mine, positive, 6, POINTS[fppi], interpolation)
        np.testing.assert_equal(got.per_class.sensitivity[k, fppi], expected)
    expected_total = [slow(rows, int((~truth.crowd).sum()), 6, fppi, interpolation) for fppi in POINTS]
    assert got.total.sensitivity.tolist() == expected_total
    assert got.total.mean == np.mean(expected_total)
    assert 0 < got.total.mean < 1


@pytest.mark.long
@pytest.mark.parametrize("interpolation", RULES)
@pytest.mark.parametrize("levels", [2, 12, 10**9])
def test_the_summary_says_the_same_as_every_score(levels: int, interpolation: str) -> None:
    """At every point, threshold and range, with and without weights of one."""
    protocols = [read_at(point, interpolation, ignore={"area_ranges": RANGES}) for point in POINTS]
    matched = boxscore.evaluate(*tables(4, scores=levels), protocol=protocols[0])
    for point, protocol in zip(POINTS.tolist(), protocols, strict=True):
        evaluation = dataclasses.replace(matched, protocol=protocol)
        for row in protocol.rows:
            scores = froc_scores(evaluation, fppi=[point], iou_threshold=row.iou, area=row.area)
            read = evaluation.class_values[row.key]
            assert read.tobytes() == scores.per_class.sensitivity[:, 0].tobytes()
        assert weighted_summary(evaluation, np.ones(6)).tobytes() == summary_of(evaluation).tobytes()


@each(
    [
        (levels, weights, order, interpolation)
        for interpolation in RULES
        for weights in [[2, 0, 1, 1, 3, 0], [0, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 4], [0] * 6]
        for levels in [2, 12]
        for order in ["as_ranked", "true_positives_first"]
    ]
)
def test_an_image_counts_as_often_as_its_weight_says(
    levels: int, weights: list[int], order: str, interpolation: str
) -> None:
    """Equal scores and all: their order decides nothing here."""
    truth, found = tables(5, scores=levels)
    protocols = [read_at(point, interpolation, ap={"tie_order": order}, ignore=ALL_SIZES) for point in POINTS]
    matched = boxscore.evaluate(truth, found, protocol=protocols[0])
    again = evaluated_anew(truth, found, np.array(weights), protocols[0])
    for protocol in protocols:
        ours, theirs = (dataclasses.replace(one, protocol=protocol) for one in (matched, again))
        assert weighted_summary(ours, weights).tobytes() == summary_of(theirs).tobytes()


def two_images(scores: list[float], *, images: int = 2, **froc: Any) -> boxscore.Evaluation:
    """Four objects; detections that are true, false, true, false."""
    boxes = [[20.0 * i, 0, 20 * i + 9, 9] for i in range(4)]
    truth = boxscore.GroundTruth.from_arrays([1] * 4, ["cat"] * 4, boxes, images=range(1, images + 1))
    places = [boxes[0], [0, 50, 9, 59], boxes[1], [50, 50, 59, 59]]
    found = boxscore.Detections.from_arrays([1] * 4, ["cat"] * 4, places, scores, images=truth.images)
    protocol = rules(summary=[{"key": "CPM", "metric": "FROC"}], froc=froc)
    return boxscore.evaluate(truth, found, protocol=protocol)


def test_worked_by_hand() -> None:
    """Up to a quarter of the objects for nothing, half of them from one false positive on two images."""
    evaluation = two_images([0.9, 0.8, 0.7, 0.6])
    curve = froc_curve(evaluation).to_frame()
    assert curve["fppi"].tolist() == [0, 0.5, 0.5, 1]
    assert curve["sensitivity"].tolist() == [0.25, 0.25, 0.5, 0.5]
    assert curve["score"].tolist() == [0.9, 0.8, 0.7, 0.6]
    expected = [0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert froc_scores(evaluation).total.sensitivity.tolist() == expected
    assert evaluation["CPM"] == np.mean(expected)


def test_nothing_false_in_one_class_after_another() -> None:
    """Neither the classes nor the thresholds run into each other."""
    boxes = [[20.0 * i, 0, 20 * i + 9, 9] for i in range(4)]
    truth = boxscore.GroundTruth.from_arrays([1] * 4, ["a", "a", "b", "c"], boxes)
    found = boxscore.Detections.from_arrays([1] * 3, ["a", "b", "c"], boxes[1:], [0.9, 0.9, 0.8])
    evaluation = boxscore.evaluate(truth, found, protocol=rules(summary=[{"key": "CPM", "metric": "FROC"}]))
    assert evaluation.class_values["CPM"].tolist() == [0.5, 1, 1]


def test_a_tie_is_a_line_or_a_step() -> None:
    """True, false and true of one score: at .25 half of the one false positive is spent."""
    evaluation = two_images([0.9, 0.9, 0.9, 0.6])
    assert froc_scores(evaluation, fppi=[0, 0.25, 0.5]).total.sensitivity.tolist() == [0, 0.25, 0.5]
    for fppi, found in ((0, 0), (0.25, 0), (0.5, 0.5)):
        step = two_images([0.9, 0.9, 0.9, 0.6], false_positives_per_image=[fppi], interpolation="step")
        assert step["CPM"] == found
        assert froc_scores(step).total.sensitivity.tolist() == [found]


def test_images_without_objects_or_detections_are_in_the_denominator() -> None:
    few, many = (two_images([0.9, 0.8, 0.7, 0.6], images=images) for images in (2, 8))
    assert froc_scores(few, fppi=[0.125]).total.sensitivity.tolist() == [0.25]
    assert froc_scores(many, fppi=[0.125]).total.sensitivity.tolist() == [0.5]
    assert many["CPM"] == 0.5 > few["CPM"]


def test_the_summary_is_the_mean_over_classes() -> None:
    summary = [
        {"key": "FROC", "metric": "FROC", "iou": 0.2},
        {"key": "FROCall", "metric": "FROC"},
        {"key": "FROCsmall", "metric": "FROC", "iou": 0.2, "area": "small"},
    ]
    protocol = rules(summary=summary, ignore={"area_ranges": RANGES})
    evaluation = boxscore.evaluate(*tables(6), protocol=protocol)
    scores = froc_scores(evaluation)
    np.testing.assert_array_equal(evaluation.class_values["FROC"], scores.per_class.mean)
    assert evaluation["FROC"] == pytest.approx(float(scores.mean.mean), abs=1e-15)
    small = froc_scores(evaluation, iou_threshold=0.2, area="small")
    assert evaluation["FROCsmall"] == pytest.approx(float(small.mean.mean), abs=1e-15)
    each = [froc_scores(evaluation, iou_threshold=t).mean.mean for t in protocol.matching.iou_thresholds]
    assert evaluation["FROCall"] == pytest.approx(np.mean(each), abs=1e-15)
    row = protocol.rows[0]
    title = summary_title(row.metric, protocol.iou_text(row), row.area, "all")
    assert "Mean Sensitivity (FROC) @[ IoU=0.20      | area=   all" in title
    intervals = bootstrap_intervals(evaluation).total
    assert (intervals.value == [evaluation[row["key"]] for row in summary]).all()
    assert (intervals.standard_error > 0).all()
    assert np.isnan(intervals.low).all()  # six images


def test_nothing_to_find_and_nothing_found() -> None:
    truth, found = tables(3)
    protocol = rules(summary=[{"key": "FROC", "metric": "FROC"}])
    nothing = found.take(np.empty(0, dtype=np.intp))
    evaluation = boxscore.evaluate(truth, nothing, protocol=protocol)
    assert evaluation["FROC"] == 0
    np.testing.assert_array_equal(evaluation.class_values["FROC"], [0, 0, 0, np.nan])
    empty = boxscore.GroundTruth.from_arrays([], [], [], images=range(6), categories=range(K))
    evaluation = boxscore.evaluate(empty, found, protocol=protocol)
    assert np.isnan(evaluation["FROC"])
    assert np.isnan(froc_scores(evaluation).total.mean)
    none = boxscore.GroundTruth.from_arrays([], [], [])
    evaluation = boxscore.evaluate(none, boxscore.Detections.from_arrays([], [], [], []), protocol=protocol)
    assert np.isnan(evaluation["FROC"])
    assert np.isnan(froc_scores(evaluation).total.mean)
    assert len(froc_curve(evaluation).to_frame()) == 0


@pytest.mark.parametrize(
    ("fppi", "text"),
    [
        ([], "fppi must have 1 to 100000 values. Got none."),
        ([1, float("nan")], r"fppi must be a number in \[0, 1e\+09\]. Got nan."),
        (1.0, "fppi must be a list of numbers. Got 1.0."),
    ],
)
def test_points_that_are_refused(fppi: Any, text: str) -> None:
    with pytest.raises(boxscore.InputError, match=text):
        froc_scores(two_images([0.9, 0.8, 0.7, 0.6]), fppi=fppi)
