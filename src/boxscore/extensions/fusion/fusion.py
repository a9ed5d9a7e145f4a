"""Fuse the detections of several models: weighted boxes fusion and non-maximum weighted.

Goal
----
The result is one list of boxes from an ensemble, for a whole data set in one call; each box is an average of
boxes that the models agree on. Coordinates may be pixels or normalized; they are never clipped.

Conventions
-----------
- Each model gives boxes, scores and groups (the class, or image and class); groups have the same meaning for
  all models.
- A model's scores are multiplied by its weight. Boxes of a group are processed by descending weighted score,
  ties by model and index.
- *Weighted boxes fusion*: a box joins the cluster of its group whose **fused** box it overlaps most, if the
  IoU is above ``iou_threshold``; otherwise it starts a new one. The fused box is the average of the members,
  weighted by score.
- *Non-maximum weighted*: a box joins the **best original** box that it overlaps most. The weight in the
  average is the weighted score times the IoU with that box, and the score is that of that box.

``ensemble-boxes`` differs: it clips to 0..1, rounds fused boxes to float32, and breaks ties arbitrarily.

References
----------
Solovyev et al., Weighted boxes fusion, arXiv 1910.13302. Zhou et al., CAD, ICCV workshops 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import descending_order
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BoxFormat, box_convert, corners_and_sizes
from boxscore.errors import InputError
from boxscore.similarity.measures import box_measure
from boxscore.similarity.pairs import over, shared_length
from boxscore.suppression._plans import greedy, pairs_with
from boxscore.suppression._ranked import (
    Block,
    Ranked,
    check_boxes,
    check_groups,
    check_scores,
    rank,
)
from boxscore.suppression.soft import check_not_negative

Confidence = Literal["average", "max", "box_and_model_average", "absent_model_aware_average"]

LONG = 4096
"""Groups with more boxes are clustered one by one, many boxes at a time."""

PAIRS_TOGETHER = 1 << 16
"""Pairs of a new box and a fused one that are compared in one batch in long groups."""


class Fused(NamedTuple):
    """Fused boxes, best first."""

    boxes: FloatArray
    """In the format of the input, [K, 4]."""
    scores: FloatArray
    """[K]"""
    groups: NDArray[np.generic]
    """Group of each fused box, as given, [K]."""
    fused_into: IntArray
    """For each input box, all models concatenated, the row of its fused box; -1 if left out, [N]."""


ROUNDING = 1e-9
"""Amount by which a fused score may exceed 1 by rounding."""


def weighted_boxes_fusion(
    boxes: Sequence[ArrayLike],
    scores: Sequence[ArrayLike],
    groups: Sequence[ArrayLike] | None = None,
    *,
    weights: ArrayLike | None = None,
    iou_threshold: float = 0.55,
    score_threshold: float = 0.0,
    confidence: Confidence = "average",
    allow_overflow: bool = False,
    box_format: BoxFormat = "xyxy",
) -> Fused:
    """Fuse the detections of several models by weighted boxes fusion.

    Parameters
    ----------
    boxes : sequence of array_like, [N_m, 4]
        One entry per model.
    scores : sequence of array_like, [N_m]
        Nonnegative, on one scale for all models.
    groups : sequence of array_like of int or str, [N_m], optional
        Boxes of different groups are never fused; by default there is one group.
    weights : array_like, [M], optional
        Positive weight of each model; equal by default.
    iou_threshold : float in [0, 1], default 0.55
        A box joins a cluster if its IoU with the fused box is greater.
    score_threshold : float, default 0.0
        Leave out boxes that score below this, before weighting.
    confidence : str, default "average"
        Score of a fused box of B members from M models, from the weighted scores c of its members:

        - ``"average"``: ``mean(c) * min(B, M) / sum(weights)``, or with ``allow_overflow`` ``mean(c) * B /
          ...``;
        - ``"max"``: ``max(c) / max(weights)``;
        - ``"box_and_model_average"``: ``sum(c) / sum(weights of members) * sum(weights of their models) /
          sum(weights)``;
        - ``"absent_model_aware_average"``: ``sum(c) / (sum(weights of members) + sum(weights of absent
          models))``.
    allow_overflow : bool, default False
        Let a cluster count more members than there are models; scores may then exceed 1.
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"

    Returns
    -------
    Fused
        A named tuple ``(boxes, scores, groups, fused_into)``.

    Raises
    ------
    InputError
        When the models' lists differ in length, a number is NaN or not allowed to be negative, a box is
        inverted, or an option is unknown or out of range.

    Warns
    -----
    BoxscoreWarning
        When a score exceeds 1.

    Examples
    --------
    >>> fused = weighted_boxes_fusion(
    ...     [[[0, 0, 0.5, 0.5], [0, 0, 0.48, 0.52]], [[0.02, 0, 0.5, 0.5]]], [[0.9, 0.6], [0.8]]
    ... )
    >>> fused.boxes.round(7).tolist(), fused.scores.round(7).tolist()
    ([[0.0069565, 0.0, 0.4947826, 0.5052174]], [0.7666667])
    """
    models = Models(boxes, scores, groups, weights, score_threshold, box_format)
    fused = fused_by_clusters(models, iou_threshold, confidence, allow_overflow=allow_overflow)
    warn_of_scale(_largest(scores), 0 if allow_overflow else _largest([fused.scores]))
    return fused


class Models(NamedTuple):
    """Boxes, scores and groups, one entry per model; as for :func:`weighted_boxes_fusion`."""

    boxes: Sequence[ArrayLike]
    scores: Sequence[ArrayLike]
    groups: Sequence[ArrayLike] | None = None
    weights: ArrayLike | None = None
    score_threshold: float = 0.0
    box_format: BoxFormat = "xyxy"


def fused_by_clusters(
    models: Models, iou_threshold: float, confidence: Confidence = "average", *, allow_overflow: bool = False
) -> Fused:
    """Do :func:`weighted_boxes_fusion` without its warning."""
    threshold = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    checks.one_of(confidence, get_args(Confidence), name="confidence")
    ensemble = gather(*models)
    ranked = ensemble.ranked
    # Position of the first member.
    cluster = np.empty(len(ranked.order), dtype=np.int64)
    for block in ranked.blocks():
        here = cluster[block.start : block.start + len(block)]
        _cluster(block, threshold, here)
        here += block.start
    weight = ranked.scores.take(ranked.order)
    score = fused_scores(ensemble, cluster, weight, confidence, allow_overflow=allow_overflow)
    return average(ensemble, cluster, weight, score, models.box_format)


def nmw(
    boxes: Sequence[ArrayLike],
    scores: Sequence[ArrayLike],
    groups: Sequence[ArrayLike] | None = None,
    *,
    weights: ArrayLike | None = None,
    iou_threshold: float = 0.55,
    score_threshold: float = 0.0,
    box_format: BoxFormat = "xyxy",
) -> Fused:
    """Fuse by non-maximum weighted: average each box that hard NMS keeps with the boxes that it drops.

    Scores are multiplied by the model's weight over the largest weight.
    Parameters, results and errors as in :func:`weighted_boxes_fusion`.

    Examples
    --------
    >>> fused = nmw([[[0, 0, 0.5, 0.5], [0, 0, 0.48, 0.52]], [[0.02, 0, 0.5, 0.5]]], [[0.9, 0.6], [0.8]])
    >>> fused.boxes.round(7).tolist(), fused.scores.tolist()
    ([[0.0069105, 0.0, 0.4950088, 0.5049912]], [0.9])
    """
    models = Models(boxes, scores, groups, weights, score_threshold, box_format)
    fused = fused_into_best(models, iou_threshold)
    warn_of_scale(_largest(scores))
    return fused


def fused_into_best(models: Models, iou_threshold: float) -> Fused:
    """Do :func:`nmw` without its warning."""
    threshold = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    ensemble = gather(*models)
    cluster, weight = clusters_of_best(ensemble.ranked, threshold)
    return average(ensemble, cluster, weight, scores_of_best(ensemble), models.box_format)


def clusters_of_best(ranked: Ranked, threshold: float) -> tuple[IntArray, FloatArray]:
    """Return the position of the box that each one joins, [n], and its weight in the average, [n]."""
    cluster = np.empty(len(ranked.order), dtype=np.int64)
    weight = np.empty(len(ranked.order))
    # The weight of a member is its score times the IoU with the box that it joins; that of an owner is its
    # score.
    for block in ranked.blocks():
        here = slice(block.start, block.start + len(block))
        owner = _nearest_survivor(block, threshold)
        cluster[here] = owner + block.start
        same = owner == np.arange(len(block))
        weight[here] = block.scores * np.where(same, 1.0, block.measure.between(owner, np.arange(len(block))))
    return cluster, weight


def scores_of_best(ensemble: Ensemble) -> FloatArray:
    """Return the score [n] of each box as the best of a cluster, by position."""
    score: FloatArray = ensemble.ranked.scores.take(ensemble.ranked.order) / ensemble.weights.max(initial=0)
    return score


def warn_of_scale(largest: float, fused: float = 0.0) -> None:
    """Warn of scores above 1: of the largest given one, otherwise of the largest fused one."""
    if largest > 1:
        warn_user(
            f"scores reach {largest:g}; fusion compares scores across models, so they should share a "
            "scale from 0 to 1."
        )
    elif fused > 1 + ROUNDING:
        warn_user(
            f"fused scores reach {fused:g}, because the average divides by the weights of all models; "
            "--confidence box_and_model_average (in Python confidence=) keeps them below 1."
        )


def _largest(scores: Sequence[ArrayLike]) -> float:
    return float(max((np.max(some, initial=0) for some in scores), default=0))


class Ensemble(NamedTuple):
    """The checked boxes of all models."""

    # [N, 4], all models concatenated.
    corners: FloatArray
    model: IntArray  # [N]
    # [N], groups as given.
    names: NDArray[np.generic] | None
    weights: FloatArray  # [M]
    # By weighted score.
    ranked: Ranked


def gather(
    boxes: Sequence[ArrayLike],
    scores: Sequence[ArrayLike],
    groups: Sequence[ArrayLike] | None,
    weights: ArrayLike | None,
    score_threshold: float,
    box_format: BoxFormat,
) -> Ensemble:
    """Check the boxes of all models and concatenate them."""
    # Each model has one entry in every list and one positive weight.
    lists: dict[str, Sequence[ArrayLike]] = {"scores": scores}
    if groups is not None:
        lists["groups"] = groups
    checks.same_length(len(boxes), of="boxes (one entry per model)", **lists)
    model_weights = np.ones(len(boxes)) if weights is None else checks.float_array(weights, name="weights")
    checks.same_length(len(boxes), of="boxes (one entry per model)", weights=model_weights)
    if not ((model_weights > 0) & (model_weights < np.inf)).all():
        raise InputError("weights", "be positive and finite", got=model_weights.tolist())
    # Check each model's boxes separately, then concatenate them, model after model: [N, 4] and [N]. The empty
    # arrays make this work without models.
    box_list = [check_boxes(some, box_format=box_format) for some in boxes]
    score_list = [check_scores(some, length=len(of)) for some, of in zip(scores, box_list, strict=True)]
    counts = [len(some) for some in box_list]
    box_array = np.concatenate([*box_list, np.empty((0, 4))])
    score_array = np.concatenate([*score_list, np.empty(0)])
    check_not_negative(score_array)
    # Number the groups of all models together, so that equal names are one group. Skip models without boxes:
    # an empty list is a float array and would change the type of all groups.
    names = numbers = None
    if groups is not None:
        parts = [
            checks.any_array(some, name="groups")
            for some, count in zip(groups, counts, strict=True)
            if count or np.size(some)
        ]
        names = np.concatenate(parts) if parts else np.empty(0, np.int64)
        numbers = check_groups(names, length=len(box_array))
    # ``left`` contains the rows whose own score, before weighting, reaches the threshold.
    model = np.repeat(np.arange(len(counts)), counts)
    floor = checks.number_between(score_threshold, 0, np.inf, name="score_threshold")
    left = np.flatnonzero(score_array >= floor)
    corners = box_array if box_format == "xyxy" else corners_and_sizes(box_array, box_format)[0]
    # Weight the scores, [N]; reject a product that overflows.
    with np.errstate(over="ignore"):
        weighted = score_array * model_weights.take(model)
    checks.finite(weighted, name="weighted scores", cause="a diverged model?")
    measure_of = box_measure(corners, box_format="xyxy", pixel_offset=0, overlap="iou")
    # Rank by weighted score. Then translate the order from rows of ``left`` to rows of all models.
    ranked_left = rank(weighted.take(left), None if numbers is None else numbers.take(left), measure_of)
    ranked = Ranked(weighted, left.take(ranked_left.order), ranked_left.starts, measure_of)
    return Ensemble(corners, model, names, model_weights, ranked)


class _Clusters(NamedTuple):
    """Boxes of a block, and the current clusters in slots; the slots of a group begin at its start."""

    # [5, n], corners and area.
    boxes: FloatArray
    # [5, n], corners times score, score.
    weighted: FloatArray
    # [5, n], corners and area of each slot's fused box.
    fused: FloatArray
    # [5, n], sums of ``weighted`` over its members.
    sums: FloatArray
    # [n], position of its first member.
    founder: IntArray


def _cluster(block: Block, threshold: float, cluster: IntArray) -> None:
    """Assign each box of a block to a cluster; ``cluster`` [n] becomes the position of the first member."""
    # Lay out boxes and sums as [5, n], so that one gather moves all columns of a box.
    measure = block.measure
    corners = np.stack([measure.x1, measure.y1, measure.x2, measure.y2])
    area = (measure.x2 - measure.x1) * (measure.y2 - measure.y1)
    boxes = np.concatenate([corners, area[None]])
    weighted = np.concatenate([corners, np.ones((1, len(block)))]) * block.scores
    founder = np.zeros(len(block), dtype=np.int64)
    clusters = _Clusters(boxes, weighted, np.zeros_like(boxes), np.zeros_like(weighted), founder)
    # Cluster long groups one by one, many boxes at a time.
    sizes = np.diff(block.starts)
    for group in np.flatnonzero(sizes > LONG).tolist():
        _cluster_long(clusters, int(block.starts[group]), int(block.starts[group + 1]), threshold, cluster)
    # Groups that still have boxes stay in front.
    by_size = np.argsort(-sizes, kind="stable")
    by_size = by_size[np.count_nonzero(sizes > LONG) :]
    # Process all other groups in turns, the largest first: in each turn, the groups that still have boxes are
    # in front.
    if len(by_size):
        _cluster_in_parallel(clusters, block.starts.take(by_size), sizes.take(by_size), threshold, cluster)


def _cluster_in_parallel(
    clusters: _Clusters, starts: IntArray, sizes: IntArray, threshold: float, cluster: IntArray
) -> None:
    """Cluster many groups in parallel, the largest first: the next box of every group per turn."""
    boxes, weighted, fused, sums, founder = clusters
    # ``founded`` [g] counts the clusters of each group. ``ends[t]`` groups have more than t boxes: the first
    # ones, because they are sorted by size.
    founded = np.zeros(len(starts), dtype=np.int64)
    ends = np.searchsorted(-sizes, -np.arange(int(sizes[0])), side="left")
    for turn, running in enumerate(ends.tolist()):
        # Take the next box in rank of every running group, [5, r]. Groups are independent, so the result
        # equals that of processing them one by one.
        first, count = starts[:running], founded[:running]
        new = first + turn
        box, weight = boxes.take(new, axis=1), weighted.take(new, axis=1)
        slot = _best_slot(fused, box, first, count, threshold)
        # A box that joins no cluster takes the next free slot of its group and founds the cluster.
        is_founder = slot == first + count
        founder[slot.compress(is_founder)] = new.compress(is_founder)
        count += is_founder
        cluster[new] = founder.take(slot)
        # Add each box to the sums of its slot. Members are added one at a time in rank order, so the sums
        # round as in a plain loop. No slot occurs twice in a turn.
        total = sums.take(slot, axis=1)
        total += weight
        sums[:, slot] = total
        # A single box stays as given; so does a cluster whose scores are all 0.
        changes = np.flatnonzero(~is_founder & (total[4] > 0))
        # Average the clusters that changed: weighted corners over the weight, and the area of the result.
        # Then write founders and averages back to their slots.
        total, now = total.take(changes, axis=1), slot.take(changes)
        box[:4, changes] = total[:4] / total[4]
        box[4, changes] = (box[2] - box[0]).take(changes) * (box[3] - box[1]).take(changes)
        fused[:, slot.compress(is_founder)] = box.compress(is_founder, axis=1)
        fused[:, now] = box.take(changes, axis=1)


def _cluster_long(clusters: _Clusters, start: int, end: int, threshold: float, cluster: IntArray) -> None:
    """Cluster one group, many boxes at a time.

    The slot of each box is guessed from the current fused boxes. The guesses determine every fused box at
    every step. A guess is right if all guesses before it are and the slot is the best at its step, so the
    boxes up to the first wrong guess are decided.
    """
    boxes, weighted, fused, sums, founder = clusters
    count, most = 0, 1
    at = start
    while at < end:
        # Take the next boxes, few enough that their IoUs with all clusters, [boxes, slots], stay below a
        # fixed size.
        most = min(most, max(1, PAIRS_TOGETHER // max(count, 1)))
        some, slots = slice(at, min(at + most, end)), slice(start, start + count)
        ours = boxes[:, some]
        # Guess each slot from the current fused boxes.
        guess = _best_of(_ious(fused[:, None, slots], ours[:, :, None]), threshold)
        # Up to the first box that founds a cluster.
        joins = int(np.argmax(np.append(guess, -1) < 0))
        # The first box joins no cluster: its guess is certain, because no box comes before it. It founds a
        # cluster, which later boxes may join.
        if joins == 0:
            cluster[at] = founder[start + count] = at
            fused[:, start + count], sums[:, start + count] = boxes[:, at], weighted[:, at]
            count, at = count + 1, at + 1
            continue
        # Compute every state that the guessed joins would produce: first the current fused boxes, then one
        # state per join, cluster by cluster.
        guess, ours = guess[:joins], ours[:, :joins]
        joined, which = np.unique(guess, return_inverse=True)
        states, totals, first = [fused[:, slots]], [sums[:, slots]], count
        # [joins, count], the state of each slot when a box arrives.
        latest = np.tile(np.arange(count), (joins, 1))
        for number, slot in enumerate(joined.tolist()):
            # Add the members in rank order: a cumulative sum rounds like one addition after the other. Each
            # column is the cluster after one more member.
            members = np.flatnonzero(which == number)
            total = np.cumsum(np.column_stack([sums[:, start + slot], weighted[:, at + members]]), axis=1)[
                :, 1:
            ]
            state = np.tile(fused[:, start + slot, None], len(members))
            # A cluster whose scores are all 0 stays as given.
            heavy = np.flatnonzero(total[4] > 0)
            state[:4, heavy] = total[:4, heavy] / total[4, heavy]
            state[4, heavy] = (state[2, heavy] - state[0, heavy]) * (state[3, heavy] - state[1, heavy])
            # A box sees the state after the last member before it, or the initial state. ``latest`` [joins,
            # slots] is its number.
            # Members of this cluster before each box.
            joined_before = np.searchsorted(members, np.arange(joins))
            latest[:, slot] = np.where(joined_before > 0, first + joined_before - 1, slot)
            states.append(state)
            totals.append(total)
            first += len(members)
        # Repeat the choice with the states that each box sees. All boxes before the first wrong guess are
        # decided, with the values of a plain loop.
        state, total = np.concatenate(states, axis=1), np.concatenate(totals, axis=1)
        correct = _best_of(_ious(state[:, latest], ours[:, :, None]), threshold) == guess
        decided = int(np.argmin(np.append(correct, False)))
        cluster[at : at + decided] = founder[start + guess[:decided]]
        # Set every slot to its state after the decided boxes.
        if decided < joins:
            # The state for the first undecided box.
            now = latest[decided]
        else:
            now = np.arange(count)
            now[joined] = count + np.cumsum(np.bincount(which)) - 1
        fused[:, slots], sums[:, slots] = state[:, now], total[:, now]
        # Double the number of boxes while all guesses are right; after a wrong guess, take twice the number
        # of right ones.
        at += decided
        most = 2 * most if decided == most else max(2 * decided, 1)


def _ious(theirs: FloatArray, ours: FloatArray) -> FloatArray:
    """Return the IoU of fused and new boxes, corners and areas [5, ...] that broadcast; 0 if disjoint."""
    sides = np.minimum(theirs[2:4], ours[2:4]) - np.maximum(theirs[:2], ours[:2])
    np.maximum(sides, 0, out=sides)
    shared = sides[0] * sides[1]
    area = np.broadcast_to(theirs[4], shared.shape).copy()
    iou: FloatArray = np.zeros_like(shared)
    np.divide(shared, over(shared, area, ours[4]), out=iou, where=shared > 0)
    return iou


def _best_of(iou: FloatArray, threshold: float) -> IntArray:
    """Return the first slot with the largest IoU [boxes, slots]; -1 if none is large enough."""
    if iou.shape[1] == 0:
        return np.full(len(iou), -1)
    best = iou.argmax(axis=1)
    return np.where(iou[np.arange(len(iou)), best] > threshold, best, -1)


def _best_slot(
    fused: FloatArray, box: FloatArray, first: IntArray, count: IntArray, threshold: float
) -> IntArray:
    """Return the slot of the fused box that each new box overlaps most, else the next free one; [g].

    ``fused`` [5, n] and ``box`` [5, g] are corners and areas. Group g has slots from ``first[g]`` on, of
    which ``count[g]`` are taken; it has more boxes than that, so a table [g, S] of slots has at most n
    entries.
    """
    # Lay out the taken slots of each group, [g, S]. The free slot follows, which is empty and overlaps no
    # box.
    # After the last one, the free slot: empty.
    slots = np.minimum(np.arange(count.max(initial=0)), count[:, None])
    slots += first[:, None]
    # Compare x first: only the pairs [P] that overlap in x gather all columns.
    meets = fused[2].take(slots) > box[0, :, None]
    meets &= fused[0].take(slots) < box[2, :, None]
    which, position = meets.nonzero()
    at = slots[which, position]
    theirs, ours = fused.take(at, axis=1), box.take(which, axis=1)
    # Compute the IoU of these pairs with the functions of the whole package, so that NMS gives the same bits.
    sides = shared_length(theirs[:2], theirs[2:4], ours[:2], ours[2:4], 0)
    np.maximum(sides, 0, out=sides)
    shared = sides[0] * sides[1]
    iou = np.divide(shared, over(shared, theirs[4], ours[4]), out=np.zeros_like(shared), where=shared > 0)
    # Take the largest IoU strictly above the threshold: a maximum does not depend on the order.
    best, slot = np.full(len(first), threshold), first + count
    np.maximum.at(best, which, iou)
    # Ties go to the first slot: in reverse order, it is written last.
    most = np.flatnonzero((iou == best.take(which)) & (iou > threshold))[::-1]
    slot[which.take(most)] = at.take(most)
    return slot


def _nearest_survivor(block: Block, threshold: float) -> IntArray:
    """Return the better survivor that each position overlaps most, itself for a survivor; [n]."""
    suppressor = greedy(block, threshold, owners=True)
    # Survivors own themselves. An overlap is at most 1, so no pair exceeds a threshold of 1.
    owner = np.where(suppressor < 0, np.arange(len(block)), suppressor)
    if threshold >= 1:
        return owner
    # Compute the pairs with a survivor twice instead of storing them: first for the largest overlap of each
    # box, a maximum in any order.
    best = np.zeros(len(block))
    pairs = pairs_with(block, threshold, suppressor < 0)
    for _, worse, iou in pairs:
        np.maximum.at(best, worse, iou)
    # Then for the best survivor that reaches exactly this overlap. Each pass computes the same bits, so
    # comparing floats for equality finds the pairs of the maximum. Boxes with a pair start past the end
    # before the first chunk, so the minimum over all chunks does not depend on the chunk size.
    owner[best > 0] = len(block)
    for better, worse, iou in pairs:
        most = np.flatnonzero(iou == best.take(worse))
        np.minimum.at(owner, worse.take(most), better.take(most))
    return owner


def fused_scores(
    ensemble: Ensemble,
    cluster: IntArray,
    weight: FloatArray,
    confidence: Confidence,
    *,
    allow_overflow: bool,
) -> FloatArray:
    """Return the score [n] of each cluster, at the position of its first member."""
    model_weights, size = ensemble.weights, len(cluster)
    # The first member has the largest weighted score of its cluster.
    if confidence == "max" or size == 0:
        return weight / model_weights.max(initial=0) if size else weight
    # Count and sum the members of each cluster, [n], at the position of the first one. ``bincount`` adds by
    # position, so in rank order.
    members = np.bincount(cluster, minlength=size)
    sums = np.bincount(cluster, weights=weight, minlength=size)
    if confidence == "average":
        counted = members if allow_overflow else np.minimum(members, len(model_weights))
        return np.asarray(sums / np.maximum(members, 1) * counted / model_weights.sum())
    # Sum the weights of all members, then the weights of the distinct models among them: (cluster, model) as
    # one integer, each once.
    model = ensemble.model.take(ensemble.ranked.order)
    of_members = np.bincount(cluster, weights=model_weights.take(model), minlength=size)
    # Each model of a cluster counts once.
    present = np.unique(cluster * len(model_weights) + model)
    of_models = np.bincount(
        present // len(model_weights),
        weights=model_weights.take(present % len(model_weights)),
        minlength=size,
    )
    # 0 / 0 at positions that are not a first member.
    with np.errstate(invalid="ignore"):
        if confidence == "box_and_model_average":
            return np.asarray(sums / of_members * of_models / model_weights.sum())
        return np.asarray(sums / (of_members + model_weights.sum() - of_models))


def average(
    ensemble: Ensemble,
    cluster: IntArray,
    weight: FloatArray,
    score: FloatArray,
    box_format: BoxFormat = "xyxy",
    shapes: FloatArray | None = None,
) -> Fused:
    """Average the members of each cluster [n], in the order of their rank, and sort by score.

    ``shapes`` [N, K] are averaged instead of corners, each described like the first member of its cluster.
    """
    order, size = ensemble.ranked.order, len(cluster)
    # Sort the clusters by score. They are in the order of their first members' rows, so ties keep that order.
    fused_into = np.full(len(ensemble.corners), -1)
    firsts = np.flatnonzero(cluster == np.arange(size))
    firsts = firsts.take(np.argsort(order.take(firsts), kind="stable"))
    firsts = firsts.take(descending_order(score.take(firsts)))
    # Number the clusters in this order, and assign each box [n] the number of its cluster.
    member_of = np.empty(size, dtype=np.int64)
    member_of[firsts] = np.arange(len(firsts))
    member_of = member_of.take(cluster)
    fused_into[order] = member_of
    # Sum weights and weighted corners by cluster. ``bincount`` adds in rank order, as a plain loop would, one
    # column at a time.
    total = np.bincount(member_of, weights=weight, minlength=len(firsts))
    # A single box stays as given.
    several = (np.bincount(member_of, minlength=len(firsts)) > 1) & (total > 0)
    given = ensemble.corners if shapes is None else shapes
    made = given.take(order.take(firsts), axis=0)
    for column in range(given.shape[1]):
        sums = np.bincount(member_of, weights=weight * given[:, column].take(order), minlength=len(firsts))
        np.divide(sums, total, out=made[:, column], where=several)
    # A cluster has the group of its first member.
    rows = order.take(firsts)
    groups = np.zeros(len(rows), np.int64) if ensemble.names is None else ensemble.names.take(rows)
    if shapes is None:
        made = box_convert(made, "xyxy", box_format)
    return Fused(made, score.take(firsts), groups, fused_into)
