"""Data sets of ultralytics' four tasks made here, and predictions near their labels in place of a network's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

NAMES = {0: "disc", 1: "traffic light", 2: "box"}

MODELS = {"detect": "yolov8n", "segment": "yolov8n-seg", "pose": "yolov8n-pose", "obb": "yolov8n-obb"}

JOINTS = 5


def write_data(folder: Path, task: str = "detect", *, joints: int = JOINTS) -> Path:
    """Write twelve images of several shapes; two folders have a file of one name, one image has no object."""
    random = np.random.default_rng(3)
    for number in range(12):
        name = f"{'left' if number % 2 else 'right'}/{'abcdef'[number // 2]}"
        width, height = random.integers(90, 220, 2).tolist()
        for kind in ("images", "labels"):
            (folder / kind / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 255, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{name}.png")
        count = 0 if number == 5 else int(random.integers(1, 6))
        side = random.uniform(0.1, 0.4, (count, 2))
        center = random.uniform(side / 2, 1 - side / 2)
        lines = [
            f"{random.integers(0, 3)} {_shape(random, task, box, joints)}"
            for box in np.hstack([center, side])
        ]
        (folder / "labels" / f"{name}.txt").write_text("\n".join(lines))
    listed = "".join(f"  {number}: {name}\n" for number, name in NAMES.items())
    keypoints = f"kpt_shape: [{joints}, 3]\n" if task == "pose" else ""
    path = folder / "data.yaml"
    path.write_text(f"path: {folder}\ntrain: images\nval: images\n{keypoints}names:\n{listed}")
    return path


def _shape(random: np.random.Generator, task: str, box: Any, joints: int) -> str:
    values = box
    x, y, w, h = box
    if task == "segment":  # a triangle or a pentagon in the box
        angle = np.sort(random.uniform(0, 2 * np.pi, random.choice([3, 5])))
        values = np.column_stack([x + w / 2 * np.cos(angle), y + h / 2 * np.sin(angle)]).ravel()
    elif task == "obb":
        turn, half = random.uniform(0, np.pi), np.array([w, h]) / 3
        axes = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) * half[:, None]
        signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        values = (np.array([x, y]) + signs @ axes).clip(0, 1).ravel()
    elif task == "pose":
        at = np.array([x, y]) + random.uniform(-0.5, 0.5, (joints, 2)) * [w, h]
        seen = random.integers(0, 3, joints) * (random.random() > 0.2)
        values = np.concatenate([box, np.column_stack([np.where(seen[:, None] > 0, at, 0), seen]).ravel()])
    return " ".join(f"{value:.6f}" for value in values)


def invented(seen: list[Any], task: str = "detect") -> Any:
    """Return a ``postprocess`` that makes predictions near the labels; ``seen`` gets targets and predictions."""
    random = np.random.default_rng(7)

    def postprocess(self: Any, _: Any) -> list[dict[str, Any]]:
        predictions = []
        for position in range(len(self.batch_seen["im_file"])):
            target = self._prepare_batch(position, self.batch_seen)
            true = target["bboxes"].double().numpy().reshape(-1, 5 if task == "obb" else 4)
            extra = random.uniform(0, 60, (3, 4)) + np.array([0, 0, 60, 60])
            if task == "obb":
                extra = np.column_stack(
                    [extra[:, :2], random.uniform(8, 40, (3, 2)), random.uniform(0, 1.5, 3)]
                )
            sides = true[:, 2:4] - (true[:, :2] if task != "obb" else 0)
            noise = np.tile(np.clip(sides / 20, 0, 4), (1, 3))[:, : extra.shape[1]]
            noise[:, 4:] = 0.1  # the angle
            boxes = np.concatenate([true + random.normal(0, 1, true.shape) * noise, extra])
            labels = np.append(target["cls"].numpy(), [0, 1, 2])
            wrong = random.random(len(labels)) < 0.2
            labels = np.where(wrong, (labels + 1) % 3, labels)
            order = random.permutation(len(labels))
            score = np.sort(random.uniform(0.01, 1, len(labels)))[::-1].copy()
            prediction = {
                "bboxes": torch.tensor(boxes[order], dtype=torch.float32),
                "conf": torch.tensor(score, dtype=torch.float32),
                "cls": torch.tensor(labels[order], dtype=torch.float32),
            }
            if task == "detect":
                prediction["extra"] = torch.zeros(len(labels), 0)
            if task == "segment":
                prediction["masks"] = _masks(random, target, boxes)[order]
            if task == "pose":
                points = target["keypoints"].double().numpy()
                points = points + random.normal(0, 1.5 if points.shape[1] == JOINTS else 0.4, points.shape)
                more = random.uniform(0, 100, (3, *points.shape[1:]))
                points = np.concatenate([points, more])[order]
                prediction["keypoints"] = torch.tensor(points, dtype=torch.float32)
            predictions.append(prediction)
            seen.append((target, {key: value.clone() for key, value in prediction.items()}))
        return predictions

    return postprocess


def _masks(random: np.random.Generator, target: Any, boxes: Any) -> Any:
    """Return the true masks moved by a few pixels, and rectangles."""
    true = target["masks"].float().numpy()
    moved = [np.roll(mask, random.integers(-1, 2, 2), (0, 1)) for mask in true]
    height, width = true.shape[1:]
    y, x = np.mgrid[:height, :width] * (target["imgsz"][0] // height)
    more = [(x >= a) & (x < c) & (y >= b) & (y < d) for a, b, c, d in boxes[-3:]]
    return torch.tensor(np.array([*moved, *more]).astype(np.uint8))


def validated(validator: Any, data: Path, folder: Path, task: str = "detect", **options: Any) -> Any:
    """Validate with invented predictions; return metrics, results and what was seen."""
    from ultralytics import YOLO

    seen: list[Any] = []
    stats: dict[str, Any] = {}

    class Invented(validator):  # type: ignore[misc]
        postprocess = invented(seen, task)

        def preprocess(self, batch: Any) -> Any:
            self.batch_seen = super().preprocess(batch)
            return self.batch_seen

        def get_stats(self) -> dict[str, Any]:
            stats.update(super().get_stats())
            return stats

    model = YOLO(f"{MODELS[task]}.yaml")
    model.model.names = NAMES
    settings = {"imgsz": 128, "batch": 4, "verbose": False, "device": "cpu", "name": "val", **options}
    metrics = model.val(validator=Invented, data=str(data), project=str(folder), **settings)
    return metrics, stats, seen, folder
