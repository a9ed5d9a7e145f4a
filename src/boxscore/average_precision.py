"""From matches to recall, interpolated precision and AP, for every class and threshold at once.

Goal
----
pycocotools' ``accumulate`` and the VOC kit's ``VOCap`` to the last bit, at the cost of the true positives.

Conventions
-----------
- Precision rises only at a true positive, so the envelope of a curve and every look-up by recall need only
  those positions. The ``i``-th true positive of a class has precision ``i / (n + eps)``, where ``n`` is the
  number of counted detections up to it: one running count of detections inside the area range, corrected
  at the few that a match moved in or out.
- How many true positives recall point ``r`` needs depends only on the class's positives; it is found once,
  by comparing the floats that pycocotools compares. The interpolated precision is then the largest
  precision of each stretch between two needs (``maximum.reduceat``), and a running maximum from the right.
- Detections whose match is ignored, or that match nothing and lie outside the area range, do not count.
- A class without a counted ground truth has no curve: NaN. With ground truth and no detection it is 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.interpolation import curve_area
from boxscore.matching import Matches
from boxscore.protocol import Protocol

__all__ = [
    "Curves",
    "average_precision",
    "needed_hits",
    "positives",
    "precision_recall",
    "recall",
    "tie_starts",
]

FloatArray = NDArray[np.float64]


class Curves(NamedTuple):
    """Interpolated curves of one area range and detection cap; NaN for classes without ground truth."""

    precision: FloatArray  # [T,R,K]
    score: FloatArray  # [T,R,K], of the detection that reaches the recall point; 0 past the last
    recall: FloatArray  # [T,K], the highest reached


class _TruePositives(NamedTuple):
    """True positives of every threshold and class, segment by segment: (t, k), then class order."""

    starts: NDArray[np.intp]  # [T*K + 1], where each segment starts
    position: NDArray[np.intp]  # [N], place in class order
    threshold: NDArray[np.intp]  # [N]
    candidate: NDArray[np.intp]  # [N], which of the detections with a pair


class _Outcomes(NamedTuple):
    """What matching decided for the detections that have a pair, [T, C] each."""

    detection: NDArray[np.intp]  # [C], place in class order
    true_positive: NDArray[np.bool_]
    ignored: NDArray[np.bool_]


def positives(matches: Matches, area: int, category_count: int) -> NDArray[np.int64]:
    """Count the counted ground truths of each class, [K]."""
    counted = (matches.counted >> matches.counted.dtype.type(area)) & 1
    return np.bincount(matches.truth_category[counted == 1], minlength=category_count)


def recall(
    matches: Matches, protocol: Protocol, *, category_count: int, area: int = 0, cap: int = -1
) -> FloatArray:
    """Recall reached at each threshold by each class.

    Parameters
    ----------
    matches : Matches
    protocol : Protocol
    category_count : int
        K.
    area, cap : int
        Positions on the axes A and M.

    Returns
    -------
    ndarray of float64, [T, K]
        NaN for a class without counted ground truth.
    """
    found = _true_positives(matches, protocol, category_count, _outcomes(matches, protocol, area, cap))
    return _recall(found, positives(matches, area, category_count))


def precision_recall(
    matches: Matches, protocol: Protocol, *, category_count: int, area: int = 0, cap: int = -1
) -> Curves:
    """Precision at the protocol's recall points.

    Parameters and errors as in :func:`recall`.

    Returns
    -------
    Curves
    """
    outcomes = _outcomes(matches, protocol, area, cap)
    found = _true_positives(matches, protocol, category_count, outcomes)
    positive = positives(matches, area, category_count)
    precision = _precision(matches, protocol, outcomes, found, category_count, area, cap)
    needed = needed_hits(np.array(protocol.ap.recall_points), positive)  # [R,K]

    T, K, R = len(protocol.matching.iou_thresholds), category_count, len(needed)
    counts = np.diff(found.starts).reshape(T, K)
    # Entry needed - 1 of each segment, or the segment's end where it has too few.
    entry = np.minimum(np.maximum(needed.T[None], 1) - 1, counts[..., None])  # [T,K,R]
    entry += found.starts[:-1].reshape(T, K, 1)
    reached = needed.T[None] <= counts[..., None]  # [T,K,R]
    with_curve = reached & (counts[..., None] > 0)
    stretch = np.maximum.reduceat(np.append(precision, 0.0), entry.ravel()).reshape(T, K, R)
    stretch[~with_curve] = 0.0
    envelope = np.maximum.accumulate(stretch[..., ::-1], axis=-1)[..., ::-1]

    # Recall point 0 is reached by the first detection of the class, whatever it is.
    first = np.searchsorted(matches.category, np.arange(K + 1))
    score_of = np.append(matches.score, 0.0)
    position = np.append(found.position, 0)[entry]
    position = np.where(needed.T[None] == 0, first[:-1][None, :, None], position)
    has_score = np.where(needed.T[None] == 0, (np.diff(first) > 0)[None, :, None], with_curve)
    score = np.where(has_score, score_of[position], 0.0)

    undefined = _undefined(matches, protocol, positive)
    envelope[:, undefined], score[:, undefined] = np.nan, np.nan
    return Curves(
        np.ascontiguousarray(envelope.transpose(0, 2, 1)),
        np.ascontiguousarray(score.transpose(0, 2, 1)),
        _recall(found, positive),
    )


def average_precision(
    matches: Matches, protocol: Protocol, *, category_count: int, area: int = 0, cap: int = -1
) -> FloatArray:
    """AP of each threshold and class.

    Parameters as in :func:`recall`.

    Returns
    -------
    ndarray of float64, [T, K]
        NaN for a class without counted ground truth.

    References
    ----------
    pycocotools ``cocoeval.py`` (points); the PASCAL VOC kit, ``VOCap.m`` (area) and ``VOCevaldet.m`` (11
    points).
    """
    if protocol.ap.interpolation == "points":
        curves = precision_recall(
            matches, protocol, category_count=category_count, area=area, cap=cap
        ).precision
        if protocol.ap.sequential_mean:
            summed: FloatArray = np.cumsum(curves / curves.shape[1], axis=1)[:, -1]
            return summed
        mean: FloatArray = np.ascontiguousarray(curves.transpose(0, 2, 1)).mean(axis=-1)
        return mean

    outcomes = _outcomes(matches, protocol, area, cap)
    found = _true_positives(matches, protocol, category_count, outcomes)
    positive = positives(matches, area, category_count)
    precision = _precision(matches, protocol, outcomes, found, category_count, area, cap)
    shape = (len(protocol.matching.iou_thresholds), category_count)
    counted, total = _counted(matches, protocol, outcomes, found, category_count, area, cap)
    ap = np.zeros(shape)
    ap[:, _undefined(matches, protocol, positive)] = np.nan
    for t, k in np.ndindex(*shape):
        if positive[k]:
            segment = slice(*found.starts[t * category_count + k :][:2].tolist())
            ap[t, k] = curve_area(
                precision[segment], counted[segment], int(total[t, k]), int(positive[k]), protocol.ap
            )
    return ap


def _undefined(matches: Matches, protocol: Protocol, positive: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Classes without a curve, [K]: no counted ground truth, and no rule that makes it 0."""
    if protocol.ap.absent_classes == "all_zero":
        return np.zeros(len(positive), dtype=bool)
    absent: NDArray[np.bool_] = positive == 0
    if protocol.ap.absent_classes == "zero":
        absent = absent & (np.bincount(matches.category, minlength=len(positive)) == 0)
    return absent


def _bits(values: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """Spread bits [C] into rows [count, C]."""
    shifts = np.arange(count, dtype=values.dtype)[:, None]
    spread: NDArray[np.bool_] = ((values >> shifts) & values.dtype.type(1)).astype(bool)
    return spread


def _outcomes(matches: Matches, protocol: Protocol, area: int, cap: int) -> _Outcomes:
    """Read what became of each detection with a pair, at each threshold."""
    threshold_count = len(protocol.matching.iou_thresholds)
    limit = protocol.caps[cap]
    detection = matches.pair_detection
    matched, true_pairs = matches.matched[:, area], matches.counted_pairs[:, area]
    if limit is not None and limit != protocol.caps[-1]:
        within = np.flatnonzero(matches.rank[detection] < limit)
        detection, matched, true_pairs = detection[within], matched[within], true_pairs[within]
    starts = np.flatnonzero(np.diff(detection, prepend=-1))
    if not len(starts):
        none = np.zeros((threshold_count, 0), dtype=bool)
        return _Outcomes(np.empty(0, np.intp), none, none)
    true = np.bitwise_or.reduceat(true_pairs, starts)
    any_match = np.bitwise_or.reduceat(matched, starts)
    return _Outcomes(
        detection[starts], _bits(true, threshold_count), _bits(any_match & ~true, threshold_count)
    )


def _true_positives(
    matches: Matches, protocol: Protocol, category_count: int, outcomes: _Outcomes
) -> _TruePositives:
    threshold, candidate = np.nonzero(outcomes.true_positive)
    position = outcomes.detection[candidate]
    segment = threshold * category_count + matches.category[position]
    counts = np.bincount(segment, minlength=len(protocol.matching.iou_thresholds) * category_count)
    return _TruePositives(np.concatenate([[0], np.cumsum(counts)]), position, threshold, candidate)


def _precision(
    matches: Matches,
    protocol: Protocol,
    outcomes: _Outcomes,
    found: _TruePositives,
    category_count: int,
    area: int,
    cap: int,
) -> FloatArray:
    """Precision at each true positive, [N], in the order of ``found``."""
    counted, _ = _counted(matches, protocol, outcomes, found, category_count, area, cap)
    nth = np.arange(1, len(counted) + 1) - np.repeat(found.starts[:-1], np.diff(found.starts))
    precision: FloatArray = nth / (counted + protocol.ap.precision_epsilon)
    return precision


def _counted(
    matches: Matches,
    protocol: Protocol,
    outcomes: _Outcomes,
    found: _TruePositives,
    category_count: int,
    area: int,
    cap: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count detections up to each true positive, [N], and in all, [T, K]."""
    inside = ((matches.in_range >> matches.in_range.dtype.type(area)) & 1).astype(bool)
    limit = protocol.caps[cap]
    base = inside if limit is None else inside & (matches.rank < limit)
    before = np.concatenate([[0], np.cumsum(base)])  # counted detections before each place in class order
    inside_candidate = inside[outcomes.detection]
    change = (outcomes.true_positive & ~inside_candidate).astype(np.int8)
    change -= outcomes.ignored & inside_candidate
    changes = np.zeros((change.shape[0], change.shape[1] + 1), dtype=np.int64)
    np.cumsum(change, axis=1, out=changes[:, 1:])

    class_start = np.searchsorted(matches.category, np.arange(category_count + 1))
    class_candidate = np.searchsorted(outcomes.detection, class_start)
    at_class_start = before[class_start] + changes[:, class_candidate]  # [T,K+1]
    category = matches.category[found.position]
    counted = before[found.position + 1] + changes[found.threshold, found.candidate + 1]
    if protocol.ap.tie_order != "as_ranked":
        counted = _counted_with_ties_moved(matches, protocol, outcomes, found, before, changes)
    counted -= at_class_start[found.threshold, category]
    return counted, np.diff(at_class_start, axis=1)


def _counted_with_ties_moved(
    matches: Matches,
    protocol: Protocol,
    outcomes: _Outcomes,
    found: _TruePositives,
    before: NDArray[np.int64],
    changes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Count as if the true positives stood first, or last, among a class's equally scored detections."""
    starts = tie_starts(matches)
    bounds = np.append(starts, len(matches))
    tie = np.searchsorted(starts, found.position, side="right") - 1
    key = found.threshold * (len(starts) + 1) + tie  # ascending
    if protocol.ap.tie_order == "true_positives_first":
        edge = bounds[tie]
        moved = np.arange(1, len(key) + 1) - np.searchsorted(key, key, side="left")
    else:
        edge = bounds[tie + 1]
        moved = np.arange(1, len(key) + 1) - np.searchsorted(key, key, side="right")
    at_edge = before[edge] + changes[found.threshold, np.searchsorted(outcomes.detection, edge)]
    counted: NDArray[np.int64] = at_edge + moved
    return counted


def tie_starts(matches: Matches) -> NDArray[np.intp]:
    """Places in class order at which a new class or score starts."""
    score, category = matches.score, matches.category
    new = (score[1:] != score[:-1]) | (category[1:] != category[:-1])
    return np.flatnonzero(np.concatenate([[len(score) > 0], new]))


def _recall(found: _TruePositives, positive: NDArray[np.int64]) -> FloatArray:
    counts = np.diff(found.starts).reshape(-1, len(positive))
    reached: FloatArray = np.divide(counts, positive, out=np.full(counts.shape, np.nan), where=positive > 0)
    return reached


def needed_hits(points: FloatArray, positive: NDArray[np.int64]) -> NDArray[np.int64]:
    """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [R, K]."""
    total = np.maximum(positive, 1)
    needed = np.ceil(points[:, None] * total).astype(np.int64)  # at most one off
    needed -= (needed > 0) & ((needed - 1) / total >= points[:, None])
    needed += needed / total < points[:, None]
    return needed
