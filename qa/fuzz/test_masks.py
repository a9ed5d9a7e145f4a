"""Masks in NumPy are pycocotools', in every form: a short run of ``qa/fuzz/masks.py``."""

from __future__ import annotations

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from boxscore.extensions.masks.column import Masks
from fuzz import masks as generated


@pytest.mark.parametrize("seed", range(3))
def test_damaged_codes_get_the_verdict_of_the_slow_reading(seed: int) -> None:
    generated.check_codes(np.random.default_rng(seed), 150)


@pytest.mark.parametrize("seed", range(3))
def test_areas_boxes_codes_and_overlaps(seed: int) -> None:
    generated.check_pairs(np.random.default_rng(seed), 400)


def test_hostile_codes_are_read_or_refused() -> None:
    refused = generated.use_codes(np.random.default_rng(0), 2_000)
    assert 200 < refused < 2_000


@pytest.mark.parametrize("shape", [(48, 64), (7, 5), (1, 1), (300, 200)])
def test_polygons(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(sum(shape))
    polygons = [[generated.nasty_polygon(random, *shape)] for _ in range(200)]
    decoded = coco_mask.decode(coco_mask.frPyObjects([parts[0] for parts in polygons], *shape)).astype(bool)
    ours = Masks(polygons, image_sizes=[shape[::-1]] * len(polygons)).arrays()
    assert np.array_equal(np.stack(ours, axis=2), decoded)
    assert 0.02 < decoded.mean() < 0.9


def test_several_parts_are_their_union() -> None:
    random = np.random.default_rng(0)
    parts = [generated.nasty_polygon(random, 30, 40) for _ in range(60)]
    single = Masks([[part] for part in parts], image_sizes=[[40, 30]] * 60).arrays()
    rows = [random.integers(0, 60, random.integers(2, 5)).tolist() for _ in range(40)]
    unions = Masks([[parts[row] for row in some] for some in rows], image_sizes=[[40, 30]] * 40)
    for union, some in zip(unions.arrays(), rows, strict=True):
        assert np.array_equal(union, np.logical_or.reduce([single[row] for row in some]))
