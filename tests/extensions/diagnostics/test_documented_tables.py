"""Every table is documented: its columns, in order, with their dtypes, and an example."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import boxscore
from boxscore import diagnostics
from boxscore.extensions.diagnostics._result import DiagnosticResult

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "diagnostics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w.]+)` \| (\w+) \|", re.MULTILINE)


def documented():
    """Columns and dtypes of each section that has a table."""
    for section in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]:
        name = re.match(r"`(\w+)`", section)
        assert name
        yield name[1], dict(ROW.findall(section)), section


SECTIONS = {name: (columns, section) for name, columns, section in documented()}


def call(name, truth, found):
    evaluation = boxscore.evaluate(truth, found)
    if name == "compare_detectors":
        return diagnostics.compare_detectors({"a": evaluation, "b": evaluation}, resamples=5)
    if name == "compare_sequentially":
        return diagnostics.compare_sequentially({"a": evaluation, "b": evaluation}, batch=2, resamples=5)
    if name == "plan_comparison":
        return diagnostics.plan_comparison(evaluation, evaluation, resamples=5)
    if name == "bootstrap_intervals":
        return diagnostics.bootstrap_intervals(evaluation)
    if name == "threshold_guarantee":
        return diagnostics.threshold_guarantee(evaluation, recall=0.6)
    if name == "slice_scores":
        return diagnostics.slice_scores(evaluation, by="size")
    if name == "class_group_scores":
        protocol = {"extends": "coco", "summary": [{"key": "AP"}]}
        evaluation = boxscore.evaluate(truth, found, protocol=protocol)
        return diagnostics.class_group_scores(evaluation, {"all": ["*"]})
    if name == "explain":
        return diagnostics.explain(truth, found, "tide").table
    if name == "expansions":
        classes = [{"LabelName": one} for one in truth.categories.names]
        tree = boxscore.Hierarchy.of({"LabelName": "all", "Subcategory": classes})
        return diagnostics.expansions(truth, found, tree)
    if name == "ablation":
        return diagnostics.ablation(truth, found)
    if name in ("sweep", "best_settings"):
        result = diagnostics.sweep(truth, found, iou_thresholds=[0.5])
        return result if name == "sweep" else diagnostics.best_settings(result)
    if name == "label_costs":
        return diagnostics.label_costs(evaluation, diagnostics.LabelEdits.removing(truth, [0, 1]))
    if name == "vetted_suspects":
        suspects = diagnostics.label_suspects(evaluation, limit=3)
        return diagnostics.vetted_suspects(evaluation, suspects, truth.take([]), resamples=5)
    if name == "annotator_agreement":
        return diagnostics.annotator_agreement({"one": truth, "two": truth.take(range(100))})
    if name == "compare_protocols":
        return diagnostics.compare_protocols(truth, found).table
    if name == "find_number":
        return diagnostics.find_number(truth, found, 0.5)
    if name in KEYPOINTS:
        return of_keypoints(name)
    return getattr(diagnostics, name)(evaluation)


KEYPOINTS = ("keypoint_errors", "correct_keypoints", "keypoint_sigmas")


def of_keypoints(name):
    pose = [[[10, 10, 2], [30, 10, 2]]]
    people = boxscore.GroundTruth.from_arrays([1], ["person"], [[0, 0, 50, 50]], keypoints=pose)
    if name == "correct_keypoints":
        return diagnostics.correct_keypoints([[[9, 9]]], [[[9, 9]]], 1)
    if name == "keypoint_sigmas":
        return diagnostics.keypoint_sigmas(people, people)
    poses = boxscore.Detections.from_arrays([1], ["person"], None, [0.5], keypoints=pose)
    rules = {"extends": "coco-keypoints", "keypoints": {"sigmas": [0.1] * 2, "names": [], "skeleton": []}}
    return diagnostics.keypoint_errors(boxscore.evaluate(people, poses, protocol=rules))


def test_every_function_has_a_section():
    functions = {name for name in diagnostics.__all__ if name[0].islower()}
    assert set(SECTIONS) == functions - {"labels_by_annotator", "slice_names", "tool_names"}


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SECTIONS if name != "confusion_matrix"])
def test_columns_and_dtypes(sample, name):
    columns, section = SECTIONS[name]
    frame = call(name, *sample)
    if isinstance(frame, DiagnosticResult):
        total = frame.total_frame() if hasattr(frame, "total_frame") else None
        frame = frame.to_frame()
        assert total is None or dict(total.dtypes) == dict(frame.dtypes)
    assert list(frame.columns) == list(columns)
    found = {str(column): str(frame[column].dtype) for column in frame}
    if int(pd.__version__.split(".")[0]) < 3:  # text is kept as objects
        columns = {column: "object" if kind == "str" else kind for column, kind in columns.items()}
    assert found == columns
    assert "```python" in section
    assert "```text" in section
