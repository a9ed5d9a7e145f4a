"""Image weights: of one they change no bit; of two and none they are the image twice and not at all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.scoring.test_curves import RANGES, RULES, tables
from tests.support.weights import evaluated_anew

import boxscore
from boxscore.matching.matches import Matches
from boxscore.protocols import load_protocol, protocol_names
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.curves import Curves
from boxscore.scoring.weighted import ImageWeights
from support.scenes import CROWDS

FIELDS = ("positive", "recall", "interpolated", "scores", "average_precision")
TIE_ORDERS = ["as_ranked", "true_positives_first", "true_positives_last"]
BOX_PROTOCOLS = [
    name for name in protocol_names() if load_protocol(name).similarity == "box" and name not in CROWDS
]


def weighted(matches: Matches, protocol: Protocol, weights: Any, area: int = 0, cap: int = -1) -> Curves:
    prepared = ImageWeights(matches, protocol, area, cap)
    return Curves(prepared.counts(np.asarray(weights, dtype=np.float64)), protocol.ap)


def assert_same_bits(ours: Curves, plain: Curves) -> None:
    for field in FIELDS:
        mine, theirs = getattr(ours, field), getattr(plain, field)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), field
        assert mine.tobytes() == theirs.tobytes(), field


def variations() -> list[dict[str, Any]]:
    rules = [
        {**rules, "tie_order": order, "absent_classes": absent}
        for rules, order, absent in itertools.product(RULES, TIE_ORDERS, ["skip", "zero", "all_zero"])
    ]
    matching = {"iou_thresholds": [0.2, 0.5, 0.7], "max_detections": [2, 5, 100]}
    return [
        {
            "extends": "coco",
            "name": "case",
            "matching": matching,
            "ignore": {"area_ranges": RANGES},
            "ap": ap,
            "summary": [],
        }
        for ap in rules
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", BOX_PROTOCOLS)
def test_weights_of_one_change_no_bit_of_a_shipped_protocol(name: str, seed: int) -> None:
    protocol = load_protocol(name)
    matches = boxscore.evaluate(*tables(seed), protocol=protocol).matched
    ones = np.ones(len(matches.images))
    for area, cap in itertools.product(range(len(protocol.ignore.area_ranges)), range(len(protocol.caps))):
        plain = Curves.of(matches, protocol, area, cap)
        assert_same_bits(weighted(matches, protocol, ones, area, cap), plain)


@pytest.mark.long
def test_weights_of_one_change_no_bit_of_any_rule() -> None:
    for values in variations():
        protocol = load_protocol(values)
        matches = boxscore.evaluate(*tables(5), protocol=protocol).matched
        for area, cap in itertools.product(range(3), range(3)):
            plain = Curves.of(matches, protocol, area, cap)
            assert_same_bits(weighted(matches, protocol, np.ones(6), area, cap), plain)


@pytest.mark.long
@pytest.mark.parametrize("weights", [[2, 0, 1, 1, 3, 0], [0, 1, 0, 1, 1, 1], [0] * 6, [0, 0, 0, 0, 0, 4]])
def test_an_image_counts_as_often_as_its_weight_says(weights: list[int]) -> None:
    """Against the evaluation of the data with each image repeated; no two scores are equal."""
    truth, found = tables(5, scores=10**9)
    assert len(np.unique(found.scores)) == len(found)
    for values in variations():
        protocol = load_protocol(values)
        matches = boxscore.evaluate(truth, found, protocol=protocol).matched
        again = evaluated_anew(truth, found, np.array(weights), protocol).matched
        for area, cap in itertools.product(range(3), range(3)):
            ours = weighted(matches, protocol, weights, area, cap)
            plain = Curves.of(again, protocol, area, cap)
            assert_same_bits(ours, plain)


@pytest.mark.parametrize("order", ["true_positives_first", "true_positives_last"])
def test_moved_ties_agree_whatever_the_scores(order: str) -> None:
    """Where the true positives of a tie stand together, the order of the copies decides nothing."""
    truth, found = tables(7, scores=4)
    weights = np.array([2, 0, 1, 3, 1, 2])
    for rules in RULES:
        protocol = load_protocol({"extends": "coco", "ap": {**rules, "tie_order": order}, "summary": []})
        matches = boxscore.evaluate(truth, found, protocol=protocol).matched
        again = evaluated_anew(truth, found, weights, protocol).matched
        assert_same_bits(weighted(matches, protocol, weights), Curves.of(again, protocol))


def test_recall_points_that_do_not_start_at_zero() -> None:
    """The last stretch of a class that reaches every point must not run into the next class."""
    rules = {"recall_points": {"start": 0.5, "stop": 0.75, "count": 2}, "precision_epsilon": 0}
    protocol = load_protocol({"extends": "coco", "ap": rules, "summary": []})
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["a", "b"], [[0, 0, 9, 9], [20, 0, 29, 9]])
    boxes = [[40, 0, 49, 9], [0, 0, 9, 9], [20, 0, 29, 9]]
    found = boxscore.Detections.from_arrays([1, 1, 1], ["a", "a", "b"], boxes, [0.9, 0.8, 0.7])
    matches = boxscore.evaluate(truth, found, protocol=protocol).matched
    assert weighted(matches, protocol, [1]).average_precision[0].tolist() == [0.5, 1.0]
    assert weighted(matches, protocol, [3]).average_precision[0].tolist() == [0.5, 1.0]


def test_nothing_to_weigh() -> None:
    truth, found = tables(3)
    nothing = found.take(np.empty(0, dtype=np.intp))
    for name in ("coco", "ultralytics"):
        protocol = load_protocol(name)
        matches = boxscore.evaluate(truth, nothing, protocol=protocol).matched
        assert_same_bits(weighted(matches, protocol, np.ones(6)), Curves.of(matches, protocol))
