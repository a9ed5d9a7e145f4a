"""Image weights: of one they change no bit; of two and none they are the image twice and not at all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import boxscore
from boxscore.protocols import load_protocol
from boxscore.protocols.summary import LEVEL_METRICS, OF_IMAGES, SUMMARY_KINDS
from support.curves import RANGES, RULES, tables
from support.each import each
from support.every_cell import summary_of, weighted_summary, with_every_cell
from support.scenes import CROWDS
from support.shipped import box_protocols
from support.weights import evaluated_anew

TIE_ORDERS = ["as_ranked", "true_positives_first", "true_positives_last"]
BOX_PROTOCOLS = box_protocols(*CROWDS)


def variations() -> list[boxscore.Protocol]:
    matching = {"iou_thresholds": [0.2, 0.5, 0.7], "max_detections": [2, 5, 100]}
    common = {"extends": "coco", "matching": matching, "ignore": {"area_ranges": RANGES}}
    return [
        with_every_cell({**common, "ap": {**rules, "tie_order": order, "absent_classes": absent}}, "AP", "AR")
        for rules, order, absent in itertools.product(RULES, TIE_ORDERS, ["skip", "zero", "all_zero"])
    ]


def check_ones(evaluation: boxscore.Evaluation) -> None:
    ones = weighted_summary(evaluation, np.ones(len(evaluation.images)))
    assert ones.tobytes() == summary_of(evaluation).tobytes()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@each([(name, seed) for seed in range(3) for name in BOX_PROTOCOLS], first=len(BOX_PROTOCOLS))
def test_weights_of_one_change_no_bit_of_a_shipped_protocol(name: str, seed: int) -> None:
    ap = ["AP"] if load_protocol(name).matching.scores == "given" else ["AP_lowest", "AP_highest", "mean_iou"]
    for protocol in (load_protocol(name), with_every_cell(name, *ap, "AR")):
        check_ones(boxscore.evaluate(*tables(seed), protocol=protocol))


@pytest.mark.long
def test_weights_of_one_change_no_bit_of_any_rule() -> None:
    for protocol in variations():
        check_ones(boxscore.evaluate(*tables(5), protocol=protocol))


@pytest.mark.long
@pytest.mark.parametrize("weights", [[2, 0, 1, 1, 3, 0], [0, 1, 0, 1, 1, 1], [0] * 6, [0, 0, 0, 0, 0, 4]])
def test_an_image_counts_as_often_as_its_weight_says(weights: list[int]) -> None:
    """Against the evaluation of the data with each image repeated; no two scores are equal."""
    truth, found = tables(5, scores=10**9)
    assert len(np.unique(found.scores)) == len(found)
    for protocol in variations():
        ours = weighted_summary(boxscore.evaluate(truth, found, protocol=protocol), weights)
        again = evaluated_anew(truth, found, np.array(weights), protocol)
        assert ours.tobytes() == summary_of(again).tobytes()


@pytest.mark.long
@pytest.mark.parametrize("order", ["true_positives_first", "true_positives_last"])
def test_moved_ties_agree_whatever_the_scores(order: str) -> None:
    """Where the true positives of a tie stand together, the order of the copies decides nothing."""
    truth, found = tables(7, scores=4)
    weights = np.array([2, 0, 1, 3, 1, 2])
    for rules in RULES:
        whole = {"matching": {"max_detections": [100]}, "ignore": {"area_ranges": {"all": [0, 1e10]}}}
        values = {"extends": "coco", "ap": {**rules, "tie_order": order}, **whole}
        protocol = with_every_cell(values, "AP", "AR")
        ours = weighted_summary(boxscore.evaluate(truth, found, protocol=protocol), weights)
        assert ours.tobytes() == summary_of(evaluated_anew(truth, found, weights, protocol)).tobytes()


def test_recall_points_that_do_not_start_at_zero() -> None:
    """The last stretch of a class that reaches every point must not run into the next class."""
    rules = {"recall_points": {"start": 0.5, "stop": 0.75, "count": 2}, "precision_epsilon": 0}
    protocol = {"extends": "coco", "ap": rules, "summary": [{"key": "AP50", "iou": 0.5}]}
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["a", "b"], [[0, 0, 9, 9], [20, 0, 29, 9]])
    boxes = [[40, 0, 49, 9], [0, 0, 9, 9], [20, 0, 29, 9]]
    found = boxscore.Detections.from_arrays([1, 1, 1], ["a", "a", "b"], boxes, [0.9, 0.8, 0.7])
    evaluation = boxscore.evaluate(truth, found, protocol=protocol)
    assert weighted_summary(evaluation, [1])[0].tolist() == [0.5, 1.0, 0.75]
    assert weighted_summary(evaluation, [3])[0].tolist() == [0.5, 1.0, 0.75]


READINGS = ["last_at_most", "last_at_most_or_end", "first_at_least"]


def by_false_positives(tie_order: str, reading: str) -> boxscore.Protocol:
    """Load rules under which FROC and MR are read at false positives per image, at two thresholds."""
    rules = {
        "extends": "coco",
        "matching": {"iou_thresholds": [0.2, 0.5], "max_detections": [2, 100]},
        "ignore": {"area_ranges": RANGES},
        "ap": {"tie_order": tie_order},
        "froc": {"false_positives_per_image": [0, 0.2, 0.5, 1, 3]},
        "miss_rate": {"false_positives_per_image": [0.1, 0.5, 1, 3], "reading": reading},
    }
    # Undefined without a true positive: the mean IoU, in the smallest range.
    left_out = ("JI", "mean_iou", *LEVEL_METRICS, *OF_IMAGES)
    return with_every_cell(rules, *(kind for kind in SUMMARY_KINDS if kind not in left_out))


@pytest.mark.long
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("order", TIE_ORDERS)
@pytest.mark.parametrize("seed", [3, 5])
def test_every_kind_under_weights_of_one(seed: int, order: str, reading: str) -> None:
    evaluation = boxscore.evaluate(*tables(seed), protocol=by_false_positives(order, reading))
    assert np.isfinite(summary_of(evaluation)).any(axis=1).all()
    check_ones(evaluation)


@pytest.mark.long
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("weights", [[2, 0, 1, 1, 3, 0], [0, 1, 0, 1, 1, 1], [0] * 6, [0, 0, 0, 0, 0, 4]])
def test_every_kind_where_images_are_repeated(weights: list[int], reading: str) -> None:
    """At every threshold: the miss rate was undefined beyond the first."""
    truth, found = tables(5, scores=10**9)
    protocol = by_false_positives("as_ranked", reading)
    ours = weighted_summary(boxscore.evaluate(truth, found, protocol=protocol), weights)
    again = evaluated_anew(truth, found, np.array(weights), protocol)
    assert ours.tobytes() == summary_of(again).tobytes()


@pytest.mark.parametrize("weights", [[2, 0, 1, 1, 3, 0], [1] * 6, [0] * 6, [0, 0, 0, 0, 0, 4]])
def test_metrics_of_images_where_images_are_repeated(weights: list[int]) -> None:
    truth, found = tables(5, scores=10**9)
    protocol = boxscore.load_protocol("rex-omni")
    ours = weighted_summary(boxscore.evaluate(truth, found, protocol=protocol), weights)
    again = summary_of(evaluated_anew(truth, found, np.array(weights), protocol))
    assert ours.tobytes() == again.tobytes()
    assert np.isfinite(again).all() == bool(sum(weights))


@pytest.mark.long
def test_nothing_to_weigh() -> None:
    truth, found = tables(3)
    nothing = found.take(np.empty(0, dtype=np.intp))
    for name in ("coco", "ultralytics"):
        check_ones(boxscore.evaluate(truth, nothing, protocol=with_every_cell(name, "AP", "AR")))
