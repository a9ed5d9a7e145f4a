"""Numbers that stand in several places have the ranks and quantiles of one sorted array, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.extensions.large.ranks import Lower, lower_in, quantiles, sorted_keys, values_of_ranks
from support.each import each


def lower_in_places(places: list[NDArray[Any]]) -> Lower:
    keys = [sorted_keys(numbers) for numbers in places]
    return lambda tried: sum(lower_in(some, tried) for some in keys)


def test_values_of_ranks() -> None:
    rng = np.random.default_rng(0)
    places = [rng.normal(0, 10.0 ** rng.integers(-300, 300, 40), 40) for _ in range(5)]
    places += [np.array([np.inf, 5e-324, 0.0, -0.0, -5e-324, -np.inf]), np.array([])]
    expected = np.sort(np.concatenate(places) + 0.0)
    found = values_of_ranks(np.arange(len(expected)), lower_in_places(places))
    assert found.tobytes() == expected.tobytes()


@each([(count, shares) for count in (1, 2, 3, 10, 1000) for shares in (2, 3, 8, 101)])
def test_quantiles_are_those_of_numpy(count: int, shares: int) -> None:
    rng = np.random.default_rng(count + shares)
    numbers = rng.normal(0, 1, count).round(3 if shares == 8 else 17)
    places = np.split(numbers, np.sort(rng.integers(0, count + 1, 3)))
    at = np.linspace(0, 1, shares)
    assert quantiles(count, at, lower_in_places(places)).tolist() == np.quantile(numbers, at).tolist()


def test_whole_numbers() -> None:
    assert quantiles(3, np.array([0.5]), lower_in_places([np.array([4, 1]), np.array([2])])).tolist() == [2.0]
