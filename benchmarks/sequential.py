"""How often verdicts err that are asked for after every batch, and how soon they come, on made-up data.

    python benchmarks/sequential.py stop --skill 0 --images 1000      figures of
    python benchmarks/sequential.py gate --images 300                docs/contributing/interval-coverage.md
                                                                     and docs/how-to/continuous-integration.md

The world is that of intervals.py. ``stop`` compares two detectors batch by batch, and by the swap test on all
images. ``gate`` compares a baseline with one detector after another, all on the same images.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
from intervals import Shares, show, world

from boxscore import Detections, Evaluation, GroundTruth, evaluate
from boxscore.extensions.decisions.sequential import compare_sequentially, drop_in_batches, share_of_look
from boxscore.extensions.decisions.swapping import swapped_differences
from boxscore.extensions.diagnostics.bootstrap import chosen_rows

PROTOCOLS: dict[str, dict[str, Any]] = {
    "AP": {"extends": "coco", "name": "AP alone", "summary": [{"key": "AP"}]},
    "AP50": {
        "extends": "coco",
        "name": "AP50 alone",
        "matching": {"iou_thresholds": [0.5]},
        "summary": [{"key": "AP50", "iou": 0.5}],
    },
}


def evaluated(truth: GroundTruth, table: Detections, metric: str) -> Evaluation:
    """Evaluate one metric alone."""
    return evaluate(truth, table, protocol=PROTOCOLS[metric], digest=False)


def sharpened(table: Detections, power: float) -> Detections:
    """Raise scores to a power: the same AP, but no results that can be exchanged."""
    return dataclasses.replace(table, scores=table.scores**power)


def p_value(first: Evaluation, other: Evaluation, draws: int, seed: int, units: Any = None) -> float:
    """Return the p-value of the swap test."""
    rows = chosen_rows(first, None)
    swapped = swapped_differences(first, other, rows, resamples=draws, seed=seed, units=units)
    return float(swapped.p_values()[0, -1])


def stop(options: argparse.Namespace) -> dict[str, Any]:
    """Repeat a comparison; looks at p-values after every batch show what is avoided."""
    random, shares = np.random.default_rng([options.seed, options.images, options.frames]), Shares()
    stopped = []
    for repetition in range(options.repetitions):
        truth, tables, video = world(random, options.images, (0.0, options.skill), options.frames)
        tables[1] = sharpened(tables[1], options.power)
        first, other = (evaluated(truth, table, options.metric) for table in tables)
        grouped = options.frames > 1
        known: dict[str, Any] = {"resamples": options.draws, "seed": repetition}
        result = compare_sequentially(
            {"a": first, "b": other},
            batch=options.batch,
            group=video.tolist() if grouped and not options.ungrouped else None,
            **known,
        )
        shares.note(f"sequential {result.verdict}", 1)
        shares.note("sequential verdict", result.verdict != "cannot tell")
        shares.note("wrong way", result.verdict == "worse")
        if result.verdict != "cannot tell":
            stopped.append(result.images_read)
        shares.note("images read", result.images_read)
        if options.fixed:
            units = video.astype(np.int32) if grouped else None
            shares.note("swap test of all", p_value(first, other, options.draws, repetition, units) <= 0.05)
    return {
        **{name: value for name, value in vars(options).items() if name not in ("json", "run")},
        "shares": shares.as_dict(),
        "median stop": float(np.median(stopped)) if stopped else None,
    }


def gate(options: argparse.Namespace) -> dict[str, Any]:
    """Repeat a history of commits; how often any of them fails."""
    random, shares = np.random.default_rng([options.seed, options.images, 7]), Shares()
    for repetition in range(options.repetitions):
        skills = (0.0, *[options.skill] * options.commits)
        truth, tables, _ = world(random, options.images, skills)
        first, *others = (evaluated(truth, table, options.metric) for table in tables)
        known: dict[str, Any] = {"resamples": options.draws, "seed": repetition}
        plain, spent = [], []
        for look, other in enumerate(others, start=1):
            drop = drop_in_batches(
                first, other, metric=None, batch=options.batch, confidence=0.95, group=None, **known
            )
            spent.append(drop.p_value <= 0.05 * share_of_look(look))
            if options.fixed:
                swapped = swapped_differences(first, other, chosen_rows(first, None), **known)
                plain.append(swapped.p_values_of_drops(np.zeros(1, dtype=bool))[0] <= 0.05)
        shares.note("any commit fails", any(spent))
        shares.note("a commit fails", spent)
        for look in (1, 10, 50):
            if look <= len(spent):
                shares.note(f"look {look} fails", spent[look - 1])
        if options.fixed:
            shares.note("plain: any commit fails", any(plain))
            shares.note("plain: a commit fails", plain)
    return {
        **{name: value for name, value in vars(options).items() if name not in ("json", "run")},
        "shares": shares.as_dict(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", choices=("stop", "gate"))
    parser.add_argument("--metric", choices=tuple(PROTOCOLS), default="AP")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--skill", type=float, default=0.0, help="of the other; 0.2 is 0.02 AP")
    parser.add_argument("--power", type=float, default=1.0, help="to which the other's scores are raised")
    parser.add_argument("--frames", type=int, default=1, help="images of each video")
    parser.add_argument("--ungrouped", action="store_true", help="exchange frames, not videos")
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200, help="exchanges")
    parser.add_argument("--fixed", action="store_true", help="also the swap test of all images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    show(stop(options) if options.run == "stop" else gate(options), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
