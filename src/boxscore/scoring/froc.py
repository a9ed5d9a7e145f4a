"""The free-response ROC: the share of objects that is found, against false positives per image (FPPI).

Goal
----
Read each class's curve at some numbers of false positives per image. A kind of summary metric that asks for
other points, or makes something else of the values, takes :func:`sensitivity` as well.

Conventions
-----------
- A confidence threshold keeps all detections of one score or none, so a curve has a point for each distinct
  score, and the order among equal scores decides nothing. It starts at no detection: (0, 0).
- The denominator is all images that were evaluated, also those without objects or detections.
- Where no equal scores are both right and wrong, a curve only goes up or to the right. The value between two
  points is then that of the left one by either rule. Along a tie, "linear" reads the straight line across it,
  and "step" waits until the whole tie is paid for.
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

from boxscore.protocols.protocol import FrocInterpolation, TieOrder
from boxscore.scoring.counts import HitCounts
from boxscore.scoring.weighted import WeightedCounts

__all__ = ["sensitivity", "sensitivity_at"]

FloatArray = NDArray[np.float64]
Counts = NDArray[np.integer]


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
    found: FloatArray = np.append(0, true) / positive
    if interpolation == "linear":
        return np.interp(points, per_image, found)
    read: FloatArray = found[np.searchsorted(per_image, points, side="right") - 1]
    return read


def sensitivity(
    counts: HitCounts | WeightedCounts, points: FloatArray, interpolation: FrocInterpolation
) -> FloatArray:
    """Read the curves of all thresholds and classes at FPPI ``points``, [T, R, K]."""
    T, K = counts.hits.shape
    hit, up_to = _joined(counts, "true_positives_first")
    before = up_to - hit  # false positives of higher scores, [N]
    hit, up_to = _joined(counts, "true_positives_last")
    through = up_to - hit  # and those of the same score

    # Corners: before and after the true positives of a tie, or of neighbours with nothing false between them.
    segment_start = np.concatenate([[0], np.cumsum(counts.hits)])
    new = np.ones(len(hit), dtype=bool)
    new[1:] = (before[1:] != before[:-1]) | (through[1:] != through[:-1])
    new[segment_start[:-1][counts.hits.ravel() > 0]] = True
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(hit)) - 1 if len(first) else first
    false = np.stack([before[first], through[first]], axis=1).ravel()
    true = np.stack([hit[first] - 1, hit[last]], axis=1).ravel()
    bounds = 2 * np.searchsorted(first, segment_start)

    read = np.empty((T, K, len(points)))
    for segment, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
        t, k = divmod(segment, K)
        read[t, k] = sensitivity_at(
            points,
            false[low:high],
            true[low:high],
            positive=int(counts.positive[k]),
            images=counts.images,
            interpolation=interpolation,
        )
    return np.ascontiguousarray(read.transpose(0, 2, 1))


def _joined(counts: HitCounts | WeightedCounts, tie_order: TieOrder) -> tuple[Counts, Counts]:
    """:meth:`HitCounts.lines` of all thresholds in one, [N]."""
    hit, up_to = (np.concatenate(column) for column in zip(*counts.lines(tie_order), strict=True))
    return hit, up_to
