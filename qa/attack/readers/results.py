"""Results in JSON that boxscore wrote, as ``check`` reads them; and results files of several detectors."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

from attack.engine import hostile, trees
from attack.engine.acceptance import RefusedError, read_json
from attack.engine.hostile import Raw
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import coco

__all__ = ["READERS"]

SIGNATURE = "boxscore|coco|iou:0.50:0.95/10|ap:101|maxdet:1,10,100|area:coco|crowd:iof|offset:0|v:0.1.0"
RESULT: dict[str, Any] = {
    "schema": 1,
    "protocol": "coco",
    "signature": SIGNATURE,
    "metrics": {"AP": 0.4, "AP50": 0.6, "AP75": 0.5, "APs": None, "AR100": 0.7},
    "per_class": [{"class": "cat", "ground_truths": 2, "detections": 3, "AP": 0.4}],
    "counts": {"images": 2},
    "warnings": [],
}
VALUES = [
    0,
    1,
    1.0000000000000002,
    5.0,
    -0.1,
    -1,
    None,
    True,
    "0.9",
    [],
    Raw("NaN"),
    Raw("Infinity"),
    Raw("1e400"),
]


def _result(rng: random.Random, steps: int) -> bytes:
    tree, raw = copy.deepcopy(RESULT), 0
    for _ in range(steps):
        way = rng.random()
        if way < 0.4 and isinstance(tree, dict) and isinstance(tree.get("metrics"), dict):
            tree["metrics"][rng.choice(["AP", "AP", "AP50", "new"])] = rng.choice(VALUES)
        elif way < 0.85:
            tree = trees.spoilt(tree, rng)
        else:
            raw += 1
    data = trees.as_json(tree, rng)
    for _ in range(raw):
        data = hostile.damaged(data, rng)
    return data


def _check(rng: random.Random) -> Mutant:
    steps = rng.choice([1, 1, 2, 3])
    files = {"result.json": _result(rng, steps), "baseline.json": _result(rng, rng.choice([0, 0, 1, 2]))}
    bound = rng.choice(
        [
            "cat AP=0.3",
            "'cat' AP=0.5",
            "AP=0.3",
            "AP=0.99",
            "AP50=0.5",
            "APs=0.1",
            "AP=nan",
            "AP=inf",
            "AP= 0.1",
            "AP=1e400",
            "x=1",
        ]
    )
    ways = [
        ("--min", bound),
        ("--max", bound),
        ("--no-regression", "baseline.json"),
        ("--min", bound, "--max", "AP=1"),
    ]
    arguments = ("check", "--result", "result.json", *rng.choice(ways), "--output", "json")
    return Mutant(files, arguments, steps)


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """A check may pass only what is a result: metrics in 0..1 or null, and a bound that is met."""
    try:
        for name in ("result.json", *(("baseline.json",) if "--no-regression" in mutant.arguments else ())):
            result = read_json(folder / name)
            for value in result["metrics"].values():
                if value is None or (isinstance(value, float) and 1 < value < 1 + 1e-9):  # sums of 11 points
                    continue
                if isinstance(value, bool) or not 0 <= value <= 1:
                    raise RefusedError(f"check: a metric that is {value!r}"[:60])
    except RefusedError as error:
        return Judged("laxer", str(error))
    except (TypeError, KeyError, AttributeError) as error:
        return Judged("laxer", f"check: {type(error).__name__}")
    stored = read_json(folder / "result.json")
    metrics = stored["metrics"]
    for word, sign in (("--min", 1), ("--max", -1)):
        if word in mutant.arguments:
            key, _, text = mutant.arguments[mutant.arguments.index(word) + 1].partition("=")
            if key.endswith(("cat AP", "'cat' AP")):
                rows = [row for row in stored["per_class"] if row["class"] == "cat"]
                value = rows[0]["AP"] if len(rows) == 1 else None
            else:
                value = metrics[key]
            if value is None or not sign * value >= sign * float(text):
                return Judged("differs", f"{word} {key}={text} passed with {value!r}")
    if not all(row["passed"] for row in json.loads(output)["checks"]):
        return Judged("differs", "status 0 though a check failed")
    return Judged("equal")


def _compare(rng: random.Random) -> Mutant:
    truth, results = coco.seeds("coco", rng)
    other, steps = copy.deepcopy(results), rng.choice([1, 2])
    for _ in range(steps):
        other = trees.spoilt(other, rng)
    files = {
        "gt.json": trees.as_json(truth),
        "a.json": trees.as_json(results),
        "b.json": trees.as_json(other, rng),
    }
    more = rng.choice([(), ("--per-class",), ("--output", "json"), ("--metrics", "AP", "AR1")])
    gt = ("--gt", "gt.json", "--dt", "a.json", "b.json", "--workers", "1", "--resamples", "3")
    return Mutant(files, ("compare", *gt, *more), steps, compare=False)


READERS = {"check-results": Reader(_check, oracle, 1.5), "compare": Reader(_compare, None, 0.3)}
