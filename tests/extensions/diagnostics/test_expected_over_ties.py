"""The expectation of AP over all orders of equal scores: against every order, and against drawn ones."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import tie_bounds
from boxscore.protocols import load_protocol
from support.each import each


def scene(seed: int, count: int = 7, levels: int = 2) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Detections each of its own object, or of none: no order changes which of them are true."""
    rng = np.random.default_rng(seed)
    hit = rng.random(count) < 0.5
    # Each true one in an image of its own; a false one beside it. Two objects more are never found.
    images = np.arange(count)
    truth = boxscore.GroundTruth.from_arrays(
        [*images[hit], count, count],
        ["a"] * (hit.sum() + 2),
        [[0, 0, 9, 9]] * (hit.sum() + 2),
        images=range(count + 1),
        categories=["a"],
    )
    boxes = np.where(hit[:, None], [[0, 0, 9, 9]], [[50, 50, 59, 59]])
    scores = rng.choice(np.linspace(0.3, 0.9, levels), count)
    order = rng.permutation(count)
    return truth, boxscore.Detections.from_arrays(
        images[order], ["a"] * count, boxes[order], scores[order], images=truth.images, categories=["a"]
    )


@functools.cache  # most orders of all have the same ones true
def envelope_ap(true: tuple[bool, ...], positive: int, points: tuple[float, ...] | None) -> Fraction:
    """AP of one order, in fractions: the best precision from each true one on."""
    precision, found = [], 0
    for place, right in enumerate(true, start=1):
        found += right
        if right:
            precision.append(Fraction(found, place))
    best = [max(precision[k:]) for k in range(len(precision))]
    if points is None:
        return Fraction(sum(best), positive) if best else Fraction(0)
    reached = [
        next((best[k] for k in range(len(best)) if (k + 1) / positive >= r), Fraction(0)) for r in points
    ]
    return sum(reached, Fraction(0)) / len(points)


def mean_of_all_orders(truth, detections, points) -> Fraction:
    hit = detections.boxes[:, 0] == 0
    groups = [hit[detections.scores == value].tolist() for value in np.unique(detections.scores)[::-1]]
    total, count = Fraction(0), 0
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        total += envelope_ap(tuple(itertools.chain(*orders)), len(truth), points)
        count += 1
    return total / count


@each(
    [
        (seed, levels, protocol, points)
        for protocol, points in [("coco", "coco"), ("voc2012", None), ("voc2007", "voc2007")]
        for levels in [1, 2, 3]
        for seed in range(8)
    ]
)
def test_the_mean_of_every_order(seed, levels, protocol, points):
    truth, detections = scene(seed, levels=levels)
    recall = None if points is None else tuple(load_protocol(points).ap.recall_points)
    expected = float(mean_of_all_orders(truth, detections, recall))
    result = tie_bounds(boxscore.evaluate(truth, detections, protocol=protocol, digest=False))
    assert result.total.expected[0] == pytest.approx(expected, rel=0, abs=1e-12)
    assert result.per_class.expected[0, 0] == pytest.approx(expected, rel=0, abs=1e-12)
    assert result.note == ""


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
@pytest.mark.parametrize("seed", range(4))
def test_without_ties_it_is_the_value_to_the_bit(scene_of, seed, protocol):
    result = tie_bounds(boxscore.evaluate(*scene_of(seed), protocol=protocol))
    np.testing.assert_array_equal(result.total.expected, result.total.value)
    np.testing.assert_array_equal(result.per_class.expected, result.per_class.value)


@pytest.fixture
def scene_of(scene):
    return scene


@pytest.mark.parametrize("counts", [(1, 1), (3, 5), (20, 20), (7, 300)])
def test_one_group_is_the_expectation_without_scores(counts):
    """Of detections that have all one score, as boxes without scores have it."""
    true, false = counts
    hit = np.arange(true + false) < true
    truth = boxscore.GroundTruth.from_arrays(
        np.arange(true + 1), ["a"] * (true + 1), [[0, 0, 9, 9]] * (true + 1), images=range(true + false + 1)
    )
    boxes = np.where(hit[:, None], [[0, 0, 9, 9]], [[50, 50, 59, 59]])
    images = np.where(hit, np.arange(true + false), np.arange(true + false))
    found = boxscore.Detections.from_arrays(
        images, ["a"] * len(hit), boxes, np.ones(len(hit)), images=truth.images
    )
    ours = tie_bounds(boxscore.evaluate(truth, found, digest=False), metrics=["AP"]).total.expected[0]
    assert ours == pytest.approx(boxscore.evaluate(truth, found.without_scores())["AP_expected"], abs=1e-15)
    if true == 1:
        harmonic = sum(Fraction(1, k) for k in range(1, false + 2)) / (false + 1)
        assert ours == pytest.approx(float(harmonic) * 51 / 101, abs=1e-12)  # recall 1/2 is reached


@pytest.mark.parametrize("levels", [1, 3])
def test_many_tied_ones_are_estimated_with_their_error(levels):
    truth, detections = scene(5, count=400, levels=levels)
    evaluation = boxscore.evaluate(truth, detections, digest=False, protocol="voc2012")
    result = tie_bounds(evaluation)
    assert "estimated mean over all orders, with a standard error of at most" in result.note
    rng = np.random.default_rng(0)
    hit = detections.boxes[:, 0] == 0
    drawn = []
    for _ in range(2000):
        order = np.lexsort((rng.random(len(hit)), -detections.scores))
        nth = np.cumsum(hit[order])[hit[order]]
        precision = nth / (np.flatnonzero(hit[order]) + 1)
        drawn.append(np.maximum.accumulate(precision[::-1]).sum() / len(truth))
    error = math.hypot(np.std(drawn) / math.sqrt(len(drawn)), float(result.note.split()[-1]))
    assert abs(result.total.expected[0] - np.mean(drawn)) < 4 * error
    assert result.total.lowest[0] < result.total.expected[0] < result.total.highest[0]
    again = tie_bounds(dataclasses.replace(evaluation))
    assert again.total.expected[0] == result.total.expected[0]


def test_the_order_of_the_file_has_no_part_in_it(scene_of):
    truth, detections = scene_of(0, images=40, decimals=1)
    rng = np.random.default_rng(1)
    values = {
        tie_bounds(boxscore.evaluate(truth, detections.take(rows), digest=False), metrics=["AP"]).total.tied[
            0
        ]
        for rows in (np.arange(len(detections)), rng.permutation(len(detections)))
    }
    assert len(values) == 1
    result = tie_bounds(boxscore.evaluate(truth, detections, digest=False)).total
    defined = ~np.isnan(result.value)
    assert (result.lowest[defined] <= result.expected[defined] + 1e-15).all()
    assert (result.expected[defined] <= result.highest[defined] + 1e-15).all()


@pytest.mark.parametrize("interpolation", ["trapezoid", "every_point"])
def test_a_protocol_whose_ap_is_no_such_mean_has_none(scene_of, interpolation):
    truth, detections = scene_of(0, images=40, decimals=1)
    other = {"extends": "voc2012", "name": "other", "ap": {"interpolation": interpolation}}
    result = tie_bounds(boxscore.evaluate(truth, detections, protocol=other, digest=False))
    assert np.isnan(result.total.expected).all()
    assert np.isnan(result.per_class.expected).all()
    assert np.isfinite(result.total.lowest).all()
