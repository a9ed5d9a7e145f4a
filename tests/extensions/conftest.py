"""Scenes made up for the tests of extensions, and the real data where it is."""

from __future__ import annotations

import json
import os
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from boxscore import Detections, GroundTruth
from boxscore.data.vocabulary import Images

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "datasets" / "shapes_coco"

Tables = tuple[GroundTruth, Detections]


def make_scene(seed: int, *, images: int = 12, classes: int = 4, decimals: int | None = None) -> Tables:
    """Objects in a row, and detections of them: shifted, doubled, misnamed, of nothing; some crowds."""
    random = np.random.default_rng(seed)
    truths: list[tuple[int, int, list[float], bool]] = []
    found: list[tuple[int, int, list[float], float]] = []
    for image in range(images):
        for place in range(random.integers(0, 6)):
            x, size, label = 40.0 * place, random.uniform(15, 60), int(random.integers(classes - 1))
            truths.append((image, label, [x, 0, size, size], bool(random.random() < 0.1)))
            for _ in range(random.integers(0, 3)):
                shift = random.normal(0, 0.2 * size, 2)
                named = label if random.random() < 0.7 else int(random.integers(classes))
                found.append((image, named, [x + shift[0], shift[1], size, size], random.random()))
        for _ in range(random.integers(0, 2)):
            box = [random.uniform(0, 200), 300.0, 20.0, 20.0]
            found.append((image, int(random.integers(classes)), box, random.random()))
    order = random.permutation(len(found))
    found = [found[i] for i in order]
    scores = [row[3] if decimals is None else round(row[3], decimals) for row in found]
    truth = GroundTruth.from_arrays(
        [row[0] for row in truths],
        [row[1] for row in truths],
        [row[2] for row in truths],
        box_format="xywh",
        crowd=[row[3] for row in truths],
        images=Images.build(range(images), sizes=[[640, 480]] * images),
        categories={k: f"class {k}" for k in range(classes)},
    )
    detections = Detections.from_arrays(
        [row[0] for row in found],
        [row[1] for row in found],
        [row[2] for row in found],
        scores,
        box_format="xywh",
        images=truth.images,
        categories=truth.categories,
    )
    return truth, detections


@pytest.fixture
def scene() -> Callable[..., Tables]:
    return make_scene


def real_folder(name: str) -> Path:
    """A folder of the real data; skips when it is absent."""
    given = os.environ.get("BOXSCORE_REAL_DATA")
    folder = (Path(given) if given else ROOT.parent / "shared" / "data") / name
    if not folder.is_dir():
        pytest.skip(f"needs the real data: {folder} is absent (set BOXSCORE_REAL_DATA)")
    return folder


def read_coco(truth_file: Path, results_file: Path) -> Tables:
    truth = json.loads(truth_file.read_text())
    rows, results = truth["annotations"], json.loads(results_file.read_text())
    table = GroundTruth.from_arrays(
        [row["image_id"] for row in rows],
        [row["category_id"] for row in rows],
        [row["bbox"] for row in rows],
        box_format="xywh",
        area=[row["area"] for row in rows],
        crowd=[row.get("iscrowd", 0) for row in rows],
        ids=[row["id"] for row in rows],
        images=Images.build(
            [row["id"] for row in truth["images"]],
            file_names=[row["file_name"] for row in truth["images"]],
        ),
        categories={row["id"]: row["name"] for row in truth["categories"]},
    )
    return table, Detections.from_arrays(
        [row["image_id"] for row in results],
        [row["category_id"] for row in results],
        [row["bbox"] for row in results],
        [row["score"] for row in results],
        box_format="xywh",
        images=table.images,
        categories=table.categories,
    )


@pytest.fixture(scope="session")
def sample() -> Tables:
    return read_coco(SAMPLE / "instances.json", SAMPLE / "detections.json")


@pytest.fixture(scope="session")
def fake100() -> Tables:
    folder = real_folder("coco_val2014_fake100")
    return read_coco(
        folder / "instances_val2014_100.json", folder / "instances_val2014_fakebbox100_results.json"
    )


@pytest.fixture(scope="session")
def voc() -> Tables:
    folder = real_folder("voc2007")
    images, labels, boxes, difficult, ids = [], [], [], [], []
    for path in sorted((folder / "VOC2007" / "Annotations").glob("*.xml")):
        images.append(path.stem)
        for item in ElementTree.parse(path).getroot().iter("object"):
            box = item.find("bndbox")
            assert box is not None
            ids.append(path.stem)
            labels.append(item.findtext("name"))
            boxes.append([float(box.findtext(side, "nan")) for side in ("xmin", "ymin", "xmax", "ymax")])
            difficult.append(item.findtext("difficult") == "1")
    names = sorted(set(labels))
    truth = GroundTruth.from_arrays(ids, labels, boxes, difficult=difficult, images=images, categories=names)
    rows = [
        (line.split(), path.stem.split("_")[-1])
        for path in sorted((folder / "results" / "yolov2").glob("*.txt"))
        for line in path.read_text().splitlines()
    ]
    detections = Detections.from_arrays(
        [row[0] for row, _ in rows],
        [label for _, label in rows],
        [list(map(float, row[2:6])) for row, _ in rows],
        [float(row[1]) for row, _ in rows],
        images=truth.images,
        categories=truth.categories,
    )
    return truth, detections


@pytest.fixture
def quiet_peers() -> object:
    """Other tools warn of their own dependencies; that is theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
