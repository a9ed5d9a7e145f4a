"""KITTI's 2D benchmark: its devkit in plain Python on made-up scenes, its quirks, and its C++ on real labels."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluation, GroundTruth
from boxscore.distributed import Part, merge
from boxscore.extensions.weights.resampling import Draws
from boxscore.protocols import load_protocol
from oracles import kitti
from oracles.crowds import Box
from oracles.kitti import Image, Label
from support.each import each
from support.parted import bits, parts_of, whole
from support.real_data import real

TYPES = ["Car", "Van", "Pedestrian", "Person_sitting", "Cyclist", "Truck", "DontCare"]
CLASSES = ("Car", "Pedestrian", "Cyclist")

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


def tables(images: Sequence[Image]) -> tuple[GroundTruth, Detections]:
    sides = [[(n, label) for n, image in enumerate(images) for label in image[side]] for side in (0, 1)]
    columns: list[dict[str, Any]] = [
        {
            name: [float(getattr(label, name)) for _, label in side]
            for name in ("alpha", "occluded", "truncated")
        }
        for side in sides
    ]
    boxes = [np.array([label.box for _, label in side], dtype=float).reshape(-1, 4) for side in sides]
    truth = GroundTruth.from_arrays(
        [n for n, _ in sides[0]],
        [label.name for _, label in sides[0]],
        boxes[0],
        ignore=[label.name == "DontCare" for _, label in sides[0]],
        images=range(len(images)),
        categories=TYPES,
        columns=columns[0],
    )
    found = Detections.from_arrays(
        [n for n, _ in sides[1]],
        [label.name for _, label in sides[1]],
        boxes[1],
        [label.score for _, label in sides[1]],
        columns={"alpha": columns[1]["alpha"]},
    )
    return truth, found


def moved(box: Box, rng: np.random.Generator) -> Box:
    x1, y1, x2, y2 = (np.array(box) + rng.integers(-3, 4, 4)).tolist()
    return (x1, y1, max(x2, x1 + 1), max(y2, y1 + 1))


def scene(seed: int) -> list[Image]:
    rng = np.random.default_rng(seed)
    levels = int(rng.choice([4, 30, 1000]))
    images: list[Image] = []
    for _ in range(int(rng.integers(1, 7))):
        truths: list[Label] = []
        for _ in range(int(rng.integers(0, 9))):
            x, y = rng.integers(0, 200, 2).tolist()
            size = (int(rng.integers(10, 70)), int(rng.choice([24, 25, 26, 39, 40, 41, 60])))
            box = (x, y, x + size[0], y + size[1])
            if truths and rng.random() < 0.5:
                box = moved(truths[-1].box, rng)
            name = str(rng.choice(TYPES[:2] if rng.random() < 0.5 else TYPES))
            truncated = float(rng.choice([0, 0, 0.15, 0.2, 0.4, 0.9]))
            truths.append(Label(name, truncated, int(rng.choice([0, 0, 1, 2, 3])), rng.uniform(-3, 3), box))
        found = []
        for _ in range(int(rng.integers(0, 14)) if truths else 1):
            near = truths[int(rng.integers(len(truths)))] if truths else Label("Car", 0, 0, 0, (1, 1, 9, 60))
            box = moved(near.box, rng)
            name = near.name if rng.random() < 0.6 else str(rng.choice(TYPES[:-1]))
            name = "Car" if name == "DontCare" else name
            score = float(rng.integers(levels)) / levels
            found.append(Label(name, -1, -1, near.alpha + rng.normal(), box, score))
        images.append((truths, found))
    return images


def same(result: Evaluation, images: list[Image]) -> None:
    for name in CLASSES:
        row = result.labels.index(name)
        for level in kitti.LEVELS:
            for key, value in kitti.evaluate(images, name, level).items():
                ours = float(result.class_values[f"{key}_{level}"][row])
                assert ours == pytest.approx(value, abs=1e-13, nan_ok=True), (name, level, key)


@each(range(40))
def test_it_is_the_devkit(seed: int) -> None:
    images = scene(seed)
    same(boxscore.evaluate(*tables(images), protocol="kitti"), images)


@pytest.mark.slow
def test_it_is_the_devkit_many_times() -> None:
    for seed in range(1000, 3000):
        images = scene(seed)
        same(boxscore.evaluate(*tables(images), protocol="kitti"), images)


@pytest.mark.parametrize("seed", range(3))
def test_images_apart_or_at_once(seed: int) -> None:
    sides = tables([image for some in (seed, seed + 50, seed + 99) for image in scene(some)])
    parts = parts_of(sides, "kitti", np.arange(len(sides[0].images)) % 3)
    merged = merge([Part.from_bytes(part.to_bytes()) for part in parts])
    assert bits(merged) == bits(whole(sides, "kitti"))


@pytest.mark.parametrize("seed", range(3))
def test_an_image_that_counts_twice_is_there_twice(seed: int) -> None:
    images = [*scene(seed + 200), *scene(seed + 300)]
    result = boxscore.evaluate(*tables(images), protocol="kitti")
    draws = Draws.of_seed(len(images), 4, seed)
    for weights, values in zip(
        draws, result._weighted_metrics(result.protocol.rows, draws).values, strict=True
    ):
        repeated = [image for image, times in zip(images, weights, strict=True) for _ in range(int(times))]
        anew = boxscore.evaluate(*tables(repeated), protocol="kitti")
        np.testing.assert_allclose(values[:, -1], list(anew.metrics.values()), atol=1e-13, rtol=0)


def test_few_objects_do_not_reach_100() -> None:
    boxes = [(10 * n, 0, 10 * n + 9, 50) for n in range(10)]
    truths = [Label("Car", 0, 0, 0.5, box) for box in boxes]
    found = [Label("Car", -1, -1, 0.5, box, 1 - n / 20) for n, box in enumerate(boxes)]
    result = boxscore.evaluate(*tables([(truths, found)]), protocol="kitti")
    row = result.labels.index("Car")
    assert result.class_values["AP_R40_easy"][row] == 9 / 40
    assert result.class_values["AP_R11_easy"][row] == 3 / 11


def test_a_small_detection_of_another_class_takes_a_true_positive() -> None:
    car = Label("Car", 0, 0, 0, (0, 0, 60, 41))
    right = Label("Car", -1, -1, 0, (0, 0, 60, 41), 0.5)
    small = Label("Pedestrian", -1, -1, 0, (0, 1, 60, 40), 0.9)
    for found, expected in (([right], 1 / 11), ([right, small], 0.0)):
        result = boxscore.evaluate(*tables([([car], found)]), protocol="kitti")
        assert result.class_values["AP_R11_easy"][result.labels.index("Car")] == expected


def test_without_orientation_there_is_no_aos() -> None:
    car = Label("Car", 0, 0, 0, (0, 0, 60, 50))
    result = boxscore.evaluate(*tables([([car], [car._replace(alpha=-10, score=0.5)])]), protocol="kitti")
    assert math.isnan(result["AOS_R40_easy"])
    assert result["AP_R11_easy"] == 1 / 11


def test_classes_cannot_be_pooled() -> None:
    with pytest.raises(boxscore.ProtocolError) as error:
        load_protocol({"extends": "kitti", "matching": {"per_class": False, "class_thresholds": {}}})
    assert "matching.class_thresholds" in str(error.value) or "matching.per_class" in str(error.value)


@pytest.mark.real
@pytest.mark.parametrize("results", ["derived", "perfect"])
@pytest.mark.parametrize("closed", [False, True])
def test_real_labels_score_as_the_devkit_in_cpp(results: str, closed: bool) -> None:
    rules = {"extends": "kitti", "ignore": {"least_height_closed": closed}}
    ours = boxscore.evaluate(real("kitti", "label_2"), real("kitti", results, "data"), protocol=rules)
    file = f"expected_cpp_e17{'_lt' if closed else ''}_{results}.json"
    for key, levels in json.loads(real("kitti", file).read_text()).items():
        name, kind = key.split("_")
        row = ours.labels.index(name.capitalize())
        for level, expected in levels.items():
            for points in ("R11", "R40"):
                metric = f"{'AP' if kind == 'detection' else 'AOS'}_{points}_{level}"
                value = float(ours.class_values[metric][row]) * 100
                assert value == pytest.approx(expected[points], abs=5e-14)
