"""How often intervals of one detector contain the score of very many images.

    python benchmarks/interval_coverage.py made --images 20 --samples 400
    python benchmarks/interval_coverage.py files --gt annotations.json --dt detections.json --images 100

A cell is a source of images and a sample size. Worlds are made up, and their true scores are those of very
many images. ``files`` draws images with replacement from a data set, whose scores are then the true ones:
the draws are independent, and a repeated image counts as another one. Each sample is evaluated, and every
interval that boxscore gives is compared with the true score.

========  ===================================================================================================
made      8 classes (35% to 2% of the objects), 4 objects an image, images that are hard or easy; AP about .40
high      the same with a better detector; AP about .78
small     10 classes, 40 objects an image, most of them below 32 x 32 pixels
tail      300 classes, the most frequent one in 17% of the objects and the rarest in .03%, 8 objects an image
many      80 classes, 7 objects and about 95 boxes an image
video     the world ``made``, in videos of 20 frames that are alike, grouped
========  ===================================================================================================
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boxscore
from boxscore import Detections, GroundTruth, evaluate
from boxscore.data.vocabulary import Images
from boxscore.diagnostics import bootstrap_intervals

Sample = tuple[GroundTruth, Detections, NDArray[np.int64] | None]
"""Ground truth, detections, and the video of each image if images are grouped."""

FRAMES = 20
BINS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 9), (10, 29), (30, 10**9))
"""Images with an object of a class."""


def world(
    random: np.random.Generator,
    images: int,
    shares: NDArray[np.float64],
    *,
    objects: float,
    side: float,
    skill: float,
    noise: float,
    false: float,
    video: NDArray[np.int64] | None = None,
    extent: float = 2000,
) -> Sample:
    """Draw images and the results of one detector."""
    # Images are hard or easy; frames of a video are alike.
    ease = random.normal(0, 1, images)
    if video is not None:
        ease = 0.5 * ease + random.normal(0, 1, int(video.max()) + 1)[video]
    # Objects: a class, a square, and how well the detector sees it.
    image = np.repeat(np.arange(images), random.poisson(objects, images))
    count = len(image)
    label = random.choice(len(shares), count, p=shares)
    sides = np.exp(random.normal(np.log(side), 0.7, count)).clip(6, 300)
    boxes = np.column_stack([random.uniform(0, extent, (count, 2)), sides, sides])
    quality = 1 + skill + 0.8 * ease[image] + random.normal(0, 0.8, count) - 0.3 * (sides < 32)
    chance = 1 / (1 + np.exp(-quality))
    seen = random.random(count) < chance
    moved = boxes + np.column_stack(
        [
            random.normal(0, noise * (3 - 2 * chance)) * sides,
            random.normal(0, 1.2 * noise, count) * sides,
            np.zeros((count, 2)),
        ]
    )
    score = 1 / (1 + np.exp(-(quality + random.normal(0, 1, count))))
    # False positives anywhere, with lower scores.
    wrong = np.repeat(np.arange(images), random.poisson(false, images))
    wrong_sides = np.exp(random.normal(np.log(side), 0.7, len(wrong))).clip(6, 300)
    wrong_boxes = np.column_stack([random.uniform(0, extent, (len(wrong), 2)), wrong_sides, wrong_sides])
    wrong_score = 1 / (1 + np.exp(0.8 - random.normal(0, 1, len(wrong)) - 0.3 * ease[wrong]))
    classes = range(len(shares))
    truth = GroundTruth.from_arrays(
        image, label, boxes, box_format="xywh", images=range(images), categories=classes
    )
    found = Detections.from_arrays(
        np.concatenate([image[seen], wrong]),
        np.concatenate([label[seen], random.choice(len(shares), len(wrong), p=shares)]),
        np.concatenate([moved[seen], wrong_boxes]),
        np.concatenate([score[seen], wrong_score]),
        box_format="xywh",
    )
    return truth, found, video


EIGHT = np.array([0.35, 0.22, 0.15, 0.10, 0.08, 0.05, 0.03, 0.02])
TEN = np.array([0.30, 0.20, 0.15, 0.10, 0.08, 0.06, 0.04, 0.03, 0.02, 0.02])
TAIL = np.arange(1, 301) ** -1.1 / (np.arange(1, 301) ** -1.1).sum()
WORLDS: dict[str, tuple[NDArray[np.float64], dict[str, float]]] = {
    "made": (EIGHT, {"objects": 4, "side": 50, "skill": 0, "noise": 0.04, "false": 3}),
    "high": (EIGHT, {"objects": 4, "side": 50, "skill": 2.5, "noise": 0.025, "false": 1.5}),
    "small": (TEN, {"objects": 40, "side": 16, "skill": 0, "noise": 0.05, "false": 30, "extent": 4000}),
    "tail": (TAIL, {"objects": 8, "side": 60, "skill": 0.5, "noise": 0.04, "false": 8}),
    "many": (
        TAIL[:80] / TAIL[:80].sum(),
        {"objects": 7, "side": 60, "skill": 0.3, "noise": 0.05, "false": 90},
    ),
    "video": (EIGHT, {"objects": 4, "side": 50, "skill": 0, "noise": 0.04, "false": 3}),
}


def made_up(name: str) -> Callable[[np.random.Generator, int], Sample]:
    """Return a function that draws images of a world."""
    shares, options = WORLDS[name]

    def draw(random: np.random.Generator, images: int) -> Sample:
        video = np.arange(images) // FRAMES if name == "video" else None
        return world(random, images, shares, video=video, **options)  # type: ignore[arg-type]

    return draw


def of_files(truth: GroundTruth, found: Detections) -> Callable[[np.random.Generator, int], Sample]:
    """Return a function that draws images of a data set with replacement."""

    def rows(table: Any, picked: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # Rows of each picked image, and the number of the picked image.
        order = np.argsort(table.image, kind="stable")
        starts = np.searchsorted(table.image[order], np.arange(len(truth.images) + 1))
        counts = np.diff(starts)[picked]
        first = starts[picked] - np.cumsum(counts) + counts
        number = np.repeat(np.arange(len(picked)), counts)
        return order[np.repeat(first, counts) + np.arange(counts.sum())], number

    def draw(random: np.random.Generator, images: int) -> Sample:
        picked = random.integers(0, len(truth.images), images)
        columns = {name: column[picked] for name, column in truth.images.columns.items()}
        names = Images.of_ids(np.arange(images), columns)
        tables = []
        for table in (truth, found):
            some, number = rows(table, picked)
            fields: dict[str, Any] = {"image": number.astype(np.int32), "images": names}
            tables.append(table.take(some).replaced(**fields))
        return tables[0], tables[1], None

    return draw


def chosen(truth: GroundTruth, found: Detections, names: list[str]) -> tuple[GroundTruth, Detections]:
    """Keep the objects and detections of some classes, and the classes."""
    if not names:
        return truth, found
    keep = [truth.categories.labels.index(name) for name in names]
    number = np.full(len(truth.categories), -1, dtype=np.int32)
    number[keep] = np.arange(len(keep))
    categories = type(truth.categories).build(range(len(keep)), names=names)
    tables = []
    for table in (truth, found):
        of_class = number[table.category]
        fields: dict[str, Any] = {"category": of_class[of_class >= 0], "categories": categories}
        tables.append(table.take(of_class >= 0).replaced(**fields))
    return tables[0], tables[1]


def measure(
    draw: Callable[[np.random.Generator, int], Sample],
    truth: boxscore.Evaluation,
    images: int,
    samples: int,
    *,
    seed: int,
    protocol: Any,
) -> dict[str, Any]:
    """Compare the intervals of samples with the true scores, over all classes and of each."""
    random = np.random.default_rng([seed, images])
    true = np.array(list(truth.metrics.values()))
    keys = list(truth.class_values)
    of_class = np.array(list(truth.class_values.values()))
    rows: dict[str, list[list[float]]] = defaultdict(list)
    bins: dict[str, list[bool]] = defaultdict(list)
    seconds = 0.0
    for sample in range(samples):
        ground_truth, found, video = draw(random, images)
        evaluation = evaluate(ground_truth, found, protocol=protocol, digest=False)
        started = time.process_time()
        group = None if video is None else video.tolist()
        result = bootstrap_intervals(evaluation, seed=sample, group=group, workers=1)
        seconds += time.process_time() - started
        total = result.total
        for m, key in enumerate(result.metrics):
            ends = [float(each[m]) for each in (total.value, total.estimate, total.low, total.high)]
            rows[key].append(ends)
        # Classes by the number of their images, for the first metric.
        at = keys.index(result.metrics[0]) if result.metrics[0] in keys else 0
        first = [
            each[:, 0] for each in (result.per_class.low, result.per_class.high, result.per_class.images)
        ]
        for low, high, count, value in zip(*first, of_class[at], strict=True):
            if np.isfinite(low) and np.isfinite(value):
                name = next(f"{a}-{b}" for a, b in BINS if a <= count <= b)
                bins[name].append(bool(low <= value <= high))
    made: dict[str, Any] = {"images": images, "samples": samples, "seconds": round(seconds / samples, 3)}
    for key, value in zip(truth.metrics, true, strict=True):
        ends = np.array(rows[key])
        has = np.isfinite(ends[:, 2])
        if not has.any():
            continue
        score, estimate, low, high = ends[has].T
        holds = (low <= value) & (value <= high)
        made[key] = {
            "true": round(float(value), 4),
            "with_interval": int(has.sum()),
            "holds": round(100 * float(holds.mean()), 1),
            "error": round(100 * float(np.sqrt(holds.mean() * (1 - holds.mean()) / has.sum())), 1),
            "bias": round(float((score - value).mean()), 4),
            "bias_of_estimate": round(float((estimate - value).mean()), 4),
            "width": round(float((high - low).mean()), 4),
        }
    made["classes"] = {
        name: [round(100 * float(np.mean(bins[name])), 1), len(bins[name])]
        for name in (f"{a}-{b}" for a, b in BINS)
        if bins[name]
    }
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", choices=[*WORLDS, "files"])
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument(
        "--true-images", type=int, default=60_000, help="images of the true scores of a world"
    )
    parser.add_argument("--gt", type=Path)
    parser.add_argument("--dt", type=Path)
    parser.add_argument("--classes", nargs="*", default=[], help="only these classes of the files")
    parser.add_argument("--protocol", default="coco")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.source == "files":
        truth = boxscore.load_ground_truth(options.gt)
        found = boxscore.load_detections(options.dt, truth)
        truth, found = chosen(truth, found, options.classes)
        draw = of_files(truth, found)
    else:
        draw = made_up(options.source)
        truth, found, _ = draw(np.random.default_rng(987_654_321), options.true_images)
    true = evaluate(truth, found, protocol=options.protocol, digest=False)
    result = measure(
        draw, true, options.images, options.samples, seed=options.seed, protocol=options.protocol
    )
    text = json.dumps({"source": options.source, **result}, indent=1)
    if options.json:
        options.json.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
