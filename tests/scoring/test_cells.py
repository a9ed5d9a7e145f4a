"""Very many cells are summed up block by block: the same bits, in bounded memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Categories
from boxscore.protocols import load_protocol
from support import limits
from support.curves import RULES, tables
from support.examples import first_of


def everything(evaluation: boxscore.Evaluation) -> dict[str, bytes]:
    values = {**evaluation.class_values, "metrics": np.array(list(evaluation.metrics.values()))}
    values["ap by iou"] = evaluation.ap_by_iou()
    return {key: value.tobytes() for key, value in values.items()}


@pytest.mark.long
@pytest.mark.parametrize("thresholds", [1, 3])
def test_sums_have_the_bits_of_numpy(thresholds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the NumPy installed does: these lengths lie on both sides of its blocks of 8 and 128."""
    rng, count = np.random.default_rng(0), 2000
    boxes, scores = np.tile([0.0, 0.0, 10.0, 10.0], (count, 1)), np.linspace(1, 0, count)
    truth = boxscore.GroundTruth.from_arrays(range(count), [0] * count, boxes)
    heights = np.where(rng.random(count) < scores, rng.integers(2, 11, count), 1)  # the best are right
    placed = np.column_stack([boxes[:, :3], heights])
    found = boxscore.Detections.from_arrays(range(count), [0] * count, placed, scores)
    for points in [1, 7, 8, 9, 43, 85, 127, 128, 129, 135, 136, 137, 255, 257, 1000, 4097, 65_537, 99_991]:
        rules = {
            "extends": "coco",
            "matching": {"iou_thresholds": [0.2, 0.5, 0.7][:thresholds], "max_detections": [100]},
            "ignore": {"area_ranges": {"all": [0, 1e10]}},
            "ap": {"recall_points": np.linspace(0, 0.5, points).tolist()},
            "summary": [{"key": "AP"}],
        }
        evaluation = boxscore.evaluate(truth, found, protocol=rules)
        with monkeypatch.context() as patch:
            limits.few_values_of_curves(patch, 1, summed=128)
            ap = evaluation["AP"]
        cells = evaluation.arrays()["precision"]
        assert ap == np.mean(cells[..., 0, 0]), points
    assert len(np.unique(cells)) > 100


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(map(str, rules.values())))
@pytest.mark.parametrize("absent", first_of(1, ["skip", "zero", "all_zero"]))
def test_every_metric(rules: dict[str, Any], absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = load_protocol({"extends": "coco", "name": "case", "ap": {**rules, "absent_classes": absent}})
    for seed in range(3):
        truth, found = tables(seed)
        expected = everything(boxscore.evaluate(truth, found, protocol=protocol))
        for most in (1, 600):
            with monkeypatch.context() as patch:
                limits.few_values_of_curves(patch, most)
                assert everything(boxscore.evaluate(truth, found, protocol=protocol)) == expected


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("class_mean", ["nanmean", "by_images"])
@pytest.mark.parametrize("chosen", ["", "frequency=r"])
def test_other_means_over_classes(class_mean: str, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class without ground truth stands between the others, and one of them is in more images."""
    rows = [{"key": "AP", "classes": chosen}, {"key": "AP50", "iou": 0.5, "classes": chosen}]
    rules = {"extends": "coco", "ap": {"class_mean": class_mean}, "summary": rows}
    for seed in range(3):
        truth, found = tables(seed)
        K = len(truth.categories)
        frequency = np.array(["r", None], dtype=object)[np.arange(K) % 2]
        categories = Categories.build(truth.categories.ids, columns={"frequency": frequency})
        kept = np.flatnonzero(truth.category != 1)
        truth = truth.take(kept).replaced(categories=categories)
        expected = boxscore.evaluate(truth, found, protocol=rules).metrics
        with monkeypatch.context() as patch:
            limits.few_values_of_curves(patch, 1)
            assert boxscore.evaluate(truth, found, protocol=rules).metrics == expected


def test_means_over_groups_of_defined_classes_are_taken_in_the_order_of_pycocotools() -> None:
    """Thresholds, recall points, classes: the order decides the last bit."""
    random = np.random.default_rng(0)
    K, rows = 30, np.arange(600)
    boxes = np.tile([0.0, 0.0, 20.0, 20.0], (600, 1))
    names = np.array(["r", "c", "f"], dtype=object)[random.integers(0, 3, K)]
    categories = Categories.build(range(K), columns={"frequency": names})
    classes = random.integers(0, K, 600)
    truth = boxscore.GroundTruth.from_arrays(rows, classes, boxes, categories=range(K)).replaced(
        categories=categories
    )
    moved = boxes + random.integers(0, 9, (600, 1))
    found = boxscore.Detections.from_arrays(rows, classes, moved, random.integers(0, 50, 600) / 50)
    summary = [{"key": f"AP{name}", "metric": "AP", "classes": f"frequency={name}"} for name in "rcf"]
    evaluation = boxscore.evaluate(
        truth, found, protocol={"extends": "coco", "summary": summary}, digest=False
    )
    precision = evaluation.arrays()["precision"][..., 0, 0]
    for name in "rcf":
        expected = np.ascontiguousarray(precision[..., names == name]).ravel().mean()
        assert evaluation[f"AP{name}"] == expected


def test_no_class_has_a_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = tables(0)
    limits.few_values_of_curves(monkeypatch, 1)
    none = boxscore.evaluate(truth.take(np.empty(0, np.intp)), found)
    assert np.isnan(none.metrics["AP"])
    assert np.isnan(none.class_values["AP"]).all()


@pytest.mark.long
def test_many_classes_take_memory_for_their_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 classes: 12 MB for each array of all cells."""
    K = 1500
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (K, 1))
    truth = boxscore.GroundTruth.from_arrays(np.zeros(K, int), np.arange(K), boxes, categories=range(K))
    found = boxscore.Detections.from_arrays(np.zeros(K, int), np.arange(K), boxes, np.linspace(0, 1, K))
    limits.few_values_of_curves(monkeypatch, 1 << 15)
    evaluation = boxscore.evaluate(truth, found)
    tracemalloc.start()
    assert evaluation.metrics["AP"] == pytest.approx(1)
    assert len(evaluation.class_values["AP"]) == K
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000_000


@pytest.mark.long
def test_arrays_of_very_many_classes_are_refused_with_what_they_need() -> None:
    K = 50_000
    truth = boxscore.GroundTruth.from_arrays([0], [0], [[0, 0, 9, 9]], categories=range(K))
    found = boxscore.Detections.from_arrays([0], [0], [[0, 0, 9, 9]], [0.5])
    evaluation = boxscore.evaluate(truth, found)
    with pytest.raises(
        boxscore.InputError, match=r"arrays must take at most 4 GiB\. Got 9\.0 GiB, 193,920 bytes for"
    ):
        evaluation.arrays()
    assert evaluation.metrics["AP"] == pytest.approx(1)
