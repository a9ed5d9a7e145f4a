"""Areas and overlaps of boxes: worked examples, pycocotools, and the formulae written out slowly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as mask_tools

import boxscore
from boxscore import (
    InputError,
    box_area,
    box_convert,
    box_iof,
    box_iou,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
)
from support.examples import examples

MEASURES = [box_iou, box_iof, generalized_box_iou, distance_box_iou, complete_box_iou]
ROUNDING = 1e-12
"""Of the slow formulae, which sum in another order than NumPy does."""


# ---------------------------------------------------------------- worked examples


def test_a_quarter_of_each() -> None:
    assert box_iou([[0, 0, 10, 10]], [[5, 5, 15, 15]]).tolist() == [[25 / 175]]


def test_inclusive_pixels() -> None:
    """Sides of 101 pixels, 51 of them shared: the +1 rule."""
    a, b = [[50, 50, 150, 150]], [[100, 100, 200, 200]]
    assert box_iou(a, b, pixel_offset=1).tolist() == [[51 * 51 / (2 * 101 * 101 - 51 * 51)]]
    assert box_iou(a, b).tolist() == [[50 * 50 / (2 * 100 * 100 - 50 * 50)]]


def test_x_y_width_height() -> None:
    truth = [[1, 1, 5, 4]]
    overlaps = box_iou(truth, [[1, 1, 4, 4], [2, 2, 4, 4]], box_format="xywh")
    assert overlaps.tolist() == [[16 / 20, 12 / 24]]


@pytest.mark.parametrize(
    "other", [[10, 0, 20, 10], [0, 10, 10, 20], [10, 10, 20, 20], [11, 0, 20, 10], [0, -5, 10, -1]]
)
def test_touching_and_disjoint_boxes_do_not_overlap(other: list[float]) -> None:
    assert box_iou([[0, 0, 10, 10]], [other]).tolist() == [[0.0]]
    assert box_iof([[0, 0, 10, 10]], [other]).tolist() == [[0.0]]


def test_touching_boxes_share_a_pixel_when_it_is_inclusive() -> None:
    assert box_iou([[0, 0, 9, 9]], [[9, 0, 18, 9]], pixel_offset=1).tolist() == [[10 / 190]]
    assert box_iou([[0, 0, 9, 9]], [[10, 0, 19, 9]], pixel_offset=1).tolist() == [[0.0]]


TUTORIAL = [
    ([39, 63, 203, 112], [54, 66, 198, 114], 0.7980),
    ([49, 75, 203, 125], [42, 78, 186, 126], 0.7899),
    ([31, 69, 201, 125], [18, 63, 235, 135], 0.6125),
    ([50, 72, 197, 121], [54, 72, 198, 120], 0.9472),
    ([35, 51, 196, 110], [36, 60, 180, 108], 0.7310),
]


def test_the_tutorial_pairs() -> None:
    truth, found, expected = (list(column) for column in zip(*TUTORIAL, strict=True))
    assert box_iou(truth, found, pixel_offset=1, paired=True).round(4).tolist() == expected


def test_degenerate_boxes_overlap_nothing() -> None:
    point, line, box = [5, 5, 5, 5], [0, 5, 10, 5], [0, 0, 10, 10]
    for measure in (box_iou, box_iof):
        assert measure([point, line, box], [point, line]).tolist() == [[0.0, 0.0]] * 3
    for measure in (generalized_box_iou, distance_box_iou, complete_box_iou):
        assert np.isfinite(measure([point, line, box], [point, line, box])).all()


def test_foreground_is_the_first_argument() -> None:
    small, large = [[0, 0, 2, 2]], [[0, 0, 4, 4]]
    assert box_iof(small, large).tolist() == [[1.0]]
    assert box_iof(large, small).tolist() == [[0.25]]


def test_areas() -> None:
    boxes = [[0, 0, 9, 9], [1, 2, 1, 5]]
    assert box_area(boxes).tolist() == [81.0, 0.0]
    assert box_area(boxes, pixel_offset=1).tolist() == [100.0, 4.0]
    assert box_area([[3, 4, 5, 6]], box_format="xywh").tolist() == [30.0]
    assert box_area([[3, 4, 5, 6]], box_format="cxcywh").tolist() == [30.0]


# ---------------------------------------------------------------- forms


FORMS = {"xyxy": [10.0, 20.0, 16.0, 28.0], "xywh": [10.0, 20.0, 6.0, 8.0], "cxcywh": [13.0, 24.0, 6.0, 8.0]}


@pytest.mark.parametrize("source", FORMS)
@pytest.mark.parametrize("target", FORMS)
def test_convert(source: Any, target: Any) -> None:
    given_boxes = np.array([FORMS[source]])
    converted = box_convert(given_boxes, source, target)
    assert converted.tolist() == [FORMS[target]]
    converted[:] = 0
    assert given_boxes.tolist() == [FORMS[source]]  # a copy


@pytest.mark.parametrize("form", ["xywh", "cxcywh"])
def test_forms_give_the_same_overlaps(form: Any) -> None:
    rng = np.random.default_rng(0)
    corner = rng.integers(0, 20, (12, 2)) * 0.5
    boxes = np.hstack([corner, corner + rng.integers(1, 20, (12, 2))])
    for measure in MEASURES:
        converted = box_convert(boxes, "xyxy", form)
        assert measure(converted, converted, box_format=form).tolist() == measure(boxes, boxes).tolist()


# ---------------------------------------------------------------- against pycocotools

coordinate = st.one_of(
    st.integers(0, 6).map(float),
    st.floats(0, 1000, allow_nan=False),
    st.sampled_from([0.1, 0.2, 0.3, 1 / 3, 33.3]),
)
xywh = st.lists(st.tuples(coordinate, coordinate, coordinate, coordinate), min_size=1, max_size=8)


@given(a=xywh, b=xywh)
@settings(max_examples=examples(500))
def test_iou_and_iof_equal_pycocotools_bit_for_bit(a: Any, b: Any) -> None:
    first, second = np.array(a, dtype=float), np.array(b, dtype=float)
    plain = mask_tools.iou(first, second, [0] * len(b))
    crowd = mask_tools.iou(first, second, [1] * len(b))
    assert box_iou(first, second, box_format="xywh").tobytes() == _without_nan(plain).tobytes()
    assert box_iof(first, second, box_format="xywh").tobytes() == _without_nan(crowd).tobytes()


def _without_nan(values: Any) -> Any:
    """Return pycocotools' overlaps; where areas underflow to 0 it divides 0 by 0."""
    return np.ascontiguousarray(np.where(np.isnan(values), 0.0, values))


# ---------------------------------------------------------------- against the formulae

Box = tuple[float, float, float, float]


def slow(name: str, a: Box, b: Box, offset: float) -> float:
    """Each measure for one pair, from its paper."""
    wa, ha, wb, hb = a[2] - a[0] + offset, a[3] - a[1] + offset, b[2] - b[0] + offset, b[3] - b[1] + offset
    w, h = min(a[2], b[2]) - max(a[0], b[0]) + offset, min(a[3], b[3]) - max(a[1], b[1]) + offset
    intersection = w * h if w > 0 and h > 0 else 0.0
    union = wa * ha + wb * hb - intersection
    iou = intersection / union if union else 0.0
    if name == "box_iof":
        return intersection / (wa * ha) if wa * ha else 0.0
    hull_w, hull_h = max(a[2], b[2]) - min(a[0], b[0]) + offset, max(a[3], b[3]) - min(a[1], b[1]) + offset
    if name == "generalized_box_iou":
        hull = hull_w * hull_h
        return iou - ((hull - union) / hull if hull else 0.0)
    centers = ((a[0] + a[2]) / 2 - (b[0] + b[2]) / 2) ** 2 + ((a[1] + a[3]) / 2 - (b[1] + b[3]) / 2) ** 2
    diagonal = hull_w**2 + hull_h**2
    distance = iou - (centers / diagonal if diagonal else 0.0)
    if name == "complete_box_iou":
        v = 4 / math.pi**2 * (math.atan2(wb, hb) - math.atan2(wa, ha)) ** 2
        return distance - (v * v / (1 - iou + v) if v else 0.0)
    return distance if name == "distance_box_iou" else iou


sides = st.tuples(coordinate, coordinate, coordinate, coordinate)
boxes = st.lists(sides.map(lambda s: (s[0], s[1], s[0] + s[2], s[1] + s[3])), min_size=1, max_size=5)


@given(a=boxes, b=boxes, offset=st.sampled_from([0, 1, 0.5]))
@settings(max_examples=examples(300))
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.__name__)
def test_measures_equal_the_slow_formulae(measure: Any, a: list[Box], b: list[Box], offset: float) -> None:
    fast = measure(a, b, pixel_offset=offset)
    assert fast.shape == (len(a), len(b))
    expected = [[slow(measure.__name__, p, q, offset) for q in b] for p in a]
    np.testing.assert_allclose(fast, expected, rtol=0, atol=ROUNDING)


@given(a=boxes, b=boxes, offset=st.sampled_from([0, 1]))
@settings(max_examples=examples(100))
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.__name__)
def test_paired_is_the_diagonal(measure: Any, a: list[Box], b: list[Box], offset: float) -> None:
    count = min(len(a), len(b))
    full = measure(a[:count], b[:count], pixel_offset=offset)
    paired = measure(a[:count], b[:count], pixel_offset=offset, paired=True)
    assert paired.shape == (count,)
    assert paired.tobytes() == np.ascontiguousarray(np.diagonal(full)).tobytes()


@given(a=boxes)
@settings(max_examples=examples(100))
def test_a_box_is_itself(a: list[Box]) -> None:
    same = np.diagonal(box_iou(a, a))
    with_area = box_area(a) > 0
    assert (same[with_area] == 1.0).all()
    assert (same[~with_area] == 0.0).all()


@given(a=boxes, b=boxes)
@settings(max_examples=examples(200))
def test_order_of_the_measures(a: list[Box], b: list[Box]) -> None:
    iou = box_iou(a, b)
    assert ((iou >= 0) & (iou <= 1)).all()
    assert iou.tobytes() == np.ascontiguousarray(box_iou(b, a).T).tobytes()
    for measure in (generalized_box_iou, distance_box_iou):
        assert (measure(a, b) <= iou + ROUNDING).all()
        assert (measure(a, b) >= -1 - ROUNDING).all()
    assert (complete_box_iou(a, b) <= distance_box_iou(a, b)).all()


# ---------------------------------------------------------------- shapes and errors


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.__name__)
@pytest.mark.parametrize("empty", [[], np.empty((0, 4)), np.empty(0)])
def test_no_boxes(measure: Any, empty: Any) -> None:
    assert measure(empty, [[0, 0, 1, 1]]).shape == (0, 1)
    assert measure([[0, 0, 1, 1]] * 3, empty).shape == (3, 0)
    assert measure(empty, empty).shape == (0, 0)
    assert measure(empty, empty, paired=True).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([[0, 0, 1]], [[0, 0, 1, 1]]), {}, "boxes1 must have shape [N, 4]. Got shape [1, 3]."),
        (([0, 0, 1, 1], [[0, 0, 1, 1]]), {}, "boxes1 must have shape [N, 4]. Got shape [4]."),
        (
            ([[0, 0, 1, 1]], [[0, 0, 1, "a"]]),
            {},
            "boxes2 must be numbers and have shape [N, 4]. Got could not convert string to float: 'a'.",
        ),
        (
            ([[5, 0, 1, 1]], [[0, 0, 1, 1]]),
            {},
            "boxes1 must have width >= 0. Got width -4.0 in row 0; are these x,y,w,h?",
        ),
        (
            ([[0, 0, 1, 1]], [[0, 0, 1, -1]]),
            {"box_format": "xywh"},
            "boxes2 must have height >= 0. Got height -1.0 in row 0; were two corners swapped?",
        ),
        (
            ([[0, 0, 1, 1]], [[0, 0, 1, 1], [0, 0, math.nan, 1]]),
            {},
            "boxes2 must be finite. Got [0.0, 0.0, nan, 1.0] in row 1.",
        ),
        (
            ([[0, 0, 1, 1]], [[0, 0, 1e101, 1]]),
            {},
            "boxes2 must be at most 1e+100 in size. Got [0.0, 0.0, 1e+101, 1.0] in row 0.",
        ),
        (
            ([[0, 0, 1, 1]], [[0, 0, 1, 1]]),
            {"box_format": "xywz"},
            "box_format must be one of 'xyxy', 'xywh', 'cxcywh'. Got 'xywz'; did you mean 'xywh'?",
        ),
        (
            ([[0, 0, 1, 1]], [[0, 0, 1, 1]] * 2),
            {"paired": True},
            "boxes2 must be as long as boxes1 (1) when paired. Got length 2.",
        ),
    ],
)
def test_errors(arguments: Any, options: Any, text: str) -> None:
    for measure in MEASURES:
        with pytest.raises(InputError) as caught:
            measure(*arguments, **options)
        assert str(caught.value) == text
        assert isinstance(caught.value, ValueError)


def test_convert_refuses_unknown_forms() -> None:
    with pytest.raises(InputError, match=r"^in_fmt must be one of .* Got 'yxyx'"):
        box_convert([[0, 0, 1, 1]], "yxyx", "xyxy")  # type: ignore[arg-type]
    with pytest.raises(boxscore.InputError, match=r"^out_fmt must be one of .* Got 'xxyy'"):
        box_convert([[0, 0, 1, 1]], "xyxy", "xxyy")  # type: ignore[arg-type]
