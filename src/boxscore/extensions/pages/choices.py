"""Choose the images, classes and confusion cells that a page shows, by their mistakes.

Goal
----
One pass over the images collects everything that a page needs from rows before any image is drawn: in one
process, or in each partition of data larger than memory.

Conventions
-----------
- The worst images have the most mistakes: false positives at or above the operating score, plus missed ground
  truths. Ties keep the order of images.
- A confident mistake is a false positive. Per image, the one with the highest score is shown; ties prefer the
  first image. Without scores no mistake is confident.
- The most confident mistakes are chosen at the score threshold of the page, with one per class before any
  class has more.
- Images are row numbers among all images. Their number is capped; the page says how many are left out.
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
"""Number of images shown for each of the worst classes."""

MOST_CELLS = 100
"""Cells whose images are in the report: between classes, and as many with the background."""

MOST_NAMED, IMAGES_IN_A_CELL = 40, 4
"""Images listed per cell, and the number of these that are shown."""


class Confident(NamedTuple):
    """The highest-scoring false positive of each of some images, by descending score; arrays [n]."""

    score: FloatArray
    image: IntArray
    category: IntArray

    @classmethod
    def of(cls, evaluation: Evaluation, place: Place) -> Confident:
        """Choose one per image."""
        detections = evaluation.detections
        if not detections.scored:
            nothing = np.empty(0, dtype=np.int64)
            return cls(np.empty(0), nothing, nothing)
        rows = np.flatnonzero(evaluation.outcomes.detection == FALSE_POSITIVE)
        rows = rows[descending_order(detections.scores[rows])]
        first = np.full(evaluation._image_count, -1)
        # Assign in reverse, so that the first one of an image wins.
        first[detections.image[rows[::-1]]] = rows[::-1]
        rows = first[first >= 0]
        found = rows_among_all(detections.image[rows], place), detections.category[rows].astype(np.int64)
        return cls(detections.scores[rows], *found)

    @classmethod
    def joined(cls, every: Sequence[Confident], most: int) -> Confident:
        """Keep the first ``most`` images, or enough for the most confident, and the first of each class."""
        score, image, category = (np.concatenate(column) for column in zip(*every, strict=True))
        order = np.lexsort((image, -score))
        first = np.unique(category[order], return_index=True)[1]
        most = max(most, 4 * MOST_SUREST)
        kept = order[np.union1d(np.arange(min(most, len(order))), first)]
        return cls(score[kept], image[kept], category[kept])

    def surest(self, score_threshold: float) -> list[int]:
        """Return twice as many images as are shown, because not all mistakes are drawn."""
        category = self.category[self.score >= score_threshold]
        first = np.sort(np.unique(category, return_index=True)[1])
        order = np.append(first, np.delete(np.arange(len(category)), first)).astype(np.intp)
        images: list[int] = self.image[order[: 2 * MOST_SUREST]].tolist()
        return images


class Named(NamedTuple):
    """The first images of a cell of the confusion matrix, and their total number."""

    images: IntArray
    ids: list[str]
    every: int

    @classmethod
    def joined(cls, every: Sequence[Named]) -> Named:
        """Join disjoint images."""
        images = np.concatenate([one.images for one in every])
        ids = [identifier for one in every for identifier in one.ids]
        order = np.argsort(images)[:MOST_NAMED]
        return cls(images[order], [ids[at] for at in order.tolist()], sum(one.every for one in every))


class Scores(NamedTuple):
    """Range of all scores; infinite without detections, 0 for detections without scores."""

    lowest: float
    highest: float
    reaching: int
    """Number of detections at or above the score threshold of the page."""

    @classmethod
    def joined(cls, every: Sequence[Scores]) -> Scores:
        """Join disjoint images."""
        lowest, highest, reaching = zip(*every, strict=True)
        return cls(min(lowest), max(highest), sum(reaching))


class Missed(NamedTuple):
    """Number of objects with TIDE's error ``missed``; counts of disjoint images add up."""

    every: int
    """Number of objects that are not ignored."""
    missed: int
    by_size: IntArray
    """Missed objects in each of the protocol's area ranges except the first."""
    by_class: IntArray


class Answer(NamedTuple):
    """The data of some images."""

    worst: IntArray
    """Image, false positives, missed and true positives of those with the most mistakes, [n, 4]."""
    confident: Confident
    objects: IntArray
    """Number of objects per class, including ignored ones, [K]."""
    of_class: IntArray
    of_worst: list[IntArray]
    """Image and mistakes of those with the most mistakes of a class, [n, 2], for each of the worst classes.
    """
    mistakes: ClassMistakes
    named: list[Named]
    missed: Missed
    scores: Scores

    @classmethod
    def joined(cls, every: Sequence[Answer], most: int) -> Answer:
        """Join disjoint images."""
        first = every[0]
        of_worst = zip(*(one.of_worst for one in every), strict=True)
        return cls(
            _rows_with_most(np.concatenate([one.worst for one in every]), slice(1, 3), most),
            Confident.joined([one.confident for one in every], most),
            np.sum([one.objects for one in every], axis=0),
            np.sum([one.of_class for one in every], axis=0),
            [_rows_with_most(np.concatenate(same), slice(1, 2), IMAGES_OF_A_CLASS) for same in of_worst],
            sum((one.mistakes for one in every[1:]), start=first.mistakes),
            [Named.joined(same) for same in zip(*(one.named for one in every), strict=True)],
            Missed(*(sum(column) for column in zip(*(one.missed for one in every), strict=True))),
            Scores.joined([one.scores for one in every]),
        )


class Choices(NamedTuple):
    """The images and cells that a page shows, and the counts in its sentences."""

    score_threshold: float
    """Score threshold of the page."""
    matrix: ConfusionMatrix
    """Confusion matrix at this score."""
    cells: NDArray[np.intp]
    """Positions of its largest cells, those between classes first."""
    named: list[Named]
    """Images of each of these cells."""
    worst: IntArray
    """Image, false positives, missed and true positives of the worst images, [n, 4]."""
    confident: list[int]
    """Images of the most confident mistakes."""
    surest: list[int]
    """Images for the crops of the most confident mistakes, twice as many as are shown, because not all are
    drawn."""
    objects: IntArray
    """Number of objects per class, including ignored ones, [K]."""
    of_class: IntArray
    """Number of images with a mistake of each class, a false positive or a missed object, [K]."""
    of_worst: list[int]
    """Images with the most mistakes of the worst classes."""
    mistakes: ClassMistakes
    """Counts of mistakes of the worst classes."""
    missed: Missed
    scores: Scores

    @classmethod
    def of(cls, evaluation: Evaluation, *, score_threshold: float | None = None, most: int = 48) -> Choices:
        """Choose ``most`` images, and half as many confident mistakes; by default at the operating score."""
        # Compute what is the same for every partition: the score, and the classes and cells in question.
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
        # Collect the data in memory or partition by partition, and join the answers.
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
        """Return all images that may be shown, ascending."""
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
    """Collect the data of some images, whose rows among all start at ``place``."""
    # Number these images among all images, so that answers of partitions can be joined.
    images = rows_among_all(np.arange(evaluation._image_count), place)
    behind = images_of_cells(evaluation, truth, predicted, score_threshold=max(score, EVERY_SCORE))
    ids = evaluation.ground_truth.images.ids
    # Collect the images of each large cell of the confusion matrix: a few to show, and the total number.
    named = [
        Named(images[rows[:MOST_NAMED]], [str(one) for one in ids[rows[:MOST_NAMED]].tolist()], len(rows))
        for rows in behind
    ]
    # Count mistakes by class over all images in one bincount.
    image, category = _mistakes(evaluation, score)
    K = len(evaluation.ground_truth.categories)
    of_worst = []
    for k in classes.tolist():
        counts = np.column_stack([images, np.bincount(image[category == k], minlength=len(images))])
        of_worst.append(_rows_with_most(counts, slice(1, 2), IMAGES_OF_A_CLASS))
    # Return only counts or a few best rows, so that an answer stays small for any number of images.
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


def _rows_with_most(counts: IntArray, columns: slice, most: int) -> IntArray:
    """Keep the rows with the most mistakes in the given columns, in descending order; ties by image."""
    mistakes = counts[:, columns].sum(axis=1)
    order = np.lexsort((counts[:, 0], -mistakes))[:most]
    kept: IntArray = counts[order[mistakes[order] > 0]]
    return kept


def _missed(evaluation: Evaluation) -> Missed:
    truth, rows = evaluation.ground_truth, missed_objects(evaluation)
    areas = truth.area[rows]
    ranges = list(evaluation.protocol.ignore.area_ranges.values())[1:]
    return Missed(
        int((~evaluation._matcher.ignoring.ignored).sum()),
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
    """Return the image and class of every mistake: false positives, then missed objects."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    false, outcome = _at_score(evaluation, score_threshold)
    missed = outcome == MISSED
    return (
        np.concatenate([detections.image[false], truth.image[missed]]).astype(np.int64),
        np.concatenate([detections.category[false], truth.category[missed]]),
    )


def _at_score(evaluation: Evaluation, score_threshold: float) -> tuple[BoolArray, NDArray[np.int8]]:
    """Return whether each detection is a false positive at a score threshold, and each object's outcome."""
    outcomes = evaluation.outcomes
    false = (outcomes.detection == FALSE_POSITIVE) & (ranked_by(evaluation.detections) >= score_threshold)
    return false, outcomes.truth(score_threshold)


def worst_images(evaluation: Evaluation, *, score_threshold: float = -np.inf, most: int = 48) -> list[int]:
    """Return the row numbers of the images with the most mistakes, worst first."""
    options = {"score": score_threshold, "most": most}
    counts = np.concatenate(source_of(evaluation).answers("the worst images", _worst_of, options))
    worst: list[int] = _rows_with_most(counts, slice(1, 3), most)[:, 0].tolist()
    return worst


def _worst_of(evaluation: Evaluation, place: Place, *, score: float, most: int) -> IntArray:
    """Return image, false positives, missed and true positives of those with the most mistakes, [n, 4]."""
    images = rows_among_all(np.arange(evaluation._image_count), place)
    return _rows_with_most(np.column_stack([images, image_errors(evaluation, score)]), slice(1, 3), most)
