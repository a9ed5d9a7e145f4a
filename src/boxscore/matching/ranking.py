"""Rank detections: compute their order, and drop those beyond max detections.

Conventions
-----------
- *Class order* is (category, descending score, tie): the order in which a class's curve is computed. Ties go
  image by image and then in file order (COCO), or in file order over all images (the VOC devkit).
- *Group order* is (image, category, descending score, file order): the order of matching. If detections are
  matched in file order, it is (image, category, file order).
- A detection's *rank* is its position, from 0, among the detections of its image and class, or of its image
  if max detections apply to each image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import (
    descending_order,
    group_order,
    rank_in_runs,
    stable_order,
    top_k_per_group,
)
from boxscore._utils.records import record
from boxscore.data.tables import Detections
from boxscore.protocols.protocol import Protocol


@record(frozen=True, eq=False)
class Ranking:
    """Detections in class order.

    Attributes
    ----------
    rows : ndarray of intp, [D]
        Rows of the table in class order, without those beyond the largest max detections.
    rank : ndarray of int32, [D]
        The rank of each, in class order.
    grouped : ndarray of intp, [D]
        Positions in class order that give group order.
    group : ndarray of int64, [D]
        ``image * K + category``, in group order: ascending.
    """

    rows: NDArray[np.intp]
    rank: NDArray[np.int32]
    grouped: NDArray[np.intp]
    group: NDArray[np.int64]


def ranked_by(detections: Detections) -> NDArray[np.float64]:
    """Return the numbers that rank detections, [D]: their scores, or zeros without scores."""
    return detections.scores if detections.scored else np.zeros(len(detections))


def listed_scores(detections: Detections) -> NDArray[np.float64]:
    """Return the scores to display, [D]: NaN without scores."""
    return detections.scores if detections.scored else np.full(len(detections), np.nan)


def scored_enough(scores: NDArray[np.float64], protocol: Protocol) -> NDArray[np.bool_]:
    """Whether each score reaches the protocol's threshold, or is above it."""
    rules = protocol.matching
    return scores >= rules.score_threshold if rules.score_closed else scores > rules.score_threshold


def rank_detections(
    detections: Detections, protocol: Protocol, eligible: NDArray[np.bool_] | None = None
) -> Ranking:
    """Sort detections and apply max detections; ``eligible`` [D] flags those evaluated at all."""
    ranking = _ranked(detections, protocol, eligible)
    if protocol.matching.order == "score":
        return ranking
    # Match in file order: keep the groups, and sort the detections inside each by row.
    in_file = ranking.grouped[np.lexsort((ranking.rows[ranking.grouped], ranking.group))]
    return Ranking(ranking.rows, ranking.rank, in_file, ranking.group)


def _ranked(detections: Detections, protocol: Protocol, eligible: NDArray[np.bool_] | None) -> Ranking:
    """Sort by class and score, and apply max detections; matching by score uses this order."""
    image_count, category_count = len(detections.images), len(detections.categories)
    scores = ranked_by(detections)
    # Start with the rows in the order of ties. Every later sort is stable, so equal scores keep this order,
    # as with pycocotools' mergesort over concatenated images.
    if protocol.matching.equal_scores == "image_order":
        rows = stable_order(detections.image, image_count)
    elif protocol.matching.equal_scores == "file_order":
        rows = np.arange(len(detections))
    else:
        rows = np.arange(len(detections))[::-1]  # for last_first, matching order differs from counting order
    # Drop scores below the threshold and detections beyond max detections of an image; where each image has
    # its own limit, rank all its detections, [D]. Both come before ``eligible`` drops any.
    rows = _within_max_detections(rows, detections, protocol)
    in_image = None
    if protocol.matching.cap_scope == "image_each":
        in_image = np.zeros(len(detections), dtype=np.int32)
        by_score = rows[descending_order(np.take(scores, rows))]
        of_image = by_score[stable_order(np.take(detections.image, by_score), image_count)]
        in_image[of_image] = rank_in_runs(np.take(detections.image, of_image))
    # Keep the eligible rows and sort them by (category, descending score) over integer keys; ``grouped`` then
    # orders class order by image.
    if eligible is not None:
        rows = rows[np.take(eligible, rows)]
    rows = rows.take(group_order(np.take(detections.category, rows), np.take(scores, rows)))
    image = np.take(detections.image, rows)
    grouped = stable_order(image, image_count)  # each image keeps the order by class and score

    # Rank the detections inside their (image, category) group, in group order, and scatter the ranks back to
    # class order [D].
    group = image.astype(np.int64)
    group *= category_count
    group += np.take(detections.category, rows)
    group = np.take(group, grouped)
    rank_in_group = rank_in_runs(group)
    rank = np.empty(len(rows), dtype=np.int32)
    rank[grouped] = rank_in_group

    # Cut at max detections of each image and class, if any group has more.
    most = protocol.caps[-1]
    if in_image is not None:
        return Ranking(rows, in_image[rows], grouped, group)  # already cut at the largest max detections
    if most is None or int(rank_in_group.max(initial=0)) < most:
        return Ranking(rows, rank, grouped, group)
    # Apply the same cut in both orders. Positions in class order close up over the rows left out.
    within = rank < most
    within_in_group = np.flatnonzero(rank_in_group < most)
    new_position = np.cumsum(within) - 1
    grouped = np.take(new_position, np.take(grouped, within_in_group))
    return Ranking(rows[within], rank[within], grouped, np.take(group, within_in_group))


def _within_max_detections(
    rows: NDArray[np.intp], detections: Detections, protocol: Protocol
) -> NDArray[np.intp]:
    """Drop rows below the score threshold or beyond max detections per image; ties stay in their order.

    If classes are pooled, :func:`boxscore.matching.ignoring.eligible` has made the cut per image.
    """
    if protocol.matching.score_threshold > -np.inf:
        rows = rows[scored_enough(np.take(ranked_by(detections), rows), protocol)]
    most = protocol.caps[-1]
    if not protocol.matching.caps_image or not protocol.matching.per_class or most is None:
        return rows
    image = np.take(detections.image, rows)
    if int(np.bincount(image, minlength=1).max()) <= most:  # the usual case
        return rows
    by_score = descending_order(np.take(ranked_by(detections), rows))
    return rows[by_score][top_k_per_group(image[by_score], most, len(detections.images))]
