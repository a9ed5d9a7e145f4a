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

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import ragged_ranges, run_starts, stable_order
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.matching.ignoring import Ignoring
from boxscore.matching.ranking import Ranking
from boxscore.protocols.protocol import Protocol
from boxscore.similarity import keypoints
from boxscore.similarity import mask as masks
from boxscore.similarity.boundary import boundary_overlaps_of_pairs

__all__ = ["Pairs", "candidate_pairs", "detection_areas", "similarity"]

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
    ground_truth: GroundTruth,
    detections: Detections,
    ranking: Ranking,
    protocol: Protocol,
    ignoring: Ignoring,
) -> Pairs:
    """Find every pair whose overlap reaches the lowest threshold.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        With the same vocabularies.
    ranking : Ranking
        Of the detections, cut at the largest cap.
    protocol : Protocol
        Reads ``boxes`` and ``matching.effective_thresholds``.
    ignoring : Ignoring
        Of the ground truth: what takes no part, and what is measured by foreground.

    Returns
    -------
    Pairs
    """
    category_count = len(ground_truth.categories)
    truth_group = ground_truth.image.astype(np.int64) * category_count + ground_truth.category
    truth_rows = stable_order(truth_group, len(ground_truth.images) * category_count)
    truth_rows = truth_rows[~ignoring.deleted[truth_rows]]
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
    truth, detection, iou = similarity(
        ground_truth,
        detections,
        truth_rows,
        np.take(grouped_rows, places),
        np.repeat(compact_starts, truths_in_group),
        np.repeat(counts, truths_in_group),
        protocol,
        ignoring.by_foreground,
    )
    order = stable_order(detection, len(places))
    positions = np.take(ranking.grouped, np.take(places, detection[order]))
    return Pairs(positions, np.take(truth_rows, truth[order]), iou[order])


def similarity(
    ground_truth: GroundTruth,
    detections: Detections,
    truth_rows: NDArray[np.intp],
    rows: NDArray[np.intp],
    starts: NDArray[np.intp],
    counts: NDArray[np.intp],
    protocol: Protocol,
    by_foreground: NDArray[np.bool_],
) -> tuple[NDArray[np.intp], NDArray[np.intp], Column]:
    """Find the pairs that agree enough, by whatever the protocol measures; the one place that asks.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
    truth_rows, rows : ndarray of intp, [g] and [d]
        Their rows to compare, group by group.
    starts, counts : ndarray of intp, [g]
        Ground truth ``g`` is compared with ``rows[starts[g] : starts[g] + counts[g]]``.
    protocol : Protocol
        Reads ``similarity`` and what belongs to it, and ``matching.effective_thresholds``.
    by_foreground : ndarray of bool, [G]
        Ground truths measured by intersection over the detection.

    Returns
    -------
    truth, detection : ndarray of intp, [P]
        Positions in ``truth_rows`` and ``rows``.
    value : ndarray of float64, [P]
        At least the lowest threshold.
    """
    lowest = float(protocol.matching.effective_thresholds[0])
    if protocol.similarity == "keypoints":
        return _similar_keypoints(
            ground_truth, detections, truth_rows, rows, starts, counts, protocol.keypoints.spread, lowest
        )
    crowd = by_foreground[truth_rows] if by_foreground.any() else None
    if protocol.similarity != "box":
        return _overlapping_masks(
            ground_truth, detections, truth_rows, rows, starts, counts, crowd, lowest, protocol
        )
    offset = protocol.boxes.pixel_offset
    return _overlapping(
        _columns(ground_truth, truth_rows, offset),
        _columns(detections, rows, offset),
        starts,
        counts,
        crowd=crowd,
        pixel_offset=offset,
        lowest=lowest,
    )


def detection_areas(detections: Detections, protocol: Protocol) -> Column:
    """Area of each detection [D] in square pixels: what area ranges measure."""
    rule = protocol.ignore.detection_area
    if detections.masks is not None and (
        rule == "mask" or (rule == "box_or_mask" and not detections.boxes_given)
    ):
        return detections.masks.area
    sizes = detections.sizes + protocol.boxes.pixel_offset
    area: Column = sizes[:, 0] * sizes[:, 1]
    return area


def _columns(table: BoxTable, rows: NDArray[np.intp], pixel_offset: float) -> _Columns:
    # From the flat arrays, a column at a time: rows of four, transposed, cost three times as much.
    corners, sizes = table.boxes.ravel(), table.sizes.ravel()
    x1, y1 = np.take(corners, 4 * rows), np.take(corners, 4 * rows + 1)
    width, height = np.take(sizes, 2 * rows), np.take(sizes, 2 * rows + 1)
    if pixel_offset:
        x2, y2 = np.take(corners, 4 * rows + 2), np.take(corners, 4 * rows + 3)
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
    capped: bool = False,
) -> tuple[NDArray[np.intp], NDArray[np.intp], Column]:
    """Compare truth ``g`` with the boxes ``starts[g]`` to ``starts[g] + counts[g]``, chunk by chunk.

    ``capped`` is for areas that are smaller than their boxes: the overlap is at most the smaller one.

    Returns
    -------
    truth, box : ndarray of intp, [P]
    iou : ndarray of float64, [P]
    """
    kept = []
    for low, high in _chunks(counts, CHUNK_PAIRS):
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
        if capped:
            intersection = np.minimum(intersection, np.minimum(box_area, np.take(truths.area, truth)))
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


def _overlapping_masks(
    ground_truth: GroundTruth,
    detections: Detections,
    truth_rows: NDArray[np.intp],
    rows: NDArray[np.intp],
    starts: NDArray[np.intp],
    counts: NDArray[np.intp],
    crowd: NDArray[np.bool_] | None,
    lowest: float,
    protocol: Protocol,
) -> tuple[NDArray[np.intp], NDArray[np.intp], Column]:
    """Compare masks, those alone whose boxes and areas allow the lowest threshold.

    With ``b`` the area in which the boxes around two masks overlap, at most the smaller mask's area, the IoU
    is at most ``b / (a1 + a2 - b)``: in floating point too, since all are whole numbers.
    """
    near = np.flatnonzero(counts)
    if not len(near):
        return near, near, np.empty(0)
    crowd = np.zeros(len(near), dtype=bool) if crowd is None else crowd[near]
    truths = (ground_truth.masks or masks.Masks([]))[truth_rows[near]]
    found = (detections.masks or masks.Masks([]))[rows]
    group = np.cumsum(np.diff(starts[near], prepend=-1) != 0) - 1  # [g], truths with the same detections
    first = np.flatnonzero(np.diff(group, prepend=-1))
    columns = [_mask_columns(column) for column in (truths, found)]
    masks.same_size(truths.sizes, truths.sizes[first][group], place=truths.place)
    in_group = np.repeat(first, counts[near][first])
    masks.same_size(found.sizes, truths.sizes[in_group], place=found.place)

    truth, detection, _ = _overlapping(
        columns[0],
        columns[1],
        starts[near],
        counts[near],
        crowd=crowd,
        pixel_offset=0,
        lowest=lowest,
        capped=True,
    )
    value = masks.overlaps_of_pairs(found, truths, detection, truth, group, crowd)
    enough = np.flatnonzero(value >= lowest)
    truth, detection, value = truth[enough], detection[enough], value[enough]
    if protocol.similarity == "boundary":
        plain = np.flatnonzero(~crowd[truth])
        dilation = protocol.masks.boundary_dilation
        outline = boundary_overlaps_of_pairs(found, truths, detection[plain], truth[plain], group, dilation)
        value[plain] = np.minimum(value[plain], outline)
        enough = np.flatnonzero(value >= lowest)
        truth, detection, value = truth[enough], detection[enough], value[enough]
    return near[truth], detection, value


def _mask_columns(column: masks.Masks) -> _Columns:
    """Boxes around masks, with the masks' own areas."""
    x1, y1, x2, y2 = np.ascontiguousarray(column.boxes.T)
    return _Columns(x1, y1, x2, y2, column.area)


def _similar_keypoints(
    ground_truth: GroundTruth,
    detections: Detections,
    truth_rows: NDArray[np.intp],
    rows: NDArray[np.intp],
    starts: NDArray[np.intp],
    counts: NDArray[np.intp],
    sigmas: Column,
    lowest: float,
) -> tuple[NDArray[np.intp], NDArray[np.intp], Column]:
    """Compare the keypoints of every detection with every ground truth of its group, chunk by chunk."""
    kept = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
    found, truths = detections.keypoints, ground_truth.keypoints
    if found is None or truths is None:  # an empty table: with_needed_columns saw to the others
        return kept[0]
    for low, high in _chunks(counts, CHUNK_PAIRS // len(sigmas)):
        detection = ragged_ranges(starts[low:high], counts[low:high])
        truth = np.repeat(np.arange(low, high), counts[low:high])
        here = truth_rows[low:high]
        value = keypoints.similarity_of_pairs(
            found,
            truths[here],
            rows[detection],
            truth - low,
            ground_truth.area[here],
            ground_truth.boxes[here],
            ground_truth.sizes[here],
            sigmas,
        )
        enough = np.flatnonzero(value >= lowest)
        kept.append((truth[enough], detection[enough], value[enough]))
    truth, detection, value = (np.concatenate(column) for column in zip(*kept, strict=True))
    return truth, detection, value


def _chunks(counts: NDArray[np.intp], size: int) -> list[tuple[int, int]]:
    """Cut ground truths into runs of about ``size`` pairs."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(size, total + size, size))
    bounds = np.concatenate([[0], np.minimum(cuts + 1, len(counts))])
    return list(itertools.pairwise(bounds[run_starts(bounds)].tolist()))
