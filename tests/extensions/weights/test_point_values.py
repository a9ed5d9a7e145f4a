"""Sums with the bits of NumPy, and counts of recall points, against NumPy itself."""

from __future__ import annotations

import numpy as np
import pytest

from support.insides import column_sums, points_up_to


@pytest.mark.parametrize(
    "count", [*range(18), 63, 64, 65, 127, 128, 129, 130, 255, 256, 257, 1009, 1010, 1016, 2021, 6464]
)
def test_columns_are_summed_like_arrays_of_their_own(count: int) -> None:
    values = np.random.default_rng(count).random((count, 7)) ** 9
    wanted = [np.ascontiguousarray(column).sum() for column in values.T]
    assert column_sums(values).tobytes() == np.array(wanted).tobytes()


@pytest.mark.parametrize(
    "points",
    [
        np.linspace(0, 1, 101),
        np.linspace(0, 1, 11),
        np.array([0.5]),
        np.array([0.25, 0.5, 0.5, 0.50001, 0.50002, 1.0]),
        np.linspace(0, 1, 20_001),
    ],
)
def test_points_up_to_a_recall(points: np.ndarray) -> None:
    """Also where recall is a point to the last bit, next to one, or above 1."""
    positive = np.arange(1, 200)[:, None]
    quotients = (np.arange(300) / positive).ravel()
    near = [points, np.nextafter(points, 0), np.nextafter(points, 2)]
    recall = np.concatenate([quotients, *near])
    wanted = np.searchsorted(points, recall, side="right")
    assert (points_up_to(points, recall) == wanted).all()
