"""Compute the free-response ROC: recall against false positives per image (FPPI).

Conventions
-----------
- A score threshold keeps all detections of one score or none, so a curve has a point per distinct score, and
  the order of equal scores does not matter. It starts without detections at (0, 0).
- The denominator is all evaluated images, including those without objects or detections.
- Without ties of true and false positives, a curve only goes up or to the right, and the value between two
  points is that of the left one under either interpolation. Along a tie, "linear" interpolates across it, and
  "step" keeps the value before the tie until its end.
- The value at a point follows from its neighbors: the last point of the curve within it, and the first
  beyond. Chunks by score know the counts before them, so they have such neighbors; the nearest of all chunks
  are kept.
- Beyond its last point a curve is constant. The curve of a class without counted ground truths is NaN.

References
----------
LUNA16, ``noduleCADEvaluationLUNA16.py``; MONAI, ``monai/metrics/froc.py``; nnDetection, ``froc.py``: points
at the distinct scores, read by ``numpy.interp``. A. A. A. Setio et al., "Validation, comparison, and
combination of algorithms for automatic detection of pulmonary nodules in computed tomography images: the
LUNA16 challenge", Medical Image Analysis 2017.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.crowds import FrocInterpolation
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import LARGEST, SMALLEST, Curves, State
from boxscore.scoring.kinds import Kind

Counts = NDArray[np.integer]

BEYOND = np.iinfo(np.int64).max
"""Marks a missing neighbor beyond."""

FOLD = {"true_within": LARGEST, "false_within": LARGEST, "true_beyond": SMALLEST, "false_beyond": SMALLEST}
"""True and false positives of the neighbors of each point, [T, K, F]."""


def sensitivity_at(
    points: FloatArray,
    false: Counts,
    true: Counts,
    *,
    positive: int,
    images: int,
    interpolation: FrocInterpolation,
) -> FloatArray:
    """Read a curve at FPPI ``points``; ``false`` and ``true`` are cumulative counts from the highest score.

    Points between which the curve only goes up, or only to the right, may be missing.
    """
    if not positive or not images:
        return np.full(len(points), np.nan)
    per_image = np.append(0, false) / images
    sensitivity: FloatArray = np.append(0, true) / positive
    if interpolation == "linear":
        return np.interp(points, per_image, sensitivity)
    read: FloatArray = sensitivity[np.searchsorted(per_image, points, side="right") - 1]
    return read


def _fields(curves: Curves, protocol: Protocol) -> State:
    """Find the neighbors of each point among the corners of the curves."""
    # Count false positives before and through the tie of each true positive, [N], from running integer
    # counts.
    points = np.array(protocol.froc.false_positives_per_image)
    runs = curves.counts.runs
    nth, up_to = curves.joined_lines("true_positives_first")
    before = up_to - nth  # false positives of higher scores, [N]
    nth, up_to = curves.joined_lines("true_positives_last")
    through = up_to - nth  # and those of the same score

    # Find the corners: before and after the true positives of a tie, or of neighbors without false positives
    # between.
    segment_start = np.concatenate([[0], np.cumsum(runs)])
    new = np.ones(len(nth), dtype=bool)
    new[1:] = (before[1:] != before[:-1]) | (through[1:] != through[:-1])
    new[segment_start[:-1][runs.ravel() > 0]] = True
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(nth)) - 1 if len(first) else first
    false = np.stack([before[first], through[first]], axis=1).ravel()
    true = np.stack([nth[first] - 1, nth[last]], axis=1).ravel()
    bounds = (2 * np.searchsorted(first, segment_start)).tolist()

    # Find the neighbors of all points in one search per segment. Comparing ``false / images``, the quotient
    # that the reader uses, makes both agree at equal values.
    shape = (*runs.shape, len(points))
    within, beyond = np.zeros((2, *shape), dtype=np.int64), np.full((2, *shape), BEYOND)
    images = max(curves.totals.images, 1)
    for segment, (low, high) in enumerate(itertools.pairwise(bounds)):
        # Slice the curve of one threshold and class.
        t, k = divmod(segment, runs.shape[1])
        at = low + np.searchsorted(false[low:high] / images, points, side="right")
        some = at > low
        # Take the last point within the rate and the first beyond it; the curve is linear between them.
        within[:, t, k, some] = true[at[some] - 1], false[at[some] - 1]
        some = at < high
        beyond[:, t, k, some] = true[at[some]], false[at[some]]
    return dict(zip(FOLD, (*within, *beyond), strict=True))


def _values(curves: Curves, protocol: Protocol) -> Values:
    """Read the curves of all thresholds and classes, [T, F, K]."""
    # Sort the neighbors of all points, [T, K, 2F]. True and false positives both ascend along the curve, so
    # each is sorted separately.
    points, state = np.array(protocol.froc.false_positives_per_image), FROC.state(curves, protocol)
    T, K = curves.totals.recalled.shape
    true, false = (
        np.sort(np.concatenate([state[f"{side}_within"], state[f"{side}_beyond"]], axis=-1), axis=-1)
        for side in ("true", "false")
    )
    # Drop the markers of missing neighbors, and read each curve from the remaining points.
    counts = (false < BEYOND).sum(axis=-1)
    read = np.empty((T, K, len(points)))
    for t, k in np.ndindex(T, K):
        read[t, k] = sensitivity_at(
            points,
            false[t, k, : counts[t, k]],
            true[t, k, : counts[t, k]],
            positive=int(curves.positive[k]),
            images=curves.totals.images,
            interpolation=protocol.froc.interpolation,
        )
    return HeldValues(np.ascontiguousarray(read.transpose(0, 2, 1)))


FROC = Kind("FROC", "Mean Sensitivity (FROC)", _values, lambda protocol: FOLD, _fields, needs_order=True)
KINDS = (FROC,)
