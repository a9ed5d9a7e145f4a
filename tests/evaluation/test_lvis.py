"""LVIS's rules, on made-up federated data: every cell equal to the rules in plain Python."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluator, GroundTruth, ImageLabels, ProtocolError
from boxscore.data.vocabulary import Categories, Images
from oracles import lvis
from support.federated_cases import federated_case

CAPS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "image": ("lvis", {"max_detections": [3]}, {"per_image": 3}),
    "wide": ("lvis", {"max_detections": [300]}, {"per_image": 300}),
    "class": ("lvis-fixed", {"max_detections": [4]}, {"per_image": None, "per_class": 4}),
}


@pytest.mark.parametrize("cap", list(CAPS))
@pytest.mark.parametrize("seed", range(12))
def test_equal_to_the_rules_in_plain_python(tmp_path: Path, seed: int, cap: str) -> None:
    dataset, results = federated_case(seed)
    (tmp_path / "truth.json").write_text(json.dumps(dataset), encoding="utf-8")
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    name, matching, rules = CAPS[cap]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        evaluations = [
            boxscore.evaluate(
                tmp_path / "truth.json",
                tmp_path / "results.json",
                protocol={"extends": name, "matching": matching},
                workers=workers,
            )
            for workers in (1, 3)
        ]
    expected = lvis.evaluate(dataset, results, **rules)
    for evaluation in evaluations:
        arrays = evaluation.arrays()
        for part in ("precision", "recall"):
            ours = np.nan_to_num(arrays[part][..., 0], nan=-1.0)
            np.testing.assert_array_equal(ours, getattr(expected, part))


IMAGES, CLASSES = Images.build([1, 2]), Categories.build([1, 2], names=["cat", "dog"])
BOX = [0, 0, 10, 10]
ALONE = {"matching": {"iou_thresholds": [0.5]}, "summary": [{"key": "AP"}]}


def dog_in_second_image(labels: list[tuple[int, str]], **rules: str) -> float:
    """AP of dogs: one is there in image 1, and one is detected first in image 2, where none is."""
    kinds: Any = [kind for _, kind in labels]
    truth = GroundTruth.from_arrays(
        [1],
        [2],
        [BOX],
        images=IMAGES,
        categories=CLASSES,
        image_labels=ImageLabels.from_arrays(
            [image for image, _ in labels], [2] * len(labels), kinds, images=IMAGES, categories=CLASSES
        ),
    )
    found = Detections.from_arrays([2, 1], [2, 2], [BOX, BOX], [0.9, 0.8], images=IMAGES, categories=CLASSES)
    result = boxscore.evaluate(truth, found, protocol={"extends": "coco", **ALONE, "labels": rules})
    return round(result["AP"], 6)


def test_an_unlisted_class_is_dropped() -> None:
    assert dog_in_second_image([]) == 0.5
    assert dog_in_second_image([], unlisted="drop") == 1.0


def test_a_negative_label_makes_false_positives() -> None:
    assert dog_in_second_image([(2, "negative")], unlisted="drop") == 0.5


def test_a_positive_label_lists_a_class_where_the_protocol_says_so() -> None:
    assert dog_in_second_image([(2, "positive")], unlisted="drop") == 1.0
    assert dog_in_second_image([(2, "positive")], unlisted="drop", listed_by="verified") == 0.5


def test_what_is_not_exhaustive_is_no_false_positive() -> None:
    assert dog_in_second_image([(2, "not_exhaustive")]) == 0.5
    assert dog_in_second_image([(2, "not_exhaustive")], not_exhaustive="ignore") == 1.0


def test_labels_follow_chosen_images_and_classes() -> None:
    labels = ImageLabels.from_arrays(
        [1, 2, 2], ["cat", "cat", "dog"], ["negative"] * 3, images=IMAGES, categories=CLASSES
    )
    truth = GroundTruth.from_arrays([1], [2], [BOX], images=IMAGES, categories=CLASSES, image_labels=labels)
    chosen = boxscore.filter_objects(truth, images=[2], classes=["dog"])
    assert chosen.image_labels is not None
    frame = chosen.image_labels.to_pandas(chosen.images, chosen.categories)
    assert frame.to_dict("records") == [{"image_id": 2, "category_id": 2, "class": "dog", "kind": "negative"}]


def test_a_cap_over_the_data_set_is_refused_where_images_come_in_batches() -> None:
    with pytest.raises(ProtocolError, match=r"cap_scope must be 'class' or 'image' for an Evaluator"):
        Evaluator(protocol="lvis-fixed")
