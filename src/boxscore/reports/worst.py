"""The worst classes, what is wrong with them, and the surest mistakes: what a report points at first.

Conventions
-----------
- Worst are the lowest values of the first summary metric, of classes with ``FEWEST_OBJECTS`` or more; where
  fewer than :data:`MOST` classes have as many, of those with most objects. Of equal classes the one with more
  objects comes first.
- Where most of a class's localised objects are predicted as one other class, that is said. Else it is said
  to be wrong in the kind of error that costs it most (``diagnostics/tide.py``). The counts in the text are
  those at the score threshold of the page.
- To leave missed objects out of the ground truth is no gain for a class without true positives: there they
  cost their share of the objects.
- An object is localised where a detection of any class overlaps it by the protocol's first IoU threshold. It
  is predicted as its own class where it is matched, else as the class of the detection that overlaps it most.
- The surest mistakes are the false positives with the highest scores, one of an image, and one of a class
  before there are more of any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.text import counted, verb
from boxscore.diagnostics import error_types
from boxscore.diagnostics.naming_errors import ERROR_TYPES
from boxscore.diagnostics.tide import cost_unit, error_kinds
from boxscore.evaluation import Evaluation
from boxscore.matching.outcomes import IGNORED, MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import ranked_by
from boxscore.reports.gallery import Gallery, confident_mistakes

MOST = 5
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


def worst_classes(evaluation: Evaluation, *, score_threshold: float) -> Worst:
    """Choose the worst classes, the worst first; none where there is only one class."""
    values = evaluation.class_values
    if not evaluation.protocol.matching.per_class or not values:
        return Worst([], "")
    metric, of_class = next(iter(values.items()))
    objects = evaluation.class_counts["ground_truths"]
    known = np.flatnonzero(np.isfinite(of_class) & (objects > 0))
    if len(known) < 2:
        return Worst([], "")
    least = min(FEWEST_OBJECTS, np.sort(objects[known])[-MOST:].min())
    enough = known[objects[known] >= least]
    falls = metric in {
        evaluation.protocol.class_keys.get(key, key) for key in evaluation.protocol.lower_is_better
    }
    badness = of_class[enough] if falls else -of_class[enough]
    order = enough[np.lexsort((-objects[enough], -badness))][:MOST]
    reasons = _Reasons(evaluation, score_threshold)
    classes = [reasons.of(k, float(of_class[k])) for k in order.tolist()]
    of = counted(len(enough), "class")
    minimum = f" with {counted(int(least), 'object')} or more" if len(enough) < len(known) else ""
    score = f"; counts at scores from {score_threshold:.3g}" if score_threshold > -1e300 else ""
    return Worst(classes, f"{'Highest' if falls else 'Lowest'} {metric} of the {of}{minimum}{score}.")


class Crop(NamedTuple):
    """A mistake in its surroundings: an image's record, the position of the box, and the part to show."""

    record: int
    box: int
    part: tuple[float, float, float, float]
    """Left, top, width and height, in pixels of the image."""


def surest_mistakes(evaluation: Evaluation, gallery: Gallery, *, most: int = 3) -> list[Crop]:
    """Choose the false positives with the highest scores, of different images and, if there are, classes."""
    rows = np.array(confident_mistakes(evaluation, most=len(evaluation.ground_truth.images)), dtype=np.intp)
    rows = rows[ranked_by(evaluation.detections)[rows] >= gallery.score_threshold]
    first = np.sort(np.unique(evaluation.detections.category[rows], return_index=True)[1])
    crops: list[Crop] = []
    for row in [*rows[first].tolist(), *np.delete(rows, first).tolist()][: 2 * most]:
        record, box = gallery.add_detection(row)
        if box >= 0 and len(crops) < most:
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
    """Says of classes what they are mostly wrong in."""

    def __init__(self, evaluation: Evaluation, score_threshold: float) -> None:
        truth, detections = evaluation.ground_truth, evaluation.detections
        self._labels = evaluation.labels
        self._truth_class, self._detected_class = truth.category, detections.category
        result = error_types(evaluation)
        errors, self._unit = result.per_class, cost_unit(result)
        self._cost = np.nan_to_num(errors.cost[:, : len(ERROR_TYPES)])
        missed, objects = ERROR_TYPES.index("missed"), evaluation.class_counts["ground_truths"]
        none = np.flatnonzero((errors.value[:, 0] == 0) & (objects > 0))
        self._cost[none, missed] = errors.counts[none, missed] / objects[none]
        above = ranked_by(detections) >= score_threshold
        kind, self._about = error_kinds(evaluation)
        self._kind = np.where(above, kind, -1)
        self._shown = above & (evaluation.outcomes.detection != IGNORED)
        self._outcome = evaluation.outcomes.truth(score_threshold)
        self._predicted = _predicted(evaluation, above)

    def of(self, k: int, value: float) -> WorstClass:
        """Word the kind of error that costs class ``k`` most."""
        text, cell = self._confused(k, always=True)
        if text:
            return WorstClass(k, value, "classification", text, cell)
        order = np.argsort(-self._cost[k], kind="stable")
        kinds = [ERROR_TYPES[e] for e in order.tolist() if self._cost[k, e] > NEGLIGIBLE]
        for kind in [*kinds, "missed"]:
            text, cell = self._confused(k) if kind == "classification" else (self._text(k, kind), None)
            if text:
                return WorstClass(k, value, kind, text, cell)
        return WorstClass(k, value)

    def _text(self, k: int, kind: str) -> str:
        objects = (self._truth_class == k) & (self._outcome != IGNORED)
        missed, every = int((self._outcome[objects] == MISSED).sum()), int(objects.sum())
        if kind == "missed":
            if missed < every:
                return f"{missed:,} of {every:,} missed" if missed else ""
            return "its only object is missed" if every == 1 else f"all {every:,} missed"
        of_class = self._detected_class == k
        count = int((of_class & (self._kind == ERROR_TYPES.index(kind))).sum())
        words = {
            "localisation": "poorly localised",
            "both": "of the wrong class and poorly localised",
            "duplicate": "duplicate" if count == 1 else "duplicates",
            "background": "on the background",
        }
        if not count:
            return ""
        cost = f"{self._cost[k, ERROR_TYPES.index(kind)]:.3f} {self._unit}"
        also = f"; {missed:,} of {every:,} missed" if 2 * missed > every else ""
        return f"{count:,} of {self._detections(k)} {verb(count, 'are')} {words[kind]} ({cost}){also}"

    def _detections(self, k: int) -> str:
        return counted(int((self._shown & (self._detected_class == k)).sum()), "detection")

    def _confused(self, k: int, *, always: bool = False) -> tuple[str, tuple[int, int] | None]:
        """Say as what its objects are predicted, or on what its detections lie, whichever happens more.

        With ``always``, only as what most of its localised objects are predicted.
        """
        K = len(self._labels)
        predicted = self._predicted[self._truth_class == k]
        lost = np.bincount(predicted[(predicted >= 0) & (predicted != k)], minlength=K)
        localised = int((predicted >= 0).sum())
        if always and (2 * lost.max() <= localised or lost.max() < FEWEST_ALIKE):
            return "", None
        wrong = (self._detected_class == k) & (self._kind == ERROR_TYPES.index("classification"))
        taken = np.bincount(self._truth_class[self._about[wrong]], minlength=K)
        if not lost.any() and not taken.any():
            return "", None
        if always or lost.max() >= taken.max():
            other = int(lost.argmax())
            are = verb(int(lost[other]), "are")
            return f"{lost[other]:,} of {localised:,} localised {are} predicted as", (k, other)
        other = int(taken.argmax())
        are = verb(int(taken[other]), "are")
        return f"{taken[other]:,} of {self._detections(k)} {are} on", (other, k)


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
