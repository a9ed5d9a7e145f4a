"""Pedestrian and face benchmarks: every number equal to their scripts in plain Python, on made-up scenes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from oracles import crowds
from oracles.crowds import Found, Image, Truth
from support.crowd_cases import HEIGHT, WIDTH, scene, tables, write_odgt
from support.each import each
from support.insides import heaviest_matching


def same(ours: dict[str, float], theirs: dict[str, float]) -> None:
    for key, value in theirs.items():
        assert ours[key] == value or (math.isnan(ours[key]) and math.isnan(value)), (key, ours[key], value)


def close(ours: dict[str, float], theirs: dict[str, float]) -> None:
    for key, value in theirs.items():
        assert ours[key] == pytest.approx(value, abs=1e-14, nan_ok=True), key


@pytest.mark.parametrize("seed", range(40))
def test_crowdhuman_is_its_toolkit(tmp_path: Path, seed: int) -> None:
    images = scene(seed)
    if not any(not truth.ignore for truths, _ in images for truth in truths):
        images[0][0].append(Truth((50.0, 50.0, 90.0, 150.0)))
    ours = boxscore.evaluate(*write_odgt(tmp_path, images), protocol="crowdhuman").metrics
    theirs = crowds.crowdhuman(images, WIDTH, HEIGHT)
    same(ours, {key: theirs[key] for key in ("AP", "MR")})
    close(ours, {"JI": theirs["JI"]})


@each([(name, seed) for seed in range(40) for name in ["citypersons", "caltech"]])
def test_pedestrians_are_the_scripts(name: str, seed: int) -> None:
    images = scene(seed)
    ours = boxscore.evaluate(
        *tables(images), protocol={"extends": name, "matching": {"annotation_id_zero": "counted"}}
    )
    close(ours.metrics, crowds.pedestrians(images, caltech=name == "caltech"))


@each(range(25))
def test_wider_face_is_its_script(seed: int) -> None:
    images = scene(seed, tall=False)
    ours = boxscore.evaluate(*tables(images), protocol="widerface").metrics
    same(ours, crowds.widerface(images))


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("seed", range(15))
def test_visdrone_is_the_rewritten_toolkit(tmp_path: Path, seed: int) -> None:
    images = scene(seed, labels=12, tall=False, inside=True)
    for side in ("truth", "found"):
        (tmp_path / side).mkdir()
    for number, (truths, found) in enumerate(images):
        lines = [
            ",".join(f"{value:g}" for value in (*crowds.as_sides(t.box), int(not t.ignore), t.label, 0, 0))
            for t in truths
        ]
        (tmp_path / "truth" / f"{number:03}.txt").write_text("\n".join(lines))
        rows = [
            ",".join(repr(value) for value in (*crowds.as_sides(f.box), f.score, f.label, -1, -1))
            for f in found
        ]
        (tmp_path / "found" / f"{number:03}.txt").write_text("\n".join(rows))
    options = boxscore.load_ground_truth(
        tmp_path / "truth",
        format="visdrone",
        image_sizes={f"{n:03}": (WIDTH, HEIGHT) for n in range(len(images))},
    )
    found_table = boxscore.load_detections(tmp_path / "found", options, format="visdrone")
    ours = boxscore.evaluate(options, found_table, protocol="visdrone").metrics
    if any(truth.label in range(1, 11) for truths, _ in images for truth in truths):
        close(ours, crowds.visdrone(images, WIDTH, HEIGHT))


@each(range(60))
def test_the_heaviest_matching_is_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((5, 5)) < rng.choice([0.3, 0.6, 1.0]), rng.uniform(0.5, 1, (5, 5)), 0.0)
    first, second = np.nonzero(weights)
    chosen = heaviest_matching(first, second, weights[first, second])
    best = crowds.heaviest(weights.tolist())
    assert len(set(first[chosen])) == len(set(second[chosen])) == len(chosen)
    assert sorted(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True)) == sorted(best)


def test_one_false_detection_first_is_harsh_in_one_image(tmp_path: Path) -> None:
    """Every anchor of CrowdHuman is reached at the false one, though both persons are found."""
    persons = [(100.0, 100.0, 140.0, 200.0), (300.0, 100.0, 340.0, 200.0)]
    images: list[Image] = [
        (
            [Truth(box) for box in persons],
            [Found((500.0, 10.0, 520.0, 60.0), 0.9), *(Found(box, 0.8) for box in persons)],
        )
    ]
    paths = write_odgt(tmp_path, images)
    assert boxscore.evaluate(*paths, protocol="crowdhuman")["MR"] == 1.0
    late = {"extends": "crowdhuman", "miss_rate": {"reading": "last_at_most_or_end"}}
    assert boxscore.evaluate(*paths, protocol=late)["MR"] == pytest.approx(0.0)


def test_no_detection_at_all_has_no_point_to_read(tmp_path: Path) -> None:
    result = boxscore.evaluate(
        *write_odgt(tmp_path, [([Truth((10.0, 10.0, 30.0, 90.0))], [])]), protocol="crowdhuman"
    )
    assert result["AP"] == 0.0
    assert math.isnan(result["MR"])


def test_without_a_person_nothing_is_defined(tmp_path: Path) -> None:
    images: list[Image] = [
        ([Truth((10.0, 10.0, 30.0, 90.0), ignore=True)], [Found((200.0, 10.0, 240.0, 90.0), 0.9)])
    ]
    metrics = boxscore.evaluate(*write_odgt(tmp_path, images), protocol="crowdhuman").metrics
    assert {key for key, value in metrics.items() if math.isnan(value)} == {"AP", "MR", "JI"}


def test_a_perfect_detector_of_six_persons_has_an_ap_of_five_sixths(tmp_path: Path) -> None:
    boxes = [(60.0 * i, 10.0, 60.0 * i + 40, 120.0) for i in range(6)]
    images: list[Image] = [([Truth(box) for box in boxes], [Found(box, 1.0) for box in boxes])]
    assert boxscore.evaluate(*write_odgt(tmp_path, images), protocol="crowdhuman")["AP"] == pytest.approx(
        5 / 6
    )


def test_a_threshold_of_its_own_is_that_of_its_class() -> None:
    truth = GroundTruth.from_arrays([1, 1], ["Car", "Cyclist"], [[0, 0, 10, 10], [50, 0, 60, 10]])
    found = Detections.from_arrays([1, 1], ["Car", "Cyclist"], [[0, 0, 10, 6], [50, 0, 60, 6]], [0.9, 0.9])
    rules = {
        "extends": "voc2012",
        "boxes": {"pixel_offset": 0},
        "matching": {"class_thresholds": {"Car": [0.7]}},
    }
    result = boxscore.evaluate(truth, found, protocol=rules)
    assert result.class_values["AP"].tolist() == [0.0, 1.0]
    assert "|classiou:Car=0.70|" in result.signature
    assert boxscore.evaluate(truth, found, protocol={**rules, "matching": {}})["mAP"] == 1.0
