"""Pair the detections of two results of one model.

Conventions
-----------
- Within an image and class: the most pairs with an IoU of at least 0.5, then the greatest sum of IoU.
  Then the unpaired boxes by the same rule, across classes.
- Images and classes are the same if their ids are; the order of the files does not matter.
- Where geometry is wrong, boxes do not overlap but scores recur: detections of one image and class with equal
  scores are paired if no other detection of either file has that score there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from typing import TypeVar

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import rows_of_groups
from boxscore._utils.records import NamedTuple
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories, Images
from boxscore.extensions.labels.agreement import best_pairs
from boxscore.similarity.box import box_iou

Key = TypeVar("Key", bound=Hashable)

LEAST_IOU = 0.5
SCORE_DIGITS = 6
"""Scores that agree to this many digits are equal, because files round them."""


class Pairs(NamedTuple):
    """Rows of the paired detections.

    Attributes
    ----------
    first, second : ndarray of int64, [P]
        Rows of both tables.
    iou : ndarray of float64, [P]
    """

    first: IntArray
    second: IntArray
    iou: FloatArray


def with_common_ids(first: Detections, second: Detections) -> tuple[Detections, Detections]:
    """Return both tables with the images and classes of both."""
    images = Images.union([first.images, second.images])
    categories = Categories.build(
        [*first.categories.ids.tolist(), *second.categories.ids.tolist()],
        names=[*first.categories.names.tolist(), *second.categories.names.tolist()],
    )
    one, two = (
        dataclasses.replace(
            table,
            images=images,
            categories=categories,
            image=images.rows(table.images.ids)[table.image],
            category=categories.rows(table.categories.ids)[table.category],
        )
        for table in (first, second)
    )
    return one, two


def pair_by_overlap(first: Detections, second: Detections) -> tuple[Pairs, Pairs]:
    """Return the pairs of one class, and the pairs of two classes among the rest."""
    candidates = _overlapping(first, second)
    same = first.category[candidates.first] == second.category[candidates.second]
    within = _best(candidates, np.asarray(same))
    free = np.isin(candidates.first, within.first, invert=True)
    free &= np.isin(candidates.second, within.second, invert=True)
    return within, _best(candidates, np.asarray(free))


def _best(candidates: Pairs, chosen: BoolArray) -> Pairs:
    """Return the best pairs among chosen candidates."""
    first, second = candidates.first[chosen], candidates.second[chosen]
    iou = candidates.iou[chosen]
    kept = best_pairs(first, second, iou, np.zeros(len(first), dtype=np.int64))
    return Pairs(first[kept], second[kept], iou[kept])


BLOCK = 1 << 22
"""Maximum number of pairs whose IoU is computed at a time."""


def _overlapping(first: Detections, second: Detections) -> Pairs:
    """Return all pairs of one image with an IoU of at least 0.5."""
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    rows, others = (rows_by_image(table) for table in (first, second))
    for one, two in zip(rows, others, strict=True):
        step = max(BLOCK // max(len(two), 1), 1)
        starts = range(0, len(one) if len(two) else 0, step)
        found += [_near(first, one[start : start + step], second, two) for start in starts]
    empty = np.empty(0, dtype=np.int64)
    return Pairs(
        np.concatenate([one for one, _, _ in found] or [empty]),
        np.concatenate([two for _, two, _ in found] or [empty]),
        np.concatenate([iou for _, _, iou in found] or [np.empty(0)]),
    )


def _near(
    first: Detections, one: IntArray, second: Detections, two: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the pairs of some rows with an IoU of at least 0.5, and their IoU."""
    iou = box_iou(first.boxes[one], second.boxes[two])
    # Boxes without area overlap nothing, but the same box may be in both.
    for row in np.flatnonzero((first.boxes[one, 2:] <= first.boxes[one, :2]).any(axis=1)).tolist():
        iou[row, (second.boxes[two] == first.boxes[one[row]]).all(axis=1)] = 1.0
    near = np.nonzero(iou >= LEAST_IOU)
    return one[near[0]], two[near[1]], iou[near]


def rows_by_image(table: Detections) -> list[IntArray]:
    """Return the rows of each image, in order."""
    return rows_of_groups(table.image, len(table.images))


def rounded_scores(table: Detections) -> list[float]:
    """Return the scores with the digits that equal ones have in common."""
    scores: list[float] = np.round(table.scores, SCORE_DIGITS).tolist()
    return scores


def rows_of_keys(keys: Iterable[Key]) -> dict[Key, int]:
    """Return the row of each key; -1 if a key occurs twice, because then it is not paired."""
    rows: dict[Key, int] = {}
    for row, key in enumerate(keys):
        rows[key] = -1 if key in rows else row
    return rows


def pair_by_score(first: Detections, second: Detections) -> Pairs:
    """Return the pairs of one image, class and score."""
    rows = [
        rows_of_keys(zip(table.image.tolist(), table.category.tolist(), rounded_scores(table), strict=True))
        for table in (first, second)
    ]
    pairs = [(row, rows[1].get(key, -1)) for key, row in rows[0].items()]
    both = np.array([pair for pair in pairs if min(pair) >= 0], dtype=np.int64).reshape(-1, 2)
    return Pairs(both[:, 0], both[:, 1], np.full(len(both), np.nan))
