"""Every question over partitions has the bits of one process: one walk over all questions, for three partitionings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import (
    bootstrap_intervals,
    calibration_error,
    confusion_matrix,
    error_areas,
    error_curves,
    error_types,
    froc_scores,
    localization_recall_precision,
    operating_points,
    reliability,
    tie_bounds,
    top_confusions,
)
from extensions.diagnostics.test_analysis_in_parts import with_groups
from extensions.diagnostics.test_tide import crowded_scene as scene
from support import limits
from support.insides import asked_again

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.formats.parquet import FORMAT
from boxscore.protocols import load_protocol

pytestmark = pytest.mark.usefixtures("no_findings")

Question = tuple[Callable[..., Any], dict[str, Any]]

CURVES: list[Question] = [
    (error_curves, {}),
    (error_curves, {"max_detections": 3}),
    (error_areas, {}),
    (error_areas, {"max_detections": 3}),
]
"""Also asked of a protocol whose equal scores go by the last image first."""

COSTS: list[Question] = [
    (error_types, {}),
    (error_types, {"absent_classes": "zero"}),
    (error_types, {"iou_threshold": 0.75, "background_iou": 0.3}),
    (error_types, {"max_detections": 4}),
]

OTHERS: list[Question] = [
    (operating_points, {}),
    (operating_points, {"at_score": 0.5, "iou_threshold": 0.75}),
    (operating_points, {"at_score": 2.0}),
    (operating_points, {"at_precision": 0.3, "beta": 2.0}),
    (operating_points, {"at_precision": 1.0}),
    (operating_points, {"at_recall": 0.5, "area": "small"}),
    (operating_points, {"at_recall": 1.0}),
    (froc_scores, {}),
    (froc_scores, {"fppi": [0.01, 0.4, 3, 1000]}),
    (localization_recall_precision, {}),
    (localization_recall_precision, {"at_score": 0.5, "iou_threshold": 0.75, "area": "small"}),
    (localization_recall_precision, {"at_score": 2.0}),
    (localization_recall_precision, {"iou_threshold": 0.7}),
    (tie_bounds, {}),
    (tie_bounds, {"metrics": ["AP50", "APs"]}),
    (confusion_matrix, {}),
    (top_confusions, {"limit": None, "score_threshold": 0.5}),
    (reliability, {"bins": 3}),
    (calibration_error, {"resamples": 5, "group": [image % 7 for image in range(30)], "binning": "count"}),
    (bootstrap_intervals, {}),
]


def equal(one: Any, other: Any, question: Question) -> None:
    """Compare the fields of two answers, to the last bit."""
    for field in dataclasses.fields(one):
        mine, yours = getattr(one, field.name), getattr(other, field.name)
        np.testing.assert_equal(mine, yours, f"{question[0].__name__} {question[1]} {field.name}")


def test_answers_that_differ_are_told_apart() -> None:
    whole = boxscore.evaluate(*scene(1))
    for function, options in ((error_types, {"max_detections": 4}), (operating_points, {"at_score": 0.5})):
        with pytest.raises(AssertionError, match=function.__name__):
            equal(function(whole), function(whole, **options), (function, options))


def known(question: Question, rules: Any) -> bool:
    """Whether a protocol has the thresholds, area ranges and metrics that a question names."""
    options = question[1]
    thresholds, areas = rules.matching.iou_thresholds, {"all", *rules.ignore.area_ranges}
    return (
        options.get("iou_threshold", thresholds[0]) in thresholds
        and options.get("area", "all") in areas
        and {*options.get("metrics", ())} <= {row.key for row in rules.rows}
    )


@pytest.mark.parametrize("protocol", ["coco", "voc2012", "openimages-v2"])
@pytest.mark.parametrize(("partition", "most"), [(200, 1 << 22), (130, 90), (250, 25)])
def test_bits_of_one_process(
    protocol: str, partition: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole classes, and ranges of scores of classes that are cut where scores differ; however these fall."""
    rules = load_protocol(protocol)
    truth, found = scene(most)
    truth = with_groups(truth)
    FORMAT.save(found, tmp_path / "found.parquet")
    whole = boxscore.evaluate(
        truth, boxscore.load_detections(tmp_path / "found.parquet", truth), protocol=rules
    )
    questions = CURVES if protocol == "openimages-v2" else [*CURVES, *COSTS, *OTHERS]
    asked = [question for question in questions if known(question, rules)]
    assert {function for function, _ in asked} == {function for function, _ in questions}
    with asked_again(truth, tmp_path / "found.parquet", rules, partition=partition) as result:
        for question in asked:
            function, options = question
            with monkeypatch.context() as patch:
                limits.few_scores_together(patch, most)
                if question not in OTHERS:
                    limits.few_detections_asked_again(patch, most)
                equal(function(whole, **options), function(result, **options), question)
        assert result.operating_score == whole.operating_score
    steps = error_areas(whole).total
    assert steps.Loc < steps.Sim < steps.Oth  # each forgives something
