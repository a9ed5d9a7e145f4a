"""Anchors, against plain loops over boxes and anchors, every partition of few boxes, and published figures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore.extensions.data_tools import anchors as module
from support.real_data import real
from support.running import Run
from support.samples import SHAPES

TRUTH = SHAPES / "instances.json"
Size = Sequence[float]


@pytest.fixture(scope="module")
def truth() -> boxscore.GroundTruth:
    return boxscore.load_ground_truth(TRUTH)


def table_of(sizes: Any, **columns: Any) -> boxscore.GroundTruth:
    boxes = [[0, 0, *size] for size in sizes]
    ones = [1] * len(boxes)
    return boxscore.GroundTruth.from_arrays(ones, ones, boxes, box_format="xywh", **columns)


# ---------------------------------------------------------------- the oracle: one box and one anchor at a time


def iou(box: Size, anchor: Size) -> float:
    shared = min(box[0], anchor[0]) * min(box[1], anchor[1])
    return shared / (box[0] * box[1] + anchor[0] * anchor[1] - shared)


def ratio_of_sides(box: Size, anchor: Size) -> float:
    """As YOLOv5's autoanchor: the smaller of min(r, 1 / r) of both sides."""
    r = [box[side] / anchor[side] for side in (0, 1)]
    return min(min(value, 1 / value) for value in r)


def plain_fit(boxes: Sequence[Size], anchors: Sequence[Size], limit: float = 4.0) -> dict[str, float]:
    best = [max(iou(box, anchor) for anchor in anchors) for box in boxes]
    ratios = [[ratio_of_sides(box, anchor) for anchor in anchors] for box in boxes]
    count = len(boxes)
    return {
        "mean_best_iou": sum(best) / count,
        "recall": sum(value >= 0.5 for value in best) / count,
        "best_possible_recall": sum(max(row) > 1 / limit for row in ratios) / count,
        "anchors_per_box": sum(value > 1 / limit for row in ratios for value in row) / count,
        "fitness": sum(max(row) * (max(row) > 1 / limit) for row in ratios) / count,
    }


def assert_fit(ours: boxscore.Anchors, boxes: Sequence[Size]) -> None:
    plain = plain_fit(boxes, ours.sizes.tolist(), ours.ratio)
    assert ours.recall[0.5] == plain.pop("recall")
    assert {name: getattr(ours, name) for name in plain} == pytest.approx(plain, abs=1e-13)
    nearest = [max(range(len(ours.sizes)), key=lambda k: iou(box, ours.sizes[k].tolist())) for box in boxes]
    assert ours.boxes.tolist() == [nearest.count(k) for k in range(len(ours.sizes))]


# ---------------------------------------------------------------- how well they fit

sides = st.floats(0.01, 2000)
sizes = st.lists(st.tuples(sides, sides), min_size=1, max_size=30)


@pytest.mark.long
@pytest.mark.oracle
@given(sizes, st.lists(st.tuples(sides, sides), min_size=1, max_size=6))
def test_given_anchors_as_plain_loops_rate_them(boxes: list[Size], anchors: list[Size]) -> None:
    ours = boxscore.table_anchors(table_of(boxes), anchors)
    assert sorted(map(tuple, ours.sizes.tolist())) == sorted(anchors)
    assert (np.diff(ours.sizes.prod(axis=1)) >= 0).all()
    assert_fit(ours, table_of(boxes).sizes.tolist())


@pytest.mark.oracle
def test_blocks_change_nothing(truth: boxscore.GroundTruth, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = boxscore.table_anchors(truth, 5)
    monkeypatch.setattr(module, "BLOCK", 7)
    cut = boxscore.table_anchors(truth, 5)
    assert cut.to_dict() == whole.to_dict()
    assert_fit(cut, truth.sizes[~truth.crowd].tolist())


def test_what_is_left_out() -> None:
    table = table_of(
        [(10, 10), (10, 20), (0, 5), (30, 30), (7, 7)],
        crowd=[False, False, False, True, True],
        ignore=[False, True, False, False, True],
    )
    fitted = boxscore.table_anchors(table, 1)
    assert fitted.sizes.tolist() == [[10, 10]]
    assert fitted.left_out == {"crowd": 2, "ignore": 1, "without area": 1}


# ---------------------------------------------------------------- k-means


def best_partition(boxes: Sequence[Size], number: int) -> float:
    """Highest mean IoU of the medians of any partition."""
    values = [
        [
            np.median(
                [box for box, label in zip(boxes, labels, strict=True) if label == group], axis=0
            ).tolist()
            for group in set(labels)
        ]
        for labels in itertools.product(range(number), repeat=len(boxes))
    ]
    return max(plain_fit(boxes, anchors)["mean_best_iou"] for anchors in values)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(5))
def test_nearly_the_best_of_all_partitions(seed: int) -> None:
    boxes = np.exp(np.random.default_rng(seed).normal(3, 1, (8, 2))).tolist()
    ours = boxscore.table_anchors(table_of(boxes), 2, seed=seed).mean_best_iou
    assert ours >= best_partition(boxes, 2) * 0.98


def test_clusters_that_lie_apart_are_their_medians() -> None:
    random = np.random.default_rng(3)
    centers = np.array([[10, 10], [40, 10], [30, 90], [200, 180]])
    boxes = (centers[:, None] * random.uniform(0.9, 1.1, (4, 25, 2))).reshape(-1, 2)
    fitted = boxscore.table_anchors(table_of(boxes), 4)
    medians = np.median(table_of(boxes).sizes.reshape(4, 25, 2), axis=1)
    assert fitted.sizes.tolist() == medians.tolist()
    assert fitted.boxes.tolist() == [25] * 4


def test_as_many_anchors_as_different_sizes_fit_exactly() -> None:
    boxes = [(10, 10), (10, 10), (50, 20), (20, 50), (100, 100)]
    fitted = boxscore.table_anchors(table_of(boxes), 4)
    assert fitted.mean_best_iou == 1.0
    assert sorted(fitted.boxes.tolist()) == [1, 1, 1, 2]


def test_sizes_that_differ_in_a_last_bit() -> None:
    boxes = [(10, 10), (np.nextafter(10, 11), 10), (10, np.nextafter(10, 11))]
    fitted = boxscore.table_anchors(table_of(boxes), 3)
    assert fitted.mean_best_iou == pytest.approx(1, abs=1e-15)


def test_seed(truth: boxscore.GroundTruth) -> None:
    first, again = (boxscore.table_anchors(truth, 6, seed=4).to_dict() for _ in range(2))
    assert first == again


def test_a_sample_of_many_boxes_is_refined_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20,000 boxes one is rare: its size is not in the sample, and counts."""
    boxes = [(10, 10)] * 19_999 + [(500, 20)]
    assert boxscore.table_anchors(table_of(boxes), 2).sizes.tolist() == [[10, 10], [500, 20]]
    random = np.random.default_rng(0)
    spread = random.uniform(1, 100, (3000, 2))
    whole = boxscore.table_anchors(table_of(spread), 5)
    monkeypatch.setattr(module, "SAMPLE", 500)
    sampled = boxscore.table_anchors(table_of(spread), 5)
    assert sampled.mean_best_iou == pytest.approx(whole.mean_best_iou, abs=0.01)


# ---------------------------------------------------------------- sizes of images


def test_resized_to_the_longer_side_or_stretched(truth: boxscore.GroundTruth) -> None:
    def resized(width: Any, height: Any) -> list[Size]:
        rows = [row for row in range(len(truth)) if not truth.crowd[row]]
        return [
            (truth.sizes[row, 0] * width(*extent), truth.sizes[row, 1] * height(*extent))
            for row in rows
            for extent in [truth.images.sizes[truth.image[row]].tolist()]
        ]

    longer = boxscore.table_anchors(truth, 3, image_size=640)
    assert_fit(longer, resized(lambda w, h: 640 / max(w, h), lambda w, h: 640 / max(w, h)))
    stretched = boxscore.table_anchors(truth, 3, image_size=(416, 208))
    assert_fit(stretched, resized(lambda w, h: 416 / w, lambda w, h: 208 / h))


def test_fractions_of_images() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[0.0, 0.0, 0.5, 0.25]]).replaced(units="fractions")
    assert boxscore.table_anchors(truth, 1).units == "fractions"
    stretched = boxscore.table_anchors(truth, 1, image_size=(100, 200))
    assert (stretched.sizes.tolist(), stretched.units) == ([[50.0, 50.0]], "pixels")
    with pytest.raises(boxscore.InputError, match="be width and height where boxes are fractions"):
        boxscore.table_anchors(truth, 1, image_size=640)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("anchors", "options", "message"),
    [
        (0, {}, "anchors must be a whole number >= 1. Got 0."),
        (4, {}, "anchors must be at most the number of different sizes of boxes (2). Got 4 in arrays."),
        (2000, {}, "anchors must be a whole number <= 1,000. Got 2000."),
        ([[3, 0]], {}, "anchors must have width and height > 0. Got [3.0, 0.0] in row 0."),
        ([[1, 1], [-3, -2]], {}, "anchors must have width and height > 0. Got [-3.0, -2.0] in row 1."),
        ([[1, np.nan]], {}, "anchors must be finite. Got [1.0, nan] in row 0."),
        ([1, 2, 3], {}, "anchors must have shape [N, 2]. Got shape [3]."),
        ([], {}, "anchors must be 1 to 1,000. Got 0."),
        (1, {"seed": -1}, "seed must be a whole number >= 0. Got -1."),
        (1, {"ratio": 1}, "ratio must be a number in (1, 1000]. Got 1."),
        (1, {"iou_thresholds": [0]}, "iou_thresholds must be a number in (0, 1]. Got 0."),
        (1, {"image_size": -5}, "image_size must be a number in (0, 1e+06]. Got -5."),
        (1, {"image_size": (1, 2, 3)}, "image_size must be one number, or width and height. Got (1, 2, 3)."),
        (
            1,
            {"image_size": 640},
            "an image must have a known size where image_size is given. Got 1 in arrays; pass the image "
            "sizes: --image-folder DIR, or --image-sizes FILE.csv or WIDTHxHEIGHT (in Python "
            "image_folder= or image_sizes=).",
        ),
    ],
)
def test_refused(anchors: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(boxscore.InputError) as error:
        boxscore.table_anchors(table_of([(10, 10), (20, 30), (10, 10)]), anchors, **options)
    assert str(error.value) == message


@pytest.mark.parametrize("anchors", [1, [[1, 1]]])
def test_no_boxes(anchors: Any) -> None:
    with pytest.raises(boxscore.InputError, match="boxes"):
        boxscore.table_anchors(table_of([]), anchors)


# ---------------------------------------------------------------- the command


def test_the_command_prints_what_the_function_returns(truth: boxscore.GroundTruth, run: Run) -> None:
    fitted = boxscore.table_anchors(truth, 3, image_size=640, seed=2)
    options = ("--anchors", "3", "--image-size", "640", "--seed", "2")
    assert run.json("stats", TRUTH, *options)["anchors"] == fitted.to_dict()
    rows = run("stats", TRUTH, *options, "--output", "csv").out.splitlines()
    assert rows[0] == "anchor,width,height,boxes,share"
    assert [float(line.split(",")[1]) for line in rows[1:]] == fitted.sizes[:, 0].tolist()
    given = run.json("stats", TRUTH, "--anchors", "10,13", "16,30", "--image-size", "416x300")["anchors"]
    assert given == boxscore.table_anchors(truth, [[10, 13], [16, 30]], image_size=(416, 300)).to_dict()


# ---------------------------------------------------------------- real data


@pytest.mark.real
@pytest.mark.parametrize(("number", "published"), [(5, 0.610), (9, 0.672)])
def test_mean_iou_of_the_yolov2_paper(number: int, published: float) -> None:
    """Its Table 1 is of VOC 2007, perhaps of another split."""
    truth = boxscore.load_ground_truth(real("voc2007/VOC2007"), image_set="test")
    fitted = boxscore.table_anchors(truth, number, image_size=(13, 13))
    assert fitted.mean_best_iou == pytest.approx(published, abs=0.005)
