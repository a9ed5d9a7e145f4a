"""Calibration errors of detectors whose true error is known: their bias, and how often intervals hold.

python benchmarks/calibration.py                     # the tables of docs/contributing/interval-coverage.md
python benchmarks/calibration.py --images 20 --repetitions 100

A score is drawn from a mixture of two beta distributions, and a detection is true with the probability that
a curve gives for its score. Images differ in the number of detections and in difficulty, which all detections
of an image share (a Gaussian copula of correlation 0.3). Eight classes have 35 to 2% of the detections.
"""

from __future__ import annotations

import argparse
import math
from statistics import NormalDist

import numpy as np

import boxscore
from boxscore.diagnostics import calibration_error

MOST_LOW = ((0.6, 1, 6), (0.4, 4, 2))
"""Share and parameters of each beta distribution: mostly low scores, as detectors give them."""

SURE = ((1.0, 12, 1),)
"""Scores near 1, as after a score threshold: outcomes that are nearly all the same."""

WORLDS = {
    "calibrated": (MOST_LOW, lambda score: score),
    "calibrated, most above 0.9": (SURE, lambda score: score),
    "up to 0.1 too high": (MOST_LOW, lambda score: score - 0.4 * score * (1 - score)),
    "far too high": (MOST_LOW, lambda score: score**2.5),
}
SHARES = [0.35, 0.22, 0.15, 0.10, 0.08, 0.05, 0.03, 0.02]
DIFFICULTY = 0.3
PER_IMAGE = 8
BINS = 10
REPETITIONS = {20: 1000, 50: 600, 200: 300, 1000: 150, 5000: 60}
NORMAL = np.vectorize(NormalDist().cdf, otypes=[float])


def true_error(mixture, curve) -> float:
    """Integrate the gap over the scores of each of the ten bins."""
    score = (np.arange(1_000_000) + 0.5) / 1_000_000
    density = sum(
        share * math.gamma(a + b) / math.gamma(a) / math.gamma(b) * score ** (a - 1) * (1 - score) ** (b - 1)
        for share, a, b in mixture
    )
    gaps = (density * (curve(score) - score)).reshape(BINS, -1).sum(axis=1)
    return float(np.abs(gaps).sum() / density.sum())


def detector(random, images: int, mixture, curve):
    """Evaluate detections that overlap an object exactly, or nothing."""
    image = np.repeat(np.arange(images), random.poisson(random.gamma(2, PER_IMAGE / 2, images)))
    part = random.choice(len(mixture), len(image), p=[share for share, _, _ in mixture])
    score = random.beta(*np.array([shape for _, *shape in mixture])[part].T)
    common, single = random.normal(size=images)[image], random.normal(size=len(image))
    latent = math.sqrt(DIFFICULTY) * common + math.sqrt(1 - DIFFICULTY) * single
    true = NORMAL(latent) < curve(score)
    category = random.choice(len(SHARES), len(image), p=SHARES)
    corner = 20.0 * np.arange(len(image))
    boxes = np.stack([corner, corner, corner + 10, corner + 10], axis=1)
    truth = boxscore.GroundTruth.from_arrays(
        image[true], category[true], boxes[true], images=range(images), categories=range(len(SHARES))
    )
    detections = boxscore.Detections.from_arrays(image, category, boxes, score, images=truth.images)
    return boxscore.evaluate(truth, detections, digest=False)


def measured(random, images: int, repetitions: int, mixture, curve) -> dict[str, np.ndarray]:
    """Return plain and debiased error and the ends of the interval, [repetitions, 4], of each kind of row."""
    rows: dict[str, list[list[float]]] = {"all": [], "mean of classes": [], "per class": []}
    for repetition in range(repetitions):
        result = calibration_error(detector(random, images, mixture, curve), seed=repetition)
        columns = [result.per_class[1:5], result.total[1:5], result.mean[1:5]]
        rows["all"].append(columns[1])
        rows["mean of classes"].append(columns[2])
        rows["per class"] += [row for row in np.transpose(columns[0]) if np.isfinite(row).all()]
    return {name: np.array(row, dtype=float) for name, row in rows.items()}


def main() -> None:
    """Print both errors and how often the interval holds, and what it misses on either side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, nargs="+", default=list(REPETITIONS))
    parser.add_argument("--repetitions", type=int, help="of each number of images (default: 1,000 to 60)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tables: dict[str, list[str]] = {"plain / debiased": [], "holds": [], "below / above the interval": []}
    for name, (mixture, curve) in WORLDS.items():
        true = true_error(mixture, curve)
        of_images = [
            measured(
                np.random.default_rng([arguments.seed, images]),
                images,
                arguments.repetitions or REPETITIONS.get(images, 100),
                mixture,
                curve,
            )
            for images in arguments.images
        ]
        for kind in of_images[0]:
            entries: tuple[list[str], ...] = ([], [], [])
            for values in of_images:
                plain, debiased, low, high = values[kind].T
                below, above = np.mean(true < low), np.mean(true > high)
                # + 0.0: no -0.000
                entries[0].append(f"{plain.mean():.3f} / {round(debiased.mean(), 3) + 0.0:.3f}")
                entries[1].append(f"{100 * (1 - below - above):.1f}%")
                entries[2].append(f"{100 * below:.1f} / {100 * above:.1f}")
            for table, row in zip(tables.values(), entries, strict=True):
                table.append(f"| {name} | {kind} | {true:.3f} | {' | '.join(row)} |")
    for title, table in tables.items():
        print(
            f"\n{title}\n\n| scores | | true | {' | '.join(f'{images:,}' for images in arguments.images)} |"
        )
        print(f"|---|---|---:|{'---:|' * len(arguments.images)}")
        print("\n".join(table))


if __name__ == "__main__":
    main()
