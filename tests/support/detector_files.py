"""The same detections in every format of programs that run detectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["FILES", "FOUND", "SIZES", "darknet", "fractions", "megadetector", "microsoft", "of_roboflow"]
__all__ += ["per_image", "sides", "supervision", "write_files", "xywh"]

SIZES = {"a.jpg": (200, 100), "b.c.jpg": (40, 30), "d.png": (64, 64)}
FOUND: dict[str, list[tuple[str, int, float, list[float]]]] = {
    "a.jpg": [("cat", 0, 0.875, [100.5, 20.0, 190.0, 70.0]), ("dog", 1, 0.25, [30.5, 40.0, 50.0, 60.5])],
    "b.c.jpg": [],
    "d.png": [("dog", 1, 0.5, [30.0, 30.0, 50.0, 50.25])],
}
"""Class, its number, score and corners of the detections of each image."""


def xywh(box: list[float]) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def center(box: list[float]) -> list[float]:
    x, y, width, height = xywh(box)
    return [x + width / 2, y + height / 2, width, height]


def fractions(box: list[float], name: str) -> list[float]:
    width, height = SIZES[name]
    return [box[0] / width, box[1] / height, box[2] / width, box[3] / height]


def sides(names: str, box: list[float]) -> dict[str, float]:
    return dict(zip(names.split(), box, strict=True))


def per_file(record: Callable[[str, list[Any]], Any], ending: str = ".json") -> dict[str, Any]:
    """Return a file per image, named like the image without its extension."""
    return {f"f/{name.rpartition('.')[0]}{ending}": record(name, found) for name, found in FOUND.items()}


def of_ultralytics(name: str, found: list[Any], *, normalized: bool = False) -> Any:
    return [
        {
            "name": label,
            "class": number,
            "confidence": score,
            "box": sides("x1 y1 x2 y2", fractions(box, name) if normalized else box),
        }
        for label, number, score, box in found
    ]


def of_pipeline(_: str, found: list[Any]) -> Any:
    return [
        {"score": score, "label": label, "box": sides("xmin ymin xmax ymax", box)}
        for label, _, score, box in found
    ]


def of_roboflow(name: str, found: list[Any]) -> Any:
    predictions = [
        {**sides("x y width height", center(box)), "confidence": score, "class": label, "class_id": number}
        for label, number, score, box in found
    ]
    width, height = SIZES[name]
    return {"time": 0.1, "image": {"width": width, "height": str(height)}, "predictions": predictions}


def of_inferencer(_: str, found: list[Any]) -> Any:
    labels, scores = [one[1] for one in found], [one[2] for one in found]
    return {"labels": labels, "scores": scores, "bboxes": [one[3] for one in found]}


def of_workflow(name: str, found: list[Any]) -> Any:
    return [{"output": {"predictions": of_roboflow(name, found)}, "count": len(found)}]


def of_yolov5(_: str, found: list[Any]) -> Any:
    return [
        {**sides("xmin ymin xmax ymax", box), "confidence": score, "class": number, "name": label}
        for label, number, score, box in found
    ]


def darknet(folder: str = "data/img/") -> list[dict[str, Any]]:
    return [
        {
            "frame_id": number,
            "filename": f"{folder}{name}",
            "objects": [
                {
                    "class_id": of_class,
                    "name": label,
                    "relative_coordinates": sides(
                        "center_x center_y width height", center(fractions(box, name))
                    ),
                    "confidence": score,
                }
                for label, of_class, score, box in found
            ],
        }
        for number, (name, found) in enumerate(FOUND.items(), start=1)
    ]


def megadetector() -> dict[str, Any]:
    images = [
        {
            "file": f"x\\{name}",
            "detections": [
                {"category": str(number + 1), "conf": score, "bbox": xywh(fractions(box, name))}
                for _, number, score, box in found
            ],
        }
        for name, found in FOUND.items()
    ]
    return {
        "images": images,
        "detection_categories": {"1": "cat", "2": "dog"},
        "info": {"format_version": "1.5", "detector": "x"},
    }


def microsoft() -> list[dict[str, Any]]:
    return [
        {
            "file": f"images/{name}",
            "detections": [
                {"category": label, "confidence": score, "bbox": box} for label, _, score, box in found
            ],
        }
        for name, found in FOUND.items()
    ]


def supervision() -> list[dict[str, Any]]:
    return [
        {**sides("x_min y_min x_max y_max", box), "class_id": number, "confidence": score, "tracker_id": ""}
        | {"class_name": label, "image_name": name}
        for name, found in FOUND.items()
        for label, number, score, box in found
    ]


def per_image() -> list[dict[str, Any]]:
    return [
        {"file_name": name, "boxes": [one[3] for one in found], "labels": [one[0] for one in found]}
        | {"scores": [one[2] for one in found]}
        for name, found in FOUND.items()
    ]


def boxes() -> list[dict[str, Any]]:
    return [
        {"image": name, "class": label, "confidence": score, "bbox": box}
        for name, found in FOUND.items()
        for label, _, score, box in found
    ]


FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "ultralytics": ("f", per_file(of_ultralytics)),
    "ultralytics of image names": ("f", per_file(of_ultralytics, ".jpg.json") | {"f/d.jpg.json": None}),
    "ultralytics by name": (
        "u.json",
        {"u.json": {n: of_ultralytics(n, found) for n, found in FOUND.items()}},
    ),
    "ultralytics of YOLOv5": ("f", per_file(of_yolov5)),
    "pipeline": ("f", per_file(of_pipeline)),
    "pipeline by name": (
        "p.json",
        {"p.json": {name: of_pipeline(name, found) for name, found in FOUND.items()}},
    ),
    "pipeline in order": ("p.json", {"p.json": [of_pipeline(name, found) for name, found in FOUND.items()]}),
    "roboflow": ("f", per_file(of_roboflow)),
    "roboflow by name": ("r.json", {"r.json": {n: of_roboflow(n, found) for n, found in FOUND.items()}}),
    "roboflow of a workflow": ("f", per_file(of_workflow)),
    "mmdetjson": (
        "preds",
        {f"preds/{n.rpartition('.')[0]}.json": of_inferencer(n, found) for n, found in FOUND.items()},
    ),
    "darknetjson": ("result.json", {"result.json": darknet()}),
    "megadetector": ("m.json", {"m.json": megadetector()}),
    "megadetector of Microsoft": ("m.json", {"m.json": microsoft()}),
    "records of supervision": ("s.json", {"s.json": supervision()}),
    "records per box": ("b.json", {"b.json": boxes()}),
    "records per image": ("r.json", {"r.json": per_image()}),
}
FILES["ultralytics of image names"][1].update(
    {"f/d.jpg.json": FILES["ultralytics"][1]["f/d.json"], "f/a.jpg.json": FILES["ultralytics"][1]["f/a.json"]}
)
FILES["ultralytics normalized"] = (
    "f",
    per_file(lambda name, found: of_ultralytics(name, found, normalized=True)),
)
"""Path and files; the first word is the name of the format."""


def write_files(folder: Path, path: str, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder / path
