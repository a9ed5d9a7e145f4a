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

from boxscore._utils.records import NamedTuple
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
    for a, area in enumerate(areas):
        # Join the images of each category, without those that the reference leaves at -1.
        chosen, joined = [], []
        for k, category in enumerate(categories if caps else []):
            # The list runs over categories, area ranges and images, so this group is one slice of it.
            first = (category * area_count + area) * image_count
            results = [result for i in images if (result := eval_imgs[first + i]) is not None]
            if results and (one := _joined(results, max(caps))) is not None:
                chosen.append(k)
                joined.append(one)
        for m, curves in enumerate(_curves(joined, caps, np.sort(points))):
            # The reference reads nothing after the first point that is not reached, at any position.
            reached = curves.recall[:, None] >= np.asarray(params.recThrs)[:, None]
            reached = np.logical_and.accumulate(reached, axis=1)
            precision[:, :, chosen, a, m] = np.where(reached, curves.interpolated[:, point_rank], 0)
            scores[:, :, chosen, a, m] = np.where(reached, curves.scores[:, point_rank], 0)
            recall[:, chosen, a, m] = curves.recall
    return {"precision": precision, "recall": recall, "scores": scores}


def _positions(values: Any, known: Any) -> list[int]:
    chosen = set(known)
    return [position for position, value in enumerate(values) if value in chosen]


def _readable(recall_points: Any) -> NDArray[np.float64]:
    """Convert recall points for the core: negative ones become 0, and NaN is above every recall."""
    points = np.asarray(recall_points, dtype=np.float64)
    return np.clip(np.where(np.isnan(points), np.inf, points), 0, BEYOND)


class _Joined(NamedTuple):
    """The detections of one category, [D], by descending score."""

    positive: int
    """Ground truths that are not ignored."""
    score: NDArray[np.float64]
    rank: NDArray[np.intp]
    """Rank of each detection in its image."""
    matched: NDArray[np.bool_]
    """[T, D]"""
    ignored: NDArray[np.bool_]
    """[T, D]"""


def _joined(results: Sequence[dict[str, Any]], largest: int) -> _Joined | None:
    """Join the images of a category; None without a counted ground truth."""
    # Count the ground truths that are not ignored; without any the reference leaves -1.
    positive = int(np.count_nonzero(np.concatenate([result["gtIgnore"] for result in results]) == 0))
    if positive == 0:
        return None
    # Join the images in their order and sort by score, ties as joined: this is the reference's order.
    lists = [result["dtScores"][:largest] for result in results]
    score = np.concatenate(lists)
    rank = np.concatenate([np.arange(len(scores)) for scores in lists])
    order = np.argsort(-score, kind="mergesort")  # the reference's choice; ties by image, then rank
    # Flags [T, D] in the same order. Any id but 0 is a match.
    matched, ignored = (
        np.concatenate([result[key][:, :largest] for result in results], axis=1)[:, order].astype(bool)
        for key in ("dtMatches", "dtIgnore")
    )
    return _Joined(positive, score[order].astype(np.float64), rank[order], matched, ignored)


def _curves(joined: Sequence[_Joined], caps: Sequence[int], points: NDArray[np.float64]) -> Iterator[Curves]:
    """Yield the curves of some categories for each cap."""
    if not joined or not len(joined[0].matched):
        return
    # Count all categories together, one after the other.
    positive = np.array([one.positive for one in joined])
    category = np.repeat(np.arange(len(joined), dtype=np.int32), [len(one.score) for one in joined])
    score = np.concatenate([one.score for one in joined])
    rank = np.concatenate([one.rank for one in joined])
    matched = np.concatenate([one.matched for one in joined], axis=1)
    ignored = np.concatenate([one.ignored for one in joined], axis=1)
    # A smaller limit keeps the ranks below it; the sorted order is unchanged.
    for cap in caps:
        within = np.flatnonzero(rank < cap) if cap < max(caps) else np.arange(len(score))
        outcomes = Outcomes.all_counted(
            category[within],
            score[within],
            (matched & ~ignored)[:, within],
            positive,
            ignored=ignored[:, within],
        )
        yield Curves(TruePositiveCounts(outcomes), RULES, points=points)
