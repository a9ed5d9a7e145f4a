"""The limits that docs/contributing/speed.md states, each in a process of its own whose memory is measured."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from support.program import run_python

HEAD = """
import pathlib
import sys
import numpy as np
import boxscore
rng = np.random.default_rng(0)
def boxes(count, extent=1000.0):
    corner = rng.uniform(0, extent, (count, 2))
    return np.hstack([corner, corner + rng.uniform(20, 200, (count, 2))])
"""
TAIL = """
status = pathlib.Path("/proc/self/status").read_text()
print(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])
"""
"""Unlike ``ru_maxrss``, which a new program takes over from the process that starts it."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


def megabytes_of(code: str, folder: Path) -> int:
    """Run Python; return the most memory it had, in MB."""
    status, output, errors = run_python(["-c", HEAD + code + TAIL], folder=folder)
    assert (status, errors) == (0, "")
    return int(output.split()[-1]) // 1024


IMAGE = """
truth = boxscore.GroundTruth.from_arrays([1] * {objects}, [1] * {objects}, boxes({objects}))
found = boxscore.Detections.from_arrays([1] * {detections}, [1] * {detections}, boxes({detections}), rng.random({detections}))
protocol = {{"extends": "coco", "matching": {{"max_detections": [100_000]}}, "summary": [{{"key": "AP"}}]}}
evaluation = boxscore.evaluate(truth, found, protocol=protocol)
assert 0 < evaluation.metrics["AP"] < 1
assert len(evaluation.matched) == {detections}
"""


@pytest.mark.long
def test_a_crowded_image(tmp_path: Path) -> None:
    assert megabytes_of(IMAGE.format(objects=500, detections=4000), tmp_path) < 300


@pytest.mark.slow
def test_a_pathological_image(tmp_path: Path) -> None:
    assert megabytes_of(IMAGE.format(objects=5_000, detections=20_000), tmp_path) < 1000


OVERLAPPING = """
def near(count):
    return np.array([0, 0, 100, 100]) + rng.uniform(0, 9, (count, 4))
truth = boxscore.GroundTruth.from_arrays([1] * {objects}, [1] * {objects}, near({objects}))
found = boxscore.Detections.from_arrays([1] * {detections}, [1] * {detections}, near({detections}), rng.random({detections}))
assert boxscore.evaluate(truth, found, protocol={protocol}).matched.every_pair
"""
MANY = {"extends": "coco", "matching": {"max_detections": []}, "summary": [{"key": "AP"}]}


@pytest.mark.long
@pytest.mark.parametrize(
    "protocol", ["voc2012", pytest.param(MANY, marks=pytest.mark.slow)], ids=["VOC", "no cap"]
)
def test_every_pair_of_an_image_overlaps(protocol: Any, tmp_path: Path) -> None:
    """4.5 million pairs; together 700 MB, in blocks those that are kept."""
    code = OVERLAPPING.format(objects=1500, detections=3000, protocol=repr(protocol))
    assert megabytes_of(code, tmp_path) < (200 if protocol == "voc2012" else 700)


@pytest.mark.slow
def test_every_pair_of_a_huge_image_overlaps(tmp_path: Path) -> None:
    """250 million pairs, once more than 7.5 GB."""
    code = OVERLAPPING.format(objects=5_000, detections=50_000, protocol="'voc2012'")
    assert megabytes_of(code, tmp_path) < 300


CLASSES = """
K = {classes}
image = rng.integers(0, 100, K)
truth = boxscore.GroundTruth.from_arrays(image, np.arange(K), boxes(K), images=range(100), categories=dict.fromkeys(range(K), "one name"))
found = boxscore.Detections.from_arrays(image, np.arange(K), truth.boxes, rng.random(K))
evaluation = boxscore.evaluate(truth, found, digest=False)  # their names are one on purpose
assert evaluation.metrics["AP"] > 0.99
assert len(set(truth.categories.labels)) == K
"""


@pytest.mark.long
def test_a_thousand_classes(tmp_path: Path) -> None:
    assert megabytes_of(CLASSES.format(classes=1000), tmp_path) < 100 + 100


@pytest.mark.slow
@pytest.mark.parametrize("classes", [20_000, 100_000])
def test_very_many_classes(classes: int, tmp_path: Path) -> None:
    """Their cells, 8 kB a class and array, are summed up block by block."""
    assert megabytes_of(CLASSES.format(classes=classes), tmp_path) < 250 + classes // 200


FILES = """
from boxscore.cli import main
assert main(["evaluate", "--gt", "gt.json", "--dt", "dt.json", "--workers", "1", "--no-digest", "--output", "csv"]) == 0
"""


def write_detections(folder: Path, images: int, an_image: int) -> None:
    rng = random.Random(0)
    with (folder / "gt.json").open("w") as file:
        annotations = [
            {
                "id": n,
                "image_id": n,
                "category_id": n % 80,
                "bbox": [10, 10, 50, 50],
                "area": 2500,
                "iscrowd": 0,
            }
            for n in range(1, images + 1)
        ]
        categories = [{"id": n, "name": str(n)} for n in range(80)]
        json.dump(
            {
                "images": [{"id": n} for n in range(1, images + 1)],
                "categories": categories,
                "annotations": annotations,
            },
            file,
        )
    with (folder / "dt.json").open("w") as file:
        file.write("[")
        for n in range(images * an_image):
            row = f'{{"image_id":{n % images + 1},"category_id":{n % 80},"bbox":[{rng.uniform(0, 20):.2f},10,50,50],'
            file.write(("," if n else "") + row + f'"score":{rng.random():.4f}}}')
        file.write("]")


@pytest.mark.long
def test_fifty_thousand_detections(tmp_path: Path) -> None:
    write_detections(tmp_path, 1000, 50)
    assert megabytes_of(FILES, tmp_path) < 300


@pytest.mark.slow
def test_two_million_detections(tmp_path: Path) -> None:
    write_detections(tmp_path, 40_000, 50)
    assert megabytes_of(FILES, tmp_path) < 1500


def write_polygons(path: Path, size: int) -> None:
    """Write a ground truth of about ``size`` bytes, nearly all of them corners of polygons."""
    part = json.dumps([round(random.Random(0).uniform(0, 400), 2) for _ in range(20_000)])
    with path.open("w") as file:
        file.write(
            '{"images":[{"id":1,"width":640,"height":480}],"categories":[{"id":0,"name":"0"}],"annotations":['
        )
        number = 0
        while file.tell() < size:
            number += 1
            row = f'{{"id":{number},"image_id":1,"category_id":0,"bbox":[{number % 500},1,50,50],"area":2500,'
            file.write(("," if number > 1 else "") + row + f'"iscrowd":0,"segmentation":[{part}]}}')
        file.write("]}")


@pytest.mark.parametrize(
    "size", [20_000_000, pytest.param(1_000_000_000, marks=pytest.mark.slow)], ids=["20 MB", "1 GB"]
)
def test_polygons_are_skipped_when_boxes_are_compared(size: int, tmp_path: Path) -> None:
    write_polygons(tmp_path / "gt.json", size)
    box = {"image_id": 1, "category_id": 0, "bbox": [1, 1, 50, 50], "score": 0.5}
    (tmp_path / "dt.json").write_text(json.dumps([box]))
    assert megabytes_of(FILES, tmp_path) < size // 1_000_000 + 500


MASKS = """
half = {"size": [30_000, 30_000], "counts": [0, 450_000_000, 450_000_000]}
hole = {"size": [30_000, 30_000], "counts": [0, 300_000_000, 7, 159_999_993, 440_000_000]}
truth = boxscore.GroundTruth.from_arrays([1], [1], None, masks=[half])
found = boxscore.Detections.from_arrays([1], [1], None, [0.5], masks=[hole])
assert boxscore.evaluate(truth, found, protocol="coco-boundary").matches["iou"].item() > 0.5
"""


@pytest.mark.long
def test_masks_of_a_billion_pixels(tmp_path: Path) -> None:
    """As pixels one of them takes 900 MB, and its boundary several times that."""
    assert megabytes_of(MASKS, tmp_path) < 200
