"""Shift detections in tiles into their images, and merge those of one object as SAHI and supervision do.

Conventions
-----------
- Detections overlap if their overlap reaches the threshold; in supervision's NMS it must exceed it.
- SAHI groups boxes in float32. Equal scores are ordered by x1, y1, x2, y2. It then joins the members of a
  group one by one, in float64, and drops a member that does not overlap the box as joined so far. The score
  is the highest; of equal scores the later member gives the class.
- supervision groups in float64 and covers every member; the score is the mean, weighted by area.
- Results are class by class and in the order of the tools, where these have one: NMS of SAHI sorts by score.

References
----------
SAHI 0.12, ``postprocess/combine.py``; supervision 0.31, ``detection/utils/iou_and_nms.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.records import NamedTuple

Method = Literal["nms", "nmm", "greedy-nmm"]
Tool = Literal["sahi", "supervision"]

METHODS: dict[str, tuple[str, ...]] = {"sahi": ("nms", "nmm", "greedy-nmm"), "supervision": ("nms", "nmm")}
"""Methods by tool; NMM of supervision is greedy."""


class Merged(NamedTuple):
    """The detections that are left.

    Attributes
    ----------
    indices : ndarray of int64, [K]
        Row of the best detection of each.
    boxes : ndarray of float64, [K, 4]
    scores : ndarray of float64, [K]
    classes : ndarray, [K]
    """

    indices: IntArray
    boxes: FloatArray
    scores: FloatArray
    classes: NDArray[Any]


def merge_as(
    boxes: ArrayLike,
    scores: ArrayLike,
    classes: ArrayLike,
    iou_threshold: float = 0.5,
    *,
    method: Method = "nms",
    tool: Tool = "sahi",
    overlap: Literal["iou", "ios"] = "iou",
    class_agnostic: bool = False,
) -> Merged:
    """Merge the detections of one image as a tool for tiled inference does.

    Parameters
    ----------
    boxes : array_like, [N, 4]
        ``x1, y1, x2, y2`` in the image.
    scores, classes : array_like, [N]
        Classes are numbers.
    iou_threshold : float, default 0.5
        In [0, 1].
    method : {"nms", "nmm", "greedy-nmm"}, default "nms"
        supervision has no ``greedy-nmm``: its ``nmm`` is greedy.
    tool : {"sahi", "supervision"}, default "sahi"
    overlap : {"iou", "ios"}, default "iou"
        Intersection over union, or over the smaller box.
    class_agnostic : bool, default False
        Merge boxes of different classes.

    Returns
    -------
    Merged

    Raises
    ------
    InputError
        If the tool does not have the method, or a number is out of range.

    Examples
    --------
    A member that the joined box does not reach is lost in SAHI, and covered in :func:`boxscore.nmm`.

    >>> boxes, scores = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]], [0.9, 0.8, 0.7]
    >>> merge_as(boxes, scores, [1, 1, 1], method="nmm").boxes.tolist()
    [[0.0, 0.0, 13.0, 10.0]]
    """
    checks.one_of(tool, tuple(METHODS), name="tool")
    checks.one_of(method, METHODS[tool], name=f"a method of {tool}")
    checks.one_of(overlap, ("iou", "ios"), name="overlap")
    threshold = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    corners = checks.float_array(boxes, name="boxes", columns=4)
    values = checks.float_array(scores, name="scores")
    labels = checks.any_array(classes, name="classes")
    checks.same_length(len(corners), of="boxes", scores=values, classes=labels)
    # Merge within each class, in ascending order of classes, or all at once.
    groups = [np.arange(len(corners))]
    if not class_agnostic:
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    merge = _sahi if tool == "sahi" else _supervision
    if tool == "supervision":
        # Equal scores: the last one first, in the order of NumPy's default sort. That of more than 16 numbers
        # is not stable, so it may differ between processors. NMS sorts the classes together.
        if method == "nms":
            together = np.argsort(values)
            member = np.zeros(len(values), dtype=np.int64)
            for number, group in enumerate(groups):
                member[group] = number
            groups = [together[member[together] == number] for number in range(len(groups))]
        else:
            groups = [group[np.argsort(values[group])] for group in groups]
    found = [
        (int(group[best]), box, score, int(group[labeled]))
        for group in groups
        for best, box, score, labeled in merge(corners[group], values[group], threshold, method, overlap)
    ]
    indices = np.array([best for best, *_ in found], dtype=np.int64)
    merged = Merged(
        indices,
        np.array([box for _, box, _, _ in found]).reshape(-1, 4),
        np.array([score for _, _, score, _ in found], dtype=np.float64),
        labels[np.array([labeled for *_, labeled in found], dtype=np.int64)],
    )
    # NMS of SAHI sorts the classes together by score; that of supervision keeps the order of the input.
    if method == "nms":
        keys = -merged.scores.astype(np.float32) if tool == "sahi" else indices
        order = np.argsort(keys, kind="stable")
        merged = Merged(
            merged.indices[order], merged.boxes[order], merged.scores[order], merged.classes[order]
        )
    return merged


_Corners = NDArray[np.floating[Any]]
_Near = Callable[[_Corners, _Corners], BoolArray]
"""Whether each of several boxes overlaps one, by the rule of a tool."""

_Row = tuple[int, FloatArray, float, int]
"""Row of the best detection, merged box, merged score, and row of the detection that gives the class."""


def _sahi(boxes: FloatArray, scores: FloatArray, threshold: float, method: str, overlap: str) -> list[_Row]:
    # Group in float32, as the rows that SAHI builds: equal scores by x1, y1, x2, y2.
    small, rounded = boxes.astype(np.float32), scores.astype(np.float32)
    x1, y1, x2, y2 = small.T
    order = np.lexsort((y2, x2, y1, x1, -rounded))

    def near(box: _Corners, others: _Corners) -> BoolArray:
        return overlaps(box, others, overlap) >= np.float32(threshold)

    if method == "nmm":
        groups = _chains(small, rounded, order, near, every=np.float32(threshold) == 0)
    else:
        groups = _greedy_groups(small, order, near, every=np.float32(threshold) == 0)
    if method == "nms":
        return [(best, boxes[best], float(scores[best]), best) for best in groups]
    # Join the members one by one; one that does not reach the box so far is dropped.
    found: list[_Row] = []
    for best, members in groups.items():
        box, score, labeled = boxes[best], float(scores[best]), best
        for member in members:
            other = boxes[member]
            if overlaps(box, other[None], overlap)[0] < threshold:
                continue
            box = np.concatenate((np.minimum(box[:2], other[:2]), np.maximum(box[2:], other[2:])))
            if scores[member] >= score:  # an equal score, or a higher one that float32 made equal
                score, labeled = float(scores[member]), member
        found.append((best, box, score, labeled))
    return found


def _supervision(
    boxes: FloatArray, scores: FloatArray, threshold: float, method: str, overlap: str
) -> list[_Row]:
    # Overlaps are rounded to float32; NMS compares them with the threshold, NMM with the rounded threshold.
    def near(box: _Corners, others: _Corners) -> BoolArray:
        values = overlaps(box, others, overlap).astype(np.float32)
        return values.astype(np.float64) > threshold if method == "nms" else values >= np.float32(threshold)

    # The boxes are in ascending order of scores.
    groups = _greedy_groups(boxes, np.arange(len(scores))[::-1], near, every=np.float32(threshold) == 0)
    found: list[_Row] = []
    for best, members in groups.items():
        box, score = boxes[best], float(scores[best])
        if method == "nmm" and members:
            rows = [best, *members]
            together = boxes[rows]
            # The hull, and the mean of scores by area; both are kept in float32.
            hull = np.concatenate((together[:, :2].min(axis=0), together[:, 2:].max(axis=0)))
            box = hull.astype(np.float32).astype(np.float64)
            areas = (together[:, 2] - together[:, 0]) * (together[:, 3] - together[:, 1])
            if areas.sum() > 0:
                score = float(np.float32(np.dot(areas, scores[rows]) / areas.sum()))
        found.append((best, box, score, best))
    return found


class _Neighbors:
    """Finds the boxes that may share an area with a box, so that others need no overlap; [N, 4]."""

    def __init__(self, boxes: _Corners) -> None:
        self._boxes = boxes
        # Sort by left side: a box that reaches another one begins at most the greatest width before it.
        self._by_left = np.argsort(boxes[:, 0], kind="stable")
        self._left = boxes[self._by_left, 0].astype(np.float64)
        # Round up: the difference of two numbers may be rounded down.
        widths = boxes[:, 2].astype(np.float64) - boxes[:, 0]
        self._width = float(widths.max(initial=0)) * (1 + 1e-9)

    def of(self, box: int) -> IntArray:
        """Return the rows of boxes whose horizontal range may meet that of a box."""
        x1, _, x2, _ = self._boxes[box].astype(np.float64).tolist()
        first, last = np.searchsorted(self._left, [x1 - self._width, x2])
        return self._by_left[first:last]


def _greedy_groups(boxes: _Corners, order: IntArray, near: _Near, *, every: bool) -> dict[int, list[int]]:
    """Return the members of each best box: what hard NMS drops for it, in order.

    With ``every``, boxes without a common area may be near each other.
    """
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    free = np.ones(len(order), dtype=bool)
    neighbors = _Neighbors(boxes)
    groups: dict[int, list[int]] = {}
    for best in order.tolist():
        if not free[best]:
            continue
        free[best] = False
        rows = order[rank[best] :] if every else neighbors.of(best)
        rows = rows[free[rows]]
        members = rows[near(boxes[best], boxes[rows])]
        free[members] = False
        groups[best] = members[np.argsort(rank[members])].tolist()
    return groups


def _chains(
    boxes: _Corners, scores: NDArray[np.float32], order: IntArray, near: _Near, *, every: bool
) -> dict[int, list[int]]:
    """Return the members of each best box: every box claims free ones for the box to which it belongs.

    A box claims lower scores and, of equal scores, boxes that are not after it by x1, y1, x2, y2.
    """
    # Number the boxes by their corners; duplicates share a number.
    x1, y1, x2, y2 = boxes.T
    by_corners = np.lexsort((y2, x2, y1, x1))
    steps = (boxes[by_corners[1:]] != boxes[by_corners[:-1]]).any(axis=1)
    place = np.zeros(len(order), dtype=np.int64)
    place[by_corners[1:]] = np.cumsum(steps)
    # From the highest score down, each box belongs to itself or to the box that claimed it.
    groups: dict[int, list[int]] = {}
    owner = np.full(len(order), -1)
    neighbors = _Neighbors(boxes)
    for box in order.tolist():
        if owner[box] < 0:
            owner[box] = box
            groups[box] = []
        rows = np.arange(len(order)) if every else np.sort(neighbors.of(box))
        rows = rows[owner[rows] < 0]
        claims = (scores[rows] < scores[box]) | ((scores[rows] == scores[box]) & (place[rows] <= place[box]))
        members = rows[claims & near(boxes[box], boxes[rows])]
        owner[members] = owner[box]
        groups[int(owner[box])] += members.tolist()
    return groups


def overlaps(box: _Corners, others: _Corners, overlap: str) -> _Corners:
    """Overlap of a box with others, [M], in their type; 0 where the denominator is 0."""
    widths = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    heights = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    shared = np.maximum(widths, 0) * np.maximum(heights, 0)
    area = (box[2] - box[0]) * (box[3] - box[1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    whole = area + areas - shared if overlap == "iou" else np.minimum(area, areas)
    values: _Corners = np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)
    return values
