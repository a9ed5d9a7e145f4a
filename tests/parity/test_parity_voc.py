"""Made-up VOC data sets: AP, and what became of every detection, equal to the kit in plain Python."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import boxscore
from oracles import kit
from support.examples import examples
from support.quiet import quiet
from support.voc_cases import Case, tables, voc_cases, write

OUTCOMES = {"true": "true positive", "false": "false positive", "ignored": "ignored"}


def evaluate(case: Case, *loaded: Any) -> boxscore.Evaluation:
    with quiet():  # detections of a class without objects
        return boxscore.evaluate(*(loaded or tables(case)), protocol=case.rules)


@pytest.mark.long
@given(case=voc_cases())
@settings(max_examples=examples(1_500))
def test_ap_equals_the_kit(case: Case) -> None:
    evaluation = evaluate(case)
    assert evaluation.labels == case.labels
    expected = case.expected()
    assert np.array_equal(evaluation.per_class["AP"], expected, equal_nan=True), (
        evaluation.per_class["AP"].tolist(),
        expected,
    )
    defined = [value for value in expected if not math.isnan(value)]
    mean = float(np.mean(defined)) if defined else math.nan
    assert np.array_equal(evaluation.metrics["mAP"], mean, equal_nan=True)


@given(case=voc_cases())
@settings(max_examples=examples(400))
def test_every_detection_is_judged_as_in_the_kit(case: Case) -> None:
    known = [item for item in case.found if item.label in case.labels]
    case = dataclasses.replace(case, found=known)
    frame = evaluate(case).matches
    assert len(frame) == len(known)
    for label in case.labels:
        judged = kit.outcomes(case.objects, case.found, label, threshold=case.threshold, closed=case.closed)
        for number, outcome in judged:
            row = frame.iloc[number]
            assert row["outcome"] == OUTCOMES[outcome.kind], number
            assert row["annotation_id"] == (None if outcome.best is None else outcome.best + 1), number
            assert np.array_equal(row["iou"], outcome.overlap, equal_nan=True), number


@given(case=voc_cases())
@settings(max_examples=examples(100))
def test_files_in_the_kits_form_score_the_same(case: Case, folder: Path) -> None:
    with quiet():
        truth_folder, results = write(case, folder)
        truth = boxscore.load_ground_truth(truth_folder, image_set="test")
        if not case.found:
            with pytest.raises(boxscore.FileFormatError, match="comp4_det_"):
                boxscore.load_detections(results, truth)
            return
        found = boxscore.load_detections(results, truth)
    evaluation = evaluate(case, truth, found)
    assert evaluation.labels == case.labels
    assert np.array_equal(evaluation.per_class["AP"], case.expected(), equal_nan=True)


@pytest.mark.slow
@given(case=voc_cases())
@settings(max_examples=examples(20_000), derandomize=False)
def test_ap_equals_the_kit_many_more(case: Case) -> None:
    assert np.array_equal(evaluate(case).per_class["AP"], case.expected(), equal_nan=True)


def test_ties_are_taken_in_file_order_over_all_images() -> None:
    """The kit sorts stably: which of two equal scores comes first depends on the file, not on the image."""
    hit, miss = (10.0, 10.0, 20.0, 20.0), (50.0, 50.0, 60.0, 60.0)
    objects = [kit.Object("b", "cat", hit, False)]
    for first_hit in (True, False):
        found = [kit.Found("b", "cat", 0.5, hit), kit.Found("a", "cat", 0.5, miss)]
        case = Case(["a", "b"], objects, found if first_hit else found[::-1], "voc2012", 0.5, True)
        assert evaluate(case).metrics["mAP"] == (1.0 if first_hit else 0.5)
        assert evaluate(case).per_class["AP"].tolist() == case.expected()


@pytest.mark.parametrize(("closed", "expected"), [(True, 1.0), (False, 0.0)])
def test_an_overlap_equal_to_the_threshold(closed: bool, expected: float) -> None:
    objects = [kit.Object("a", "cat", (1.0, 1.0, 10.0, 10.0), False)]
    found = [kit.Found("a", "cat", 0.5, (1.0, 1.0, 10.0, 5.0))]
    assert kit.overlap(objects[0].box, found[0].box) == 0.5
    case = Case(["a"], objects, found, "voc2012", 0.5, closed)
    assert evaluate(case).metrics["mAP"] == expected == case.expected()[0]
