"""Fuse detections with masks or oriented boxes, and merge detections of any shape.

Conventions
-----------
- *Weighted boxes fusion* and *non-maximum weighted* of oriented boxes are those of boxes, with the IoU of the
  shapes. The average is that of the five numbers of rotated boxes, or of the eight of four corners. One shape
  has several descriptions; before averaging, each member is described like the first one of its cluster: with
  the corners in the order in which they are closest. GauS averages the numbers as they are, which is the same
  unless another description is closer, such as when angles are on both sides of the end of their range.
- *Weighted boxes fusion* of masks is Weighted Masks Fusion: clusters, boxes and scores are those of the
  boxes, and a pixel is in the fused mask if the mean of the masks there, weighted by score, exceeds
  ``mask_threshold``.
- *Non-maximum merging* has the groups of :mod:`boxscore.suppression.merging`, by the overlap of the shapes.
  Masks are united. Merged oriented boxes are the smallest rectangle around all members, in the direction of
  the best one. The box is the one around all boxes, and the score that of the best.
- A detection that is fused with no other keeps its shape as given.

References
----------
Weighted Masks Fusion: eighth place in Sartorius Cell Instance Segmentation (Kaggle, 2021); chrise96/
Weighted-Masks-Fusion. GauS: Li et al., TGRS 2023, ``ensemble_rboxes_wbf.py`` and ``synth_method=1``. Merging:
supervision 0.31, ``Detections.with_nmm``; SAHI 0.12, ``get_merged_mask``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import concatenate
from boxscore.data.tables import Detections
from boxscore.errors import InputError
from boxscore.extensions.fusion.fusion import (
    Confidence,
    Fused,
    Models,
    average,
    clusters_of_best,
    fused_by_clusters,
    fused_scores,
    gather,
    scores_of_best,
)
from boxscore.similarity.measures import Measure, MeasureOf, box_measure
from boxscore.similarity.pairs import Overlap
from boxscore.suppression._ranked import Block, Ranked, boxes_of, rank
from boxscore.suppression.merging import merge
from boxscore.suppression.soft import check_not_negative

SHAPES = {"rotated": "rotated", "quadrilateral": "quadrilaterals"}
"""Columns of oriented boxes by similarity."""


class Pool(NamedTuple):
    """The detections of all models in one table, model after model."""

    table: Detections
    model: IntArray  # [N]
    group: IntArray  # [N], image and class
    shapes: FloatArray | None  # [N, 5] or [N, 8], oriented boxes


class Kind(NamedTuple):
    """How to average one kind of oriented boxes [N, K]."""

    measure: Callable[[FloatArray], Measure]
    around: Callable[[FloatArray], FloatArray]
    """Upright boxes around them, [N, 4]."""
    described_like: Callable[[FloatArray, FloatArray], FloatArray]
    """The same shapes, with numbers close to those of others."""


def fused_shapes(
    tables: Sequence[Detections],
    *,
    method: str,
    similarity: str,
    weights: Sequence[float] | None,
    iou_threshold: float,
    score_threshold: float,
    overlap: Overlap = "iou",
    mask_threshold: float = 0.5,
    confidence: Confidence = "average",
) -> Detections:
    """Fuse or merge the detections of several models; the options are checked."""
    pool = pooled(tables, similarity)
    if method in ("nmm", "greedy-nmm"):
        return _merged(pool, method, similarity, iou_threshold, score_threshold, overlap)
    edges = np.cumsum(np.bincount(pool.model, minlength=len(tables)))[:-1]
    columns = boxes_of(pool.table), pool.table.scores, pool.group
    boxes, scores, groups = (np.split(column, edges) for column in columns)
    models = Models(boxes, scores, groups, weights, score_threshold)
    if similarity == "mask":
        return _fused_masks(pool, models, iou_threshold, mask_threshold, confidence)
    assert pool.shapes is not None
    fused = _fused_oriented(pool.shapes, models, kind_of(similarity), method, iou_threshold, confidence)
    return _oriented_table(
        pool, similarity, _heads(fused.fused_into, pool, weights), fused.boxes, fused.scores
    )


def pooled(tables: Sequence[Detections], similarity: str) -> Pool:
    """Concatenate tables that all have the shapes of a similarity."""
    for table in tables:
        if len(table):
            _check_shapes(table, similarity)
    # Concatenation sorts by image; take the rows back in the order of the models.
    table, position = concatenate(tables)
    if position is not None:
        table = table.take(position)
    counts = [len(each) for each in tables]
    model = np.repeat(np.arange(len(tables)), counts)
    row = np.concatenate([np.arange(count) for count in counts])
    group = table.image.astype(np.int64) * max(len(table.categories), 1) + table.category
    if similarity == "mask":
        _check_sizes(tables, table, model, row)
    shapes = _shapes_of(table, similarity) if similarity in SHAPES else None
    return Pool(table, model, group, shapes)


def _check_shapes(table: Detections, similarity: str) -> None:
    """Check that every row of a table has a shape of the similarity."""
    if similarity == "mask":
        from boxscore.extensions.masks.suppression import masks_of_all

        # Rasterize a polygon of unknown image size, for the error that names its row.
        masks = masks_of_all(table)
        masks[np.flatnonzero(masks.sizes[:, 0] < 0)[:1]].area  # noqa: B018
        return
    has_rotated, has_corners = table.rotated is not None, table.quadrilaterals is not None
    if similarity == "quadrilateral" and has_rotated and not has_corners:
        rule, cause = "have four corners where these are fused", "pass --iou-type rotated"
        raise InputError("a detection", rule, got="a rotated box", place=table.source, cause=cause)
    if similarity in SHAPES and not (has_rotated or has_corners):
        rule, cause = "be a rotated box where these are fused", "to fuse upright boxes, leave out --iou-type"
        raise InputError("a detection", rule, got="an upright one", place=table.source, cause=cause)


def _check_sizes(tables: Sequence[Detections], table: Detections, model: IntArray, row: IntArray) -> None:
    """Check that all masks of an image have one size."""
    from boxscore.extensions.masks.column import masks_of
    from boxscore.extensions.masks.mask import same_size

    sizes = masks_of(table).sizes
    first, image = np.unique(table.image, return_index=True, return_inverse=True)[1:]
    same_size(sizes, sizes[first[image]], place=lambda at: masks_of(tables[model[at]]).place(int(row[at])))


def _shapes_of(table: Detections, similarity: str) -> FloatArray:
    from boxscore.extensions.oriented.oriented import corners_of, rotated_of

    return corners_of(table) if similarity == "quadrilateral" else rotated_of(table)


def kind_of(similarity: str) -> Kind:
    """Return how to average the oriented boxes of a similarity."""
    from boxscore.extensions.oriented.quadrilateral import QuadrilateralMeasure
    from boxscore.extensions.oriented.quadrilaterals import box_of_corners
    from boxscore.extensions.oriented.rotated import RotatedMeasure
    from boxscore.extensions.oriented.rotated_boxes import box_of_rotated

    if similarity == "quadrilateral":
        return Kind(QuadrilateralMeasure, box_of_corners, corners_like)
    return Kind(RotatedMeasure, box_of_rotated, rotated_like)


# ---------------------------------------------------------------- averages of oriented boxes


def rotated_like(rotated: FloatArray, others: FloatArray) -> FloatArray:
    """Describe rotated boxes [P, 5] with numbers close to those of others.

    The four descriptions are a quarter turn apart. The corners of the chosen one are closest to those of the
    other box, and its angle is within half a turn of the other one.
    """
    width, height, angle = rotated[:, 2:].T
    best, least = rotated.copy(), np.full(len(rotated), np.inf)
    for turn in range(4):
        turned = angle + turn * (np.pi / 2)
        sides = (width, height) if turn % 2 == 0 else (height, width)
        apart = (turned - others[:, 4] + np.pi) % (2 * np.pi) - np.pi
        # Squared distance between corners, without what all four descriptions share: both half axes turn by
        # the same angle.
        distance = -np.cos(apart) * (sides[0] * others[:, 2] + sides[1] * others[:, 3])
        closer = distance < least
        least[closer] = distance[closer]
        numbers = np.column_stack([*sides, others[:, 4] + apart])
        # Keep the angle as given if it is the one.
        if turn == 0:
            same = np.abs(angle - others[:, 4]) <= np.pi
            numbers[same, 2] = angle[same]
        best[closer, 2:] = numbers[closer]
    return best


def corners_like(corners: FloatArray, others: FloatArray) -> FloatArray:
    """List the corners of quadrilaterals [P, 8] in the order in which they are closest to those of others."""
    points = corners.reshape(-1, 4, 2)
    best, least = corners.copy(), np.full(len(corners), np.inf)
    for step in (1, -1):
        for first in range(4):
            listed = points[:, (first + step * np.arange(4)) % 4].reshape(-1, 8)
            distance = np.square(listed - others).sum(axis=1)
            closer = distance < least
            best[closer], least[closer] = listed[closer], distance[closer]
    return best


def _fused_oriented(
    shapes: FloatArray, models: Models, kind: Kind, method: str, threshold: float, confidence: Confidence
) -> Fused:
    """Fuse oriented boxes [N, K] of all models."""
    ensemble = gather(*models)
    ranked = ensemble.ranked
    ranked = Ranked(
        ranked.scores, ranked.order, ranked.starts, lambda rows: kind.measure(shapes.take(rows, axis=0))
    )
    if method == "nmw":
        cluster, weight = clusters_of_best(ranked, threshold)
        score = scores_of_best(ensemble)
    else:
        cluster = np.empty(len(ranked.order), dtype=np.int64)
        for block in ranked.blocks():
            here = slice(block.start, block.start + len(block))
            cluster[here] = _cluster(block, shapes.take(block.rows, axis=0), kind, threshold) + block.start
        weight = ranked.scores.take(ranked.order)
        score = fused_scores(ensemble, cluster, weight, confidence, allow_overflow=False)
    # Describe every member like the first one of its cluster.
    described, order = shapes.copy(), ranked.order
    members = np.flatnonzero(cluster != np.arange(len(cluster)))
    rows, firsts = order.take(members), order.take(cluster.take(members))
    described[rows] = kind.described_like(shapes.take(rows, axis=0), shapes.take(firsts, axis=0))
    return average(ensemble, cluster, weight, score, shapes=described)


def _cluster(block: Block, shapes: FloatArray, kind: Kind, threshold: float) -> IntArray:
    """Return the position of the first member of the cluster of each shape of a block, [n].

    The next shape of every group is clustered in one turn. The slots of a group's clusters begin at its
    start.
    """
    cluster = np.empty(len(block), dtype=np.int64)
    boxes = kind.around(shapes)
    # The current fused shape of each slot, the upright box around it, the sums over its members, and the
    # position of the first one.
    fused, around, sums = np.zeros_like(shapes), np.zeros_like(boxes), np.zeros_like(shapes)
    total, founder = np.zeros(len(block)), np.zeros(len(block), dtype=np.int64)
    # Sort the groups by size, so that those that still have shapes are in front.
    sizes = np.diff(block.starts)
    by_size = np.argsort(-sizes, kind="stable")
    starts, sizes = block.starts[:-1].take(by_size), sizes.take(by_size)
    founded = np.zeros(len(starts), dtype=np.int64)
    turns = int(sizes.max(initial=0))
    for turn, running in enumerate(np.searchsorted(-sizes, -np.arange(turns), side="left").tolist()):
        first, count = starts[:running], founded[:running]
        new = first + turn
        # Compare each new shape with the fused shapes of its group whose upright boxes meet its own.
        places = np.arange(count.max(initial=0))
        slots = np.minimum(first[:, None] + places, len(block) - 1)
        ours, theirs = boxes[new][:, None], around[slots]
        meets = (places < count[:, None]) & (theirs[..., :2] < ours[..., 2:]).all(axis=-1)
        meets &= (theirs[..., 2:] > ours[..., :2]).all(axis=-1)
        which, place = np.nonzero(meets)
        at = slots[which, place]
        pair = np.arange(len(at))
        measure = kind.measure(np.concatenate([fused[at], shapes[new[which]]]))
        iou = measure.between(pair, pair + len(at))
        # Join the first of the most overlapping ones, or found a cluster in the next free slot.
        best, slot = np.full(running, threshold), first + count
        np.maximum.at(best, which, iou)
        most = np.flatnonzero((iou == best[which]) & (iou > threshold))[::-1]
        slot[which[most]] = at[most]
        founds = slot == first + count
        founder[slot[founds]] = new[founds]
        count += founds
        cluster[new] = founder[slot]
        # Add the members to the sums of their slots; no slot occurs twice in a turn.
        mine = shapes[new]
        joins = np.flatnonzero(~founds)
        mine[joins] = kind.described_like(mine[joins], shapes[cluster[new[joins]]])
        sums[slot] += block.scores[new][:, None] * mine
        total[slot] += block.scores[new]
        # A single shape stays as given; so does a cluster whose scores are all 0.
        fused[slot[founds]] = mine[founds]
        changed = slot[joins]
        changed = changed[total[changed] > 0]
        fused[changed] = sums[changed] / total[changed][:, None]
        around[slot] = kind.around(fused[slot])
    return cluster


# ---------------------------------------------------------------- masks


def _fused_masks(
    pool: Pool, models: Models, threshold: float, mask_threshold: float, confidence: Confidence
) -> Detections:
    """Fuse masks whose boxes are fused."""
    fused = fused_by_clusters(models, threshold, confidence)
    weights = None if models.weights is None else np.asarray(models.weights, dtype=np.float64)
    weighted = pool.table.scores if weights is None else pool.table.scores * weights[pool.model]
    heads = _heads(fused.fused_into, pool, models.weights)
    masks = _masks_by_cluster(pool, heads, fused.fused_into, weighted, mask_threshold)
    return _mask_table(pool, heads, masks, fused.boxes, fused.scores)


def _heads(fused_into: IntArray, pool: Pool, weights: Any) -> IntArray:
    """Return the row of the first member of each cluster: the one with the highest weighted score."""
    rows = _by_cluster(fused_into, _weighted(pool, weights))
    return rows[np.flatnonzero(np.diff(fused_into[rows], prepend=-1))]


def _weighted(pool: Pool, weights: Any) -> FloatArray:
    scores = pool.table.scores
    return scores if weights is None else scores * np.asarray(weights, dtype=np.float64)[pool.model]


def _by_cluster(cluster: IntArray, weighted: FloatArray) -> IntArray:
    """Return the rows of all clusters, best first in each; -1 is left out."""
    rows = np.lexsort((np.arange(len(cluster)), -weighted, cluster))
    return rows[cluster[rows] >= 0]


def _masks_by_cluster(
    pool: Pool, heads: IntArray, cluster: IntArray, weighted: FloatArray, threshold: float
) -> Any:
    """Return the mask of each cluster; one of a single member, or without weight, is that of its head."""
    from boxscore.extensions.masks.column import Masks, masks_of
    from boxscore.extensions.masks.combining import combined_masks

    masks = masks_of(pool.table)
    rows = _by_cluster(cluster, weighted)
    total = np.bincount(cluster[rows], weights=weighted[rows], minlength=len(heads))
    several = (np.bincount(cluster[rows], minlength=len(heads)) > 1) & (total > 0)
    rows = rows[several[cluster[rows]]]
    if not len(rows):
        return masks[heads]
    number = np.cumsum(several) - 1
    made = combined_masks(masks[rows], number[cluster[rows]], weighted[rows], threshold)
    empty = int((made.area == 0).sum())
    if empty:
        warn_user(
            f"{counted(empty, 'fused mask')} {'is' if empty == 1 else 'are'} empty: no pixel is in masks "
            "with enough of the weight. Fuse masks that overlap more: --iou-threshold (in Python "
            "iou_threshold=)."
        )
    # Take the mask of each cluster from those given or from those made.
    both = Masks.concatenate([masks[heads], made])
    return both[np.where(several, len(heads) + number, np.arange(len(heads)))]


# ---------------------------------------------------------------- merging


def _merged(
    pool: Pool, method: str, similarity: str, threshold: float, score_threshold: float, overlap: Overlap
) -> Detections:
    """Merge detections of any shape."""
    table = pool.table
    check_not_negative(table.scores)
    boxes = boxes_of(table)
    floor = checks.number_between(score_threshold, 0, np.inf, name="score_threshold")
    measure_of = _measure_of(pool, boxes, similarity, threshold, overlap)
    ranked = rank(table.scores, pool.group, measure_of, score_threshold=floor)
    left = merge(ranked, threshold, transitive=method == "nmm")
    heads, scores = left.indices, left.scores
    assert left.suppressed_by is not None
    assert left.boxes is not None
    # Number the groups in the order of the result; detections below the score threshold have none.
    cluster = np.full(len(table), -1)
    cluster[heads] = np.arange(len(heads))
    dropped = np.flatnonzero(left.suppressed_by >= 0)
    cluster[dropped] = cluster[left.suppressed_by[dropped]]
    if similarity == "box":
        return _table(pool, heads, left.boxes, scores)
    if pool.shapes is not None:
        made = _rectangles(pool.shapes, cluster, heads)
        return _oriented_table(pool, similarity, heads, made, scores)
    masks = _masks_by_cluster(pool, heads, cluster, np.ones(len(table)), 0.0)
    members = np.flatnonzero(cluster >= 0)
    hulls = boxes[heads]
    np.minimum.at(hulls[:, :2], cluster[members], boxes[members, :2])
    np.maximum.at(hulls[:, 2:], cluster[members], boxes[members, 2:])
    return _mask_table(pool, heads, masks, hulls, scores)


def _measure_of(
    pool: Pool, boxes: FloatArray, similarity: str, threshold: float, overlap: Overlap
) -> MeasureOf:
    if similarity == "box":
        return box_measure(boxes, box_format="xyxy", pixel_offset=0, overlap=overlap)
    if similarity == "mask":
        from boxscore.extensions.masks.suppression import table_measure

        return table_measure(pool.table, pool.group, similarity, overlap=overlap, lowest=threshold)
    shapes = pool.shapes
    assert shapes is not None
    return lambda rows: kind_of(similarity).measure(shapes.take(rows, axis=0))


def _rectangles(shapes: FloatArray, cluster: IntArray, heads: IntArray) -> FloatArray:
    """Return the smallest rectangle around each cluster in the direction of its head, in the form given.

    A cluster of one member keeps its shape.
    """
    from boxscore.extensions.oriented.quadrilaterals import corners_of_rotated

    members = np.flatnonzero(cluster >= 0)
    into = cluster[members]
    given = shapes if shapes.shape[1] == 8 else corners_of_rotated(shapes)
    points = given[members].reshape(-1, 4, 2)
    # Rotate all corners into the direction of the head: its first side, or its width.
    if shapes.shape[1] == 8:
        side = shapes[heads, 2:4] - shapes[heads, :2]
        angle = np.arctan2(side[:, 1], side[:, 0])
    else:
        angle = shapes[heads, 4]
    center = given[heads].reshape(-1, 4, 2).mean(axis=1)
    cosine, sine = np.cos(angle), np.sin(angle)
    x, y = np.moveaxis(points - center[into][:, None], 2, 0)
    along = x * cosine[into][:, None] + y * sine[into][:, None]
    across = y * cosine[into][:, None] - x * sine[into][:, None]
    # Take the extent of all members, and rotate it back.
    low, high = np.full((len(heads), 2), np.inf), np.full((len(heads), 2), -np.inf)
    for axis, values in enumerate((along, across)):
        np.minimum.at(low[:, axis], into, values.min(axis=1))
        np.maximum.at(high[:, axis], into, values.max(axis=1))
    middle, sides = (low + high) / 2, high - low
    x = center[:, 0] + middle[:, 0] * cosine - middle[:, 1] * sine
    y = center[:, 1] + middle[:, 0] * sine + middle[:, 1] * cosine
    made = np.column_stack([x, y, sides, angle])
    if shapes.shape[1] == 8:
        made = corners_of_rotated(made)
    several = np.bincount(into, minlength=len(heads)) > 1
    return np.where(several[:, None], made, shapes[heads])


# ---------------------------------------------------------------- tables


def _table(pool: Pool, heads: IntArray, boxes: FloatArray, scores: FloatArray, **columns: Any) -> Detections:
    """Build a table with the images and classes of the heads."""
    table = pool.table
    sizes: NDArray[np.float64] = boxes[:, 2:] - boxes[:, :2]
    return Detections(
        images=table.images,
        categories=table.categories,
        image=table.image[heads],
        category=table.category[heads],
        boxes=boxes,
        sizes=sizes,
        scores=scores,
        **columns,
    )


def _oriented_table(
    pool: Pool, similarity: str, heads: IntArray, shapes: FloatArray, scores: FloatArray
) -> Detections:
    boxes = kind_of(similarity).around(shapes)
    return _table(pool, heads, boxes, scores, **{SHAPES[similarity]: shapes})


def _mask_table(pool: Pool, heads: IntArray, masks: Any, boxes: FloatArray, scores: FloatArray) -> Detections:
    """Build a table with masks; boxes that were not given are those around the masks."""
    given = pool.table.boxes_given
    return _table(pool, heads, boxes if given else masks.boxes, scores, masks=masks, boxes_given=given)
