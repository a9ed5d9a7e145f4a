"""Open Images' rules: every AP and the mean equal to the rules in plain Python, where scores differ."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError, ProtocolError
from boxscore.diagnostics import bootstrap_intervals
from boxscore.validation.completion import most_with_lower_scores
from oracles import open_images
from support.federated_cases import open_images_case, open_images_mask_case
from support.open_images import scored_open_images

KINDS = [
    ("openimages-challenge", 1.0),
    ("openimages-challenge", 0.5),
    ("openimages-challenge", 0.3),
    ("openimages-challenge", 0.0),
    ("openimages-v2", 0.0),
]


@pytest.mark.parametrize(("name", "weight"), KINDS)
@pytest.mark.parametrize("seed", range(30))
def test_equal_to_the_rules_in_plain_python(seed: int, name: str, weight: float) -> None:
    truths, found, listed, images, labels = open_images_case(seed)
    verified = None if name == "openimages-v2" else listed
    rules = open_images.Rules(weight, verified)
    expected = open_images.evaluate(truths, found, images, labels, rules)
    mean = np.nanmean(expected) if not np.isnan(expected).all() else np.nan
    for workers in (1, 3):
        ours = scored_open_images(truths, found, listed, images, labels, name, weight, workers)
        np.testing.assert_array_equal([*ours[0], ours[1]], [*expected, mean])


@pytest.mark.parametrize("weight", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("seed", range(30))
def test_masks_equal_to_the_rules_in_plain_python(seed: int, weight: float) -> None:
    truths, found, listed, images, labels = open_images_mask_case(seed)
    rules = open_images.Rules(weight, listed, masks=True)
    expected = open_images.evaluate(truths, found, images, labels, rules)
    mean = np.nanmean(expected) if not np.isnan(expected).all() else np.nan
    for workers in (1, 3):
        ours = scored_open_images(
            truths, found, listed, images, labels, "openimages-segmentation", weight, workers
        )
        np.testing.assert_array_equal([*ours[0], ours[1]], [*expected, mean])


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
        bootstrap_intervals(group_of_two(0.9, weight=0.5), resamples=5)


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


@pytest.mark.parametrize(("hit", "expected"), [(0, 1.0), (1, 0.5)])
def test_of_equal_scores_a_groups_hit_keeps_the_place_of_its_detection(hit: int, expected: float) -> None:
    truth = GroundTruth.from_arrays([1], ["a"], [[0, 0, 50, 50]], group=[True])
    boxes = [[80, 80, 90, 90], [5, 5, 15, 15]]
    found = Detections.from_arrays([1, 1], ["a", "a"], boxes if hit else boxes[::-1], [0.5, 0.5])
    assert boxscore.evaluate(truth, found, protocol="openimages-challenge").metrics["mAP"] == expected
