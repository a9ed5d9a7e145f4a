"""Crowded data and protocols for tests of curves, counts and AP."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import boxscore
from support.every_cell import with_every_cell

K = 4
RANGES = {"all": [0, 1e10], "small": [0, 30], "large": [30, 1e10]}


def tables(seed: int, scores: int = 12) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Crowded images of small boxes; one class has no ground truth, another no detection."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 9, (160, 2)).astype(float)
    boxes = np.hstack([corner, corner + rng.integers(3, 9, (160, 2))])
    images = rng.integers(0, 6, 160)
    truth = boxscore.GroundTruth.from_arrays(
        images[:60],
        rng.choice([0, 1, 2], 60),
        boxes[:60],
        crowd=rng.random(60) < 0.1,
        images=range(6),
        categories=range(K),
    )
    found = boxscore.Detections.from_arrays(
        images[60:],
        rng.choice([0, 1, 3], 100),
        boxes[60:],
        rng.integers(0, scores, 100) / scores,
        images=range(6),
        categories=range(K),
    )
    return truth, found


RULES = [
    {"interpolation": "points"},
    {"interpolation": "points", "sequential_mean": True, "precision_epsilon": 0.0},
    {"interpolation": "points", "recall_points": {"start": 0, "stop": 1, "count": 11}},
    {"interpolation": "area", "precision_epsilon": 0.0},
    {"interpolation": "trapezoid", "precision_epsilon": 0.0},
    {"interpolation": "trapezoid_to_one", "precision_epsilon": 0.0},
]

THRESHOLDS, CAPS = [0.2, 0.5, 0.7], [2, 5, 100]


def case_of(**rules: Any) -> boxscore.Protocol:
    """Return a protocol of three thresholds, area ranges and caps, with AP and AR of each."""
    matching = {"iou_thresholds": THRESHOLDS, "max_detections": CAPS}
    return with_every_cell(
        {"extends": "coco", "matching": matching, "ignore": {"area_ranges": RANGES}, **rules}, "AP", "AR"
    )


@functools.cache
def outcomes_at(seed: int, iou: float, area: str, cap: int, scores: int = 12) -> boxscore.Evaluation:
    """Evaluate at one threshold, area range and cap: its matches say what became of each detection."""
    rules = {
        "extends": "coco",
        "matching": {"iou_thresholds": [iou], "max_detections": [cap]},
        "ignore": {"area_ranges": {area: RANGES[area]}},
        "summary": [],
    }
    return boxscore.evaluate(*tables(seed, scores), protocol=rules)
