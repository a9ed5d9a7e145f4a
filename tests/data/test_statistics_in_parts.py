"""Statistics of parts of the images: to the bits those of the whole table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.data.alignment import of_images
from boxscore.extensions.large.statistics_in_parts import counted_part, statistics_of_parts


def table(
    rng: np.random.Generator, boxes: int, images: int, *, decimals: int, scored: bool
) -> boxscore.Detections:
    """Make detections of images of which some are empty; few decimals make equal values."""
    corner = rng.uniform(-50, 400, (boxes, 2)).round(decimals)
    sides = rng.uniform(0, 90, (boxes, 2)).round(decimals)
    sides[rng.random(boxes) < 0.1] = 0
    truth = boxscore.GroundTruth.from_arrays(
        [], [], np.empty((0, 4)), images=list(range(images)), categories={k: f"class {k}" for k in range(5)}
    )
    return boxscore.Detections.from_arrays(
        rng.integers(0, images, boxes),
        rng.choice([0, 0, 0, 1, 3], boxes),
        np.hstack([corner, corner + sides]),
        rng.normal(0, 1, boxes).round(decimals) if scored else None,
        images=truth.images,
        categories=truth.categories,
    )


@pytest.mark.parametrize("seed", range(12))
def test_parts_are_the_whole(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    boxes, images = int(rng.choice([0, 1, 2, 57, 800])), int(rng.integers(1, 40))
    found = table(rng, boxes, images, decimals=int(rng.choice([0, 2, 12])), scored=seed % 3 > 0)
    whole = boxscore.table_statistics(found)
    of_part = rng.integers(0, 4, images)
    parts = []
    for number in range(4):
        chosen = np.flatnonzero(of_part == number)
        rows = np.flatnonzero(of_part[found.image] == number)
        parts.append(counted_part(None, of_images(found, chosen, rows), folder=tmp_path))
    assert json.dumps(statistics_of_parts(parts, tmp_path).to_dict()) == json.dumps(whole.to_dict())
