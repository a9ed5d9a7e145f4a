"""Make the bundled samples: drawn images, their ground truth, and an imaginary detector's results.

Goal
----
Two small sets that hold every case an evaluator can get wrong, and one tutorial set of five boxes. The same
bytes on every machine: ``python datasets/make_samples.py`` changes nothing in a clean checkout.

Conventions
-----------
- Only NumPy and the standard library; no network; every draw is seeded.
- A box here is continuous, ``x1, y1, x2, y2``. COCO files get ``x, y, w, h`` of it. VOC files get the pixels
  that it covers, counted from 1: ``x1 + 1, y1 + 1, x2, y2``, both ends inside, so that the devkit's width
  ``xmax - xmin + 1`` is ``x2 - x1``.
- ``README.md`` lists what each set holds, ``tests/test_samples.py`` checks it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from drawing import Draws, Mask
from scenes import Box, Scene, Shape, coco_scenes, voc_scenes

COCO_CATEGORIES: tuple[tuple[int, str, str], ...] = (
    (1, "circle", "round"),
    (2, "square", "polygon"),
    (4, "triangle", "polygon"),
    (5, "star", "spiky"),
    (8, "hexagon", "polygon"),
    (9, "cross", "spiky"),
    (13, "moon", "round"),
)
"""Ids with gaps, as in COCO. Nobody detects hexagons, nobody drew crosses, and moons are neither."""

VOC_2012_ORDER = ("xmax", "xmin", "ymax", "ymin")
VOC_CLASSES = ("circle", "cross", "hexagon", "square", "star", "triangle")
TUTORIAL: tuple[tuple[str, tuple[int, int, int, int], tuple[int, int, int, int], float], ...] = (
    ("image_0002", (39, 63, 203, 112), (54, 66, 198, 114), 0.95),
    ("image_0016", (49, 75, 203, 125), (42, 78, 186, 126), 0.9),
    ("image_0075", (31, 69, 201, 125), (18, 63, 235, 135), 0.85),
    ("image_0090", (50, 72, 197, 121), (54, 72, 198, 120), 0.8),
    ("image_0120", (35, 51, 196, 110), (36, 60, 180, 108), 0.75),
)
"""Image, true box, predicted box (inclusive pixels), and a score of our own: the tutorial gives none."""


def one_line_each(rows: Iterable[Any]) -> str:
    """Return a JSON list with one row a line."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"


def coco_file(parts: dict[str, Any]) -> bytes:
    """Return a COCO file: a mapping of lists, one record a line."""
    lines = (
        f"{json.dumps(key)}: {one_line_each(value) if isinstance(value, list) else json.dumps(value)}"
        for key, value in parts.items()
    )
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def sizes_of(box: Box) -> list[float]:
    """Return ``x, y, w, h`` of a box, to two decimals."""
    x1, y1, x2, y2 = box
    return [float(round(value, 2)) for value in (x1, y1, x2 - x1, y2 - y1)]


def run_lengths(mask: Mask) -> dict[str, list[int]]:
    """Return a mask as COCO's uncompressed run lengths: column by column, zeros first."""
    values = mask.ravel(order="F")
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    starts = np.concatenate([[0], changes, [values.size]])
    counts = np.diff(starts).tolist()
    return {"counts": [0, *counts] if values[0] else counts, "size": list(mask.shape)}


def coco_sample() -> dict[str, bytes]:
    """Return the files of ``shapes_coco`` by name."""
    draws = Draws(COCO_SEED)
    scenes = coco_scenes(draws)
    identifiers = [101 + 7 * index + index % 3 for index in range(len(scenes))]
    files: dict[str, bytes] = {}
    images, annotations, results = [], [], []
    category_ids = {name: identifier for identifier, name, _ in COCO_CATEGORIES}
    for identifier, scene in zip(identifiers, scenes, strict=True):
        name = f"{identifier:012d}.png"
        files[f"images/{name}"] = scene.file(draws)
        images.append(
            {"id": identifier, "file_name": name, "width": scene.width, "height": scene.height, "license": 1}
        )
        for shape in scene.shapes:
            flat = [[value for point in shape.points for value in point]]
            annotations.append(
                {
                    "image_id": identifier,
                    "category_id": category_ids[shape.name],
                    "bbox": sizes_of(shape.box),
                    "area": float(shape.mask.sum()),
                    "iscrowd": int(shape.crowd),
                    "segmentation": run_lengths(shape.mask) if shape.crowd else flat,
                }
            )
        for detection in draws.shuffled(scene.detections):
            row = {"image_id": identifier, "category_id": category_ids[detection.name]}
            results.append({**row, "bbox": sizes_of(detection.box), "score": detection.score})
    ground_truth = {
        "info": {"description": "boxscore sample: drawn shapes", "version": "1.0", "year": 2026},
        "licenses": [{"id": 1, "name": "MIT", "url": "https://opensource.org/license/mit"}],
        "images": draws.shuffled(images),
        "annotations": [{"id": 1 + index, **row} for index, row in enumerate(draws.shuffled(annotations))],
        "categories": [
            {"id": identifier, "name": name, "supercategory": group}
            for identifier, name, group in COCO_CATEGORIES
        ],
    }
    files["instances.json"] = coco_file(ground_truth)
    files["detections.json"] = (one_line_each(results) + "\n").encode()
    files["predictions.json"] = (one_line_each(as_ultralytics(results)) + "\n").encode()
    return files


def as_ultralytics(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return detections as ``yolo val save_json=True`` writes them, with classes numbered from 1."""
    number_of = {identifier: 1 + index for index, (identifier, _, _) in enumerate(COCO_CATEGORIES)}
    by_image = sorted(results, key=lambda row: (row["image_id"], -row["score"]))
    return [
        {
            "image_id": row["image_id"],
            "file_name": f"{row['image_id']:012d}.png",
            "category_id": number_of[row["category_id"]],
            "bbox": row["bbox"],
            "score": row["score"],
        }
        for row in by_image
    ]


def pixels_of(shape: Shape) -> list[float]:
    """Return the inclusive pixel box of a shape, counted from 1, as the devkit writes it."""
    x1, y1, x2, y2 = shape.box
    return [math.floor(x1) + 1, math.floor(y1) + 1, math.ceil(x2), math.ceil(y2)]


def quartered(box: Box) -> list[float]:
    """Return a detection's inclusive pixel box, counted from 1, in quarters: exact in text and in binary."""
    x1, y1, x2, y2 = (round(value * 4) / 4 for value in box)
    return [x1 + 1, y1 + 1, x2, y2]


def voc_object(shape: Shape, index: int) -> list[str]:
    """Return one object of an annotation file; every few objects something the devkit's files also do."""
    box = pixels_of(shape)
    if index == 8:
        box[2] -= 0.3  # a decimal coordinate, as in VOC 2011
    tags = {
        "pose": "Unspecified",
        "truncated": str(int(shape.truncated)),
        "occluded": "0",
        "difficult": str(int(shape.difficult)),
    }
    if index % 3:
        del tags["occluded"]  # unknown before VOC 2008
    if index % 7 == 2 and not shape.truncated:
        del tags["truncated"], tags["pose"]
    if index % 9 in (0, 2) and not shape.difficult:
        del tags["difficult"]
    corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), (f"{value:.10g}" for value in box), strict=True))
    if index % 11 == 4:
        corners = {name: corners[name] for name in VOC_2012_ORDER}
    lines = ["\t<object>", f"\t\t<name>{shape.name}</name>"]
    lines += [f"\t\t<{name}>{value}</{name}>" for name, value in tags.items()]
    lines += ["\t\t<bndbox>", *(f"\t\t\t<{name}>{value}</{name}>" for name, value in corners.items())]
    lines += ["\t\t</bndbox>"]
    if shape.name == "star" and index % 2:  # parts have a name and a box of their own, which are no object
        middle = (box[0] + box[2]) // 2
        tip = {"xmin": middle - 2, "ymin": box[1], "xmax": middle + 2, "ymax": box[1] + 4}
        lines += ["\t\t<part>", "\t\t\t<name>tip</name>", "\t\t\t<bndbox>"]
        lines += [f"\t\t\t\t<{name}>{value:.10g}</{name}>" for name, value in tip.items()]
        lines += ["\t\t\t</bndbox>", "\t\t</part>"]
    return [*lines, "\t</object>"]


def voc_annotation(identifier: str, scene: Scene, first_index: int) -> bytes:
    """Return the annotation file of an image."""
    lines = [
        "<annotation>",
        "\t<folder>VOC2007</folder>",
        f"\t<filename>{identifier}.png</filename>",
        "\t<source>",
        "\t\t<database>boxscore samples: drawn shapes</database>",
        "\t</source>",
        "\t<size>",
        f"\t\t<width>{scene.width}</width>",
        f"\t\t<height>{scene.height}</height>",
        "\t\t<depth>3</depth>",
        "\t</size>",
        "\t<segmented>0</segmented>",
    ]
    for index, shape in enumerate(scene.shapes):
        lines += voc_object(shape, first_index + index)
    return ("\n".join([*lines, "</annotation>"]) + "\n").encode()


def presence(scene: Scene, name: str) -> int:
    """Return the devkit's mark of a class in an image: 1 there, 0 only difficult ones, -1 not there."""
    hard = [shape.difficult for shape in scene.shapes if shape.name == name]
    return -1 if not hard else 0 if all(hard) else 1


def voc_sample() -> dict[str, bytes]:
    """Return the files of ``shapes_voc`` by name."""
    draws = Draws(VOC_SEED)
    test, training = voc_scenes(draws)
    identifiers = [f"{3 + 5 * index + index % 2:06d}" for index in range(len(test) + len(training))]
    sets = {"train": identifiers[5:18:12], "test": [*identifiers[:5], *identifiers[6:17], *identifiers[18:]]}
    scene_of = {
        **dict(zip(sets["test"], test, strict=True)),
        **dict(zip(sets["train"], training, strict=True)),
    }
    files: dict[str, bytes] = {}
    objects = 0
    for identifier in identifiers:
        scene = scene_of[identifier]
        files[f"VOC2007/Annotations/{identifier}.xml"] = voc_annotation(identifier, scene, objects)
        files[f"VOC2007/JPEGImages/{identifier}.png"] = scene.file(draws)
        objects += len(scene.shapes)
    for name, members in sets.items():
        folder = "VOC2007/ImageSets/Main"
        files[f"{folder}/{name}.txt"] = "".join(f"{member}\n" for member in members).encode()
        for class_name in VOC_CLASSES:
            marks = (f"{member} {presence(scene_of[member], class_name):2d}\n" for member in members)
            files[f"{folder}/{class_name}_{name}.txt"] = "".join(marks).encode()

    results: list[dict[str, Any]] = []
    texts: dict[str, list[str]] = {name: [] for name in VOC_CLASSES}  # as the kit, one without detections too
    for identifier in draws.shuffled(sets["test"]):  # a file need not follow the order of the images
        for detection in draws.shuffled(scene_of[identifier].detections):
            x1, y1, x2, y2 = quartered(detection.box)
            box = [x1, y1, x2 - x1, y2 - y1]
            results.append(
                {"image_id": identifier, "category_id": detection.name, "bbox": box, "score": detection.score}
            )
            numbers = " ".join(f"{value:.10g}" for value in (detection.score, x1, y1, x2, y2))
            texts[detection.name].append(f"{identifier} {numbers}\n")
    for name, lines in sorted(texts.items()):
        files[f"results/comp4_det_test_{name}.txt"] = "".join(lines).encode()
    files["results_coco.json"] = (one_line_each(results) + "\n").encode()
    return files


def tutorial_sample() -> dict[str, bytes]:
    """Return the files of ``iou_tutorial`` by name: the same boxes in both forms, ``w = x2 - x1``."""
    width, height = 300, 200
    files: dict[str, bytes] = {}
    images, annotations, results, lines = [], [], [], []
    for index, (identifier, truth, guess, score) in enumerate(TUTORIAL):
        number = int(identifier[-4:])
        boxes = [[x1, y1, x2 - x1, y2 - y1] for x1, y1, x2, y2 in (truth, guess)]
        images.append({"id": number, "file_name": f"{identifier}.jpg", "width": width, "height": height})
        annotations.append(
            {
                "id": index + 1,
                "image_id": number,
                "category_id": 1,
                "bbox": boxes[0],
                "area": boxes[0][2] * boxes[0][3],
                "iscrowd": 0,
            }
        )
        results.append({"image_id": number, "category_id": 1, "bbox": boxes[1], "score": score})
        lines.append(f"{identifier} {score} {' '.join(map(str, guess))}\n")
        corners = zip(("xmin", "ymin", "xmax", "ymax"), truth, strict=True)
        files[f"VOC2007/Annotations/{identifier}.xml"] = (
            f"<annotation>\n\t<filename>{identifier}.jpg</filename>\n"
            f"\t<size>\n\t\t<width>{width}</width>\n\t\t<height>{height}</height>\n\t\t<depth>3</depth>\n\t</size>\n"
            "\t<object>\n\t\t<name>car</name>\n\t\t<difficult>0</difficult>\n\t\t<bndbox>\n"
            + "".join(f"\t\t\t<{name}>{value}</{name}>\n" for name, value in corners)
            + "\t\t</bndbox>\n\t</object>\n</annotation>\n"
        ).encode()
    files["VOC2007/ImageSets/Main/test.txt"] = "".join(f"{row[0]}\n" for row in TUTORIAL).encode()
    files["results/comp4_det_test_car.txt"] = "".join(lines).encode()
    files["instances.json"] = coco_file(
        {
            "info": {"description": "The five pairs of boxes of a well-known tutorial on IoU"},
            "images": images,
            "annotations": annotations,
            "categories": [{"id": 1, "name": "car", "supercategory": "vehicle"}],
        }
    )
    files["detections.json"] = (one_line_each(results) + "\n").encode()
    return files


COCO_SEED, VOC_SEED = 36, 42
"""Chosen so that every case shows in the numbers: large objects, the order of ties, the recall grids."""

SAMPLES: dict[str, Callable[[], dict[str, bytes]]] = {
    "shapes_coco": coco_sample,
    "shapes_voc": voc_sample,
    "iou_tutorial": tutorial_sample,
}


def main() -> None:
    """Write the samples."""
    parser = argparse.ArgumentParser(description="Make boxscore's bundled samples.")
    here = Path(__file__).parent
    parser.add_argument("--output", type=Path, default=here, help="folder (default: datasets)")
    folder = parser.parse_args().output
    for sample, make in SAMPLES.items():
        for name, content in make().items():
            path = folder / sample / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


if __name__ == "__main__":
    main()
