"""Sums of digits against exact fractions, in any order and any parts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boxscore._utils.exact_sums import added, digits_of, rounded
from support.examples import examples

NUMBERS = st.one_of(
    st.floats(-1, 1), st.floats(-1e-9, 1e-9), st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 5e-324])
)


def exactly(values: list[float]) -> Fraction:
    """Add up whole multiples of 2**-93, each without what is left of its number."""
    return sum((Fraction(math.trunc(Fraction(one) * 2**93), 2**93) for one in values), Fraction(0))


@given(values=st.lists(NUMBERS, max_size=40), seed=st.integers(0, 99), cut=st.integers(0, 40))
@settings(max_examples=examples(200))
def test_any_order_and_any_parts(values: list[float], seed: int, cut: int) -> None:
    numbers = np.array(values, dtype=np.float64)
    nowhere = np.zeros(len(values), dtype=np.intp)
    sums = added(nowhere, numbers, 1)
    assert sum(Fraction(int(one), 2 ** (31 * at)) for at, one in enumerate(sums[:, 0], start=1)) == exactly(
        values
    )
    mixed = np.random.default_rng(seed).permutation(numbers)
    parts = [digits_of(mixed[:cut]).sum(axis=1), digits_of(mixed[cut:]).sum(axis=1)]
    assert rounded(parts[0] + parts[1]) == rounded(sums)[0]
    expected, spacing = exactly(values), Fraction(float(np.spacing(abs(float(exactly(values))))))
    assert abs(Fraction(float(rounded(sums)[0])) - expected) <= max(spacing, Fraction(1, 2**83))


def test_places_and_many_numbers(monkeypatch) -> None:
    """More than float64 adds up at a time, by their places."""
    monkeypatch.setattr("boxscore._utils.exact_sums.TOGETHER", 7)
    random = np.random.default_rng(0)
    values, place = random.random(1000) - 0.3, random.integers(0, 5, 1000)
    sums = rounded(added(place, values, 5))
    assert sums.tolist() == [float(exactly(values[place == one].tolist())) for one in range(5)]


def test_as_many_as_there_may_be() -> None:
    """2**32 ones less one: the largest digit is near the end of its type."""
    assert rounded(np.array([[(1 << 63) - (1 << 31)], [0], [0]])).tolist() == [2.0**32 - 1]
