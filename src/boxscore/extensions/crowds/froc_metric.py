"""The free-response ROC: recall against false positives per image (FPPI).

Conventions
-----------
- A score threshold keeps all detections of one score or none, so a curve has a point for each distinct
  score, and the order among equal scores decides nothing. It starts at no detection: (0, 0).
- The denominator is all images that were evaluated, also those without objects or detections.
- Where no equal scores are both right and wrong, a curve only goes up or to the right. The value between two
  points is then that of the left one by either rule. Along a tie, "linear" reads the straight line across it,
  and "step" waits until the whole tie is paid for.
- What is read at a point follows from its neighbours: the last point of the curve within it, and the first
  beyond. A range of scores that knows what is before it has such neighbours; the nearest of all ranges stay.
- Past the last point a curve keeps its height. A class without a counted ground truth has no curve: NaN.

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
"""In place of a point beyond, where there is none."""

FOLD = {"true_within": LARGEST, "false_within": LARGEST, "true_beyond": SMALLEST, "false_beyond": SMALLEST}
"""True and false positives of the neighbours of each point, [T, K, F]."""


def sensitivity_at(
    points: FloatArray,
    false: Counts,
    true: Counts,
    *,
    positive: int,
    images: int,
    interpolation: FrocInterpolation,
) -> FloatArray:
    """Read a curve at FPPI ``points``; ``false`` and ``true`` count up to its points, from the highest score.

    Points between which the curve only goes up or only to the right may be left out.
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
    # False positives before and through the tie of each true positive, [N]: both follow from running counts
    # of whole numbers.
    points = np.array(protocol.froc.false_positives_per_image)
    runs = curves.counts.runs
    nth, up_to = curves.joined_lines("true_positives_first")
    before = up_to - nth  # false positives of higher scores, [N]
    nth, up_to = curves.joined_lines("true_positives_last")
    through = up_to - nth  # and those of the same score

    # Corners: before and after the true positives of a tie, or of neighbors with nothing false between them.
    segment_start = np.concatenate([[0], np.cumsum(runs)])
    new = np.ones(len(nth), dtype=bool)
    new[1:] = (before[1:] != before[:-1]) | (through[1:] != through[:-1])
    new[segment_start[:-1][runs.ravel() > 0]] = True
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(nth)) - 1 if len(first) else first
    false = np.stack([before[first], through[first]], axis=1).ravel()
    true = np.stack([nth[first] - 1, nth[last]], axis=1).ravel()
    bounds = (2 * np.searchsorted(first, segment_start)).tolist()

    # Read the neighbors of all points in one search per segment. The search compares ``false / images``, the
    # quotient that the reader compares too, so both agree at equal values.
    shape = (*runs.shape, len(points))
    within, beyond = np.zeros((2, *shape), dtype=np.int64), np.full((2, *shape), BEYOND)
    images = max(curves.totals.images, 1)
    for segment, (low, high) in enumerate(itertools.pairwise(bounds)):
        # Curves of threshold and class are one after another: bounds cut them out.
        t, k = divmod(segment, runs.shape[1])
        at = low + np.searchsorted(false[low:high] / images, points, side="right")
        some = at > low
        # The last point within the rate, and the first beyond it: between the two the curve is a line.
        within[:, t, k, some] = true[at[some] - 1], false[at[some] - 1]
        some = at < high
        beyond[:, t, k, some] = true[at[some]], false[at[some]]
    return dict(zip(FOLD, (*within, *beyond), strict=True))


def _values(curves: Curves, protocol: Protocol) -> Values:
    """Read the curves of all thresholds and classes, [T, F, K]."""
    # Put the neighbors of all points in order, [T, K, 2F]. True and false positives both rise along the
    # curve, so each side can be sorted alone.
    points, state = np.array(protocol.froc.false_positives_per_image), FROC.state(curves, protocol)
    T, K = curves.totals.recalled.shape
    true, false = (
        np.sort(np.concatenate([state[f"{side}_within"], state[f"{side}_beyond"]], axis=-1), axis=-1)
        for side in ("true", "false")
    )
    # Drop the markers for missing neighbors, and read each curve from the rest of its points.
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
