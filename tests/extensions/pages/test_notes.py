"""What the page says of the data is what ``validate`` finds, with the same counts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.extensions.pages.view import notes
from boxscore.extensions.validation.digest import findings_of
from boxscore.validation import validate
from support.evaluations import evaluation, hostile_evaluation, shapes


def odd() -> boxscore.Evaluation:
    images = Images.build([1, 2], sizes=[[100, 100], [100, 100]])
    boxes = [[0, 0, 10, 10], [0, 0, 10, 10], [5, 5, 5, 9]]
    names = {1: "cat", 2: "dog", 3: "cow"}
    truth = boxscore.GroundTruth.from_arrays([1, 1, 1], [1, 1, 2], boxes, images=images, categories=names)
    detections = boxscore.Detections.from_arrays(
        [1] * 40, [1] * 40, [[0, 0, 10, 10], *[[80, 80, 101.5, 99]] * 39], [7.0] * 30 + [*range(10)],
        images=images, categories=names,
    )  # fmt: skip
    return boxscore.evaluate(truth, detections)


def test_each_oddity_is_said() -> None:
    texts = " ".join(note.text for note in notes(findings_of(odd()), warnings=["as given"]))
    for part in (
        "as given",
        "1 annotation with a box of width or height 0",
        "39 detections extend more than 1 pixel outside their image (up to 1.5)",
        "1 annotation overlaps an earlier one of the same image and class with IoU >= 0.9",
        "1 class of 3 without annotations",
        "1 class with annotations but without detections",
        "1 image of 2 without annotations",
        "31 detections (78%) share their score with another of their class",
        "38 scores outside [0, 1] (0 to 9)",
    ):
        assert part in texts, part


@pytest.mark.parametrize("make", [odd, shapes, evaluation, hostile_evaluation])
def test_a_page_says_what_validate_finds(make: object) -> None:
    result = make()  # type: ignore[operator]
    known = validate(result.ground_truth, result.detections, protocol=result.protocol)
    assert repr(findings_of(result)) == repr(known)  # NaN differs from itself
    assert [(note.code, note.effect, note.examples) for note in notes(known)] == [
        (finding.code, finding.effect_text, finding.examples) for finding in known
    ]
    without = findings_of(result, effects=False)
    assert {(item.code, item.severity, item.count, item.message) for item in without} <= {
        (item.code, item.severity, item.count, item.message) for item in known
    }
    left = {item.code for item in known} - {item.code for item in without}
    assert left <= {
        *("repeated-detection", "beyond-max-detections", "classes-numbered-differently", "images-off-by-one")
    }


def test_warnings_come_first_and_are_not_said_twice() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]], ids=[0])
    detections = boxscore.Detections.from_arrays([1], ["cat"], [[0, 0, 9, 9]], [0.5])
    with pytest.warns(boxscore.BoxscoreWarning, match="id 0") as given:
        result = boxscore.evaluate(truth, detections)
    assert ["id 0" in note.text for note in notes(findings_of(result))] == [True]
    said = notes(findings_of(result), warnings=[str(item.message) for item in given])
    assert ["id 0" in note.text for note in said] == [True]
    levels = [note.level for note in notes(findings_of(odd()), warnings=["as given"])]
    order = ("error", "warning", "note")
    assert levels == sorted(levels, key=order.index)
    assert {"note", "warning"} <= set(levels)


def test_no_detections_at_all() -> None:
    result = shapes()
    none = boxscore.evaluate(result.ground_truth, result.detections.take(np.arange(0)))
    assert "without detections" in " ".join(note.text for note in notes(findings_of(none)))


def test_an_example_that_the_sentence_has_is_not_repeated() -> None:
    finding = findings_of(odd())[0]
    one = dataclasses.replace(finding, message="a box of image 7 is empty", examples=("image 7", "image 8"))
    (note,) = notes([one])
    assert note.examples == ("image 8",)
