"""Compute the log-average miss rate (MR^-2): miss rate against false positives per image, read at anchors.

Conventions
-----------
- The curve has a point per counted detection, in the ranking of a class: unlike in FROC, the order of equal
  scores matters.
- Miss rate and false positives change at different detections, so the point for an anchor is found by
  counting the true positives before it: those with fewer false positives (the first point that reaches the
  anchor), or with no more (the last point within it).
- A chunk by score knows the counts before it, and counts up to the last true positive before each anchor; the
  maximum over all chunks is used.
- The denominator of false positives is all evaluated images. Miss rates are not clipped: an anchor with miss
  rate 0 makes the geometric mean 0.
- The miss rate of a class without counted ground truths is NaN; with ``first_at_least``, so is that of a
  class without counted detections, since the curve is empty.

References
----------
P. Dollar et al., "Pedestrian Detection: An Evaluation of the State of the Art", PAMI 2012; ``dbEval.m`` of
the Caltech toolbox; CrowdDet, ``APMRToolkits/database.py``; CityPersons, ``eval_MR_multisetup.py``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import LARGEST, SMALLEST, Curves, State
from boxscore.scoring.kinds import Kind

NONE = np.iinfo(np.int64).max
"""Marks missing false positives before the first true positive."""

FOLD = {"true_at_anchors": LARGEST, "true_at_end": LARGEST, "false_at_first": SMALLEST}
"""True positives up to each anchor, [T, K, F], and in total; false positives before the first one, [T, K]."""


def _fields(curves: Curves, protocol: Protocol) -> State:
    rules, runs = protocol.miss_rate, curves.counts.runs
    anchors, images = np.array(rules.false_positives_per_image), max(curves.totals.images, 1)
    side: Literal["left", "right"] = "left" if rules.reading == "first_at_least" else "right"
    at_anchors = np.zeros((*runs.shape, len(anchors)), dtype=np.int64)
    at_end, at_first = np.zeros(runs.shape, dtype=np.int64), np.full(runs.shape, NONE)
    for t, (nth, counted) in enumerate(curves.lines("as_ranked")):
        ends = np.cumsum(runs[t])
        for k in np.flatnonzero(runs[t]).tolist():
            segment = slice(int(ends[k] - runs[t, k]), int(ends[k]))
            false = counted[segment] - nth[segment]  # before each true positive
            before = np.searchsorted(false / images, anchors, side=side)
            at_anchors[t, k] = np.append(0, nth[segment])[before]
            at_end[t, k], at_first[t, k] = nth[segment][-1], false[0]
    return {"true_at_anchors": at_anchors, "true_at_end": at_end, "false_at_first": at_first}


def miss_rates(curves: Curves, protocol: Protocol) -> FloatArray:
    """Return the miss rate per threshold and class at the anchors, [T, F, K]."""
    rules, totals, state = protocol.miss_rate, curves.totals, MISS_RATE.state(curves, protocol)
    anchors, positive = np.array(rules.false_positives_per_image), totals.positive
    true, counted = state["true_at_anchors"], totals.counted
    if not totals.images:
        return np.full((len(true), len(anchors), len(positive)), np.nan)
    if rules.reading == "last_at_most_or_end":
        # If the first point is beyond the anchor, the reference reads the last element of its list.
        from_end = (counted > 0) & (state["false_at_first"] > 0)
        from_end = from_end[..., None] & (1 / totals.images > anchors)
        true = np.where(from_end, state["true_at_end"][..., None], true)
    defined = np.broadcast_to(positive > 0, counted.shape)
    if rules.reading == "first_at_least":
        defined = defined & (counted > 0)
    undefined = np.full(true.shape, np.nan)
    rates = 1.0 - np.divide(true, positive[:, None], out=undefined, where=defined[..., None])
    return np.ascontiguousarray(rates.transpose(0, 2, 1))


def log_average(rates: FloatArray) -> FloatArray:
    """Return the geometric mean over the anchors, from [T, R, K] to [T, K]."""
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.ascontiguousarray(rates.transpose(0, 2, 1)))
        mean: FloatArray = np.exp(logarithms.mean(axis=-1))
    return mean


def _values(curves: Curves, protocol: Protocol) -> Values:
    return HeldValues(log_average(miss_rates(curves, protocol)))


MISS_RATE = Kind(
    "MR",
    "Log-Average Miss Rate (MR)",
    _values,
    lambda protocol: FOLD,
    _fields,
    needs_order=True,
    lower_is_better=True,
)
KINDS = (MISS_RATE,)
