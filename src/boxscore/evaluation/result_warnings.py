"""Warn of what may make the numbers of an evaluation wrong, when it is made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.numbering import (
    AS_THEY_ARE,
    BY_EVIDENCE,
    FEW_IMAGES,
    FEWEST,
    FEWEST_OF_CLASS,
    InferredClassMap,
    infer_class_map,
    mapped_rows,
    with_classes,
)
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import BoxscoreError, BoxscoreWarning
from boxscore.evaluation.result import Evaluation, matched_tables, without_matches_of_id_zero
from boxscore.formats.reading import LeftOut
from boxscore.matching.ignoring import zero_ids
from boxscore.matching.preparing import prepared
from boxscore.scoring.kinds import kinds_of
from boxscore.scoring.summary import summary_total

MANY = 0.3
"""Share of the best detections that match their class from which nothing is odd about its number."""
SAMPLED = 4096
"""Scores among which the one is sought from which there are as many detections as objects."""
RISE = 0.05
"""Least rise of the first metric that speaks for other class numbers."""
SAID_OF_NUMBERING = "said of numbering"
"""The key under which a result has that its classes were said to be numbered differently."""


@contextlib.contextmanager
def held_back() -> Iterator[list[BoxscoreWarning]]:
    """Yield a list of warnings to hold back; those left in it at the end, or at an error, are issued then."""
    held: list[BoxscoreWarning] = []
    try:
        yield held
    finally:
        for warning in held:
            warn_user(warning)


def warn_of_metrics(result: Evaluation) -> None:
    """Let each kind of metric warn of what makes its numbers wrong."""
    for kind in kinds_of(result.protocol):
        if kind.check is not None:
            kind.check(result)


def warn_of_id_zero(result: Evaluation) -> None:
    """Warn that pycocotools would read a match with annotation 0 as no match; say what it would print."""
    # Only pycocotools' own matching has this difference.
    rules, matched = result.protocol.matching, result.matched
    if rules.annotation_id_zero == "unmatched" or rules.candidate != "best_available":
        return
    zero = zero_ids(result.ground_truth.ids)
    if not zero.any():
        return
    # Only a match that counts makes one.
    count = int(zero[matched.truth_row[matched.pair_truth[matched.pairs_ever_true(0)]]].sum())
    if not count:
        return
    # Compute the first metric both ways, so that the warning has its size.
    here = there = ""
    if result.protocol.rows:
        row = result.protocol.rows[0]
        here, there = (
            f": {row.key} {summary_total(row, each.protocol, each.curves_of):.4f}"
            for each in (result, without_matches_of_id_zero(result))
        )
    warn_user(
        f"{result.ground_truth.source}: an annotation has id 0. It counts like any other{here}; "
        f"pycocotools treats a match with it as no match ({counted(count, 'true positive')} here){there}. "
        "For pycocotools' number choose "
        'matching.annotation_id_zero = "unmatched" in the protocol, or --annotation-id-zero unmatched.',
    )


def warn_of_numbering(result: Evaluation, workers: int) -> None:
    """Warn that the detections evidently number their classes otherwise; say what both readings score."""
    # Cheap tests first: most files are numbered as the ground truth is.
    ground_truth, detections, protocol = result.ground_truth, result.detections, result.protocol
    if not protocol.matching.per_class or not protocol.rows or protocol.similarity == "keypoints":
        return
    if len(ground_truth.categories) < 2 or _all_looks_right(result):
        return
    # The boxes of a few images show another numbering.
    guess = infer_class_map(ground_truth, detections, most=FEW_IMAGES)
    if guess.name in (None, AS_THEY_ARE):
        return
    # Read the file again under it, or renumber the table where that is not possible.
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
            f" without the {counted(left_out, 'detection')} that {verb(left_out, 'are')} left out as they "
            f"are; a map reads {'it' if left_out == 1 else 'them'} too, so the result will differ"
        )
    named = "" if guess.name == BY_EVIDENCE else f"{guess.name} or "
    text = (
        f"{detections.source}: classes seem to be numbered differently: {guess}. {row.key} is {here:.4f} as "
        f"they are, and {there:.4f} that way{without}. Read the detections with --class-map {named}auto "
        "(in Python class_map= of load_detections)."
    )
    warning = BoxscoreWarning(text, code="classes-numbered-differently", severity="error")
    warn_user(warning)
    result.once(SAID_OF_NUMBERING, lambda: True)


def _read_again(
    ground_truth: GroundTruth, detections: Detections
) -> tuple[InferredClassMap, Detections] | None:
    """Read the file with the detections that were left out; None where there is none, or it cannot be."""
    if not isinstance(detections.left_out, LeftOut) or detections.left_out.renumbered is None:
        return None
    try:
        return detections.left_out.renumbered(ground_truth)
    except (BoxscoreError, OSError):
        return None


def _all_looks_right(result: Evaluation) -> bool:
    """Whether no class was left out, and many of the best detections match an object of their class."""
    matched = result.matched
    counted = int(matched.positives(0).sum())
    if counted < FEWEST or not len(matched):
        return True  # too few to judge
    if result.detections.left_out:
        return False
    # Find the score of about as many best detections as there are objects, from a sample: an exact count is
    # not needed.
    sample = matched.score[:: len(matched) // SAMPLED + 1]
    below = max(len(sample) - max(counted * len(sample) // len(matched), 1), 0)
    # Count these detections, and the true positives among them, by class. Both ascend in class order, so
    # bisection counts them.
    best = np.flatnonzero(matched.score >= np.partition(sample, below)[below])
    starts = matched.class_starts
    of_class = np.diff(np.searchsorted(best, starts))
    true = matched.pair_detection[matched.pairs_ever_true(0)]
    true_of_class = np.searchsorted(true, starts[:-1] + of_class) - np.searchsorted(true, starts[:-1])
    # A class whose best detections never match can be one; two can be swapped.
    if ((of_class >= FEWEST_OF_CLASS) & (true_of_class == 0)).sum() > 1:
        return False  # two classes may be swapped
    return bool((true_of_class[of_class > 0] / of_class[of_class > 0]).mean() >= MANY)
