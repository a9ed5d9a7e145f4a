"""Write boxes to review, each with a class and a reason, in the import formats of annotation tools.

Conventions
-----------
- Every box is an annotation, so that the reviewed file can be read like any ground truth; deleted boxes were
  rejected by the reviewer.
- The reason is a tag: ``meta.text`` in Label Studio, an attribute ``suspect`` in CVAT, a key ``suspect`` in
  COCO, ``tags`` in FiftyOne, whose importer takes them from ``attributes``.
- FiftyOne looks an image up by its path without the extension.
- Label Studio and FiftyOne store fractions of the image, so its size must be known; CVAT needs it too.

References
----------
https://labelstud.io/guide/predictions, https://docs.cvat.ai/docs/manual/advanced/xml_format/,
https://cocodataset.org/#format-data, https://docs.voxel51.com/user_guide/dataset_creation/datasets.html
(FiftyOneImageDetectionDataset)
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import write_atomically
from boxscore._utils.text import json_value
from boxscore.data.image_names import without_ending
from boxscore.data.tables import GroundTruth
from boxscore.errors import InputError

Tool = Literal["labelstudio", "cvat", "coco", "fiftyone"]


def write_proposals(labels: GroundTruth, reasons: Sequence[str], path: Path, *, tool: Tool) -> None:
    """Write boxes and their reasons in a tool's format.

    Raises
    ------
    InputError
        When the tool is unknown, or needs an unknown image size.
    """
    checks.one_of(tool, get_args(Tool), name="tool")
    write = {"labelstudio": _labelstudio, "cvat": _cvat, "coco": _coco, "fiftyone": _fiftyone}[tool]
    write_atomically(path, write(labels, reasons))


def _by_image(labels: GroundTruth, *, sized: bool) -> Iterator[tuple[int, str, float, float, list[int]]]:
    """Yield the row, name, width and height of each image with boxes, and the rows of the boxes."""
    images = labels.images
    for image in np.unique(labels.image).tolist():
        width, height = images.sizes[image].tolist()
        name = str(images.file_names[image] or images.ids.tolist()[image])
        if sized and not (width >= 1 and height >= 1):
            cause = "give the sizes with --image-sizes or --image-folder"
            raise InputError("the size of an image", "be known for this tool", got=repr(name), cause=cause)
        yield image, name, width, height, np.flatnonzero(labels.image == image).tolist()


def _labelstudio(labels: GroundTruth, reasons: Sequence[str]) -> str:
    # Label Studio uses percent of the image size; the id identifies the row.
    tasks = []
    names = labels.categories.labels
    for number, (_, name, width, height, rows) in enumerate(_by_image(labels, sized=True), start=1):
        regions = []
        for row in rows:
            x1, y1 = labels.boxes[row, :2].tolist()
            w, h = labels.sizes[row].tolist()
            value = {
                "x": x1 * 100 / width,
                "y": y1 * 100 / height,
                "width": w * 100 / width,
                "height": h * 100 / height,
                "rotation": 0,
                "rectanglelabels": [names[labels.category[row]]],
            }
            # A region names the control tags of the default labeling interface.
            regions.append(
                {
                    "id": f"suspect-{row}",
                    "type": "rectanglelabels",
                    "from_name": "label",
                    "to_name": "image",
                    "original_width": int(width),
                    "original_height": int(height),
                    "value": value,
                    "meta": {"text": [reasons[row]]},
                }
            )
        tasks.append(
            {"id": number, "data": {"image": name}, "annotations": [{"id": number, "result": regions}]}
        )
    return json.dumps(tasks, ensure_ascii=False, indent=1)


def _cvat(labels: GroundTruth, reasons: Sequence[str]) -> str:
    # List all classes, because CVAT imports only labels of its task.
    names = labels.categories.labels
    classes = "".join(f"<label><name>{html.escape(name)}</name></label>" for name in names)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<annotations>",
        "<version>1.1</version>",
        f"<meta><task><labels>{classes}</labels></task></meta>",
    ]
    for number, (_, name, width, height, rows) in enumerate(_by_image(labels, sized=True)):
        lines.append(
            f'<image id="{number}" name="{html.escape(name)}" width="{width:g}" height="{height:g}">'
        )
        # repr round-trips every number; the reason is an attribute of the box.
        for row in rows:
            x1, y1, x2, y2 = map(repr, labels.boxes[row].tolist())
            label, reason = html.escape(names[labels.category[row]]), html.escape(reasons[row])
            lines.append(
                f'<box label="{label}" source="boxscore" occluded="0" xtl="{x1}" ytl="{y1}" xbr="{x2}" '
                f'ybr="{y2}" z_order="0"><attribute name="suspect">{reason}</attribute></box>'
            )
        lines.append("</image>")
    return "\n".join([*lines, "</annotations>\n"])


def _coco(labels: GroundTruth, reasons: Sequence[str]) -> str:
    # Keep the ids of images and classes, so that the file can be evaluated directly.
    images, annotations = [], []
    ids, classes = labels.images.ids.tolist(), labels.categories.ids.tolist()
    for image, name, width, height, rows in _by_image(labels, sized=False):
        images.append({"id": ids[image], "file_name": name, "width": width, "height": height})
        annotations += [
            {
                "id": row + 1,
                "image_id": ids[image],
                "category_id": classes[labels.category[row]],
                "bbox": [*labels.boxes[row, :2].tolist(), *labels.sizes[row].tolist()],
                "area": float(labels.area[row]),
                "iscrowd": 0,
                "suspect": reasons[row],
            }
            for row in rows
        ]
    categories = [
        {"id": key, "name": name} for key, name in zip(classes, labels.categories.names.tolist(), strict=True)
    ]
    whole: dict[str, Any] = {"images": images, "annotations": annotations, "categories": categories}
    return json.dumps(json_value(whole), ensure_ascii=False, indent=1)


def _fiftyone(labels: GroundTruth, reasons: Sequence[str]) -> str:
    names = labels.categories.labels
    of_images = {
        without_ending(name): [
            {
                "label": names[labels.category[row]],
                "bounding_box": (
                    np.append(labels.boxes[row, :2], labels.sizes[row]) / [width, height, width, height]
                ).tolist(),
                "attributes": {"tags": ["suspect", reasons[row]]},
            }
            for row in rows
        ]
        for _, name, width, height, rows in _by_image(labels, sized=True)
    }
    return json.dumps({"classes": names, "labels": of_images}, ensure_ascii=False, indent=1)
