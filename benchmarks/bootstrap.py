"""Time the bootstrap: resamples a second of a COCO-like data set, one core, nothing matched again.

python benchmarks/bootstrap.py --images 5000 --detections 200000 --resamples 50
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import boxscore
from boxscore.diagnostics import bootstrap_intervals


def main() -> None:
    """Make a data set, evaluate it, time the draws, print one line a set of metrics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--objects", type=int, default=37000)
    parser.add_argument("--detections", type=int, default=200_000)
    parser.add_argument("--resamples", type=int, default=50)
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    image = random.integers(0, arguments.images, arguments.objects)
    category = np.minimum(random.geometric(0.06, arguments.objects), 80)
    boxes = np.concatenate(
        [random.uniform(0, 500, (arguments.objects, 2)), random.lognormal(4, 0.8, (arguments.objects, 2))],
        axis=1,
    )
    of = random.integers(0, arguments.objects, arguments.detections)
    noise = random.normal(0, 0.15, (arguments.detections, 4)) * boxes[of][:, [2, 3, 2, 3]]
    stray = random.random(arguments.detections) < 0.6
    detected = np.where(stray[:, None], random.permutation(boxes[of]), boxes[of]) + noise
    detected[:, 2:] = np.abs(detected[:, 2:])
    scores = np.where(stray, random.beta(1, 6, len(of)), random.beta(2, 2, len(of)))
    truth = boxscore.GroundTruth.from_arrays(
        image, category, boxes, box_format="xywh", images=range(arguments.images), categories=range(1, 81)
    )
    detections = boxscore.Detections.from_arrays(
        image[of], category[of], detected, scores, box_format="xywh", images=truth.images
    )
    evaluation = boxscore.evaluate(truth, detections)
    print(f"AP {evaluation.metrics['AP']:.4f}, {len(detections):,} detections, {arguments.images:,} images")
    for title, metrics in (("AP", ["AP"]), ("AP AP50 AP75", ["AP", "AP50", "AP75"]), ("all twelve", None)):
        started = time.perf_counter()
        bootstrap_intervals(evaluation, resamples=arguments.resamples, metrics=metrics)
        seconds = (time.perf_counter() - started) * 1000 / arguments.resamples
        print(f"{title:14}{seconds:8.1f} s for 1,000 resamples")


if __name__ == "__main__":
    main()
