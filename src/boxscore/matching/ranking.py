"""The order in which detections are taken, and which of them the detection caps let through.

Conventions
-----------
- *Class order* is (category, descending score, tie): the order in which a class's curve is drawn. Ties go
  image by image and then in file order (COCO), or in file order over all images (the VOC kit).
- *Group order* is (image, category, descending score, file order): the order of matching.
- A detection's *rank* is its place, from 0, among the detections of its image and class.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import descending_order, run_starts, stable_order
from boxscore.data.tables import Detections
from boxscore.protocols.protocol import Protocol

__all__ = ["Ranking", "rank_detections"]


@dataclasses.dataclass(frozen=True, eq=False)
class Ranking:
    """Detections in class order.

    Attributes
    ----------
    rows : ndarray of intp, [D]
        Rows of the table in class order, those beyond the largest cap left out.
    rank : ndarray of int32, [D]
        In class order.
    grouped : ndarray of intp, [D]
        Positions in class order that give group order.
    group : ndarray of int64, [D]
        ``image * K + category``, in group order: ascending.
    """

    rows: NDArray[np.intp]
    rank: NDArray[np.int32]
    grouped: NDArray[np.intp]
    group: NDArray[np.int64]


def rank_detections(detections: Detections, protocol: Protocol) -> Ranking:
    """Sort detections and cut them at the largest cap.

    Parameters
    ----------
    detections : Detections
    protocol : Protocol
        Reads ``matching``: ``equal_scores``, ``max_detections``, ``cap_scope`` and ``score_threshold``.

    Returns
    -------
    Ranking
    """
    image_count, category_count = len(detections.images), len(detections.categories)
    if protocol.matching.equal_scores == "image_order":
        rows = stable_order(detections.image, image_count)
    else:
        rows = np.arange(len(detections))
    rows = rows[descending_order(np.take(detections.scores, rows))]
    rows = _let_through(rows, detections, protocol)
    rows = rows[stable_order(np.take(detections.category, rows), category_count)]
    image = np.take(detections.image, rows)
    grouped = stable_order(image, image_count)

    group = image.astype(np.int64)
    group *= category_count
    group += np.take(detections.category, rows)
    group = np.take(group, grouped)
    starts = run_starts(group)
    lengths = np.diff(np.append(starts, len(group)))
    rank_in_group = np.arange(len(group)) - np.repeat(starts, lengths)
    rank = np.empty(len(rows), dtype=np.int32)
    rank[grouped] = rank_in_group

    cap = protocol.caps[-1]
    if cap is None or int(lengths.max(initial=0)) <= cap:
        return Ranking(rows, rank, grouped, group)
    kept = rank < cap
    kept_in_group = np.flatnonzero(rank_in_group < cap)
    new_position = np.cumsum(kept) - 1
    grouped = np.take(new_position, np.take(grouped, kept_in_group))
    return Ranking(rows[kept], rank[kept], grouped, np.take(group, kept_in_group))


def _let_through(rows: NDArray[np.intp], detections: Detections, protocol: Protocol) -> NDArray[np.intp]:
    """Drop rows, given by descending score, below the score threshold or beyond the cap of a whole image."""
    if protocol.matching.score_threshold > -np.inf:
        rows = rows[np.take(detections.scores, rows) >= protocol.matching.score_threshold]
    cap = protocol.caps[-1]
    if protocol.matching.cap_scope == "class" or cap is None:
        return rows
    image = np.take(detections.image, rows)
    by_image = stable_order(image, len(detections.images))
    starts = run_starts(image[by_image])
    lengths = np.diff(np.append(starts, len(rows)))
    place = np.arange(len(rows)) - np.repeat(starts, lengths)
    return rows[np.sort(by_image[place < cap])]
