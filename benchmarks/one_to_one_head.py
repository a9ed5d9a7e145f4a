"""Duplicates of an end-to-end detector: train a small one-to-one head on drawn shapes, and measure NMS.

    python benchmarks/one_to_one_head.py --folder work

Needs torch and scipy. The detector is a small convolutional network on images of 64 x 64 pixels with one to
seven squares, discs, octagons and triangles. Every object is assigned to one cell (Hungarian matching), and
the results are the best 100 pairs of cell and class of each image, as in RT-DETR and YOLO26. The script
writes the results after a quarter, half and all of the training, and prints the table of
``docs/how-to/nms-free-detectors.md``. It takes about four minutes on one processor.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.nn import functional

import boxscore

SIDE, CLASSES = 64, ("square", "disc", "octagon", "triangle")
ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE].astype(np.float32)
Sample = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def drawn(random: np.random.Generator) -> Sample:
    """Return an image, and the boxes and classes of its objects."""
    image = random.normal(0.3, 0.08, (SIDE, SIDE)).astype(np.float32)
    boxes, labels = [], []
    for _ in range(int(random.integers(1, 8))):
        radius = random.uniform(4, 13)
        x, y = random.uniform(radius, SIDE - radius, 2)
        label = int(random.integers(4))
        u, v = (COLUMNS - x) / radius, (ROWS - y) / radius
        inside = [
            np.maximum(abs(u), abs(v)) < 1,
            u * u + v * v < 1,
            np.maximum(np.maximum(abs(u), abs(v)), (abs(u) + abs(v)) / 1.414) < 1,
            (v < 1) & (2 * abs(u) - v < 1),
        ][label]
        image[inside] = random.uniform(0.45, 1) + random.normal(0, 0.05, int(inside.sum()))
        boxes.append([x - radius, y - radius, x + radius, y + radius])
        labels.append(label)
    return image, np.array(boxes, np.float32), np.array(labels)


class Net(nn.Module):
    """Scores [B, cells, 4] and boxes [B, cells, 4] of each cell."""

    def __init__(self) -> None:
        super().__init__()
        width = [1, 24, 48, 96, 96]
        self.body = nn.Sequential(
            *[
                layer
                for a, b, stride in zip(width, width[1:], (2, 2, 2, 1), strict=False)
                for layer in (nn.Conv2d(a, b, 3, stride, 1), nn.BatchNorm2d(b), nn.ReLU())
            ]
        )
        self.more = nn.Sequential(
            *(nn.Conv2d(96, 96, 3, 1, 1), nn.BatchNorm2d(96), nn.ReLU()),
            *(nn.Conv2d(96, 96, 3, 1, 2, 2), nn.BatchNorm2d(96), nn.ReLU()),
        )
        self.cls, self.box = nn.Conv2d(96, 4, 1), nn.Conv2d(96, 4, 1)
        nn.init.constant_(self.cls.bias, -4)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits and boxes."""
        features = self.more(self.body(images))
        count = features.shape[-1]
        logits = self.cls(features).flatten(2).transpose(1, 2)
        sides = functional.softplus(self.box(features).flatten(2).transpose(1, 2) + 2) * 4
        at = (torch.arange(count) + 0.5) * SIDE / count
        center = torch.stack(torch.meshgrid(at, at, indexing="xy"), -1).reshape(-1, 2)
        return logits, torch.cat([center - sides[..., :2], center + sides[..., 2:]], -1)


def iou(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the IoU of each box with each box."""
    sides = torch.minimum(one[:, None, 2:], other[None, :, 2:]) - torch.maximum(
        one[:, None, :2], other[None, :, :2]
    )
    shared = sides.clamp(0).prod(-1)
    area, areas = ((boxes[:, 2:] - boxes[:, :2]).prod(-1) for boxes in (one, other))
    return shared / (area[:, None] + areas[None] - shared + 1e-6)


def loss_of(
    logits: torch.Tensor, boxes: torch.Tensor, truth: list[torch.Tensor], labels: list[torch.Tensor]
) -> torch.Tensor:
    """Assign each object to one cell; return the loss of scores and boxes."""
    target, of_boxes = torch.zeros_like(logits), logits.sum() * 0
    for k in range(len(logits)):
        with torch.no_grad():
            overlap = iou(boxes[k], truth[k])
            cost = -(logits[k].sigmoid()[:, labels[k]] ** 0.5) * (overlap**3)
            cell, of = linear_sum_assignment(cost.numpy())
        target[k, cell, labels[k][of]] = overlap[cell, of].clamp(0.1)
        near, wanted = boxes[k][cell], truth[k][of]
        of_boxes = of_boxes + (1 - torch.diagonal(iou(near, wanted))).sum() * 2
        of_boxes = of_boxes + (near - wanted).abs().sum() * 0.05
    chance = logits.sigmoid()
    weight = torch.where(target > 0, torch.ones_like(chance), 0.75 * chance**2)
    of_scores = (functional.binary_cross_entropy_with_logits(logits, target, reduction="none") * weight).sum()
    return (2 * of_scores + of_boxes) / max(1, sum(map(len, truth)))


def write(net: Net, images: list[Sample], path: Path) -> None:
    """Write the best 100 pairs of cell and class of each image."""
    net.eval()
    found = []
    with torch.no_grad():
        for low in range(0, len(images), 50):
            logits, boxes = net(torch.tensor(np.stack([one[0] for one in images[low : low + 50]]))[:, None])
            for k in range(len(logits)):
                scores, at = logits[k].sigmoid().flatten().topk(100)
                for score, pair in zip(scores.tolist(), at.tolist(), strict=True):
                    x1, y1, x2, y2 = boxes[k, pair // 4].tolist()
                    record = {"image_id": low + k, "category_id": pair % 4, "score": score}
                    found.append({**record, "bbox": [x1, y1, x2 - x1, y2 - y1]})
    path.write_text(json.dumps(found))
    net.train()


def train(folder: Path, steps: int) -> None:
    """Train, and write ground truth and the results of three stages."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random = np.random.default_rng(7)
    images = [drawn(random) for _ in range(500)]
    rows = [(k, int(c), *b) for k, (_, bs, cs) in enumerate(images) for b, c in zip(bs, cs, strict=True)]
    boxes = np.array([row[2:] for row in rows], dtype=np.float64)
    truth = boxscore.GroundTruth.from_arrays(
        [row[0] for row in rows], [row[1] for row in rows], boxes, categories=dict(enumerate(CLASSES))
    )
    boxscore.save_as(truth, folder / "gt.json")
    net, data = Net(), np.random.default_rng(1)
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    for step in range(1, steps + 1):
        batch = [drawn(data) for _ in range(16)]
        logits, found = net(torch.tensor(np.stack([one[0] for one in batch]))[:, None])
        wanted, labels = ([torch.tensor(one[k]) for one in batch] for k in (1, 2))
        loss = loss_of(logits, found, wanted, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step in (steps // 4, steps // 2, steps):
            write(net, images, folder / f"{step}.json")


def measure(folder: Path) -> None:
    """Print AP of each stage with and without NMS."""
    truth = boxscore.load_ground_truth(folder / "gt.json")
    same = "same class twice, score >= 0.3"
    print(f"| steps | {same} | AP as it is | NMS 0.5 | 0.7 | 0.9 | one class per box | all classes 0.7 |")
    print("|---|---|---|---|---|---|---|---|")
    for path in sorted(folder.glob("[0-9]*.json"), key=lambda path: int(path.stem)):
        raw = boxscore.load_detections(path, truth)
        sure = raw.take(np.flatnonzero(raw.scores >= 0.3))
        twice = len(sure) - len(boxscore.suppress(sure, iou_threshold=0.7))
        cells = [f"{twice:,} of {len(sure):,}", f"{boxscore.evaluate(truth, raw)['AP']:.3f}"]
        for threshold, agnostic in ((0.5, False), (0.7, False), (0.9, False), (0.999, True), (0.7, True)):
            left = boxscore.suppress(raw, iou_threshold=threshold, class_agnostic=agnostic).apply(raw)
            cells.append(f"{boxscore.evaluate(truth, left)['AP']:.3f}")
        print(f"| {path.stem} | {' | '.join(cells)} |")
    print("\n| boxes | true positives | false positives |\n|---|---|---|")
    for options in (
        {"iou_threshold": 1.0},
        {"iou_threshold": 0.7},
        {"iou_threshold": 0.7, "class_agnostic": True},
    ):
        print(
            "|",
            " | ".join(
                f"{count:,}" for count in counted(truth, boxscore.suppress(raw, **options).apply(raw))
            ),
            "|",
        )


def counted(truth: boxscore.GroundTruth, found: boxscore.Detections) -> tuple[int, int, int]:
    """Count the boxes with a score of at least 0.3, those right at IoU 0.5, and those wrong."""
    found, right = found.take(np.flatnonzero(found.scores >= 0.3)), 0
    for image in range(len(truth.images)):
        free = set(np.flatnonzero(truth.image == image).tolist())
        for row in sorted(np.flatnonzero(found.image == image).tolist(), key=lambda row: -found.scores[row]):
            alike = [of for of in free if truth.category[of] == found.category[row]]
            overlap = boxscore.box_iou(found.boxes[[row]], truth.boxes[alike])[0] if alike else np.zeros(1)
            if overlap.max() >= 0.5:
                free.remove(alike[int(overlap.argmax())])
                right += 1
    return len(found), right, len(found) - right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2400)
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    train(given.folder, given.steps)
    measure(given.folder)
