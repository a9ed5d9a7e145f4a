"""Make COCO JSON of real data in other forms: ``python real_data.py CASE FOLDER OUTPUT``.

Run by ``compare.py`` with the interpreter of the peers; WIDER FACE's ground truth is a MATLAB file, which
SciPy reads. The output goes to a temporary folder of the caller's: real data is never copied into the
project.
"""

from __future__ import annotations

import json
import math
import sys
import tarfile
from pathlib import Path
from typing import Any


def voc2007(folder: Path, output: Path) -> None:
    """VOC 2007 test with YOLOv2's results, read by boxscore; images are numbered."""
    import boxscore

    truth = boxscore.load_ground_truth(folder / "voc2007" / "VOC2007", image_set="test")
    found = boxscore.load_detections(folder / "voc2007" / "results" / "yolov2", truth)
    names, sizes = truth.images.ids.tolist(), truth.images.sizes.tolist()
    labels = truth.categories.ids.tolist()
    write(
        output,
        [
            {"id": row, "width": width, "height": height, "file_name": f"{name}.jpg"}
            for row, (name, (width, height)) in enumerate(zip(names, sizes, strict=True))
        ],
        [
            {"id": each, "name": name}
            for each, name in zip(labels, truth.categories.names.tolist(), strict=True)
        ],
        [rows(table, labels) for table in (truth, found)],
        found.scores.tolist(),
    )


def rows(table: Any, labels: list[int]) -> list[tuple[int, int, list[float]]]:
    """Return image, category and box of each row of a table."""
    boxes = [[*box[:2], *size] for box, size in zip(table.boxes.tolist(), table.sizes.tolist(), strict=True)]
    categories = [labels[row] for row in table.category.tolist()]
    return list(zip(table.image.tolist(), categories, boxes, strict=True))


def widerface(folder: Path, output: Path) -> None:
    """WIDER FACE's validation set with the boxes of a YOLOv7 face detector; sides below 0 are made 0."""
    from scipy.io import loadmat

    known = loadmat(folder / "crowd" / "widerface" / "ground_truth" / "wider_face_val.mat")
    images: dict[str, int] = {}
    truth = []
    for names, boxes in zip(known["file_list"][:, 0], known["face_bbx_list"][:, 0], strict=True):
        for name, some in zip(names[:, 0], boxes[:, 0], strict=True):
            image = images.setdefault(str(name[0]), len(images))
            truth += [
                (image, 1, [*map(float, box[:2]), *(max(float(side), 0.0) for side in box[2:])])
                for box in some
            ]
    found, scores = [], []
    with tarfile.open(folder / "crowd" / "widerface" / "widerface_txt.tar.gz") as archive:
        for member in archive:
            stem = Path(member.name).stem
            if not member.isfile() or stem not in images:
                continue
            content = archive.extractfile(member)
            for line in content.read().decode().splitlines()[2:] if content is not None else []:
                *box, score = map(float, line.split())
                found.append((images[stem], 1, box))
                scores.append(score)
    # The lists have no sizes of images: take the smallest in which the objects and detections fit.
    sizes = [[1.0, 1.0] for _ in images]
    for row, _, (x, y, width, height) in (*truth, *found):
        sizes[row] = [max(sizes[row][0], x + width), max(sizes[row][1], y + height)]
    write(
        output,
        [
            {"id": row, "width": math.ceil(width), "height": math.ceil(height), "file_name": f"{name}.jpg"}
            for (name, row), (width, height) in zip(images.items(), sizes, strict=True)
        ],
        [{"id": 1, "name": "face"}],
        [truth, found],
        scores,
    )


def write(output: Path, images: list, categories: list, sides: list, scores: list[float]) -> None:
    """Write both files."""
    truth, found = sides
    annotations = [
        {
            "id": number,
            "image_id": image,
            "category_id": label,
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": 0,
        }
        for number, (image, label, box) in enumerate(truth, start=1)
    ]
    results = [
        {"image_id": image, "category_id": label, "bbox": box, "score": score}
        for (image, label, box), score in zip(found, scores, strict=True)
    ]
    whole = {"info": {}, "images": images, "categories": categories, "annotations": annotations}
    (output / "ground_truth.json").write_text(json.dumps(whole))
    (output / "detections.json").write_text(json.dumps(results))


if __name__ == "__main__":
    {"real_voc2007": voc2007, "real_widerface": widerface}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
