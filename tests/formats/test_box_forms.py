"""Boxes that were written in another form than the format's are corrected by ``box_format``, in every format."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore import Detections, GroundTruth, evaluate, load_detections, load_ground_truth
from boxscore.data.alignment import align
from boxscore.data.boxes import WRITTEN_FORMATS, box_convert
from boxscore.data.vocabulary import Images
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.hints import box_order as _box_order
from boxscore.extensions.hints.box_order import box_order
from boxscore.formats.registry import format_names
from support.annotations import example, record
from support.examples import first_of
from support.running import Run

WIDTH, HEIGHT = 64, 32
"""Powers of two: fractions of them are exact."""

TRUTH = [[8, 4, 24, 20], [30, 2, 46, 10], [2, 16, 12, 30], [40, 12, 60, 28], [16, 6, 28, 30]]
FOUND = [[8, 4, 24, 20], [31, 2, 46, 11], [2, 18, 10, 30], [40, 14, 60, 30], [1, 1, 7, 9], [17, 6, 27, 30]]
AREAS = [(x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in TRUTH]
IMAGES, LABELS = ["a", "b", "a", "b", "b"], ["cat", "cat", "cat", "dog", "dog"]
FOUND_IMAGES, FOUND_LABELS = ["a", "b", "a", "b", "a", "b"], ["cat", "cat", "cat", "dog", "cat", "dog"]
SCORES = [0.5, 0.875, 0.25, 0.75, 0.625, 0.375]

Row = tuple[str, str, list[float], float]
Writer = Callable[[Path, list[Row]], Path]


def dumped(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def text(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def words(numbers: list[float], between: str = " ") -> str:
    return between.join(map(repr, numbers))


def of_image(rows: list[Row], image: str) -> list[Row]:
    return [row for row in rows if row[0] == image]


def per_image(line: Callable[[Row], str], head: tuple[str, ...] = ()) -> Writer:
    def write(folder: Path, rows: list[Row]) -> Path:
        for image in "ab":
            text(folder / f"{image}.txt", [*head, *map(line, of_image(rows, image))])
        return folder

    return write


def yolo(line: Callable[[Row], str]) -> Writer:
    def write(folder: Path, rows: list[Row]) -> Path:
        per_image(line)(folder / "labels", rows)
        text(folder / "labels" / "classes.txt", ["cat", "dog"])
        return folder

    return write


def number(label: str, start: int = 0) -> int:
    return ["cat", "dog"].index(label) + start


def coco(folder: Path, rows: list[Row]) -> Path:
    return dumped(
        folder / "r.json",
        [
            {"image_id": image, "category_id": number(label, 1), "bbox": box, "score": score}
            for image, label, box, score in rows
        ],
    )


def coco_truth(folder: Path, rows: list[Row]) -> Path:
    return dumped(
        folder / "t.json",
        {
            "images": [
                {"id": image, "file_name": f"{image}.jpg", "width": WIDTH, "height": HEIGHT} for image in "ab"
            ],
            "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
            "annotations": [
                {
                    "id": at,
                    "image_id": image,
                    "category_id": number(label, 1),
                    "bbox": box,
                    "area": AREAS[at - 1],
                }
                for at, (image, label, box, _) in enumerate(rows, start=1)
            ],
        },
    )


def voc(folder: Path, rows: list[Row]) -> Path:
    for label in ("cat", "dog"):
        lines = [f"{image} {score} {words(box)}" for image, own, box, score in rows if own == label]
        text(folder / f"comp4_det_test_{label}.txt", lines)
    return folder


def voc_truth(folder: Path, rows: list[Row]) -> Path:
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
    for image in "ab":
        objects = "".join(
            f"<object><name>{label}</name><bndbox><xmin>{a!r}</xmin><ymin>{b!r}</ymin><xmax>{c!r}</xmax>"
            f"<ymax>{d!r}</ymax></bndbox></object>"
            for _, label, (a, b, c, d), _ in of_image(rows, image)
        )
        head = f"<annotation><filename>{image}.jpg</filename>{size}"
        text(folder / f"{image}.xml", [f"{head}{objects}</annotation>"])
    return folder


def table(suffix: str, names: str) -> Writer:
    def write(folder: Path, rows: list[Row]) -> Path:
        columns: dict[str, Any] = (
            {}
            if "," not in names
            else dict(zip(names.split(","), np.array([row[2] for row in rows]).T, strict=True))
        )
        if "," not in names:
            columns = {names: [row[2] for row in rows]}
        frame = pd.DataFrame(
            {
                "image": [r[0] for r in rows],
                "class": [r[1] for r in rows],
                **columns,
                "score": [r[3] for r in rows],
            }
        )
        path = folder / f"t.{suffix}"
        if suffix == "parquet":
            frame.to_parquet(path)
        elif suffix == "jsonl":
            frame.to_json(path, orient="records", lines=True, double_precision=15)
        else:
            frame.to_csv(path, index=False)
        return path

    return write


def open_images(folder: Path, rows: list[Row]) -> Path:
    head = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded"
    lines = [
        f"{image},x,{label},{score},{a!r},{c!r},{b!r},{d!r},0" for image, label, (a, b, c, d), score in rows
    ]
    return text(folder / "oi.csv", [head, *lines])


def open_images_found(folder: Path, rows: list[Row]) -> Path:
    lines = [f"{i},{label},{score},{a!r},{c!r},{b!r},{d!r}" for i, label, (a, b, c, d), score in rows]
    return text(folder / "oi.csv", ["ImageID,LabelName,Score,XMin,XMax,YMin,YMax", *lines])


def dota(folder: Path, rows: list[Row]) -> Path:
    for label in ("cat", "dog"):
        lines = [f"{image} {score} {words(box)}" for image, own, box, score in rows if own == label]
        text(folder / f"Task2_{label}.txt", lines)
    return folder


def columns(folder: Path, rows: list[Row]) -> Path:
    path = folder / "c.npz"
    corners = np.array([row[2] for row in rows])
    table = Detections.from_arrays(
        [row[0] for row in rows],
        [row[1] for row in rows],
        np.zeros((len(rows), 4)),
        [row[3] for row in rows],
        images=images(),
    )
    low = np.minimum(corners[:, :2], corners[:, 2:])
    if (low < corners[:, :2]).any():
        pytest.skip("corners that are no box cannot be in such a file")
    boxscore.save_columns(table.replaced(boxes=corners, sizes=corners[:, 2:] - corners[:, :2]), path)
    return path


def labelme(folder: Path, rows: list[Row]) -> Path:
    for image in "ab":
        shapes = [
            {
                "label": label,
                "points": [box[:2], box[2:]],
                "shape_type": "rectangle",
                "flags": {},
                "score": score,
            }
            for _, label, box, score in of_image(rows, image)
        ]
        size = {"imageHeight": HEIGHT, "imageWidth": WIDTH, "imageData": None}
        dumped(folder / f"{image}.json", {"shapes": shapes, "imagePath": f"{image}.jpg", **size})
    return folder


def labelstudio(folder: Path, rows: list[Row]) -> Path:
    tasks = []
    for image in "ab":
        results = [
            {
                "original_width": WIDTH,
                "original_height": HEIGHT,
                "type": "rectanglelabels",
                "to_name": "image",
                "score": score,
                "value": {
                    **dict(zip(("x", "y", "width", "height"), (100 * n for n in box), strict=True)),
                    "rotation": 0,
                    "rectanglelabels": [label],
                },
            }
            for _, label, box, score in of_image(rows, image)
        ]
        data = {"image": f"/data/upload/1/0123abcd-{image}.jpg"}
        tasks.append(
            {
                "id": image,
                "data": data,
                "annotations": [{"result": results}],
                "predictions": [{"result": results}],
            }
        )
    return dumped(folder / "tasks.json", tasks)


def datumaro(folder: Path, rows: list[Row]) -> Path:
    items = [
        {
            "id": image,
            "image": {"path": f"{image}.jpg", "size": [HEIGHT, WIDTH]},
            "annotations": [
                {
                    "id": 1,
                    "type": "bbox",
                    "label_id": number(label),
                    "bbox": box,
                    "attributes": {"score": score},
                }
                for _, label, box, score in of_image(rows, image)
            ],
        }
        for image in "ab"
    ]
    labels = {"label": {"labels": [{"name": "cat"}, {"name": "dog"}]}}
    return dumped(folder / "d.json", {"info": {}, "categories": labels, "items": items})


def bdd(folder: Path, rows: list[Row]) -> Path:
    return dumped(
        folder / "bdd.json",
        [
            {
                "name": f"{image}.jpg",
                "labels": [
                    {
                        "category": label,
                        "score": score,
                        "box2d": dict(zip(("x1", "y1", "x2", "y2"), box, strict=True)),
                    }
                    for _, label, box, score in of_image(rows, image)
                ],
            }
            for image in "ab"
        ],
    )


def createml(folder: Path, rows: list[Row]) -> Path:
    return dumped(
        folder / "c.json",
        [
            {
                "image": f"{image}.jpg",
                "annotations": [
                    {
                        "label": label,
                        "confidence": score,
                        "coordinates": dict(zip(("x", "y", "width", "height"), box, strict=True)),
                    }
                    for _, label, box, score in of_image(rows, image)
                ],
            }
            for image in "ab"
        ],
    )


def fiftyone(folder: Path, rows: list[Row]) -> Path:
    samples = [
        {
            "filepath": f"data/{image}.jpg",
            "metadata": {"width": WIDTH, "height": HEIGHT},
            "boxes": {
                "detections": [
                    {"label": label, "bounding_box": box, "confidence": score}
                    for _, label, box, score in of_image(rows, image)
                ]
            },
        }
        for image in "ab"
    ]
    return dumped(folder / "samples.json", {"samples": samples})


def crowdhuman(folder: Path, rows: list[Row]) -> Path:
    lines = []
    for image in "ab":
        boxes = [{"box": box, "score": score, "tag": 1} for _, _, box, score in of_image(rows, image)]
        lines.append(json.dumps({"ID": image, "dtboxes": boxes, "width": WIDTH, "height": HEIGHT}))
    return text(folder / "d.odgt", lines)


def crowdhuman_truth(folder: Path, rows: list[Row]) -> Path:
    lines = []
    for image in "ab":
        boxes = [
            {"fbox": box, "vbox": box, "tag": "person", "extra": {}} for _, _, box, _ in of_image(rows, image)
        ]
        lines.append(json.dumps({"ID": image, "gtboxes": boxes, "width": WIDTH, "height": HEIGHT}))
    return text(folder / "t.odgt", lines)


def citypersons(folder: Path, rows: list[Row]) -> Path:
    return dumped(
        folder / "t.json",
        {
            "images": [{"id": i, "im_name": f"{i}.jpg", "width": WIDTH, "height": HEIGHT} for i in "ab"],
            "categories": [{"id": 1, "name": "person"}],
            "annotations": [
                {
                    "id": at,
                    "image_id": image,
                    "category_id": 1,
                    "bbox": box,
                    "height": 9,
                    "vis_ratio": 1.0,
                    "ignore": 0,
                }
                for at, (image, _, box, _) in enumerate(rows, start=1)
            ],
        },
    )


def widerface(folder: Path, rows: list[Row]) -> Path:
    for image in "ab":
        lines = [f"{words(box)} {score}" for _, _, box, score in of_image(rows, image)]
        text(folder / "0--Parade" / f"{image}.txt", [image, str(len(lines)), *lines])
    return folder


def cvat(folder: Path, rows: list[Row]) -> Path:
    images = ""
    for at, image in enumerate("ab"):
        boxes = "".join(
            f'<box label="{label}" xtl="{a!r}" ytl="{b!r}" xbr="{c!r}" ybr="{d!r}">'
            f'<attribute name="score">{score}</attribute></box>'
            for _, label, (a, b, c, d), score in of_image(rows, image)
        )
        images += f'<image id="{at}" name="{image}.jpg" width="{WIDTH}" height="{HEIGHT}">{boxes}</image>'
    head = "<annotations><version>1.1</version><meta><task/></meta>"
    return text(folder / "x.xml", [f"{head}{images}</annotations>"])


def via(folder: Path, rows: list[Row]) -> Path:
    return dumped(
        folder / "via.json",
        {
            image: {
                "filename": f"{image}.jpg",
                "size": 1,
                "regions": [
                    {
                        "shape_attributes": {
                            "name": "rect",
                            **dict(zip(("x", "y", "width", "height"), box, strict=True)),
                        },
                        "region_attributes": {"kind": label},
                    }
                    for _, label, box, _ in of_image(rows, image)
                ],
            }
            for image in "ab"
        },
    )


def vott(folder: Path, rows: list[Row]) -> Path:
    assets = {
        image: {
            "asset": {"name": f"{image}.jpg", "size": {"width": WIDTH, "height": HEIGHT}},
            "regions": [
                {
                    "id": "1",
                    "tags": [label],
                    "boundingBox": dict(zip(("left", "top", "width", "height"), box, strict=True)),
                }
                for _, label, box, _ in of_image(rows, image)
            ],
        }
        for image in "ab"
    }
    return dumped(
        folder / "v.json", {"name": "x", "tags": [{"name": "cat"}, {"name": "dog"}], "assets": assets}
    )


def sagemaker(folder: Path, rows: list[Row]) -> Path:
    lines = []
    for image in "ab":
        boxes = [
            {"class_id": number(label), **dict(zip(("left", "top", "width", "height"), box, strict=True))}
            for _, label, box, _ in of_image(rows, image)
        ]
        size = [{"width": WIDTH, "height": HEIGHT, "depth": 3}]
        meta = {"class-map": {"0": "cat", "1": "dog"}}
        line = {"source-ref": f"s3://x/{image}.jpg", "job": {"annotations": boxes, "image_size": size}}
        lines.append(json.dumps({**line, "job-metadata": meta}))
    return text(folder / "output.manifest", lines)


def supervisely(folder: Path, rows: list[Row]) -> Path:
    (folder / "ann").mkdir()
    for image in "ab":
        objects = [
            {
                "classTitle": label,
                "geometryType": "rectangle",
                "points": {"exterior": [box[:2], box[2:]], "interior": []},
            }
            for _, label, box, _ in of_image(rows, image)
        ]
        size = {"height": HEIGHT, "width": WIDTH}
        dumped(folder / "ann" / f"{image}.jpg.json", {"size": size, "objects": objects, "tags": []})
    return folder


def _keyed(rows: list[Row], image: str, label: str, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the objects of an image with a key for each of the four numbers."""
    return [{label: row[1], **dict(zip(keys, row[2], strict=True))} for row in of_image(rows, image)]


def vertex(folder: Path, rows: list[Row]) -> Path:
    keys = ("xMin", "yMin", "xMax", "yMax")
    lines = [
        {
            "imageGcsUri": f"gs://x/{image}.jpg",
            "boundingBoxAnnotations": _keyed(rows, image, "displayName", keys),
        }
        for image in "ab"
    ]
    return text(folder / "v.jsonl", [json.dumps(line) for line in lines])


def ibm(folder: Path, rows: list[Row]) -> Path:
    boxes = {f"{image}.jpg": _keyed(rows, image, "label", ("x", "y", "x2", "y2")) for image in "ab"}
    content = {"type": "localization", "labels": ["cat", "dog"], "annotations": boxes}
    return dumped(folder / "_annotations.json", content)


def edgeimpulse(folder: Path, rows: list[Row]) -> Path:
    keys = ("x", "y", "width", "height")
    boxes = {f"{image}.jpg": _keyed(rows, image, "label", keys) for image in "ab"}
    return dumped(folder / "b.labels", {"type": "bounding-box-labels", "boundingBoxes": boxes})


def unity(folder: Path, rows: list[Row]) -> Path:
    keys = ("x", "y", "width", "height")
    captures = [
        {
            "filename": f"{image}.jpg",
            "dimension": [WIDTH, HEIGHT],
            "annotations": [{"values": _keyed(rows, image, "label_name", keys)}],
        }
        for image in "ab"
    ]
    return dumped(folder / "captures_000.json", {"captures": captures})


def odvg(folder: Path, rows: list[Row]) -> Path:
    lines = []
    for image in "ab":
        instances = [{"bbox": box, "category": label} for _, label, box, _ in of_image(rows, image)]
        size = {"filename": f"{image}.jpg", "width": WIDTH, "height": HEIGHT}
        lines.append(json.dumps({**size, "detection": {"instances": instances}}))
    return text(folder / "o.jsonl", lines)


def openlabel(folder: Path, rows: list[Row]) -> Path:
    frames: dict[str, Any] = {}
    for at, image in enumerate("ab"):
        objects = {
            str(row): {"object_data": {"bbox": [{"val": box}]}}
            for row, (of, _, box, _) in enumerate(rows)
            if of == image
        }
        properties = {"file_name": f"{image}.jpg", "width": WIDTH, "height": HEIGHT}
        frames[str(at)] = {"frame_properties": properties, "objects": objects}
    known = {str(row): {"type": label} for row, (_, label, _, _) in enumerate(rows)}
    return dumped(folder / "o.json", {"openlabel": {"objects": known, "frames": frames}})


def keras(folder: Path, rows: list[Row]) -> Path:
    text(folder / "classes.txt", ["cat", "dog"])
    lines = []
    for image in "ab":
        boxes = [f"{words(box, ',')},{number(label)}" for _, label, box, _ in of_image(rows, image)]
        lines.append(f"{image}.jpg {' '.join(boxes)}")
    return text(folder / "train.txt", lines)


def tfrecord(folder: Path, rows: list[Row], kind: str = "object") -> Path:
    records = b""
    for image in "ab":
        own = of_image(rows, image)
        numbers = np.array([row[2] for row in own])
        sides = {
            f"image/{kind}/bbox/{side}": numbers[:, at].tolist()
            for at, side in enumerate(("xmin", "ymin", "xmax", "ymax"))
        }
        scores = {"image/detection/score": [row[3] for row in own]} if kind == "detection" else {}
        features: dict[str, Any] = {
            "image/filename": [f"{image}.jpg".encode()],
            "image/width": [WIDTH],
            "image/height": [HEIGHT],
            **sides,
            **scores,
            f"image/{kind}/class/text": [row[1].encode() for row in own],
        }
        records += record(example(features))
    (folder / "x.tfrecord").write_bytes(records)
    return folder


def of_detector(kind: str, keys: str = "") -> Writer:
    """Write what a program that ran a detector saves; the box has these keys, or is a list."""

    def write(folder: Path, rows: list[Row]) -> Path:
        if kind == "mmdetjson":
            for image in "ab":
                found = [row for row in rows if row[0] == image]
                lists = {"labels": [number(row[1]) for row in found], "bboxes": [row[2] for row in found]}
                dumped(folder / f"{image}.json", lists | {"scores": [row[3] for row in found]})
            return folder
        of_images: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
        for image, label, box, score in rows:
            sides = dict(zip(keys.split(), box, strict=False))
            of_images[image].append(
                {
                    "ultralytics": {"name": label, "class": 0, "confidence": score, "box": sides},
                    "pipeline": {"label": label, "score": score, "box": sides},
                    "roboflow": {"class": label, "confidence": score, **sides},
                    "darknetjson": {"name": label, "confidence": score, "relative_coordinates": sides},
                    "megadetector": {"category": label, "conf": score, "bbox": box},
                    "records": {"image": image, "label": label, "score": score, **sides},
                }[kind]
            )
        if kind == "records":
            return dumped(folder / "x.json", [*of_images["a"], *of_images["b"]])
        if kind == "darknetjson":
            frames = [
                {"frame_id": 1, "filename": f"{image}.jpg", "objects": of_images[image]} for image in "ab"
            ]
            return dumped(folder / "x.json", frames)
        if kind == "megadetector":
            found = [{"file": f"{image}.jpg", "detections": of_images[image]} for image in "ab"]
            names = {"cat": "cat", "dog": "dog"}
            return dumped(folder / "x.json", {"images": found, "detection_categories": names})
        for image, own in of_images.items():
            size = {"width": WIDTH, "height": HEIGHT}
            dumped(
                folder / f"{image}.json", {"image": size, "predictions": own} if kind == "roboflow" else own
            )
        return folder

    return write


def of_platform(kind: str, keys: str = "") -> Writer:
    """Write what an annotation platform exports; the box has these keys, or is a list."""

    def write(folder: Path, rows: list[Row]) -> Path:
        lines = []
        for image in "ab":
            own = [
                (row[1], row[2], dict(zip(keys.split(), row[2], strict=False)))
                for row in of_image(rows, image)
            ]
            name, size = f"{image}.jpg", {"width": WIDTH, "height": HEIGHT}
            if kind == "darwin":
                found: Any = [{"name": label, "bounding_box": sides} for label, _, sides in own]
                dumped(
                    folder / f"{image}.json", {"item": {"name": name, "slots": [size]}, "annotations": found}
                )
            elif kind == "superannotate":
                found = [{"type": "bbox", "className": label, "points": sides} for label, _, sides in own]
                dumped(folder / f"{image}.json", {"metadata": {"name": name, **size}, "instances": found})
            elif kind == "scale":
                lines += [
                    {"reference_id": name, "label": label, "type": "box", "geometry": sides}
                    for label, _, sides in own
                ]
            elif kind == "labelbox":
                found = [{"name": label, "bounding_box": sides} for label, _, sides in own]
                labels = {"p": {"labels": [{"annotations": {"objects": found}}]}}
                lines.append(
                    {"data_row": {"external_id": name}, "media_attributes": size, "projects": labels}
                )
            elif kind == "huggingface":
                objects = {"bbox": [box for _, box, _ in own], "categories": [label for label, _, _ in own]}
                lines.append({"file_name": image, **size, "objects": objects})
            else:
                boxes = [[number(label), *box] for label, box, _ in own]
                found = {"boxes": boxes}
                lines.append({"type": "image", "file": name, **size, "split": "val", "annotations": found})
        if kind == "ndjson":
            names = {"0": "cat", "1": "dog"}
            lines.insert(0, {"type": "dataset", "task": "detect", "class_names": names})
        if kind == "scale":
            return dumped(folder / "x.json", lines)
        if lines:
            path = folder / ("metadata.jsonl" if kind == "huggingface" else "x.ndjson")
            return text(path, [json.dumps(line) for line in lines])
        return folder

    return write


DETECTIONS: dict[str, tuple[str, Writer]] = {
    "coco": ("xywh", coco),
    "voc": ("xyxy", voc),
    "yolo": ("cxcywhn", yolo(lambda row: f"{number(row[1])} {words(row[2])} {row[3]}")),
    "darknet": ("cxcywhn", yolo(lambda row: f"{number(row[1])} {row[3]} {words(row[2])}")),
    "csv": ("xyxy", table("csv", "xmin,ymin,xmax,ymax")),
    "csv sides": ("xywh", table("csv", "left,top,w,h")),
    "csv one": ("xyxy", table("csv", "bbox")),
    "jsonl": ("xywh", table("jsonl", "left,top,width,height")),
    "parquet": ("cxcywh", table("parquet", "cx,cy,w,h")),
    "text": ("xyxy", per_image(lambda row: f"{row[1]} {row[3]} {words(row[2])}")),
    "openimages": ("xyxyn", open_images_found),
    "dota": ("xyxy", dota),
    "columns": ("xyxy", columns),
    "cvat": ("xyxy", cvat),
    "labelme": ("xyxy", labelme),
    "labelstudio": ("xywhn", labelstudio),
    "datumaro": ("xywh", datumaro),
    "bdd": ("xyxy", bdd),
    "createml": ("cxcywh", createml),
    "fiftyone": ("xywhn", fiftyone),
    "crowdhuman": ("xywh", crowdhuman),
    "widerface": ("xywh", widerface),
    "visdrone": ("xywh", per_image(lambda row: f"{words(row[2], ',')},{row[3]},{number(row[1], 1)},-1,-1")),
    "kitti": ("xyxy", per_image(lambda row: f"{row[1]} -1 -1 -10 {words(row[2])} 1 1 1 0 0 0 0 {row[3]}")),
    "tfrecord": ("xyxyn", lambda folder, rows: tfrecord(folder, rows, "detection")),
    "ultralytics": ("xyxy", of_detector("ultralytics", "x1 y1 x2 y2")),
    "pipeline": ("xyxy", of_detector("pipeline", "xmin ymin xmax ymax")),
    "roboflow": ("cxcywh", of_detector("roboflow", "x y width height")),
    "mmdetjson": ("xyxy", of_detector("mmdetjson")),
    "darknetjson": ("cxcywhn", of_detector("darknetjson", "center_x center_y width height")),
    "megadetector": ("xywhn", of_detector("megadetector")),
    "records": ("xyxy", of_detector("records", "x1 y1 x2 y2")),
}
TRUTHS: dict[str, tuple[str, Writer]] = {
    "coco": ("xywh", coco_truth),
    "voc": ("xyxy", voc_truth),
    "yolo": ("cxcywhn", yolo(lambda row: f"{number(row[1])} {words(row[2])}")),
    "csv": ("xyxy", table("csv", "xmin,ymin,xmax,ymax")),
    "openimages": ("xyxyn", open_images),
    "labelme": ("xyxy", labelme),
    "labelstudio": ("xywhn", labelstudio),
    "datumaro": ("xywh", datumaro),
    "bdd": ("xyxy", bdd),
    "createml": ("cxcywh", createml),
    "fiftyone": ("xywhn", fiftyone),
    "crowdhuman": ("xywh", crowdhuman_truth),
    "citypersons": ("xywh", citypersons),
    "cvat": ("xyxy", cvat),
    "via": ("xywh", via),
    "vott": ("xywh", vott),
    "sagemaker": ("xywh", sagemaker),
    "supervisely": ("xyxy", supervisely),
    "tfrecord": ("xyxyn", tfrecord),
    "labelbox": ("xywh", of_platform("labelbox", "left top width height")),
    "darwin": ("xywh", of_platform("darwin", "x y w h")),
    "superannotate": ("xyxy", of_platform("superannotate", "x1 y1 x2 y2")),
    "scale": ("xywh", of_platform("scale", "x y width height")),
    "ndjson": ("cxcywhn", of_platform("ndjson")),
    "huggingface": ("xywh", of_platform("huggingface")),
    "vertex": ("xyxyn", vertex),
    "ibm": ("xyxyn", ibm),
    "edgeimpulse": ("xywh", edgeimpulse),
    "unity": ("xywh", unity),
    "odvg": ("xyxy", odvg),
    "openlabel": ("cxcywh", openlabel),
    "keras": ("xyxy", keras),
}
ONE_CLASS = {"crowdhuman": "person", "widerface": "face", "citypersons": "person"}
NO_FRACTIONS = {"columns", "supervisely"}
"""Such numbers are refused, or moved by a pixel, when they are written."""


def images() -> Any:
    return boxscore.data.vocabulary.Images.build(
        ["a", "b"], file_names=["a.jpg", "b.jpg"], sizes=np.array([[WIDTH, HEIGHT]] * 2, dtype=float)
    )


def numbers(corners: Any, form: str) -> list[list[float]]:
    """Write corners in a form."""
    plain = form.removesuffix("n")
    straight: Any = {"yxyx": "xyxy", "yxhw": "xywh"}.get(plain, plain)
    boxes = np.array(corners, dtype=np.float64)
    if plain != form:
        boxes = boxes / [WIDTH, HEIGHT, WIDTH, HEIGHT]
    boxes = box_convert(boxes, "xyxy", straight)
    return (boxes[:, [1, 0, 3, 2]] if plain.startswith("y") else boxes).tolist()


def labels(name: str, own: list[str]) -> list[str]:
    if name == "visdrone":
        return [{"cat": "pedestrian", "dog": "people"}[label] for label in own]
    return [ONE_CLASS[name]] * len(own) if name in ONE_CLASS else own


def truth(name: str) -> GroundTruth:
    own = labels(name, LABELS)
    ids = {label: at for at, label in enumerate(sorted(set(own)), start=1)}
    found = [ids[label] for label in own]
    known = {at: label for label, at in ids.items()}
    shared = images()
    if name == "widerface":
        shared = boxscore.data.vocabulary.Images.build(["0--Parade/a", "0--Parade/b"], sizes=shared.sizes)
        return GroundTruth.from_arrays(
            [f"0--Parade/{one}" for one in IMAGES], found, TRUTH, images=shared, categories=known
        )
    return GroundTruth.from_arrays(IMAGES, found, TRUTH, images=shared, categories=known)


def found(name: str) -> Detections:
    own = labels(name, FOUND_LABELS)
    folder = "0--Parade/" if name == "widerface" else ""
    return Detections.from_arrays([f"{folder}{one}" for one in FOUND_IMAGES], own, FOUND, SCORES)


def written(name: str, side: dict[str, tuple[str, Writer]], form: str, folder: Path) -> Path:
    of_found = side is DETECTIONS
    boxes = numbers(FOUND if of_found else TRUTH, form)
    if name == "labelstudio" and not form.endswith("n"):
        boxes = [[one / 100 for one in box] for box in boxes]  # the writer takes per cent
    rows = list(
        zip(
            FOUND_IMAGES if of_found else IMAGES,
            FOUND_LABELS if of_found else LABELS,
            boxes,
            SCORES if of_found else [1.0] * 5,
            strict=True,
        )
    )
    if name == "supervisely":  # the last pixel belongs to the box
        ends = [0, 0, 1, 1] if form in ("xyxy", "yxyx") else [0, 0, 0, 0]
        rows = [(i, k, [n - e for n, e in zip(box, ends, strict=True)], s) for i, k, box, s in rows]
    (folder / "data").mkdir()
    return side[name][1](folder / "data", rows)


def content(table: GroundTruth | Detections) -> list[Any]:
    names = (table.images.ids[table.image], table.categories.names[table.category])
    return sorted(
        zip(
            *(map(str, one.tolist()) for one in names),
            table.boxes.tolist(),
            table.sizes.tolist(),
            strict=True,
        )
    )


def forms(name: str, native: str) -> list[str]:
    """Every form that its numbers can be written in."""
    if name in NO_FRACTIONS:
        return [form for form in WRITTEN_FORMATS if not form.endswith("n")]
    if name == "labelstudio":
        return [form for form in WRITTEN_FORMATS if form.endswith("n")]
    return list(WRITTEN_FORMATS)


@pytest.mark.filterwarnings("ignore:.*the pipeline cut boxes to whole pixels")
@pytest.mark.parametrize("name", first_of(6, DETECTIONS))
def test_detections_in_a_wrong_form_are_corrected(name: str, tmp_path: Path) -> None:
    native, known = DETECTIONS[name][0], truth(name)
    expected = found(name)
    options: Any = {"format": name.split()[0]} | ({"classes": ["cat", "dog"]} if name == "mmdetjson" else {})
    number = evaluate(known, expected)["AP"]
    assert 0.3 < number < 0.9
    (tmp_path / "native").mkdir()
    path = written(name, DETECTIONS, native, tmp_path / "native")
    right = load_detections(
        path, known, **options, **({"box_format": "xyxy"} if name in ("text", "csv one") else {})
    )
    assert content(right) == content(align(expected, known))
    for form in forms(name, native):
        (tmp_path / form).mkdir()
        said = form.removesuffix("n") if name == "labelstudio" else form
        try:
            path = written(name, DETECTIONS, form, tmp_path / form)
        except pytest.skip.Exception:
            continue
        table = load_detections(path, known, box_format=said, **options)
        assert content(table) == content(right), form
        assert evaluate(known, table)["AP"] == number, form


@pytest.mark.parametrize("name", first_of(5, TRUTHS))
def test_ground_truth_in_a_wrong_form_is_corrected(name: str, tmp_path: Path) -> None:
    native, known = TRUTHS[name][0], truth(name)
    sizes = {"a.jpg": (WIDTH, HEIGHT), "b.jpg": (WIDTH, HEIGHT), "a": (WIDTH, HEIGHT), "b": (WIDTH, HEIGHT)}
    options: Any = {"format": name}
    if name in ("yolo", "openimages", "vertex", "ibm"):
        options["image_sizes"] = sizes
    if name == "yolo":
        options["classes"] = ["cat", "dog"]
    number = evaluate(known, found(name))["AP"]
    (tmp_path / "native").mkdir()
    right = load_ground_truth(written(name, TRUTHS, native, tmp_path / "native"), **options)
    assert content(right) == content(known)
    for form in forms(name, native):
        (tmp_path / form).mkdir()
        said = form.removesuffix("n") if name == "labelstudio" else form
        if said.endswith("n"):
            options["image_sizes"] = sizes
        table = load_ground_truth(written(name, TRUTHS, form, tmp_path / form), box_format=said, **options)
        assert content(table) == content(right), form
        assert table.area.tolist() == right.area.tolist(), form
        assert evaluate(table, found(name))["AP"] == number, form


OF_OTHERS = {"hrsc", "answers", "cityscapes", "xview", "pickled", "mot"}
OF_COCO = {"saco", "refcoco", "omnilabel"}
"""Whose boxes COCO's reader or the rows read; answers say what their numbers are."""


def test_every_format_is_here() -> None:
    known = {name.split()[0] for name in (*DETECTIONS, *TRUTHS)}
    assert set(format_names(auto=False)) - known == {*OF_OTHERS, *OF_COCO}


def test_the_option_on_the_command_line(tmp_path: Path, run: Run) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "d").mkdir()
    paths = [
        written("coco", TRUTHS, "yxyxn", tmp_path / "t"),
        written("coco", DETECTIONS, "cxcywhn", tmp_path / "d"),
    ]
    options = ["--gt-box-format", "yxyxn", "--dt-box-format", "cxcywhn", "--output", "json", "-q"]
    printed = json.loads(run("evaluate", *paths, *options).out)["metrics"]
    assert printed["AP"] == evaluate(truth("coco"), found("coco"))["AP"]
    assert (
        "--dt-box-format does not take 'yxwh'; did you mean 'yxhw'?\nPossible values: xyxy, xywh, cxcywh, yxyx,"
        in run.error("evaluate", *paths, "--dt-box-format", "yxwh")
    )


def test_areas_that_a_file_lacks_are_those_of_the_form(tmp_path: Path) -> None:
    path = written("coco", TRUTHS, "yxyx", tmp_path)
    content = json.loads(path.read_text())
    for annotation in content["annotations"]:
        del annotation["area"]
    with pytest.warns(BoxscoreWarning, match="5 annotations lack an area; the box area decides"):
        table = load_ground_truth(dumped(path, content), box_format="yxyx")
    assert table.area.tolist() == AREAS


def test_boxes_of_other_numbers_have_no_form(tmp_path: Path) -> None:
    record = [{"image_id": "a", "category_id": 1, "bbox": [9, 9, 4, 4, 30], "score": 0.5}]
    with pytest.raises(
        InputError, match=r"box_format must be left out where boxes are not four numbers\. Got xyxy"
    ):
        load_detections(dumped(tmp_path / "r.json", record), truth("coco"), box_format="xyxy")
    points = [{"label": "cat", "points": [[1, 1], [5, 1], [5, 5]], "shape_type": "polygon", "flags": {}}]
    path = dumped(tmp_path / "a.json", {"shapes": points, "imagePath": "a.jpg", "imageData": None})
    with pytest.raises(InputError, match=r"left out where there are other shapes than boxes\. Got 1 of them"):
        load_ground_truth(path, box_format="xyxy")


def test_fractions_need_the_size_of_their_image(tmp_path: Path) -> None:
    path, known = written("coco", DETECTIONS, "xyxyn", tmp_path), truth("coco")
    unsized = known.replaced(images=boxscore.data.vocabulary.Images.build(["a", "b"]))
    rule = r"an image must have a known size where boxes are fractions of it\. Got none in detection 0"
    with pytest.raises(InputError, match=rule):
        load_detections(path, unsized, box_format="xyxyn")
    sizes = {"a": (WIDTH, HEIGHT), "b": (WIDTH, HEIGHT)}
    table = load_detections(path, unsized, box_format="xyxyn", image_sizes=sizes)
    assert evaluate(unsized, table)["AP"] == evaluate(known, found("coco"))["AP"]


def test_a_form_that_is_said_and_wrong_is_doubted(tmp_path: Path) -> None:
    path = written("coco", DETECTIONS, "xywh", tmp_path)
    with pytest.warns(
        BoxscoreWarning, match=r"read as yxhw, 33% of the boxes extend outside .*Is that their format\?"
    ):
        load_detections(path, truth("coco"), box_format="yxhw")


# ---------------------------------------------------------------- without the sizes of images


def right_boxes(kind: str, random: np.random.Generator) -> Any:
    """Corners of 500 boxes as data sets have them, clipped to images of 400 to 800 pixels."""
    extent = random.integers(400, 800, (500, 2))
    share = {"small": (0.01, 0.05), "any": (0.02, 0.7), "large": (0.4, 0.95), "whole": (0.9, 1.0)}
    sides = random.uniform(*share.get(kind, share["any"]), (500, 2)) * extent
    center = random.uniform(0, 1, (500, 2)) * extent
    if kind in ("large", "whole"):
        center = extent * random.normal(0.5, 0.05, (500, 2))
    return np.hstack([center - sides / 2, center + sides / 2]).clip(0, np.tile(extent, 2))


@pytest.mark.parametrize("kind", ["small", "any", "large", "whole"])
def test_boxes_are_judged_without_images(kind: str) -> None:
    """Right boxes are never doubted; corners are seen unless all objects are large, centers if boxes are clipped."""
    for seed in range(20):
        corners = right_boxes(kind, np.random.default_rng(seed))
        for each in (corners, np.round(corners), corners / 800):
            sizes = each[:, 2:] - each[:, :2]
            for numbers in (np.hstack([each[:, :2], sizes]), np.hstack([each[:, 1::-1], sizes[:, ::-1]])):
                assert judged(numbers) is None
        if kind in ("small", "any"):
            for order in ([0, 1, 2, 3], [1, 0, 3, 2]):
                assert judged(corners[:, order]) == "x1,y1,x2,y2"
        centers = box_convert(corners, "xyxy", "cxcywh")
        if kind != "large":  # a few of these are clipped
            assert judged(centers) == (None if kind == "small" else "center x,center y,width,height")


def judged(numbers: Any) -> str | None:
    table = Detections.from_arrays([1] * 500, ["cat"] * 500, numbers, [0.5] * 500, box_format="xywh")
    order = box_order(table, given_sizes=True)
    return None if order is None else order.reading


def many(outside: float, *, scale: float = 1.0, unknown: int = 0) -> GroundTruth:
    """30,000 boxes in 300 images, of which a share leaves its image by half."""
    count = 30_000
    corners = np.tile([[10.0, 20.0, 110.0, 140.0]], (count, 1))
    corners[np.random.default_rng(3).permutation(count)[: round(outside * count)]] += 560.0
    image = np.arange(count) % 300
    table = GroundTruth.from_arrays(image, ["cat"] * count, corners * scale)
    sizes = np.full((300, 2), 640.0)
    sizes[:unknown] = np.nan
    return dataclasses.replace(table, images=Images.build(np.arange(300), sizes=sizes))


def test_a_few_thousand_boxes_show_that_all_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tables are right: the numbers of the other readings are made of none of their boxes."""
    asked: list[int] = []
    numbers = _box_order._numbers
    monkeypatch.setattr(_box_order, "_numbers", lambda *a, **b: asked.append(1) or numbers(*a, **b))
    assert box_order(many(0.06), given_sizes=True) is None
    assert not asked


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (many(0.11), "read as x,y,width,height, 11% of the boxes extend outside their image"),
        (many(0.0, scale=0.002), "all coordinates are in [0, 1]"),
    ],
)
def test_a_first_look_lets_nothing_odd_pass(table: GroundTruth, said: str) -> None:
    order = box_order(table, given_sizes=True)
    assert order is not None
    assert order.message.startswith(said)


def test_a_first_look_knows_unknown_sizes() -> None:
    """Where half of the images have no size, the share is of the others' boxes."""
    order = box_order(many(0.12, unknown=150), given_sizes=True)
    assert order is not None
    assert order.message.startswith("read as x,y,width,height, 12% of the boxes extend outside their image")


def test_a_warning_of_the_form_names_the_argument_too(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays(
        [1], [1], [[100, 100, 130, 130]], images=Images.build([1], sizes=[[200, 200]])
    )
    corners = [[100 + at, 50 + at, 130 + at, 90 + at] for at in range(40)]
    records = [{"image_id": 1, "category_id": 1, "bbox": box, "score": 0.5} for box in corners]
    (tmp_path / "dt.json").write_text(json.dumps(records))
    said = r"Are these y1,x1,y2,x2\? Use --dt-box-format yxyx \(in Python box_format=\)\.$"
    with pytest.warns(boxscore.BoxscoreWarning, match=said):
        boxscore.load_detections(tmp_path / "dt.json", truth)
