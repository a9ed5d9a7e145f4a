"""How often verdicts about epochs and intervals of folds are right, on made-up data of known truth.

    python benchmarks/epochs_and_folds.py epochs --images 20 --skills 0 0 0 0 0 0 0 0 0 0
    python benchmarks/epochs_and_folds.py epochs --images 50 --skills -1.5 -.8 -.4 -.2 -.1 0 0 0 -.1 -.2
    python benchmarks/epochs_and_folds.py folds --images 150 --folds 5 --training .15 --chance .05

Each is a row of a table in docs/contributing/interval-coverage.md. The epochs of a run are made alike: they
share most of the chance with which objects are found, scored and located. The skill of the model of a fold is
the mean of one random number per training image, so folds that share images have similar models.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from intervals import Shares, shares_of
from numpy.typing import NDArray

from boxscore import Detections, GroundTruth, Suite, evaluate, run_suite, save_as
from boxscore.epochs import epoch_curve

PROTOCOL = {"extends": "coco", "name": "one metric", "summary": [{"key": "AP"}]}
LARGE = 20_000
"""Number of images whose score is the truth."""

Random = np.random.Generator


def world(
    random: Random, skills: NDArray[np.float64], classes: int, alike: float
) -> tuple[GroundTruth, list[Detections]]:
    """Draw images, and the detections of epochs of some skill in each image, [epochs, images]."""
    images, shares = skills.shape[1], shares_of(classes)
    image = np.repeat(np.arange(images), random.poisson(4, images))
    false = np.repeat(np.arange(images), random.poisson(3, images))
    label, of_false = (
        random.choice(classes, len(image), p=shares),
        random.choice(classes, len(false), p=shares),
    )
    sides = [np.exp(random.normal(np.log(50), 0.7, len(each))).clip(6, 300) for each in (image, false)]
    boxes, false_boxes = (
        np.column_stack([random.uniform(0, 2000, (len(side), 2)), side, side]) for side in sides
    )
    ease, side = random.normal(0, 1, (images,)), sides[0]
    common, of_score = random.normal(0, 1, (5, len(image))), random.normal(0, 1, len(false))

    def chance(shared: NDArray[np.float64]) -> NDArray[np.float64]:
        own = random.normal(0, 1, len(shared))
        mixed: NDArray[np.float64] = np.sqrt(alike) * shared + np.sqrt(1 - alike) * own
        return mixed

    truth = GroundTruth.from_arrays(
        image, label, boxes, box_format="xywh", images=range(images), categories=range(classes)
    )
    tables = []
    for skill in skills:
        quality = 1 + skill[image] + 0.8 * ease[image] + 0.8 * chance(common[0]) - 0.3 * (side < 32)
        found = 1 / (1 + np.exp(-quality))
        # An object is found if a logistic number, about normal, is below its quality.
        seen = 1.7 * chance(common[1]) < quality
        shift = [chance(common[2]) * (0.04 + 0.08 * (1 - found)) * side, chance(common[3]) * 0.05 * side]
        moved = boxes + np.column_stack([*shift, np.zeros((len(side), 2))])
        score = 1 / (1 + np.exp(-(quality + chance(common[4]))))
        kept = random.random(len(false)) < 0.8
        false_score = 1 / (1 + np.exp(0.8 - chance(of_score) - 0.3 * ease[false]))
        columns = zip((image, label, moved, score), (false, of_false, false_boxes, false_score), strict=True)
        parts = [np.concatenate([one[seen], other[kept]]) for one, other in columns]
        tables.append(Detections.from_arrays(*parts, box_format="xywh"))
    return truth, tables


def true_scores(skills: NDArray[np.float64], classes: int, alike: float) -> NDArray[np.float64]:
    """Return the score of each skill on very many images."""
    every = np.repeat(skills[:, None], LARGE, axis=1)
    truth, tables = world(np.random.default_rng(10**6), every, classes, alike)
    return np.array([evaluate(truth, one, protocol=PROTOCOL, digest=False)["AP"] for one in tables])


def run_epochs(options: argparse.Namespace) -> dict[str, Any]:
    """Note how often the truly best epoch is kept, and how far the best one falls on other images."""
    skills = np.array(options.skills)
    distinct, of_each = np.unique(skills, return_inverse=True)
    true = true_scores(distinct, options.classes, options.alike)[of_each]
    random, shares = np.random.default_rng(options.seed), Shares()
    every = np.repeat(skills[:, None], options.images, axis=1)
    for repetition in range(options.repetitions):
        truth, tables = world(random, every, options.classes, options.alike)
        results = ((n, evaluate(truth, one, protocol=PROTOCOL, digest=False)) for n, one in enumerate(tables))
        curve = epoch_curve(results, seed=repetition)
        bias = (curve.values - true).mean()
        shares.note("a best epoch is excluded", ~curve.may_be_best[true == true.max()])
        shares.note("the last epoch is excluded", not curve.may_be_best[-1])
        shares.note("epochs kept", curve.may_be_best.sum())
        shares.note("true excess", (curve.values - true - bias)[curve.best])
        shares.note("estimated excess", curve.excess)
    return {"AP": true.round(4).tolist(), "shares": shares.as_dict()}


def run_folds(options: argparse.Namespace) -> dict[str, Any]:
    """Note how often the interval of a mean over folds holds the score of an average training."""
    folds, images, spread = options.folds, options.images, np.hypot(options.training, options.chance)
    grid = np.linspace(-3, 3, 5) * spread
    curve = np.polyfit(grid, true_scores(grid, options.classes, 0.0), 3) if spread else [0.0]
    skills = np.random.default_rng(5).normal(0, spread, 100_000)
    true = np.polyval(curve, skills) if spread else true_scores(np.zeros(1), options.classes, 0.0)
    random, shares = np.random.default_rng(options.seed), Shares()
    for repetition in range(options.repetitions):
        fold = random.permutation(images) % folds
        effect = random.normal(0, options.training * np.sqrt(images * (folds - 1) / folds), images)
        models = np.array([effect[fold != f].mean() for f in range(folds)])
        models += random.normal(0, options.chance, folds)
        with tempfile.TemporaryDirectory() as name:
            for f, skill in enumerate(models.tolist()):
                folder = Path(name) / f"fold{f}"
                folder.mkdir()
                of_fold = np.full((1, int((fold == f).sum())), skill)
                truth, (table,) = world(random, of_fold, options.classes, 0.0)
                save_as(truth, folder / "instances.json")
                save_as(table, folder / "model.json")
            result = run_suite(Suite.read(name), metric="AP", folds=folds, resamples=1, seed=repetition)
        row = result.model_frame().iloc[0]
        shares.note("holds", row["low"] <= true.mean() <= row["high"])
        shares.note("width", row["high"] - row["low"])
        shares.note("bias of the mean", row["mean"] - true.mean())
        shares.note("bias of the estimate", row["estimate"] - true.mean())
    return {
        "AP": round(float(true.mean()), 4),
        "sd of AP": round(float(true.std()), 4),
        "shares": shares.as_dict(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("epochs", "folds"))
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--classes", type=int, default=8, help="other than 8: shares with a long tail")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--skills", type=float, nargs="+", default=[0.0] * 10, help="of each epoch")
    parser.add_argument("--alike", type=float, default=0.7, help="share of the variance that epochs share")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--training", type=float, default=0.15, help="sd of skill by training images")
    parser.add_argument("--chance", type=float, default=0.05, help="sd of skill by chance of a training")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    run = run_epochs if options.what == "epochs" else run_folds
    print(json.dumps({**vars(options), **run(options)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
