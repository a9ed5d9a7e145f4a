"""Made-up data sets in COCO form: small, and full of what evaluators get wrong.

A case is drawn as a handful of numbers and a seed; NumPy fills in the rest. Hypothesis shrinks the numbers.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import boxscore
from support.quiet import quiet

Rows = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A data set, results, and how to evaluate them."""

    truth: dict[str, Any]
    results: Rows
    caps: tuple[int, ...]
    thresholds: tuple[float, ...] | None
    per_class: bool

    @property
    def protocol(self) -> dict[str, Any]:
        matching: dict[str, Any] = {"max_detections": list(self.caps), "per_class": self.per_class}
        if self.thresholds:
            matching["iou_thresholds"] = list(self.thresholds)
        return {"extends": "coco", "name": "case", "matching": matching}

    def load(self, folder: Path) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
        """Write the two files and read them with the loaders."""
        truth_file, results_file = folder / "truth.json", folder / "results.json"
        truth_file.write_text(json.dumps(self.truth))
        results_file.write_text(json.dumps(self.results))
        with quiet():  # repeated ids, unknown classes
            truth = boxscore.load_ground_truth(truth_file)
            return truth, boxscore.load_detections(results_file, truth)


SCALES = {
    "grid": (0.0, 1.0, 7),  # tiny whole-number boxes: equal overlaps abound
    "edges": (0.0, 32.0, 5),  # sides of 32 and 96: areas of exactly 1024 and 9216
    "fractions": (0.05, 3.7, 9),  # coordinates that are not exact in binary
    "large": (0.0, 97.3, 6),
}
"""Start, step and count of the coordinates that a kind of case draws from."""

THRESHOLDS = [None, (0.5,), (0.25, 0.5, 1.0), (1e-9,), (1 / 3, 0.5, 2 / 3)]
CAPS = [(1, 10, 100), (1, 10, 100), (1,), (2,), (1, 2, 3), (3, 100)]


@st.composite
def coco_cases(draw: st.DrawFn, *, repeated_ids: bool = True) -> Case:
    """Draw a case."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    images = draw(st.integers(0, 6), label="images")
    classes = draw(st.integers(1, 4), label="classes")
    truths = draw(st.integers(0, 16), label="truths") if images else 0
    found = draw(st.integers(0, 40), label="found") if images else 0
    scale = SCALES[draw(st.sampled_from(sorted(SCALES)), label="scale")]
    levels = draw(st.sampled_from([1, 2, 5, 1000]), label="score levels")
    crowds = draw(st.sampled_from([0.0, 0.2, 0.9]), label="share of crowds")
    near = draw(st.sampled_from([0.0, 0.5, 0.9]), label="share of detections that copy a truth")
    odd_areas = draw(st.booleans(), label="areas apart from the boxes")
    repeat = repeated_ids and draw(st.integers(0, 7), label="repeat ids") == 0
    unknown_class = draw(st.integers(0, 7), label="unknown class") == 0
    caps = draw(st.sampled_from(CAPS), label="caps")
    thresholds = draw(st.sampled_from(THRESHOLDS), label="thresholds")
    per_class = draw(st.integers(0, 3), label="pooled") != 0

    image_ids = rng.choice(np.arange(0, 50), images, replace=False).tolist()  # unsorted, with gaps
    class_ids = rng.choice(np.arange(0, 20), classes, replace=False).tolist()
    truth_rows: Rows = []
    for number in rng.permutation(np.arange(1, truths + 1)).tolist():
        bbox = _box(rng, scale)
        areas = [0, 1, 1023.999, 1024, 1024.0001, 9216, 9216.5, 1e5, 1e10, 2e10]
        area = float(rng.choice(areas)) if odd_areas else bbox[2] * bbox[3]
        truth_rows.append(
            {
                "id": number,
                "image_id": int(rng.choice(image_ids)),
                "category_id": int(rng.choice(class_ids)),
                "bbox": bbox,
                "area": area,
                "iscrowd": int(rng.random() < crowds),
                "ignore": int(rng.random() < 0.3),  # iscrowd overwrites it
            }
        )
    if repeat:
        for row in truth_rows:
            row["id"] = int(rng.integers(1, 1 + max(1, truths // 2)))
    results: Rows = []
    known = [*class_ids, 77] if unknown_class else class_ids
    for _ in range(found):
        bbox, image, label = _box(rng, scale), int(rng.choice(image_ids)), int(rng.choice(known))
        if truth_rows and rng.random() < near:
            copied = truth_rows[int(rng.integers(len(truth_rows)))]
            image, label = copied["image_id"], copied["category_id"]
            bbox = list(copied["bbox"])
            side = int(rng.integers(4))
            bbox[side] = max(0.0, bbox[side] + float(rng.choice([-1, 0, 0, 1])) * scale[1])
        score = float(rng.integers(levels)) / levels - float(rng.choice([0.0, 0.0, 0.5]))
        results.append(
            {
                "image_id": image,
                "category_id": label,
                "bbox": bbox,
                "score": -0.0 if score == 0.0 and rng.random() < 0.5 else score,
            }
        )
    truth = {
        "images": [{"id": identifier} for identifier in image_ids],
        "categories": [{"id": identifier, "name": f"class {identifier}"} for identifier in class_ids],
        "annotations": truth_rows,
    }
    return Case(truth, results, caps, thresholds, per_class)


def _box(rng: np.random.Generator, scale: tuple[float, float, int]) -> list[float]:
    start, step, count = scale
    x, y = (start + step * rng.integers(count, size=2)).tolist()
    w, h = (step * rng.integers(count, size=2)).tolist()  # a side of 0 is legal
    return [x, y, w, h]
