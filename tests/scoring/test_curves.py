"""Curves and AP against loops over detections that do what the definitions say."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.protocols import load_protocol
from support.curves import CAPS, RANGES, RULES, THRESHOLDS, K, case_of, outcomes_at, tables


@functools.cache
def ranked_outcomes(seed: int, iou: float, area: str, cap: int) -> dict[str, list[tuple[float, str]]]:
    """Score and outcome of each class's detections, from the highest score; equal ones by image and rank."""
    rows = outcomes_at(seed, iou, area, cap).matches
    rows = rows[rows["outcome"] != "beyond max detections"]
    rows = rows.assign(descending=-rows["score"]).sort_values(["descending", "image_id", "rank"])
    states: dict[str, list[tuple[float, str]]] = {str(k): [] for k in range(K)}
    for name, score, outcome in zip(rows["class"], rows["score"], rows["outcome"], strict=True):
        states[name].append((score, outcome))
    return states


@dataclasses.dataclass
class Curve:
    """One class at one threshold: the counted detections in their order, and the counted objects."""

    true: list[bool]
    scores: list[float]
    positive: int
    first_score: float | None
    """Of all detections, counted or not."""


def slow_curve(seed: int, iou: float, area: str, cap: int, k: int, ties: str) -> Curve:
    states = ranked_outcomes(seed, iou, area, cap)[str(k)]
    if ties != "as_ranked":
        first = ties == "true_positives_first"
        groups = [list(group) for _, group in itertools.groupby(states, key=lambda state: state[0])]
        states = [
            s for group in groups for s in sorted(group, key=lambda s: (s[1] == "true positive") != first)
        ]
    counted = [(score, outcome == "true positive") for score, outcome in states if outcome != "ignored"]
    return Curve(
        [true for _, true in counted],
        [score for score, _ in counted],
        int(outcomes_at(seed, iou, area, cap).class_counts["ground_truths"][k]),
        states[0][0] if states else None,
    )


def slow_points(curve: Curve, points: Any, epsilon: float) -> tuple[list[float], list[float]]:
    """Interpolated precision, and the score that reaches each recall point."""
    hits = [number for number, true in enumerate(curve.true, start=1) if true]
    precision = [n / (counted + epsilon) for n, counted in enumerate(hits, start=1)]
    heights, scores = [], []
    for point in points:
        needed = next((n for n in range(len(precision) + 1) if n / curve.positive >= point), None)
        heights.append(max(precision[max(needed, 1) - 1 :], default=0.0) if needed is not None else 0.0)
        if needed == 0:
            scores.append(0.0 if curve.first_score is None else curve.first_score)
        else:
            scores.append(0.0 if needed is None else curve.scores[hits[needed - 1] - 1])
    return heights, scores


def slow_area(curve: Curve, kind: str, points: Any) -> float:
    """Area under the curve through every counted detection: VOC's, or under straight lines read at points."""
    if not curve.true:
        return 0.0
    hits = np.cumsum(curve.true)
    recall, precision = hits / curve.positive, hits / np.arange(1, len(hits) + 1)
    if kind == "area":
        x, y = np.concatenate([[0.0], recall, [1.0]]), np.concatenate([[0.0], precision, [0.0]])
    elif kind == "trapezoid_to_one":
        x, y = np.concatenate([[0.0], recall, [1.0]]), np.concatenate([[1.0], precision, [0.0]])
    else:
        x = np.concatenate([[0.0], recall, recall[-1:], [1.0]])
        y = np.concatenate([[1.0], precision, [0.0, 0.0]])
    envelope = np.maximum.accumulate(y[::-1])[::-1]
    if kind == "area":
        rises = np.flatnonzero(x[1:] != x[:-1])
        return float(np.sum((x[rises + 1] - x[rises]) * envelope[rises + 1]))
    read = np.interp(points, x, envelope)
    return float(np.sum(np.diff(points) * (read[1:] + read[:-1]) / 2))


@pytest.mark.long
@pytest.mark.parametrize("ties", ["as_ranked", "true_positives_first", "true_positives_last"])
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(map(str, rules.values())))
def test_every_curve(rules: dict[str, Any], ties: str) -> None:
    protocol = case_of(ap={**rules, "tie_order": ties})
    evaluation, ap = boxscore.evaluate(*tables(3), protocol=protocol), protocol.ap
    arrays, values = evaluation.arrays(), evaluation.class_values
    cells = itertools.product(enumerate(THRESHOLDS), range(K), enumerate(RANGES), enumerate(CAPS))
    for (t, iou), k, (a, area), (m, cap) in cells:
        curve = slow_curve(3, iou, area, cap, k, ties)
        precision, scores = (arrays[name][t, :, k, a, m] for name in ("precision", "scores"))
        recall, (average, reached) = (
            arrays["recall"][t, k, a, m],
            (values[f"{metric} {iou} {area} {m}"][k] for metric in ("AP", "AR")),
        )
        if not curve.positive:
            assert np.isnan([average, reached, recall]).all()
            assert np.isnan(precision).all()
            assert np.isnan(scores).all()
            continue
        heights, expected_scores = slow_points(curve, ap.recall_points, ap.precision_epsilon)
        assert precision.tolist() == heights
        assert scores.tolist() == expected_scores
        assert recall == reached == sum(curve.true) / curve.positive
        if ap.interpolation != "points":
            expected = slow_area(curve, ap.interpolation, np.array(ap.recall_points))
        elif ap.sequential_mean:
            expected = sum(height / len(heights) for height in heights)
        else:
            expected = float(np.mean(heights))
        assert average == expected
        if (a, m) == (0, len(CAPS) - 1):
            assert evaluation.ap_by_iou()[t, k] == expected


def test_the_cases_above_have_everything() -> None:
    """Ties, detections moved in and out of an area range by a match, and detections beyond a cap."""
    rows = outcomes_at(3, 0.2, "small", 100).matches
    assert rows.groupby("class")["score"].nunique().sum() < len(rows)
    assert rows["rank"].max() >= 5
    area = (rows["x2"] - rows["x1"]) * (rows["y2"] - rows["y1"])
    assert ((rows["outcome"] == "true positive") & (area > 30)).any()
    assert ((rows["outcome"] == "ignored") & (area <= 30)).any()


@pytest.mark.parametrize("rule", ["skip", "zero", "all_zero"])
@pytest.mark.parametrize("single", [False, True], ids=["many", "one"])
def test_classes_without_ground_truth(rule: str, single: bool) -> None:
    """Class 3 has detections alone, or one detection; a fifth class has nothing at all."""
    truth, found = tables(3)
    of_three = np.flatnonzero(found.category == 3)
    assert len(of_three) > 1
    if single:
        found = found.take(np.setdiff1d(np.arange(len(found)), of_three[1:]))
    truth = boxscore.GroundTruth.from_arrays(
        truth.image, truth.category, truth.boxes, crowd=truth.crowd, images=range(6), categories=range(K + 1)
    )
    protocol = {"extends": "coco", "ap": {"absent_classes": rule}, "summary": []}
    ap = boxscore.evaluate(truth, found, protocol=protocol).ap_by_iou()
    assert ap.shape == (10, K + 1)
    assert not np.isnan(ap[:, :3]).any()
    with_detections, with_nothing = ap[0, 3], ap[0, 4]
    assert np.isnan(with_detections) == (rule == "skip")
    assert np.isnan(with_nothing) == (rule != "all_zero")
    assert np.nan_to_num(ap[:, 3:]).sum() == 0


@pytest.mark.parametrize("ties", ["as_ranked", "true_positives_last"])
def test_released_curves_are_read_again(ties: str) -> None:
    """A summary lets go of what curves were computed from; whatever is asked afterwards is the same."""
    protocol = case_of(ap={"tie_order": ties})
    result, kept = (boxscore.evaluate(*tables(3), protocol=protocol) for _ in range(2))
    assert result.metrics
    for area in range(len(protocol.ignore.area_ranges)):
        released, fresh = result.curves_of(area), kept.curves_of(area)
        assert vars(released.counts)["_outcomes"] is None
        np.testing.assert_array_equal(released.reached_scores, fresh.reached_scores)
        np.testing.assert_array_equal(released.precision, fresh.precision)
        np.testing.assert_array_equal(released.totals.counted, fresh.totals.counted)


def test_without_choosing_it_is_all_sizes_and_the_largest_cap() -> None:
    evaluation = boxscore.evaluate(*tables(3))
    assert evaluation.curves().equals(evaluation.curves(area="all", max_detections=100))
    assert not evaluation.curves().equals(evaluation.curves(area="all", max_detections=1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        evaluation.protocol = load_protocol("voc2012")  # type: ignore[misc]


def test_nothing_matches() -> None:
    truth, found = tables(3)
    away = dataclasses.replace(found, boxes=found.boxes + 1000)
    for rules in ({}, {"ap": {"interpolation": "area"}}):
        protocol = {"extends": "coco", **rules, "summary": []}
        ap = boxscore.evaluate(truth, away, protocol=protocol).ap_by_iou()
        assert ap.shape == (10, K)
        assert np.nan_to_num(ap, nan=-1).max(axis=0).tolist() == [0, 0, 0, -1]


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 8, 9, 16, 17, 32, 33, 64])
def test_any_number_of_thresholds(count: int) -> None:
    """Together they give what each gives alone."""
    thresholds = np.linspace(0.1, 0.9, count).tolist()

    def ap(values: list[float]) -> Any:
        rules = {"extends": "coco", "matching": {"iou_thresholds": values}, "summary": []}
        return boxscore.evaluate(*tables(3), protocol=rules).ap_by_iou()

    assert ap(thresholds).tobytes() == np.concatenate([ap([one]) for one in thresholds]).tobytes()


@pytest.mark.parametrize("flag", ["crowd", "difficult"])
def test_deleted_objects_are_as_if_they_were_not_there(flag: str) -> None:
    truth, found = tables(3)
    marked = dataclasses.replace(truth, **{"crowd": np.zeros(60, dtype=bool), flag: np.arange(60) % 5 == 0})
    rest = marked.take(np.flatnonzero(np.arange(60) % 5 != 0))
    protocol = {"extends": "coco", "ignore": {flag: "delete", "area_ranges": RANGES}, "summary": []}
    whole = boxscore.evaluate(marked, found, protocol=protocol).arrays()
    without = boxscore.evaluate(rest, found, protocol=protocol).arrays()
    counted = boxscore.evaluate(
        marked, found, protocol={**protocol, "ignore": {flag: "count", "area_ranges": RANGES}}
    )
    assert all(whole[name].tobytes() == without[name].tobytes() for name in whole)
    assert whole["precision"].tobytes() != counted.arrays()["precision"].tobytes()


def test_labeled_and_unlabeled_keypoints_count_where_the_protocol_says_so() -> None:
    truth, found = tables(3)
    points = np.zeros((60, 1, 3))
    points[::3, :, 2] = 2
    labeled = dataclasses.replace(
        truth, keypoints=points, keypoint_count=(np.arange(60) % 3 == 0).astype(float)
    )
    for rule, share in (("count", 1), ("ignore", 3)):
        protocol = {"extends": "coco", "ignore": {"unlabeled": rule, "crowd": "count"}, "summary": []}
        counts = boxscore.evaluate(labeled, found, protocol=protocol).class_counts
        assert counts["ground_truths"].sum() == 60 // share
