"""Quantiles and intervals against tables and by hand."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxscore.extensions.weights.resampling import interval, quantiles_by_rank, student_quantile

T_TABLE = {  # two-sided 5%, to ten digits
    1: 12.7062047364,
    2: 4.30265272991,
    3: 3.18244630528,
    4: 2.77644510520,
    5: 2.57058183564,
    9: 2.26215716280,
    10: 2.22813885196,
    30: 2.04227245630,
    100: 1.98397151845,
    1000: 1.96233908083,
}


@pytest.mark.parametrize("freedom", T_TABLE)
def test_quantiles_of_students_t(freedom):
    assert student_quantile(0.975, freedom) == pytest.approx(T_TABLE[freedom], abs=5e-9)


@given(
    st.lists(st.floats(-1e9, 1e9) | st.integers(-2, 2).map(float), min_size=1, max_size=60),
    st.floats(0, 1) | st.sampled_from([0.0, 0.025, 0.25, 0.5, 0.975, 1.0]),
)
def test_quantiles_have_the_bits_of_numpy(values, probability):
    ordered, shares = np.sort(values), np.array([probability])
    (ours,) = quantiles_by_rank(len(ordered), shares, ordered.take)
    assert ours == np.quantile(ordered, probability)


def test_the_series_of_many_degrees_continues_the_sum_of_few():
    for probability in (0.75, 0.95, 0.975, 0.995, 0.9995):
        few, many = (student_quantile(probability, freedom) for freedom in (1000, 1001))
        normal = NormalDist().inv_cdf(probability)
        assert 0 < few - many < 2e-5
        assert few > normal
        assert (few - normal) * 1000 == pytest.approx((many - normal) * 1001, rel=1e-4)


def test_expanded_percentiles_by_hand():
    random = np.random.default_rng(0)
    draws = random.normal(size=(999, 2))
    units = np.array([5, 40])
    low, high = interval(draws, np.zeros(2), 0.95, "expanded_percentile", units)
    for i, count in enumerate(units.tolist()):
        reach = math.sqrt(count / (count - 1)) * student_quantile(0.975, count - 1)
        levels = [NormalDist().cdf(-reach), NormalDist().cdf(reach)]
        expected = np.quantile(draws[:, i], levels)
        assert (low[i], high[i]) == tuple(expected)
    plain = interval(draws, np.zeros(2), 0.95, "percentile", units)
    np.testing.assert_allclose(plain, np.quantile(draws, [0.025, 0.975], axis=0), atol=1e-15, rtol=1e-15)
    assert (low <= plain[0]).all()
    assert (high >= plain[1]).all()


def test_one_unit_has_no_interval():
    low, high = interval(np.zeros((10, 1)), np.zeros(1), 0.95, "expanded_percentile", 1)
    assert np.isnan([low[0], high[0]]).all()
