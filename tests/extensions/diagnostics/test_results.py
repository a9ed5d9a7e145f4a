"""What every diagnostic's result keeps: arrays computed once, tables of classes apart from totals."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from boxscore.extensions.diagnostics._result import DiagnosticResult

PER_CLASS = {
    "bootstrap_intervals": {},
    "calibration_error": {},
    "confidence_curve": {},
    "error_types": {},
    "error_areas": {},
    "error_curves": {},
    "froc_curve": {},
    "froc_scores": {},
    "localization_recall_precision": {},
    "operating_points": {},
    "reliability": {},
    "threshold_guarantee": {"recall": 0.5},
    "tie_bounds": {},
}


@pytest.mark.parametrize("name", PER_CLASS)
def test_totals_are_no_classes(sample, name):
    result = getattr(diagnostics, name)(boxscore.evaluate(*sample), **PER_CLASS[name])
    assert isinstance(result, DiagnosticResult)
    rows, total = result.to_frame(), result.total_frame()
    assert set(rows["class"]) <= set(result.classes)
    assert set(total["class"]) <= {"(all)", "(mean)"}
    assert list(rows) == list(total)
    assert len(result.printed_frame()) == len(rows) + len(total)
    assert repr(result).startswith(f"{type(result).__name__}, ")


@pytest.mark.parametrize(
    "name", [*PER_CLASS, "error_list", "confusion_matrix", "top_confusions", "label_suspects"]
)
def test_answers_are_computed_once_and_read_only(sample, name):
    evaluation = boxscore.evaluate(*sample)
    function = getattr(diagnostics, name)
    options = PER_CLASS.get(name, {})
    result = function(evaluation, **options)
    assert function(evaluation, **options) is result
    assert function(boxscore.evaluate(*sample), **options) is not result
    arrays = [
        array
        for value in vars(result).values()
        for array in (value if isinstance(value, tuple) else [value])
        if isinstance(array, np.ndarray)
    ]
    assert arrays
    assert not any(array.flags.writeable for array in arrays)


def test_other_options_are_another_answer(sample):
    evaluation = boxscore.evaluate(*sample)
    first = diagnostics.tie_bounds(evaluation, metrics=["AP"])
    assert diagnostics.tie_bounds(evaluation, metrics=["AP"]) is first
    assert diagnostics.tie_bounds(evaluation, metrics=["AP50"]) is not first
    assert diagnostics.operating_points(evaluation, at_score=1) is not diagnostics.operating_points(
        evaluation, at_score=1.0
    )
    with pytest.raises(boxscore.InputError, match="by must be one of"):
        diagnostics.slice_scores(evaluation, by=["size"])


def test_a_short_form_of_many_classes_shows_the_totals() -> None:
    boxes = [[0, 0, 10, 10]] * 30
    truth = boxscore.GroundTruth.from_arrays([1] * 30, list(range(30)), boxes)
    detections = boxscore.Detections.from_arrays([1] * 30, list(range(30)), boxes, [0.9] * 30)
    result = boxscore.diagnostics.error_types(boxscore.evaluate(truth, detections))
    lines = repr(result).splitlines()
    assert lines[0] == "ErrorTypes, all classes together; to_frame() has 240 rows per class"
    assert len(lines) == 10
    assert "(all)" in lines[2]
    assert result._repr_html_().count("<tr") == 9
