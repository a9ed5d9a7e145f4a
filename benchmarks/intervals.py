"""How often intervals of differences hold the truth and verdicts err, on made-up data of known truth.

    python benchmarks/intervals.py --images 20 --repetitions 1000     one row of the tables in
                                                                     docs/contributing/interval-coverage.md

The world has eight classes (35% to 2% of the objects), about four objects in an image, and images that are
hard or easy for both detectors. Its true scores are those of very many images. Each repetition draws a fresh
sample, asks boxscore, and notes whether the interval holds the true score, and whether equal detectors are
called different.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore import Detections, Evaluation, GroundTruth, evaluate
from boxscore.diagnostics import compare_detectors

SHARES = np.array([0.35, 0.22, 0.15, 0.10, 0.08, 0.05, 0.03, 0.02])
PROTOCOL = {
    "extends": "coco",
    "name": "three metrics",
    "summary": [{"key": "AP"}, {"key": "AP50", "iou": 0.5}, {"key": "APs", "area": "small"}],
}


def shares_of(classes: int) -> NDArray[np.float64]:
    """Return the share of each class in the objects: eight, or a long tail of any number (Zipf)."""
    ranks = 1 / np.arange(1, classes + 1)
    return SHARES if classes == len(SHARES) else ranks / ranks.sum()


def world(
    random: np.random.Generator,
    images: int,
    skills: tuple[float, ...] = (0.0, 0.0),
    frames: int = 1,
    classes: int = 8,
) -> tuple[GroundTruth, list[Detections], NDArray[np.int64]]:
    """Draw images, and detections of detectors that differ in skill; frames of a video are alike."""
    video, shares = np.arange(images) // frames, shares_of(classes)
    objects = random.poisson(4, images)
    image = np.repeat(np.arange(images), objects)
    count = len(image)
    label = random.choice(classes, count, p=shares)
    side = np.exp(random.normal(np.log(50), 0.7, count)).clip(6, 300)
    boxes = np.column_stack([random.uniform(0, 2000, (count, 2)), side, side])
    ease = random.normal(0, 1, images)
    if frames > 1:
        ease = 0.5 * ease + random.normal(0, 1, images // frames + 1)[video]
    truth = GroundTruth.from_arrays(
        image, label, boxes, box_format="xywh", images=range(images), categories=range(classes)
    )
    tables = []
    for skill in skills:
        quality = 1 + skill + 0.8 * ease[image] + random.normal(0, 0.8, count) - 0.3 * (side < 32)
        chance = 1 / (1 + np.exp(-quality))
        seen = random.random(count) < chance
        moved = boxes + np.column_stack(
            [
                random.normal(0, 0.04 + 0.08 * (1 - chance)) * side,
                random.normal(0, 0.05, count) * side,
                np.zeros((count, 2)),
            ]
        )
        score = 1 / (1 + np.exp(-(quality + random.normal(0, 1, count))))
        false = np.repeat(np.arange(images), random.poisson(3, images))
        false_side = np.exp(random.normal(np.log(50), 0.7, len(false))).clip(6, 300)
        false_boxes = np.column_stack([random.uniform(0, 2000, (len(false), 2)), false_side, false_side])
        false_score = 1 / (1 + np.exp(0.8 - random.normal(0, 1, len(false)) - 0.3 * ease[false]))
        tables.append(
            Detections.from_arrays(
                np.concatenate([image[seen], false]),
                np.concatenate([label[seen], random.choice(classes, len(false), p=shares)]),
                np.concatenate([moved[seen], false_boxes]),
                np.concatenate([score[seen], false_score]),
                box_format="xywh",
            )
        )
    return truth, tables, video


def evaluated(
    random: np.random.Generator, images: int, skills: tuple[float, ...], frames: int, classes: int = 8
) -> tuple[list[Evaluation], NDArray[np.int64]]:
    """Evaluate every detector on one sample."""
    truth, tables, video = world(random, images, skills, frames, classes)
    return [evaluate(truth, table, protocol=PROTOCOL, digest=False) for table in tables], video


class Shares:
    """Shares of what is noted under a name, and over how many."""

    def __init__(self) -> None:
        self._seen: dict[str, list[float]] = defaultdict(list)

    def note(self, name: str, values: Any) -> None:
        """Note one value, or several."""
        self._seen[name] += np.atleast_1d(values).astype(float).tolist()

    def as_dict(self) -> dict[str, Any]:
        """Return each share, and of how many."""
        return {name: [round(float(np.mean(seen)), 4), len(seen)] for name, seen in self._seen.items()}


def truth_of(
    frames: int, skills: tuple[float, ...], images: int = 60_000, classes: int = 8
) -> list[tuple[Any, Any]]:
    """Return the true scores of each detector: over all, [M], and per class, [M, K]."""
    results, _ = evaluated(np.random.default_rng(987_654_321), images, skills, frames, classes)
    return [
        (np.array(list(one.metrics.values())), np.array(list(one.class_values.values()))) for one in results
    ]


def _holds(part: Any, delta: Any) -> Any:
    return (part.low <= delta) & (delta <= part.high)


def run(
    images: int,
    repetitions: int,
    *,
    seed: int,
    draws: int,
    frames: int = 1,
    skill: float = 0.2,
    classes: int = 8,
) -> dict[str, Any]:
    """Repeat; return the shares of intervals that hold, of false verdicts, and of true ones."""
    random, shares = np.random.default_rng([seed, images, frames]), Shares()
    skills = (0.0, 0.0, skill)
    (mean, of_mean), _, (better, of_better) = truth_of(frames, skills, classes=classes)
    for repetition in range(repetitions):
        results, video = evaluated(random, images, skills, frames, classes)
        group = video.tolist() if frames > 1 else None
        options: dict[str, Any] = {"resamples": draws, "seed": repetition, "group": group}
        equal = compare_detectors({"a": results[0], "b": results[1]}, **options)
        for m, name in enumerate(equal.metrics):
            shares.note(f"false verdict {name}", equal.total.p_value[0, m] <= 0.05)
            shares.note(f"difference of equal {name}", _holds(equal.total.take(0, m), 0.0))
        shares.note("false verdict of a class", (equal.per_class.p_value[0, 0] <= 0.05).any())
        shares.note("gate fails", (equal.drops[0] <= 0.05).any())
        unequal = compare_detectors({"a": results[0], "c": results[2]}, metrics=["AP"], **options)
        total, each = unequal.total.take(0, 0), unequal.per_class.take(0, 0)
        shares.note("difference", _holds(total, better[0] - mean[0]))
        known = np.isfinite(each.low)
        shares.note("differences of classes", _holds(each, of_better[0] - of_mean[0])[known])
        shares.note("width", total.high - total.low)
        shares.note("power", total.verdict == "better")
        shares.note("wrong way", total.verdict == "worse")
        shares.note("class wrong way", (each.verdict == "worse").any())
    return {
        "images": images,
        "frames": frames,
        "classes": classes,
        "repetitions": repetitions,
        "draws": draws,
        "AP": round(float(mean[0]), 4),
        "difference": round(float(better[0] - mean[0]), 4),
        "shares": shares.as_dict(),
    }


def run_family(images: int, repetitions: int, *, seed: int, draws: int, count: int = 10) -> dict[str, Any]:
    """Compare equal detectors: how often any verdict against the first, or any pair, is wrong."""
    random, shares = np.random.default_rng([seed, images, count]), Shares()
    for repetition in range(repetitions):
        results, _ = evaluated(random, images, (0.0,) * count, 1)
        named = {str(number): result for number, result in enumerate(results)}
        comparison = compare_detectors(named, metrics=["AP"], resamples=draws, seed=repetition)
        shares.note("any verdict", (comparison.total.p_value <= 0.05).any())
        shares.note("any pair", comparison.pairs.significant.any())
    return {"images": images, "detectors": count, "repetitions": repetitions, "shares": shares.as_dict()}


def show(result: dict[str, Any], file: Path | None) -> None:
    """Print a result as JSON, and write it to a file if there is one."""
    text = json.dumps(result, indent=1)
    if file:
        file.write_text(text)
    print(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=300, help="resamples and exchanges")
    parser.add_argument("--frames", type=int, default=1, help="images of each video")
    parser.add_argument("--detectors", type=int, default=2, help="more than two: a family of equal ones")
    parser.add_argument("--classes", type=int, default=8, help="other than 8: shares with a long tail")
    parser.add_argument("--skill", type=float, default=0.2, help="by how much the better detector is better")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.detectors > 2:
        known = {"seed": options.seed, "draws": options.draws, "count": options.detectors}
        result = run_family(options.images, options.repetitions, **known)
    else:
        result = run(
            options.images,
            options.repetitions,
            seed=options.seed,
            draws=options.draws,
            frames=options.frames,
            classes=options.classes,
            skill=options.skill,
        )
    show(result, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
