"""Open Images' rules: every AP and the mean equal to the rules in plain Python, where scores differ."""

from __future__ import annotations

import re

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError, ProtocolError, diagnostics
from boxscore.diagnostics import bootstrap_intervals
from boxscore.extensions.federated.hierarchy import expand_classes
from boxscore.extensions.validation.completion import most_with_lower_scores
from oracles import open_images
from support.each import each
from support.federated_cases import open_images_case, open_images_mask_case, tied
from support.open_images import scored_open_images, tables_of

KINDS = [
    ("openimages-challenge", 1.0),
    ("openimages-challenge", 0.5),
    ("openimages-challenge", 0.3),
    ("openimages-challenge", 0.0),
    ("openimages-v2", 0.0),
]


@each(
    [(seed, name, weight, ties) for seed in range(30) for ties in [False, True] for name, weight in KINDS],
    first=10 * 2 * len(KINDS),
)
def test_equal_to_the_rules_in_plain_python(seed: int, name: str, weight: float, ties: bool) -> None:
    case = open_images_case(seed)
    truths, found, listed, images, labels = tied(case, seed) if ties else case
    verified = None if name == "openimages-v2" else listed
    rules = open_images.Rules(weight, verified)
    expected = open_images.evaluate(truths, found, images, labels, rules)
    mean = np.nanmean(expected) if not np.isnan(expected).all() else np.nan
    for workers in (1, 3):
        ours = scored_open_images(truths, found, listed, images, labels, name, weight, workers)
        np.testing.assert_array_equal([*ours[0], ours[1]], [*expected, mean])


@each(
    [(seed, weight, ties) for seed in range(30) for ties in [False, True] for weight in [1.0, 0.4, 0.0]],
    first=10 * 2 * 3,
)
def test_masks_equal_to_the_rules_in_plain_python(seed: int, weight: float, ties: bool) -> None:
    case = open_images_mask_case(seed)
    truths, found, listed, images, labels = tied(case, seed) if ties else case
    rules = open_images.Rules(weight, listed, masks=True)
    expected = open_images.evaluate(truths, found, images, labels, rules)
    mean = np.nanmean(expected) if not np.isnan(expected).all() else np.nan
    for workers in (1, 3):
        ours = scored_open_images(
            truths, found, listed, images, labels, "openimages-segmentation", weight, workers
        )
        np.testing.assert_array_equal([*ours[0], ours[1]], [*expected, mean])


def hierarchy_of(parents: list[list[int]]) -> boxscore.Hierarchy:
    """Nest classes in each of the classes above them."""

    def node(label: int) -> dict[str, object]:
        below = [node(other) for other, own in enumerate(parents) if label in own]
        return {"LabelName": str(label)} | ({"Subcategory": below} if below else {})

    tops = [node(label) for label, own in enumerate(parents) if not own]
    return boxscore.Hierarchy.of({"LabelName": "all", "Subcategory": tops})


@each([(seed, weight) for seed in range(100) for weight in [1.0, 0.4, 0.0]], first=10 * 3)
def test_masks_along_a_hierarchy_equal_the_rules_in_plain_python(seed: int, weight: float) -> None:
    """Classes may stand below several; groups, boxes without masks and labels of images among them."""
    rng = np.random.default_rng(seed)
    truths, found, listed, images, labels = open_images_mask_case(seed)
    parents = [
        sorted({*rng.integers(0, label, rng.integers(0, 3)).tolist()}) if label else []
        for label in range(labels)
    ]
    verified = {pair: not row % 2 for row, pair in enumerate(sorted(listed))}
    wider = open_images.expanded(truths, found, verified, parents)
    rules = open_images.Rules(weight, wider[2], masks=True)
    expected = open_images.evaluate(*wider[:2], images, labels, rules)
    tables = [
        expand_classes(table, hierarchy_of(parents))
        for table in tables_of(truths, found, listed, images, labels)
    ]
    protocol = {"extends": "openimages-segmentation", "group": {"weight": weight}}
    result = boxscore.evaluate(*tables, protocol=protocol, digest=False)
    np.testing.assert_array_equal(result.class_values["AP"], expected)


def group_of_two(*scores: float, weight: float = 1) -> boxscore.Evaluation:
    """A group box with one detection in it for each score, and an ordinary object that nothing finds."""
    truth = GroundTruth.from_arrays(
        [1, 1], ["a", "a"], [[0, 0, 50, 50], [80, 80, 90, 90]], group=[True, False]
    )
    boxes = [[5 * row, 5, 5 * row + 10, 15] for row in range(len(scores))]
    found = Detections.from_arrays([1] * len(scores), ["a"] * len(scores), boxes, scores)
    protocol = {"extends": "openimages-challenge", "group": {"weight": weight}}
    return boxscore.evaluate(truth, found, protocol=protocol)


def test_what_lies_in_a_group_is_one_hit() -> None:
    assert group_of_two(0.9, 0.8, 0.7)["mAP"] == 0.5
    assert group_of_two(0.9, 0.8, 0.7).matches["outcome"].tolist() == ["true positive", "ignored", "ignored"]


def test_a_group_without_a_score_above_zero_is_missed() -> None:
    result = group_of_two(0.0, -1.0)
    assert result["mAP"] == 0.0
    assert result.matches["outcome"].tolist() == ["ignored", "ignored"]


def test_a_group_of_weight_zero_counts_nowhere() -> None:
    result = group_of_two(0.9, 0.8, weight=0)
    assert result.class_counts["ground_truths"].tolist() == [1]
    assert result.matches["outcome"].tolist() == ["ignored", "ignored"]


def test_a_part_of_an_object_needs_an_area() -> None:
    with pytest.raises(ProtocolError, match=r"group.weight must be 0 or 1 unless ap.interpolation is"):
        boxscore.load_protocol({"extends": "coco", "group": {"treatment": "merge", "weight": 0.5}})


def test_a_part_of_an_object_is_not_resampled() -> None:
    with pytest.raises(InputError, match=r"group.weight must be 0 or 1 to weigh images"):
        bootstrap_intervals(group_of_two(0.9, weight=0.5))


def test_true_positives_of_half_a_weight_have_no_completion() -> None:
    truth = GroundTruth.from_arrays(
        [1] * 30, ["a"] * 30, [[50 * row, 0, 50 * row + 40, 40] for row in range(30)], group=[True] * 30
    )
    found = Detections.from_arrays(
        [1] * 29, ["a"] * 29, truth.boxes[1:], np.linspace(0.3, 0.9, 29), images=truth.images
    )
    half = {"extends": "openimages-challenge", "group": {"weight": 0.5}}
    for protocol, most in (("openimages-challenge", 1.0), (half, None)):
        result = boxscore.evaluate(truth, found, protocol=protocol)  # what lies below the floor is asked here
        assert result.metrics["mAP"] == pytest.approx(29 / 30, rel=1e-15)
        assert most_with_lower_scores(result) == most


@pytest.mark.parametrize("hit", [0, 1])
def test_of_equal_scores_a_groups_hit_goes_first_in_its_image(hit: int) -> None:
    truth = GroundTruth.from_arrays([1], ["a"], [[0, 0, 50, 50]], group=[True])
    boxes = [[80, 80, 90, 90], [5, 5, 15, 15]]
    found = Detections.from_arrays([1, 1], ["a", "a"], boxes if hit else boxes[::-1], [0.5, 0.5])
    assert boxscore.evaluate(truth, found, protocol="openimages-challenge").metrics["mAP"] == 1.0


def test_of_equal_scores_the_last_image_goes_before_a_groups_hit_of_an_earlier_one() -> None:
    truth = GroundTruth.from_arrays([1, 2], ["a", "a"], [[0, 0, 50, 50]] * 2, group=[True, False])
    found = Detections.from_arrays([1, 2], ["a", "a"], [[5, 5, 15, 15], [80, 80, 90, 90]], [0.5, 0.5])
    assert boxscore.evaluate(truth, found, protocol="openimages-challenge").metrics["mAP"] == 0.25


def half_of_a_group(*, metric: str = "AP") -> boxscore.Evaluation:
    """A group that counts .5 and an object of class a, an object of class b; all found, one of them twice."""
    truth = GroundTruth.from_arrays(
        [1, 2, 3], ["a", "a", "b"], [[0, 0, 50, 50]] * 3, group=[True, False, False]
    )
    found = Detections.from_arrays(
        [1, 2, 3, 3], ["a", "a", "b", "b"], [[0, 0, 50, 50]] * 4, [0.9, 0.8, 0.7, 0.6]
    )
    summary = [{"key": metric, "metric": metric}]
    protocol = {"extends": "openimages-v2", "group": {"weight": 0.5}, "summary": summary}
    return boxscore.evaluate(truth, found, protocol=protocol, digest=False)


def test_counts_where_a_group_is_half_an_object() -> None:
    result = half_of_a_group()
    counts = {name: values.tolist() for name, values in result.class_counts.items()}
    assert counts == {
        "ground_truths": [1.5, 1.0],
        "ignored": [0, 0],
        "detections": [2, 2],
        "true_positives": [1.5, 1.0],
    }
    assert result.class_rates["recall"].tolist() == [1.0, 1.0]
    curve = diagnostics.confidence_curve(result).to_frame()
    assert curve["true_positives"].tolist() == [0.5, 1.5, 1.0, 1.0]
    assert curve["false_positives"].tolist() == [0, 0, 0, 1]
    assert curve["recall"].tolist() == [0.5 / 1.5, 1.0, 1.0, 1.0]
    assert curve.dtypes["false_positives"] == np.int64
    best = diagnostics.operating_points(result).to_frame()
    assert best["true_positives"].tolist() == [1.5, 1.0]
    assert diagnostics.froc_curve(result).to_frame()["sensitivity"].tolist() == [0.5 / 1.5, 1.0, 1.0, 1.0]
    errors = diagnostics.localization_recall_precision(result).to_frame()
    assert errors["lrp"].tolist() == [0.0, 0.0]
    assert errors["false_negatives"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("metric", ["MR", "FROC", "JI"])
def test_a_part_of_an_object_has_no_other_metrics(metric: str) -> None:
    rule = "group.weight must be 0 or 1 unless the summary has AP and AR alone. Got 0.5; other metrics count whole objects."
    with pytest.raises(ProtocolError, match=re.escape(rule)):
        half_of_a_group(metric=metric)
