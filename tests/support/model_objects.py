"""One data set in the plain mappings, and stand-ins with the attributes of libraries' objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

NAMES = {0: "cat", 1: "dog", 2: "bird"}
SIZE = (72, 80)
"""Height and width of every image."""

Plain = list[dict[str, Any]]


def plain(count: int = 9, *, seed: int = 0, masks: bool = False) -> tuple[Plain, Plain]:
    """Predictions and targets whose numbers are exact in float32 and in fractions; the first image is empty."""
    rng = np.random.default_rng(seed)
    predictions, targets = [], []
    for image in range(count):
        n = 0 if image == 0 else int(rng.integers(1, 7))
        corner = rng.integers(0, 3, (n, 2)) * 8
        boxes = np.concatenate([corner, corner + rng.integers(1, 7, (n, 2)) * 8], axis=1).astype(np.float32)
        labels = rng.integers(0, 3, n)
        targets.append({"boxes": boxes, "labels": labels})
        kept = rng.random(n) < 0.8
        moved = boxes[kept] + rng.choice([0, 0, 0, 4], (kept.sum(), 4)).astype(np.float32)
        found = np.where(rng.random(kept.sum()) < 0.85, labels[kept], 0)
        scores = rng.choice([0.25, 0.5, 0.75, 1], len(found)).astype(np.float32)
        predictions.append({"boxes": moved, "labels": found, "scores": scores})
    if masks:
        x, y = np.arange(SIZE[1]), np.arange(SIZE[0])[:, None]
        for side in (*predictions, *targets):
            filled = [(x >= b[0]) & (x < b[2]) & (y >= b[1]) & (y < b[3]) for b in side["boxes"]]
            side["masks"] = np.array(filled, dtype=bool).reshape(len(filled), *SIZE)
    return predictions, targets


def names_of(side: dict[str, Any]) -> list[str]:
    return [NAMES[label] for label in side["labels"].tolist()]


class Tensor:
    """An array that NumPy reads only after ``detach().cpu().numpy()``, as a tensor on a device."""

    def __init__(self, array: Any, on: str = "cuda") -> None:
        self.array, self.on = np.asarray(array), on

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.array, "cpu")

    def numpy(self) -> Any:
        assert self.on == "cpu", "read on the device"
        return self.array

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def torchvision(side: dict[str, Any]) -> Any:
    return {key: Tensor(value) for key, value in side.items()}


def coco_rows(side: dict[str, Any]) -> Any:
    """Rows of an image as torchvision's ``CocoDetection`` gives them, without their image."""
    columns = {"bbox": side["boxes"].astype(float).copy(), "category_id": side["labels"]}
    columns["bbox"][:, 2:] -= columns["bbox"][:, :2]
    columns |= (
        {"score": side["scores"]} if "scores" in side else {"area": columns["bbox"][:, 2:].prod(axis=1)}
    )
    columns |= {"iscrowd": np.zeros(len(side["labels"]), dtype=int)}
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]


def annotations(side: dict[str, Any]) -> Any:
    return {"annotations": coco_rows(side)}


def hf_pipeline(side: dict[str, Any]) -> Any:
    return [
        {
            "score": float(score),
            "label": name,
            "box": dict(zip(("xmin", "ymin", "xmax", "ymax"), box.astype(int).tolist(), strict=True)),
        }
        for score, name, box in zip(side["scores"], names_of(side), side["boxes"], strict=True)
    ]


def hf_target(side: dict[str, Any]) -> Any:
    corners = side["boxes"].astype(np.float64)
    boxes = np.hstack([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]])
    height, width = SIZE
    return {
        "boxes": Tensor(boxes / [width, height, width, height]),
        "class_labels": Tensor(side["labels"]),
        "orig_size": Tensor(np.array(SIZE)),
        "size": Tensor(np.array(SIZE) * 10),
        "area": Tensor((boxes[:, 2] * boxes[:, 3] * 100).astype(np.float32)),
    }


def ultralytics(side: dict[str, Any], path: str = "images/a.b.jpg") -> Any:
    boxes = SimpleNamespace(
        xyxy=Tensor(side["boxes"]),
        conf=Tensor(side["scores"]),
        cls=Tensor(side["labels"].astype(np.float32)),
    )
    masks = SimpleNamespace(data=Tensor(side["masks"].astype(np.float32))) if "masks" in side else None
    return SimpleNamespace(
        boxes=boxes, masks=masks, keypoints=None, obb=None, names=NAMES, orig_shape=SIZE, path=path
    )


def supervision(side: dict[str, Any]) -> Any:
    return SimpleNamespace(
        xyxy=side["boxes"],
        class_id=side["labels"],
        confidence=side.get("scores"),
        mask=side.get("masks"),
        data={"class_name": np.array(names_of(side))}
        | {key: side[key] for key in ("area", "iscrowd", "ignore") if key in side}
        if len(side["labels"])
        else {},
    )


def detectron2(side: dict[str, Any]) -> Any:
    fields = {
        "pred_boxes": SimpleNamespace(tensor=Tensor(side["boxes"])),
        "pred_classes": Tensor(side["labels"]),
        "scores": Tensor(side["scores"]),
    }
    if "masks" in side:
        fields["pred_masks"] = Tensor(side["masks"])
    return {"instances": SimpleNamespace(image_size=SIZE, **fields)}


def detectron2_target(side: dict[str, Any]) -> Any:
    instances = SimpleNamespace(
        image_size=SIZE,
        gt_boxes=SimpleNamespace(tensor=Tensor(side["boxes"])),
        gt_classes=Tensor(side["labels"]),
    )
    if "masks" in side:
        instances.gt_masks = SimpleNamespace(tensor=Tensor(side["masks"]))
    return {"instances": instances, "height": SIZE[0], "width": SIZE[1]}


def mmdetection(side: dict[str, Any]) -> Any:
    instances = SimpleNamespace(bboxes=Tensor(side["boxes"]), labels=Tensor(side["labels"]))
    if "masks" in side:
        instances.masks = SimpleNamespace(masks=side["masks"])
    if "scores" in side:
        instances.scores = Tensor(side["scores"])
        return SimpleNamespace(pred_instances=instances, gt_instances=SimpleNamespace())
    return SimpleNamespace(gt_instances=instances, metainfo={"ori_shape": SIZE})


def mmdetection_2(side: dict[str, Any]) -> Any:
    rows = np.column_stack([side["boxes"], side["scores"]])
    arrays = [rows[side["labels"] == label] for label in NAMES]
    if "masks" not in side:
        return arrays
    return arrays, [list(side["masks"][side["labels"] == label]) for label in NAMES]


def keras(side: dict[str, Any], room: int = 8) -> dict[str, Any]:
    """One image of a padded batch."""
    n = len(side["labels"])
    item: dict[str, Any] = {
        "boxes": np.full((room, 4), -1.0, dtype=np.float32),
        "classes": np.full(room, -1.0, dtype=np.float32),
    }
    item["boxes"][:n], item["classes"][:n] = side["boxes"], side["labels"]
    if "scores" in side:
        item["confidence"] = np.full(room, -1.0, dtype=np.float32)
        item["confidence"][:n], item["num_detections"] = side["scores"], np.int32(n)
    return item


def keras_batch(sides: Plain) -> dict[str, Any]:
    items = [keras(side) for side in sides]
    return {key: np.stack([item[key] for item in items]) for key in items[0]}
