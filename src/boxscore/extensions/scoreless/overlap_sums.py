"""Add up the overlaps of true positives.

Conventions
-----------
- Overlaps are added as whole multiples of 2 ** -53, which is exact from one half up, so the order of images
  or partitions does not matter. Their upper and lower halves are whole numbers that float64 adds exactly.
- Partial results have overlaps only in the column that such kinds request, so a class has one owner.
"""

from __future__ import annotations

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.errors import InputError
from boxscore.matching.candidates import Asked
from boxscore.matching.matches import Matches
from boxscore.protocols.tables.matching import PAIR_IOU
from boxscore.scoring.curves import Curves

HALF = 2.0**27


def with_pair_iou(asked: Asked, matches: Matches) -> Matches:
    """Add the overlap of every pair as a column, which partial results keep."""
    return matches.with_extra({PAIR_IOU.name: matches.iou})


def overlap_sums(curves: Curves) -> FloatArray:
    """Return the sum of the overlaps of the true positives of each threshold and class, [T, K]."""
    outcomes, weights = curves.counts.outcomes, curves.counts.image_weights
    assert outcomes is not None
    matches, area = outcomes.matches, outcomes.area
    assert matches is not None
    iou = PAIR_IOU.of(matches.extra)
    if iou is None:
        rule, cause = "be there for the mean IoU of matches", "were the parts made for other metrics?"
        raise InputError("overlaps", rule, got="none", cause=cause)
    # Split each overlap into two whole numbers, the upper 26 and the lower 27 bits of ``iou * 2 ** 53``. Sums
    # of either half are exact in float64, so the order of images and partitions does not matter.
    T, K = curves.totals.recalled.shape
    whole = np.floor(iou * HALF * HALF / 2)
    upper = np.floor(whole / HALF)
    lower = whole - upper * HALF
    sums = np.empty((T, K))
    # Add up both halves per class; weights are whole numbers, so the products are exact too. Only adding the
    # two halves rounds.
    for t in range(T):
        pairs = matches.pairs_true(t, area)
        detection = matches.pair_detection[pairs]
        category = matches.category[detection]
        weight = 1.0 if weights is None else weights[matches.image[detection]]
        of_upper, of_lower = (
            np.bincount(category, half[pairs] * weight, minlength=K) for half in (upper, lower)
        )
        sums[t] = (of_upper * HALF + of_lower) / (HALF * HALF / 2)
    return sums
