"""A protocol in one line, to stand beside every score.

Conventions
-----------
Six parts are always there; any other choice is printed when it is not COCO's. What the line leaves out has
COCO's value.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from boxscore._version import __version__
from boxscore.protocols.grids import colon, grid, grid_text, number_text
from boxscore.protocols.protocol import ApRules, IgnoreRules, Protocol

__all__ = ["signature_of"]

OTHERS = {
    "difficult": "ignore.difficult",
    "dtarea": "ignore.detection_area",
    "nokpt": "ignore.unlabelled",
    "candidate": "matching.candidate",
    "ties": "matching.equal_iou",
    "order": "matching.equal_scores",
    "match": "matching.threshold_closed",
    "cap": "matching.cap_scope",
    "conf": "matching.minimum_score",
    "classes": "matching.per_class",
    "equal": "ap.tie_order",
    "absent": "ap.absent_classes",
}
"""Keys of the line, and the field of the protocol that each prints."""

WORDS = {
    ("match", False): ">",
    ("match", True): ">=",
    ("classes", False): "pooled",
    ("classes", True): "apart",
    ("cap", "image"): "per image",
}
"""How a value reads where its own text would not do."""


def signature_of(protocol: Protocol) -> str:
    """Print every choice of a protocol in one line."""
    from boxscore.protocols import load_protocol

    coco = load_protocol("coco")
    matching, base = protocol.matching, coco.matching
    parts = {} if protocol.similarity == "box" else {"sim": _similarity_text(protocol)}
    parts |= {
        "iou": grid_text(matching.iou_thresholds),
        "ap": _curve_text(protocol.ap),
        "maxdet": ",".join(map(str, matching.max_detections)) or "none",
        "area": _area_text(protocol.ignore, coco.ignore),
        "crowd": protocol.ignore.crowd,
        "offset": number_text(protocol.boxes.pixel_offset),
    }
    for key, field in OTHERS.items():
        value = _field(protocol, field)
        if value != _field(coco, field):
            text = number_text(value) if isinstance(value, float) else str(value)
            parts[key] = WORDS.get((key, value), text)
    if (matching.bars != dataclasses.replace(matching, largest_threshold=base.largest_threshold).bars).any():
        parts["top"] = number_text(matching.largest_threshold)
    if protocol.ap.precision_epsilon != coco.ap.precision_epsilon:
        parts["eps"] = number_text(protocol.ap.precision_epsilon)
    if protocol.ap.sequential_mean and protocol.ap.interpolation == "points":
        parts["mean"] = "sequential"
    parts["v"] = __version__
    return "|".join(["boxscore", protocol.name, *(f"{key}:{value}" for key, value in parts.items())])


def _field(protocol: Protocol, field: str) -> Any:
    table, name = field.split(".")
    return getattr(getattr(protocol, table), name)


def _similarity_text(protocol: Protocol) -> str:
    if protocol.similarity == "boundary":
        return f"boundary/{number_text(protocol.masks.boundary_dilation)}"
    if protocol.similarity == "keypoints":
        spread = protocol.keypoints.spread
        return f"oks/{len(spread)}/{spread.sum():.4g}"
    return protocol.similarity


def _curve_text(rules: ApRules) -> str:
    if rules.interpolation == "area":
        return "area"
    points = rules.recall_points
    method = "" if rules.interpolation == "points" else f"-{rules.interpolation}"
    if points == tuple(np.linspace(0, 1, len(points)).tolist()):
        return f"{len(points)}{method}"
    whole = {"start": 0, "stop": 1, "count": len(points)}
    known = {
        tuple(colon(0, 0.1, 1)): "kit",
        grid({**whole, "rule": "float32"}, name="points"): "float32",
        grid({**whole, "rule": "hundredths"}, name="points"): "hundredths",
    }
    return f"{len(points)}{known[points]}{method}" if points in known else f"{grid_text(points)}{method}"


def _area_text(rules: IgnoreRules, coco: IgnoreRules) -> str:
    ranges = rules.area_ranges
    if ranges == coco.area_ranges:
        return "coco"
    if ranges == {"all": (0.0, float("inf"))}:
        return "all"
    return ",".join(f"{name}={number_text(low)}-{number_text(high)}" for name, (low, high) in ranges.items())
