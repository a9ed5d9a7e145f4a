"""Weighted sums of residuals against Python integers, near the limits of float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxscore.extensions.diagnostics import _residuals
from boxscore.extensions.diagnostics._residuals import BothSums, UnitSums, _grouped, _weighed
from support.examples import examples

LARGEST = 2**31 - 1
"""The largest digit of a detection, which is odd: a lost bit shows."""


def weighed_by_a_loop(sums: UnitSums, weights: np.ndarray, first: int) -> dict[int, list[list[int]]]:
    """Sums of each cell: both digits and the detections, for each set of weights."""
    columns = [*sums.residual.tolist(), sums.detections.tolist()]
    total: dict[int, list[list[int]]] = {}
    for entry, (place, unit) in enumerate(zip(sums.place.tolist(), sums.unit.tolist(), strict=True)):
        one = total.setdefault(place, [[0] * len(weights) for _ in columns])
        for column, number in itertools.product(range(len(columns)), range(len(weights))):
            one[column][number] += columns[column][entry] * int(weights[number, unit - first])
    return total


def check_sums(place: list[int], unit: list[int], detections: list[int], weights: np.ndarray) -> None:
    """Every detection has the largest digit, or the smallest."""
    count = np.array(detections, dtype=np.int64)
    sums = UnitSums(
        np.array(place), np.array(unit, dtype=np.int64), np.array([LARGEST * count, -LARGEST * count]), count
    )
    cells, residual, summed = _weighed(BothSums(sums, sums), weights, 3)
    expected = weighed_by_a_loop(sums, weights, 3)
    assert cells.tolist() == list(expected)
    for at, columns in enumerate(expected.values()):
        assert [*residual[..., at].tolist(), summed[:, at].tolist()] == columns


@pytest.mark.parametrize(
    "detections",
    [
        [2**21, 2**21 - 1, 1],  # as many as fit one sum, and one more
        [2**22 - 1, 3, 2**22 - 1, 2**22 - 1],
        [2**22, 1, 5],  # more than that in one unit
        [2**23, 2**23 + 1],
    ],
)
@pytest.mark.parametrize("weight", [1, 3, 200])
def test_sums_near_the_limit(detections: list[int], weight: int) -> None:
    units = len(detections)
    weights = np.vstack([np.full(units, weight), np.arange(units), np.zeros(units, int)]).astype(np.uint8)
    check_sums([4] * units, list(range(3, 3 + units)), detections, weights)
    check_sums([0, 0, *[7] * (units - 2)][:units], list(range(3, 3 + units)), detections, weights)


@given(
    sizes=st.lists(st.integers(1, 5), max_size=6),
    sets=st.integers(1, 3),
    most=st.sampled_from([1, 3, 2**20, 2**23]),
    weighed=st.sampled_from([1, 4, 1 << 17]),
    seed=st.integers(0, 99),
)
@settings(max_examples=examples(100))
def test_sums_in_runs(sizes: list[int], sets: int, most: int, weighed: int, seed: int) -> None:
    """However few weights are multiplied at a time."""
    random = np.random.default_rng(seed)
    place = np.repeat(np.cumsum([*random.integers(1, 3, len(sizes))]), sizes).tolist()
    unit = [3 + row for size in sizes for row in range(size)]
    weights = random.integers(0, 5, (sets, 5)).astype(np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_residuals, "WEIGHED", weighed)
        check_sums(place, unit, random.integers(1, most + 1, len(unit)).tolist(), weights)


@given(pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3)), max_size=30), table=st.booleans())
@settings(max_examples=examples(100))
def test_pairs_are_numbered_in_order(pairs: list[tuple[int, int]], table: bool) -> None:
    """With a table of all possible pairs, and by sorting."""
    high, low = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    far = 1 if table else 1 << 40
    number, *distinct = _grouped(high * far, low)
    expected = sorted(set(pairs))
    assert list(zip((distinct[0] // far).tolist(), distinct[1].tolist(), strict=True)) == expected
    assert [expected[one] for one in number.tolist()] == pairs
