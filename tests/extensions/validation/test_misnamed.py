"""A class that is always called another: found where a table of names is wrong, and nowhere else."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.extensions.validation import _findings
from boxscore.extensions.validation._findings import Context, quietly
from boxscore.extensions.validation.digest import quick_findings
from boxscore.validation import Finding, validate
from support.evaluations import evaluation
from support.real_data import real

CODE = "class-always-called-another"


def tables(
    classes: dict[str, tuple[int, list[str]]], *, noise: float = 1.0, seed: int = 0
) -> tuple[GroundTruth, Detections]:
    """So many objects of each class, each with a detection that has these names in turn; "" is none."""
    random = np.random.default_rng(seed)
    names, said = [], []
    for name, (count, labels) in classes.items():
        names += [name] * count
        said += [labels[number % len(labels)] for number in range(count)]
    count = len(names)
    image, place = np.arange(count) // 4, 100.0 * (np.arange(count) % 4)
    boxes = np.column_stack([place, place, place + 50, place + 60])
    truth = GroundTruth.from_arrays(image, names, boxes, categories=sorted(classes))
    rows = np.array([row for row, label in enumerate(said) if label])
    moved = boxes[rows] + random.normal(0, noise, (len(rows), 4))
    scores = random.uniform(0.001, 1, len(rows))
    labels = [said[row] for row in rows]
    return truth, Detections.from_arrays(
        image[rows], labels, moved, scores, images=truth.images, categories=truth.categories
    )


def called(*pair: Any) -> list[Finding]:
    return [finding for finding in validate(*pair) if finding.code == CODE]


def test_names_that_were_cut() -> None:
    truth, detections = tables({"hot dog": (12, ["dog"]), "dog": (20, ["dog"]), "cat": (9, ["cat"])})
    (finding,) = called(truth, detections)
    right = dataclasses.replace(
        detections,
        category=np.where(
            np.isin(detections.image, np.arange(3)),
            truth.categories.labels.index("hot dog"),
            detections.category,
        ).astype(np.int32),
    )
    assert finding.message == (
        "1 class is always predicted as another class: 12 of 12 localized objects of class hot dog are predicted as "
        "dog. Possible cause: class names truncated at a space or matched by a substring."
    )
    assert finding.repaired == boxscore.evaluate(truth, right)["AP"]
    assert finding.value == boxscore.evaluate(truth, detections)["AP"]
    assert finding.effect > 0.2
    quick = [one for one in quick_findings(boxscore.evaluate(truth, detections)) if one.code == CODE]
    assert quick == [dataclasses.replace(finding, examples=())]


@pytest.mark.parametrize(
    ("classes", "is_said"),
    [
        ({"carrot": (10, ["car"]), "car": (9, ["car"])}, True),
        ({"carrot": (9, ["car"]), "car": (9, ["car"])}, False),  # too few
        ({"carrot": (12, ["car", "car", "car", "cat"]), "car": (9, ["car"]), "cat": (4, ["cat"])}, True),
        ({"carrot": (12, ["car", "car", "cat"]), "car": (9, ["car"]), "cat": (4, ["cat"])}, False),
        ({"carrot": (40, ["car"] * 39 + ["carrot"]), "car": (9, ["car"])}, False),  # it knows the class
        ({"carrot": (40, ["car", "", "", "", ""]), "car": (9, ["car"])}, False),  # few are located
        ({"truck": (29, ["car"]), "car": (9, ["car"])}, False),
        ({"truck": (30, ["car"]), "car": (9, ["car"])}, True),
        ({"truck": (40, ["car"] * 7 + ["van"]), "car": (9, ["car"]), "van": (3, ["van"])}, False),
    ],
)
def test_how_much_evidence_it_takes(classes: Any, is_said: bool) -> None:
    assert bool(called(*tables(classes))) == is_said


@pytest.mark.parametrize("seed", range(4))
def test_detectors_that_confuse_are_no_tables(seed: int) -> None:
    """Made detectors, good and bad, of classes whose names begin one another."""
    result = evaluation(classes=6, images=40, noise=2.0 + 4.0 * seed, seed=seed)
    truth, detections = result.ground_truth, result.detections
    random = np.random.default_rng(seed)
    confused = random.random(len(detections)) < 0.25 * seed
    category = np.where(confused, random.integers(0, 6, len(detections)), detections.category)
    assert called(truth, dataclasses.replace(detections, category=category.astype(np.int32))) == []


def test_numbers_are_no_names_that_were_cut() -> None:
    (finding,) = called(*tables({"52": (30, ["2"]), "2": (9, ["2"])}))
    assert (
        "30 of 30 localized objects of class 52 are predicted as class 2. Possible cause: a truncated list"
        in finding.message
    )
    assert called(*tables({"52": (29, ["2"]), "2": (9, ["2"])})) == []


def test_chosen_classes_are_no_evidence() -> None:
    pair = tables({"hot dog": (12, ["dog"]), "dog": (20, ["dog"])})
    chosen = boxscore.evaluate(*pair, classes=["hot dog"], digest=False)
    assert CODE not in {finding.code for finding in quick_findings(chosen)}


@pytest.mark.real
def test_yolov2_looked_names_up_by_a_part() -> None:
    truth = boxscore.load_ground_truth(real("coco_val2017", "ground_truth_boxes.json"))
    pair = truth, boxscore.load_detections(real("coco_val2017", "yolov2_608.json"), truth)
    (finding,) = (one for one in quick_findings(boxscore.evaluate(*pair, digest=False)) if one.code == CODE)
    assert finding.message == (
        "3 classes are nearly always predicted as another class: 35 of 40 localized objects of class carrot are predicted "
        "as car, 39 of 48 localized objects of class hot dog are predicted as dog and 91 of 94 localized objects of class teddy bear are predicted as bear. Possible cause: class names truncated at a space or matched by a substring."
    )
    assert (
        finding.effect_text == "With these 3 classes renamed, AP would be 0.2021 instead of 0.1938 (+0.0083)"
    )


@pytest.mark.real
@pytest.mark.parametrize("name", ["yolact_base_100.bbox.json", "yolact_resnet50_100.bbox.json"])
def test_other_real_detectors_name_what_they_see(name: str) -> None:
    truth = boxscore.load_ground_truth(real("coco_val2017", "ground_truth_boxes.json"))
    result = boxscore.evaluate(
        truth, boxscore.load_detections(real("coco_val2017", name), truth), digest=False
    )
    assert CODE not in {one.code for one in quick_findings(result)}


def test_nearly_always_where_it_is_not_all() -> None:
    pair = tables({"hot dog": (12, ["dog"] * 11 + ["cat"]), "dog": (20, ["dog"]), "cat": (9, ["cat"])})
    (finding,) = called(*pair)
    assert finding.message == (
        "1 class is nearly always predicted as another class: 11 of 12 localized objects of class hot dog are predicted "
        "as dog. Possible cause: class names truncated at a space or matched by a substring."
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("protocol", ["coco", "voc2012", "lvis"])
def test_the_effect_is_that_of_evaluating_every_class(
    seed: int, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COCO's classes never meet: only those that a renaming changes are evaluated again."""
    random = np.random.default_rng(seed)
    given = evaluation(images=12, classes=7, boxes=9, seed=seed, protocol=protocol)
    truth, detections = given.ground_truth, given.detections
    if seed % 3 == 0:  # a class without objects
        truth = truth.take(np.flatnonzero(truth.category != 2))
    one, other, third = random.permutation(7)[:3]
    category = detections.category.copy()
    if seed % 4:
        moved = (category == one) & (random.uniform(size=len(category)) < 0.6)
        category[moved] = random.choice([other, third], int(moved.sum()))
    else:  # too many classes for a shortcut
        category = random.permutation(category)
    renamed = dataclasses.replace(detections, category=category)

    evaluated: list[int] = []

    def counted(ground_truth: GroundTruth, *rest: Any) -> boxscore.Evaluation:
        evaluated.append(len(ground_truth.categories))
        return quietly(ground_truth, *rest)

    context = Context(truth, detections, given.protocol)
    assert context.value == context.value  # computed before the evaluations are counted
    monkeypatch.setattr(_findings, "quietly", counted)
    value = context.repaired_value(lambda c, _: (c.ground_truth, renamed, c.protocol))
    expected = boxscore.evaluate(truth, renamed, protocol=given.protocol, digest=False)
    assert value == next(iter(expected.metrics.values()))
    few = protocol == "coco" and seed % 4
    assert [count < 7 for count in evaluated] == [bool(few)]


def test_boxes_that_move_too_are_evaluated_in_every_class() -> None:
    given = evaluation(images=12, classes=7, boxes=9)
    detections = given.detections
    category = np.where(detections.category == 1, 2, detections.category).astype(np.int32)
    moved = dataclasses.replace(detections, category=category, boxes=detections.boxes + 9.0)
    value = Context(given.ground_truth, detections, given.protocol).repaired_value(
        lambda c, _: (c.ground_truth, moved, c.protocol)
    )
    assert value == boxscore.evaluate(given.ground_truth, moved, digest=False)["AP"]
