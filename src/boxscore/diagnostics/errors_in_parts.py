"""Costs of errors where no process holds all detections: a table of each partition has what every fix does.

Conventions
-----------
- In its partition each detection gets its error and each object its state. Of a detection a row stays: its
  class, its score, and two bits for each fix, whether it is still there and whether it is right. Where a fix
  gives it another class, a row of that class has the two bits of this fix.
- Rows of a partition are in class order, equal scores by image and rank. Partitions follow each other in the
  order of ids, so that rows of several put one after the other, and sorted by a stable order, are as in one
  process. Of equal scores the errors come first where something is fixed.
- With all false positives last, true positives alone decide: the rows of these are left out.
- A class that is too large is cut by scores, and each range knows what comes before it
  (:mod:`boxscore.scoring.curves`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import group_order, stable_order
from boxscore.evaluation import Evaluation
from boxscore.matching.ranking import ranked_by
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.counts import Outcomes, TruePositiveCounts, tie_starts
from boxscore.scoring.curves import Curves
from boxscore.scoring.totals import Before, Totals


class Fix(NamedTuple):
    """What counts once a kind of error is fixed."""

    category: NDArray[np.int32]  # [D]
    true: BoolArray  # [D]
    keep: BoolArray  # [D]
    positive: BoolArray  # [G]
    errors_last: bool = False
    """Whether what is not right comes after all that is."""


class Fixes(NamedTuple):
    """What fixes make of a partition."""

    rows: NDArray[np.intp]
    """Of the detections that took part, by image and descending score, [N]."""
    every: Mapping[str, Fix]
    """By its name, the first that of no fix."""
    counts: IntArray
    """Of errors; those of disjoint images add up."""


Fixed = Callable[..., Fixes]
"""Takes the evaluation of a partition and options."""


def curves_of_fixes(
    evaluation: Any, fixed: Fixed, options: Mapping[str, Any], rules: ApRules
) -> tuple[Mapping[str, Curves], IntArray]:
    """Ask every partition, and merge: the curves of each fix, by its name, and the counts of all."""
    from boxscore.distributed.pieces import edges_between
    from boxscore.distributed.plan import most_within, runs_of_classes

    # Each partition fixes its errors and stores its rows; only numbers per class come back and are added up.
    held = evaluation.partitions_again("error types")
    engine = held.engine
    with engine.asked_again():
        tasks = [engine.submit("fix", _rows_of_task, task, fixed, options) for task in held.tasks]
        stored = engine.held(tasks, shown="reading again")
        whole = _added(engine.results([engine.submit("totals", _totals_of, one) for one in stored]))
        # Cut the classes into blocks that one process can merge. A class that is too large is cut by scores
        # at edges from samples.
        most = most_within(held.room)
        blocks = list(runs_of_classes(whole.rows, most))
        large = [block for block in blocks if whole.rows[block.low : block.high].sum() > most]
        pieces = {block: [block] for block in blocks}
        if large:
            samples = engine.results([engine.submit("sample", _sample, one, large) for one in stored])
            for number, block in enumerate(large):
                sample = [one for every in samples for one in every[number]]
                pieces[block] = block.between(edges_between(sample, int(whole.rows[block.low]), most))
        # Count what comes before each range of scores, so that a range can compute its share of the curve.
        ranges = [piece for block in large for piece in pieces[block]]
        counted = engine.results([engine.submit("count", _counted, one, ranges) for one in stored])
        before = _before(pieces, dict(zip(ranges, np.sum(counted, axis=0), strict=True)))
        # Merge and score every piece where it is; the best precision at recall points comes back, [F, k, R].
        scored = [
            engine.submit(
                "score",
                _best_of_piece,
                [engine.submit("cut", _cut, one, piece) for one in stored],
                whole.positive[:, block.low : block.high],
                before.get(piece),
                rules,
            )
            for block in blocks
            for piece in pieces[block]
        ]
        results = iter(engine.results(scored))
    # The envelope of a class is the maximum over its ranges: exact, whatever their number.
    best = [np.maximum.reduce([next(results) for _ in pieces[block]]) for block in blocks]
    return _curves(whole, np.concatenate(best, axis=1), rules), whole.counts


class _Totals(NamedTuple):
    """What is known of a partition without its rows; F fixes, K classes."""

    names: tuple[str, ...]
    rows: IntArray  # [K]
    positive: IntArray  # [F, K]
    kept: IntArray  # [F, K] detections
    true: IntArray  # [F, K]
    counts: IntArray


class _Rows(NamedTuple):
    """The rows of a partition, of N detections, by class and descending score."""

    totals: _Totals
    bounds: IntArray
    """Where each class starts, and the end, [K + 1]."""
    score: FloatArray
    """[N]"""
    bits: NDArray[np.uint32]
    """Bit 2f: there under fix f; 2f + 1: right under it; [N]."""


def _rows_of_task(task: Any, fixed: Fixed, options: Mapping[str, Any]) -> _Rows:
    """Run in each partition."""
    rows: _Rows = task.asked(_rows_of, {"fixed": fixed, "options": options})
    return rows


def _rows_of(evaluation: Evaluation, *, fixed: Fixed, options: Mapping[str, Any]) -> _Rows:
    # Start from the rows that took part, in their own class, without bits.
    fixes = fixed(evaluation, **options)
    truth, K = evaluation.ground_truth, len(evaluation.ground_truth.categories)
    rows, (plain, *_) = fixes.rows, fixes.every.values()
    own, score = plain.category[rows], ranked_by(evaluation.detections)[rows]
    bits, kept, true = np.zeros(len(rows), dtype=np.uint32), [], []
    moved: list[tuple[NDArray[np.intp], NDArray[np.int32], NDArray[np.uint32]]] = []
    for number, fix in enumerate(fixes.every.values()):
        # Under each fix count the rows that stay and the right ones, per class.
        right, there = fix.true[rows] & fix.keep[rows], fix.keep[rows]
        category = own if fix.category is plain.category else fix.category[rows]
        kept.append(np.bincount(category[there], minlength=K))
        true.append(np.bincount(category[right], minlength=K))
        # Put both flags into two bits. Where errors come after all that is right, they change no curve and
        # are left out.
        two = (right if fix.errors_last else there).astype(np.uint32)
        two |= right.astype(np.uint32) << np.uint32(1)
        two <<= np.uint32(2 * number)
        # A fix that changes the class gives the row a twin there, with the bits of this fix alone.
        if category is not own:
            others = np.flatnonzero((category != own) & there)
            moved.append((others, category[others], two[others]))
            two[others] = 0
        bits |= two
    # Count the objects of each fix, [F, K].
    positive = np.stack(
        [np.bincount(truth.category[fix.positive], minlength=K) for fix in fixes.every.values()]
    )
    # Join rows and twins, and sort them by class and score; equal scores keep the order of the detections.
    place = np.concatenate([np.arange(len(rows)), *(one for one, _, _ in moved)])
    category = np.concatenate([own, *(of_class for _, of_class, _ in moved)])
    bits = np.concatenate([bits, *(two for _, _, two in moved)])
    order = stable_order(place, len(rows)) if moved else place
    order = order[group_order(category[order], score[place[order]])]
    in_class = np.bincount(category, minlength=K)
    totals = _Totals(tuple(fixes.every), in_class, positive, np.stack(kept), np.stack(true), fixes.counts)
    return _Rows(totals, np.append(0, np.cumsum(in_class)), score[place[order]], bits[order])


def _totals_of(rows: _Rows) -> _Totals:
    """Copy what is no row: nothing may hold on to the pages of what is stored."""
    return _Totals(rows.totals.names, *(values.copy() for values in rows.totals[1:]))


def _added(every: Sequence[_Totals]) -> _Totals:
    names, *columns = zip(*every, strict=True)
    return _Totals(names[0], *(np.sum(values, axis=0) for values in columns))


# ---------------------------------------------------------------- pieces


def _sample(rows: _Rows, blocks: Sequence[Any]) -> list[list[tuple[FloatArray, float]]]:
    from boxscore.distributed.pieces import sample_of_scores

    return [sample_of_scores(rows.score, rows.bounds[block.low : block.high + 1]) for block in blocks]


def _slices(rows: _Rows, piece: Any) -> list[slice]:
    """Return the rows of a piece, class by class."""
    from boxscore.distributed.pieces import range_bounds

    bounds = rows.bounds[piece.low : piece.high + 1]
    if not piece.is_range:
        return [slice(*pair) for pair in itertools.pairwise(bounds.tolist())]
    ends = range_bounds(rows.score, bounds, piece)
    return [slice(*pair) for pair in zip(*(side.tolist() for side in ends), strict=True)]


def _counted(rows: _Rows, ranges: Sequence[Any]) -> IntArray:
    """Count what is right and what is there under each fix, in each range of scores, [S, 2, F]."""
    counts = np.zeros((len(ranges), 2, len(rows.totals.names)), dtype=np.int64)
    for number, piece in enumerate(ranges):
        (of_class,) = _slices(rows, piece)
        for fix in range(counts.shape[2]):
            there, right = _two(rows.bits[of_class], fix)
            counts[number, :, fix] = np.count_nonzero(right), np.count_nonzero(there)
    return counts


def _before(pieces: Mapping[Any, Sequence[Any]], counted: Mapping[Any, IntArray]) -> dict[Any, IntArray]:
    """Add up what comes before each range of scores, [2, F]."""
    before: dict[Any, IntArray] = {}
    for ranges in pieces.values():
        if ranges[0] in counted:
            total = np.cumsum([counted[piece] for piece in ranges], axis=0)
            before |= {piece: so_far - counted[piece] for piece, so_far in zip(ranges, total, strict=True)}
    return before


def _cut(rows: _Rows, piece: Any) -> tuple[IntArray, FloatArray, NDArray[np.uint32]]:
    """Copy the rows of a piece: how many of each class, their scores, their bits."""
    slices = _slices(rows, piece)
    sizes = np.array([one.stop - one.start for one in slices], dtype=np.int64)
    score, bits = (np.concatenate([column[one] for one in slices]) for column in (rows.score, rows.bits))
    return sizes, score, bits


def _two(bits: NDArray[np.uint32], fix: int) -> tuple[BoolArray, BoolArray]:
    """Whether each row is there under a fix, and whether it is right."""
    return (bits & np.uint32(1 << 2 * fix)) != 0, (bits & np.uint32(2 << 2 * fix)) != 0


def _best_of_piece(
    cuts: Sequence[tuple[IntArray, FloatArray, NDArray[np.uint32]]],
    positive: IntArray,
    before: IntArray | None,
    rules: ApRules,
) -> FloatArray:
    """Merge, and return the best precision at or after each recall point under each fix, [F, k, R]."""
    # Join the pieces of all partitions and sort them by class and score; the sort is stable, so equal scores
    # keep the order of partitions.
    sizes, scores, states = zip(*cuts, strict=True)
    classes = np.arange(positive.shape[1], dtype=np.int32)
    category = np.concatenate([np.repeat(classes, of_class) for of_class in sizes])
    score: FloatArray = np.concatenate(scores)
    bits: NDArray[np.uint32] = np.concatenate(states)
    order = group_order(category, score)
    category, score, bits = category[order], score[order], bits[order]
    # Make the second order: errors first among equal scores of a class.
    new = np.zeros(len(score), dtype=np.int64)
    new[tie_starts(category, score)] = 1
    right = _two(bits, 0)[1]
    order = stable_order(2 * np.cumsum(new) + right, 2 * len(new) + 2)
    errors_first = bits[order]
    best = []
    # Compute the curve of each fix from its bits, with the counts of higher scores before it.
    for number, of_fix in enumerate(positive):
        there, right = _two(errors_first if number else bits, number)
        kept = np.flatnonzero(there)
        outcomes = Outcomes.all_counted(
            category[kept].astype(np.intp), score[kept], right[None, kept], of_fix
        )
        so_far = None if before is None else Before(*before[:, number, None, None])
        best.append(Curves(TruePositiveCounts(outcomes), rules, before=so_far).best[0])
    return np.stack(best)


def _curves(whole: _Totals, best: FloatArray, rules: ApRules) -> dict[str, Curves]:
    """Return the curves of each fix, of what its pieces came to, [F, K, R]."""
    curves = {}
    for number, name in enumerate(whole.names):
        objects = Totals.of_objects(whole.positive[number], 0, np.zeros_like(whole.rows), thresholds=1)
        totals = dataclasses.replace(
            objects,
            recalled=whole.true[number, None],
            counted=whole.kept[number, None],
            has_detections=whole.kept[number] > 0,
        )
        curves[name] = Curves(None, rules, totals=totals, state={"best": best[number, None]})
    return curves
