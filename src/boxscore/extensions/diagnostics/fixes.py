"""The curves of AP once a kind of error is fixed: images say what each fix does, and classes are scored.

Conventions
-----------
- Map: each detection of some images gets its error and each object its state. Of a detection a row stays: its
  class, its score, and two bits for each fix, whether it is still there and whether it is right. Where a fix
  gives it another class, a row of that class has the two bits of this fix.
- Exchange: rows of a class come together by descending score, equal ones by image and rank. Where something
  is fixed the errors come first among equal scores.
- With all false positives last, true positives alone decide: the rows of these are left out.
- Every number is a quotient of whole numbers: no order of images and no cut of a class decides a bit.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import group_order, stable_order
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.questions import Classes, ClassRows, Place, source_of
from boxscore.matching.ranking import ranked_by
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
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
    """What fixes make of some images."""

    rows: NDArray[np.intp]
    """Of the detections that took part, by image and descending score, [N]."""
    every: Mapping[str, Callable[[], Fix]]
    """By its name, the first that of no fix; one is made at a time, which takes several bytes a row."""
    counts: IntArray
    """Of errors; those of disjoint images add up."""


Fixed = Callable[..., Fixes]
"""Takes the evaluation of some images and options."""


class _Known(NamedTuple):
    """What some images say besides their rows; F fixes, K classes."""

    names: tuple[str, ...]
    errors_last: tuple[bool, ...]
    rows: IntArray  # [K]
    positive: IntArray  # [F, K]
    counts: IntArray


class _Numbers(NamedTuple):
    """What some classes, or a range of the scores of one, come to under each fix."""

    best: FloatArray
    """Best precision at or after each recall point, [F, k, R]."""
    true: IntArray  # [F, k]
    kept: IntArray  # [F, k]


def curves_of_fixes(
    evaluation: Evaluation, fixed: Fixed, options: Mapping[str, Any], rules: ApRules
) -> tuple[dict[str, Curves], IntArray]:
    """Return the curves of each fix, by its name, and the counts of all errors."""
    # Each place lays out its own rows; only sums per class come back. Then the rows of each class come
    # together where they are and are scored under every fix.
    with source_of(evaluation).pieces("error types", _rows, {"fixed": fixed, "options": options}) as pieces:
        names, errors_last, *columns = zip(*pieces.results(_known), strict=True)
        rows, positive, counts = (np.sum(column, axis=0) for column in columns)
        count = functools.partial(_counted, fixes=len(positive))
        blocks = pieces.by_class(rows, _numbers, count, positive, rules)
    # The envelope of a class is the largest of those of its ranges, and counts add up: no rounding depends on
    # how a class was cut.
    numbers = zip(*(_folded(ranges) for ranges in blocks), strict=True)
    best, true, kept = (np.concatenate(column, axis=1) for column in numbers)
    curves = {}
    for number, (name, is_last) in enumerate(zip(names[0], errors_last[0], strict=True)):
        totals = dataclasses.replace(
            Totals.of_objects(positive[number], 0, np.zeros_like(rows), thresholds=1),
            recalled=true[number, None],
            counted=kept[number, None],
            # Errors that come last have no row, and are detections of their class all the same.
            has_detections=kept[0 if is_last else number] > 0,
        )
        curves[name] = Curves(None, rules, totals=totals, state={"best": best[number, None]})
    return curves, counts


# ---------------------------------------------------------------- of some images


def _rows(evaluation: Evaluation, place: Place, *, fixed: Fixed, options: Mapping[str, Any]) -> ClassRows:
    """Lay out the detections of some images by class, with what each fix does to them."""
    fixes = fixed(evaluation, **options)
    truth, given = evaluation.ground_truth, evaluation.detections.category
    K, rows = len(truth.categories), fixes.rows
    category, score, at = given[rows], ranked_by(evaluation.detections)[rows], np.arange(len(rows))
    bits, positive, errors_last = np.zeros(len(rows), dtype=np.uint32), [], []
    moved: list[tuple[NDArray[np.intp], NDArray[np.int32], NDArray[np.uint32]]] = []
    # Two bits for each fix fit into a word, so that one sort by class and score serves all fixes.
    for number, make in enumerate(fixes.every.values()):
        fix = make()
        there = fix.keep[rows]
        right = fix.true[rows] & there
        two = (right if fix.errors_last else there).astype(np.uint32)
        two |= right.astype(np.uint32) << np.uint32(1)
        two <<= np.uint32(2 * number)
        if fix.category is not given:
            # A detection that the fix gives another class leaves its own: a row of the new class is there
            # under this fix alone.
            of_fix = fix.category[rows]
            others = np.flatnonzero((of_fix != category) & there)
            moved.append((others, of_fix[others], two[others]))
            two[others] = 0
        bits |= two
        positive.append(np.bincount(truth.category[fix.positive], minlength=K))
        errors_last.append(fix.errors_last)
    if moved:
        # A further row stands where the row of its detection does: equal scores stay in order of image and
        # rank, whichever class they are of.
        at = np.concatenate([at, *(one for one, _, _ in moved)])
        order = stable_order(at, len(rows))
        at = at[order]
        category = np.concatenate([category, *(of_class for _, of_class, _ in moved)])[order]
        bits = np.concatenate([bits, *(two for _, _, two in moved)])[order]
        score = score[at]
    # Sort by class and score, and count each class.
    order = group_order(category, score)
    sizes = np.bincount(category, minlength=K)
    known = _Known(tuple(fixes.every), tuple(errors_last), sizes, np.stack(positive), fixes.counts)
    return ClassRows(np.append(0, np.cumsum(sizes)), score[order], (bits[order],), known)


def _known(rows: ClassRows) -> _Known:
    """Copy what is no row: nothing may hold on to the pages of what is stored."""
    known: _Known = rows.known
    return known._replace(rows=known.rows.copy(), positive=known.positive.copy(), counts=known.counts.copy())


# ---------------------------------------------------------------- of some classes


def _two(bits: NDArray[np.uint32], fix: int) -> tuple[BoolArray, BoolArray]:
    """Whether each row is there under a fix, and whether it is right."""
    return (bits & np.uint32(1 << 2 * fix)) != 0, (bits & np.uint32(2 << 2 * fix)) != 0


def _counted(rows: ClassRows, fixes: int) -> IntArray:
    """Count what is right and what is there under each fix, [F, 2]."""
    every = (_two(rows.columns[0], fix) for fix in range(fixes))
    return np.array([[np.count_nonzero(right), np.count_nonzero(there)] for there, right in every])


def _numbers(
    rows: ClassRows, classes: Classes, before: IntArray | None, positive: IntArray, rules: ApRules
) -> _Numbers:
    """Score some classes, or a range of the scores of one, under each fix."""
    category, score, bits = rows.category, rows.score, rows.columns[0]
    errors_first = _errors_first(category, score, bits)
    numbers = []
    for number, of_fix in enumerate(positive[:, classes.low : classes.high]):
        # Only rows that are there take part; with no fix equal scores stay as they were ranked.
        there, right = _two(errors_first if number else bits, number)
        kept = np.flatnonzero(there)
        outcomes = Outcomes.all_counted(category[kept], score[kept], right[None, kept], of_fix)
        # A range continues the counts of all higher scores of its class.
        so_far = None if before is None else Before(*before[number, :, None, None])
        counts = TruePositiveCounts(outcomes)
        best = Curves(counts, rules, before=so_far).best[0]
        numbers.append((best, counts.recalled[0], counts.counted[0]))
    return _Numbers(*(np.stack(column) for column in zip(*numbers, strict=True)))


def _errors_first(
    category: NDArray[np.int32], score: FloatArray, bits: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Put what is wrong without a fix before what is right, where scores of a class are equal."""
    equal = (score[1:] == score[:-1]) & (category[1:] == category[:-1])
    # Rows alone with their score stay: only tied ones, mostly few, are sorted.
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    key = 2 * np.append(0, np.cumsum(~equal))[tied] + _two(bits[tied], 0)[1]
    bits = bits.copy()
    bits[tied] = bits[tied[np.argsort(key, kind="stable")]]
    return bits


def _folded(ranges: Sequence[_Numbers]) -> _Numbers:
    """Put the ranges of a class together."""
    best, true, kept = zip(*ranges, strict=True)
    return _Numbers(np.maximum.reduce(best), np.sum(true, axis=0), np.sum(kept, axis=0))
