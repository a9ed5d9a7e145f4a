"""Suppression speed and memory side by side with other libraries, in one run.

    python benchmarks/nms.py [--quick] [--only TEXT] [--seconds S]

Peers that are not installed are left out (``pip install -r benchmarks/requirements-suppression.txt``, and
torch with torchvision). Contenders take turns, so that a busy machine slows all alike; shown are the best and
the middle time of each in milliseconds, and the ratio of ours to the best peer.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured
import numpy as np

from boxscore.suppression import batched_nms, matrix_nms, nms, soft_nms, weighted_boxes_fusion

THRESHOLD = 0.5

KEYS = {
    "batched, 100 images x 8400 x 80 classes": "nms-8400",
    "batched, 400 images x 1000 x 1 classes": "nms-1000",
    "one class, dense, 8400": "nms-dense",
    "one class, dense, 300": "nms-300",
    "one class, sparse, 100000": "nms-sparse",
    "fusion of 3 models, 100 images x 100": "fusion",
}
"""Cases that are rows of the page of benchmarks."""
Contenders = dict[str, Callable[[], Any]]


def optional(name: str) -> Any:
    try:
        return __import__(name)
    except (ImportError, RuntimeError):
        return None


powerboxes, lsnms, cv2 = optional("powerboxes"), optional("lsnms"), optional("cv2")
ensemble_boxes, torchvision = optional("ensemble_boxes"), optional("torchvision")
torch = optional("torch") if torchvision else None


def sparse(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of 10 to 100 pixels on a canvas that grows with their number; few overlap by half."""
    random = np.random.default_rng(0)
    corner, size = random.random((count, 2)) * 60 * np.sqrt(count), random.uniform(10, 100, (count, 2))
    return np.hstack([corner, corner + size]), random.random(count)


def dense(count: int, guesses: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """About ``guesses`` jittered boxes round each of many objects, as a detector gives them."""
    random = np.random.default_rng(0)
    objects = max(1, count // guesses)
    center = random.random((objects, 2)) * 150 * np.sqrt(objects)
    size = random.uniform(20, 120, (objects, 2))
    of = random.integers(0, objects, count)
    center = center[of] + random.normal(0, 0.08, (count, 2)) * size[of]
    size = size[of] * np.exp(random.normal(0, 0.12, (count, 2)))
    return np.hstack([center - size / 2, center + size / 2]), random.random(count)


def crowd(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of 10 to 100 pixels, all on 1000 x 1000: each overlaps many, few by half."""
    random = np.random.default_rng(0)
    corner, size = random.random((count, 2)) * 1000, random.uniform(10, 100, (count, 2))
    return np.hstack([corner, corner + size]), random.random(count)


def data_set(images: int, each: int, classes: int) -> tuple[np.ndarray, ...]:
    """Detector-like boxes, scores, image and class: guesses round objects, some of a wrong class; float32."""
    random = np.random.default_rng(0)
    count, objects = images * each, max(1, each // 12)
    image, of = np.repeat(np.arange(images), each), random.integers(0, objects, images * each)
    center = random.random((images, objects, 2))[image, of] * 640
    size = np.exp(random.uniform(np.log(15), np.log(300), (images, objects, 2)))[image, of]
    label = random.integers(0, classes, (images, objects))[image, of]
    label = np.where(random.random(count) < 0.3, random.integers(0, classes, count), label)
    center = center + random.normal(0, 0.1, (count, 2)) * size
    size = size * np.exp(random.normal(0, 0.15, (count, 2)))
    boxes = np.hstack([center - size / 2, center + size / 2]).astype(np.float32).astype(np.float64)
    return boxes, (random.random(count) ** 2).astype(np.float32).astype(np.float64), image, label


def one_class(boxes: np.ndarray, scores: np.ndarray) -> Contenders:
    some: Contenders = {"boxscore": lambda: nms(boxes, scores, iou_threshold=THRESHOLD)}
    if powerboxes:
        some["powerboxes rtree"] = lambda: powerboxes.rtree_nms(boxes, scores, THRESHOLD, 0.0)
        if len(boxes) <= 20_000:
            some["powerboxes"] = lambda: powerboxes.nms(boxes, scores, THRESHOLD, 0.0)
    if lsnms:
        some["lsnms"] = lambda: lsnms.nms(boxes, scores, THRESHOLD, 0.0)
    if cv2 and len(boxes) <= 20_000:
        sizes = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])
        some["opencv"] = lambda: cv2.dnn.NMSBoxes(sizes, scores, 0.0, THRESHOLD)
    if torch and len(boxes) <= 20_000:
        theirs = torch.from_numpy(boxes), torch.from_numpy(scores)
        some["torchvision"] = lambda: torchvision.ops.nms(*theirs, THRESHOLD)
    return some


def ranges_of(values: np.ndarray) -> list[tuple[int, int]]:
    cuts = (np.flatnonzero(np.diff(values)) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(values)], strict=True))


def batched(boxes: np.ndarray, scores: np.ndarray, image: np.ndarray, label: np.ndarray) -> Contenders:
    groups = image * (int(label.max()) + 1) + label
    parts = [slice(a, b) for a, b in ranges_of(image)]
    shifted = boxes + (label * 4000.0)[:, None]  # classes kept apart as torchvision does
    by_group = np.argsort(groups, kind="stable")
    grouped, grouped_scores, ranges = boxes[by_group], scores[by_group], ranges_of(groups[by_group])

    def each_image(function: Callable[[slice], Any]) -> Callable[[], Any]:
        return lambda: np.concatenate([np.asarray(function(part)) for part in parts])

    some: Contenders = {"boxscore": lambda: batched_nms(boxes, scores, groups, iou_threshold=THRESHOLD)}
    if powerboxes:
        some["powerboxes, an image"] = each_image(
            lambda part: powerboxes.nms(shifted[part], scores[part], THRESHOLD, 0.0)
        )
        if len(boxes) / len(parts) > 500:
            some["powerboxes rtree, an image"] = each_image(
                lambda part: powerboxes.rtree_nms(shifted[part], scores[part], THRESHOLD, 0.0)
            )
        if len(ranges) < 50_000:  # sorting by group is given to it for nothing
            some["powerboxes, a group"] = lambda: np.concatenate(
                [powerboxes.nms(grouped[a:b], grouped_scores[a:b], THRESHOLD, 0.0) for a, b in ranges]
            )
    if lsnms:
        some["lsnms, an image"] = each_image(
            lambda part: lsnms.nms(boxes[part], scores[part], THRESHOLD, 0.0, class_ids=label[part])
        )
    if cv2:
        sizes = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])
        some["opencv, an image"] = each_image(
            lambda part: cv2.dnn.NMSBoxesBatched(sizes[part], scores[part], label[part], 0.0, THRESHOLD)
        )
    if torch:
        theirs = torch.from_numpy(boxes), torch.from_numpy(scores), torch.from_numpy(label)
        some["torchvision, an image"] = each_image(
            lambda part: torchvision.ops.batched_nms(*(column[part] for column in theirs), THRESHOLD)
        )
    return some


def fusion(images: int) -> Contenders:
    """Three models that see the same objects a little differently; coordinates 0 to 1."""
    boxes, scores, image, label = data_set(images, 100, 10)
    random = np.random.default_rng(1)
    models = []
    for _ in range(3):
        seen = np.clip((boxes + random.normal(0, 3, boxes.shape)) / 640, 0, 0.99)
        models.append(
            np.hstack([np.minimum(seen[:, :2], seen[:, 2:]), np.maximum(seen[:, :2], seen[:, 2:]) + 0.01])
        )
    groups = image * 10 + label
    some: Contenders = {"boxscore": lambda: weighted_boxes_fusion(models, [scores] * 3, [groups] * 3)}

    def theirs() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for start in range(0, len(boxes), 100):
                part = slice(start, start + 100)
                ensemble_boxes.weighted_boxes_fusion(
                    [model[part] for model in models], [scores[part]] * 3, [label[part]] * 3
                )

    if ensemble_boxes:
        some["ensemble-boxes, an image"] = theirs
    return some


def take_turns(contenders: Contenders, seconds: float) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for function in contenders.values():
        function()
    start = time.perf_counter()
    while len(times["boxscore"]) < 3 or (
        time.perf_counter() - start < seconds and len(times["boxscore"]) < 400
    ):
        for name, function in contenders.items():
            begin = time.perf_counter()
            function()
            times[name].append(1e3 * (time.perf_counter() - begin))
    return times


def peak_megabytes(function: Callable[[], Any]) -> float:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def cases(quick: bool) -> dict[str, Callable[[], Contenders]]:
    chosen: dict[str, Callable[[], Contenders]] = {}
    for count in (300, 1000, 8400, 10_000) if quick else (300, 1000, 8400, 10_000, 100_000):
        for make in (dense, sparse, crowd):
            if make is not crowd or count <= 10_000:
                chosen[f"one class, {make.__name__}, {count}"] = lambda make=make, n=count: one_class(
                    *make(n)
                )
    shapes = ((500, 300, 80), (10, 8400, 80)) if quick else ((5000, 300, 80), (100, 8400, 80), (400, 1000, 1))
    for shape in shapes:
        chosen["batched, {} images x {} x {} classes".format(*shape)] = lambda s=shape: batched(*data_set(*s))
    for images in (1, 20 if quick else 100):
        chosen[f"fusion of 3 models, {images} images x 100"] = lambda n=images: fusion(n)
    return chosen


def whole_data_set(quick: bool) -> Contenders:
    boxes, scores, image, label = data_set(500 if quick else 5000, 300, 80)
    groups, count = image * 80 + label, f"{len(boxes):,} boxes"
    halves = [[column[0::2], column[1::2]] for column in (boxes, scores, groups)]
    near = np.array([100.0, 100, 200, 200]) + np.random.default_rng(0).normal(0, 1, (100_000, 4))
    near_scores = np.random.default_rng(1).random(100_000)
    return {
        f"batched_nms, {count}": lambda: batched_nms(boxes, scores, groups, iou_threshold=0.5),
        f"soft_nms, {count}": lambda: soft_nms(boxes, scores, groups=groups),
        f"matrix_nms, {count}": lambda: matrix_nms(boxes, scores, groups=groups),
        f"weighted_boxes_fusion, {count}": lambda: weighted_boxes_fusion(*halves),
        "nms, 100,000 near-identical": lambda: nms(near, near_scores, iou_threshold=0.5),
        "nms, 100,000 near-identical, threshold 0.95": lambda: nms(near, near_scores, iou_threshold=0.95),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=5.0, help="time to spend on a case (default 5)")
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep the rows of the page of benchmarks")
    options = parser.parse_args()
    rows = []
    print("| case | contender | best ms | middle ms | kept |\n|---|---|---:|---:|---:|")
    for name, build in cases(options.quick).items():
        if options.only not in name:
            continue
        contenders = build()
        times = take_turns(contenders, options.seconds)
        best = {who: min(some) for who, some in times.items()}
        middle = {who: statistics.median(some) for who, some in times.items()}
        for who, function in contenders.items():
            result = function()
            kept = len(result) if isinstance(result, np.ndarray) else ""
            print(f"| {name} | {who} | {best[who]:.3f} | {middle[who]:.3f} | {kept} |")
        if name in KEYS:
            peers = {who: some / 1e3 for who, some in middle.items() if who != "boxscore"}
            rows.append(measured.row(KEYS[name], middle["boxscore"] / 1e3, peers))
        if len(contenders) > 1:
            by_best, by_middle = (
                some["boxscore"] / min(some[who] for who in some if who != "boxscore")
                for some in (best, middle)
            )
            print(
                f"| {name} | **ours / best peer** | **{by_best:.2f}** | **{by_middle:.2f}** | |", flush=True
            )
    if options.store:
        measured.store(options.store, rows)
    if options.only in "whole data set":
        print("\n| whole data set | seconds | peak MB above input |\n|---|---:|---:|")
        for name, function in whole_data_set(options.quick).items():
            seconds = min(take_turns({"boxscore": function}, 0)["boxscore"]) / 1e3
            print(f"| {name} | {seconds:.2f} | {peak_megabytes(function):.0f} |", flush=True)


if __name__ == "__main__":
    main()
