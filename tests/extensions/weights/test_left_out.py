"""Metrics without groups of images, and intervals from them, against formulas that are written out."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore.extensions.diagnostics.bootstrap import chosen_rows
from boxscore.extensions.weights.held_out import HeldOutPrecision
from boxscore.extensions.weights.left_out import (
    MOST_GROUPS,
    Spread,
    ends_with_half_a_unit,
    groups_of,
    jackknife_intervals,
    left_out_metrics,
    spread_of,
    upper_end,
)
from boxscore.extensions.weights.resampling import student_quantile
from support.weights import evaluated_anew


def test_groups_are_of_equal_size_and_keep_units_whole():
    number, count = groups_of(120, None, 3)
    assert count == MOST_GROUPS
    assert sorted(np.bincount(number).tolist()) == [2] * 30 + [3] * 20
    assert not np.array_equal(number, groups_of(120, None, 4)[0])
    units = np.repeat(np.arange(7, dtype=np.int32), 5)
    number, count = groups_of(35, units, 0)
    assert count == 7
    assert {tuple(number[units == unit]) for unit in range(7)} == {(group,) * 5 for group in range(7)}


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
def test_each_row_is_an_evaluation_without_a_group(scene, protocol):
    truth, detections = scene(1, images=15)
    evaluation = boxscore.evaluate(truth, detections, protocol=protocol)
    rows = chosen_rows(evaluation, None)
    made = left_out_metrics(evaluation, rows, seed=0, units=None)
    number, count = groups_of(15, None, 0)
    assert made.value.shape == (1 + count, len(rows), len(evaluation.labels) + 1)
    assert made.value[0, :, -1].tolist() == pytest.approx(list(evaluation.metrics.values()), nan_ok=True)
    for group in (0, 7):
        weights = (number != group).astype(float)
        slow = evaluated_anew(truth, detections, weights, protocol)
        np.testing.assert_allclose(
            made.value[1 + group, :, -1], list(slow.metrics.values()), atol=1e-12, rtol=0
        )


def test_the_estimate_of_all_classes_is_the_mean_of_theirs(scene):
    evaluation = boxscore.evaluate(*scene(2, images=15))
    rows = chosen_rows(evaluation, ["AP", "AP50", "APs", "AR100"])
    made = left_out_metrics(evaluation, rows, seed=0, units=None)
    number, count = groups_of(15, None, 0)
    for r, (area, threshold) in enumerate([(0, slice(None)), (0, slice(1)), (1, slice(None))]):
        prepared = HeldOutPrecision(evaluation.matched, evaluation.protocol, area, -1)
        correction = prepared.corrections(number, count)[:, threshold].mean(axis=1)
        of_classes = made.value[:, r, :-1] + correction
        np.testing.assert_allclose(made.estimate[:, r, :-1], of_classes, atol=1e-12, rtol=0)
        np.testing.assert_allclose(
            made.estimate[:, r, -1], np.nanmean(of_classes, axis=1), atol=1e-12, rtol=0
        )
    # Recall has no such bias.
    np.testing.assert_array_equal(made.estimate[:, 3], made.value[:, 3])


def test_the_spread_of_a_mean_is_the_one_of_the_textbook():
    """The jackknife of a mean gives its usual standard error; no bias; almost all degrees of freedom."""
    random = np.random.default_rng(0)
    numbers = random.normal(0.5, 0.1, 50)
    left = np.array([np.delete(numbers, at).mean() for at in range(50)])
    spread = spread_of(np.append(numbers.mean(), left), np.array(50))
    assert spread.standard_error == pytest.approx(numbers.std(ddof=1) / math.sqrt(50), rel=1e-12)
    assert spread.without_bias == pytest.approx(numbers.mean(), rel=1e-12)
    # Moments of the sample itself: 2 m2^2 / (m4 - m2^2), times its size.
    moved = numbers - numbers.mean()
    kurtosis = (moved**4).mean() / (moved**2).mean() ** 2
    assert spread.freedom == pytest.approx(min(49, 2 * 50 / (kurtosis - 1)), rel=1e-9)


def test_one_outlier_leaves_two_degrees_of_freedom():
    numbers = np.zeros(50)
    numbers[0] = 1.0
    left = np.array([np.delete(numbers, at).mean() for at in range(50)])
    spread = spread_of(np.append(numbers.mean(), left), np.array(50))
    assert 2 < spread.freedom < 2.2


def test_the_mean_of_the_pseudo_values_removes_a_bias_that_falls_with_the_images():
    """A variance with divisor n is too low by 1 / n; the jackknife makes the divisor n - 1."""
    numbers = np.random.default_rng(1).normal(0, 1, 40)
    left = np.array([np.delete(numbers, at).var() for at in range(40)])
    spread = spread_of(np.append(numbers.var(), left), np.array(40))
    assert spread.without_bias == pytest.approx(numbers.var(ddof=1), rel=1e-10)


def test_too_few_units_have_no_spread():
    values = np.full((6, 3), 0.5)
    values[1:, 2] = np.nan
    spread = spread_of(values, np.array([1, 5, 5]))
    assert np.isnan(spread.standard_error).tolist() == [True, False, True]


@given(st.floats(0.001, 0.999), st.floats(0, 0.3), st.floats(1, 49), st.floats(0.5, 0.99))
def test_ends_are_those_of_six_intervals(center, error, freedom, confidence):
    other, value = min(center + 0.05, 0.9995), center * 0.7 + 0.3
    spread = Spread(*(np.array([one]) for one in (center, other, error, freedom, value)))
    low, high = jackknife_intervals(spread, confidence)
    reach = student_quantile((1 + confidence) / 2, int(freedom)) * error
    ends = []
    for middle in (center, other, center + (value - center) / 3):
        step = reach / (middle * (1 - middle))
        odds = math.log(middle / (1 - middle))
        ends += [middle - reach, middle + reach]
        ends += [1 / (1 + math.exp(-min(max(odds + sign * step, -700), 700))) for sign in (-1, 1)]
    assert low[0] == pytest.approx(max(min(ends), 0), abs=1e-12)
    assert high[0] == pytest.approx(min(max(ends), 1), abs=1e-12)


@pytest.mark.parametrize(
    ("successes", "trials", "confidence"),
    [(0, 1, 0.95), (0, 12, 0.95), (1, 12, 0.95), (2, 40, 0.9), (5, 9, 0.99)],
)
def test_the_end_of_a_proportion_leaves_the_tail(successes, trials, confidence):
    end = upper_end(successes, trials, confidence)
    chance = sum(math.comb(trials, x) * end**x * (1 - end) ** (trials - x) for x in range(successes + 1))
    assert chance == pytest.approx((1 - confidence) / 2, rel=1e-9)
    if not successes:
        assert end == pytest.approx(1 - ((1 - confidence) / 2) ** (1 / trials), rel=1e-12)
    assert upper_end(trials, trials, confidence) == 1.0


def test_many_images_give_the_normal_interval():
    spread = Spread(*(np.array(one) for one in (0.5, 0.5, 0.001, 1e6)))
    low, high = jackknife_intervals(spread, 0.95)
    reach = NormalDist().inv_cdf(0.975) * 0.001
    assert (float(low), float(high)) == pytest.approx((0.5 - reach, 0.5 + reach), abs=2e-8)


def test_half_a_unit_is_added_at_either_end():
    """The interval of numbers of which the last counts half, and is 0 or 1."""
    random = np.random.default_rng(2)
    numbers = random.uniform(0.2, 0.9, 9)
    error = numbers.std(ddof=1) / math.sqrt(9)
    spread = Spread(*(np.array([one]) for one in (numbers.mean(), numbers.mean(), error, 8.0)))
    low, high = ends_with_half_a_unit(spread, np.array([9]), 0.9)
    for end, extreme, sign in ((low[0], 0.0, -1), (high[0], 1.0, 1)):
        weights, values = np.append(np.ones(9), 0.5), np.append(numbers, extreme)
        mean = np.average(values, weights=weights)
        variance = (weights * (values - mean) ** 2).sum() / 9
        reach = student_quantile(0.95, 9) * math.sqrt(variance / 9.5)
        assert end == pytest.approx(min(max(mean + sign * reach, 0), 1), abs=1e-12)
