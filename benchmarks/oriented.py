"""Oriented boxes: pairs, a run of DOTA's size and NMS, beside shapely and whatever else is installed.

Run: ``python benchmarks/oriented.py [pairs|dota|nms ...]``. Everything is made here, from a fixed seed; the
times are the least of three, in one process on one core. Values are compared before times are printed.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import boxscore
from boxscore.extensions.oriented.quadrilaterals import corners_of_rotated


def drawn(count: int, extent: float, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.uniform(0, extent, (count, 2)), rng.uniform(8, 80, (count, 2)), rng.uniform(-3, 3, count)]
    )


def moved(boxes: Any, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 1, boxes.shape) * [4, 4, 3, 3, 0.1]
    return np.abs(boxes + noise) * [1, 1, 1, 1, 0] + (boxes + noise) * [0, 0, 0, 0, 1]


def least(call: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    best, result = np.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return best, result


def installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def pairs() -> None:
    one = drawn(100_000, 4000)
    other = moved(one)
    a, b = corners_of_rotated(one), corners_of_rotated(other)
    calls: dict[str, Callable[[], Any]] = {
        "boxscore rotated": lambda: boxscore.rotated_box_iou(one, other, paired=True),
        "boxscore quadrilateral": lambda: boxscore.quadrilateral_iou(a, b, paired=True),
        "boxscore quadrilateral, devkit": lambda: boxscore.quadrilateral_iou(a, b, paired=True, devkit=True),
        "boxscore probiou": lambda: boxscore.probiou(one, other, paired=True),
    }
    shapely = installed("shapely")
    if shapely is not None:

        def by_shapely() -> Any:
            p, q = (shapely.polygons(some.reshape(-1, 4, 2)) for some in (a, b))
            shared = shapely.area(shapely.intersection(p, q))
            return shared / (shapely.area(p) + shapely.area(q) - shared)

        calls["shapely"] = by_shapely
    ops = installed("mmcv.ops")
    if ops is not None:
        torch = importlib.import_module("torch")
        p, q = (torch.tensor(some, dtype=torch.float32) for some in (one, other))
        calls["mmcv"] = lambda: ops.box_iou_rotated(p, q, aligned=True).numpy()
    expected = calls["boxscore quadrilateral"]()
    print("100,000 pairs")
    for name, call in calls.items():
        seconds, values = least(call)
        apart = "" if "probiou" in name else f"   at most {np.abs(values - expected).max():.1e} apart"
        print(f"  {name:32} {seconds * 1e3:8.1f} ms{apart}")


def dota() -> None:
    """28,000 ground truths and 500,000 detections in 458 images of 15 classes, as DOTA's validation set."""
    rng = np.random.default_rng(2)
    count, extra = 28_000, 500_000 - 4 * 28_000
    boxes = drawn(count, 2000, seed=3)
    image, label = rng.integers(0, 458, count), (15 * rng.random(count) ** 3).astype(int)
    near = np.concatenate([moved(boxes, seed=seed) for seed in range(4)])
    found = np.concatenate([near, drawn(extra, 2000, seed=9)])
    images = np.concatenate([np.tile(image, 4), rng.integers(0, 458, extra)])
    labels = np.concatenate([np.tile(label, 4), (15 * rng.random(extra) ** 3).astype(int)])
    truth = boxscore.GroundTruth.from_arrays(
        image, label, None, quadrilaterals=corners_of_rotated(boxes).round()
    )
    scores = rng.random(len(found)).round(3)
    table = boxscore.Detections.from_arrays(
        images, labels, None, scores, quadrilaterals=corners_of_rotated(found).round(1)
    )
    print("28,000 ground truths, 500,000 detections")
    for protocol in ("dota", "mmrotate", "ultralytics-obb", "dota-task2"):
        call = functools.partial(boxscore.evaluate, truth, table, protocol=protocol)
        seconds, result = least(lambda call=call: call().metrics, times=2)  # type: ignore[misc]
        print(f"  {protocol:32} {seconds:8.2f} s   {next(iter(result.values())):.4f}")


def nms() -> None:
    boxes = drawn(10_000, 4000, seed=5)
    corners, scores = corners_of_rotated(boxes), np.random.default_rng(6).random(10_000)
    calls: dict[str, Callable[[], Any]] = {
        "boxscore rotated_nms": lambda: boxscore.rotated_nms(boxes, scores, 0.3),
        "boxscore rotated_nms, probiou": lambda: boxscore.rotated_nms(boxes, scores, 0.3, measure="probiou"),
        "boxscore quadrilateral_nms": lambda: boxscore.quadrilateral_nms(corners, scores, 0.3),
    }
    shapely = installed("shapely")
    if shapely is not None:

        def by_shapely() -> list[int]:
            polygons = shapely.polygons(corners.reshape(-1, 4, 2))
            area, tree = shapely.area(polygons), shapely.STRtree(polygons)
            left, right = tree.query(polygons, predicate="intersects")
            ahead = scores[left] > scores[right]
            left, right = left[ahead], right[ahead]
            shared = shapely.area(shapely.intersection(polygons[left], polygons[right]))
            over = shared / (area[left] + area[right] - shared) > 0.3
            drops: dict[int, list[int]] = {}
            for better, worse in zip(left[over].tolist(), right[over].tolist(), strict=True):
                drops.setdefault(better, []).append(worse)
            gone = np.zeros(len(boxes), dtype=bool)
            kept = []
            for row in np.argsort(-scores).tolist():
                if not gone[row]:
                    kept.append(row)
                    gone[drops.get(row, [])] = True
            return kept

        calls["shapely with a tree"] = by_shapely
    ops = installed("mmcv.ops")
    if ops is not None:
        torch = importlib.import_module("torch")
        p, q = torch.tensor(boxes, dtype=torch.float32), torch.tensor(scores, dtype=torch.float32)
        calls["mmcv nms_rotated"] = lambda: ops.nms_rotated(p, q, 0.3)[1]
    print("NMS of 10,000 boxes at 0.3")
    for name, call in calls.items():
        seconds, kept = least(call)
        print(f"  {name:32} {seconds * 1e3:8.1f} ms   {len(kept)} kept")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ("pairs", "dota", "nms"):
        {"pairs": pairs, "dota": dota, "nms": nms}[wanted]()
