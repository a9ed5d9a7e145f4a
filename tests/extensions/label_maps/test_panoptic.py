"""Panoptic quality: against a plain oracle, and by hand."""

from __future__ import annotations

import math
import pickle
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxscore import BoxscoreWarning, InputError, PanopticQuality, panoptic_quality
from oracles.label_maps import panoptic_counts
from support.each import each
from support.examples import examples
from support.quiet import quiet

CATEGORIES = [
    {"id": 3, "name": "cat", "isthing": 1},
    {"id": 5, "name": "dog", "isthing": 1},
    {"id": 9, "name": "sky", "isthing": 0},
]


def segments(*ids: int, category: int = 3, **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, "category_id": category, **more} for number in ids]


@st.composite
def images(draw: st.DrawFn) -> tuple[Any, Any, Any, Any]:
    height, width = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    maps, tables = [], []
    scale = draw(st.sampled_from([1, 70_000]))
    for truth in (True, False):
        values = draw(
            st.lists(
                st.lists(st.integers(0, 4), min_size=width, max_size=width), min_size=height, max_size=height
            )
        )
        rows = [[scale * value for value in row] for row in values]
        table = []
        for number in sorted({value for row in rows for value in row} - {0}, reverse=draw(st.booleans())):
            segment: dict[str, Any] = {"id": number, "category_id": draw(st.sampled_from([3, 5, 9]))}
            if truth:
                segment["iscrowd"] = int(draw(st.integers(0, 3)) == 0)
                if draw(st.booleans()):
                    segment["area"] = sum(row.count(number) for row in rows)
            table.append(segment)
        maps.append(rows)
        tables.append(table)
    return maps[0], tables[0], maps[1], tables[1]


@settings(max_examples=examples(40))
@given(st.lists(images(), min_size=1, max_size=3), st.sampled_from(["panopticapi", "counted"]))
def test_the_oracle(data: list[Any], rules: str) -> None:
    result = panoptic_quality(
        [(np.array(t), s) for t, s, _, _ in data],
        [(np.array(p), s) for _, _, p, s in data],
        categories=CATEGORIES,
        rules=rules,
    )
    expected = {number: [0, 0, 0, Fraction(0)] for number in (3, 5, 9)}
    for image in data:
        counts = panoptic_counts(
            *image, area_of_table=rules == "panopticapi", last_crowd_only=rules == "panopticapi"
        )
        for number, values in counts.items():
            expected[number] = [a + b for a, b in zip(expected[number], values, strict=True)]
    frame = result.to_frame().set_index("class_id")
    for number, (tp, fp, fn, iou) in expected.items():
        row = frame.loc[number]
        assert [tp, fp, fn] == [row.TP, row.FP, row.FN]
        weight = tp + Fraction(fp, 2) + Fraction(fn, 2)
        if weight:
            assert pytest.approx(float(iou / weight), abs=1e-15) == row.PQ
            assert pytest.approx(float(iou / tp) if tp else 0, abs=1e-15) == row.SQ
        else:
            assert math.isnan(row.PQ)


@settings(max_examples=examples(40))
@given(st.lists(images(), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_no_bit_depends_on_the_order_of_images(data: list[Any], order: random.Random) -> None:
    def quality(data: list[Any]) -> PanopticQuality:
        parts = [
            panoptic_quality((np.array(t), ts), (np.array(p), ps), categories=CATEGORIES, images=[number])
            for number, (t, ts, p, ps) in data
        ]
        return PanopticQuality.merge(parts)

    numbered = list(enumerate(data))
    one = quality(numbered)
    order.shuffle(numbered)
    other = quality(numbered)
    assert np.array_equal(list(one.metrics.values()), list(other.metrics.values()), equal_nan=True)


def test_iou_of_one_half_is_no_match() -> None:
    truth, prediction = np.array([[1, 1, 1, 0]]), np.array([[0, 1, 1, 1]])
    result = panoptic_quality((truth, segments(1)), (prediction, segments(1)), categories=CATEGORIES)
    assert result.counts["TP"] == 1  # the pixel on void is not in the union: 2 of 3
    truth = np.array([[1, 1, 1, 2]])
    result = panoptic_quality(
        (truth, [*segments(1), *segments(2, category=5)]), (prediction, segments(1)), categories=CATEGORIES
    )
    assert result.counts == {"images": 1, "TP": 0, "FP": 1, "FN": 2}  # 2 of 4


def test_void_and_crowds_excuse_more_than_half_only() -> None:
    truth = np.array([[1, 1, 0, 0]])
    prediction = np.array([[7, 7, 7, 7]])
    crowd = segments(1, iscrowd=1)
    half = [*segments(1, category=5)]
    excused = panoptic_quality((truth, crowd), (prediction, segments(7)), categories=CATEGORIES)
    assert excused.counts == {"images": 1, "TP": 0, "FP": 0, "FN": 0}
    assert all(map(math.isnan, excused.metrics.values()))
    counted = panoptic_quality((truth, half), (prediction, segments(7)), categories=CATEGORIES)
    assert counted.counts["FP"] == 1


def test_which_crowds_excuse() -> None:
    truth, prediction = np.array([[1, 1, 2, 2, 4]]), np.array([[7, 7, 8, 8, 9]])
    table = [*segments(1, 2, iscrowd=1), *segments(4, category=9)]
    predicted = [*segments(7, 8), *segments(9, category=9)]
    false = {}
    for rules in ("panopticapi", "counted"):
        result = panoptic_quality((truth, table), (prediction, predicted), categories=CATEGORIES, rules=rules)
        false[rules] = result.segments_frame().query("outcome == 'FP'").prediction_id.tolist()
    assert false == {"panopticapi": [7], "counted": []}


def test_a_group_without_classes_is_nan_and_the_others_are_not() -> None:
    image = np.array([[1, 1]])
    result = panoptic_quality((image, segments(1)), (image, segments(1)), categories=CATEGORIES)
    assert result.metrics["PQ"] == result.metrics["PQ_things"] == 1
    assert math.isnan(result.metrics["PQ_stuff"])


def test_colors_and_frames_are_maps_and_tables() -> None:
    ids = np.array([[70_000, 70_000, 256]])
    colors = np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1).astype(np.uint8)
    table = pd.DataFrame({"id": [70_000, 256], "category_id": [3, 9]})
    result = panoptic_quality((colors, table), (ids, table), categories={3: True, 9: False})
    assert result.metrics["PQ"] == 1
    assert result.classes.names == ("3", "9")


def example(count: int = 6) -> PanopticQuality:
    generator = np.random.default_rng(0)
    truth = [generator.integers(1, 4, (6, 6)) for _ in range(count)]
    prediction = [np.where(generator.random((6, 6)) < 0.2, 1, image) for image in truth]
    table = [{"id": number, "category_id": category} for number, category in ((1, 3), (2, 5), (3, 9))]
    tables = [table] * count
    return panoptic_quality(
        zip(truth, tables, strict=True), zip(prediction, tables, strict=True), categories=CATEGORIES
    )


def test_tables() -> None:
    result = example()
    images = result.per_image_frame()
    assert images.PQ.is_monotonic_increasing
    assert images[["TP", "FP", "FN"]].sum().tolist() == [result.counts[name] for name in ("TP", "FP", "FN")]
    alone = result.segments_frame().query("image_id == @images.image_id[0] and outcome == 'TP'")
    assert len(alone) == images.TP[0]
    assert pickle.loads(pickle.dumps(result)).metrics == result.metrics
    assert repr(result).startswith("PanopticQuality of 6 images\nPQ ")


def test_intervals_enclose_the_value_and_follow_the_seed() -> None:
    few = example(9).bootstrap_intervals(resamples=5).to_frame()
    assert few.low.isna().all()
    result = example(10)
    one, other = (result.bootstrap_intervals(resamples=50, seed=1).to_frame() for _ in range(2))
    assert one.equals(other)
    assert ((one.low <= one.value) & (one.value <= one.high)).all()
    assert one.value.tolist() == pytest.approx(list(result.metrics.values()))
    with pytest.raises(InputError, match="confidence"):
        result.bootstrap_intervals(confidence=0)


# ---------------------------------------------------------------- what is refused


MAP = np.array([[1, 1], [2, 2]])
TABLE = segments(1, 2)


@each(
    [
        (
            (MAP, TABLE),
            (MAP[:1], TABLE),
            "the prediction's map must be as large as the truth (2 x 2). Got 2 x 1 in prediction of image 0; "
            "resize it with nearest-neighbor interpolation.",
        ),
        (
            (MAP, TABLE),
            (MAP, segments(1)),
            "an id of the prediction's map must be listed for its image. Got 2 in prediction of image 0.",
        ),
        (
            (MAP, TABLE),
            (MAP, segments(1, 2, 3)),
            "a segment of the prediction must have pixels in the map. Got id 3 in prediction of image 0.",
        ),
        (
            (MAP, TABLE),
            (MAP, segments(1, 2, category=4)),
            "category_id must be a category. Got 4 in prediction of image 0; a class that the categories of the "
            "truth do not have.",
        ),
        (
            (MAP, TABLE),
            (MAP, segments(0, 1)),
            "id of a segment must be in [1, 16777215]. Got 0 in prediction of image 0; 0 is void in the map.",
        ),
        (
            (MAP, TABLE),
            (MAP, segments(1, 1)),
            "ids of segments must be unique. Got 1 twice in prediction of image 0.",
        ),
        (
            (MAP, TABLE),
            (MAP + 0.5, TABLE),
            "the prediction's map must be whole numbers. Got dtype float64 in prediction of image 0; "
            "take the argmax over classes first.",
        ),
        (
            (MAP, [{"id": 1}]),
            (MAP, TABLE),
            "a segment must have id and category_id. Got {'id': 1} in truth of image 0.",
        ),
        (
            (MAP - 2, TABLE),
            (MAP, TABLE),
            "the truth's map must have labels in [0, 16777215]. Got -1 in truth of image 0.",
        ),
        (
            [(MAP, TABLE)] * 2,
            [(MAP, TABLE)],
            "prediction must be as long as truth. Got length 1, and truth has more.",
        ),
        ([MAP], [MAP], "truth must be pairs (map, table). Got a ndarray."),
        (
            (MAP, segments(1, 2, area=0.5)),
            (MAP, TABLE),
            "area in truth of image 0 must be whole numbers. Got 0.5.",
        ),
        (
            (np.array([[1]]), segments(1, area=0)),
            (np.array([[1]]), segments(1)),
            "a segment must have the area that its pixels cover. Got area 0 of segment 1 in truth of image 0.",
        ),
    ]
)
def test_what_is_refused(truth: Any, prediction: Any, message: str) -> None:
    with quiet(), pytest.raises(InputError) as error:
        panoptic_quality(truth, prediction, categories=CATEGORIES)
    assert str(error.value) == message


def test_where_truth_and_table_disagree_some_rules_warn_and_others_refuse() -> None:
    for table, words in [
        (segments(1), "an id in the ground truth map is not in its segment list"),
        (segments(1, 2, 3), "a segment of the ground truth lacks pixels"),
    ]:
        with pytest.warns(BoxscoreWarning, match=words):
            panoptic_quality((MAP, table), (MAP, TABLE), categories=CATEGORIES)
        with pytest.raises(InputError, match=r"truth's map must|segment of the truth must"):
            panoptic_quality((MAP, table), (MAP, TABLE), categories=CATEGORIES, rules="counted")
    with pytest.warns(
        BoxscoreWarning,
        match="truth of image 0 and 1 more: a ground truth segment has an area that differs from",
    ):
        panoptic_quality([(MAP, segments(1, 2, area=3))] * 2, [(MAP, TABLE)] * 2, categories=CATEGORIES)


def test_what_does_not_merge() -> None:
    one = example(1)
    for other in (example(1), panoptic_quality([], [], categories={3: 1}), example(2)):
        with pytest.raises(InputError, match=r"must be unique|same rules and classes"):
            one + other
    with pytest.raises(InputError, match="at least one"):
        PanopticQuality.merge([])
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


@each([[], [{"id": 1}], [{"id": 1, "isthing": 1}] * 2, [{"id": 1, "isthing": 2}]])
def test_categories_that_are_refused(categories: Any) -> None:
    with pytest.raises(InputError):
        panoptic_quality([], [], categories=categories)
