"""Masks and keypoints: pycocotools as the oracle, and made-up data sets full of corner cases."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import boxscore
from support.quiet import quiet

Record = dict[str, Any]
PROTOCOLS = {"segm": "coco-segm", "boundary": "coco-boundary", "keypoints": "coco-keypoints"}


def run_pycocotools(
    truth: Record, results: list[Record], kind: str, *, sigmas: Any = None, caps: list[int] | None = None
) -> COCOeval:
    """Evaluate dictionaries as ``json.load`` gives them."""
    truth = copy.deepcopy(truth)
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = {"info": {}, **truth}
        reference.createIndex()
        run = COCOeval(reference, reference.loadRes(copy.deepcopy(results)), kind)
        if sigmas is not None:
            run.params.kpt_oks_sigmas = np.array(sigmas)
        if caps is not None:
            run.params.maxDets = caps
        run.evaluate()
        run.accumulate()
        if caps is None:
            run.summarize()
    return run


def load(
    folder: Path, truth: Record, results: list[Record]
) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Write two files and read them with the loaders."""
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    with quiet():
        ground_truth = boxscore.load_ground_truth(folder / "truth.json")
        return ground_truth, boxscore.load_detections(folder / "results.json", ground_truth)


def evaluate(
    folder: Path, truth: Record, results: list[Record], protocol: Any, **options: Any
) -> boxscore.Evaluation:
    """Write, read and evaluate, warnings aside."""
    chosen = boxscore.load_protocol(protocol)
    ground_truth, detections = load(folder, truth, results)
    with quiet():
        return boxscore.evaluate(ground_truth, detections, protocol=chosen, **options)


def assert_same_bits(evaluation: boxscore.Evaluation, reference: COCOeval) -> None:
    """Every cell of precision, recall and scores, and the headline numbers where the reference has them."""
    for name, ours in evaluation.arrays().items():
        filled, theirs = np.where(np.isnan(ours), -1.0, ours), reference.eval[name]
        assert filled.shape == theirs.shape
        cells = np.argwhere(filled != theirs)
        assert not len(cells), (name, cells[0], filled[tuple(cells[0])], theirs[tuple(cells[0])])
    if len(reference.stats):
        numbers = np.nan_to_num(list(evaluation.metrics.values()), nan=-1.0)
        assert numbers.tolist() == list(reference.stats), evaluation.metrics


def mask_case(seed: int) -> tuple[Record, list[Record]]:
    """A small data set of masks: every form, crowds, empty masks, several parts, ties."""
    random = np.random.default_rng(seed)
    images, annotations, results = [], [], []
    scale = float(random.choice([1.0, 1.0, 6.0]))  # larger images have medium and large objects
    with_boxes = random.random() < 0.3
    for image in range(1, int(random.integers(2, 5))):
        height, width = (random.integers(6, 26, 2) * scale).astype(int).tolist()
        images.append({"id": image, "height": height, "width": width, "file_name": f"{image}.png"})
        shapes = []
        for _ in range(random.integers(0, 6)):
            parts = [_polygon(random, width, height) for _ in range(random.choice([1, 1, 1, 2, 3]))]
            code = coco_mask.merge(coco_mask.frPyObjects(parts, height, width))
            crowd = int(random.random() < 0.2)
            form = random.choice(["polygons", "list", "text", "empty"], p=[0.5, 0.2, 0.2, 0.1])
            if form == "empty":
                code = coco_mask.encode(np.zeros((height, width), dtype=np.uint8, order="F"))
            segmentation = parts if form == "polygons" else _code(code, form == "list" or crowd == 1)
            shapes.append(coco_mask.decode(code))
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": int(random.integers(1, 3)),
                    "bbox": coco_mask.toBbox(code).tolist(),
                    "area": float(coco_mask.area(code)) + float(random.choice([0, 0.5])),
                    "iscrowd": crowd,
                    "segmentation": segmentation,
                }
            )
        for _ in range(random.integers(0, 9)):
            pixels = np.zeros((height, width), dtype=np.uint8)
            if shapes and random.random() < 0.8:
                shift = random.integers(-1, 2, 2) * int(scale)
                pixels = np.roll(shapes[random.integers(len(shapes))], shift, axis=(0, 1))
                pixels = np.where(random.random(pixels.shape) < 0.05, 1 - pixels, pixels)
            elif random.random() < 0.8:
                pixels = (random.random((height, width)) < 0.5).astype(np.uint8)
            code = coco_mask.encode(np.asfortranarray(pixels, dtype=np.uint8))
            record = {
                "image_id": image,
                "category_id": int(random.integers(1, 3)),
                "segmentation": _code(code, as_list=False),
                "score": float(random.integers(0, 6)) / 5,
            }
            if with_boxes:
                record["bbox"] = (coco_mask.toBbox(code) * random.choice([1.0, 1.5])).tolist()
            results.append(record)
    if not results:  # pycocotools cannot read an empty list
        blank = np.zeros((images[0]["height"], images[0]["width"]), dtype=np.uint8, order="F")
        code = _code(coco_mask.encode(blank), as_list=False)
        results.append({"image_id": 1, "category_id": 1, "segmentation": code, "score": 0.5})
    categories = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    return {"images": images, "annotations": annotations, "categories": categories}, results


def _polygon(random: np.random.Generator, width: int, height: int) -> list[float]:
    points = int(random.integers(3, 9))
    low = random.uniform(-3, 0.7 * width), random.uniform(-3, 0.7 * height)
    extent = random.uniform(1, width), random.uniform(1, height)
    corners = low + random.random((points, 2)) * extent
    return corners.round(int(random.integers(0, 3))).ravel().tolist()


def _code(code: Record, as_list: bool) -> Record:
    """Write a code as JSON has it: uncompressed as a list, or compressed as text."""
    if not as_list:
        return {"size": list(code["size"]), "counts": code["counts"].decode()}
    flat = coco_mask.decode(code).ravel(order="F").astype(np.int8)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(flat, prepend=0)), [len(flat)]])
    return {"size": list(code["size"]), "counts": np.diff(edges).tolist()}


def keypoint_case(seed: int, *, joints: int = 17) -> tuple[Record, list[Record]]:
    """A small data set of keypoints: none labeled, crowds, counts that lie, no area, ties."""
    random = np.random.default_rng(seed)
    annotations: list[Record] = []
    results: list[Record] = []
    with_boxes = random.random() < 0.3
    whole = random.random() < 0.5
    images = [
        {"id": image, "height": 480, "width": 640, "file_name": f"{image}.png"}
        for image in range(1, int(random.integers(2, 5)))
    ]
    for image in images:
        mine = []
        for _ in range(random.integers(0, 6)):
            size = np.exp(random.normal(4, 1, 2)).round(2)
            corner = random.uniform(0, 300, 2).round(2)
            seen = random.choice([0, 1, 2], joints, p=[0.5, 0.1, 0.4]) * (random.random() < 0.7)
            places = (corner + random.random((joints, 2)) * size) * (seen > 0)[:, None]
            if whole:
                places = places.round()
            points = np.column_stack([places, seen])
            mine.append((points, size))
            count = int((seen > 0).sum()) if random.random() < 0.9 else int(random.integers(0, 3))
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image["id"],
                    "category_id": 1,
                    "bbox": [*corner.tolist(), *size.tolist()],
                    "area": float(size.prod() * random.choice([0.0, 0.5, 0.7, 0.7])),
                    "iscrowd": int(random.random() < 0.15),
                    "num_keypoints": count,
                    "keypoints": (points.astype(int) if whole else points).ravel().tolist(),
                }
            )
        for _ in range(random.integers(0, 9)):
            if mine and random.random() < 0.9:
                points, size = mine[random.integers(len(mine))]
                noise = random.choice([0, 0.02, 0.1, 0.5])
                points = points + np.pad(random.normal(0, noise, (joints, 2)) * size, ((0, 0), (0, 1)))
            else:
                points = random.uniform(0, 400, (joints, 3))
            record = {
                "image_id": image["id"],
                "category_id": 1,
                "keypoints": points.ravel().tolist(),
                "score": float(random.integers(0, 6)) / 5,
            }
            if with_boxes:
                record["bbox"] = random.uniform(0, 200, 4).tolist()
            results.append(record)
    if not results:
        points = random.uniform(0, 400, 3 * joints).tolist()
        results.append({"image_id": 1, "category_id": 1, "keypoints": points, "score": 0.5})
    categories = [{"id": 1, "name": "person"}]
    return {"images": images, "annotations": annotations, "categories": categories}, results
