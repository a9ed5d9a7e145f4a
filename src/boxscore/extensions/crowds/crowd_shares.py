"""Compute how much of each object is in an ignored region, for the Jaccard index of crowds."""

from __future__ import annotations

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import stable_order
from boxscore.data.tables import GroundTruth
from boxscore.matching.candidates import Asked
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.crowds import TRUTH_SHARE


def with_truth_shares(asked: Asked, matches: Matches) -> Matches:
    """Add the fraction of each ground truth inside a region."""
    shares = shares_of_regions(asked.ground_truth, asked.ignoring.by_foreground, asked.protocol)
    return matches.with_extra({TRUTH_SHARE.name: shares})


def shares_of_regions(ground_truth: GroundTruth, is_region: BoolArray, protocol: Protocol) -> FloatArray:
    """Return the largest fraction of each ground truth inside one region of its image and class, [G]."""
    share = np.zeros(len(ground_truth))
    # Sort the other ground truths by (image, category), so that those in the group of a region are a slice,
    # found by bisection.
    group = ground_truth.image.astype(np.int64) * len(ground_truth.categories) + ground_truth.category
    regions, rest = np.flatnonzero(is_region), np.flatnonzero(~is_region)
    rest = rest[stable_order(group[rest], int(group.max(initial=0)) + 1)]
    low, high = (np.searchsorted(group[rest], group[regions], side=side) for side in ("left", "right"))
    boxes = ground_truth.boxes
    # Intersect each region with its n boxes; empty intersections are clipped to 0.
    for region, first, end in zip(regions.tolist(), low.tolist(), high.tolist(), strict=True):
        rows = rest[first:end]
        near, far = (
            np.maximum(boxes[rows, :2], boxes[region, :2]),
            np.minimum(boxes[rows, 2:], boxes[region, 2:]),
        )
        shared = np.maximum(0, far - near).prod(axis=1)
        area = np.maximum(0, boxes[rows, 2:] - boxes[rows, :2]).prod(axis=1)
        area = area + protocol.boxes.overlap_epsilon
        # Keep the largest fraction over all regions, which does not depend on their order.
        share[rows] = np.maximum(
            share[rows], np.divide(shared, area, out=np.zeros(len(rows)), where=area > 0)
        )
    return share
