"""Pedestrian and face benchmarks: every number equal to their scripts in plain Python, on made-up scenes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.scoring.jaccard import heaviest_matching
from oracles import crowds
from oracles.crowds import Found, Image, Truth

WIDTH, HEIGHT = 640, 480


def box_of(rng: np.random.Generator, *, tall: bool) -> crowds.Box:
    x, y = rng.integers(-20, 560, 2).tolist()
    high = int(rng.integers(10, 200)) if tall else int(rng.integers(8, 60))
    wide = int(rng.integers(8, 80))
    return (float(x), float(y), float(x + wide), float(y + high))


def near(rng: np.random.Generator, box: crowds.Box, step: int) -> crowds.Box:
    moved = np.array(box) + rng.integers(-step, step + 1, 4)
    return tuple(np.hstack([moved[:2], np.maximum(moved[:2] + 4, moved[2:])]).tolist())  # type: ignore[return-value]


def scene(seed: int, *, labels: int = 1, tall: bool = True, inside: bool = False) -> list[Image]:
    """Crowds: objects beside one another, several detections each, some far from any, equal scores."""
    rng = np.random.default_rng(seed)
    levels = int(rng.choice([5, 40, 1000]))
    images: list[Image] = []
    for _ in range(int(rng.integers(1, 6))):
        truths: list[Truth] = []
        for _ in range(int(rng.integers(0, 7))):
            again = truths and rng.random() < 0.5
            box = near(rng, truths[-1].box, 6) if again else box_of(rng, tall=tall)
            if inside:
                box = tuple(np.clip(box, 1, [600, 440, 620, 460]).tolist())  # type: ignore[assignment]
                box = (box[0], box[1], max(box[0] + 4, box[2]), max(box[1] + 4, box[3]))
            easy = int(rng.random() < 0.5)
            truths.append(
                Truth(
                    box,
                    bool(rng.random() < 0.25),
                    box[3] - box[1],
                    float(rng.choice([0.1, 0.2, 0.3, 0.65, 0.8, 1.0])),
                    (easy, int(easy or rng.random() < 0.5), int(rng.random() < 0.8)),
                    int(rng.choice([0, 1, 1, 2, 2, 11])) if labels > 1 else 0,
                )
            )
        found = []
        for _ in range(int(rng.integers(0, 14))):
            chosen = truths[int(rng.integers(len(truths)))] if truths and rng.random() < 0.8 else None
            box = box_of(rng, tall=tall) if chosen is None else near(rng, chosen.box, 5)
            if inside:
                box = (max(1, box[0]), max(1, box[1]), max(8, box[2]), max(8, box[3]))
            label = (chosen.label if chosen else int(rng.integers(1, 12))) if labels > 1 else 0
            found.append(Found(box, float(rng.integers(1, levels + 1)) / (levels + 1), label))
        images.append((truths, sorted(found, key=lambda item: -item.score)))
    if not any(found for _, found in images) or len({i.score for _, f in images for i in f}) < 2:
        images[0] = (
            images[0][0],
            [Found((0, 0, 9, 9), 0.9, 1 if labels > 1 else 0), Found((0, 0, 9, 9), 0.2)],
        )
    return images


def tables(images: list[Image], **columns: Any) -> tuple[GroundTruth, Detections]:
    truths = [(number, truth) for number, (some, _) in enumerate(images) for truth in some]
    found = [(number, item) for number, (_, some) in enumerate(images) for item in some]
    truth = GroundTruth.from_arrays(
        [number for number, _ in truths],
        [item.label for _, item in truths],
        np.array([item.box for _, item in truths]).reshape(-1, 4),
        ignore=[item.ignore for _, item in truths],
        images=range(len(images)),
        categories=range(12) if any(item.label for _, item in truths) else [0],
    )
    given = {
        name: np.array([getattr(item, name) for _, item in truths], dtype=np.float64)
        for name in ("height", "visibility")
    }
    settings = np.array([item.settings for _, item in truths], dtype=np.float64).reshape(-1, 3)
    given |= {name: settings[:, at] for at, name in enumerate(("easy", "medium", "hard"))}
    detections = Detections.from_arrays(
        [number for number, _ in found],
        [item.label for _, item in found],
        np.array([item.box for _, item in found]).reshape(-1, 4),
        [item.score for _, item in found],
    )
    return truth.replaced(columns=given), detections


def same(ours: dict[str, float], theirs: dict[str, float]) -> None:
    for key, value in theirs.items():
        assert ours[key] == value or (math.isnan(ours[key]) and math.isnan(value)), (key, ours[key], value)


def close(ours: dict[str, float], theirs: dict[str, float]) -> None:
    for key, value in theirs.items():
        assert ours[key] == pytest.approx(value, abs=1e-14, nan_ok=True), key


def write_odgt(folder: Path, images: list[Image]) -> tuple[Path, Path]:
    def sides(box: crowds.Box) -> list[float]:
        return list(crowds.as_sides(box))

    truth = [
        {
            "ID": str(number),
            "gtboxes": [
                {"tag": "mask" if item.ignore else "person", "fbox": sides(item.box), "extra": {"occ": 0}}
                for item in truths
            ],
        }
        for number, (truths, _) in enumerate(images)
    ]
    found = [
        {
            "ID": str(number),
            "width": WIDTH,
            "height": HEIGHT,
            "dtboxes": [{"box": sides(item.box), "score": item.score, "tag": 1} for item in some],
        }
        for number, (_, some) in enumerate(images)
    ]
    paths = folder / "truth.odgt", folder / "found.odgt"
    for path, lines in zip(paths, (truth, found), strict=True):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return paths


@pytest.mark.parametrize("seed", range(40))
def test_crowdhuman_is_its_toolkit(tmp_path: Path, seed: int) -> None:
    images = scene(seed)
    if not any(not truth.ignore for truths, _ in images for truth in truths):
        images[0][0].append(Truth((50.0, 50.0, 90.0, 150.0)))
    ours = boxscore.evaluate(*write_odgt(tmp_path, images), protocol="crowdhuman").metrics
    theirs = crowds.crowdhuman(images, WIDTH, HEIGHT)
    same(ours, {key: theirs[key] for key in ("AP", "MR")})
    close(ours, {"JI": theirs["JI"]})


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", ["citypersons", "caltech"])
def test_pedestrians_are_the_scripts(name: str, seed: int) -> None:
    images = scene(seed)
    ours = boxscore.evaluate(
        *tables(images), protocol={"extends": name, "matching": {"annotation_id_zero": "counted"}}
    )
    close(ours.metrics, crowds.pedestrians(images, caltech=name == "caltech"))


@pytest.mark.parametrize("seed", range(25))
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


@pytest.mark.parametrize("seed", range(60))
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
