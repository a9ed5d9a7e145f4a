"""The result of evaluate: metrics, tables, curves, and what is undefined."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError
from support.each import each
from support.samples import SHAPES

COCO_KEYS = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]


def small() -> tuple[GroundTruth, Detections]:
    """Two classes with objects, one without, one with objects and no detection."""
    truth = GroundTruth.from_arrays(
        [1, 1, 2, 2],
        [1, 1, 1, 3],
        [[0, 0, 40, 40], [50, 0, 90, 40], [0, 0, 40, 40], [0, 0, 20, 20]],
        crowd=[0, 0, 1, 0],
        ids=[11, 12, 13, 14],
        images=[1, 2, 3],
        categories={1: "cat", 2: "dog", 3: "cow", 4: "yak"},
    )
    found = Detections.from_arrays(
        [1, 1, 1, 2, 3, 2],
        [1, 1, 1, 1, 2, 1],
        [[0, 0, 40, 40], [0, 0, 40, 38], [50, 0, 90, 30], [5, 5, 15, 15], [1, 1, 9, 9], [60, 60, 70, 70]],
        [0.9, 0.8, 0.7, 0.95, 0.5, 0.1],
    )
    return truth, found


def test_metrics_are_a_dict_of_floats_with_fixed_names() -> None:
    metrics = boxscore.evaluate(*small()).metrics
    assert list(metrics) == COCO_KEYS
    assert all(type(value) is float for value in metrics.values())
    assert list(boxscore.evaluate(*small(), protocol="voc2007").metrics) == ["mAP"]


def test_summary() -> None:
    evaluation = boxscore.evaluate(*small())
    frame = evaluation.summary
    assert list(frame.columns) == ["metric", "value", "kind", "iou", "area", "max_detections"]
    assert frame["metric"].tolist() == COCO_KEYS
    assert np.array_equal(frame["value"], list(evaluation.metrics.values()), equal_nan=True)
    assert frame["kind"].tolist() == ["AP"] * 6 + ["AR"] * 6
    assert frame["max_detections"].tolist() == [100] * 6 + [1, 10, 100, 100, 100, 100]
    voc = boxscore.evaluate(*small(), protocol="voc2007").summary
    assert voc["max_detections"].isna().all()


def test_per_class() -> None:
    frame = boxscore.evaluate(*small()).per_class
    assert list(frame.columns) == [
        "class", "ground_truths", "ignored", "detections", "true_positives", "precision", "recall", "F1",
        "TP", "FP", "FN",
        *COCO_KEYS
    ]  # fmt: skip
    assert frame["class"].tolist() == ["cat", "dog", "cow", "yak"]
    assert frame["ground_truths"].tolist() == [2, 0, 1, 0]
    assert frame["ignored"].tolist() == [1, 0, 0, 0]
    assert frame["detections"].tolist() == [5, 1, 0, 0]
    assert frame["true_positives"].tolist() == [2, 0, 0, 0]
    assert frame["AP"].isna().tolist() == [False, True, False, True]
    assert frame["AP"][2] == 0.0


def test_undefined_is_nan_and_never_minus_one() -> None:
    evaluation = boxscore.evaluate(*small())
    for array in evaluation.arrays().values():
        assert not (array == -1).any()
    assert math.isnan(evaluation.metrics["APl"])
    nothing = boxscore.evaluate(
        GroundTruth.from_arrays([], [], [], images=[1], categories=["cat"]),
        Detections.from_arrays([], [], [], []),
    )
    assert all(math.isnan(value) for value in nothing.metrics.values())


@each(
    [
        (protocol, images, classes, found, workers)
        for protocol in ["coco", "voc2007", "voc2012", {"extends": "coco", "matching": {"per_class": False}}]
        for images in [0, 1]
        for classes in [0, 2]
        for found in [0, 3]
        for workers in [1, 4]
    ]
)
def test_nothing_to_find(protocol: Any, images: int, classes: int, found: int, workers: int) -> None:
    """Empty tables of every kind evaluate, with every table of the result."""
    count = found if images and classes else 0
    truth = GroundTruth.from_arrays([], [], [], images=range(images), categories=range(classes))
    detections = Detections.from_arrays([0] * count, [0] * count, [[0, 0, 1, 1]] * count, [0.5] * count)
    evaluation = boxscore.evaluate(truth, detections, protocol=protocol, workers=workers)
    assert all(math.isnan(value) for value in evaluation.metrics.values())
    pooled = isinstance(protocol, dict)
    assert len(evaluation.per_class) == (1 if pooled else classes)
    assert len(evaluation.curves()) == 0
    assert len(evaluation.matches) == count
    assert len(evaluation.summary) == len(evaluation.metrics)
    for array in evaluation.arrays().values():
        assert np.isnan(array).all()


def test_no_detections_score_zero() -> None:
    truth, _ = small()
    for protocol in ("coco", "voc2007", "voc2012"):
        evaluation = boxscore.evaluate(truth, Detections.from_arrays([], [], [], []), protocol=protocol)
        assert evaluation.metrics.get("AP", evaluation.metrics.get("mAP")) == 0.0


def test_matches() -> None:
    frame = boxscore.evaluate(*small()).matches
    assert list(frame.columns) == [
        "image_id", "category_id", "class", "x1", "y1", "x2", "y2", "score",
        "rank", "outcome", "annotation_id", "iou", "matched_up_to",
    ]  # fmt: skip
    assert frame["outcome"].tolist() == [
        "true positive", "false positive", "true positive", "ignored", "false positive", "false positive"
    ]  # fmt: skip
    assert frame["annotation_id"].tolist() == [11, None, 12, 13, None, None]
    assert frame["rank"].tolist() == [0, 1, 2, 0, 0, 1]
    assert frame["iou"].tolist()[0] == 1.0
    assert frame["iou"].tolist()[2] == 30 / 40
    assert frame["iou"].tolist()[3] == 1.0  # inside the crowd
    assert frame["matched_up_to"].tolist()[:3:2] == [0.95, 0.75]


def test_curves() -> None:
    evaluation = boxscore.evaluate(*small())
    frame = evaluation.curves()
    assert list(frame.columns) == ["class", "iou", "recall", "precision", "score"]
    assert len(frame) == 2 * 10 * 101  # the classes with objects
    cat = frame[(frame["class"] == "cat") & (frame["iou"] == 0.5)]
    precision, _, scores = (evaluation.arrays()[name] for name in ("precision", "recall", "scores"))
    assert cat["precision"].tolist() == precision[0, :, 0, 0, 2].tolist()
    assert cat["score"].tolist() == scores[0, :, 0, 0, 2].tolist()
    high = frame[(frame["class"] == "cat") & (frame["iou"] == 0.95)]  # one of two found
    assert high["score"].isna().tolist() == [recall > 0.5 for recall in high["recall"]]
    assert len(evaluation.curves(area="small")) == 101 * 10
    one = evaluation.curves(max_detections=1)
    assert len(one) == len(frame)
    assert evaluation.curves(max_detections=100).equals(frame)
    with pytest.warns(DeprecationWarning, match=r"^curves\(cap=POSITION\) is deprecated: name the value, "):
        assert evaluation.curves(cap=0).equals(one)
    with pytest.raises(InputError, match=r"^max_detections must be one of 1, 10, 100\. Got 5\.$"):
        evaluation.curves(max_detections=5)
    with pytest.raises(
        InputError, match=r"^area must be one of 'all', 'small', 'medium', 'large'\. Got 'tiny'\.$"
    ):
        evaluation.curves(area="tiny")


def test_counts_and_signature() -> None:
    evaluation = boxscore.evaluate(*small())
    assert evaluation.counts == {
        "images": 3,
        "ground_truths": 3,
        "crowds": 1,
        "difficult": 0,
        "ignored": 0,
        "detections": 6,
        "left_out": 0,
        "classes": 4,
    }
    assert evaluation.signature == evaluation.protocol.signature()


def test_tables_of_the_result_are_made_anew() -> None:
    """Writing into one does not change the next."""
    evaluation = boxscore.evaluate(*small())
    for name in ("summary", "per_class", "matches"):
        before = getattr(evaluation, name)
        changed = getattr(evaluation, name)
        changed.iloc[:, 0] = changed.iloc[0, 0]
        assert before.equals(getattr(evaluation, name))
    arrays = evaluation.arrays()
    arrays["precision"][:] = 7
    assert not (evaluation.arrays()["precision"] == 7).any()


def test_input_tables_are_left_alone() -> None:
    truth, found = small()
    before = (truth.to_pandas(), found.to_pandas())
    boxscore.evaluate(truth, found, classes=["cat"], images=[1])
    assert before[0].equals(truth.to_pandas())
    assert before[1].equals(found.to_pandas())


def test_crowds_and_difficult_objects_count_where_the_protocol_says_so() -> None:
    box = [[0, 0, 10, 10]]
    found = Detections.from_arrays([1], [1], box, [0.5])
    for flag, key in (("crowd", "crowd"), ("difficult", "difficult")):
        truth = GroundTruth.from_arrays([1], [1], box, **{flag: [True]})
        for rule, ap in (("count", 1.0), ("ignore", math.nan)):
            protocol = {"extends": "voc2012", "ignore": {key: rule}}
            value = boxscore.evaluate(truth, found, protocol=protocol).metrics["mAP"]
            assert np.array_equal(value, ap, equal_nan=True)


def test_paths_are_read() -> None:
    paths = SHAPES / "instances.json", SHAPES / "detections.json"
    truth = boxscore.load_ground_truth(paths[0])
    expected = boxscore.evaluate(truth, boxscore.load_detections(paths[1], truth))
    for arguments in (paths, tuple(map(str, paths)), (truth, paths[1])):
        assert (
            boxscore.evaluate(*arguments).arrays()["precision"].tobytes()
            == expected.arrays()["precision"].tobytes()
        )


def test_the_face_of_a_result() -> None:
    result = boxscore.evaluate(SHAPES / "instances.json", SHAPES / "detections.json")
    assert result["AP"] == result.metrics["AP"]
    with pytest.raises(boxscore.InputError, match=r"Got 'AP5'; did you mean 'AP75'\?"):
        result["AP5"]
    lines = repr(result).splitlines()
    assert len(lines) <= 10
    assert lines[0].startswith("Evaluation of ")
    assert lines[-1] == result.signature
    assert all(f"{key:<6} {value:.4f}" in repr(result) for key, value in result.metrics.items())


def test_a_result_pickles_as_what_was_given() -> None:
    result = boxscore.evaluate(SHAPES / "instances.json", SHAPES / "detections.json")
    size = len(pickle.dumps(result))
    result.metrics, result.per_class, result._matcher.across_classes(iou_threshold=0.1)
    assert len(pickle.dumps(result)) == size
    assert pickle.loads(pickle.dumps(result)).metrics == result.metrics
