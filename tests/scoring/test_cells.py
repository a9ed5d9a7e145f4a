"""Very many cells are summed up block by block: the same bits, in bounded memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.scoring.test_curves import RULES, tables

import boxscore
from boxscore.data.vocabulary import Categories
from boxscore.protocols import load_protocol
from boxscore.scoring.curves import Cells, Curves, _Stream, _sum


def hold(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.scoring.curves.MOST_CELLS", most)
    monkeypatch.setattr("boxscore.scoring.curves.SUMMED_TOGETHER", 200)


def test_sums_have_the_bits_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the NumPy installed does: these lengths lie on both sides of its blocks of 8 and 128."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr("boxscore.scoring.curves.SUMMED_TOGETHER", 128)
    for length in [1, 7, 8, 9, 127, 128, 129, 135, 136, 137, 255, 257, 1000, 4097, 65_537, 100_003]:
        numbers = rng.random(length) * 10.0 ** rng.integers(-9, 9, length)
        cuts = np.sort(rng.integers(0, length, 5))
        assert _sum(_Stream(iter(np.split(numbers, cuts))), length) == np.sum(numbers), length


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(map(str, rules.values())))
@pytest.mark.parametrize("absent", ["skip", "zero", "all_zero"])
def test_every_metric(rules: dict[str, Any], absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = load_protocol({"extends": "coco", "name": "case", "ap": {**rules, "absent_classes": absent}})
    for seed in range(3):
        truth, found = tables(seed)
        whole = boxscore.evaluate(truth, found, protocol=protocol)
        expected = {**whole.class_values, **{key: np.float64(v) for key, v in whole.metrics.items()}}
        for most in (1, 600):
            with monkeypatch.context() as patch:
                hold(most, patch)
                parts = boxscore.evaluate(truth, found, protocol=protocol)
                values = {**parts.class_values, **{key: np.float64(v) for key, v in parts.metrics.items()}}
                assert {key: value.tobytes() for key, value in values.items()} == {
                    key: value.tobytes() for key, value in expected.items()
                }
                assert parts.curves_of().average_precision.tobytes() == (
                    whole.curves_of().average_precision.tobytes()
                )


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
            hold(1, patch)
            assert boxscore.evaluate(truth, found, protocol=rules).metrics == expected


def test_no_class_has_a_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = tables(0)
    hold(1, monkeypatch)
    none = boxscore.evaluate(truth.take(np.empty(0, np.intp)), found)
    assert np.isnan(none.metrics["AP"])
    assert np.isnan(none.class_values["AP"]).all()


def test_many_classes_take_memory_for_their_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 classes: 12 MB for each array of all cells."""
    K = 1500
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (K, 1))
    truth = boxscore.GroundTruth.from_arrays(np.zeros(K, int), np.arange(K), boxes, categories=range(K))
    found = boxscore.Detections.from_arrays(np.zeros(K, int), np.arange(K), boxes, np.linspace(0, 1, K))
    hold(1 << 15, monkeypatch)
    evaluation = boxscore.evaluate(truth, found)
    tracemalloc.start()
    assert evaluation.metrics["AP"] == pytest.approx(1)
    assert len(evaluation.class_values["AP"]) == K
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(evaluation.curves_of().cells, Cells)
    assert peak < 6_000_000
    assert Curves.interpolated.attrname not in vars(evaluation.curves_of())


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


@pytest.mark.parametrize("points", [0, 11], ids=["COCO", "11 points"])
def test_one_threshold_is_that_of_all(points: int) -> None:
    rules: dict[str, Any] = {"recall_points": {"start": 0, "stop": 1, "count": points}} if points else {}
    curves = boxscore.evaluate(*tables(2), protocol={"extends": "coco", "ap": rules}).curves_of()
    for t in range(10):
        for ours, whole in zip(curves.at(t), (curves.interpolated, curves.reached_scores), strict=True):
            assert ours.tobytes() == whole[t].tobytes()
