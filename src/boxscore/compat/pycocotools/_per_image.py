"""Evaluate one image and category: overlaps, OKS and greedy matching, exactly as in the reference.

Goal
----
Computes the results of ``computeIoU``, ``computeOks`` and ``evaluateImg`` for any annotations: NaN, ids below
1, thresholds in any order. Ordinary input goes through boxscore's core instead.

Conventions
-----------
T IoU thresholds, D detections in descending score order, G ground truths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.compat.pycocotools import mask as maskUtils

Record = dict[str, Any]

OVERLAP_OF = {"bbox": "bbox", "segm": "segmentation"}
"""The key of an annotation that each ``iouType`` measures."""


def by_score(detections: Sequence[Record], cap: Any) -> list[Record]:
    """Sort detections by descending score (stable), and keep the first ``cap``."""
    scores = [-detection["score"] for detection in detections]
    if set(map(type, scores)) <= {float} and all(score == score for score in scores):
        order: Any = sorted(range(len(scores)), key=scores.__getitem__)
    else:  # NumPy decides on NaN and other types
        order = np.argsort(scores, kind="mergesort")
    return [detections[row] for row in order[:cap]]


def overlaps(
    truths: Sequence[Record], detections: Sequence[Record], params: Any, *, crowds: bool = True
) -> Any:
    """Measure IoU, or intersection over detection for crowds; [D, G], or an empty list."""
    if not len(truths) and not len(detections):
        return []
    detections = by_score(detections, params.maxDets[-1])
    if params.iouType not in OVERLAP_OF:
        raise Exception("unknown iouType for iou computation")
    key = OVERLAP_OF[params.iouType]
    return maskUtils.iou(
        [detection[key] for detection in detections],
        [truth[key] for truth in truths],
        [int(truth["iscrowd"]) if crowds else 0 for truth in truths],
    )


def keypoint_similarities(truths: Sequence[Record], detections: Sequence[Record], params: Any) -> Any:
    """Object keypoint similarity [D, G], or an empty list if a side is empty.

    Without a labeled keypoint, the distance is to the ground truth's box, enlarged to three times its sides
    around the center.
    """
    # Go pair by pair with the reference's formula, in its order of operations.
    detections = by_score(detections, params.maxDets[-1])
    if not truths or not detections:
        return []
    variances = (np.asarray(params.kpt_oks_sigmas) * 2) ** 2
    keypoints = [np.array(detection["keypoints"]) for detection in detections]
    similarities = np.zeros((len(detections), len(truths)))
    for column, truth in enumerate(truths):
        # Compute the terms of each object before the loop over detections.
        points = np.array(truth["keypoints"])
        labeled = points[2::3] > 0
        (x, y, w, h), scale = truth["bbox"][:4], truth["area"] + np.spacing(1)
        for row, detected in enumerate(keypoints):
            # Without a labeled keypoint, measure how far each point is outside the enlarged box.
            if labeled.any():
                dx, dy = detected[0::3] - points[0::3], detected[1::3] - points[1::3]
            else:
                dx = _outside(detected[0::3], x - w, x + w * 2, len(variances))
                dy = _outside(detected[1::3], y - h, y + h * 2, len(variances))
            # Average over the labeled keypoints, or over all of them.
            error = (dx**2 + dy**2) / variances / scale / 2
            if labeled.any():
                error = error[labeled]
            similarities[row, column] = np.sum(np.exp(-error)) / error.shape[0]
    return similarities


def _outside(values: NDArray[Any], low: Any, high: Any, count: int) -> Any:
    """Distance of each value to the interval [low, high]; 0 inside."""
    none = np.zeros(count)
    return np.max((none, low - values), axis=0) + np.max((none, values - high), axis=0)


def evaluate_image(
    truths: Sequence[Record],
    detections: Sequence[Record],
    measure: Callable[[], Any],
    params: Any,
    where: Record,
    *,
    crowds: bool = True,
    not_exhaustive: Mapping[Any, Any] | None = None,
) -> Record | None:
    """Match one image and category; an entry of ``evalImgs``.

    ``where`` holds the first keys of the entry: ``image_id``, ``category_id``, ``aRng`` and ``maxDet``.
    Without ``crowds``, ``iscrowd`` is not read. Unmatched detections are ignored if ``not_exhaustive`` lists
    their class for their image.
    """
    if len(truths) == 0 and len(detections) == 0:
        return None
    # Flag ignored ground truths on the records themselves, like the reference, and put them last; both sorts
    # are the reference's.
    low, high = where["aRng"][0], where["aRng"][1]
    for truth in truths:
        truth["_ignore"] = int(bool(truth["ignore"] or truth["area"] < low or truth["area"] > high))
    columns = sorted(range(len(truths)), key=lambda row: truths[row]["_ignore"])  # ignored last
    truths = [truths[column] for column in columns]
    detections = by_score(detections, where["maxDet"])
    # Unmatched detections are ignored outside the area range, and in classes that their image does not list
    # in full.
    beyond = np.array([d["area"] < low or d["area"] > high for d in detections], dtype=bool)
    if not_exhaustive is not None:
        spared = [d["category_id"] in not_exhaustive[d["image_id"]] for d in detections]
        beyond |= np.array(spared, dtype=bool)
    # Allocate the entry: ids per threshold, 0 for no match.
    ignored = [truth["_ignore"] for truth in truths]
    matches = np.zeros((len(params.iouThrs), len(detections)))
    truth_matches = np.zeros((len(params.iouThrs), len(truths)))
    detection_ignored = np.repeat(beyond[None], len(params.iouThrs), axis=0)
    # Match at all thresholds, and write ids and flags of the matches.
    similarity = measure()
    if len(similarity):
        # ``maxDet`` may be lower than that of the overlaps; the reference cannot read more than these.
        if len(similarity) < len(detections):
            raise IndexError(
                f"index {len(similarity)} is out of bounds for axis 0 with size {len(similarity)}"
            )
        crowd = [crowds and int(truth["iscrowd"]) != 0 for truth in truths]
        for t, row, column in _match(
            similarity[: len(detections), columns].tolist(),
            [flag == 1 for flag in ignored],
            crowd,
            detections,
            truth_matches,
            params.iouThrs,
        ):
            matches[t, row] = truths[column]["id"]
            # A match with id 0 does not count, and the detection stays unmatched.
            detection_ignored[t, row] = ignored[column] or (matches[t, row] == 0 and beyond[row])
    return {
        **where,
        "dtIds": [detection["id"] for detection in detections],
        "gtIds": [truth["id"] for truth in truths],
        "dtMatches": matches,
        "gtMatches": truth_matches,
        "dtScores": [detection["score"] for detection in detections],
        "gtIgnore": np.array(ignored),
        "dtIgnore": detection_ignored,
    }


def _match(
    similarity: Sequence[Sequence[float]],
    ignored: Sequence[bool],
    crowd: Sequence[bool],
    detections: Sequence[Record],
    truth_matches: NDArray[np.float64],
    thresholds: Any,
) -> Iterator[tuple[int, int, int]]:
    """Yield the threshold, detection and ground truth of each match.

    Ignored ground truths come last. Detection ids are written into ``truth_matches`` [T, G]; a positive one
    marks the ground truth as taken. Comparisons are the reference's, so that NaN has the same effect: NaN
    matches anything, and so do the ground truths after it. Images have few objects: arrays would be slower.
    """
    # A match must reach the threshold, at most 1 - 1e-10: the reference's limit.
    limits = [min(float(threshold), 1 - 1e-10) for threshold in thresholds]
    lowest = min(limits, default=np.inf)
    free = [[True] * len(ignored) for _ in limits]
    for row, overlap in enumerate(similarity):
        # Most detections reach no threshold with any ground truth.
        candidates: Sequence[int] = [column for column, value in enumerate(overlap) if not value < lowest]
        if not candidates:
            continue
        if any(value != value for value in overlap):
            candidates = range(len(overlap))
        for t, limit in enumerate(limits):
            # ``best`` is what a ground truth has to reach, and rises with each better one. The reference
            # skips a ground truth if the overlap is below the best, so an equal one replaces it, and NaN
            # passes.
            best, match, is_free, holds_counted = limit, -1, free[t], False
            for column in candidates:
                if overlap[column] < best or not (is_free[column] or crowd[column]):
                    continue
                # After a counted match, skip ignored ground truths.
                if ignored[column]:
                    if holds_counted:
                        continue
                else:
                    holds_counted = True
                best, match = overlap[column], column
            if match >= 0:
                truth_matches[t, match] = detections[row]["id"]
                is_free[match] = not truth_matches[t, match] > 0
                yield t, row, match
