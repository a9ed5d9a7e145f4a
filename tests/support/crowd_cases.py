"""Made-up crowds of pedestrians, faces and small objects, and the protocols that have rules of their own there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from boxscore import Detections, GroundTruth
from boxscore.data.vocabulary import Images
from oracles import crowds
from oracles.crowds import Found, Image, Truth

CLASSES = {0: "ignored regions", **{number: f"c{number}" for number in range(1, 11)}, 11: "others"}

WIDTH, HEIGHT = 640, 480


def box_of(rng: np.random.Generator, *, tall: bool) -> crowds.Box:
    x, y = rng.integers(-20, 560, 2).tolist()
    high = int(rng.integers(10, 200)) if tall else int(rng.integers(8, 60))
    wide = int(rng.integers(8, 80))
    return (float(x), float(y), float(x + wide), float(y + high))


def near(rng: np.random.Generator, box: crowds.Box, step: int) -> crowds.Box:
    moved = np.array(box) + rng.integers(-step, step + 1, 4)
    return tuple(np.hstack([moved[:2], np.maximum(moved[:2] + 4, moved[2:])]).tolist())  # type: ignore[return-value]


def scene(
    seed: int, *, labels: int = 1, tall: bool = True, inside: bool = False, close: bool = False
) -> list[Image]:
    """Crowds: objects beside one another, several detections each, some far from any, equal scores.

    With ``close`` some scores differ by so little that they are equal once stretched.
    """
    rng = np.random.default_rng(seed)
    levels = int(rng.choice([5, 40, 1000]))
    images: list[Image] = []
    for _ in range(int(rng.integers(1, 6))):
        truths: list[Truth] = []
        for _ in range(int(rng.integers(0, 7))):
            again = truths and rng.random() < 0.5
            box = near(rng, truths[-1].box, 6) if again else box_of(rng, tall=tall)
            if inside:
                box = tuple(np.clip(box, 1, [600, 440, 620, 460]).tolist())  # type: ignore[assignment]
                box = (box[0], box[1], max(box[0] + 4, box[2]), max(box[1] + 4, box[3]))
            easy = int(rng.random() < 0.5)
            truths.append(
                Truth(
                    box,
                    bool(rng.random() < 0.25),
                    box[3] - box[1],
                    float(rng.choice([0.1, 0.2, 0.3, 0.65, 0.8, 1.0])),
                    (easy, int(easy or rng.random() < 0.5), int(rng.random() < 0.8)),
                    int(rng.choice([0, 1, 1, 2, 2, 11])) if labels > 1 else 0,
                )
            )
        found = []
        for _ in range(int(rng.integers(0, 14))):
            chosen = truths[int(rng.integers(len(truths)))] if truths and rng.random() < 0.8 else None
            box = box_of(rng, tall=tall) if chosen is None else near(rng, chosen.box, 5)
            if inside:
                box = (max(1, box[0]), max(1, box[1]), max(8, box[2]), max(8, box[3]))
            label = (chosen.label if chosen else int(rng.integers(1, 12))) if labels > 1 else 0
            score = float(rng.integers(1, levels + 1)) / (levels + 1)
            if close:
                score += int(rng.integers(0, 4)) * 2.0**-50
                score = float(rng.choice([score, score, score, -1000.0]))
            found.append(Found(box, score, label))
        images.append((truths, sorted(found, key=lambda item: -item.score)))
    if not any(found for _, found in images) or len({i.score for _, f in images for i in f}) < 2:
        images[0] = (
            images[0][0],
            [Found((0, 0, 9, 9), 0.9, 1 if labels > 1 else 0), Found((0, 0, 9, 9), 0.2)],
        )
    return images


def tables(images: list[Image]) -> tuple[GroundTruth, Detections]:
    truths = [(number, truth) for number, (some, _) in enumerate(images) for truth in some]
    found = [(number, item) for number, (_, some) in enumerate(images) for item in some]
    truth = GroundTruth.from_arrays(
        [number for number, _ in truths],
        [item.label for _, item in truths],
        np.array([item.box for _, item in truths]).reshape(-1, 4),
        ignore=[item.ignore for _, item in truths],
        images=Images.build(range(len(images)), sizes=[(WIDTH, HEIGHT)] * len(images)),
        categories=CLASSES if any(item.label for _, item in (*truths, *found)) else [0],
    )
    given = {
        name: np.array([getattr(item, name) for _, item in truths], dtype=np.float64)
        for name in ("height", "visibility")
    }
    settings = np.array([item.settings for _, item in truths], dtype=np.float64).reshape(-1, 3)
    given |= {name: settings[:, at] for at, name in enumerate(("easy", "medium", "hard"))}
    detections = Detections.from_arrays(
        [number for number, _ in found],
        [item.label for _, item in found],
        np.array([item.box for _, item in found]).reshape(-1, 4),
        [item.score for _, item in found],
    )
    return truth.replaced(columns=given), detections


def write_odgt(folder: Path, images: list[Image]) -> tuple[Path, Path]:
    def sides(box: crowds.Box) -> list[float]:
        return list(crowds.as_sides(box))

    truth = [
        {
            "ID": str(number),
            "gtboxes": [
                {"tag": "mask" if item.ignore else "person", "fbox": sides(item.box), "extra": {"occ": 0}}
                for item in truths
            ],
        }
        for number, (truths, _) in enumerate(images)
    ]
    found = [
        {
            "ID": str(number),
            "width": WIDTH,
            "height": HEIGHT,
            "dtboxes": [{"box": sides(item.box), "score": item.score, "tag": 1} for item in some],
        }
        for number, (_, some) in enumerate(images)
    ]
    paths = folder / "truth.odgt", folder / "found.odgt"
    for path, lines in zip(paths, (truth, found), strict=True):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return paths


MISS_RATES = [{"key": "AP"}, {"key": "MR", "metric": "MR"}, {"key": "MR50", "metric": "MR", "iou": 0.5}]

PROTOCOLS: dict[str, dict[str, Any]] = {
    "crowdhuman": {},
    "citypersons": {},
    "caltech": {},
    "widerface": {},
    "visdrone": {},
    "JI of ranges and thresholds": {
        "extends": "crowdhuman",
        "matching": {"iou_thresholds": [0.5, 0.7]},
        "ignore": {"area_ranges": {"all": [0, 1e9], "small": [0, 900], "large": [900, 1e9]}},
        "jaccard": {"score_thresholds": [0.0, 0.3, 0.8]},
        "summary": [
            {"key": "JI", "metric": "JI"},
            {"key": "JIl", "metric": "JI", "area": "large"},
            {"key": "MR", "metric": "MR", "area": "small"},
        ],
    },
    "JI of image order": {
        "extends": "crowdhuman",
        "matching": {"equal_scores": "image_order", "max_detections": [3]},
    },
    "recall over all at points": {
        "extends": "visdrone",
        "matching": {"ranked_files": False},
        "ap": {"interpolation": "points", "class_mean": "of_defined"},
        "ignore": {"regions": ""},
    },
    "mean by images at points": {"extends": "visdrone", "ap": {"interpolation": "points"}},
    "miss rates at caps": {
        "extends": "coco",
        "matching": {"max_detections": [1, 3]},
        "summary": [*MISS_RATES, {"key": "MR{cap}", "metric": "MR", "cap": 0}],
    },
    "classes pooled": {
        "extends": "coco",
        "matching": {"per_class": False},
        "boxes": {"clip": "image"},
        "ap": {"interpolation": "every_point", "class_mean": "by_images"},
        "summary": MISS_RATES,
    },
    "one curve of all classes": {
        "extends": "coco",
        "ap": {"pool": "classes", "recall_over": "all"},
        "summary": MISS_RATES,
    },
    "stretched at points": {
        "extends": "coco",
        "rounding": {"stretch_scores": True},
        "matching": {"ranked_files": True},
    },
    "stretched in file order": {
        "extends": "voc2012",
        "rounding": {"stretch_scores": True, "scores": 12},
        "matching": {"ranked_files": True, "cap_scope": "image_each", "max_detections": [2, 5]},
        "ap": {"tie_order": "true_positives_first"},
        "summary": [{"key": "AP"}, {"key": "FROC", "metric": "FROC"}],
    },
}
"""What differs from the protocol of the name, or from the one that is extended."""


def crowd_case(seed: int, name: str) -> tuple[GroundTruth, Detections]:
    """Return a scene that a protocol of :data:`PROTOCOLS` evaluates."""
    of_classes = PROTOCOLS[name].get("extends") in ("coco", "visdrone", "voc2012") or name == "visdrone"
    images = scene(
        seed,
        labels=12 if of_classes else 1,
        tall=name != "widerface",
        inside=of_classes,
        close="stretched" in name or (name == "widerface" and seed % 2 == 0),
    )
    return tables(images)


def crowd_protocol(name: str) -> Any:
    """Return the values of a protocol of :data:`PROTOCOLS`."""
    return {"name": "case", **PROTOCOLS[name]} if PROTOCOLS[name] else name
