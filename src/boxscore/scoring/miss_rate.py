"""The log-average miss rate (MR^-2): miss rate against false positives per image, read at some anchors.

Conventions
-----------
- The curve has a point at every counted detection, in the order in which a class's detections are ranked:
  unlike in FROC, the order among equal scores decides.
- Miss rate and false positives change at different detections, so the point at which an anchor is read is
  known by the true positives before it: those with fewer false positives (the first point that reaches the
  anchor), or with no more (the last point within it).
- The denominator of false positives is all images that were evaluated. There is no floor: an anchor at which
  nothing is missed makes the geometric mean 0.
- Without a counted ground truth a class has no miss rate: NaN; nor has it by ``first_at_least`` without a
  counted detection, where there is no point to be read.

References
----------
P. Dollar et al., "Pedestrian Detection: An Evaluation of the State of the Art", PAMI 2012; ``dbEval.m`` of
the Caltech toolbox; CrowdDet, ``APMRToolkits/database.py``; CityPersons, ``eval_MR_multisetup.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore.protocols.protocol import MissRateRules
from boxscore.scoring.counts import HitCounts
from boxscore.scoring.weighted import WeightedCounts

__all__ = ["log_average", "miss_rates"]

FloatArray = NDArray[np.float64]


def miss_rates(counts: HitCounts | WeightedCounts, rules: MissRateRules) -> FloatArray:
    """Miss rate of each threshold and class at the anchors, [T, R, K]."""
    anchors = np.array(rules.false_positives_per_image)
    T, K = counts.hits.shape
    read = np.full((T, len(anchors), K), np.nan)
    if not counts.images:
        return read
    first = rules.reading == "first_at_least"
    total = counts.totals()
    for t, (nth, counted) in enumerate(counts.lines("as_ranked")):
        ends = np.cumsum(counts.hits[t])
        for k in np.flatnonzero(counts.positive).tolist():
            own = slice(int(ends[k] - counts.hits[t, k]), int(ends[k]))
            false = counted[own] - nth[own]  # before each true positive
            if first and not total[t, k]:
                continue
            per_image = false / counts.images
            before = np.searchsorted(per_image, anchors, side="left" if first else "right")
            if rules.reading == "last_at_most_or_end" and total[t, k]:
                begins_false = not len(false) or false[0] > 0
                if begins_false:  # its first point lies beyond the anchor: the list is read from its end
                    before = np.where(1 / counts.images > anchors, len(false), before)
            found = np.append(0, nth[own])[before]
            read[t, :, k] = 1.0 - found / counts.positive[k]
    return read


def log_average(rates: FloatArray) -> FloatArray:
    """Geometric mean over the anchors, from [T, R, K] to [T, K]."""
    T, _, K = rates.shape
    mean = np.empty((T, K))
    with np.errstate(divide="ignore"):
        for t, k in np.ndindex(T, K):
            mean[t, k] = np.exp(np.log(np.ascontiguousarray(rates[t, :, k])).mean())
    return mean
