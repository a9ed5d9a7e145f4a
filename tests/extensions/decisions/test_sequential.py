"""Bets on batches against every exchange by hand, and against closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import boxscore
from boxscore import InputError
from boxscore.diagnostics import compare_sequentially
from boxscore.extensions.decisions.sequential import BETS, drop_in_batches, payments, share_of_look
from support.samples import DT, GT

COLUMNS = ("images", "value_first", "value_other", "better", "worse", "p_value")


def scene(images, seed=0, classes=2):
    """Ground truth and the boxes, classes and scores of two detectors, a list for each image."""
    random = np.random.default_rng(seed)
    truth, sides = [], ([], [])
    for _ in range(images):
        boxes = [[60.0 * place, 0.0, 40.0, 40.0] for place in range(random.integers(1, 4))]
        labels = random.integers(0, classes, len(boxes)).tolist()
        truth.append((boxes, labels))
        for side in sides:
            moved = [[x + random.normal(0, 6), y, w, h] for x, y, w, h in boxes]
            side.append((moved, labels, random.random(len(boxes)).tolist()))
    return truth, sides


def evaluated(truth, one, **options):
    """Evaluate one detector, given by image."""
    table = boxscore.GroundTruth.from_arrays(
        [image for image, (boxes, _) in enumerate(truth) for _ in boxes],
        [label for _, labels in truth for label in labels],
        [box for boxes, _ in truth for box in boxes],
        box_format="xywh",
        images=range(len(truth)),
    )
    found = boxscore.Detections.from_arrays(
        [image for image, (boxes, _, _) in enumerate(one) for _ in boxes],
        [label for _, labels, _ in one for label in labels],
        np.array([box for boxes, _, _ in one for box in boxes]).reshape(-1, 4),
        [score for _, _, scores in one for score in scores],
        box_format="xywh",
    )
    return boxscore.evaluate(table, found, **options)


def exchanged(sides, swap):
    """Both detectors with the results of some images in the other's place."""
    pairs = [(b, a) if there else (a, b) for a, b, there in zip(*sides, swap, strict=True)]
    return tuple(zip(*pairs, strict=True))


def pair(truth, sides):
    return dict(zip("ab", (evaluated(truth, side) for side in sides), strict=True))


@pytest.mark.long
def test_the_mean_capital_over_all_exchanges_is_one():
    """After each of two batches, of every exchange of their images: so a bet is fair."""
    truth, sides = scene(5)
    swaps = list(itertools.product((False, True), repeat=4))
    results = [
        compare_sequentially(
            pair(truth[:4], exchanged([side[:4] for side in sides], s)), batch=2, confidence=1
        )
        for s in swaps
    ]
    for capital in ("better", "worse"):
        every = np.array([getattr(result, capital) for result in results])
        assert every[:, 1].std() > 0.1
        np.testing.assert_allclose(every.mean(axis=0), [1.0, 1.0], rtol=1e-12)


@pytest.mark.long
def test_the_mean_capital_over_all_exchanges_of_groups_is_one():
    truth, sides = scene(6, 1)
    group = ["u", "v", "u", "w", "v", "w"]
    capital = []
    for three in itertools.product((False, True), repeat=3):
        swap = [three["uvw".index(name)] for name in group]
        result = compare_sequentially(pair(truth, exchanged(sides, swap)), batch=3, group=group, confidence=1)
        capital.append([result.better[-1], result.worse[-1]])
    assert np.std(capital) > 0.1
    np.testing.assert_allclose(np.mean(capital, axis=0), [1.0, 1.0], rtol=1e-12)


@pytest.mark.long
def test_capital_by_an_evaluation_of_each_exchange():
    truth, sides = scene(8, 2)
    result = compare_sequentially(pair(truth, sides), batch=4, confidence=1)
    capital = np.ones((2, len(BETS)))
    for number, first in enumerate((0, 4)):
        part, own = truth[first : first + 4], [side[first : first + 4] for side in sides]
        differences = []
        for swap in itertools.product((False, True), repeat=4):
            a, b = (evaluated(part, side).metrics["AP"] for side in exchanged(own, swap))
            differences.append(b - a)
        z = np.array(differences) / np.sqrt(np.mean(np.square(differences)))
        for row, sign in enumerate((1, -1)):
            capital[row] *= [np.exp(sign * bet * z[0]) / np.mean(np.exp(bet * z)) for bet in BETS]
        assert result.value_other[number] - result.value_first[number] == pytest.approx(
            differences[0], abs=1e-12
        )
        assert result.better[number] == pytest.approx(capital[0].mean(), rel=1e-9)
        assert result.worse[number] == pytest.approx(capital[1].mean(), rel=1e-9)
    largest = max(1.0, *(result.better + result.worse) / 2)
    assert result.p_value[-1] == pytest.approx(1 / largest, rel=1e-12)
    assert [result.score_first, result.score_other] == pytest.approx(
        [evaluated(truth, side).metrics["AP"] for side in sides], abs=1e-12
    )


def test_some_exchanges_at_random_are_as_fair():
    """Whichever of them, or of their opposites, is the observed one: the mean payment is 1."""
    values = np.random.default_rng(0).normal(size=30)
    values[3] = np.nan  # undefined after that exchange
    paid = []
    for number, sign in itertools.product(range(30), (1, -1)):
        order = [number, *(other for other in range(30) if other != number)]
        paid.append(np.exp(payments(sign * values[order])))
    np.testing.assert_allclose(np.mean(paid, axis=0), 1.0, rtol=1e-12)


def test_batches_of_one_image_are_bets_on_a_coin():
    truth, sides = scene(12, 3)
    result = compare_sequentially(pair(truth, sides), batch=1, confidence=1)
    sign = np.sign(np.round(result.value_other - result.value_first, 12))
    factors = np.exp(BETS * sign[:, None]) / np.where(sign[:, None] == 0, 1, np.cosh(BETS))
    np.testing.assert_allclose(result.better, np.cumprod(factors, axis=0).mean(axis=1), rtol=1e-9)


def test_more_images_leave_earlier_batches_as_they_are():
    truth, sides = scene(45, 4)
    every = compare_sequentially(pair(truth, sides), batch=10, resamples=20, confidence=1)
    assert (every.images_read, every.given) == (40, 45)
    assert "read 40 images; the last 5 do not fill a batch" in every.verdict_text()
    fewer = compare_sequentially(
        pair(truth[:29], [side[:29] for side in sides]), batch=10, resamples=20, confidence=1
    )
    named = compare_sequentially(pair(truth, sides), batch=10, resamples=20, confidence=1, order=range(29))
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(fewer, column), getattr(every, column)[:2])
        np.testing.assert_array_equal(getattr(named, column), getattr(every, column)[:2])


@pytest.mark.long
def test_it_stops_at_the_first_batch_that_is_enough():
    truth, sides = scene(60, 5)
    worse = [([], [], []) if number % 2 else one for number, one in enumerate(sides[1])]
    named = pair(truth, (sides[0], worse))
    whole = compare_sequentially(named, batch=5, resamples=100, confidence=1)
    result = compare_sequentially(named, batch=5, resamples=100)
    capital = (whole.better + whole.worse) / 2
    batches = int(np.flatnonzero(capital >= 20)[0]) + 1
    assert 1 < batches < 12
    assert len(result.images) == batches
    assert result.verdict == "worse"
    assert set(result.verdicts[:-1]) == {"cannot tell"}
    assert result.p_value[-1] <= 0.05 < result.p_value[-2]
    assert f"worse: stopped after {5 * batches} of 60 images" in result.verdict_text()
    np.testing.assert_array_equal(result.worse, whole.worse[:batches])
    turned = compare_sequentially({"b": named["b"], "a": named["a"]}, batch=5, resamples=100)
    assert turned.verdict == "better"
    np.testing.assert_allclose(turned.better, result.worse, rtol=1e-9)


def test_a_detector_and_itself():
    evaluation = boxscore.evaluate(GT, DT)
    result = compare_sequentially({"a": evaluation, "b": evaluation}, batch=6)
    for column in (result.better, result.worse, result.p_value):
        np.testing.assert_array_equal(column, np.ones(4))


@pytest.mark.long
def test_a_metric_that_falls_when_a_detector_gets_better():
    truth, sides = scene(40, 6, classes=1)
    protocol = {
        "extends": "coco",
        "name": "miss rate",
        "summary": [{"key": "MR", "metric": "MR", "iou": 0.5}],
    }
    worse = [([], [], []) if number % 2 else one for number, one in enumerate(sides[1])]
    first, other = (evaluated(truth, side, protocol=protocol) for side in (sides[0], worse))
    assert first.protocol.rows[0].key in first.protocol.lower_is_better
    result = compare_sequentially({"a": first, "b": other}, batch=8, resamples=50)
    assert result.score_other > result.score_first
    assert result.verdict == "worse"


def test_batches_without_a_value_pay_nothing():
    truth, sides = scene(12, 7)
    truth[4:8] = [([], [])] * 4
    empty = [[([], [], []) if 4 <= number < 8 else one for number, one in enumerate(side)] for side in sides]
    result = compare_sequentially(pair(truth, empty), batch=4, confidence=1)
    assert np.isnan(result.value_first[1])
    assert result.better[1] == result.better[0]
    assert result.better[2] != result.better[1]


@pytest.mark.long
def test_a_random_order_is_that_of_the_seed():
    truth, sides = scene(30, 8)
    named = pair(truth, sides)
    first, again, other = (
        compare_sequentially(named, batch=6, order="random", seed=seed, confidence=1) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.value_first, again.value_first)
    assert (first.value_first != other.value_first).any()
    by_ids = compare_sequentially(named, batch=30, order=range(29, -1, -1), confidence=1)
    assert by_ids.value_first[0] == pytest.approx(named["a"].metrics["AP"], abs=1e-12)


@pytest.mark.long
def test_equal_detectors_and_any_stop():
    """150 sequences of 30 batches of 6 images whose differences are as often here as there."""
    random = np.random.default_rng(9)
    signs = np.array(list(itertools.product((1, -1), repeat=6)))
    ever = []
    for _ in range(150):
        log = np.zeros((2, len(BETS)))
        largest = 0.0
        for _ in range(30):
            weights = random.exponential(size=6)
            at = random.integers(64)
            log += payments(np.roll(signs * weights, -at, axis=0).sum(axis=1))
            largest = max(largest, np.exp(log).mean())
        ever.append(largest >= 20)
    assert np.mean(ever) <= 0.05


@pytest.mark.long
def test_a_gate_reads_every_batch():
    truth, sides = scene(40, 10)
    named = pair(truth, sides)
    options = {"batch": 8, "resamples": 50, "confidence": 0.95, "seed": 3, "group": None}
    drop = drop_in_batches(*named.values(), metric="AP50", **options)
    whole = compare_sequentially(named, metric="AP50", **{**options, "confidence": 1})
    assert drop.p_value == pytest.approx(min(1.0, 1 / whole.worse.max()), rel=1e-12)
    assert (drop.first, drop.other) == tuple(one.metrics["AP50"] for one in named.values())
    assert sum(share_of_look(look) for look in range(1, 100_000)) == pytest.approx(1, abs=2e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "in batches of 50 images must have at least 50 images. Got 24; use smaller batches: --batch N"),
        ({"group": [1] * 24}, "in batches of 5 groups must have at least 5 groups. Got 1"),
        ({"batch": 0}, "batch must be a whole number >= 1. Got 0"),
        ({"batch": 5, "order": "ids"}, "order must be one of 'listed', 'random'. Got 'ids'"),
        ({"batch": 1, "order": [101, 7]}, "order must name images. Got 7"),
        ({"batch": 1, "order": [101, 109, 101]}, "order must name each image once. Got 101 twice"),
        ({"batch": 1, "order": []}, "must have at least 1 image. Got 0"),
        ({"batch": 5, "confidence": 0}, "confidence must be a number in (0, 1]. Got 0"),
        ({"batch": 5, "seed": -1}, "seed must be a whole number >= 0. Got -1"),
        ({"batch": 5, "metric": "AQ"}, "metrics must be"),
    ],
)
def test_what_is_refused(options, message):
    evaluation = boxscore.evaluate(GT, DT)
    with pytest.raises(InputError) as error:
        compare_sequentially({"a": evaluation, "b": evaluation}, **options)
    assert message in str(error.value)


def test_other_results_are_refused():
    one = boxscore.evaluate(GT, DT)
    with pytest.raises(InputError, match=r"must have two results. Got 1\."):
        compare_sequentially({"a": one})
    pooled = boxscore.evaluate(GT, DT, protocol="lvis-pooled")
    with pytest.raises(InputError, match="matches each image separately"):
        compare_sequentially({"a": pooled, "b": pooled}, batch=5)
