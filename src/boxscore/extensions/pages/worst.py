"""Find the worst classes, their main problem, and the most confident mistakes, for the top of a report.

Conventions
-----------
- The worst classes have the lowest values of the first summary metric, among classes with at least
  ``FEWEST_OBJECTS``. If fewer than :data:`MOST` classes have that many, those with the most objects are used.
  Ties put the class with more objects first.
- If most localized objects of a class are predicted as one other class, the report says so. Otherwise it
  names the kind of error with the highest cost (``extensions/diagnostics/tide.py``). Counts in the text refer
  to the score threshold of the page.
- Removing missed objects from the ground truth does not help a class without true positives. Their cost there
  is their fraction of the objects.
- An object is localized if a detection of any class overlaps it by the protocol's first IoU threshold. Its
  predicted class is its own class if it is matched, otherwise that of the detection with the largest overlap.
- The most confident mistakes are the false positives with the highest scores, one per image, with one per
  class before any class has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, IntArray
from boxscore._utils.text import counted, verb
from boxscore.diagnostics import error_types
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.confusion import EVERY_SCORE
from boxscore.extensions.diagnostics.naming_errors import ERROR_TYPES
from boxscore.extensions.diagnostics.tide import cost_unit, error_kinds
from boxscore.extensions.pages.gallery import Gallery
from boxscore.matching.outcomes import IGNORED, MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import ranked_by

MOST = 5
MOST_SUREST = 3
FEWEST_OBJECTS = 5
FEWEST_ALIKE = 3
"""Minimum objects predicted as one other class before the report mentions it."""

CROP_SHAPE = 4 / 3
"""Width over height of the region around a mistake."""

NEGLIGIBLE = 0.0005
"""Difference of AP that rounds to 0 in three decimals."""


class WorstClass(NamedTuple):
    """A class, its value, and its main problem."""

    row: int
    value: float
    kind: str = ""
    """One of ``ERROR_TYPES``; empty if no error at the page's score explains the low value."""
    text: str = ""
    cell: tuple[int, int] | None = None
    """True and predicted class behind the text, which ends with the other one of the two."""


class Worst(NamedTuple):
    """The worst classes, and the classes that they were chosen from."""

    classes: list[WorstClass]
    rule: str


def lowest_classes(evaluation: Evaluation) -> tuple[IntArray, str]:
    """Choose the worst classes, worst first, and describe the choice; none if there is only one class."""
    # Rank classes by the first metric that each of them has.
    values = evaluation.class_values
    if not evaluation.protocol.matching.per_class or not values:
        return np.empty(0, dtype=np.int64), ""
    metric, of_class = next(iter(values.items()))
    objects = evaluation.class_counts["ground_truths"]
    known = np.flatnonzero(np.isfinite(of_class) & (objects > 0))
    if len(known) < 2:
        return np.empty(0, dtype=np.int64), ""
    # Classes with few objects are low by chance: require a minimum that most can reach.
    least = min(FEWEST_OBJECTS, np.sort(objects[known])[-MOST:].min())
    enough = known[objects[known] >= least]
    # Put the worst first; ties by more objects.
    falls = metric in {
        evaluation.protocol.class_keys.get(key, key) for key in evaluation.protocol.lower_is_better
    }
    badness = of_class[enough] if falls else -of_class[enough]
    of = counted(len(enough), "class")
    minimum = f" with {counted(int(least), 'object')} or more" if len(enough) < len(known) else ""
    rule = f"{'Highest' if falls else 'Lowest'} {metric} of {of}{minimum}"
    return enough[np.lexsort((-objects[enough], -badness))][:MOST], rule


class ClassMistakes(NamedTuple):
    """Counts of the mistakes of C of the K classes at a score; those of disjoint images add up."""

    objects: IntArray
    """[C]"""
    missed: IntArray
    localized: IntArray
    called: IntArray
    """Localized objects by predicted class, if it is another one, [C, K]."""
    detections: IntArray
    """Detections that are not ignored, [C]."""
    kinds: IntArray
    """Detections by kind of error, [C, E]."""
    taken: IntArray
    """Detections with a classification error, by the class of the object, [C, K]."""

    @classmethod
    def of(cls, evaluation: Evaluation, classes: IntArray, score_threshold: float) -> ClassMistakes:
        """Count the mistakes in the images of an evaluation."""
        # Number the chosen classes; -1 excludes all others from the counts.
        truth, detections = evaluation.ground_truth, evaluation.detections
        C, K, E = len(classes), len(truth.categories), len(ERROR_TYPES)
        place = np.full(K, -1)
        place[classes] = np.arange(C)
        # Count objects by class: those that count, missed ones, and localized ones.
        above = ranked_by(detections) >= score_threshold
        outcome = evaluation.outcomes.truth(score_threshold)
        at, called = place[truth.category], _predicted(evaluation, above)
        objects, missed, localized = (
            np.bincount(at[(at >= 0) & chosen], minlength=C)
            for chosen in (outcome != IGNORED, outcome == MISSED, called >= 0)
        )
        # A flat index of two classes gives a table of confusions in one bincount.
        other = np.flatnonzero((at >= 0) & (called >= 0) & (called != truth.category))
        # Count detections by class, and their errors by kind in the same way.
        of_detection = place[detections.category]
        of_detection[~above] = -1
        shown = (of_detection >= 0) & (evaluation.outcomes.detection != IGNORED)
        kind, about = error_kinds(evaluation)
        wrong = np.flatnonzero((of_detection >= 0) & (kind >= 0))
        taken = wrong[kind[wrong] == ERROR_TYPES.index("classification")]
        return cls(
            objects,
            missed,
            localized,
            np.bincount(at[other] * K + called[other], minlength=C * K).reshape(C, K),
            np.bincount(of_detection[shown], minlength=C),
            np.bincount(of_detection[wrong] * E + kind[wrong], minlength=C * E).reshape(C, E),
            np.bincount(of_detection[taken] * K + truth.category[about[taken]], minlength=C * K).reshape(
                C, K
            ),
        )

    def __add__(self, other: ClassMistakes) -> ClassMistakes:  # type: ignore[override]
        """Add up the counts of disjoint images."""
        return ClassMistakes(*map(np.add, self, other))


def worst_classes(evaluation: Evaluation, mistakes: ClassMistakes, *, score_threshold: float) -> Worst:
    """Describe the main problem of the worst classes; ``mistakes`` are theirs at the score."""
    rows, rule = lowest_classes(evaluation)
    if not len(rows):
        return Worst([], "")
    of_class = next(iter(evaluation.class_values.values()))
    reasons = _Reasons(evaluation, rows, mistakes)
    classes = [reasons.of(at, float(of_class[k])) for at, k in enumerate(rows.tolist())]
    score = f"; counts use score >= {score_threshold:.3g}" if score_threshold > EVERY_SCORE else ""
    return Worst(classes, f"{rule}{score}.")


class Crop(NamedTuple):
    """A mistake in its surroundings: an image's record, the position of the box, and the shown region."""

    record: int
    box: int
    part: tuple[float, float, float, float]
    """Left, top, width and height, in pixels of the image."""


def surest_crops(gallery: Gallery, images: Sequence[int], *, most: int = MOST_SUREST) -> list[Crop]:
    """Show the highest-scoring false positive of each image, in the first image where it is drawn."""
    crops: list[Crop] = []
    for image in images:
        if len(crops) == most:
            break
        record = gallery.add(image)
        box = gallery.surest(record)
        if box is not None:
            crops.append(Crop(record, box, _surroundings(gallery.records[record], box)))
    return crops


def _surroundings(record: dict[str, Any], box: int) -> tuple[float, float, float, float]:
    """Return the region around a box, with the aspect :data:`CROP_SHAPE` if the image allows it."""
    x, y, width, height = record["boxes"][box][:4]
    wide, tall = max(record["width"], 1), max(record["height"], 1)
    # Include half of the box on each side, and enough context to recognize it.
    side = max(2 * width, 2 * height * CROP_SHAPE, 0.3 * wide, 0.3 * tall * CROP_SHAPE)
    part_width, part_height = min(side, wide), min(side / CROP_SHAPE, tall)
    left = min(max(x + width / 2 - part_width / 2, 0), wide - part_width)
    top = min(max(y + height / 2 - part_height / 2, 0), tall - part_height)
    return round(left, 1), round(top, 1), round(part_width, 1), round(part_height, 1)


class _Reasons:
    """Describes the main problem of classes, by position."""

    def __init__(self, evaluation: Evaluation, rows: IntArray, mistakes: ClassMistakes) -> None:
        self._rows, self._mistakes = rows, mistakes
        result = error_types(evaluation)
        errors, self._unit = result.per_class, cost_unit(result)
        self._cost = np.nan_to_num(errors.cost[rows, : len(ERROR_TYPES)])
        missed, objects = ERROR_TYPES.index("missed"), evaluation.class_counts["ground_truths"][rows]
        none = np.flatnonzero((errors.value[rows, 0] == 0) & (objects > 0))
        self._cost[none, missed] = errors.counts[rows[none], missed] / objects[none]

    def of(self, at: int, value: float) -> WorstClass:
        """Describe the kind of error that costs a class most."""
        k = int(self._rows[at])
        text, cell = self._confused(at, always=True)
        if text:
            return WorstClass(k, value, "classification", text, cell)
        order = np.argsort(-self._cost[at], kind="stable")
        kinds = [ERROR_TYPES[e] for e in order.tolist() if self._cost[at, e] > NEGLIGIBLE]
        for kind in [*kinds, "missed"]:
            text, cell = self._confused(at) if kind == "classification" else (self._text(at, kind), None)
            if text:
                return WorstClass(k, value, kind, text, cell)
        return WorstClass(k, value)

    def _text(self, at: int, kind: str) -> str:
        # Missed objects have their own description.
        missed, every = int(self._mistakes.missed[at]), int(self._mistakes.objects[at])
        if kind == "missed":
            if missed < every:
                return f"{missed:,} of {every:,} missed" if missed else ""
            return "its only object is missed" if every == 1 else f"all {every:,} missed"
        # State the count, the cost, and the misses if they are most of the class.
        count = int(self._mistakes.kinds[at, ERROR_TYPES.index(kind)])
        words = {
            "localization": "poorly localized",
            "both": "of the wrong class and poorly localized",
            "duplicate": "duplicate" if count == 1 else "duplicates",
            "background": "on the background",
        }
        if not count:
            return ""
        cost = f"{self._cost[at, ERROR_TYPES.index(kind)]:.3f} {self._unit}"
        also = f"; {missed:,} of {every:,} missed" if 2 * missed > every else ""
        return f"{count:,} of {self._detections(at)} {verb(count, 'are')} {words[kind]} ({cost}){also}"

    def _detections(self, at: int) -> str:
        return counted(int(self._mistakes.detections[at]), "detection")

    def _confused(self, at: int, *, always: bool = False) -> tuple[str, tuple[int, int] | None]:
        """Describe the most frequent confusion: as predicted class of its objects, or as true class.

        With ``always``, only report the class that most of its localized objects are predicted as.
        """
        k, lost, taken = int(self._rows[at]), self._mistakes.called[at], self._mistakes.taken[at]
        localized = int(self._mistakes.localized[at])
        if always and (2 * lost.max() <= localized or lost.max() < FEWEST_ALIKE):
            return "", None
        if not lost.any() and not taken.any():
            return "", None
        if always or lost.max() >= taken.max():
            other = int(lost.argmax())
            are = verb(int(lost[other]), "are")
            return f"{lost[other]:,} of {localized:,} localized {are} predicted as", (k, other)
        other = int(taken.argmax())
        are = verb(int(taken[other]), "are")
        return f"{taken[other]:,} of {self._detections(at)} {are} on", (other, k)


def _predicted(evaluation: Evaluation, above: BoolArray) -> NDArray[np.intp]:
    """Return the predicted class of each object, [G]; -1 if it is not localized, or ignored."""
    outcome = np.where(above, evaluation.outcomes.detection, IGNORED)
    ignored = evaluation._matcher.ignoring.ignored
    threshold = evaluation.protocol.matching.iou_thresholds[0]
    pairs = evaluation._matcher.across_classes(iou_threshold=threshold, by_foreground=ignored)
    usable = np.flatnonzero(~ignored[pairs.truth] & above[pairs.detection])
    truth, detection = pairs.truth[usable], pairs.detection[usable]
    order = np.lexsort((detection, -pairs.iou[usable], truth))
    first = order[np.flatnonzero(np.diff(truth[order], prepend=-1))]
    predicted = np.full(len(evaluation.ground_truth), -1, dtype=np.intp)
    predicted[truth[first]] = evaluation.detections.category[detection[first]]
    true = np.flatnonzero(outcome == TRUE_POSITIVE)
    matched = evaluation.outcomes.truth_row[true]
    predicted[matched] = evaluation.detections.category[true]
    return predicted
