"""Compute what the samples should score, with oracles that share no code with boxscore.

Goal
----
Write ``expected.json`` into each sample: pycocotools for the COCO form, and a slow and obvious reading of the
PASCAL VOC devkit in plain Python (``VOCevaldet.m``, ``VOCap.m``) for the VOC form.

Conventions
-----------
- Undefined is ``null``: a class without a counted object, an area range without objects.
- A mean over classes leaves undefined ones out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

Box = tuple[float, float, float, float]

COCO_NAMES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")
COCO_CELLS: tuple[tuple[float | None, int, int], ...] = (
    *((None, 0, 2), (0.5, 0, 2), (0.75, 0, 2), (None, 1, 2), (None, 2, 2), (None, 3, 2)),
    *((None, 0, 0), (None, 0, 1), (None, 0, 2), (None, 1, 2), (None, 2, 2), (None, 3, 2)),
)
"""IoU threshold (None: all), area range and detection cap of each of the twelve numbers."""

DEVKIT_GRID = (
    0.0,
    1 * 0.1,
    2 * 0.1,
    3 * 0.1,
    4 * 0.1,
    5 * 0.1,
    1 - 4 * 0.1,
    1 - 3 * 0.1,
    1 - 2 * 0.1,
    1 - 0.1,
    1.0,
)
"""MATLAB's ``0:0.1:1``: counted up from 0 in the lower half, down from 1 in the upper half."""
NUMPY_GRID = tuple(float(point) for point in np.arange(0.0, 1.1, 0.1))


def coco_expected(ground_truth: Path, results: Path) -> dict[str, Any]:
    """Return pycocotools' twelve numbers, for the set and for each class."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(ground_truth))
        detections = truth.loadRes(str(results))
        evaluation = COCOeval(truth, detections, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    names = [truth.cats[identifier]["name"] for identifier in evaluation.params.catIds]
    annotations = truth.dataset["annotations"]
    return {
        "metrics": {name: _defined(value) for name, value in zip(COCO_NAMES, evaluation.stats, strict=True)},
        "per_class": [
            {"class": name, **_class_numbers(evaluation, index)} for index, name in enumerate(names)
        ],
        "counts": {
            "images": len(truth.dataset["images"]),
            "objects": len(annotations),
            "crowds": sum(row["iscrowd"] for row in annotations),
            "detections": len(detections.dataset["annotations"]),
            "classes": len(names),
        },
    }


def _class_numbers(evaluation: COCOeval, index: int) -> dict[str, float | None]:
    """Return the twelve numbers of one class."""
    numbers: dict[str, float | None] = {}
    for name, (threshold, area, cap) in zip(COCO_NAMES, COCO_CELLS, strict=True):
        if name.startswith("AP"):
            cells = evaluation.eval["precision"][:, :, index, area, cap]
        else:
            cells = evaluation.eval["recall"][:, index, area, cap]
        if threshold is not None:
            cells = cells[evaluation.params.iouThrs == threshold]
        cells = cells[cells > -1]
        numbers[name] = float(np.mean(cells)) if cells.size else None
    return numbers


def _defined(value: float) -> float | None:
    """Return a number of pycocotools; its -1 is undefined."""
    return None if value == -1 else float(value)


def voc_overlap(first: Box, second: Box) -> float:
    """Return intersection over union with inclusive pixels, as the devkit computes it."""
    width = min(first[2], second[2]) - max(first[0], second[0]) + 1
    height = min(first[3], second[3]) - max(first[1], second[1]) + 1
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (first, second)]
    return width * height / (areas[0] + areas[1] - width * height)


def read_objects(annotation: Path) -> list[tuple[str, Box, bool]]:
    """Return name, box and difficulty of each object of an annotation file."""
    objects = []
    for node in ElementTree.parse(annotation).getroot().findall("object"):
        corners = [float(node.findtext(f"bndbox/{tag}", "nan")) for tag in ("xmin", "ymin", "xmax", "ymax")]
        box = (corners[0], corners[1], corners[2], corners[3])
        objects.append((node.findtext("name", ""), box, node.findtext("difficult", "0") == "1"))
    return objects


def voc_outcomes(
    truths: dict[str, list[tuple[Box, bool]]], detections: list[tuple[str, float, Box]]
) -> list[str]:
    """Return "true", "false" or "ignored" for each detection of a class, best score first.

    Parameters
    ----------
    truths : dict
        Image to its objects of this class: box, and whether difficult.
    detections : list
        Image, score and box, in the order of the file.
    """
    outcomes = []
    taken: set[tuple[str, int]] = set()
    for image, _, box in sorted(
        detections, key=lambda row: -row[1]
    ):  # stable: equal scores keep the file's order
        best, best_index = -math.inf, -1
        for index, (truth, _) in enumerate(truths.get(image, [])):
            overlap = voc_overlap(box, truth)
            if overlap > 0 and overlap > best:
                best, best_index = overlap, index
        if best < 0.5:
            outcomes.append("false")
        elif truths[image][best_index][1]:
            outcomes.append("ignored")
        elif (image, best_index) in taken:
            outcomes.append("false")
        else:
            outcomes.append("true")
            taken.add((image, best_index))
    return outcomes


def voc_curve(outcomes: list[str], positives: int) -> tuple[list[float], list[float]]:
    """Return recall and precision after each detection; precision is NaN where the devkit divides 0 by 0."""
    recall, precision = [], []
    true = false = 0
    for outcome in outcomes:
        true += outcome == "true"
        false += outcome == "false"
        recall.append(true / positives)
        precision.append(true / (true + false) if true + false else math.nan)
    return recall, precision


def points_average_precision(recall: list[float], precision: list[float], grid: tuple[float, ...]) -> float:
    """Return the mean, over a grid of recalls, of the best precision from there on."""
    total = 0.0
    for point in grid:
        reached = [p for r, p in zip(recall, precision, strict=True) if r >= point and not math.isnan(p)]
        total += max(reached, default=0.0) / 11
    return total


def area_average_precision(recall: list[float], precision: list[float]) -> float:
    """Return the area under the falling envelope of the curve."""
    recall = [0.0, *recall, 1.0]
    precision = [0.0, *(0.0 if math.isnan(p) else p for p in precision), 0.0]
    for index in range(len(precision) - 2, -1, -1):
        precision[index] = max(precision[index], precision[index + 1])
    return math.fsum(
        (recall[index] - recall[index - 1]) * precision[index] for index in range(1, len(recall))
    )


def voc_expected(folder: Path) -> dict[str, Any]:
    """Return what the devkit gives for a sample's ``VOC2007`` and ``results`` folders."""
    devkit = folder / "VOC2007"
    images = (devkit / "ImageSets" / "Main" / "test.txt").read_text().split()
    objects = {image: read_objects(devkit / "Annotations" / f"{image}.xml") for image in images}
    rows: list[dict[str, Any]] = []
    for name in sorted({name for rows_of in objects.values() for name, _, _ in rows_of}):
        truths = {
            image: [(box, difficult) for label, box, difficult in rows_of if label == name]
            for image, rows_of in objects.items()
        }
        results = folder / "results" / f"comp4_det_test_{name}.txt"
        detections: list[tuple[str, float, Box]] = []
        for line in results.read_text().splitlines() if results.exists() else []:
            image, score, x1, y1, x2, y2 = line.split()
            detections.append((image, float(score), (float(x1), float(y1), float(x2), float(y2))))
        difficulties = [difficult for rows_of in truths.values() for _, difficult in rows_of]
        positives = difficulties.count(False)
        outcomes = voc_outcomes(truths, detections)
        row: dict[str, Any] = {
            "class": name,
            "positives": positives,
            "difficult": difficulties.count(True),
            "detections": len(detections),
            "true_positives": outcomes.count("true"),
            "false_positives": outcomes.count("false"),
            "ignored": outcomes.count("ignored"),
            "AP_11_point": None,
            "AP_11_point_numpy_grid": None,
            "AP_area": None,
        }
        if positives:
            recall, precision = voc_curve(outcomes, positives)
            row["AP_11_point"] = points_average_precision(recall, precision, DEVKIT_GRID)
            row["AP_11_point_numpy_grid"] = points_average_precision(recall, precision, NUMPY_GRID)
            row["AP_area"] = area_average_precision(recall, precision)
        rows.append(row)
    counts = {
        "images": len(images),
        "objects": sum(row["positives"] + row["difficult"] for row in rows),
        "difficult": sum(row["difficult"] for row in rows),
        "detections": sum(row["detections"] for row in rows),
        "classes": len(rows),
    }
    means = {name: _mean([row[name] for row in rows]) for name in rows[0] if name.startswith("AP")}
    return {
        "metrics": {f"m{name}": value for name, value in means.items()},
        "per_class": rows,
        "counts": counts,
    }


def _mean(values: list[float | None]) -> float | None:
    """Return the mean of the defined values."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def tutorial_overlaps(folder: Path) -> list[dict[str, Any]]:
    """Return each pair's overlap with inclusive pixels (VOC) and with continuous coordinates (COCO)."""
    truth = json.loads((folder / "instances.json").read_text())["annotations"]
    detections = json.loads((folder / "detections.json").read_text())
    rows = []
    for first, second in zip(truth, detections, strict=True):
        boxes = [(x, y, x + w, y + h) for x, y, w, h in (first["bbox"], second["bbox"])]
        grown = [(x1, y1, x2 - 1, y2 - 1) for x1, y1, x2, y2 in boxes]
        rows.append(
            {
                "image_id": first["image_id"],
                "iou_inclusive": voc_overlap(boxes[0], boxes[1]),
                "iou_continuous": voc_overlap(grown[0], grown[1]),
            }
        )
    return rows


def expected(sample: str, folder: Path) -> dict[str, Any]:
    """Return the expected values of a sample."""
    values: dict[str, Any] = {}
    if sample != "shapes_voc":
        values["coco"] = {
            "oracle": "pycocotools COCOeval, bbox",
            **coco_expected(folder / "instances.json", folder / "detections.json"),
        }
    if sample != "shapes_coco":
        values["voc"] = {
            "oracle": "datasets/make_expected.py, the VOC devkit in plain Python",
            **voc_expected(folder),
        }
    if sample == "iou_tutorial":
        values["overlaps"] = tutorial_overlaps(folder)
    return values


def main() -> None:
    """Write ``expected.json`` into each sample."""
    parser = argparse.ArgumentParser(description="Compute what boxscore's bundled samples should score.")
    here = Path(__file__).parent
    parser.add_argument("--output", type=Path, default=here, help="folder to write to (default: datasets)")
    folder = parser.parse_args().output
    for sample in ("shapes_coco", "shapes_voc", "iou_tutorial"):
        path = folder / sample / "expected.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((json.dumps(expected(sample, here / sample), indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
