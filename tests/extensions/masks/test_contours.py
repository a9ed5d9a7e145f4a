"""Outlines of masks: the exact ones hold exactly the pixels, the short ones stay near them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn

from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.contours import MOST_CORNERS, MOST_RINGS, Rings, outlines, rings_of, simplified
from support.real_data import real

Mask = np.ndarray


def filled(rings: list[np.ndarray], height: int, width: int) -> Mask:
    """Pixels whose middle lies inside: an odd number of sides are left of it."""
    inside = np.zeros((height, width), dtype=bool)
    for ring in rings:
        for (x1, y1), (x2, y2) in zip(ring.tolist(), np.roll(ring, -1, axis=0).tolist(), strict=True):
            for y in range(height):
                if (y1 <= y + 0.5) != (y2 <= y + 0.5):
                    x = x1 + (y + 0.5 - y1) * (x2 - x1) / (y2 - y1)
                    inside[y] ^= np.arange(width) + 0.5 > x
    return inside


def distances(points: np.ndarray, ring: np.ndarray) -> np.ndarray:
    """Distance of points to the nearest side of a ring, side by side."""
    best = np.full(len(points), np.inf)
    for a, b in zip(ring.astype(float), np.roll(ring, -1, axis=0).astype(float), strict=True):
        along = b - a
        part = np.clip((points - a) @ along / max(along @ along, 1e-12), 0, 1)
        best = np.minimum(best, np.hypot(*(points - a - part[:, None] * along).T))
    return best


masks = drawn.arrays(bool, st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 12)))


@given(masks)
def test_exact_outlines_hold_exactly_the_pixels(arrays: Mask) -> None:
    made = outlines(Masks(list(arrays)))
    for mask, rings in zip(arrays, made, strict=True):
        assert (filled(rings, *mask.shape) == mask).all()
        assert all(np.abs(np.diff([*ring, ring[0]], axis=0)).min(axis=1).max() == 0 for ring in rings)


@given(masks)
def test_the_areas_of_rings_add_up_to_the_pixels(arrays: Mask) -> None:
    spans, position = Masks(list(arrays)).spans()
    rings = rings_of(spans)
    areas = np.bincount(rings.mask, weights=rings.area, minlength=len(arrays))
    assert areas[position].tolist() == arrays.sum(axis=(1, 2)).tolist()
    for mask, own in enumerate(position.tolist()):
        # Pixels that touch at a corner are together: as many outer rings as parts of 8 neighbors.
        assert ((rings.mask == own) & (rings.area > 0)).sum() == parts(arrays[mask])


def parts(mask: Mask) -> int:
    left = {(y, x) for y, x in zip(*np.nonzero(mask), strict=True)}
    count = 0
    while left:
        count, heap = count + 1, [left.pop()]
        while heap:
            y, x = heap.pop()
            near = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left
            left -= near
            heap += near
    return count


@given(masks, st.sampled_from([0.0, 0.8, 1.5, 3.0]))
def test_short_outlines_stay_near_the_exact_ones(arrays: Mask, tolerance: float) -> None:
    spans, _ = Masks(list(arrays)).spans()
    exact = rings_of(spans)
    short = simplified(exact, tolerance=tolerance)
    ends, stops = np.cumsum(exact.counts), np.cumsum(short.counts)
    full = np.bincount(short.mask, weights=short.counts, minlength=len(arrays)) == MOST_CORNERS
    for ring in range(len(exact.counts)):
        before = exact.corners[ends[ring] - exact.counts[ring] : ends[ring]]
        after = short.corners[stops[ring] - short.counts[ring] : stops[ring]]
        assert {*map(tuple, after.tolist())} <= {*map(tuple, before.tolist())}
        if not full[exact.mask[ring]]:
            assert distances(before.astype(float), after).max() <= tolerance + 1e-9


def test_a_disc_and_a_ring() -> None:
    y, x = np.mgrid[:200, :300] + 0.5
    away = np.hypot(x - 150, y - 100)
    arrays = np.stack([away < 80, (away < 80) & (away > 40)])
    disc, ring = outlines(Masks(list(arrays)), tolerance=1)
    assert len(disc) == 1
    assert len(ring) == 2
    for rings, mask in ((disc, arrays[0]), (ring, arrays[1])):
        assert sum(map(len, rings)) <= MOST_CORNERS
        wrong = (filled(rings, 200, 300) != mask).sum()
        assert wrong / mask.sum() < 0.04


def test_what_has_very_many_parts_shows_its_largest() -> None:
    mask = np.zeros((100, 100), dtype=bool)
    mask[::2, ::2] = True  # 2,500 pixels apart from each other
    mask[30:60, 10:40] = True
    (rings,) = outlines(Masks([mask]), tolerance=1)
    assert 1 <= len(rings) <= MOST_RINGS
    assert sum(map(len, rings)) <= MOST_CORNERS
    middle = np.concatenate(rings).mean(axis=0)
    assert 5 < middle[0] < 45
    assert 25 < middle[1] < 65


def test_nothing_at_all() -> None:
    assert outlines(Masks([])) == []
    assert outlines(Masks([np.zeros((4, 5), dtype=bool)]), tolerance=1) == [[]]
    empty = Rings(np.empty((0, 2), int), *(np.empty(0, int) for _ in range(3)))
    assert len(simplified(empty, tolerance=1).corners) == 0


@pytest.mark.real
def test_outlines_of_coco() -> None:
    import boxscore

    path = real("coco_val2017_masks206", "instances.json")
    truth = boxscore.load_ground_truth(path)
    column = truth.masks
    assert column is not None
    total = 0
    for low in range(0, len(truth), 100):
        spans, position = column[np.arange(low, min(low + 100, len(truth)))].spans()
        rings = rings_of(spans)
        areas = np.bincount(rings.mask, weights=rings.area, minlength=len(position))
        assert areas[position].tolist() == spans.area[position].tolist()
        total += len(position)
    assert total == len(truth)
    few = np.arange(0, len(truth), 40)
    short = outlines(column[few], tolerance=1)
    for mask, rings in zip(column[few].arrays(), short, strict=True):
        shown = filled(rings, *mask.shape)
        if mask.sum() > 2000:
            assert (shown & mask).sum() / (shown | mask).sum() > 0.9
