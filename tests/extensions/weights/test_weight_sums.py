"""Running sums of image weights, against a loop over the list."""

from __future__ import annotations

import numpy as np
import pytest

from boxscore._utils.array_types import FloatArray
from support.insides import WeightSums, weight_table
from support.limits import few_pieces_together

IMAGES = 6


def added_up(rows: list[int], end: int, weights: FloatArray) -> int:
    """Add up what stands before the end; a row behind the images takes one away."""
    signed = [*weights.astype(int).tolist(), *(-weights.astype(int)).tolist()]
    return sum(signed[row] for row in rows[:end])


def check_rises(rows: list[int], ends: list[int], since: int, sets: list[FloatArray]) -> None:
    """Check the sums from a position on, which must not be negative."""
    sums = WeightSums(np.array(rows, dtype=np.int64), np.array([since, *ends], dtype=np.intp), IMAGES)
    running = sums.running(weight_table(sets))
    rises = running[:, sums.at(np.array(ends))] - running[:, sums.at(np.array([since]))]
    both = np.ascontiguousarray(rises).view(np.int32).reshape(len(running), len(ends), 2)
    for number, weights in enumerate(sets):
        wanted = [added_up(rows, end, weights) - added_up(rows, since, weights) for end in ends]
        assert min(wanted) >= 0
        assert both[number // 2, :, number % 2].tolist() == wanted


@pytest.mark.parametrize("together", [1, 2, 3, 1000])
@pytest.mark.parametrize("largest", [1, 15, 16, 4095, 100_000])
@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_sums_up_to_some_positions(
    monkeypatch: pytest.MonkeyPatch, together: int, largest: int, count: int
) -> None:
    few_pieces_together(monkeypatch, together)
    random = np.random.default_rng(count + largest)
    for length, asked in ((0, 1), (1, 2), (40, 3), (40, 40), (200, 5)):
        rows = random.integers(0, IMAGES, length).tolist()
        ends = random.integers(0, length + 1, asked).tolist()
        sets = [random.integers(0, largest + 1, IMAGES).astype(np.float64) for _ in range(count)]
        check_rises(rows, ends, 0, sets)


@pytest.mark.parametrize("together", [1, 3, 1000])
def test_images_that_are_taken_away(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    """Also where the running sums themselves are below 0, of both sets or of one."""
    few_pieces_together(monkeypatch, together)
    random = np.random.default_rng(together)
    sets = [random.integers(0, 9, IMAGES).astype(np.float64) for _ in range(3)]
    away, back = [*range(IMAGES, 2 * IMAGES)] * 3, [*range(IMAGES)] * 3
    turns = [row for image in range(IMAGES) for row in (image, image + IMAGES, image)]
    rows = [*away, *back, *turns]
    check_rises(rows, list(range(len(away), len(rows) + 1)), len(away), sets)
    check_rises([*back, *away], [len(back), 2 * len(back)], 0, sets)
