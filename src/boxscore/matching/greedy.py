"""Greedy matching: candidate pairs become a :class:`Matches`.

Goal
----
What pycocotools' ``evaluateImg`` and the VOC kit's inner loop decide, for all IoU thresholds and area
ranges at once, and a value that merges: the matches of disjoint sets of images add up to the matches of
their union, in whatever blocks they were made.

Conventions
-----------
- Greedy matching is sequential only inside an (image, category) group. Round ``r`` treats the ``r``-th
  detection *that has a candidate* of every group at once.
- Thresholds and area ranges are bits of one unsigned integer, bit ``a * T + t``: one ``&`` asks about all
  of them together. In the result, bit ``t`` of ``matched[p, a]`` says that pair ``p`` is a match at
  threshold ``t`` for area range ``a``.
- A ground truth is *counted* in an area range, or ignored there; crowd regions and, where the protocol
  says so, difficult objects are ignored everywhere and absorb any number of detections.
- A detection takes the free counted ground truth it overlaps most; only when there is none, an ignored one.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import descending_order, run_starts, stable_order
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.ranking import Ranking
from boxscore.protocols.protocol import Protocol

__all__ = ["CandidatePairs", "Matches", "bit_type", "match", "merge"]

WIDE = 64
"""Detections with more candidates are matched one by one, each with all its candidates at once."""

Bits = NDArray[Any]
"""An unsigned integer array whose bits run over an axis: T thresholds, or A area ranges."""


@dataclasses.dataclass(frozen=True, eq=False)
class Matches:
    """The outcome of matching some images, and all that AP is computed from.

    Attributes
    ----------
    image, category : ndarray of int32, [D]
        Row numbers, of detections in class order.
    score : ndarray of float64, [D]
    rank : ndarray of int32, [D]
        Place among the detections of the same image and class, from 0.
    row : ndarray of int64, [D]
        Row in the detections table, counted through when several tables were merged.
    in_range : ndarray of unsigned, [D]
        Bit ``a``: the detection's own area lies in area range ``a``.
    truth_image, truth_category : ndarray of int32, [G]
    truth_row : ndarray of int64, [G]
    counted : ndarray of unsigned, [G]
        Bit ``a``: the ground truth is counted, not ignored, in area range ``a``.
    pair_detection, pair_truth : ndarray of intp, [P]
        Positions in the columns above; ascending by detection.
    iou : ndarray of float64, [P]
    matched : ndarray of unsigned, [P, A]
        Bit ``t``: the pair is a match at threshold ``t`` for area range ``a``.
    file_order : bool
        Whether equal scores are taken in row order instead of image by image.
    """

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    score: NDArray[np.float64]
    rank: NDArray[np.int32]
    row: NDArray[np.int64]
    in_range: Bits
    truth_image: NDArray[np.int32]
    truth_category: NDArray[np.int32]
    truth_row: NDArray[np.int64]
    counted: Bits
    pair_detection: NDArray[np.intp]
    pair_truth: NDArray[np.intp]
    iou: NDArray[np.float64]
    matched: Bits
    file_order: bool = False

    def __len__(self) -> int:
        return len(self.image)

    @functools.cached_property
    def counted_pairs(self) -> Bits:
        """``matched`` where the ground truth is counted (true positives), else no bit; [P, A]."""
        areas = np.arange(self.matched.shape[1], dtype=self.counted.dtype)
        counted = (self.counted[self.pair_truth, None] >> areas) & 1
        true: Bits = self.matched * counted.astype(self.matched.dtype)
        return true


CandidatePairs = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]
"""Pairs in group order: position in class order, row of the ground truth, overlap; [P] each."""


def bit_type(count: int) -> np.dtype[Any]:
    """Return the smallest unsigned type with ``count`` bits."""
    return np.dtype(np.min_scalar_type((1 << count) - 1))


def match(
    ground_truth: GroundTruth,
    detections: Detections,
    ranking: Ranking,
    pairs: CandidatePairs,
    detection_area: NDArray[np.float64],
    protocol: Protocol,
) -> Matches:
    """Match detections to ground truths.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        With the same vocabularies.
    ranking : Ranking
        Of the detections.
    pairs : CandidatePairs
        Every pair whose overlap reaches the lowest threshold.
    detection_area : ndarray of float64, [rows of detections]
        What area ranges measure in a detection, square pixels.
    protocol : Protocol
        Reads ``matching`` and ``ignore``.

    Returns
    -------
    Matches
    """
    ranges = np.array(list(protocol.ignore.area_ranges.values()))  # [A,2]
    absorbs = np.zeros(len(ground_truth), dtype=bool)
    if protocol.ignore.crowd != "count":
        absorbs |= ground_truth.crowd
    if protocol.ignore.difficult != "count":
        absorbs |= ground_truth.difficult
    in_area = (ground_truth.area[:, None] >= ranges[:, 0]) & (ground_truth.area[:, None] <= ranges[:, 1])
    counted = in_area & ~absorbs[:, None]  # [G,A]
    if protocol.ignore.unlabelled == "ignore" and ground_truth.keypoint_count is not None:
        counted &= (ground_truth.keypoint_count > 0)[:, None]

    position, truth, iou = pairs
    starts = run_starts(position)  # [C], one a detection with a candidate
    widths = np.diff(np.append(starts, len(position)))  # [C]
    preference = _by_preference(iou, widths, last_wins=protocol.matching.equal_iou == "last")
    if protocol.matching.candidate == "best_overall":
        best = preference[starts]
        position, truth, iou = position[best], truth[best], iou[best]
        starts, widths = np.arange(len(best)), np.ones(len(best), dtype=np.intp)
        preference = starts

    group = ground_truth.image[truth[starts]].astype(np.int64) * len(ground_truth.categories)
    group += ground_truth.category[truth[starts]]
    rounds = _rounds_of(group, starts, widths)
    level = np.searchsorted(protocol.matching.effective_thresholds, iou[preference], side="right")
    matched = _match_rounds(
        truth[preference], level, rounds, counted, absorbs, len(protocol.matching.iou_thresholds)
    )
    unsort = np.empty_like(preference)
    unsort[preference] = np.arange(len(preference))
    order = stable_order(position, len(ranking.rows))
    area = np.take(detection_area, ranking.rows)
    in_range = np.zeros(len(area), dtype=bit_type(len(ranges)))
    for bit, (low, high) in enumerate(ranges.tolist()):
        in_range |= ((area >= low) & (area <= high)).astype(in_range.dtype) << in_range.dtype.type(bit)
    return Matches(
        image=np.take(detections.image, ranking.rows),
        category=np.take(detections.category, ranking.rows),
        score=np.take(detections.scores, ranking.rows),
        rank=ranking.rank,
        row=ranking.rows.astype(np.int64),
        in_range=in_range,
        truth_image=ground_truth.image,
        truth_category=ground_truth.category,
        truth_row=np.arange(len(ground_truth), dtype=np.int64),
        counted=_pack(counted),
        pair_detection=position[order],
        pair_truth=truth[order],
        iou=iou[order],
        matched=matched[unsort][order],
        file_order=protocol.matching.equal_scores == "file_order",
    )


def _pack(flags: NDArray[np.bool_]) -> Bits:
    """Pack flags [N, A] into bits over A, [N]."""
    weights = (1 << np.arange(flags.shape[1], dtype=np.uint64)).astype(bit_type(flags.shape[1]))
    packed: Bits = np.bitwise_or.reduce(flags * weights, axis=1)
    return packed


def _by_preference(
    iou: NDArray[np.float64], widths: NDArray[np.intp], *, last_wins: bool
) -> NDArray[np.intp]:
    """Order the pairs of each detection by descending overlap, equal ones last or first in file order."""
    preference = np.arange(len(iou))
    candidate = np.repeat(np.arange(len(widths)), widths)
    several = np.flatnonzero(np.repeat(widths, widths) > 1)
    tie = -several if last_wins else several
    preference[several] = several[np.lexsort((tie, -iou[several], candidate[several]))]
    return preference


class _Rounds(NamedTuple):
    """Detections with a candidate, in the order in which rounds take them, most candidates first."""

    first: NDArray[np.intp]  # [C], place of the first pair of each
    width: NDArray[np.intp]  # [C], number of pairs of each
    bounds: list[int]  # where each round starts, and the end


def _rounds_of(group: NDArray[np.int64], starts: NDArray[np.intp], widths: NDArray[np.intp]) -> _Rounds:
    """Put the ``r``-th detection of every group into round ``r``."""
    group_starts = run_starts(group)
    group_sizes = np.diff(np.append(group_starts, len(group)))
    round_of = np.arange(len(group)) - np.repeat(group_starts, group_sizes)
    round_count, most = int(group_sizes.max(initial=0)), int(widths.max(initial=0))
    order = stable_order(round_of * (most + 1) + (most - widths), round_count * (most + 1))
    bounds = np.cumsum(np.bincount(round_of, minlength=round_count)).tolist()
    return _Rounds(starts[order], widths[order], [0, *bounds])


def _match_rounds(
    truth: NDArray[np.intp],
    level: NDArray[np.intp],
    rounds: _Rounds,
    counted: NDArray[np.bool_],
    absorbs: NDArray[np.bool_],
    threshold_count: int,
) -> Bits:
    """Match in rounds; each detection's pairs come in order of preference.

    Parameters
    ----------
    truth : ndarray of intp, [P]
    level : ndarray of intp, [P]
        How many thresholds the overlap reaches.
    rounds : _Rounds
    counted : ndarray of bool, [G, A]
    absorbs : ndarray of bool, [G]
        Never used up by a match.
    threshold_count : int

    Returns
    -------
    ndarray of unsigned, [P, A]
        ``matched`` of :class:`Matches`.
    """
    area_count = counted.shape[1]
    lanes = max(1, 64 // threshold_count)  # area ranges that fit into one integer
    matched = np.empty((len(truth), area_count), dtype=bit_type(threshold_count))
    for low in range(0, area_count, lanes):
        areas = range(low, min(low + lanes, area_count))
        packed = _match_lanes(truth, level, rounds, counted[:, low : areas.stop], absorbs, threshold_count)
        for lane, area in enumerate(areas):
            matched[:, area] = (packed >> np.uint64(lane * threshold_count)) & np.uint64(
                (1 << threshold_count) - 1
            )
    return matched


def _match_lanes(
    truth: NDArray[np.intp],
    level: NDArray[np.intp],
    rounds: _Rounds,
    counted: NDArray[np.bool_],
    absorbs: NDArray[np.bool_],
    threshold_count: int,
) -> NDArray[np.uint64]:
    """Match for as many area ranges as fit into 64 bits; [P], bit ``lane * T + t``."""
    every_lane = sum(1 << (lane * threshold_count) for lane in range(counted.shape[1]))
    up_to = np.array([((1 << n) - 1) * every_lane for n in range(threshold_count + 1)], dtype=np.uint64)
    reached = up_to[level]  # [P]
    everything = up_to[-1]
    whole_lane = np.uint64((1 << threshold_count) - 1)
    if_counted = np.zeros(len(counted), dtype=np.uint64)  # [G]
    for lane in range(counted.shape[1]):
        if_counted |= counted[:, lane] * (whole_lane << np.uint64(lane * threshold_count))
    kept_by_match = np.where(absorbs, everything, np.uint64(0))  # [G]
    free = np.full(len(counted), everything)  # [G]
    matched = np.zeros(len(truth), dtype=np.uint64)  # [P]

    for low, high in itertools.pairwise(rounds.bounds):
        wide = low + int(np.count_nonzero(rounds.width[low:high] > WIDE))  # the widest come first
        for start, count in zip(
            rounds.first[low:wide].tolist(), rounds.width[low:wide].tolist(), strict=True
        ):
            pairs = slice(start, start + count)
            target = truth[pairs]
            hit = _first_of_each_bit(reached[pairs] & free[target], if_counted[target])
            matched[pairs] = hit
            free[target] &= ~hit | kept_by_match[target]
        if wide == high:
            continue
        first, width = rounds.first[wide:high], rounds.width[wide:high]
        slots = np.searchsorted(-width, -np.arange(width[0]), side="left").tolist()
        undecided = np.full(high - wide, everything)
        # A lone candidate is taken whether counted or not; among several the counted come first.
        for counted_first in (True, False) if len(slots) > 1 else (None,):
            for slot, count in enumerate(slots):
                pair = first[:count] + slot
                target = truth[pair]
                hit = reached[pair] & free[target]
                if counted_first is not None:
                    hit &= undecided[:count]
                    hit &= if_counted[target] if counted_first else ~if_counted[target]
                    undecided[:count] ^= hit
                    matched[pair] |= hit
                else:
                    matched[pair] = hit
                free[target] &= ~hit | kept_by_match[target]
    return matched


def _first_of_each_bit(free: NDArray[np.uint64], counted: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Of one detection's candidates [W], in order, the first for each bit; the counted come before others."""
    taken = np.zeros_like(free)
    for eligible in (free & counted, free & ~counted):
        eligible &= ~np.bitwise_or.reduce(taken)
        up_to_here = np.bitwise_or.accumulate(eligible)
        eligible[1:] &= ~up_to_here[:-1]
        taken |= eligible
    return taken


def merge(parts: Iterable[Matches]) -> Matches:
    """Merge the matches of disjoint sets of images.

    Parameters
    ----------
    parts : iterable of Matches
        Made under one protocol, with row numbers into the same vocabularies.

    Returns
    -------
    Matches
        Identical, to the bit, to the matches of all images taken at once.
    """
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    fields = [field.name for field in dataclasses.fields(Matches) if field.name != "file_order"]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in fields}
    for name, sizes in (
        ("pair_detection", [len(part) for part in parts]),
        ("pair_truth", [len(part.truth_image) for part in parts]),
    ):
        shifts = np.cumsum([0, *sizes[:-1]])
        columns[name] += np.repeat(shifts, [len(part.iou) for part in parts])

    file_order = parts[0].file_order
    order = _class_order(columns, file_order=file_order)
    new_place = np.empty_like(order)
    new_place[order] = np.arange(len(order))
    truth_order = stable_order(columns["truth_row"], int(columns["truth_row"].max(initial=0)) + 1)
    new_truth = np.empty_like(truth_order)
    new_truth[truth_order] = np.arange(len(truth_order))
    columns["pair_detection"] = new_place[columns["pair_detection"]]
    columns["pair_truth"] = new_truth[columns["pair_truth"]]
    pair_order = stable_order(columns["pair_detection"], len(order))
    for name in fields:
        if name in ("truth_image", "truth_category", "truth_row", "counted"):
            columns[name] = columns[name][truth_order]
        elif name in ("pair_detection", "pair_truth", "iou", "matched"):
            columns[name] = columns[name][pair_order]
        else:
            columns[name] = columns[name][order]
    return Matches(**columns, file_order=file_order)


def _class_order(columns: dict[str, NDArray[Any]], *, file_order: bool) -> NDArray[np.intp]:
    """Sort detections by category, descending score, and image then rank, or row."""
    if file_order:
        order = stable_order(columns["row"], int(columns["row"].max(initial=0)) + 1)
    else:
        order = stable_order(columns["rank"], int(columns["rank"].max(initial=0)) + 1)
        order = order[stable_order(columns["image"][order], int(columns["image"].max(initial=0)) + 1)]
    order = order[descending_order(columns["score"][order])]
    categories = int(columns["category"].max(initial=0)) + 1
    return order[stable_order(columns["category"][order], categories)]
