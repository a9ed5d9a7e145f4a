"""Which detections are evaluated at all, and which unmatched ones count: degenerate boxes and image labels.

Conventions
-----------
- The order is lvis-api's: detections are cut at max detections (of an image, or of a class in the whole data
  set), then what has no area is dropped, then what is of a class that was not verified in the image. Max
  detections of an image and class come last (:mod:`boxscore.matching.ranking`).
- A class is *listed* in an image when an object of it that takes part is there, or a label of the image says
  so. Of an unlisted class nobody knows whether it is there: its detections are dropped where the protocol
  says so.
- Where a class is not annotated exhaustively, a detection that matches nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import among, descending_order, top_k_per_group
from boxscore.data.image_labels import ImageLabels
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.ignoring import Ignoring, evaluated, without_area
from boxscore.matching.ranking import ranked_by, scored_enough
from boxscore.protocols.protocol import Protocol


def eligible(
    ground_truth: GroundTruth,
    detections: Detections,
    areas: Callable[[], FloatArray],
    ignoring: Ignoring,
    protocol: Protocol,
) -> BoolArray | None:
    """Whether each detection is evaluated at all, [D]; None where all are.

    ``areas`` gives what area ranges measure in the detections, [D].
    """
    matching = protocol.matching
    over_file = matching.caps_data_set or (
        matching.caps_image and not matching.per_class  # equal scores at the cut go in file order
    )
    labels = protocol.labels
    drops = labels.unlisted.startswith("drop")
    everything = protocol.boxes.degenerate == "count" and not drops and not labels.not_evaluated
    if everything and not over_file:
        return None
    mask = np.ones(len(detections), dtype=bool)
    if over_file and protocol.caps[-1] is not None:
        mask = _best(detections, protocol, protocol.caps[-1])
    if protocol.boxes.degenerate == "drop":
        mask &= ~without_area(areas())
    elif protocol.boxes.degenerate == "drop_detections":
        mask &= (detections.sizes > 0).all(axis=1)
    if drops:
        mask &= listed(ground_truth, detections, ignoring, protocol)
    if labels.not_evaluated:
        mask &= evaluated(detections.categories, protocol)[detections.category]
    return mask


def inexhaustive(
    labels: ImageLabels | None, detections: Detections, rows: NDArray[np.int64], protocol: Protocol
) -> BoolArray | None:
    """Whether each of some detections is ignored where it matches nothing, [rows]; None where none is."""
    if protocol.labels.not_exhaustive == "count" or labels is None:
        return None
    return labels.says(detections.image[rows], detections.category[rows], "not_exhaustive")


def _best(detections: Detections, protocol: Protocol, max_detections: int) -> BoolArray:
    """Whether each detection is among the best of its image, or its class in the data set; ties by file."""
    of_image = not protocol.matching.caps_data_set
    group = detections.image if of_image else detections.category
    count = len(detections.images) if of_image else len(detections.categories)
    scores = ranked_by(detections)
    best = scored_enough(scores, protocol)
    over = np.bincount(group, minlength=count) > max_detections
    if over.any():  # most files are written within max detections: only the groups beyond are sorted
        rows = np.flatnonzero(best & np.take(over, group))
        rows = rows[descending_order(scores[rows])]
        best[rows] = False
        best[rows[top_k_per_group(np.take(group, rows), max_detections, count)]] = True
    return best


def may_match(
    ground_truth: GroundTruth, detections: Detections, ignoring: Ignoring, protocol: Protocol
) -> BoolArray | None:
    """Whether each detection may match an object at all, [D]; None where all may."""
    if protocol.labels.unlisted != "unmatched_without_object":
        return None
    return listed(ground_truth, detections, ignoring, protocol)


def listed(
    ground_truth: GroundTruth, detections: Detections, ignoring: Ignoring, protocol: Protocol
) -> BoolArray:
    """Whether the class of each detection is listed in its image, [D]."""
    count = len(ground_truth.categories)
    there = ~ignoring.deleted
    objects = ground_truth.image[there].astype(np.int64) * count + ground_truth.category[there]
    asked = detections.image.astype(np.int64) * count + detections.category
    is_listed = among(objects, asked, len(ground_truth.images) * count)
    if protocol.labels.unlisted == "drop_beside_others":
        is_listed |= ~among(ground_truth.image[there], detections.image, len(ground_truth.images))
    labels = ground_truth.image_labels
    if labels is not None and protocol.labels.unlisted == "drop":
        kinds = ("negative",) if protocol.labels.listed_by == "negative" else ("negative", "positive")
        is_listed |= labels.says(detections.image, detections.category, *kinds)
    return is_listed
