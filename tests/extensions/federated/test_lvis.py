"""LVIS's rules, on made-up federated data: every cell equal to the rules in plain Python."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluator, GroundTruth, ImageLabels, ProtocolError
from boxscore.data.vocabulary import Categories, Images
from boxscore.diagnostics import sweep
from boxscore.validation import validate
from oracles import lvis
from support.examples import first_of
from support.federated_cases import federated_case
from support.quiet import quiet

CAPS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "image": ("lvis", {"max_detections": [3]}, {"per_image": 3}),
    "wide": ("lvis", {"max_detections": [300]}, {"per_image": 300}),
    "class": ("lvis-fixed", {"max_detections": [4]}, {"per_image": None, "per_class": 4}),
}


@pytest.mark.parametrize("cap", list(CAPS))
@pytest.mark.parametrize("seed", first_of(4, range(12)))
def test_equal_to_the_rules_in_plain_python(tmp_path: Path, seed: int, cap: str) -> None:
    dataset, results = federated_case(seed)
    (tmp_path / "truth.json").write_text(json.dumps(dataset), encoding="utf-8")
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    name, matching, rules = CAPS[cap]
    with quiet():
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


# ---------------------------------------------------------------- batches, files, checks


def files(folder: Path, seed: int, **changes: Any) -> tuple[Path, Path]:
    dataset, results = federated_case(seed)
    (folder / "truth.json").write_text(json.dumps(dataset | changes), encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return folder / "truth.json", folder / "results.json"


@pytest.mark.parametrize("seed", range(8))
def test_an_evaluator_is_equal_to_files(tmp_path: Path, seed: int) -> None:
    truth, found = files(tmp_path, seed)
    dataset, results = json.loads(truth.read_text()), json.loads(found.read_text())
    for number, one in enumerate(dataset["annotations"], 1):
        one["id"] = number  # batches have no ids of annotations
        one.pop("iscrowd", None)
    for one in results:  # batches have no sides below 0
        one["bbox"][2:] = map(abs, one["bbox"][2:])
    truth.write_text(json.dumps(dataset))
    found.write_text(json.dumps(results))
    labels = [one["id"] for one in dataset["categories"]]
    letters = [one["frequency"] for one in dataset["categories"]]
    classes = Categories.build(labels, columns={"frequency": letters})
    evaluator = Evaluator(protocol="lvis", classes=classes, box_format="xywh")
    for image in reversed(dataset["images"]):
        objects = [one for one in dataset["annotations"] if one["image_id"] == image["id"]]
        detections = [one for one in results if one["image_id"] == image["id"]]
        target = {
            "image_id": image["id"],
            "boxes": np.reshape([one["bbox"] for one in objects], (-1, 4)),
            "labels": [one["category_id"] for one in objects],
            "area": [one["area"] for one in objects],
            "ignore": [bool(one.get("ignore")) for one in objects],
            "neg_category_ids": image["neg_category_ids"],
            "not_exhaustive_category_ids": image["not_exhaustive_category_ids"],
        }
        prediction = {
            "boxes": np.reshape([one["bbox"] for one in detections], (-1, 4)),
            "labels": [one["category_id"] for one in detections],
            "scores": [one["score"] for one in detections],
        }
        evaluator.update([prediction], [target])
    with quiet():
        expected = boxscore.evaluate(truth, found, protocol="lvis")
        metrics = evaluator.compute().metrics
    np.testing.assert_array_equal(list(metrics.values()), list(expected.metrics.values()))


def test_lists_of_a_batch_may_be_names_and_name_known_classes() -> None:
    evaluator = Evaluator(protocol="lvis", classes={1: "cat", 2: "dog"})
    box = {"boxes": [[0, 0, 9, 9]], "labels": [1]}
    evaluator.update([box | {"scores": [0.5]}], [box | {"neg_category_ids": ["dog"]}])
    with pytest.warns(boxscore.BoxscoreWarning, match="no class has frequency; APr, APc, APf are undefined"):
        labels = evaluator.compute().ground_truth.image_labels
    assert labels is not None
    assert labels.category.tolist() == [1]
    evaluator.update([box | {"scores": [0.5]}], [box | {"image_id": None, "neg_category_ids": [3]}])
    with pytest.raises(boxscore.InputError, match=r"Got 3 in neg_category_ids of image 1\."):
        evaluator.compute()


@pytest.mark.parametrize("name", ["again.json", "again.npz"])
@pytest.mark.parametrize("seed", [1, 4])
def test_saved_and_read_again_it_is_the_same_data(tmp_path: Path, seed: int, name: str) -> None:
    truth, found = files(tmp_path, seed)
    with quiet():
        table = boxscore.load_ground_truth(truth)
        assert boxscore.save_as(table, tmp_path / name, lossy=True) == []
        again = boxscore.load_ground_truth(tmp_path / name)
        metrics = [boxscore.evaluate(one, found, protocol="lvis").metrics for one in (table, again)]
    assert table.image_labels is not None
    assert again.image_labels is not None
    frames = [one.image_labels.to_pandas(one.images, one.categories) for one in (table, again)]  # type: ignore[union-attr]
    assert sorted(map(str, frames[0].to_dict("records"))) == sorted(map(str, frames[1].to_dict("records")))
    assert again.categories.columns["frequency"].tolist() == table.categories.columns["frequency"].tolist()
    assert again.ignore.tolist() == table.ignore.tolist()
    np.testing.assert_array_equal(list(metrics[0].values()), list(metrics[1].values()))


def test_what_a_format_cannot_hold_is_named(tmp_path: Path) -> None:
    labels = ImageLabels.from_arrays(
        [1, 2], ["cat", "dog"], ["negative", "positive"], images=IMAGES, categories=CLASSES
    )
    classes = Categories.build([1, 2], names=["cat", "dog"], columns={"frequency": ["r", "f"]})
    truth = GroundTruth.from_arrays([1], [2], [BOX], images=IMAGES, categories=classes, image_labels=labels)
    with pytest.raises(boxscore.InputError, match="1 positive label of images"):
        boxscore.save_as(truth, tmp_path / "truth.json")
    with pytest.raises(boxscore.InputError, match=r"1 label of images.*frequency of classes"):
        boxscore.save_as(truth, tmp_path / "truth.csv")


def test_the_frequency_stands_in_the_table_of_classes(tmp_path: Path) -> None:
    truth, found = files(tmp_path, 2)
    with quiet():
        evaluation = boxscore.evaluate(truth, found, protocol="lvis")
    letters = [one["frequency"] for one in json.loads(truth.read_text())["categories"]]
    assert evaluation.per_class["frequency"].tolist() == letters
    assert [row["frequency"] for row in json.loads(evaluation.to_json())["per_class"]] == letters
    schema = resources.files("boxscore.reports").joinpath("assets/result.schema.json").read_text()
    pytest.importorskip("jsonschema").validate(json.loads(evaluation.to_json()), json.loads(schema))


def test_an_unknown_frequency_is_refused(tmp_path: Path) -> None:
    truth, found = files(
        tmp_path, 2, categories=[{"id": one, "name": "x", "frequency": "x"} for one in (1, 2, 3, 4)]
    )
    words = r"frequency must be one of r, c, f for lvis. Got 'x' in class x \(1\) of"
    with quiet(), pytest.raises(boxscore.InputError, match=words):
        boxscore.evaluate(truth, found, protocol="lvis")


def test_missing_lists_are_counted(tmp_path: Path) -> None:
    images = federated_case(3)[0]["images"]
    del images[0]["neg_category_ids"]
    truth, _ = files(tmp_path, 3, images=images)
    words = f"1 of {len(images)} images has no neg_category_ids; read as empty"
    with pytest.warns(boxscore.BoxscoreWarning, match=words):
        boxscore.load_ground_truth(truth)


def found_codes(truth: GroundTruth, detections: Detections, protocol: str = "lvis") -> dict[str, int]:
    return {one.code: one.count for one in validate(truth, detections, protocol=protocol)}


def test_checks_of_labels() -> None:
    boxes = [BOX, BOX]
    found = Detections.from_arrays([1, 2], [2, 1], boxes, [0.9, 0.8], images=IMAGES, categories=CLASSES)
    bare = GroundTruth.from_arrays([1], [2], [BOX], images=IMAGES, categories=CLASSES)
    assert found_codes(bare, found)["image-labels-missing"] == 2
    assert found_codes(bare, found)["detections-unlisted"] == 1
    assert "image-labels-missing" not in found_codes(bare, found, "coco")
    labels = ImageLabels.from_arrays(
        [1, 2, 2], [2, 1, 1], ["negative", "negative", "not_exhaustive"], images=IMAGES, categories=CLASSES
    )
    odd = GroundTruth.from_arrays([1], [2], [BOX], images=IMAGES, categories=CLASSES, image_labels=labels)
    codes = found_codes(odd, found)
    assert codes["absent-class-with-object"] == 1
    assert codes["negative-class-not-exhaustive"] == 1
    assert not {"image-labels-missing", "detections-unlisted"} & {*codes}


def test_every_detection_unlisted_is_an_error() -> None:
    truth = GroundTruth.from_arrays([1], [2], [BOX], images=IMAGES, categories=CLASSES)
    found = Detections.from_arrays([2], [2], [BOX], [0.9], images=IMAGES, categories=CLASSES)
    finding = next(
        one for one in validate(truth, found, protocol="lvis") if one.code == "detections-unlisted"
    )
    assert finding.severity == "error"
    assert finding.message.startswith(
        "1 detection (100%) is dropped and counts neither as right nor as wrong, because the image has no "
        "object or label of the class. Do the labels cover"
    )


def test_a_sweep_leaves_out_metrics_of_groups_per_class() -> None:
    truth = GroundTruth.from_arrays([1], [2], [BOX], images=IMAGES, categories=CLASSES)
    found = Detections.from_arrays([1], [2], [BOX], [0.9], images=IMAGES, categories=CLASSES)
    result = sweep(truth, found, iou_thresholds=[0.5], protocol="lvis")
    assert "APr" not in result.to_frame().columns
    assert result.total_frame()["AP"].round(6).tolist() == [1.0]
