"""Compute precision, recall and scores from ``evalImgs``, like ``COCOeval.accumulate``.

Goal
----
The lists may come from several processes, from a subclass, or from parameters that differ from those of
``evaluate``; only their contents are read here.

Conventions
-----------
- The list runs over categories, then area ranges, then images of the parameters of ``evaluate``. The chosen
  ones are looked up by position among the parameters of ``accumulate``, as in the reference.
- T IoU thresholds, R recall points, K categories, A area ranges, M max detections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
from boxscore.scoring.curves import Curves

Arrays = dict[str, NDArray[np.float64]]

RULES = ApRules(precision_epsilon=float(np.spacing(1)))

BEYOND = float(2**31)
"""A recall that cannot be reached."""


def accumulate_images(eval_imgs: Any, evaluated: Any, params: Any) -> Arrays:
    """Compute the three arrays of ``COCOeval.eval``."""
    # Allocate the arrays of the reference, where -1 is undefined.
    shape = {
        "T": len(params.iouThrs),
        "R": len(params.recThrs),
        "K": len(params.catIds) if params.useCats else 1,
        "A": len(params.areaRng),
        "M": len(params.maxDets),
    }
    precision, recall, scores = (
        -np.ones([shape[axis] for axis in axes]) for axes in ("TRKAM", "TKAM", "TRKAM")
    )
    # Find the chosen categories, ranges, limits and images by their position among those of ``evaluate``, as
    # the reference does.
    image_count, area_count = len(evaluated.imgIds), len(evaluated.areaRng)
    categories = _positions(params.catIds, evaluated.catIds if evaluated.useCats else [-1])
    areas = _positions(map(tuple, params.areaRng), map(tuple, evaluated.areaRng))
    caps = [params.maxDets[m] for m in _positions(params.maxDets, evaluated.maxDets)]
    images = _positions(params.imgIds, evaluated.imgIds)
    # Recall points may come in any order: read them sorted, and put the values back by rank.
    points = _readable(params.recThrs)
    point_rank = np.argsort(np.argsort(points, kind="stable"), kind="stable")
    for k, category in enumerate(categories):
        for a, area in enumerate(areas):
            # The list runs over categories, area ranges and images, so this group is one slice of it.
            first = (category * area_count + area) * image_count
            results = [result for i in images if (result := eval_imgs[first + i]) is not None]
            if not results or not caps:
                continue
            for m, curves in enumerate(_curves(results, caps, np.sort(points))):
                # The reference reads nothing after the first point that is not reached, at any position.
                reached = np.logical_and.accumulate(curves.recall >= params.recThrs, axis=1)
                for t in range(len(reached)):
                    precision[t, :, k, a, m] = np.where(reached[t], curves.interpolated[t, point_rank, 0], 0)
                    scores[t, :, k, a, m] = np.where(reached[t], curves.scores[t, point_rank, 0], 0)
                    recall[t, k, a, m] = curves.recall[t, 0]
    return {"precision": precision, "recall": recall, "scores": scores}


def _positions(values: Any, known: Any) -> list[int]:
    chosen = set(known)
    return [position for position, value in enumerate(values) if value in chosen]


def _readable(recall_points: Any) -> NDArray[np.float64]:
    """Convert recall points for the core: negative ones become 0, and NaN is above every recall."""
    points = np.asarray(recall_points, dtype=np.float64)
    return np.clip(np.where(np.isnan(points), np.inf, points), 0, BEYOND)


def _curves(
    results: Sequence[dict[str, Any]], caps: Sequence[int], points: NDArray[np.float64]
) -> Iterator[Curves]:
    """Yield the curves of each cap for one class; skip a class without a counted ground truth."""
    # Count the ground truths that are not ignored; without any the reference leaves -1.
    positive = int(np.count_nonzero(np.concatenate([result["gtIgnore"] for result in results]) == 0))
    if positive == 0:
        return
    # Join the images in their order and sort by score, ties as joined: this is the reference's order.
    largest = max(caps)
    lists = [result["dtScores"][:largest] for result in results]
    score = np.concatenate(lists)
    rank = np.concatenate([np.arange(len(scores)) for scores in lists])
    order = np.argsort(-score, kind="mergesort")  # the reference's choice; ties by image, then rank
    score, rank = score[order].astype(np.float64), rank[order]
    # Flags [T, D] in the same order. Any id but 0 is a match.
    matched, ignored = (
        np.concatenate([result[key][:, :largest] for result in results], axis=1)[:, order].astype(bool)
        for key in ("dtMatches", "dtIgnore")
    )
    if not len(matched):
        return
    # A smaller limit keeps the ranks below it; the sorted order is unchanged.
    for cap in caps:
        within = np.flatnonzero(rank < cap) if cap < largest else np.arange(len(score))
        outcomes = Outcomes.all_counted(
            np.zeros(len(within), dtype=np.int32),
            score[within],
            (matched & ~ignored)[:, within],
            np.array([positive]),
            ignored=ignored[:, within],
        )
        yield Curves(TruePositiveCounts(outcomes), RULES, points=points)
