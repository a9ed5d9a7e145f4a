"""Warn about data problems that may make the numbers of a new evaluation wrong."""

from __future__ import annotations

from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.hints import SAID_OF_NUMBERING
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import BoxscoreError, BoxscoreWarning
from boxscore.evaluation.result import Evaluation, matched_tables, without_matches_of_id_zero
from boxscore.extensions.hints.left_out import LeftOut
from boxscore.extensions.hints.numbering import (
    AS_THEY_ARE,
    BY_EVIDENCE,
    FEW_IMAGES,
    InferredClassMap,
    infer_class_map,
    mapped_rows,
    with_classes,
)
from boxscore.matching.ignoring import prepared, zero_ids
from boxscore.scoring.summary import summary_total

RISE = 0.05
"""Minimum rise of the first metric that suggests other class numbers."""


def warn_of_id_zero(result: Evaluation) -> None:
    """Warn that pycocotools would treat a match with annotation 0 as unmatched, with its numbers."""
    # Only the matching of pycocotools has this bug.
    rules, matched = result.protocol.matching, result.matched
    if rules.annotation_id_zero == "unmatched" or rules.candidate != "best_available":
        return
    zero = zero_ids(result.ground_truth.ids)
    if not zero.any():
        return
    # Only matches that count matter.
    count = int(zero[matched.truth_row[matched.pair_truth[matched.pairs_ever_true(0)]]].sum())
    if not count:
        return
    # Compute the first metric both ways, so that the warning states the effect.
    here = there = ""
    if result.protocol.rows:
        row = result.protocol.rows[0]
        here, there = (
            f": {row.key} {summary_total(row, each.protocol, each.curves_of):.4f}"
            for each in (result, without_matches_of_id_zero(result))
        )
    warn_user(
        f"{result.ground_truth.source}: an annotation has id 0. boxscore counts it like any other{here}; "
        f"pycocotools does not count matches with it ({counted(count, 'true positive')} here){there}. "
        "For the number of pycocotools use --annotation-id-zero unmatched, or "
        'matching.annotation_id_zero = "unmatched" in the protocol.',
    )


def warn_of_numbering(result: Evaluation, workers: int, renaming: str = "") -> None:
    """Warn that the detections evidently number their classes differently, with both scores."""
    ground_truth, detections, protocol = result.ground_truth, result.detections, result.protocol
    # A few images suffice to recognize another numbering.
    guess = infer_class_map(ground_truth, detections, most=FEW_IMAGES)
    if guess.name in (None, AS_THEY_ARE):
        return
    # Read the file again with it, or renumber the table if that is not possible.
    again = _read_again(ground_truth, detections)
    if again is None:
        rows = mapped_rows(guess.pairs, ground_truth.categories, ground_truth.categories)
        renumbered = with_classes(detections, ground_truth.categories, rows)
    else:
        guess, renumbered = again
        renumbered = prepared(ground_truth, renumbered, protocol)[1]
    # Score both; a numbering that does not raise the first metric is not mentioned.
    other = matched_tables(ground_truth, renumbered, protocol, workers)
    row = protocol.rows[0]
    here, there = (summary_total(row, protocol, each.curves_of) for each in (result, other))
    if not there > here + RISE:
        return
    # Detections that are left out now would count then.
    left_out = sum(detections.left_out.values())
    without = ""
    if left_out and again is None:
        without = (
            f" (without the {counted(left_out, 'detection')} of unknown classes, which a class map would "
            "include)"
        )
    named = "" if guess.name == BY_EVIDENCE else f"{guess.name} or "
    remedy = renaming or f"Use --class-map {named}auto (in Python class_map= of load_detections)"
    text = (
        f"{detections.source}: classes seem to be numbered differently: {guess}. {row.key} is {here:.4f} "
        f"now and would be {there:.4f}{without}. {remedy}."
    )
    warning = BoxscoreWarning(text, code="classes-numbered-differently", severity="error")
    warn_user(warning)
    result._once(SAID_OF_NUMBERING, lambda: True)


def _read_again(
    ground_truth: GroundTruth, detections: Detections
) -> tuple[InferredClassMap, Detections] | None:
    """Read the file with the left-out detections; None without any, or if it cannot be read again."""
    if not isinstance(detections.left_out, LeftOut) or detections.left_out.renumbered is None:
        return None
    try:
        return detections.left_out.renumbered(ground_truth)
    except (BoxscoreError, OSError):
        return None
