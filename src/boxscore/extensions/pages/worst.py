"""The worst classes, what is wrong with them, and the surest mistakes: what a report points at first.

Conventions
-----------
- Worst are the lowest values of the first summary metric, of classes with ``FEWEST_OBJECTS`` or more; where
  fewer than :data:`MOST` classes have as many, of those with most objects. Of equal classes the one with more
  objects comes first.
- Where most of a class's localised objects are predicted as one other class, that is said. Else it is said
  to be wrong in the kind of error that costs it most (``extensions/diagnostics/tide.py``). The counts in the
  text are those at the score threshold of the page.
- To leave missed objects out of the ground truth is no gain for a class without true positives: there they
  cost their share of the objects.
- An object is localised where a detection of any class overlaps it by the protocol's first IoU threshold. It
  is predicted as its own class where it is matched, else as the class of the detection that overlaps it most.
- The surest mistakes are the false positives with the highest scores, one of an image, and one of a class
  before there are more of any.
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
"""Objects that are predicted as one other class before that is said to be what is wrong."""

CROP_SHAPE = 4 / 3
"""Width by height of the part of an image around a mistake."""

NEGLIGIBLE = 0.0005
"""Of AP: rounds to nothing in three decimals."""


class WorstClass(NamedTuple):
    """A class, its value, and what it is mostly wrong in."""

    row: int
    value: float
    kind: str = ""
    """One of ``ERROR_TYPES``; empty where no error at the page's score says why the value is low."""
    text: str = ""
    cell: tuple[int, int] | None = None
    """True and predicted class behind the text, which ends with the other one of the two."""


class Worst(NamedTuple):
    """The worst classes, and which classes they were chosen from."""

    classes: list[WorstClass]
    rule: str


def lowest_classes(evaluation: Evaluation) -> tuple[IntArray, str]:
    """Choose the worst classes, the worst first, and say of which; none where there is only one class."""
    # Classes are ranked by the first metric that each of them has.
    values = evaluation.class_values
    if not evaluation.protocol.matching.per_class or not values:
        return np.empty(0, dtype=np.int64), ""
    metric, of_class = next(iter(values.items()))
    objects = evaluation.class_counts["ground_truths"]
    known = np.flatnonzero(np.isfinite(of_class) & (objects > 0))
    if len(known) < 2:
        return np.empty(0, dtype=np.int64), ""
    # Classes with few objects come out low by chance: ask for a minimum that most can reach.
    least = min(FEWEST_OBJECTS, np.sort(objects[known])[-MOST:].min())
    enough = known[objects[known] >= least]
    # The worst come first; among equal ones, those with more objects.
    falls = metric in {
        evaluation.protocol.class_keys.get(key, key) for key in evaluation.protocol.lower_is_better
    }
    badness = of_class[enough] if falls else -of_class[enough]
    of = counted(len(enough), "class")
    minimum = f" with {counted(int(least), 'object')} or more" if len(enough) < len(known) else ""
    rule = f"{'Highest' if falls else 'Lowest'} {metric} of the {of}{minimum}"
    return enough[np.lexsort((-objects[enough], -badness))][:MOST], rule


class ClassMistakes(NamedTuple):
    """What is wrong with C of the K classes at a score, counted; those of disjoint images add up."""

    objects: IntArray
    """[C]"""
    missed: IntArray
    localised: IntArray
    called: IntArray
    """Localised objects by the class as which they are predicted, where it is another, [C, K]."""
    detections: IntArray
    """That are not ignored, [C]."""
    kinds: IntArray
    """Detections by their kind of error, [C, E]."""
    taken: IntArray
    """Detections with a classification error, by the class of the object, [C, K]."""

    @classmethod
    def of(cls, evaluation: Evaluation, classes: IntArray, score_threshold: float) -> ClassMistakes:
        """Count the images of an evaluation."""
        # Number the chosen classes; -1 leaves all others out of the counts.
        truth, detections = evaluation.ground_truth, evaluation.detections
        C, K, E = len(classes), len(truth.categories), len(ERROR_TYPES)
        place = np.full(K, -1)
        place[classes] = np.arange(C)
        # Count objects by class: those that count, missed ones, and ones with a detection on them.
        above = ranked_by(detections) >= score_threshold
        outcome = evaluation.outcomes.truth(score_threshold)
        at, called = place[truth.category], _predicted(evaluation, above)
        objects, missed, localised = (
            np.bincount(at[(at >= 0) & chosen], minlength=C)
            for chosen in (outcome != IGNORED, outcome == MISSED, called >= 0)
        )
        # A flat index of class and class makes a table of confusions from one bincount.
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
            localised,
            np.bincount(at[other] * K + called[other], minlength=C * K).reshape(C, K),
            np.bincount(of_detection[shown], minlength=C),
            np.bincount(of_detection[wrong] * E + kind[wrong], minlength=C * E).reshape(C, E),
            np.bincount(of_detection[taken] * K + truth.category[about[taken]], minlength=C * K).reshape(
                C, K
            ),
        )

    def __add__(self, other: ClassMistakes) -> ClassMistakes:  # type: ignore[override]
        """Add up what disjoint images have."""
        return ClassMistakes(*map(np.add, self, other))


def worst_classes(evaluation: Evaluation, mistakes: ClassMistakes, *, score_threshold: float) -> Worst:
    """Say of the worst classes what they are mostly wrong in; ``mistakes`` are theirs at the score."""
    rows, rule = lowest_classes(evaluation)
    if not len(rows):
        return Worst([], "")
    of_class = next(iter(evaluation.class_values.values()))
    reasons = _Reasons(evaluation, rows, mistakes)
    classes = [reasons.of(at, float(of_class[k])) for at, k in enumerate(rows.tolist())]
    score = f"; counts at scores from {score_threshold:.3g}" if score_threshold > EVERY_SCORE else ""
    return Worst(classes, f"{rule}{score}.")


class Crop(NamedTuple):
    """A mistake in its surroundings: an image's record, the position of the box, and the part to show."""

    record: int
    box: int
    part: tuple[float, float, float, float]
    """Left, top, width and height, in pixels of the image."""


def surest_crops(gallery: Gallery, images: Sequence[int], *, most: int = MOST_SUREST) -> list[Crop]:
    """Show the false positive of the highest score of each image, of the first in which it is drawn."""
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
    """Part of an image around a box, with the shape of :data:`CROP_SHAPE` where the image allows it."""
    x, y, width, height = record["boxes"][box][:4]
    wide, tall = max(record["width"], 1), max(record["height"], 1)
    # Wide enough for the box and half of it on each side, and for what it is to be recognised by.
    side = max(2 * width, 2 * height * CROP_SHAPE, 0.3 * wide, 0.3 * tall * CROP_SHAPE)
    part_width, part_height = min(side, wide), min(side / CROP_SHAPE, tall)
    left = min(max(x + width / 2 - part_width / 2, 0), wide - part_width)
    top = min(max(y + height / 2 - part_height / 2, 0), tall - part_height)
    return round(left, 1), round(top, 1), round(part_width, 1), round(part_height, 1)


class _Reasons:
    """Says of classes, by their positions, what they are mostly wrong in."""

    def __init__(self, evaluation: Evaluation, rows: IntArray, mistakes: ClassMistakes) -> None:
        self._rows, self._mistakes = rows, mistakes
        result = error_types(evaluation)
        errors, self._unit = result.per_class, cost_unit(result)
        self._cost = np.nan_to_num(errors.cost[rows, : len(ERROR_TYPES)])
        missed, objects = ERROR_TYPES.index("missed"), evaluation.class_counts["ground_truths"][rows]
        none = np.flatnonzero((errors.value[rows, 0] == 0) & (objects > 0))
        self._cost[none, missed] = errors.counts[rows[none], missed] / objects[none]

    def of(self, at: int, value: float) -> WorstClass:
        """Word the kind of error that costs a class most."""
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
        # Missed objects have their own words.
        missed, every = int(self._mistakes.missed[at]), int(self._mistakes.objects[at])
        if kind == "missed":
            if missed < every:
                return f"{missed:,} of {every:,} missed" if missed else ""
            return "its only object is missed" if every == 1 else f"all {every:,} missed"
        # The count, what it costs, and the misses if they are most of the class.
        count = int(self._mistakes.kinds[at, ERROR_TYPES.index(kind)])
        words = {
            "localisation": "poorly localised",
            "both": "of the wrong class and poorly localised",
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
        """Say as what its objects are predicted, or on what its detections lie, whichever happens more.

        With ``always``, only as what most of its localised objects are predicted.
        """
        k, lost, taken = int(self._rows[at]), self._mistakes.called[at], self._mistakes.taken[at]
        localised = int(self._mistakes.localised[at])
        if always and (2 * lost.max() <= localised or lost.max() < FEWEST_ALIKE):
            return "", None
        if not lost.any() and not taken.any():
            return "", None
        if always or lost.max() >= taken.max():
            other = int(lost.argmax())
            are = verb(int(lost[other]), "are")
            return f"{lost[other]:,} of {localised:,} localised {are} predicted as", (k, other)
        other = int(taken.argmax())
        are = verb(int(taken[other]), "are")
        return f"{taken[other]:,} of {self._detections(at)} {are} on", (other, k)


def _predicted(evaluation: Evaluation, above: BoolArray) -> NDArray[np.intp]:
    """Class as which each object is predicted, [G]; -1 where it is not localised, or ignored."""
    outcome = np.where(above, evaluation.outcomes.detection, IGNORED)
    ignored = evaluation.matcher.ignoring.ignored
    threshold = evaluation.protocol.matching.iou_thresholds[0]
    pairs = evaluation.matcher.across_classes(iou_threshold=threshold, by_foreground=ignored)
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
