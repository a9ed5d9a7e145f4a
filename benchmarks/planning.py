"""How often a planned number of images leads to the verdict: ``compare --plan`` against what is reached.

    python benchmarks/planning.py --images 100 --skill 0.4         the made-up world of intervals.py
    python benchmarks/planning.py --coco FOLDER --images 200       COCO val2017, two noisy copies of YOLOv2

Each repetition plans from some images, draws as many others as the plan says, several times, and notes how
often the better detector is called better. The true difference is that of very many made-up
images, or of all 5,000 of COCO; of these, images of a plan and of its verdicts are different ones, drawn
without replacement.
``--observed`` plans for the difference that the first images show, where the better detector is ahead.
``--class 3 --images 200 --skill 0.8 --draws 1000`` plans for one made-up class, decided among all eight.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from intervals import evaluated, show, truth_of

import boxscore
from boxscore import Evaluation, evaluate
from boxscore.diagnostics import plan_comparison
from boxscore.extensions.decisions.swapping import swapped_differences
from boxscore.extensions.diagnostics.bootstrap import chosen_rows

Pair = list[Evaluation]


class Source(NamedTuple):
    """Where images come from."""

    difference: float
    """True: the second detector is better by this."""
    draw: Callable[[int], Pair]
    """Evaluate both on some images: the first call of a repetition, then on others."""
    again: Callable[[int], Pair]
    most: int
    """Images that ``again`` can draw."""


def made_up(random: np.random.Generator, skill: float, label: int | None) -> Source:
    """Draw from the world of ``intervals.py``; the difference is that of a class, or over all of them."""
    skills = (0.0, skill)
    (mean, classes), (better, better_classes) = truth_of(1, skills)
    difference = better[0] - mean[0] if label is None else better_classes[0, label] - classes[0, label]
    draw = lambda images: evaluated(random, images, skills, 1)[0]  # noqa: E731
    return Source(float(difference), draw, draw, 10**9)


def coco(random: np.random.Generator, folder: Path, noise: float) -> Source:
    """Draw from COCO's validation set; detectors have noise on their boxes and scores, one a quarter more."""
    truth = boxscore.load_ground_truth(folder / "ground_truth_boxes.json")
    detections = boxscore.load_detections(folder / "yolov2_608.json", truth)
    tables = []
    for seed, size in enumerate((1.25 * noise, noise)):
        fixed = np.random.default_rng(seed)
        moved = detections.boxes + np.tile(fixed.normal(0, size, (len(detections), 2)) * detections.sizes, 2)
        scores = detections.scores + fixed.normal(0, size, len(detections))
        tables.append(dataclasses.replace(detections, boxes=moved, scores=scores))
    ids, order, held = truth.images.ids, np.arange(len(truth.images)), [0]

    def of(chosen: Any) -> Pair:
        wanted = ids[np.sort(chosen)].tolist()
        return [evaluate(truth, table, images=wanted, digest=False) for table in tables]

    def draw(images: int) -> Pair:
        random.shuffle(order)
        held[0] = images
        return of(order[:images])

    def again(images: int) -> Pair:
        return of(random.choice(order[held[0] :], images, replace=False))

    whole = [evaluate(truth, table, digest=False).metrics["AP"] for table in tables]
    return Source(whole[1] - whole[0], draw, again, len(ids))


def is_better(worse: Evaluation, better: Evaluation, draws: int, seed: int, label: int | None) -> bool:
    """Whether the swap test calls the better one better, over all classes or in one of them."""
    rows = chosen_rows(worse, ["AP"])
    exchanged = swapped_differences(worse, better, rows, resamples=draws, seed=seed)
    p_value = exchanged.p_values()[0, -1] if label is None else exchanged.p_values_of_classes()[0, label]
    return bool(p_value <= 0.05 and exchanged.observed[0, -1 if label is None else label] > 0)


def run(source: Source, asked: argparse.Namespace) -> dict[str, Any]:
    """Repeat; return the planned numbers of images, and the power that is reached with them."""
    planned, lower, upper, reached = [], [], [], []
    for repetition in range(asked.repetitions):
        first, other = source.draw(asked.images)
        result = plan_comparison(
            first,
            other,
            difference=None if asked.observed else source.difference,
            power=asked.power,
            resamples=asked.draws,
            seed=repetition,
            metrics=["AP"],
        )
        plan, place = (result.total, 0) if asked.label is None else (result.per_class, (asked.label, 0))
        if (asked.observed and not plan.delta[place] > 0) or np.isnan(plan.images_needed[place]):
            continue
        planned.append(float(plan.images_needed[place]))
        lower.append(float(plan.images_needed_low[place]))
        upper.append(float(plan.images_needed_high[place]))
        count = int(min(planned[-1], source.most - asked.images, asked.most))
        seen = [is_better(*source.again(count), 199, number, asked.label) for number in range(asked.verdicts)]
        reached.append(np.mean(seen))
        print(f"{planned[-1]:.0f} images, {sum(seen)} of {asked.verdicts}", file=sys.stderr, flush=True)
    middle = float(np.median(planned))
    share = float(np.mean(reached))
    return {
        "images": asked.images,
        "class": asked.label,
        "difference": round(source.difference, 4),
        "repetitions": len(planned),
        "verdicts": asked.verdicts * len(planned),
        "cut off": int(np.sum(np.array(planned) > asked.most)),
        "planned": [round(float(each)) for each in np.quantile(planned, [0.1, 0.5, 0.9])],
        "range holds the median plan": round(
            float(np.mean((np.array(lower) <= middle) & (middle <= np.array(upper)))), 3
        ),
        "power asked for": asked.power,
        "power reached": round(share, 3),
        "standard error": round(float(np.std(reached) / np.sqrt(len(reached))), 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--coco", type=Path, help="folder of ground_truth_boxes.json and yolov2_608.json")
    parser.add_argument("--noise", type=float, default=0.04, help="of boxes (in sides) and scores")
    parser.add_argument("--images", type=int, default=100, help="to plan from")
    parser.add_argument("--skill", type=float, default=0.4)
    parser.add_argument("--class", type=int, dest="label", choices=range(8), help="plan for this class")
    parser.add_argument("--power", type=float, default=0.8)
    parser.add_argument("--observed", action="store_true")
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--verdicts", type=int, default=5, help="of each plan")
    parser.add_argument("--draws", type=int, default=200, help="resamples and exchanges of a plan")
    parser.add_argument("--most", type=int, default=3000, help="images of a verdict, whatever is planned")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.coco and options.label is not None:
        parser.error("--class is of the made-up world")
    random = np.random.default_rng([options.seed, options.images])
    if options.coco:
        source = coco(random, options.coco, options.noise)
    else:
        source = made_up(random, options.skill, options.label)
    show(run(source, options), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
