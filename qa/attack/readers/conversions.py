"""What ``convert`` writes: read again, it scores like what it was made of."""

from __future__ import annotations

import math
import random
import warnings
from pathlib import Path

import boxscore
from attack.engine import hostile, trees
from attack.engine.acceptance import RefusedError, compare_coco, read_json
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import coco

__all__ = ["READERS"]

EXACT = ("out.csv", "out.parquet", "out.json", "out.npz")
"""Outputs that hold boxes of any kind to the last bit."""
FOLDERS = ("yolo", "voc", "darknet")
PARTS = [
    *(
        (),
        (),
        ("--lossy",),
        ("--without-empty",),
        ("--crowd", "none"),
        ("--crowd", "only"),
        ("--sample", "1"),
    ),
    *(("--area", "10:1000"), ("--classes", "cat"), ("--split", "train=0.5", "val=0.5"), ("--images", "1")),
    *(("--sample", "9"), ("--area", "1:0"), ("--split", "a=1"), ("--split", "../x=0.5", "b=0.5")),
]


def _make(rng: random.Random) -> Mutant:
    truth, results = coco.seeds(rng.choice(["coco", "coco", "coco", "coco-segm", "coco-keypoints"]), rng)
    steps = rng.choice([1, 1, 2, 3])
    for _ in range(steps):
        try:
            if rng.random() < 0.7:
                rng.choice(coco.LEGAL)(truth, results, rng)
            elif rng.random() < 0.6:
                truth = trees.spoilt(truth, rng)
            else:
                results = trees.spoilt(results, rng)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            continue
    files = {"gt.json": trees.as_json(truth, rng), "dt.json": trees.as_json(results, rng)}
    if rng.random() < 0.5:
        output = rng.choice(EXACT)
        side = rng.choice([(), ("--dt", "dt.json")])
        return Mutant(files, ("convert", "--gt", "gt.json", *side, "--output", output), steps)
    side = rng.choice([(), (), ("--dt", "dt.json"), ("gt.json",)])
    output, to = rng.choice([*((name, "auto") for name in EXACT), *(("out", name) for name in FOLDERS)])
    if rng.random() < 0.1:
        output, to = "out", rng.choice(["coco", "csv", "yolo", "columns", "parquet"])
    if rng.random() < 0.05:
        output = hostile.text(rng) or "x"
    arguments = ("convert", "--gt", "gt.json", *side, "--output", output, "--to", to, *rng.choice(PARTS))
    return Mutant(files, arguments, steps, compare=False)


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Score what was written, in place of what it was made of."""
    try:
        truth, results = read_json(folder / "gt.json"), read_json(folder / "dt.json")
    except RefusedError:
        return Judged("unknown", "not JSON to others")
    written = folder / mutant.arguments[mutant.arguments.index("--output") + 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_results = "--dt" in mutant.arguments
        original = boxscore.load_ground_truth(folder / "gt.json")
        try:
            asked = boxscore.evaluate(
                original, boxscore.load_detections(folder / "dt.json", original)
            ).metrics
        except boxscore.errors.BoxscoreError:
            return Judged("unknown", "the other side is refused")
        try:
            table = original if of_results else boxscore.load_ground_truth(written)
            found = boxscore.load_detections(written if of_results else folder / "dt.json", table)
        except boxscore.errors.BoxscoreError as error:
            return Judged("differs", f"refused, though written: {written.name}, {error}"[:300])
        ours = boxscore.evaluate(table, found).metrics
    if [repr(value) for value in ours.values()] != [repr(value) for value in asked.values()]:
        name = next(key for key in asked if repr(asked[key]) != repr(ours[key]))
        return Judged("differs", f"{name}: {asked[name]!r}, and {ours[name]!r} of {written.name}")
    judged = compare_coco(
        truth, results, {key: math.nan if v is None else float(v) for key, v in ours.items()}
    )
    return (
        judged if judged.kind in ("equal", "documented") else Judged("unknown", f"of JSON: {judged.detail}")
    )


READERS = {"conversions": Reader(_make, oracle, 0.8)}
