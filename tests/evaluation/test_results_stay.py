"""Results cannot be changed by accident, and are still dicts, lists and arrays."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from support.drawn import drawn
from support.samples import SHAPES


@pytest.fixture(scope="module")
def evaluation() -> boxscore.Evaluation:
    truth = boxscore.load_ground_truth(SHAPES / "instances.json")
    return boxscore.evaluate(truth, boxscore.load_detections(SHAPES / "detections.json", truth))


def changeable(value: Any, path: str, seen: set[int], depth: int = 0) -> Iterator[str]:
    """Find what is writeable in the public attributes of a result, but for its inputs and lists made anew."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            yield path
    elif isinstance(value, dict | list):
        if type(value) in (dict, list) and not path.endswith(("names", "slice_names")):
            yield path
        for key, one in list(value.items() if isinstance(value, dict) else enumerate(value))[:3]:
            yield from changeable(one, f"{path}[{key!r}]", seen, depth + 1)
    elif isinstance(value, tuple):
        for key, one in enumerate(value):
            yield from changeable(one, f"{path}[{key}]", seen, depth + 1)
    elif type(value).__module__.startswith("boxscore") and id(value) not in seen and depth < 4:
        seen.add(id(value))
        for name in object.__dir__(value):
            inputs = (
                "ground_truth",
                "detections",
                "protocol",
                "images",
                "categories",
                "evaluations",
            )
            if (not name.startswith("_") or name in SHARED) and name not in inputs:
                found = getattr(value, name)
                if isinstance(found, boxscore.GroundTruth) or f"{path}.{name}" == "label_costs.edits":
                    continue  # tables are the user's to change, and these edits are an input
                if not inspect.ismethod(found) and not type(found).__module__.startswith("pandas"):
                    yield from changeable(found, f"{path}.{name}", seen, depth + 1)


def test_nothing_of_an_evaluation_is_writeable(evaluation: boxscore.Evaluation) -> None:
    assert list(changeable(evaluation, "evaluation", set())) == []


SHARED = {"_class_columns", "_class_table", "_class_weights", "_summary_classes", "_sources"}
"""Attributes of an evaluation that the package shares between modules."""

FIRST = {
    name: next(iter(inspect.signature(getattr(diagnostics, name)).parameters), "")
    for name in diagnostics.__all__
    if inspect.isfunction(getattr(diagnostics, name))
}
FUNCTIONS = [name for name, first in FIRST.items() if first in ("evaluation", "evaluations")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_of_a_diagnostic_is_writeable(name: str, evaluation: boxscore.Evaluation) -> None:
    function = getattr(diagnostics, name)
    needed: dict[str, dict[str, Any]] = {
        "slice_scores": {"by": "size"},
        "class_group_scores": {"class_groups": {"all": ["*"]}},
        "bootstrap_intervals": {},
        "threshold_guarantee": {"recall": 0.5},
        "compare_sequentially": {"batch": 12, "metric": "AP"},
    }
    options = needed.get(name, {})
    if name == "keypoint_errors":
        evaluation = boxscore.evaluate(*drawn("coco-keypoints", 0), protocol="coco-keypoints")
    elif name == "label_costs":
        options = {"edits": diagnostics.LabelEdits.removing(evaluation.ground_truth, [0, 1])}
    elif name == "vetted_suspects":
        suspects = diagnostics.label_suspects(evaluation, limit=3)
        options = {"suspects": suspects, "vetted": evaluation.ground_truth.take([]), "resamples": 5}
    if FIRST[name] == "evaluations":
        result = function({"a": evaluation, "b": evaluation}, resamples=20, **options)
    else:
        result = function(evaluation, **options)
    assert list(changeable(result, name, set())) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.metrics.__setitem__("AP", 5),
        lambda e: e.metrics.update(AP=5),
        lambda e: e.counts.pop("images"),
        lambda e: e.labels.append("x"),
        lambda e: e.labels.sort(),
        lambda e: e.class_counts.clear(),
    ],
)
def test_a_change_is_refused(change: Any, evaluation: boxscore.Evaluation) -> None:
    rule = r"^results are read-only: change a copy, such as (dict\(result\.metrics\)|list\(result\.labels\))$"
    with pytest.raises(TypeError, match=rule):
        change(evaluation)
    assert round(evaluation.metrics["AP"], 4) == 0.3399


def test_arrays_refuse_to_be_written(evaluation: boxscore.Evaluation) -> None:
    for array in (
        evaluation.class_counts["detections"],
        evaluation.class_values["AP"],
        evaluation.matched.score,
        evaluation.outcomes.iou,
        diagnostics.top_confusions(evaluation).count,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_they_are_still_dicts_and_lists(evaluation: boxscore.Evaluation) -> None:
    metrics, labels = evaluation.metrics, evaluation.labels
    assert json.loads(json.dumps(metrics)) == dict(metrics) == metrics
    assert isinstance(metrics, dict)
    assert json.loads(json.dumps(labels)) == list(labels) == labels
    assert isinstance(labels, list)


@pytest.mark.parametrize(
    "copied",
    [
        dict,
        dict.copy,
        copy.copy,
        copy.deepcopy,
        lambda metrics: metrics | {"AP": 5.0},
        lambda metrics: {"AP": 5.0} | metrics,
        lambda metrics: pickle.loads(pickle.dumps(metrics)),
    ],
)
def test_copies_are_the_users_own(copied: Any, evaluation: boxscore.Evaluation) -> None:
    own = copied(evaluation.metrics)
    own["AP"] = 6.0
    assert own.keys() == evaluation.metrics.keys()
    assert round(evaluation.metrics["AP"], 4) == 0.3399


@pytest.mark.parametrize("copied", [list, list.copy, copy.copy, copy.deepcopy, lambda x: x[:]])
def test_copies_of_lists_are_the_users_own(copied: Any, evaluation: boxscore.Evaluation) -> None:
    own = copied(evaluation.labels)
    own.sort()
    assert own == sorted(evaluation.labels) != evaluation.labels


def test_pickles_need_no_boxscore_to_be_read(evaluation: boxscore.Evaluation) -> None:
    for value, kind in ((evaluation.metrics, b"OrderedDict"), (evaluation.labels, b"list")):
        pickled = pickle.dumps(value)
        assert kind in pickled
        assert b"boxscore" not in pickled
        assert pickle.loads(pickled) == value


@pytest.mark.parametrize("again", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_a_copy_of_a_result_is_read_only_too(again: Any, evaluation: boxscore.Evaluation) -> None:
    result = again(evaluation)
    assert result.metrics == evaluation.metrics
    with pytest.raises(ValueError, match="read-only"):
        result.matched.score[0] = 5
    with pytest.raises(TypeError, match="read-only"):
        result.metrics["AP"] = 5


@pytest.mark.parametrize("name", ["summary", "per_class", "matches", "curves", "confusion"])
def test_tables_are_the_users_own(name: str, evaluation: boxscore.Evaluation) -> None:
    def made() -> Any:
        if name == "confusion":
            return diagnostics.confusion_matrix(evaluation).to_frame()
        found = getattr(evaluation, name)
        return found() if callable(found) else found

    before = made()
    frame = made()
    for place, column in enumerate(frame.columns):
        if frame[column].dtype.kind in "fi":
            frame.iloc[0, place] = 99
            frame[column] += 1
    assert not frame.equals(before)
    assert made().equals(before)
