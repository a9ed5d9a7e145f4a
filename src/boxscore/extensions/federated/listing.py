"""Classes that were looked for in an image, and those that were not: labels of whole images.

Conventions
-----------
- A class is *listed* in an image when an object of it that takes part is there, or a label of the image says
  so. Nobody knows whether an unlisted class is there: its detections are dropped where the protocol says so.
- Where a class is not annotated exhaustively, a detection that matches nothing is ignored.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.ordering import among
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.ignoring import Ignoring
from boxscore.matching.pairs import Outcome, Pairs
from boxscore.matching.ranking import ranked_by, scored_enough
from boxscore.matching.sources import Asked, Match
from boxscore.protocols.protocol import Protocol


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


def counted_unmatched(
    ground_truth: GroundTruth, detections: Detections, rows: NDArray[np.int64], protocol: Protocol
) -> BoolArray | None:
    """Whether some detections count where they match nothing, [rows]; None: all do."""
    labels = ground_truth.image_labels
    if labels is None:
        return None
    return ~labels.says(detections.image[rows], detections.category[rows], "not_exhaustive")


def matching_listed(asked: Asked, match: Match) -> Match:
    """Return what matches the detections of listed classes alone."""
    may = listed(asked.ground_truth, asked.detections, asked.ignoring, asked.protocol)
    return functools.partial(_of_some, match, may[asked.rows])


def _of_some(match: Match, chosen: BoolArray, blocks: Iterable[Pairs], **changed: Any) -> Outcome:
    """Match the pairs of some detections alone, by position in class order, [D]."""
    return match((block.of_detections(chosen) for block in blocks), **changed)


def detected(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Drop the objects of classes of which their image has no detection."""
    K = len(ground_truth.categories)
    found = scored_enough(ranked_by(detections), protocol)
    pairs = detections.image[found].astype(np.int64) * K + detections.category[found]
    objects = ground_truth.image.astype(np.int64) * K + ground_truth.category
    there = among(pairs, objects, len(ground_truth.images) * K)
    return ground_truth.take(np.flatnonzero(there)), detections
