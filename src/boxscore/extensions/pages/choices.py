"""What a page points at: images, classes and cells of the confusion matrix, chosen by their mistakes.

Goal
----
One pass over the images says all that a page needs of rows, before any image is drawn: in one process, or in
each partition of a data set that no process holds.

Conventions
-----------
- The worst images have the most mistakes: false positives at or above the operating score, plus missed ground
  truths. Of equal ones the first comes first.
- A confident mistake is a false positive; per image the one with the highest score is shown, of equal scores
  that of the first image. Without scores there are none.
- The surest mistakes are confident ones at the score of the page, one of a class before there are more of
  any.
- Images are rows among all. Their number is capped; the page says how many are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import descending_order
from boxscore.data.vocabulary import rows_among_all
from boxscore.diagnostics import confusion_matrix
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.confusion import EVERY_SCORE, ConfusionMatrix, images_of_cells
from boxscore.extensions.diagnostics.tide import missed_objects
from boxscore.extensions.large.questions import Place, source_of
from boxscore.extensions.pages.worst import MOST_SUREST, ClassMistakes, lowest_classes
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import ranked_by

IMAGES_OF_A_CLASS = 4
"""Images of each of the worst classes that are on the page in any case."""

MOST_CELLS = 100
"""Cells whose images are in the report: of two classes, and again with the background."""

MOST_NAMED, IMAGES_IN_A_CELL = 40, 4
"""Images of a cell that are named, and of these the ones that are shown."""


class Confident(NamedTuple):
    """The false positive of the highest score of some images, by descending scores; arrays [n]."""

    score: FloatArray
    image: IntArray
    category: IntArray

    @classmethod
    def of(cls, evaluation: Evaluation, place: Place) -> Confident:
        """Choose one of each image."""
        detections = evaluation.detections
        if not detections.scored:
            nothing = np.empty(0, dtype=np.int64)
            return cls(np.empty(0), nothing, nothing)
        rows = np.flatnonzero(evaluation.outcomes.detection == FALSE_POSITIVE)
        rows = rows[descending_order(detections.scores[rows])]
        first = np.full(evaluation.image_count, -1)
        first[detections.image[rows[::-1]]] = rows[::-1]  # of an image the last stays
        rows = first[first >= 0]
        found = rows_among_all(detections.image[rows], place), detections.category[rows].astype(np.int64)
        return cls(detections.scores[rows], *found)

    @classmethod
    def joined(cls, every: Sequence[Confident], most: int) -> Confident:
        """Keep the first ``most`` images, or enough for the surest, and the first of each class."""
        score, image, category = (np.concatenate(column) for column in zip(*every, strict=True))
        order = np.lexsort((image, -score))
        first = np.unique(category[order], return_index=True)[1]
        most = max(most, 4 * MOST_SUREST)
        kept = order[np.union1d(np.arange(min(most, len(order))), first)]
        return cls(score[kept], image[kept], category[kept])

    def surest(self, score_threshold: float) -> list[int]:
        """Return twice as many images as are shown: not all mistakes are drawn."""
        category = self.category[self.score >= score_threshold]
        first = np.sort(np.unique(category, return_index=True)[1])
        order = np.append(first, np.delete(np.arange(len(category)), first)).astype(np.intp)
        images: list[int] = self.image[order[: 2 * MOST_SUREST]].tolist()
        return images


class Named(NamedTuple):
    """The first images of a cell of the confusion matrix, and how many it has."""

    images: IntArray
    ids: list[str]
    every: int

    @classmethod
    def joined(cls, every: Sequence[Named]) -> Named:
        """Put disjoint images together."""
        images = np.concatenate([one.images for one in every])
        ids = [identifier for one in every for identifier in one.ids]
        order = np.argsort(images)[:MOST_NAMED]
        return cls(images[order], [ids[at] for at in order.tolist()], sum(one.every for one in every))


class Scores(NamedTuple):
    """Of all detections; infinite where there are none, 0 where detections have none."""

    lowest: float
    highest: float
    reaching: int
    """Detections from the score threshold of the page on."""

    @classmethod
    def joined(cls, every: Sequence[Scores]) -> Scores:
        """Put disjoint images together."""
        lowest, highest, reaching = zip(*every, strict=True)
        return cls(min(lowest), max(highest), sum(reaching))


class Missed(NamedTuple):
    """Objects that TIDE calls missed; those of disjoint images add up."""

    every: int
    """Objects that are not ignored."""
    missed: int
    by_size: IntArray
    """In each of the protocol's area ranges but the first."""
    by_class: IntArray


class Answer(NamedTuple):
    """What some images say."""

    worst: IntArray
    """Image, false positives, missed and true positives of those with most mistakes, [n, 4]."""
    confident: Confident
    objects: IntArray
    """Of each class, the ignored ones too, [K]."""
    of_class: IntArray
    of_worst: list[IntArray]
    """Image and mistakes of those with most mistakes of a class, [n, 2], for each of the worst classes."""
    mistakes: ClassMistakes
    named: list[Named]
    missed: Missed
    scores: Scores

    @classmethod
    def joined(cls, every: Sequence[Answer], most: int) -> Answer:
        """Put disjoint images together."""
        first = every[0]
        of_worst = zip(*(one.of_worst for one in every), strict=True)
        return cls(
            _with_most(np.concatenate([one.worst for one in every]), slice(1, 3), most),
            Confident.joined([one.confident for one in every], most),
            np.sum([one.objects for one in every], axis=0),
            np.sum([one.of_class for one in every], axis=0),
            [_with_most(np.concatenate(same), slice(1, 2), IMAGES_OF_A_CLASS) for same in of_worst],
            sum((one.mistakes for one in every[1:]), start=first.mistakes),
            [Named.joined(same) for same in zip(*(one.named for one in every), strict=True)],
            Missed(*(sum(column) for column in zip(*(one.missed for one in every), strict=True))),
            Scores.joined([one.scores for one in every]),
        )


class Choices(NamedTuple):
    """What a page points at, and the counts that its sentences have of rows."""

    score_threshold: float
    """Of the page."""
    matrix: ConfusionMatrix
    """At this score."""
    cells: NDArray[np.intp]
    """Positions of its largest cells, those between classes first."""
    named: list[Named]
    """Images of each of these cells."""
    worst: IntArray
    """Image, false positives, missed and true positives of the worst images, [n, 4]."""
    confident: list[int]
    """Images of the most confident mistakes."""
    surest: list[int]
    """Images of the surest mistakes, twice as many as are shown: not all of them are drawn."""
    objects: IntArray
    """Objects of each class, the ignored ones too, [K]."""
    of_class: IntArray
    """Images with a mistake of each class, a false positive of it or a missed object, [K]."""
    of_worst: list[int]
    """Images with most mistakes of the worst classes."""
    mistakes: ClassMistakes
    """Of the worst classes."""
    missed: Missed
    scores: Scores

    @classmethod
    def of(cls, evaluation: Evaluation, *, score_threshold: float | None = None, most: int = 48) -> Choices:
        """Choose ``most`` images, and half as many confident mistakes; at the operating score by default."""
        # Find what is the same for every partition: the score, and the classes and cells to ask about.
        score = evaluation.operating_score if score_threshold is None else score_threshold
        matrix = confusion_matrix(evaluation, score_threshold=max(score, EVERY_SCORE))
        cells = matrix.largest(MOST_CELLS)
        options = {
            "score": score,
            "most": most,
            "classes": lowest_classes(evaluation)[0],
            "truth": matrix.truth[cells],
            "predicted": matrix.predicted[cells],
        }
        # Ask in memory or partition by partition, and join the answers.
        answer = Answer.joined(source_of(evaluation).answers("a report", _answer_of, options), most)
        return cls(
            score,
            matrix,
            cells,
            answer.named,
            answer.worst,
            answer.confident.image[: most // 2].tolist(),
            answer.confident.surest(score),
            answer.objects,
            answer.of_class,
            [image for of_class in answer.of_worst for image in of_class[:, 0].tolist()],
            answer.mistakes,
            answer.missed,
            answer.scores,
        )

    @property
    def images(self) -> IntArray:
        """Every image that may be shown, ascending."""
        of_cells = [image for one in self.named for image in one.images[:IMAGES_IN_A_CELL].tolist()]
        chosen = [*self.worst[:, 0].tolist(), *self.confident, *self.surest, *self.of_worst, *of_cells]
        return np.unique(np.array(chosen, dtype=np.int64))


def _answer_of(
    evaluation: Evaluation,
    place: Place,
    *,
    score: float,
    most: int,
    classes: IntArray,
    truth: NDArray[np.intp],
    predicted: NDArray[np.intp],
) -> Answer:
    """Ask some images, whose rows among all start at ``place``."""
    # Rows of these images among all: partitions answer with numbers that can be joined.
    images = rows_among_all(np.arange(evaluation.image_count), place)
    behind = images_of_cells(evaluation, truth, predicted, score_threshold=max(score, EVERY_SCORE))
    ids = evaluation.ground_truth.images.ids
    # The images behind each large cell of the confusion matrix: a few to show, and how many there are.
    named = [
        Named(images[rows[:MOST_NAMED]], [str(one) for one in ids[rows[:MOST_NAMED]].tolist()], len(rows))
        for rows in behind
    ]
    # Mistakes by class, counted for every image in one bincount.
    image, category = _mistakes(evaluation, score)
    K = len(evaluation.ground_truth.categories)
    of_worst = []
    for k in classes.tolist():
        counts = np.column_stack([images, np.bincount(image[category == k], minlength=len(images))])
        of_worst.append(_with_most(counts, slice(1, 2), IMAGES_OF_A_CLASS))
    # Everything is counts or a few best rows, so an answer stays small however many images were asked.
    return Answer(
        _worst_of(evaluation, place, score=score, most=most),
        Confident.joined([Confident.of(evaluation, place)], most),
        np.bincount(evaluation.ground_truth.category, minlength=K),
        np.bincount(np.unique(image * K + category) % max(K, 1), minlength=K),
        of_worst,
        ClassMistakes.of(evaluation, classes, score),
        named,
        _missed(evaluation),
        _scores(evaluation, score),
    )


def _with_most(counts: IntArray, columns: slice, most: int) -> IntArray:
    """Keep the rows with most mistakes, which some columns count, the most first; equal ones by image."""
    mistakes = counts[:, columns].sum(axis=1)
    order = np.lexsort((counts[:, 0], -mistakes))[:most]
    kept: IntArray = counts[order[mistakes[order] > 0]]
    return kept


def _missed(evaluation: Evaluation) -> Missed:
    truth, rows = evaluation.ground_truth, missed_objects(evaluation)
    areas = truth.area[rows]
    ranges = list(evaluation.protocol.ignore.area_ranges.values())[1:]
    return Missed(
        int((~evaluation.matcher.ignoring.ignored).sum()),
        len(rows),
        np.array([((areas >= low) & (areas <= high)).sum() for low, high in ranges], dtype=np.int64),
        np.bincount(truth.category[rows], minlength=len(truth.categories)),
    )


def _scores(evaluation: Evaluation, score_threshold: float) -> Scores:
    scores = ranked_by(evaluation.detections)
    ends = float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))
    return Scores(*ends, int((scores >= score_threshold).sum()))


def image_errors(evaluation: Evaluation, score_threshold: float) -> IntArray:
    """Count the mistakes in each image, [images, 3]: false positives, missed, true positives."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    N = len(truth.images)
    false, outcome = _at_score(evaluation, score_threshold)
    return np.stack(
        [
            np.bincount(detections.image[false], minlength=N),
            np.bincount(truth.image[outcome == MISSED], minlength=N),
            np.bincount(truth.image[outcome == TRUE_POSITIVE], minlength=N),
        ],
        axis=1,
    )


def _mistakes(evaluation: Evaluation, score_threshold: float) -> tuple[IntArray, NDArray[np.int32]]:
    """Image and class of every mistake: false positives, then missed objects."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    false, outcome = _at_score(evaluation, score_threshold)
    missed = outcome == MISSED
    return (
        np.concatenate([detections.image[false], truth.image[missed]]).astype(np.int64),
        np.concatenate([detections.category[false], truth.category[missed]]),
    )


def _at_score(evaluation: Evaluation, score_threshold: float) -> tuple[BoolArray, NDArray[np.int8]]:
    """Whether each detection is a false positive from a score on, and what becomes of each object."""
    outcomes = evaluation.outcomes
    false = (outcomes.detection == FALSE_POSITIVE) & (ranked_by(evaluation.detections) >= score_threshold)
    return false, outcomes.truth(score_threshold)


def worst_images(evaluation: Evaluation, *, score_threshold: float = -np.inf, most: int = 48) -> list[int]:
    """Row numbers of the images with most mistakes, worst first."""
    options = {"score": score_threshold, "most": most}
    counts = np.concatenate(source_of(evaluation).answers("the worst images", _worst_of, options))
    worst: list[int] = _with_most(counts, slice(1, 3), most)[:, 0].tolist()
    return worst


def _worst_of(evaluation: Evaluation, place: Place, *, score: float, most: int) -> IntArray:
    """Image, false positives, missed and true positives of those with most mistakes, [n, 4]."""
    images = rows_among_all(np.arange(evaluation.image_count), place)
    return _with_most(np.column_stack([images, image_errors(evaluation, score)]), slice(1, 3), most)
