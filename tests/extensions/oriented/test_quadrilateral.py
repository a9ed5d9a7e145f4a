"""Polygon IoU: the devkit's to the last bit, the exact one beside rational arithmetic, and conversions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import boxscore
from boxscore import InputError, quadrilateral_iou, rotated_convert
from boxscore.extensions.oriented.quadrilateral import QuadrilateralMeasure
from boxscore.extensions.oriented.quadrilaterals import (
    corners_of_boxes,
    corners_of_rotated,
    crossing,
    minimum_rectangles,
    not_convex,
)
from oracles.devkit_polygons import polyiou as slow_polyiou

FloatArray = NDArray[np.float64]
KINDS = ["jittered", "rounded", "same", "reversed", "any", "thirds", "slivers", "touching"]


def pairs(kind: str, count: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    first = np.column_stack(
        [rng.uniform(0, 4000, (count, 2)), rng.uniform(1, 200, (count, 2)), rng.uniform(-4, 4, count)]
    )
    if kind == "slivers":
        first[:, 3] = 10 ** rng.uniform(-1, 0.5, count)
    scale = 0.02 if kind == "slivers" else 1.0
    second = first.copy()
    second[:, :2] += scale * rng.normal(0, 20, (count, 2))
    second[:, 4] += scale * rng.normal(0, 0.3, count)
    a, b = corners_of_rotated(first), corners_of_rotated(second)
    if kind == "rounded":
        a, b = a.round(), b.round()
    if kind == "same":
        b = a.copy()
    if kind == "reversed":
        b = b.reshape(-1, 4, 2)[:, ::-1].reshape(-1, 8)
    if kind == "any":
        a, b = rng.uniform(0, 300, (2, count, 8))
    if kind == "thirds":
        x, y = rng.integers(0, 4000, (2, count))
        width, height = 3 * rng.integers(1, 60, count), rng.integers(3, 90, count)
        a = corners_of_boxes(np.column_stack([x, y, x + width, y + height])).astype(np.float64)
        b = a.copy()
        b[:, 0::2] += (width // 3)[:, None]
    if kind == "touching":
        c = a.reshape(-1, 4, 2)
        b = np.stack([c[:, 1], 2 * c[:, 1] - c[:, 0], 2 * c[:, 2] - c[:, 3], c[:, 2]], axis=1).reshape(-1, 8)
    return a, b


def exact(first: list[float], second: list[float]) -> float:
    """IoU of convex quadrilaterals in rational numbers."""

    def area(points: list[tuple[Fraction, Fraction]]) -> Fraction:
        ends = zip(points, [*points[1:], *points[:1]], strict=True)
        return sum((p[0] * q[1] - p[1] * q[0] for p, q in ends), Fraction(0)) / 2

    p, q = (
        [(Fraction(x), Fraction(y)) for x, y in zip(some[0::2], some[1::2], strict=True)]
        for some in (first, second)
    )
    p, q = (points[::-1] if area(points) < 0 else points for points in (p, q))
    left = p
    for a, b in zip(q, [*q[1:], *q[:1]], strict=True):
        sides = [(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) for x, y in left]
        kept = []
        for i, point in enumerate(left):
            k = (i + 1) % len(left)
            if sides[i] >= 0:
                kept.append(point)
            if sides[i] * sides[k] < 0:
                at = sides[i] / (sides[i] - sides[k])
                kept.append(
                    (point[0] + (left[k][0] - point[0]) * at, point[1] + (left[k][1] - point[1]) * at)
                )
        left = kept
        if not left:
            return 0.0
    shared = area(left)
    return float(shared / (area(p) + area(q) - shared))


@pytest.mark.parametrize("kind", KINDS)
def test_devkit_values_have_the_bits_of_the_rules(kind: str) -> None:
    a, b = pairs(kind, 60)
    slow = np.array([slow_polyiou(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)])
    found = quadrilateral_iou(a, b, paired=True, devkit=True)
    assert ((found == slow) | (np.isnan(found) & np.isnan(slow))).all()


@pytest.mark.slow
def test_devkit_values_of_twelve_thousand_pairs() -> None:
    for kind in KINDS:
        a, b = pairs(kind, 1500, seed=7)
        slow = np.array([slow_polyiou(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)])
        found = quadrilateral_iou(a, b, paired=True, devkit=True)
        assert ((found == slow) | (np.isnan(found) & np.isnan(slow))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_exact_values(kind: str) -> None:
    a, b = pairs(kind, 100, seed=1)
    convex = ~not_convex(a) & ~not_convex(b)
    a, b = a[convex], b[convex]
    truth = np.array([exact(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)])
    assert np.abs(quadrilateral_iou(a, b, paired=True) - truth).max() < 1e-12


def test_it_is_the_rotated_iou_of_rectangles() -> None:
    rng = np.random.default_rng(3)
    one, other = (
        np.column_stack([rng.uniform(0, 60, (40, 2)), rng.uniform(1, 50, (40, 2)), rng.uniform(-4, 4, 40)])
        for _ in range(2)
    )
    found = quadrilateral_iou(corners_of_rotated(one), corners_of_rotated(other))
    assert np.abs(found - boxscore.rotated_box_iou(one, other)).max() < 1e-12


def test_odd_corners_have_the_devkits_value() -> None:
    square, bow = [0, 0, 4, 0, 4, 4, 0, 4], [0, 0, 4, 4, 4, 0, 0, 4]
    concave, flat = [0, 0, 4, 0, 1, 1, 0, 4], [0, 0, 4, 0, 4, 0, 0, 0]
    assert quadrilateral_iou([concave], [concave]).tolist() == [[1.0]]
    assert quadrilateral_iou([bow], [bow]).tolist() == [[-1.0]]
    assert quadrilateral_iou([flat, square], [flat, square]).tolist() == [[0.0, 0.0], [0.0, 1.0]]
    assert math.isnan(quadrilateral_iou([flat], [flat], devkit=True)[0, 0])
    assert crossing(np.array([square, bow, concave, flat], dtype=float)).tolist() == [
        False,
        True,
        False,
        False,
    ]


def test_near_a_threshold_the_devkits_rounding_decides() -> None:
    """Whole-number rectangles shifted by a third: the exact IoU is 1/2, and rounding takes either side."""
    truths, found = pairs("thirds", 200, seed=5)
    rows = np.arange(200)
    truth = boxscore.GroundTruth.from_arrays(rows, np.ones(200, int), None, quadrilaterals=truths)
    detections = boxscore.Detections.from_arrays(
        rows, np.ones(200, int), None, np.linspace(1, 0.1, 200), quadrilaterals=found
    )
    matches = boxscore.evaluate(truth, detections, protocol="dota").matches
    values = np.array([slow_polyiou(*pair) for pair in zip(truths.tolist(), found.tolist(), strict=True)])
    above = values > 0.5
    assert 20 < above.sum() < 180
    assert np.array_equal(matches["outcome"] == "true positive", above)


def test_measures_do_not_depend_on_the_order_of_rows() -> None:
    a, b = pairs("jittered", 50, seed=9)
    measure = QuadrilateralMeasure(np.concatenate([a, b]))
    first = np.arange(50)
    assert np.allclose(
        measure.between(first, first + 50), measure.between(first + 50, first), atol=1e-13, rtol=0
    )


# ---------------------------------------------------------------- conversions


def drawn(count: int = 200) -> FloatArray:
    rng = np.random.default_rng(11)
    return np.column_stack(
        [rng.uniform(0, 100, (count, 2)), rng.uniform(1, 50, (count, 2)), rng.uniform(-9, 9, count)]
    )


@pytest.mark.parametrize("name", ["oc", "le90", "le135"])
def test_descriptions_keep_the_rectangle_and_their_ranges(name: str) -> None:
    boxes = np.concatenate(
        [drawn(), [[0, 0, 2, 1, k * math.pi / 4] for k in range(-9, 9)], [[0, 0, 1, 2, 0.0]]]
    )
    described = rotated_convert(boxes, "rotated", name)  # type: ignore[arg-type]
    low, high = {
        "oc": (0, math.pi / 2),
        "le90": (-math.pi / 2, math.pi / 2),
        "le135": (-math.pi / 4, 3 * math.pi / 4),
    }[name]
    angle = described[:, 4]
    if name == "oc":
        assert ((angle > low) & (angle <= high)).all()
    else:
        assert ((angle >= low) & (angle < high)).all()
        assert (described[:, 2] >= described[:, 3]).all()
    iou = quadrilateral_iou(
        rotated_convert(described, name, "corners"),  # type: ignore[arg-type]
        rotated_convert(boxes, "rotated", "corners"),
        paired=True,
    )
    assert iou.min() > 1 - 1e-12


def test_corners_and_back() -> None:
    boxes = drawn()
    back = rotated_convert(rotated_convert(boxes, "rotated", "corners"), "corners", "le90")
    assert np.allclose(back[:, :4], rotated_convert(boxes, "rotated", "le90")[:, :4], atol=1e-9)


def test_the_least_rectangle_is_found_among_all_directions() -> None:
    corners = np.random.default_rng(2).uniform(0, 100, (50, 8))
    found = minimum_rectangles(corners)
    x, y = corners[:, 0::2, None], corners[:, 1::2, None]
    angles = np.linspace(0, math.pi / 2, 2000)
    along, across = x * np.cos(angles) + y * np.sin(angles), y * np.cos(angles) - x * np.sin(angles)
    least = (np.ptp(along, axis=1) * np.ptp(across, axis=1)).min(axis=1)
    assert (found[:, 2] * found[:, 3] <= least + 1e-9).all()
    around = corners_of_rotated(found)
    inside = np.array(
        [
            [exact(box, [a - 1e-6, b - 1e-6, a + 1e-6, b - 1e-6, a + 1e-6, b + 1e-6, a - 1e-6, b + 1e-6]) > 0]
            for box, row in zip(around.tolist(), corners.tolist(), strict=True)
            for a, b in zip(row[0::2], row[1::2], strict=True)
        ]
    )
    assert inside.all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quadrilateral_iou([[0, 0, 1, 1]], [[0] * 8]), "corners1 must have shape [N, 8]"),
        (lambda: boxscore.rotated_box_iou([[0, 0, 1, 1]], [[0] * 5]), "boxes1 must have shape [N, 5]"),
        (lambda: rotated_convert([[0, 0, 1, 1, 0]], "corners", "oc"), "boxes must have shape [N, 8]"),
        (lambda: rotated_convert([[0, 0, 1, 1, 0]], "oc", "le9"), "to_format must be one of"),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]
    assert message in str(caught.value)


@pytest.mark.slow
def test_a_hundred_thousand_pairs_beside_shapely() -> None:
    """Where they differ by more, rational numbers say who is right: shapely loses slivers and coinciding sides."""
    shapely = pytest.importorskip("shapely")
    for kind in KINDS:
        a, b = pairs(kind, 12_500, seed=13)
        convex = ~not_convex(a) & ~not_convex(b)
        a, b = a[convex], b[convex]
        p, q = (shapely.polygons(some.reshape(-1, 4, 2)) for some in (a, b))
        shared = shapely.area(shapely.intersection(p, q))
        theirs = shared / (shapely.area(p) + shapely.area(q) - shared)
        found = quadrilateral_iou(a, b, paired=True)
        for row in np.flatnonzero(np.abs(found - theirs) > 1e-12).tolist():
            assert abs(found[row] - exact(a[row].tolist(), b[row].tolist())) < 1e-12
