"""Make ``layouts``: one small data set in the forms that people hold, each as its own tool writes it.

Goal
----
The page "Your data" evaluates every one of them, and all must give the same numbers.

Conventions
-----------
- Eight images of ``shapes_coco`` without crowds, and its first four classes, numbered anew: images 1 to 8
  with files ``img_101.png``, classes 1 to 4 (0 to 3 where a tool counts from 0).
- Areas are those of the boxes, and no box reaches out of its image: what every layout can say.
- Pictures are blank: of them only the size is read.
- The same bytes on every machine. Numbers have the digits that the tool writes.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from drawing import png
from make_samples import coco_file, one_line_each

HERE = Path(__file__).parent
IMAGES = (101, 117, 122, 130, 138, 143, 180, 193)
CLASSES = ("circle", "square", "triangle", "star")


@dataclass(frozen=True)
class Box:
    """An object or a detection: place of its class in `CLASSES`, corners in pixels, score."""

    place: int
    x1: float
    y1: float
    x2: float
    y2: float
    score: float

    @property
    def name(self) -> str:
        """Name of the class."""
        return CLASSES[self.place]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return round(self.x2 - self.x1, 2), round(self.y2 - self.y1, 2)

    @property
    def xywh(self) -> list[float]:
        """Corner and size."""
        return [self.x1, self.y1, *self.size]

    @property
    def xyxy(self) -> list[float]:
        """Both corners."""
        return [self.x1, self.y1, self.x2, self.y2]


@dataclass(frozen=True)
class Image:
    """An image with its objects and detections."""

    number: int
    stem: str
    width: int
    height: int
    objects: list[Box]
    detections: list[Box]

    @property
    def file(self) -> str:
        """Name of the image's file."""
        return f"{self.stem}.png"


def read_images() -> list[Image]:
    """Take the part of ``shapes_coco``."""
    truth = json.loads((HERE / "shapes_coco" / "instances.json").read_text())
    detections = json.loads((HERE / "shapes_coco" / "detections.json").read_text())
    places = {row["id"]: CLASSES.index(row["name"]) for row in truth["categories"] if row["name"] in CLASSES}
    sizes = {row["id"]: (row["width"], row["height"]) for row in truth["images"]}
    images = []
    for number, id_ in enumerate(IMAGES, start=1):
        width, height = sizes[id_]
        sides: list[list[Box]] = []
        for rows in (truth["annotations"], detections):
            boxes = []
            for row in rows:
                if row["image_id"] == id_ and row["category_id"] in places:
                    x, y, w, h = row["bbox"]
                    corners = (max(x, 0), max(y, 0), min(x + w, width), min(y + h, height))
                    x1, y1, x2, y2 = (round(float(value), 2) for value in corners)
                    boxes.append(Box(places[row["category_id"]], x1, y1, x2, y2, row.get("score", 1.0)))
            sides.append(boxes)
        images.append(Image(number, f"img_{id_}", width, height, sides[0], sides[1]))
    return images


def picture(image: Image) -> bytes:
    """Return a blank picture of an image's size."""
    return png(np.zeros((image.height, image.width), np.uint8), [(255, 255, 255)])


def lines(rows: list[str]) -> bytes:
    """Write one row per line."""
    return "".join(f"{row}\n" for row in rows).encode()


# ---------------------------------------------------------------- the layouts


def coco(images: list[Image]) -> dict[str, bytes]:
    """Make COCO's annotations, and a list of results."""
    rows = [(image, box) for image in images for box in image.objects]
    truth = coco_truth(images, [image.file for image in images], first=1)
    truth["annotations"] = [
        annotation(number, image.number, box) for number, (image, box) in enumerate(rows, 1)
    ]
    results = [
        {"image_id": image.number, "category_id": box.place + 1, "bbox": box.xywh, "score": box.score}
        for image in images
        for box in image.detections
    ]
    return {
        "coco/instances.json": coco_file(truth),
        "coco/results.json": (one_line_each(results) + "\n").encode(),
    }


def coco_truth(images: list[Image], files: list[str], *, first: int) -> dict[str, Any]:
    """Return a COCO object without annotations, its images numbered from ``first``."""
    return {
        "images": [
            {"id": image.number - 1 + first, "file_name": file, "width": image.width, "height": image.height}
            for image, file in zip(images, files, strict=True)
        ],
        "annotations": [],
        "categories": [{"id": place, "name": name} for place, name in enumerate(CLASSES, start=1)],
    }


def annotation(number: int, image: int, box: Box) -> dict[str, object]:
    """Return a record of COCO."""
    width, height = box.size
    return {
        "id": number,
        "image_id": image,
        "category_id": box.place + 1,
        "bbox": box.xywh,
        "area": width * height,
        "iscrowd": 0,
    }


def roboflow(images: list[Image]) -> dict[str, bytes]:
    """Make Roboflow's COCO export: class 0 is the project, ids from 0, a hash in each file's name."""
    files = [f"{image.stem}_png.rf.{image.number:032x}.jpg" for image in images]
    rows = [(image, box) for image in images for box in image.objects]
    truth = coco_truth(images, files, first=0)
    truth["annotations"] = [
        annotation(number, image.number - 1, box) for number, (image, box) in enumerate(rows)
    ]
    truth["categories"] = [
        {"id": 0, "name": "shapes", "supercategory": "none"},
        *(
            {"id": place, "name": name, "supercategory": "shapes"}
            for place, name in enumerate(CLASSES, start=1)
        ),
    ]
    return {
        "roboflow/valid/_annotations.coco.json": coco_file(truth),
        "roboflow/predictions.json": predictions(images, files),
    }


def predictions(images: list[Image], files: list[str]) -> bytes:
    """Write ultralytics' ``predictions.json``."""
    rows = [
        {
            "image_id": file.rpartition(".")[0],
            "file_name": file,
            "category_id": box.place + 1,
            "bbox": [round(value, 3) for value in box.xywh],
            "score": round(box.score, 5),
        }
        for image, file in zip(images, files, strict=True)
        for box in image.detections
    ]
    return (one_line_each(rows) + "\n").encode()


def yolo(images: list[Image]) -> dict[str, bytes]:
    """Make a data set of ultralytics, and what ``yolo val save_txt save_conf save_json`` writes."""

    def line(image: Image, box: Box) -> str:
        width, height = image.width, image.height
        center = ((box.x1 + box.x2) / 2 / width, (box.y1 + box.y2) / 2 / height)
        size = ((box.x2 - box.x1) / width, (box.y2 - box.y1) / height)
        return f"{box.place} " + " ".join(f"{value:.6f}" for value in (*center, *size))

    names = "".join(f"  {place}: {name}\n" for place, name in enumerate(CLASSES))
    files = {"yolo/data.yaml": f"path: .\ntrain: images/train\nval: images/val\nnames:\n{names}".encode()}
    for image in images:
        files[f"yolo/images/val/{image.file}"] = picture(image)
        if image.objects:
            files[f"yolo/labels/val/{image.stem}.txt"] = lines([line(image, box) for box in image.objects])
        if image.detections:
            found = [f"{line(image, box)} {box.score:g}" for box in image.detections]
            files[f"yolo/runs/val/labels/{image.stem}.txt"] = lines(found)
    files["yolo/runs/val/predictions.json"] = predictions(images, [image.file for image in images])
    return files


def voc(images: list[Image]) -> dict[str, bytes]:
    """Make a folder of XML files, as LabelImg writes them, and results of the VOC devkit."""
    files = {}
    results = defaultdict(list)
    for image in images:
        objects = "".join(
            f"\t<object>\n\t\t<name>{box.name}</name>\n\t\t<difficult>0</difficult>\n\t\t<bndbox>\n"
            + "".join(
                f"\t\t\t<{tag}>{value:g}</{tag}>\n"
                for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), box.xyxy, strict=True)
            )
            + "\t\t</bndbox>\n\t</object>\n"
            for box in image.objects
        )
        size = f"<width>{image.width}</width><height>{image.height}</height><depth>3</depth>"
        files[f"voc/Annotations/{image.stem}.xml"] = (
            f"<annotation>\n\t<filename>{image.file}</filename>\n\t<size>{size}</size>\n{objects}</annotation>\n"
        ).encode()
        for box in image.detections:
            corners = " ".join(f"{value:g}" for value in box.xyxy)
            results[box.name].append(f"{image.stem} {box.score:g} {corners}")
    return files | {f"voc/results/comp4_det_val_{name}.txt": lines(rows) for name, rows in results.items()}


def tables(images: list[Image]) -> dict[str, bytes]:
    """Make CSV files with a row per box; images without objects have a row without a box."""
    head = "filename,width,height,class,xmin,ymin,xmax,ymax"
    truth, results = [head], ["filename,class,confidence,xmin,ymin,xmax,ymax"]
    for image in images:
        start = f"{image.file},{image.width},{image.height}"
        truth += [f"{start},{box.name}," + numbers(box.xyxy) for box in image.objects] or [f"{start},,,,,"]
        results += [f"{image.file},{box.name},{box.score:g}," + numbers(box.xyxy) for box in image.detections]
    return {"csv/objects.csv": lines(truth), "csv/detections.csv": lines(results)}


def numbers(values: list[float]) -> str:
    """Write numbers with commas between."""
    return ",".join(f"{value:g}" for value in values)


def cvat(images: list[Image]) -> dict[str, bytes]:
    """Make CVAT for images 1.1."""
    labels = "".join(f"<label><name>{name}</name></label>" for name in CLASSES)
    rows = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", "  <version>1.1</version>"]
    rows += [f"  <meta><task><size>{len(images)}</size><labels>{labels}</labels></task></meta>"]
    for image in images:
        size = f'width="{image.width}" height="{image.height}"'
        rows.append(f'  <image id="{image.number - 1}" name="{image.file}" {size}>')
        for box in image.objects:
            corners = " ".join(
                f'{name}="{value:.2f}"'
                for name, value in zip(("xtl", "ytl", "xbr", "ybr"), box.xyxy, strict=True)
            )
            rows.append(
                f'    <box label="{box.name}" occluded="0" source="manual" {corners} z_order="0"></box>'
            )
        rows.append("  </image>")
    return {"cvat/annotations.xml": lines([*rows, "</annotations>"])}


def labelme(images: list[Image]) -> dict[str, bytes]:
    """Make LabelMe's form, a JSON file per image."""
    files = {}
    for image in images:
        shapes = [
            {
                "label": box.name,
                "points": [box.xyxy[:2], box.xyxy[2:]],
                "shape_type": "rectangle",
                "flags": {},
            }
            for box in image.objects
        ]
        size = {"imageHeight": image.height, "imageWidth": image.width}
        rest = {"imagePath": image.file, "imageData": None, **size}
        files[f"labelme/{image.stem}.json"] = coco_file(
            {"version": "5.5.0", "flags": {}, "shapes": shapes, **rest}
        )
    return files


def label_studio(images: list[Image]) -> dict[str, bytes]:
    """Make Label Studio's JSON: annotations, and predictions with scores."""

    def region(image: Image, box: Box, **more: object) -> dict[str, object]:
        width, height = box.size
        value = {
            "x": 100 * box.x1 / image.width,
            "y": 100 * box.y1 / image.height,
            "width": 100 * width / image.width,
            "height": 100 * height / image.height,
            "rotation": 0,
            "rectanglelabels": [box.name],
        }
        return {
            "type": "rectanglelabels",
            "from_name": "label",
            "to_name": "image",
            "original_width": image.width,
            "original_height": image.height,
            "value": value,
            **more,
        }

    tasks = [
        {
            "id": image.number,
            "data": {"image": f"/data/upload/1/{image.number:08x}-{image.file}"},
            "annotations": [{"id": image.number, "result": [region(image, box) for box in image.objects]}],
            "predictions": [
                {
                    "id": image.number,
                    "result": [region(image, box, score=box.score) for box in image.detections],
                }
            ],
        }
        for image in images
    ]
    return {"labelstudio/tasks.json": (one_line_each(tasks) + "\n").encode()}


def text(images: list[Image]) -> dict[str, bytes]:
    """Make the folders of Cartucho's script, a text file per image, corners in pixels."""
    files = {}
    for image in images:
        truth = [f"{box.name} " + " ".join(f"{value:g}" for value in box.xyxy) for box in image.objects]
        found = [
            f"{box.name} {box.score:g} " + " ".join(f"{value:g}" for value in box.xyxy)
            for box in image.detections
        ]
        files[f"text/ground-truth/{image.stem}.txt"] = lines(truth)
        files[f"text/detection-results/{image.stem}.txt"] = lines(found)
    return files


LAYOUTS: tuple[Callable[[list[Image]], dict[str, bytes]], ...] = (
    *(coco, roboflow, yolo, voc, tables, cvat, labelme, label_studio, text),
)


def layouts() -> dict[str, bytes]:
    """Return every file by its name below ``layouts``."""
    images = read_images()
    return {name: content for layout in LAYOUTS for name, content in layout(images).items()}


def main() -> None:
    """Write the layouts."""
    parser = argparse.ArgumentParser(description="Make boxscore's sample in the forms of many tools.")
    parser.add_argument("--output", type=Path, default=HERE, help="folder (default: datasets)")
    folder = parser.parse_args().output
    for name, content in layouts().items():
        path = folder / "layouts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main()
