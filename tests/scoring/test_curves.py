"""Curves and AP against loops over detections that do what the definitions say."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Categories
from boxscore.matching.matches import Matches, bit_type
from boxscore.protocols import load_protocol
from boxscore.scoring.counts import tie_starts
from boxscore.scoring.curves import Curves
from boxscore.scoring.interpolation import curve_area

K = 4
RANGES = {"all": [0, 1e10], "small": [0, 30], "large": [30, 1e10]}


def tables(seed: int, scores: int = 12) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Crowded images of small boxes; one class has no ground truth, another no detection."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 9, (160, 2)).astype(float)
    boxes = np.hstack([corner, corner + rng.integers(3, 9, (160, 2))])
    images = rng.integers(0, 6, 160)
    truth = boxscore.GroundTruth.from_arrays(
        images[:60],
        rng.choice([0, 1, 2], 60),
        boxes[:60],
        crowd=rng.random(60) < 0.1,
        images=range(6),
        categories=range(K),
    )
    found = boxscore.Detections.from_arrays(
        images[60:],
        rng.choice([0, 1, 3], 100),
        boxes[60:],
        rng.integers(0, scores, 100) / scores,
        images=range(6),
        categories=range(K),
    )
    return truth, found


@dataclasses.dataclass
class Curve:
    """One class at one threshold: what was counted up to each true positive, and of what score it is."""

    counted: list[int]
    scores: list[float]
    total: int
    positive: int
    first_score: float | None


def slow_curve(matches: Matches, t: int, k: int, area: int, cap: int | None, ties: str) -> Curve:
    states: list[tuple[float, str]] = []
    for d in np.flatnonzero(matches.category == k).tolist():
        pairs = np.flatnonzero(matches.pair_detection == d).tolist()
        hits = (
            [p for p in pairs if int(matches.matched_bits[p, area]) >> t & 1]
            if cap is None or matches.rank[d] < cap
            else []
        )
        true = any(int(matches.counted_bits[matches.pair_truth[p]]) >> area & 1 for p in hits)
        inside = int(matches.in_range_bits[d]) >> area & 1
        counts = true or (not hits and inside and (cap is None or matches.rank[d] < cap))
        states.append((float(matches.score[d]), "true" if true else "false" if counts else "ignored"))
    if ties != "as_ranked":
        first = ties == "true_positives_first"
        groups = [list(group) for _, group in itertools.groupby(states, key=lambda state: state[0])]
        states = [s for group in groups for s in sorted(group, key=lambda s: (s[1] == "true") != first)]
    counted, scores, total = [], [], 0
    for score, state in states:
        total += state != "ignored"
        if state == "true":
            counted.append(total)
            scores.append(score)
    mine = matches.truth_category == k
    positive = sum(int(bits) >> area & 1 for bits in matches.counted_bits[mine])
    return Curve(counted, scores, total, positive, states[0][0] if states else None)


def slow_points(curve: Curve, points: Any, epsilon: float) -> tuple[list[float], list[float]]:
    """Interpolated precision, and the score that reaches each recall point."""
    precision = [n / (counted + epsilon) for n, counted in enumerate(curve.counted, start=1)]
    heights, scores = [], []
    for point in points:
        needed = next((n for n in range(len(precision) + 1) if n / curve.positive >= point), None)
        heights.append(max(precision[max(needed, 1) - 1 :], default=0.0) if needed is not None else 0.0)
        if needed == 0:
            scores.append(0.0 if curve.first_score is None else curve.first_score)
        else:
            scores.append(0.0 if needed is None else curve.scores[needed - 1])
    return heights, scores


RULES = [
    {"interpolation": "points"},
    {"interpolation": "points", "sequential_mean": True, "precision_epsilon": 0.0},
    {"interpolation": "points", "recall_points": {"start": 0, "stop": 1, "count": 11}},
    {"interpolation": "area", "precision_epsilon": 0.0},
    {"interpolation": "trapezoid", "precision_epsilon": 0.0},
    {"interpolation": "trapezoid_to_one", "precision_epsilon": 0.0},
]


@pytest.mark.parametrize("ties", ["as_ranked", "true_positives_first", "true_positives_last"])
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(map(str, rules.values())))
def test_every_curve(rules: dict[str, Any], ties: str) -> None:
    protocol = load_protocol(
        {
            "extends": "coco",
            "name": "case",
            "matching": {"iou_thresholds": [0.2, 0.5, 0.7], "max_detections": [2, 5, 100]},
            "ignore": {"area_ranges": RANGES},
            "ap": {**rules, "tie_order": ties},
            "summary": [],
        }
    )
    evaluation = boxscore.evaluate(*tables(3), protocol=protocol)
    matches, ap = evaluation.matched, protocol.ap
    for area, cap in itertools.product(range(3), range(3)):
        result = Curves.of(matches, protocol, area, cap)
        for t, k in itertools.product(range(3), range(K)):
            curve = slow_curve(matches, t, k, area, protocol.caps[cap], ties)
            if not curve.positive:
                assert np.isnan(result.average_precision[t, k])
                assert np.isnan(result.interpolated[t, :, k]).all()
                assert np.isnan(result.scores[t, :, k]).all()
                assert np.isnan(result.recall[t, k])
                continue
            heights, scores = slow_points(curve, ap.recall_points, ap.precision_epsilon)
            assert result.interpolated[t, :, k].tolist() == heights
            assert result.scores[t, :, k].tolist() == scores
            assert result.recall[t, k] == len(curve.counted) / curve.positive
            if ap.interpolation != "points":
                precision = np.arange(1, len(curve.counted) + 1) / np.array(curve.counted or [], dtype=float)
                counted = np.array(curve.counted, int)
                expected = curve_area(precision, curve.positive, ap, counted=counted, total=curve.total)
            elif ap.sequential_mean:
                expected = sum(height / len(heights) for height in heights)
            else:
                expected = float(np.mean(heights))
            assert result.average_precision[t, k] == expected


def test_the_cases_above_have_everything() -> None:
    """Ties, detections moved in and out of an area range by a match, and detections beyond a cap."""
    evaluation = boxscore.evaluate(
        *tables(3), protocol={"extends": "coco", "ignore": {"area_ranges": RANGES}, "summary": []}
    )
    matches = evaluation.matched
    assert len(tie_starts(matches.category, matches.score)) < len(matches)
    assert matches.rank.max() >= 5
    outcomes = matches.pair_outcomes(1)
    inside = matches.inside(1)[outcomes.detection]
    assert (outcomes.true.any(axis=0) & ~inside).any()
    assert (outcomes.ignored.any(axis=0) & inside).any()


@pytest.mark.parametrize("rule", ["skip", "zero", "all_zero"])
def test_classes_without_ground_truth(rule: str) -> None:
    """Class 3 has detections alone; a fifth class has nothing at all."""
    truth, found = tables(3)
    protocol = load_protocol({"extends": "coco", "ap": {"absent_classes": rule}, "summary": []})
    matches = boxscore.evaluate(truth, found, protocol=protocol).matched
    once = np.flatnonzero(matches.category == 3)[1:]  # and one with a single detection
    keep = np.setdiff1d(np.arange(len(matches)), once)
    assert not np.isin(matches.pair_detection, once).any()
    place = np.cumsum(np.isin(np.arange(len(matches)), keep)) - 1
    fields = ("image", "category", "score", "rank", "row", "in_range_bits")
    single = dataclasses.replace(
        matches,
        pair_detection=place[matches.pair_detection],
        **{name: getattr(matches, name)[keep] for name in fields},
    )
    for each in (matches, single):
        more = dataclasses.replace(each, categories=Categories.build(range(K + 1)))
        ap = Curves.of(more, protocol).average_precision
        assert not np.isnan(ap[:, :3]).any()
        with_detections, with_nothing = ap[0, 3], ap[0, 4]
        assert np.isnan(with_detections) == (rule == "skip")
        assert np.isnan(with_nothing) == (rule != "all_zero")
        assert np.nan_to_num(ap[:, 3:]).sum() == 0


def test_without_choosing_it_is_all_sizes_and_the_largest_cap() -> None:
    protocol = load_protocol("coco")
    matches = boxscore.evaluate(*tables(3), protocol=protocol).matched
    ours, chosen = Curves.of(matches, protocol), Curves.of(matches, protocol, 0, 2)
    assert ours.interpolated.tobytes() == chosen.interpolated.tobytes()
    with pytest.raises(dataclasses.FrozenInstanceError):
        ours.rules = protocol.ap  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        matches.image = matches.row  # type: ignore[misc,assignment]


def test_nothing_matches() -> None:
    truth, found = tables(3)
    away = dataclasses.replace(found, boxes=found.boxes + 1000)
    for rules in ({}, {"ap": {"interpolation": "area"}}):
        protocol = load_protocol({"extends": "coco", **rules, "summary": []})
        result = Curves.of(boxscore.evaluate(truth, away, protocol=protocol).matched, protocol)
        true, ignored = result.counts.outcomes.true, result.counts.outcomes.ignored
        assert true.shape == ignored.shape == (10, 0)
        assert np.nan_to_num(result.average_precision, nan=-1).max(axis=0).tolist() == [0, 0, 0, -1]


def test_tie_starts() -> None:
    matches = boxscore.evaluate(*tables(3, scores=2)).matched
    pairs = list(zip(matches.category.tolist(), matches.score.tolist(), strict=True))
    expected = [place for place, pair in enumerate(pairs) if place == 0 or pair != pairs[place - 1]]
    assert tie_starts(matches.category, matches.score).tolist() == expected
    assert tie_starts(matches.category[:0], matches.score[:0]).tolist() == []
    assert tie_starts(matches.category[:1], matches.score[:1]).tolist() == [0]


@pytest.mark.parametrize(
    ("bits", "kind"),
    [(1, "u1"), (8, "u1"), (9, "u2"), (16, "u2"), (17, "u4"), (32, "u4"), (33, "u8"), (64, "u8")],
)
def test_the_smallest_type_with_enough_bits(bits: int, kind: str) -> None:
    assert bit_type(bits) == np.dtype(kind)


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


def test_labelled_and_unlabelled_keypoints_count_where_the_protocol_says_so() -> None:
    truth, found = tables(3)
    points = np.zeros((60, 1, 3))
    points[::3, :, 2] = 2
    labelled = dataclasses.replace(
        truth, keypoints=points, keypoint_count=(np.arange(60) % 3 == 0).astype(float)
    )
    for rule, share in (("count", 1), ("ignore", 3)):
        protocol = {"extends": "coco", "ignore": {"unlabelled": rule, "crowd": "count"}, "summary": []}
        matches = boxscore.evaluate(labelled, found, protocol=protocol).matched
        assert int(matches.counted(0).sum()) == 60 // share
