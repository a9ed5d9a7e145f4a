"""TOML: protocols and run configurations."""

from __future__ import annotations

import copy
import functools
import math
import random
import sys
from pathlib import Path
from typing import Any

from attack.engine import hostile, trees
from attack.engine.acceptance import cells_of, metrics_of, other_cell, read_json
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import coco
from boxscore.protocols import load_protocol
from oracles import plain

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["READERS"]

FUZZ = Path(__file__).parents[2] / "fuzz" / "seeds"
CELLS = 30_000
"""Thresholds x recall points x ranges x caps that the slow oracle is asked for."""

CONFIGURATION: dict[str, Any] = {
    "ground_truth": {"path": "gt.json", "format": "auto", "image_set": ""},
    "detections": {"path": "dt.json"},
    "evaluation": {
        "protocol": "coco",
        "iou_type": "bbox",
        "detection_area": "box",
        "classes": ["cat", 2],
        "images": [1, 2],
        "workers": 1,
    },
    "output": {
        "form": "json",
        "per_class": True,
        "report": "",
        "verify": False,
        "digest": True,
        "title": "t",
        "image_folder": "",
        "gallery": 3,
        "resamples": 0,
    },
}


@functools.lru_cache(maxsize=1)
def _protocols() -> list[dict[str, Any]]:
    """Protocols as trees: those of the seeds, and every shipped one with all its values written out."""
    trees = [tomllib.loads(path.read_text()) for path in sorted((FUZZ / "protocol").glob("*.toml"))]
    shipped = [{"extends": name} for name in ("coco", "voc2007", "ultralytics", "tide", "torchmetrics")]
    mine = {"extends": "coco", "matching": {"max_detections": [1, 10], "iou_thresholds": [0.5, 0.75]}}
    return [
        *trees,
        *shipped,
        mine,
        {**mine, "summary": [{"key": "AP"}], "ap": {"recall_points": [0, 0.5, 1]}},
    ]


WORDS = [
    *("coco", "best_available", "best_overall", "first", "last", "image_order", "file_order", "iof", "count"),
    *("ignore", "delete", "points", "area", "trapezoid", "all_zero", "box", "mask", "inf", "nan", "arange"),
]


def _fitting(tree: Any, rng: random.Random) -> Any:
    """Change a value into one that might be allowed."""
    rules: dict[str, list[Any]] = {
        "matching.iou_thresholds": [
            [0.5],
            [0.1, 0.9],
            [1],
            [0],
            [0.5, 0.5],
            [1.5],
            [],
            {"start": 0.1, "stop": 0.9, "step": 0.4},
        ],
        "matching.max_detections": [[1], [100], [], [0], [2, 1], [1, 1], [2**63], [-1]],
        "matching.threshold_closed": [True, False, 1],
        "matching.per_class": [True, False],
        "matching.candidate": ["best_available", "best_overall"],
        "matching.equal_iou": ["first", "last"],
        "matching.equal_scores": ["image_order", "file_order"],
        "matching.score_threshold": [0, 0.5, 1, -1, 2, math.inf, math.nan],
        "matching.cap_scope": ["image", "image_and_class", "class"],
        "ignore.crowd": ["iof", "ignore", "count", "delete"],
        "ignore.difficult": ["ignore", "count", "delete"],
        "ignore.flagged": ["ignore", "count", "delete"],
        "ignore.area_ranges": [{"all": [0, math.inf]}, {"all": [0, 1e10], "s": [0, 0]}, {"a": [5, 1]}, {}],
        "boxes.pixel_offset": [0, 1, 0.5, -1],
        "ap.interpolation": ["points", "area", "trapezoid", "step"],
        "ap.recall_points": [
            [0, 0.5, 1],
            [0],
            [],
            [1, 0],
            {"start": 0, "stop": 1, "step": 0.1},
            {"start": 0, "stop": 1, "count": 11},
        ],
        "ap.absent_classes": ["skip", "all_zero", "zero"],
        "ap.precision_epsilon": [0, 1e-16, 1, -1],
        "ap.sequential_mean": [True, False],
        "rounding.decimals": [0, 2, -1, 400],
    }
    key, values = rng.choice(sorted(rules.items()))
    table, name = key.split(".")
    if isinstance(tree.setdefault(table, {}), dict):
        tree[table][name] = copy.deepcopy(rng.choice(values))
    return tree


def _spoilt(tree: Any, rng: random.Random, steps: int, *, protocol: bool) -> bytes:
    raw = 0
    for _ in range(steps):
        way = rng.random()
        if way < 0.5 and protocol and isinstance(tree, dict):
            tree = _fitting(tree, rng)
        elif way < 0.85:
            tree = trees.spoilt(tree, rng)
        elif way < 0.9 and isinstance(tree, dict):
            tree[rng.choice(WORDS)] = rng.choice(WORDS)
        else:
            raw += 1
    data = trees.as_toml(tree)
    for _ in range(raw):
        data = hostile.damaged(data, rng)
    return data


def _protocol(rng: random.Random) -> Mutant:
    truth, results = coco.seeds("coco", rng)
    steps = rng.choice([1, 1, 2, 3])
    data = _spoilt(copy.deepcopy(rng.choice(_protocols())), rng, steps, protocol=True)
    files = {"gt.json": trees.as_json(truth), "dt.json": trees.as_json(results), "mine.toml": data}
    arguments = ("evaluate", *coco.INPUT, "--protocol", "mine.toml", "--output", "json", "--no-digest")
    if rng.random() < 0.25:
        arguments = rng.choice(
            [
                ("evaluate", *coco.INPUT, "--protocol", "mine.toml"),
                ("evaluate", *coco.INPUT, "--protocol", "mine.toml", "--verify"),
                ("validate", *coco.INPUT[:4], "--protocol", "mine.toml"),
                ("explain", *coco.INPUT, "--from", "mine.toml"),
                ("explain", *coco.INPUT, "--from", "mine.toml", "--ablation"),
                ("errors", *coco.INPUT, "--protocol", "mine.toml"),
                ("lrp", *coco.INPUT, "--protocol", "mine.toml"),
                ("report", *coco.INPUT, "--protocol", "mine.toml", "--report", "out", "--resamples", "0"),
                ("check", *coco.INPUT, "--protocol", "mine.toml", "--min", "AP=0.1"),
            ]
        )
    return Mutant(files, arguments, steps, arguments[0] == "evaluate" and "json" in arguments)


def _configuration(rng: random.Random) -> Mutant:
    truth, results = coco.seeds("coco", rng)
    steps = rng.choice([1, 1, 2, 3])
    data = _spoilt(copy.deepcopy(CONFIGURATION), rng, steps, protocol=False)
    files = {"gt.json": trees.as_json(truth), "dt.json": trees.as_json(results), "run.toml": data}
    return Mutant(files, ("run", "run.toml"), steps, compare=False)


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Ask the slow program that knows every rule of a protocol."""
    protocol = load_protocol(folder / "mine.toml")
    matching, ap = protocol.matching, protocol.ap
    caps = len(matching.max_detections) or 1
    cells = len(matching.iou_thresholds) * len(ap.recall_points) * len(protocol.ignore.area_ranges) * caps
    if protocol.similarity != "box" or cells > CELLS:
        return Judged("unknown", "another similarity" if cells <= CELLS else "a large grid")
    truth, results = read_json(folder / "gt.json"), read_json(folder / "dt.json")
    images = {image["id"]: row for row, image in enumerate(truth["images"])}
    objects = [
        plain.Object(
            plain.sides(*map(float, one["bbox"])),
            images[one["image_id"]],
            one["category_id"] - 1,
            float(one["area"]),
            bool(one["iscrowd"]),
        )
        for one in truth["annotations"]
    ]
    found = [
        plain.Detection(
            plain.sides(*map(float, one["bbox"])),
            float(one["score"]),
            images[one["image_id"]],
            one["category_id"] - 1,
        )
        for one in results
    ]
    result = plain.evaluate(objects, found, len(images), 2, protocol)
    theirs = result.metrics
    ours = metrics_of(output)
    if list(ours) != list(theirs):
        return Judged("differs", f"metrics {list(ours)[:4]} here, {list(theirs)[:4]} by the rules")
    for key, value in theirs.items():
        if not (ours[key] == value or (math.isnan(ours[key]) and math.isnan(value))):
            return Judged("differs", f"{key}: {ours[key]!r} here, {value!r} by the rules")
    other = other_cell(lambda: cells_of(folder / "gt.json", folder / "dt.json", protocol), result.arrays)
    return Judged("differs", other) if other else Judged("equal")


READERS = {
    "protocols": Reader(_protocol, oracle, 2.0),
    "run-configurations": Reader(_configuration, None, 1.0),
}
