"""Choose the annotator of each image with whom the detections agree best.

Conventions
-----------
- The result of an image for an annotator is the mean F1 over the IoU thresholds, from counts with
  :data:`EPSILON` in the denominators. An image without objects and detections has the best possible result.
- Ties go to the first annotator, in the order in which the image lists them, or otherwise by name.
- An annotator who is listed for an image without objects in it states that the image is empty.

References
----------
https://github.com/facebookresearch/sam3, ``sam3/eval/cgf1_eval.py`` (``_select_best_scoring``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import select_rows
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.ignoring import Ignoring
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.labels import ANNOTATOR, ANNOTATORS, BETWEEN, EXHAUSTIVE

EPSILON = 1e-4
"""Added by SAM 3 to every denominator of counts."""


class SmoothedRates(NamedTuple):
    """Rates from counts, with :data:`EPSILON` in every denominator; arrays of one shape."""

    precision: FloatArray
    recall: FloatArray
    f1: FloatArray

    @classmethod
    def of(cls, true: NDArray[Any], false: NDArray[Any], missed: NDArray[Any]) -> SmoothedRates:
        """Divide counts of true positives, false positives and missed objects."""
        precision, recall = true / (true + false + EPSILON), true / (true + missed + EPSILON)
        return cls(precision, recall, 2 * precision * recall / (precision + recall + EPSILON))


def warn_of_annotators(ground_truth: GroundTruth, protocol: Protocol) -> None:
    """Warn if objects of several annotators of an image count together, or image columns are missing."""
    column, images = ground_truth.columns.get(ANNOTATOR), ground_truth.images.columns
    labels, source = protocol.labels, ground_truth.source
    # Warn if a rule reads an image column that does not exist.
    if labels.inexhaustive_images == "drop" and EXHAUSTIVE not in images:
        warn_user(
            f"{source}: images do not say whether they are fully annotated (column {EXHAUSTIVE}); "
            f"{protocol.name} assumes that all are."
        )
    if column is not None and labels.annotators == "best" and ANNOTATORS not in images:
        warn_user(
            f"{source}: images do not name their annotators (column {ANNOTATORS}); assuming that "
            "annotators without objects in an image have not seen it."
        )
    if column is None or labels.annotators != "all":
        return
    # Count the images that several annotators labeled, from distinct (image, annotator) pairs.
    names, of_row = np.unique([str(name) for name in column.tolist()], return_inverse=True)
    pairs = np.unique(ground_truth.image.astype(np.int64) * max(len(names), 1) + of_row)
    several = int((np.bincount(pairs // max(len(names), 1)) > 1).sum())
    if several:
        warn_user(
            f"{ground_truth.source}: the objects of {counted(len(names), 'annotator')} "
            f"({', '.join(names[:5].tolist())}) count together in {counted(several, 'image')}: what two of "
            "them saw is there twice. Give one annotator's file, or take a protocol that chooses one, "
            "such as cgf1."
        )


def exhaustive_images(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Drop the images whose column says that they are not annotated exhaustively."""
    if EXHAUSTIVE not in ground_truth.images.columns:
        return ground_truth, detections
    exhaustive = np.flatnonzero(ground_truth.images.columns[EXHAUSTIVE])
    return select_rows(ground_truth, detections, images=exhaustive)


def ignoring_other_annotators(
    ground_truth: GroundTruth,
    protocol: Protocol,
    ignoring: Ignoring,
    matched: Callable[[GroundTruth, Protocol], Matches] | None,
) -> Ignoring:
    """Delete the objects of all but the best-agreeing annotator of each image."""
    if matched is None:
        return ignoring
    match = matched
    labels = protocol.labels.replaced(annotators="all")
    alone = protocol.replaced(labels=labels)
    others = of_other_annotators(ground_truth, lambda truth: match(truth, alone))
    return ignoring._replace(ignored=ignoring.ignored | others, deleted=ignoring.deleted | others)


def of_other_annotators(ground_truth: GroundTruth, matched: Callable[[GroundTruth], Matches]) -> BoolArray:
    """Return whether each ground truth belongs to an annotator who does not count in its image, [G].

    ``matched`` returns the matches of some of the ground truths with all detections.
    """
    column = ground_truth.columns.get(ANNOTATOR)
    if column is None:
        return np.zeros(len(ground_truth), dtype=bool)
    names = [str(name) for name in column.tolist()]
    named = _annotators_of_images(ground_truth, names)
    order = {name: number for number, name in enumerate(dict.fromkeys(n for each in named for n in each))}
    of_row = np.array([order.get(name, -1) for name in names], dtype=np.intp)
    best, chosen = np.full(len(named), -1.0), np.zeros(len(named), dtype=np.intp)
    for name, number in order.items():
        has_annotated = np.array([name in each for each in named])
        result = _results(matched(ground_truth.take(np.flatnonzero(of_row == number))))
        better = has_annotated & (result > best)
        best[better], chosen[better] = result[better], number
    return np.asarray(of_row != chosen[ground_truth.image])


def _annotators_of_images(ground_truth: GroundTruth, names: list[str]) -> list[list[str]]:
    """Return the annotators of each image: those that it lists, or those of its objects by name."""
    given = ground_truth.images.columns.get(ANNOTATORS)
    if given is not None:
        return [[] if each is None else str(each).split(BETWEEN) for each in given.tolist()]
    found: list[set[str]] = [set() for _ in range(len(ground_truth.images))]
    for image, name in zip(ground_truth.image.tolist(), names, strict=True):
        found[image].add(name)
    return [sorted(each) for each in found]


def _results(matches: Matches) -> FloatArray:
    """Return the result of each image, [I]; greater is better."""
    images = len(matches.images)
    objects = np.bincount(matches.truth_image[matches.counted(0)], minlength=images)
    detections = np.bincount(matches.image[matches.inside(0)], minlength=images)
    true = np.empty((images, matches.threshold_count), dtype=np.int64)
    for t in range(matches.threshold_count):
        pairs = matches.pairs_true(t, 0)
        true[:, t] = np.bincount(matches.image[matches.pair_detection[pairs]], minlength=images)
    f1 = SmoothedRates.of(true, detections[:, None] - true, objects[:, None] - true).f1
    return np.where((objects == 0) & (detections == 0), np.inf, f1.mean(axis=1))
