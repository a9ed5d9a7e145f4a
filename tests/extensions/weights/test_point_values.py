"""Sums with the bits of NumPy, and counts of recall points, against NumPy itself."""

from __future__ import annotations

import numpy as np
import pytest

from support.insides import RunValues, column_sums, points_up_to


@pytest.mark.parametrize(
    "count", [*range(18), 63, 64, 65, 127, 128, 129, 130, 255, 256, 257, 1009, 1010, 1016, 2021, 6464]
)
def test_columns_are_summed_like_arrays_of_their_own(count: int) -> None:
    values = np.random.default_rng(count).random((count, 7)) ** 9
    wanted = [np.ascontiguousarray(column).sum() for column in values.T]
    assert column_sums(values).tobytes() == np.array(wanted).tobytes()


@pytest.mark.parametrize(("T", "R", "K"), [(10, 101, 44), (1, 11, 3), (2, 5, 1), (3, 1, 7), (5, 101, 13)])
def test_repeated_values_have_the_means_of_an_array_of_them(T: int, R: int, K: int) -> None:
    """Of all thresholds and of one, with classes that have no curve, and a set without any."""
    random = np.random.default_rng(T * R + K)
    W, entries = 4, 6
    defined = random.random((W, K)) < 0.7
    defined[0], defined[1] = True, False
    # The last entry of each threshold and class has the points that are left, none without a curve.
    ends = np.sort(random.integers(0, R + 1, (W, K, T, entries)), axis=-1)
    ends[..., -1] = R
    repeats = np.diff(ends, axis=-1, prepend=0) * defined[:, :, None, None]
    values = random.random(repeats.shape) ** 9
    every = np.full((W, T, R, K), np.nan)
    for w, k in np.argwhere(defined):
        every[w, :, :, k] = [np.repeat(*pair) for pair in zip(values[w, k], repeats[w, k], strict=True)]
    ours = RunValues(values.reshape(W, -1), repeats.reshape(W, -1), (T, R), defined, [T - 1])
    flags, times = np.arange(W * K) % 3 > 0, np.arange(W * K) % 3
    for one, whole in ((ours, every), (ours[[T - 1]], every[:, [T - 1]]), (ours[[0]], every[:, [0]])):
        of_sets = [whole[w][..., defined[w]].ravel() for w in range(W)]
        of_classes = np.ascontiguousarray(whole.transpose(0, 3, 1, 2)).reshape(W * K, -1)
        beside = whole.transpose(1, 2, 0, 3).reshape(-1, W * K)
        wanted = [values.mean() if values.size else np.nan for values in of_sets]
        assert one.means_of_copies(W).tobytes() == np.array(wanted).tobytes()
        np.testing.assert_array_equal(one.mean_per_class(), of_classes.mean(axis=1))
        assert [copy.mean_of_defined() for copy in one.of_copies(W)] == pytest.approx(wanted, nan_ok=True)
        assert one.mean_of_defined() == beside[~np.isnan(beside)].mean()
        assert one.mean_of_slots() == pytest.approx(np.nanmean(beside))
        assert one.of_classes(flags).mean_of_defined() == pytest.approx(np.nanmean(beside[:, flags]))
        assert one.repeated(times).mean_of_defined() == pytest.approx(
            np.nanmean(np.repeat(beside, times, axis=1))
        )
    in_turn = ours.means_in_turn().mean_per_class()
    np.testing.assert_allclose(in_turn, ours.mean_per_class())


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
