"""From ``evalImgs`` to precision, recall and scores: what ``COCOeval.accumulate`` does with any list of them.

Goal
----
The lists may come from several processes, from a subclass, or from parameters that are not those of
``evaluate``; so only their contents are read here.

Conventions
-----------
- The list runs over categories, then area ranges, then images of the parameters of ``evaluate``. The chosen
  ones are looked up by position among the parameters of ``accumulate``, as in the reference.
- T IoU thresholds, R recall points, K categories, A area ranges, M detection caps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.float64]]


def accumulate_images(eval_imgs: Any, evaluated: Any, params: Any) -> Arrays:
    """Compute the three arrays of ``COCOeval.eval``."""
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
    image_count, area_count = len(evaluated.imgIds), len(evaluated.areaRng)
    categories = _positions(params.catIds, evaluated.catIds if evaluated.useCats else [-1])
    areas = _positions(map(tuple, params.areaRng), map(tuple, evaluated.areaRng))
    caps = [params.maxDets[m] for m in _positions(params.maxDets, evaluated.maxDets)]
    images = _positions(params.imgIds, evaluated.imgIds)
    for k, category in enumerate(categories):
        for a, area in enumerate(areas):
            first = (category * area_count + area) * image_count
            results = [result for i in images if (result := eval_imgs[first + i]) is not None]
            if not results or not caps:
                continue
            for m, curves in enumerate(_curves(results, caps, params.recThrs)):
                for t, (points, at_points, reached) in enumerate(curves):
                    precision[t, :, k, a, m] = points
                    scores[t, :, k, a, m] = at_points
                    recall[t, k, a, m] = reached
    return {"precision": precision, "recall": recall, "scores": scores}


def _positions(values: Any, known: Any) -> list[int]:
    chosen = set(known)
    return [position for position, value in enumerate(values) if value in chosen]


def _curves(results: Sequence[dict[str, Any]], caps: Sequence[int], recall_points: Any) -> Any:
    """Yield, for each cap, an iterator over thresholds: precision [R], scores [R], the recall reached."""
    positive = int(np.count_nonzero(np.concatenate([result["gtIgnore"] for result in results]) == 0))
    if positive == 0:
        return
    largest = max(caps)
    lists = [result["dtScores"][:largest] for result in results]
    score = np.concatenate(lists)
    rank = np.concatenate([np.arange(len(one)) for one in lists])
    order = np.argsort(-score, kind="mergesort")  # the reference's choice; ties by image, then rank
    score, rank = score[order], rank[order]
    matched, ignored = (
        np.concatenate([result[key][:, :largest] for result in results], axis=1)[:, order].astype(bool)
        for key in ("dtMatches", "dtIgnore")
    )
    for cap in caps:
        kept = rank < cap if cap < largest else slice(None)
        counts = ~ignored[:, kept]
        true = np.cumsum(matched[:, kept] & counts, axis=1).astype(float)
        false = np.cumsum(~matched[:, kept] & counts, axis=1).astype(float)
        yield _thresholds(true, false, score[kept], positive, recall_points)


def _thresholds(
    true: NDArray[np.float64], false: NDArray[np.float64], score: Any, positive: int, recall_points: Any
) -> Any:
    recall = true / positive
    precision = true / (false + true + np.spacing(1))
    envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    for t in range(len(true)):
        position = np.searchsorted(recall[t], recall_points, side="left")
        reached = np.logical_and.accumulate(position < len(score))  # nothing is read after the first miss
        points, at_points = np.zeros(len(position)), np.zeros(len(position))
        points[reached] = envelope[t, position[reached]]
        at_points[reached] = score[position[reached]]
        yield points, at_points, recall[t, -1] if len(score) else 0
