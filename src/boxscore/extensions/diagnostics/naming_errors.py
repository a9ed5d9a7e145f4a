"""Classify each detection and each object by TIDE's kinds of error.

Conventions
-----------
- The rules are those of :mod:`boxscore.extensions.diagnostics.tide`.
- With scores, the matching is TIDE's own. Without scores, it is the protocol's, at one of its thresholds, and
  all detections take part, because they cannot be ranked. A detection that the protocol ignores is then not
  an error. Each kind of fix can serve an object once, instead of all kinds together, because no score ranks
  the errors on it. If overlaps are equal, an unmatched object comes first; then class and box decide, never
  file order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import group_order, is_first, run_starts
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import (
    check_overlaps,
    greedy_one_to_one,
    threshold_index,
    warn_of_subsets,
)
from boxscore.matching.matcher import CrossPairs
from boxscore.matching.outcomes import IGNORED, TRUE_POSITIVE, outcomes_by_row

ERROR_TYPES = ("classification", "localization", "both", "duplicate", "background", "missed")
NO_ERROR = -1
MOST_DETECTIONS = 100
"""Detections per image over all classes, if detections are ranked."""


class Errors(NamedTuple):
    """The classification of each row of the two tables."""

    # Detections within max detections, by image (ascending id) and score.
    rows: NDArray[np.intp]
    # [D] by table row.
    true: BoolArray
    excused: BoolArray  # [D]
    # [D] position in ERROR_TYPES, or NO_ERROR.
    kind: NDArray[np.int8]
    # [D] ground truth of a localization or classification error.
    object_row: NDArray[np.intp]
    # [D] whether fixing this error makes it a true positive.
    fixes: BoolArray
    # [G] not ignored.
    positive: BoolArray
    matched: BoolArray  # [G]
    missed: BoolArray  # [G]


class _Matching(NamedTuple):
    """The matching that errors are derived from."""

    true: BoolArray  # [D]
    # [D] neither true nor false positive.
    excused: BoolArray
    # [D] excused, and not classified as an error.
    unnamed: BoolArray
    counted: BoolArray  # [G]
    matched: BoolArray  # [G]


def named_errors(
    evaluation: Evaluation, *, iou_threshold: float, background_iou: float, max_detections: int
) -> Errors:
    """Match and classify every error; options must have been checked."""
    options = {"iou_threshold": iou_threshold, "background_iou": background_iou}
    check_options(evaluation, **options, max_detections=max_detections, ranked=evaluation.detections.scored)
    return errors_of(evaluation, **options, max_detections=max_detections)


def errors_of(
    evaluation: Evaluation, *, iou_threshold: float, background_iou: float, max_detections: int
) -> Errors:
    """Match and classify every error, once per evaluation and options."""
    return evaluation._once(
        ("errors of TIDE", iou_threshold, background_iou, max_detections),
        lambda: _name_errors(evaluation, iou_threshold, background_iou, max_detections),
    )


def check_options(
    evaluation: Evaluation,
    *,
    iou_threshold: float,
    background_iou: float,
    max_detections: int,
    ranked: bool,
) -> None:
    """Reject options out of range, and warn about subsets of objects."""
    check_overlaps(iou_threshold, background_iou)
    checks.whole_number(max_detections, 1, name="max_detections")
    if not ranked:
        threshold_index(evaluation, iou_threshold)
        if max_detections != MOST_DETECTIONS:
            rule = "not be used if detections lack scores"
            raise InputError(
                "max_detections",
                rule,
                got=max_detections,
                cause="without scores nothing decides which to keep",
            )
    warn_of_subsets(evaluation, "error types are")


def _name_errors(
    evaluation: Evaluation, iou_threshold: float, background_iou: float, max_detections: int
) -> Errors:
    # Find all overlapping pairs across classes; overlap with ignored objects is relative to the detection's
    # area.
    truth, detections = evaluation.ground_truth, evaluation.detections
    ranked = detections.scored
    pairs = evaluation._matcher.across_classes(
        iou_threshold=background_iou,
        max_detections=max_detections if ranked else None,
        by_foreground=evaluation._matcher.ignoring.ignored,
    )
    # Match as TIDE does; without scores, take the protocol's matching and sort pairs by content.
    if ranked:
        matching = _as_tide(evaluation, pairs, iou_threshold)
    else:
        matching = _as_protocol(evaluation, iou_threshold)
        pairs = _by_box(evaluation, pairs, matching.matched)
    # Split pairs by same or different class; treat uncounted objects as regions.
    true, excused, unnamed, counted, matched = matching
    same_class = truth.category[pairs.truth] == detections.category[pairs.detection]
    region = ~counted[pairs.truth]
    D, G = len(detections), len(truth)

    def best(allowed: BoolArray) -> tuple[NDArray[np.intp], FloatArray]:
        return largest_overlaps(pairs.detection, pairs.truth, pairs.iou, allowed, D)

    # Get the largest overlap of each detection with an object of its class, of another class, and with a
    # matched one, [D] each.
    same_row, same = best(same_class & ~region)
    other_row, other = best(~same_class & ~region)
    _, taken = best(same_class & ~region & matched[pairs.truth])
    # Apply TIDE's rules in order; ``np.select`` takes the first that holds.
    rules = [
        (same >= background_iou) & (same <= iou_threshold),
        other >= iou_threshold,
        taken >= iou_threshold,
        np.maximum(same, other) <= background_iou,
    ]
    order = [
        ERROR_TYPES.index(name) for name in ("localization", "classification", "duplicate", "background")
    ]
    kind = np.select(rules, order, ERROR_TYPES.index("both")).astype(np.int8)
    # True positives, excused detections and detections beyond the limit are not errors.
    took_part = np.zeros(D, dtype=bool)
    took_part[pairs.rows] = True
    kind[true | unnamed | ~took_part] = NO_ERROR

    # A localization or classification error refers to one object. It is fixed if the object is unmatched and
    # no higher-scoring error refers to it: candidates come by descending score, so the first one of each
    # object wins.
    about = np.where(kind == ERROR_TYPES.index("localization"), same_row, other_row)
    open_object = (kind == 0) | (kind == 1)
    open_object &= ~matched[about] if G else False
    fixes, usable = np.zeros(D, dtype=bool), np.zeros(G, dtype=bool)
    # Sorted by image and descending score.
    candidates = pairs.rows[open_object[pairs.rows]]
    share = about[candidates] if ranked else 2 * about[candidates] + kind[candidates]
    fixes[candidates[is_first(share)]] = True
    usable[about[candidates]] = True
    # Objects without a match or such an error are missed.
    missed = counted & ~matched & ~usable
    return Errors(pairs.rows, true, excused, kind, about, fixes, counted, matched, missed)


def _as_tide(evaluation: Evaluation, pairs: CrossPairs, iou_threshold: float) -> _Matching:
    """Match by descending score, each detection to the free object with the largest overlap."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    same_class = truth.category[pairs.truth] == detections.category[pairs.detection]
    ignored = evaluation._matcher.ignoring.ignored
    region = ignored[pairs.truth]
    D, G = len(detections), len(truth)
    # Sort the same-class pairs that reach the threshold by score, then overlap; the greedy pass takes each
    # row once.
    match = np.flatnonzero(same_class & ~region & (pairs.iou >= iou_threshold))
    # Already sorted by image and descending score.
    if len(match):
        match = match[group_order(_runs(pairs.detection[match]), pairs.iou[match])]
    match = match[greedy_one_to_one(pairs.detection[match], pairs.truth[match])]
    # Mark the matches, and excuse detections covered by an ignored region of their class.
    true, matched, excused = np.zeros(D, dtype=bool), np.zeros(G, dtype=bool), np.zeros(D, dtype=bool)
    true[pairs.detection[match]] = True
    matched[pairs.truth[match]] = True
    excused[pairs.detection[same_class & region & (pairs.iou > iou_threshold)]] = True
    unjudged = evaluation._matcher.inexhaustive & ~true
    return _Matching(true, (excused & ~true) | unjudged, unjudged, ~ignored, matched)


def _as_protocol(evaluation: Evaluation, iou_threshold: float) -> _Matching:
    """Take the protocol's matching at one of its thresholds."""
    outcomes = outcomes_by_row(
        evaluation.matched,
        len(evaluation.detections),
        len(evaluation.ground_truth),
        threshold=threshold_index(evaluation, iou_threshold),
    )
    true = outcomes.detection == TRUE_POSITIVE
    matched = np.zeros(len(evaluation.ground_truth), dtype=bool)
    matched[outcomes.truth_row[true]] = True
    ignored = outcomes.detection == IGNORED
    return _Matching(true, ignored, ignored, outcomes.counted, matched)


def _by_box(evaluation: Evaluation, pairs: CrossPairs, matched: BoolArray) -> CrossPairs:
    """Sort the pairs of each detection: unmatched objects first, then by class and box."""
    truth = evaluation.ground_truth
    keys = (*truth.boxes.T[::-1], truth.category, matched)
    order = np.lexsort((*(key[pairs.truth] for key in keys), pairs.position))
    return CrossPairs(
        pairs.rows, pairs.detection[order], pairs.truth[order], pairs.iou[order], pairs.position[order]
    )


def _runs(values: NDArray[np.intp]) -> NDArray[np.intp]:
    """Assign numbers to runs of equal values; return the run of each value, [N]."""
    return np.append(0, np.cumsum(values[1:] != values[:-1]))


def largest_overlaps(
    rows: NDArray[np.intp], partners: NDArray[np.intp], overlap: FloatArray, allowed: BoolArray, count: int
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the partner with the largest overlap for each row (ties: the first), and that overlap.

    The pairs [P] of a row are contiguous. Results are [count], with -1 and 0 for a row without an allowed
    pair.
    """
    nearest, largest = np.full(count, -1, dtype=np.intp), np.zeros(count)
    chosen = np.flatnonzero(allowed)
    if not len(chosen):
        return nearest, largest
    row, value = rows.take(chosen), overlap.take(chosen)
    # Reduce each run of pairs to its largest overlap, then find the first pair that has it; this vectorizes
    # over rows.
    starts = run_starts(row)
    best = np.maximum.reduceat(value, starts)
    equal = np.flatnonzero(value == np.repeat(best, np.diff(starts, append=len(chosen))))
    first = equal[np.searchsorted(equal, starts)]
    of = row[starts]
    nearest[of], largest[of] = partners[chosen[first]], best
    return nearest, largest
