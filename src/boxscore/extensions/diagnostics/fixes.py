"""Compute the curves of AP after fixing each kind of error, from fixes per image and scores per class.

Conventions
-----------
- Map: in each partition, every detection gets its error and every object its state. For each detection, a row
  keeps its class, its score, and two bits per fix: whether it remains and whether it is right. If a fix
  changes its class, a row of the new class holds the two bits of this fix.
- Exchange: the rows of a class are sorted by descending score, ties by image and rank. If something is fixed,
  errors come first among equal scores.
- With all false positives last, only true positives matter, so the rows of false positives are dropped.
- Every number is a quotient of whole numbers, so the order of images and the chunks of a class do not change
  it.
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
    """The data after fixing a kind of error."""

    category: NDArray[np.int32]  # [D]
    true: BoolArray  # [D]
    keep: BoolArray  # [D]
    positive: BoolArray  # [G]
    errors_last: bool = False
    """Whether detections that are not right are ranked after all that are."""


class Fixes(NamedTuple):
    """The fixes of some images."""

    rows: NDArray[np.intp]
    """Rows of the detections that took part, by image and descending score, [N]."""
    every: Mapping[str, Callable[[], Fix]]
    """Functions that make the fixes, by name; the first makes no fix. Each fix takes several bytes per row,
    so they are made one at a time."""
    counts: IntArray
    """Counts of errors; those of disjoint images add up."""


Fixed = Callable[..., Fixes]
"""Function of the evaluation of some images, and options."""


class _Known(NamedTuple):
    """Data of some images besides their rows; F fixes, K classes."""

    names: tuple[str, ...]
    errors_last: tuple[bool, ...]
    rows: IntArray  # [K]
    positive: IntArray  # [F, K]
    counts: IntArray


class _Numbers(NamedTuple):
    """Results of some classes, or of a chunk of one class, under each fix."""

    best: FloatArray
    """Best precision at or after each recall point, [F, k, R]."""
    true: IntArray  # [F, k]
    kept: IntArray  # [F, k]


def curves_of_fixes(
    evaluation: Evaluation, fixed: Fixed, options: Mapping[str, Any], rules: ApRules
) -> tuple[dict[str, Curves], IntArray]:
    """Return the curves of each fix, by name, and the counts of all errors."""
    # Each partition makes its own rows, and only sums per class are returned. Then each worker gathers the
    # rows of its classes and scores them under every fix.
    with source_of(evaluation).pieces("error types", _rows, {"fixed": fixed, "options": options}) as pieces:
        names, errors_last, *columns = zip(*pieces.results(_known), strict=True)
        rows, positive, counts = (np.sum(column, axis=0) for column in columns)
        count = functools.partial(_count, fixes=len(positive))
        blocks = pieces.by_class(rows, _numbers, count, positive, rules)
    # The envelope of a class is the maximum over its chunks, and counts add up, so chunking does not affect
    # rounding.
    numbers = zip(*(_combine_chunks(ranges) for ranges in blocks), strict=True)
    best, true, kept = (np.concatenate(column, axis=1) for column in numbers)
    curves = {}
    for number, (name, is_last) in enumerate(zip(names[0], errors_last[0], strict=True)):
        totals = dataclasses.replace(
            Totals.of_objects(positive[number], 0, np.zeros_like(rows), thresholds=1),
            recalled=true[number, None],
            counted=kept[number, None],
            # Errors that rank last are not in any row, but still are detections of their class.
            has_detections=kept[0 if is_last else number] > 0,
        )
        curves[name] = Curves(None, rules, totals=totals, state={"best": best[number, None]})
    return curves, counts


# ---------------------------------------------------------------- per partition of images


def _rows(evaluation: Evaluation, place: Place, *, fixed: Fixed, options: Mapping[str, Any]) -> ClassRows:
    """Sort the detections of some images by class, with the effect of each fix."""
    fixes = fixed(evaluation, **options)
    truth, given = evaluation.ground_truth, evaluation.detections.category
    K, rows = len(truth.categories), fixes.rows
    category, score, at = given[rows], ranked_by(evaluation.detections)[rows], np.arange(len(rows))
    bits, positive, errors_last = np.zeros(len(rows), dtype=np.uint32), [], []
    moved: list[tuple[NDArray[np.intp], NDArray[np.int32], NDArray[np.uint32]]] = []
    # Store two bits per fix in one word, so that one sort by class and score serves all fixes.
    for number, make in enumerate(fixes.every.values()):
        fix = make()
        there = fix.keep[rows]
        right = fix.true[rows] & there
        two = (right if fix.errors_last else there).astype(np.uint32)
        two |= right.astype(np.uint32) << np.uint32(1)
        two <<= np.uint32(2 * number)
        if fix.category is not given:
            # If the fix changes the class of a detection, it leaves its old class, and a row of the new class
            # exists only under this fix.
            of_fix = fix.category[rows]
            others = np.flatnonzero((of_fix != category) & there)
            moved.append((others, of_fix[others], two[others]))
            two[others] = 0
        bits |= two
        positive.append(np.bincount(truth.category[fix.positive], minlength=K))
        errors_last.append(fix.errors_last)
    if moved:
        # Place the new row at the position of its detection, so that equal scores stay in the order of image
        # and rank in every class.
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
    """Copy everything but the rows, so that no reference keeps the stored pages alive."""
    known: _Known = rows.known
    return known._replace(rows=known.rows.copy(), positive=known.positive.copy(), counts=known.counts.copy())


# ---------------------------------------------------------------- per class


def _bits_of_fix(bits: NDArray[np.uint32], fix: int) -> tuple[BoolArray, BoolArray]:
    """Return whether each row remains under a fix, and whether it is right."""
    return (bits & np.uint32(1 << 2 * fix)) != 0, (bits & np.uint32(2 << 2 * fix)) != 0


def _count(rows: ClassRows, fixes: int) -> IntArray:
    """Count the right and the remaining rows under each fix, [F, 2]."""
    every = (_bits_of_fix(rows.columns[0], fix) for fix in range(fixes))
    return np.array([[np.count_nonzero(right), np.count_nonzero(there)] for there, right in every])


def _numbers(
    rows: ClassRows, classes: Classes, before: IntArray | None, positive: IntArray, rules: ApRules
) -> _Numbers:
    """Score some classes, or a chunk of one class, under each fix."""
    category, score, bits = rows.category, rows.score, rows.columns[0]
    errors_first = _errors_first(category, score, bits)
    numbers = []
    for number, of_fix in enumerate(positive[:, classes.low : classes.high]):
        # Use only rows that remain; without a fix, equal scores keep their rank.
        there, right = _bits_of_fix(errors_first if number else bits, number)
        kept = np.flatnonzero(there)
        outcomes = Outcomes.all_counted(category[kept], score[kept], right[None, kept], of_fix)
        # Continue the counts of all higher scores of the class.
        so_far = None if before is None else Before(*before[number, :, None, None])
        counts = TruePositiveCounts(outcomes)
        best = Curves(counts, rules, before=so_far).best[0]
        numbers.append((best, counts.recalled[0], counts.counted[0]))
    return _Numbers(*(np.stack(column) for column in zip(*numbers, strict=True)))


def _errors_first(
    category: NDArray[np.int32], score: FloatArray, bits: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Put rows that are wrong without a fix before right ones, among equal scores of a class."""
    equal = (score[1:] == score[:-1]) & (category[1:] == category[:-1])
    # Sort only the tied rows, which are usually few.
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    key = 2 * np.append(0, np.cumsum(~equal))[tied] + _bits_of_fix(bits[tied], 0)[1]
    bits = bits.copy()
    bits[tied] = bits[tied[np.argsort(key, kind="stable")]]
    return bits


def _combine_chunks(ranges: Sequence[_Numbers]) -> _Numbers:
    """Combine the chunks of a class."""
    best, true, kept = zip(*ranges, strict=True)
    return _Numbers(np.maximum.reduce(best), np.sum(true, axis=0), np.sum(kept, axis=0))
