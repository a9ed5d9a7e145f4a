"""The data sets that every tool is run on, written in one form that tools and boxscore both read.

A folder holds ``images``, ``classes``, ``truths`` and ``detections`` in ``data.json``, and the same again as COCO
files (``instances.json``, ``results.json``) or as a VOC folder (``VOC2007``, ``results``). Real sets are read in
place and never copied into the project.
"""

from __future__ import annotations

import dataclasses
import json
import os
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
SAMPLES = PROJECT / "datasets"
REAL = Path(os.environ.get("BOXSCORE_REAL_DATA") or PROJECT.parent / "shared" / "data")

Record = dict[str, Any]


@dataclasses.dataclass
class DataSet:
    """Ground truth and detections; boxes are corners in VOC sets, and corner and sizes in COCO sets.

    Attributes
    ----------
    form : {"coco", "voc"}
    images : list of dict
        ``id``, ``width``, ``height``.
    classes : list of str
    truths : list of dict
        ``image`` (its id), ``class`` (its row), ``box``, ``difficult``, ``crowd``, ``area``.
    detections : list of dict
        ``image``, ``class``, ``box``, ``score``.
    """

    form: str
    images: list[Record]
    classes: list[str]
    truths: list[Record]
    detections: list[Record]

    def with_parted_ties(self) -> DataSet:
        """Give every detection a score of its own, in the order in which a stable sort counts them.

        In COCO sets that is by image, in VOC sets by file.
        """
        image = {item["id"]: row for row, item in enumerate(self.images)}
        rows = range(len(self.detections))
        key: Callable[[int], Any] = lambda row: -self.detections[row]["score"]  # noqa: E731
        if self.form == "coco":
            key = lambda row: (-self.detections[row]["score"], image[self.detections[row]["image"]])  # noqa: E731
        step = 0.998 / max(len(rows), 1)
        score = {row: 1 - rank * step for rank, row in enumerate(sorted(rows, key=key))}
        parted = [{**item, "score": score[row]} for row, item in enumerate(self.detections)]
        return dataclasses.replace(self, detections=parted)

    def write(self, folder: Path) -> None:
        """Write the set in every form that a tool reads."""
        folder.mkdir(parents=True)
        (folder / "data.json").write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")
        if self.form == "coco":
            self._write_coco(folder)
        else:
            self._write_voc(folder)

    def _write_coco(self, folder: Path) -> None:
        instances = {
            "images": [{**image, "file_name": f"{image['id']}.jpg"} for image in self.images],
            "categories": [{"id": row + 1, "name": name} for row, name in enumerate(self.classes)],
            "annotations": [
                {
                    "id": row + 1,
                    "image_id": truth["image"],
                    "category_id": truth["class"] + 1,
                    "bbox": truth["box"],
                    "area": truth["area"],
                    "iscrowd": int(truth["crowd"]),
                }
                for row, truth in enumerate(self.truths)
            ],
        }
        results = [
            {
                "image_id": found["image"],
                "category_id": found["class"] + 1,
                "bbox": found["box"],
                "score": found["score"],
            }
            for found in self.detections
        ]
        (folder / "instances.json").write_text(json.dumps(instances), encoding="utf-8")
        (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")

    def _write_voc(self, folder: Path) -> None:
        annotations = folder / "VOC2007" / "Annotations"
        sets = folder / "VOC2007" / "ImageSets" / "Main"
        for path in (annotations, sets, folder / "results"):
            path.mkdir(parents=True)
        (sets / "test.txt").write_text("".join(f"{image['id']}\n" for image in self.images), encoding="utf-8")
        truths: dict[str, list[Record]] = defaultdict(list)
        for truth in self.truths:
            truths[truth["image"]].append(truth)
        for image in self.images:
            root = ElementTree.Element("annotation")
            ElementTree.SubElement(root, "filename").text = f"{image['id']}.jpg"
            size = ElementTree.SubElement(root, "size")
            for name in ("width", "height"):
                ElementTree.SubElement(size, name).text = str(image[name])
            ElementTree.SubElement(size, "depth").text = "3"
            for truth in truths[image["id"]]:
                item = ElementTree.SubElement(root, "object")
                ElementTree.SubElement(item, "name").text = self.classes[truth["class"]]
                ElementTree.SubElement(item, "pose").text = "Unspecified"
                ElementTree.SubElement(item, "truncated").text = "0"
                ElementTree.SubElement(item, "difficult").text = str(int(truth["difficult"]))
                box = ElementTree.SubElement(item, "bndbox")
                for name, value in zip(("xmin", "ymin", "xmax", "ymax"), truth["box"], strict=True):
                    ElementTree.SubElement(box, name).text = str(value)
            ElementTree.ElementTree(root).write(annotations / f"{image['id']}.xml")
        found: dict[int, list[str]] = {row: [] for row in range(len(self.classes))}
        for item in self.detections:
            corners = " ".join(map(repr, item["box"]))
            found[item["class"]].append(f"{item['image']} {item['score']!r} {corners}\n")
        for row, lines in found.items():
            path = folder / "results" / f"comp4_det_test_{self.classes[row]}.txt"
            path.write_text("".join(lines), encoding="utf-8")


def read_coco(instances: Path, results: Path) -> DataSet:
    """Read COCO files; image ids stay, categories become rows."""
    truth = json.loads(instances.read_text(encoding="utf-8"))
    row = {category["id"]: number for number, category in enumerate(truth["categories"])}
    images = sorted(truth["images"], key=lambda image: image["id"])
    return DataSet(
        "coco",
        [{key: image[key] for key in ("id", "width", "height")} for image in images],
        [category["name"] for category in truth["categories"]],
        [
            {
                "image": item["image_id"],
                "class": row[item["category_id"]],
                "box": [float(value) for value in item["bbox"]],
                "area": float(item["area"]),
                "crowd": bool(item.get("iscrowd", 0)),
                "difficult": False,
            }
            for item in truth["annotations"]
        ],
        [
            {
                "image": item["image_id"],
                "class": row[item["category_id"]],
                "box": [float(value) for value in item["bbox"]],
                "score": float(item["score"]),
            }
            for item in json.loads(results.read_text(encoding="utf-8"))
        ],
    )


def _truths_of_voc(
    annotations: Path, names: list[str], classes: list[str]
) -> tuple[list[Record], list[Record]]:
    images, truths = [], []
    for name in names:
        root = ElementTree.parse(annotations / f"{name}.xml").getroot()
        width, height = (int(float(root.findtext(f"size/{side}") or 1)) for side in ("width", "height"))
        images.append({"id": name, "width": width, "height": height})
        for item in root.findall("object"):
            corners = [item.findtext(f"bndbox/{side}") or "" for side in ("xmin", "ymin", "xmax", "ymax")]
            truths.append(
                {
                    "image": name,
                    "class": classes.index(item.findtext("name") or ""),
                    "box": [round(float(corner)) for corner in corners],  # voc_eval refuses "48.25"
                    "difficult": item.findtext("difficult") == "1",
                    "crowd": False,
                    "area": 0.0,
                }
            )
    return images, truths


def read_voc(folder: Path, results: Path) -> DataSet:
    """Read a VOC folder and results files."""
    names = (folder / "ImageSets" / "Main" / "test.txt").read_text().split()
    found = {path.stem.rsplit("_", 1)[1]: path for path in results.glob("comp4_det_test_*.txt")}
    annotated = {
        name.text or ""
        for image in names
        for name in ElementTree.parse(folder / "Annotations" / f"{image}.xml")
        .getroot()
        .findall("object/name")
    }
    classes = sorted(annotated | set(found))
    images, truths = _truths_of_voc(folder / "Annotations", names, classes)
    detections = []
    for name in sorted(found):
        for line in found[name].read_text().splitlines():
            image, score, *corners = line.split()
            detections.append(
                {
                    "image": image,
                    "class": classes.index(name),
                    "box": [float(corner) for corner in corners],
                    "score": float(score),
                }
            )
    return DataSet("voc", images, classes, truths, detections)


VOC_CLASSES = [
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
]


def read_padilla(folder: Path) -> DataSet:
    """Read Padilla's database: VOC annotations, and a text file of detections for each image."""
    annotations = folder / "gts" / "pascalvoc_format"
    names = sorted(path.stem for path in annotations.glob("*.xml"))
    images, truths = _truths_of_voc(annotations, names, VOC_CLASSES)
    detections = []
    for name in names:
        path = folder / "dets" / "abs_xyx2y2" / f"{name}.txt"
        for line in path.read_text().splitlines() if path.exists() else []:
            label, score, *corners = line.split()
            detections.append(
                {
                    "image": name,
                    "class": int(label),
                    "box": [float(corner) for corner in corners],
                    "score": float(score),
                }
            )
    return DataSet("voc", images, VOC_CLASSES, truths, detections)


FAKE, CUT = REAL / "coco_val2014_fake100", REAL / "coco_val2017_masks206"

DATA_SETS: dict[str, tuple[str, Callable[[], DataSet]]] = {
    "shapes_coco": (
        "coco",
        lambda: read_coco(
            SAMPLES / "shapes_coco" / "instances.json", SAMPLES / "shapes_coco" / "detections.json"
        ),
    ),
    "val2014_100": (
        "coco",
        lambda: read_coco(
            FAKE / "instances_val2014_100.json", FAKE / "instances_val2014_fakebbox100_results.json"
        ),
    ),
    "val2017_206": ("coco", lambda: read_coco(CUT / "instances.json", CUT / "yolov2_608.json")),
    "shapes_voc": (
        "voc",
        lambda: read_voc(SAMPLES / "shapes_voc" / "VOC2007", SAMPLES / "shapes_voc" / "results"),
    ),
    "padilla100": ("voc", lambda: read_padilla(REAL / "padilla_database")),
    "voc2007": (
        "voc",
        lambda: read_voc(REAL / "voc2007" / "VOC2007", REAL / "voc2007" / "results" / "yolov2"),
    ),
}
"""What each set is called, its form, and how it is read; ``FileNotFoundError`` where it is not here."""
