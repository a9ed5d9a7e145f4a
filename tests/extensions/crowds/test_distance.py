"""AP by distance: nuScenes' loop in plain Python, exact bounds, points and centers, and what is refused."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError
from boxscore.distributed import Part, merge
from support.each import each
from support.parted import bits, parts_of, whole

Place = tuple[int, float, float]
DISTANCES = {"mAP4": 40, "mAP2": 20, "mAP1": 10, "mAP0.5": 5}
RULES: dict[str, Any] = {"extends": "nuscenes-distance", "distance": {"largest": 80, "anchor": "point"}}


def interpolated(x: float, xs: list[float], ys: list[float]) -> float:
    """numpy.interp with 0 beyond the last, of points that may stand above one another."""
    if x > xs[-1]:
        return 0.0
    if x < xs[0]:
        return ys[0]
    at = bisect.bisect_right(xs, x) - 1
    if at == len(xs) - 1 or xs[at] == x:
        return ys[at]
    return ys[at] + (ys[at + 1] - ys[at]) / (xs[at + 1] - xs[at]) * (x - xs[at])


def nuscenes(truths: list[Place], found: list[Place], scores: list[float], within: float) -> float:
    """``accumulate`` and ``calc_ap`` of the devkit, of one class."""
    order = sorted(range(len(found)), key=lambda n: (scores[n], n), reverse=True)
    taken: set[int] = set()
    recall, precision, true = [], [], 0
    for rank, n in enumerate(order, start=1):
        best, least = None, np.inf
        for g, truth in enumerate(truths):
            if truth[0] != found[n][0] or g in taken:
                continue
            apart = float(np.sqrt((truth[1] - found[n][1]) ** 2 + (truth[2] - found[n][2]) ** 2))
            if apart < least:
                best, least = g, apart
        if best is not None and least < within:
            taken.add(best)
            true += 1
        recall.append(true / len(truths) if truths else 0.0)
        precision.append(true / rank)
    if not true:
        return 0.0
    read = [interpolated(x, recall, precision) for x in np.linspace(0, 1, 101).tolist()]
    return float(np.mean([max(p - 0.1, 0.0) for p in read[11:]])) / 0.9


def drawn(seed: int) -> tuple[list[Place], list[Place], list[float]]:
    rng = np.random.default_rng(seed)
    images = int(rng.integers(1, 5))
    grid = rng.integers(0, 20, (int(rng.integers(1, 15)), 2)) * 5.0
    truths = [(int(rng.integers(images)), *place) for place in grid.tolist()]
    found: list[Place] = []
    for _ in range(int(rng.integers(1, 25))):
        image, x, y = truths[int(rng.integers(len(truths)))]
        step = rng.choice([0, 3, 4, 5, 10, 11], 2) * rng.choice([-1, 1], 2)
        found.append((image, x + float(step[0]), y + float(step[1])))
    return truths, found, (rng.integers(1, 6, len(found)) / 10).tolist()


def tables(truths: list[Place], found: list[Place], scores: list[float]) -> tuple[GroundTruth, Detections]:
    def boxes(places: list[Place]) -> Any:
        return np.array([[x, y, x, y] for _, x, y in places]).reshape(-1, 4)

    def points(places: list[Place]) -> Any:
        return {"point": np.array([place[1:] for place in places]).reshape(-1, 2)}

    truth = GroundTruth.from_arrays(
        [place[0] for place in truths],
        ["tree"] * len(truths),
        boxes(truths),
        images=range(5),
        columns=points(truths),
    )
    detections = Detections.from_arrays(
        [place[0] for place in found], ["tree"] * len(found), boxes(found), scores, columns=points(found)
    )
    return truth, detections


@each([(seed, anchor) for anchor in ["point", "center"] for seed in range(40)])
def test_it_is_the_loop_of_the_devkit(seed: int, anchor: str) -> None:
    given = drawn(seed)
    rules = {**RULES, "distance": {"largest": 80, "anchor": anchor}}
    result = boxscore.evaluate(*tables(*given), protocol=rules)
    for key, within in DISTANCES.items():
        assert result[key] == pytest.approx(nuscenes(*given, within), abs=1e-14), key


@pytest.mark.parametrize("seed", range(5))
def test_images_apart_or_at_once(seed: int) -> None:
    sides = tables(*drawn(seed + 100))
    parts = parts_of(sides, RULES, np.arange(5) % 2)
    assert bits(merge([Part.from_bytes(part.to_bytes()) for part in parts])) == bits(whole(sides, RULES))


@pytest.mark.parametrize(("closed", "value"), [(False, 0.0), (True, 1.0)])
@pytest.mark.parametrize("largest", [7, 33, 80, 101.7])
def test_the_distance_itself_decides_at_a_threshold(closed: bool, value: float, largest: float) -> None:
    """A distance of exactly a threshold's, whatever 1 - d / largest is rounded to."""
    for t in (0.1, 0.3, 0.7):
        sides = tables([(0, 0.0, 0.0)], [(0, (1 - t) * largest, 0.0)], [0.5])
        rules = {
            "extends": "coco",
            "similarity": "distance",
            "distance": {"largest": largest},
            "ignore": {"crowd": "count"},
            "matching": {"iou_thresholds": [t], "threshold_closed": closed},
            "summary": [{"key": "AR", "metric": "AR"}],
        }
        assert boxscore.evaluate(*sides, protocol=rules)["AR"] == value


def test_points_that_are_missing_are_refused() -> None:
    truth = GroundTruth.from_arrays([1], ["a"], [[0, 0, 9, 9]])
    found = Detections.from_arrays([1], ["a"], [[0, 0, 9, 9]], [0.5])
    with pytest.raises(InputError) as error:
        boxscore.evaluate(truth, found, protocol=RULES)
    assert str(error.value) == (
        "ground truth must have point, two numbers, in every row, which the protocol compares. Got none in "
        'arrays; distance.anchor = "center" uses box centers.'
    )
