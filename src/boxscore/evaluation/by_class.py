"""Match and score the classes of large data in several processes.

Under rules like COCO's, classes do not meet before the mean over them. So each process takes some classes,
from ranking to curves, and the curves and counts return from it, with the columns of its matches.

Conventions
-----------
- Processes are forked once, when both tables are in memory. This one takes a share too.
- A class belongs to one share. The parent puts the numbers of classes side by side; nothing is added.
- The matches of all classes are put together when something asks for them.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, IntArray, unchangeable
from boxscore._utils.ordering import among
from boxscore._utils.processes import Forked, Workers, idle_processors, worker_count
from boxscore._utils.progress import stage
from boxscore._utils.records import NamedTuple
from boxscore.data.alignment import select_rows
from boxscore.data.tables import Detections, GroundTruth
from boxscore.evaluation.result import Best, Evaluation, counts_of_classes, counts_of_tables
from boxscore.matching import greedy
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches, bit_type
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import TieOrder
from boxscore.scoring.blocks import MOST_VALUES
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import kind_of, kinds_of
from boxscore.scoring.score_counts import CountedDetections, ScoreCounts
from boxscore.scoring.summary import Key, summary_keys
from boxscore.similarity.registry import similarity_of

SHARED_BY_TWO_FROM = 400_000
"""Number of detections from which two processes are enough: a share takes some time without any rows."""

ROWS_OF_SHARE = 60_000
"""Number of detections that are worth another process."""

MOST_SHARES = 8
"""Most processes: at 2 million detections, forks of more take as long as they save."""

OF_DETECTIONS, OF_PAIRS = (
    ("rank", "row", "in_range_bits"),
    ("pair_detection", "pair_truth", "iou", "matched_bits"),
)
COLUMNS = (*OF_DETECTIONS, *OF_PAIRS, "counted_bits")
"""Columns of matches that a share returns, by axis."""


class _Sums(NamedTuple):
    """The counts that curves need, without single detections; K classes."""

    positive: NDArray[Any]
    """[K]"""
    true_positives: NDArray[Any]
    """[T, K]"""
    has_detections: NDArray[Any]
    """[K]"""


class _Share(NamedTuple):
    """The numbers of some classes."""

    curves: Mapping[Key, tuple[_Sums, Mapping[str, NDArray[Any]]]]
    """Sums, and the numbers of the curves, by area range and max detections."""
    of_tables: Mapping[str, int]
    of_classes: Mapping[str, NDArray[Any]]
    best: Best
    counted: BoolArray
    """Whether each detection counts at the first threshold and area range, in the order of ``best``, [D]."""
    true: BoolArray
    """Whether it is a true positive there, [D]."""
    columns: Mapping[str, NDArray[Any]] | None
    """Columns of the matches that neither the tables nor ``best`` have; None if there are too many pairs."""


class _LateCounts(TruePositiveCounts):
    """Counts whose sums are known; the outcomes are read when something asks for single detections."""

    def __init__(
        self, sums: _Sums, images: int, tie_order: TieOrder, outcomes: Callable[[], Outcomes]
    ) -> None:
        super().__init__(None, tie_order, again=outcomes)
        self._sums, self._images = sums, images
        vars(self)["true_positives"] = sums.true_positives

    @property
    def positive(self) -> NDArray[Any]:
        """Counted ground truths of each class, [K]."""
        return self._sums.positive

    @property
    def images(self) -> int:
        """Number of evaluated images."""
        return self._images

    @property
    def recalled(self) -> NDArray[Any]:
        """True positives, [T, K]: rules that weigh them do not share classes."""
        return self._sums.true_positives

    @property
    def has_detections(self) -> NDArray[np.bool_]:
        """Whether there is a detection, counted or not, [K]."""
        return self._sums.has_detections


def shares_of_classes(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, workers: Workers
) -> int:
    """Return the number of processes that share the classes; 1 if they are not shared."""
    similarity, values = similarity_of(protocol), len(protocol.matching.iou_thresholds)
    values *= len(protocol.ap.recall_points) * len(ground_truth.categories)
    if (
        not hasattr(os, "fork")
        or values > MOST_VALUES  # never in memory together
        # Other shapes are compared in threads, or share their pairs.
        or similarity.forks_from is None
        or similarity.shares_pairs
        or not protocol.scope.has_separate_classes
        or not all(kind.of_numbers for kind in kinds_of(protocol))
    ):
        return 1
    count = worker_count(workers)
    if workers == "auto" and count > 1:
        count = idle_processors()
    count = min(count, MOST_SHARES, len(detections) // ROWS_OF_SHARE, len(ground_truth.categories))
    return count if count > 2 or len(detections) >= SHARED_BY_TWO_FROM else 1


def evaluated_by_class(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    shares: int,
    *,
    chosen_classes: bool = False,
) -> Evaluation:
    """Match and score the classes in processes."""
    matcher = Matcher(ground_truth, detections, protocol)  # raises before anything is forked
    # This process takes the first share, the largest.
    stage("matching")
    classes = _divided(ground_truth, detections, shares)
    most = greedy.MOST_HELD // len(classes)
    tasks = [functools.partial(_share, ground_truth, detections, protocol, rows, most) for rows in classes]
    with contextlib.closing(Forked(tasks[1:])) as forked:
        parts = [tasks[0](), *forked.results()]
    stage("scoring")
    # Nothing below refers to the result: a cycle would hold the memory and the open files of shares longer.
    best = _best([part.best for part in parts], classes)
    matches = functools.cache(lambda: unchangeable(_matches(matcher, best, parts, classes)))
    result = Evaluation._later(ground_truth, detections, protocol, matches, chosen_classes)
    result._once("matcher", lambda: matcher)
    # Add the counts, and put the numbers of classes side by side.
    counts = {name: sum(part.of_tables[name] for part in parts) for name in parts[0].of_tables}
    counts |= {"images": len(ground_truth.images), "left_out": sum(detections.left_out.values())}
    result._once("counts", lambda: counts)
    of_classes = _beside([part.of_classes for part in parts], classes)
    result._once("counts of classes", lambda: of_classes)
    result._once("best", lambda: best)
    counts_at_first = functools.partial(_counts_at_first, best, of_classes["ground_truths"], parts, classes)
    result._once("make counts at first", lambda: counts_at_first)
    for key in parts[0].curves:
        curves = _curves(matcher, matches, key, [part.curves[key] for part in parts], classes)
        result._once(("curves", *key), functools.partial(_same, curves))
    return result


def _divided(ground_truth: GroundTruth, detections: Detections, count: int) -> list[IntArray]:
    """Divide the classes into shares: the largest first, each to the least loaded share."""
    K = len(ground_truth.categories)
    rows = np.bincount(ground_truth.category, minlength=K) + np.bincount(detections.category, minlength=K)
    loads = [0] * count
    shares: list[list[int]] = [[] for _ in range(count)]
    for row in np.argsort(-rows, kind="stable").tolist():
        least = loads.index(min(loads))
        shares[least].append(row)
        loads[least] += int(rows[row])
    return [np.sort(np.array(share)) for share in shares if share]


def _share(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, classes: IntArray, most: int
) -> _Share:
    """Match and score some classes; return the columns of at most ``most`` pairs."""
    ground_truth, detections = select_rows(ground_truth, detections, classes=classes)
    matched = Matcher(ground_truth, detections, protocol).match()
    made = {}
    for key, metrics in summary_keys(protocol.rows, protocol).items():
        curves = Curves.of(matched, protocol, *key)
        for metric in metrics:
            kind_of(metric).values_of(curves, protocol)
        counts = curves.counts
        made[key] = (
            _Sums(curves.positive, counts.true_positives, counts.has_detections),
            curves.known_numbers(),
        )
        curves.release()
    outcomes = matched.detection_outcomes(0, 0)
    few = matched.every_pair and len(matched.iou) <= most
    return _Share(
        made,
        counts_of_tables(ground_truth, detections, matched),
        counts_of_classes(matched),
        Best.of(matched),
        outcomes.counted,
        outcomes.true,
        {name: getattr(matched, name) for name in COLUMNS} if few else None,
    )


# ---------------------------------------------------------------- classes side by side


def _beside(
    parts: Sequence[Mapping[str, NDArray[Any]]], classes: Sequence[IntArray]
) -> dict[str, NDArray[Any]]:
    """Put arrays whose last axis are the classes of shares into the order of all classes."""
    count, joined = sum(map(len, classes)), {}
    for name, first in parts[0].items():
        joined[name] = np.empty((*first.shape[:-1], count), dtype=first.dtype)
        for part, rows in zip(parts, classes, strict=True):
            joined[name][..., rows] = part[name]
    return joined


def _best(parts: Sequence[Best], classes: Sequence[IntArray]) -> Best:
    """Put the best detections of shares into the order of all classes."""
    each = [part.starts for part in parts]
    sizes = _beside([{"": np.diff(part)} for part in each], classes)[""]
    starts = np.append(0, np.cumsum(sizes))
    score = _blocks_beside([part.score for part in parts], each, classes)
    true = [
        part.true + _steps(part.starts, starts, rows, np.searchsorted(part.true, part.starts))
        for part, rows in zip(parts, classes, strict=True)
    ]
    return Best(score, starts, np.sort(np.concatenate(true)), sum(part.counted for part in parts))


def _steps(of_share: IntArray, of_all: IntArray, rows: IntArray, blocks: IntArray) -> IntArray:
    """Return what to add to ascending positions of a share; those of class k start at ``blocks[k]``."""
    steps: IntArray = np.repeat(of_all[rows] - of_share[:-1], np.diff(blocks))
    return steps


def _blocks_beside(
    columns: Sequence[NDArray[Any]], starts: Sequence[IntArray], classes: Sequence[IntArray]
) -> NDArray[Any]:
    """Put columns of shares into the order of all classes; each class is a block, from one of ``starts``."""
    blocks: list[NDArray[Any]] = [columns[0]] * sum(map(len, classes))
    for column, of_share, rows in zip(columns, starts, classes, strict=True):
        for row, block in zip(rows.tolist(), np.split(column, of_share[1:-1]), strict=True):
            blocks[row] = block
    return np.concatenate(blocks)


def _matches(matcher: Matcher, best: Best, parts: Sequence[_Share], classes: Sequence[IntArray]) -> Matches:
    """Put the matches of shares into the order of all classes.

    There are no extra columns, because no function of a rule acts where classes are separate. If a share had
    too many pairs, all classes are matched again: one process may keep only the pairs that match.
    """
    returned = [part.columns for part in parts if part.columns is not None]
    if len(returned) < len(parts):
        return matcher.match()
    ground_truth, detections, protocol = matcher.ground_truth, matcher.detections, matcher.protocol
    K, starts = len(ground_truth.categories), [part.best.starts for part in parts]
    each: list[Mapping[str, NDArray[Any]]] = []
    pair_starts: list[IntArray] = []
    counted_bits = np.empty(len(ground_truth), dtype=bit_type(len(protocol.ignore.area_ranges)))
    for of_part, rows, of_share in zip(returned, classes, starts, strict=True):
        columns = dict(of_part)
        # Number rows as in the tables, and positions as in the class order of all classes.
        table_rows, truth_rows = (
            np.flatnonzero(among(rows, table.category, K)) for table in (detections, ground_truth)
        )
        pair_starts.append(np.searchsorted(columns["pair_detection"], of_share))
        columns["pair_detection"] = columns["pair_detection"] + _steps(
            of_share, best.starts, rows, pair_starts[-1]
        )
        columns["pair_truth"] = truth_rows.take(columns["pair_truth"])
        columns["row"] = table_rows.take(columns["row"])
        counted_bits[truth_rows] = columns["counted_bits"]
        each.append(columns)
    # Rows and pairs are in class order in every share, so each class is a block.
    joined: dict[str, Any] = {}
    for names, of_blocks in ((OF_DETECTIONS, starts), (OF_PAIRS, pair_starts)):
        for name in names:
            joined[name] = _blocks_beside([columns[name] for columns in each], of_blocks, classes)
    return Matches(
        images=ground_truth.images,
        categories=ground_truth.categories,
        image=detections.image.take(joined["row"]),
        category=np.repeat(np.arange(K, dtype=np.int32), np.diff(best.starts)),
        score=best.score,
        truth_image=ground_truth.image,
        truth_category=ground_truth.category,
        truth_row=np.arange(len(ground_truth), dtype=np.int64),
        counted_bits=counted_bits,
        **joined,
        threshold_count=len(protocol.matching.iou_thresholds),
        equal_scores=protocol.matching.equal_scores,
    )


def _counts_at_first(
    best: Best, positive: NDArray[Any], parts: Sequence[_Share], classes: Sequence[IntArray]
) -> ScoreCounts:
    """Count at each score at the first threshold and area range; distances are NaN."""
    starts = [part.best.starts for part in parts]
    counted = np.flatnonzero(_blocks_beside([part.counted for part in parts], starts, classes))
    true = _blocks_beside([part.true for part in parts], starts, classes)[counted]
    category = np.repeat(np.arange(len(best.starts) - 1, dtype=np.int32), np.diff(best.starts))[counted]
    unknown = np.full(len(counted), np.nan)
    return ScoreCounts.of(
        CountedDetections(category, best.score[counted], true, unknown, positive, np.zeros_like(category))
    )


def _curves(
    matcher: Matcher,
    matches: Callable[[], Matches],
    key: Key,
    parts: Sequence[tuple[_Sums, Mapping[str, NDArray[Any]]]],
    classes: Sequence[IntArray],
) -> Curves:
    """Put the curves of shares side by side; outcomes of single detections are made when something asks."""
    protocol = matcher.protocol
    sums = _Sums(**_beside([sums._asdict() for sums, _ in parts], classes))
    counts = _LateCounts(
        sums,
        len(matcher.ground_truth.images),
        protocol.ap.tie_order,
        lambda: Outcomes.of(matches(), protocol, *key),
    )
    known = _beside([numbers for _, numbers in parts], classes)
    return Curves(counts, protocol.ap, known=known, categories=matcher.ground_truth.categories)


def _same(curves: Curves) -> Curves:
    return curves
