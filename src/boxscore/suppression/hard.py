"""Suppress by hard NMS: keep the best box, drop what overlaps it too much, repeat.

Goal
----
From raw detections to final ones, for one image or for a whole data set in one call, exactly.

Conventions
-----------
- A box is dropped when a better box that is kept overlaps it by **more than** ``iou_threshold``.
- Better is a higher score; of equal scores the lower index is better.
- Results are indices into the input, best first. Overlaps are float64, also for float32 input.
- A box without area neither drops nor is dropped.

``docs/how-to/nms.md`` lists what other libraries do differently.

References
----------
DIoU-NMS: Zheng et al., arXiv 1911.08287. IoS: Akyon et al. (SAHI), arXiv 2202.06934.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, IntArray
from boxscore._utils.ordering import top_k_per_group
from boxscore.data.boxes import BoxFormat
from boxscore.suppression._plans import Plan, greedy
from boxscore.suppression._ranked import BoxOptions, Ranked, check_groups, prepare, require_images
from boxscore.suppression.result import Survivors


def nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    overlap: Literal["iou", "ios"] = "iou",
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IntArray:
    """Non-maximum suppression of the boxes of one image (and one class, or all of them).

    Parameters
    ----------
    boxes : array_like, [N, 4]
        In pixels or any other unit.
    scores : array_like, [N]
        Any numbers but NaN; higher is better.
    iou_threshold : float in [0, 1]
        A box is dropped when its overlap with a better kept box is greater.
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
    pixel_offset : float, default 0
        1 for inclusive pixels (PASCAL VOC): widths are ``x2 - x1 + 1``.
    overlap : {"iou", "ios"}, default "iou"
        Intersection over union, or over the smaller of the two areas (which also drops a small box inside
        a large one).
    score_threshold : float, optional
        Keep only boxes with a score ``>=`` this, before anything else.
    pre_top_k : int, optional
        Let only the best ``pre_top_k`` boxes take part.
    max_per_group : int, optional
        Return only the best ``max_per_group`` of the boxes kept.

    Returns
    -------
    ndarray of int64, [K]
        Rows of the boxes kept, by descending score, ties by lowest index.

    Raises
    ------
    InputError
        When lengths differ, a number is NaN, a coordinate is not finite, a box is inverted or an option is
        out of range.

    Warns
    -----
    BoxscoreWarning
        When boxes given as ``xywh`` look like ``xyxy``.

    See Also
    --------
    batched_nms : Many images or classes in one call.
    suppress_boxes : Any method, and which box dropped which.

    Examples
    --------
    >>> nms([[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]], [0.9, 0.8, 0.7], 0.5).tolist()
    [0, 2]
    """
    checks.one_of(overlap, ("iou", "ios"), name="overlap")
    options = BoxOptions(box_format, pixel_offset, overlap, score_threshold, pre_top_k)
    return select(prepare(boxes, scores, None, options), iou_threshold, max_per_group=max_per_group).indices


def batched_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    idxs: ArrayLike,
    iou_threshold: float,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    overlap: Literal["iou", "ios"] = "iou",
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
    images: ArrayLike | None = None,
    max_per_image: int | None = None,
) -> IntArray:
    """Non-maximum suppression inside each of many groups: classes, images, or both.

    Boxes of different groups never meet; no coordinates are shifted to keep them apart, so negative and
    large coordinates are safe.

    Parameters
    ----------
    boxes : array_like, [N, 4]
    scores : array_like, [N]
    idxs : array_like of int or str, [N]
        Which boxes may drop each other: the class; for a data set ``image * number_of_classes + class``;
        or a map of your own, in which classes that share a group are suppressed together.
    images : array_like of int or str, [N], optional
        Image of each box; needed for ``max_per_image`` only. A group is inside one image.
    max_per_group, max_per_image : int, optional
        Return only the best of the boxes kept in each group, then in each image.
    iou_threshold, box_format, pixel_offset, overlap, score_threshold, pre_top_k
        As in :func:`nms`; ``pre_top_k`` counts in each group.

    Returns
    -------
    ndarray of int64, [K]
        Rows of the boxes kept, over all groups by descending score, ties by lowest index.

    Raises
    ------
    InputError
        As in :func:`nms`, and when ``max_per_image`` is given without ``images``.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [1, 0, 11, 10], [1, 0, 11, 10]]
    >>> batched_nms(boxes, [0.7, 0.9, 0.8], [0, 0, 1], 0.5).tolist()
    [1, 2]
    """
    checks.one_of(overlap, ("iou", "ios"), name="overlap")
    require_images(images, max_per_image)
    options = BoxOptions(box_format, pixel_offset, overlap, score_threshold, pre_top_k)
    ranked = prepare(boxes, scores, idxs, options, groups_name="idxs")
    image = None if images is None else check_groups(images, length=len(ranked.scores), name="images")
    indices = select(ranked, iou_threshold, max_per_group=max_per_group).indices
    if max_per_image is None or image is None:
        return indices
    k = checks.whole_number(max_per_image, 1, name="max_per_image")
    return indices.take(top_k_per_group(image.take(indices), k))


def diou_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IntArray:
    """Suppression by distance IoU: of two boxes with equal IoU, those with distant centers both stay.

    A box is dropped where ``IoU - d**2 / c**2 > iou_threshold``: ``d`` the distance of the centers, ``c`` the
    diagonal of the box around both (arXiv 1911.08287, with its exponent beta = 1).
    Parameters, results and errors as in :func:`batched_nms`, whose ``idxs`` are ``groups`` here; None is one
    group.

    Examples
    --------
    >>> boxes, scores = [[0, 0, 10, 10], [0, 3.2, 10, 13.2]], [0.9, 0.8]
    >>> diou_nms(boxes, scores, 0.5).tolist(), nms(boxes, scores, 0.5).tolist()
    ([0, 1], [0])
    """
    options = BoxOptions(box_format, pixel_offset, "diou", score_threshold, pre_top_k)
    return select(prepare(boxes, scores, groups, options), iou_threshold, max_per_group=max_per_group).indices


def select(
    ranked: Ranked,
    iou_threshold: float,
    *,
    max_per_group: int | None = None,
    owners: bool = False,
    plan: Plan = "auto",
) -> Survivors:
    """Suppress ranked boxes, for all hard variants; ``owners`` records which box dropped which."""
    threshold = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    # Groups never meet, and a block holds whole groups: decide block by block, so that the columns of
    # the boxes in work fit the cache.
    keep = np.empty(len(ranked.order), dtype=bool)
    suppressed_by = np.full(len(ranked.scores), -1) if owners else None
    for block in ranked.blocks():
        suppressor = greedy(block, threshold, owners=owners, plan=plan)
        end = block.start + len(block)
        np.less(suppressor, 0, out=keep[block.start : end])
        # Translate positions of the block to rows of the input.
        if suppressed_by is not None:
            dropped = np.flatnonzero(suppressor >= 0)
            rows = ranked.order[block.start : end]
            suppressed_by[rows.take(dropped)] = rows.take(suppressor.take(dropped))
    # The cap counts survivors only; the best of each group come first.
    if max_per_group is not None:
        cap_groups(keep, ranked.starts, checks.whole_number(max_per_group, 1, name="max_per_group"))
    indices = ranked.by_score(keep)
    return Survivors(indices, ranked.scores.take(indices), suppressed_by=suppressed_by)


def cap_groups(keep: BoolArray, starts: IntArray, most: int) -> None:
    """Keep the first ``most`` of the boxes kept in each group, in place."""
    if len(keep) == 0:
        return
    # Number the survivors of each group from 1: a running count, less the count before the group.
    running = np.cumsum(keep)
    before: IntArray = running.take(starts[:-1]) - keep.take(starts[:-1])
    keep &= running - np.repeat(before, np.diff(starts)) <= most
