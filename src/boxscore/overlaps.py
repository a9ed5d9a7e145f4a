"""Candidate pairs: the detections and ground truths of one image and class that overlap enough to match.

Goal
----
Never make the cells of a detections-by-ground-truths matrix that are empty. Pairs are made only inside an
(image, category) group that has both, in chunks that stay in cache; those that do not overlap in x are
dropped before y is looked at, and those below the lowest IoU threshold before anything is stored.
A detection without a pair is a false positive at every threshold.

Conventions
-----------
``pixel_offset`` 0 computes what pycocotools computes, operation by operation (``x2 = x + w``, areas from
``w * h``); 1 computes what the VOC kit computes (sizes from ``x2 - x1 + 1``). Against a crowd region the
denominator is the detection's area alone, where the protocol says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.protocol import Protocol
from boxscore.ranking import Ranking
from boxscore.sorting import ragged_ranges, run_starts, stable_order
from boxscore.tables import BoxTable, Detections, GroundTruth

__all__ = ["Pairs", "candidate_pairs", "detection_areas"]

CHUNK_PAIRS = 1 << 16
"""Pairs looked at together: their columns fit a core's cache."""

Column = NDArray[np.float64]


class Pairs(NamedTuple):
    """Overlapping pairs in group order, and inside one detection in file order of the ground truths."""

    detection: NDArray[np.intp]  # [P] positions in class order (Ranking.rows)
    ground_truth: NDArray[np.intp]  # [P] rows of the table
    iou: Column  # [P]


class _Columns(NamedTuple):
    """Boxes as separate contiguous columns, [N] each."""

    x1: Column
    y1: Column
    x2: Column
    y2: Column
    area: Column


def candidate_pairs(
    ground_truth: GroundTruth, detections: Detections, ranking: Ranking, protocol: Protocol
) -> Pairs:
    """Find every pair whose overlap reaches the lowest threshold.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        With the same vocabularies.
    ranking : Ranking
        Of the detections, cut at the largest cap.
    protocol : Protocol
        Reads ``boxes``, ``matching.bars`` and ``ignore.crowd``.

    Returns
    -------
    Pairs
    """
    category_count = len(ground_truth.categories)
    truth_group = ground_truth.image.astype(np.int64) * category_count + ground_truth.category
    truth_rows = stable_order(truth_group, len(ground_truth.images) * category_count)
    truth_rows = _present(truth_rows, ground_truth, protocol)
    truth_group = truth_group[truth_rows]
    truth_starts = run_starts(truth_group)
    groups = truth_group[truth_starts]  # the (image, category) groups that have a ground truth

    grouped_rows = np.take(ranking.rows, ranking.grouped)
    starts = np.searchsorted(ranking.group, groups, side="left")
    counts = np.searchsorted(ranking.group, groups, side="right") - starts

    # Compact: only detections in a group with a ground truth, still in group order.
    places = ragged_ranges(starts, counts)
    compact_starts = np.cumsum(counts) - counts
    truths_in_group = np.diff(np.append(truth_starts, len(truth_rows)))
    offset = protocol.boxes.pixel_offset
    found = _overlapping(
        _columns(ground_truth, truth_rows, offset),
        _columns(detections, np.take(grouped_rows, places), offset),
        np.repeat(compact_starts, truths_in_group),
        np.repeat(counts, truths_in_group),
        crowd=ground_truth.crowd[truth_rows] if protocol.ignore.crowd == "iof" else None,
        pixel_offset=offset,
        lowest=float(protocol.matching.bars[0]),
    )
    truth, detection, iou = found
    order = stable_order(detection, len(places))
    positions = np.take(ranking.grouped, np.take(places, detection[order]))
    return Pairs(positions, np.take(truth_rows, truth[order]), iou[order])


def _present(rows: NDArray[np.intp], truth: GroundTruth, protocol: Protocol) -> NDArray[np.intp]:
    """Leave out the ground truths that the protocol deletes."""
    for rule, flag in ((protocol.ignore.crowd, truth.crowd), (protocol.ignore.difficult, truth.difficult)):
        if rule == "delete":
            rows = rows[~flag[rows]]
    return rows


def detection_areas(detections: Detections, protocol: Protocol) -> Column:
    """Area of each detection [D] in square pixels, as the protocol measures boxes."""
    sizes = detections.sizes + protocol.boxes.pixel_offset
    area: Column = sizes[:, 0] * sizes[:, 1]
    return area


def _columns(table: BoxTable, rows: NDArray[np.intp], pixel_offset: float) -> _Columns:
    x1, y1, x2, y2 = np.ascontiguousarray(np.take(table.boxes, rows, axis=0).T)  # [N] each
    width, height = np.ascontiguousarray(np.take(table.sizes, rows, axis=0).T)
    if pixel_offset:
        return _Columns(x1, y1, x2, y2, (width + pixel_offset) * (height + pixel_offset))
    return _Columns(x1, y1, x1 + width, y1 + height, width * height)


def _overlapping(
    truths: _Columns,
    boxes: _Columns,
    starts: NDArray[np.intp],
    counts: NDArray[np.intp],
    *,
    crowd: NDArray[np.bool_] | None,
    pixel_offset: float,
    lowest: float,
) -> tuple[NDArray[np.intp], NDArray[np.intp], Column]:
    """Compare truth ``g`` with the boxes ``starts[g]`` to ``starts[g] + counts[g]``, chunk by chunk.

    Returns
    -------
    truth, box : ndarray of intp, [P]
    iou : ndarray of float64, [P]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(CHUNK_PAIRS, total + CHUNK_PAIRS, CHUNK_PAIRS))
    bounds = np.unique(np.concatenate([[0], np.minimum(cuts + 1, len(counts))]))
    kept = []
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        size = counts[low:high]
        box = ragged_ranges(starts[low:high], size)
        width = np.minimum(np.take(boxes.x2, box), np.repeat(truths.x2[low:high], size))
        width -= np.maximum(np.take(boxes.x1, box), np.repeat(truths.x1[low:high], size))
        if pixel_offset:
            width += pixel_offset
        wide = np.flatnonzero(width > 0)
        box, width = box[wide], width[wide]
        truth = np.repeat(np.arange(low, high), size)[wide]

        height = np.minimum(np.take(boxes.y2, box), np.take(truths.y2, truth))
        height -= np.maximum(np.take(boxes.y1, box), np.take(truths.y1, truth))
        if pixel_offset:
            height += pixel_offset
        high_enough = np.flatnonzero(height > 0)
        box, truth = box[high_enough], truth[high_enough]

        intersection = width[high_enough] * height[high_enough]
        box_area = np.take(boxes.area, box)
        union = box_area + np.take(truths.area, truth) - intersection
        if crowd is not None:
            union = np.where(np.take(crowd, truth), box_area, union)
        iou = intersection / union
        enough = np.flatnonzero(iou >= lowest)
        kept.append((truth[enough], box[enough], iou[enough]))
    if not kept:
        return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
    truth, box, iou = (np.concatenate(column) for column in zip(*kept, strict=True))
    return truth, box, iou
