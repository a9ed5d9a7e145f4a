"""Index every mistake of an evaluation in columns, and find the images with mistakes of a kind.

Goal
----
All images of a data set can be filtered by their mistakes in milliseconds.

Conventions
-----------
- Mistakes are those of ``mistakes.py`` at a score: false positives, then missed objects.
- A mistake belongs to its class, and to that of the other box, as in the filters of the page.
- Sizes are the protocol's area ranges and refer to the wrong box: a detection's area as the protocol measures
  it, an object's as annotated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.choices import image_errors
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.mistakes import KINDS
from boxscore.matching.ignoring import inside_ranges
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED
from boxscore.matching.ranking import listed_scores, ranked_by

Order = Literal["confident", "worst", "listed"]
ORDERS: tuple[Order, ...] = get_args(Order)


class Filter(NamedTuple):
    """Conditions on mistakes and images; the defaults accept everything."""

    category: int | None = None
    kind: int | None = None
    score_from: float = -np.inf
    score_to: float = np.inf
    iou_from: float = -np.inf
    iou_to: float = np.inf
    size: int | None = None
    """Position in :attr:`MistakeIndex.sizes`."""
    image: str = ""
    """Substring of an image's id or file name, in lower case."""
    hidden: tuple[int, ...] = ()
    """Codes of outcomes that do not count."""

    @property
    def of_mistakes(self) -> bool:
        """Whether there is any condition on mistakes: images without matching mistakes are then left out."""
        return self._replace(image="", hidden=()) != Filter()


class Chosen(NamedTuple):
    """The images that pass a filter, in order."""

    images: NDArray[np.intp]
    """Row numbers, [n]."""
    mistakes: int
    """Number of passing mistakes in all of them."""
    passing: NDArray[np.bool_]
    """Whether each mistake passes, [M]."""


class MistakeIndex:
    """The mistakes of an evaluation at a score, as columns.

    Parameters
    ----------
    gallery : Gallery
        Defines the score threshold, and classifies the mistakes.

    Attributes
    ----------
    counts : ndarray of int64, [images, 3]
        False positives, missed objects and true positives of each image.
    sizes : list of str
        Area ranges, without the one that contains all.
    """

    def __init__(self, gallery: Gallery) -> None:
        # Collect all mistakes at the score: false positives first, then missed objects.
        evaluation, score = gallery.evaluation, gallery.score_threshold
        truth, detections, outcomes = evaluation.ground_truth, evaluation.detections, evaluation.outcomes
        self._gallery = gallery
        self.counts = image_errors(evaluation, score)
        wrong = np.flatnonzero((outcomes.detection == FALSE_POSITIVE) & (ranked_by(detections) >= score))
        missed = np.flatnonzero(outcomes.truth(score) == MISSED)
        tables = (gallery.mistakes.detections, wrong), (gallery.mistakes.truths, missed)
        # Make one column per property over both, so that a filter is a few array operations.
        self._false, self._row = len(wrong), np.concatenate([wrong, missed])
        self._image = np.concatenate([detections.image[wrong], truth.image[missed]])
        self._category = np.concatenate([detections.category[wrong], truth.category[missed]])
        self._other = np.concatenate([named.category[rows] for named, rows in tables])
        self._kind = np.concatenate([named.kind[rows] for named, rows in tables])
        self._overlap = np.concatenate([named.overlap[rows] for named, rows in tables])
        self._score = np.append(listed_scores(detections)[wrong], np.full(len(missed), np.nan))
        self.sizes, self._inside = _sizes(evaluation, wrong, missed)
        # Convert names to lower case once, for searches.
        images = truth.images
        self._names = [
            f"{identifier} {'' if name is None else name}".lower()
            for identifier, name in zip(images.ids.tolist(), images.file_names.tolist(), strict=True)
        ]

    def __len__(self) -> int:
        return len(self._row)

    def tallies(self) -> tuple[dict[str, int], NDArray[np.int64]]:
        """Count the mistakes of each kind that occurs, by name, and those of each class, [K]."""
        K = len(self._gallery.evaluation.ground_truth.categories)
        of_kind = np.bincount(self._kind, minlength=len(KINDS)).tolist()
        of_class = np.bincount(self._category, minlength=K)
        others = self._other[(self._other >= 0) & (self._other != self._category)]
        return (
            {name: count for name, count in zip(KINDS, of_kind, strict=True) if count},
            of_class + np.bincount(others, minlength=K),
        )

    def chosen(self, asked: Filter, order: Order = "confident") -> Chosen:
        """Find the images that pass a filter: most confident first, most mistakes first, or as listed.

        Ties keep the order of images.
        """
        passing = self._passing(asked)
        count = len(self.counts)
        of_image = np.bincount(self._image[passing], minlength=count)
        left = of_image > 0 if asked.of_mistakes else np.ones(count, dtype=bool)
        if asked.image:
            left &= np.array([asked.image in name for name in self._names], dtype=bool)
        if order == "listed":
            images = np.flatnonzero(left)
        else:
            key = of_image if order == "worst" else self._surest(passing)
            images = np.argsort(-key, kind="stable")
            images = images[left[images]]
        return Chosen(images, int(of_image[left].sum()), passing)

    def boxes(self, chosen: Chosen, images: Sequence[int]) -> list[list[int]]:
        """Return the positions, among the boxes of each image's record, of the passing mistakes."""
        asked = np.zeros(len(self.counts), dtype=bool)
        asked[list(images)] = True
        at = np.flatnonzero(chosen.passing & asked[self._image])
        positions = []
        for image in images:
            here = at[self._image[at] == image]
            false = here < self._false
            drawn, drawn_truths, _ = self._gallery.drawn(image)
            lit = np.isin(drawn, self._row[here[false]]), np.isin(drawn_truths, self._row[here[~false]])
            positions.append(np.flatnonzero(np.concatenate(lit)).tolist())
        return positions

    def _passing(self, asked: Filter) -> NDArray[np.bool_]:
        """Return whether each mistake passes the filter, [M]."""
        passing = np.ones(len(self), dtype=bool)
        if asked.category is not None:
            passing &= (self._category == asked.category) | (self._other == asked.category)
        if asked.kind is not None:
            passing &= self._kind == asked.kind
        for values, low, high in (
            (self._score, asked.score_from, asked.score_to),
            (self._overlap, asked.iou_from, asked.iou_to),
        ):
            # Undefined values are outside every range.
            if low > -np.inf or high < np.inf:
                passing &= (values >= low) & (values <= high)
        if asked.size is not None:
            passing &= self._inside[:, asked.size]
        if FALSE_POSITIVE in asked.hidden:
            passing[: self._false] = False
        if MISSED in asked.hidden:
            passing[self._false :] = False
        return passing

    def _surest(self, passing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the highest score of the passing mistakes of each image, [images]; lowest for none."""
        surest = np.full(len(self.counts), -np.inf)
        scored = passing & ~np.isnan(self._score)
        np.maximum.at(surest, self._image[scored], self._score[scored])
        missed = np.unique(self._image[passing])
        # Sorts before images without any.
        surest[missed] = np.maximum(surest[missed], np.finfo(np.float64).min)
        return surest


def _sizes(
    evaluation: Evaluation, wrong: NDArray[np.intp], missed: NDArray[np.intp]
) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the names of area ranges, and whether each mistake is inside, [M, names]."""
    ranges = evaluation.protocol.ignore.area_ranges
    every = next(iter(ranges.values()))
    names = [name for name, bounds in ranges.items() if bounds != every]
    similarity = evaluation._matcher.similarity
    areas = np.append(
        evaluation._matcher.areas[wrong], similarity.truth_areas(evaluation.ground_truth)[missed]
    )
    return names, inside_ranges(areas, [ranges[name] for name in names])
