"""The images that a report shows, and the boxes to draw over each.

Conventions
-----------
- The number of boxes in an image is capped; the page says how many are left out.
- A box is ``[x, y, width, height, class, outcome, score or null, IoU or null]``, class as a row number and
  outcome as a code of ``matching/outcomes.py``; a false positive or missed object is followed by what
  ``mistakes.py`` says of it.
- What is more than an upright box stands beside the boxes, in their order: ``paths`` are outlines as data of
  an SVG path or null, ``joints`` keypoints ``[x, y, visibility, x, ...]`` or null (``shapes.py``).
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.curve_view import significant
from boxscore.extensions.pages.mistakes import Mistakes
from boxscore.extensions.pages.shapes import joints_of, limbs_of, path_text, rings_of
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import listed_scores, ranked_by

WHOLE_PIXELS_FROM = 256
"""Longer side of an image from which its boxes are drawn to whole pixels."""

FINEST = 640
"""Longer side of an image whose outlines are drawn to a pixel; those of larger ones are as much coarser."""

MOST_BOXES = 120
"""Boxes drawn in one image: detections by descending score, then ground truths."""


class Gallery:
    """Collects images for a report, each once.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float
        Detections below it are not drawn, and ground truths that only they matched are missed.
    among : ndarray of int64, [images], optional
        Row of each image in a larger data set, ascending; images are then called by these.

    Attributes
    ----------
    records : list of dict
        ``id``, ``file``, ``width``, ``height``, ``boxes``, ``paths`` and ``joints`` where there are some,
        ``hidden`` (boxes beyond the cap), in the order in which they were added.
    limbs : list of (int, int)
        Pairs of keypoints that are joined, counted from 0; empty where none are drawn.
    rows : list of int
        Image row of each record in the evaluation.
    """

    def __init__(
        self, evaluation: Evaluation, *, score_threshold: float = -np.inf, among: IntArray | None = None
    ) -> None:
        self.evaluation, self.score_threshold = evaluation, score_threshold
        self._among = among
        self.records: list[dict[str, Any]] = []
        self.rows: list[int] = []
        self.limbs = limbs_of(evaluation.protocol, evaluation.ground_truth.categories)
        self._position: dict[int, int] = {}
        self._truth_outcome = evaluation.outcomes.truth(score_threshold)
        self.mistakes = Mistakes(evaluation, score_threshold=score_threshold)
        self._detections = _Index(evaluation.detections.image, len(evaluation.ground_truth.images))
        self._truths = _Index(evaluation.ground_truth.image, len(evaluation.ground_truth.images))

    def add(self, image: int) -> int:
        """Add an image by its row number; return its position among the records."""
        row = image if self._among is None else int(np.searchsorted(self._among, image))
        if row not in self._position:
            self._position[row] = len(self.records)
            self.records.append(self.record(row))
            self.rows.append(row)
        return self._position[row]

    def surest(self, record: int) -> int | None:
        """Return the position of the false positive of the highest score among the boxes of a record."""
        drawn = self.drawn(self.rows[record])[0]
        false = np.flatnonzero(self.evaluation.outcomes.detection[drawn] == FALSE_POSITIVE)
        return int(false[0]) if len(false) else None

    def _shown(self, image: int) -> NDArray[np.intp]:
        """Rows of an image's detections from the score threshold on, by descending score."""
        rows = self._detections.rows(image)
        scores = ranked_by(self.evaluation.detections)
        rows = rows[scores[rows] >= self.score_threshold]
        return rows[np.argsort(-scores[rows], kind="stable")]

    def drawn(self, image: int) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
        """Rows of the detections and ground truths drawn, in the order of the boxes; how many are not."""
        rows, truths = self._shown(image), self._truths.rows(image)
        # A matched one lies under its detection.
        truths = truths[self._truth_outcome[truths] != TRUE_POSITIVE]
        keep_truths = truths[:MOST_BOXES]
        keep = rows[: max(MOST_BOXES - len(keep_truths), MOST_BOXES // 2)]
        return keep, keep_truths, len(rows) - len(keep) + len(truths) - len(keep_truths)

    def record(self, image: int) -> dict[str, Any]:
        """Return the record of an image by its row number, without adding it."""
        # Choose what is drawn: a limit keeps an image with thousands of boxes readable.
        truth, detections = self.evaluation.ground_truth, self.evaluation.detections
        outcomes = self.evaluation.outcomes
        rows = self._shown(image)
        keep, keep_truths, hidden = self.drawn(image)
        corners = (truth.boxes[self._truths.rows(image)], detections.boxes[rows])
        width, height = frame_size(truth, image, *corners)
        # Large images need no fractions of a pixel, which makes the page smaller.
        decimals = 0 if max(width, height) >= WHOLE_PIXELS_FROM else 1
        # A box is a list of numbers, which is shorter than an object: the page has thousands.
        boxes = [
            [
                *_box_of(detections, row, decimals),
                int(outcomes.detection[row]),
                score,
                iou,
                *self._of_detection(row),
            ]
            for row, score, iou in zip(
                keep.tolist(),
                significant(listed_scores(detections)[keep], 3),
                significant(outcomes.iou[keep], 2),
                strict=True,
            )
        ]
        boxes += [
            [*_box_of(truth, row, decimals), int(self._truth_outcome[row]), None, None, *self._of_truth(row)]
            for row in keep_truths.tolist()
        ]
        # Outlines are thinned to what a screen can show.
        coarseness = max(1.0, max(width, height) / FINEST)
        paths: list[str | None] = []
        joints: list[list[float] | None] = []
        for table, drawn in ((detections, keep), (truth, keep_truths)):
            paths += self._paths(table, drawn, decimals, coarseness)
            joints += self._joints(table, drawn, decimals)
        # Keypoints alone have the box around them.
        if not detections.boxes_given:
            for box, points in zip(boxes, joints[: len(keep)], strict=False):
                box[:4] = box[:4] if points is None else _box_around(points)
        name = truth.images.file_names[image]
        return {
            "id": str(truth.images.ids[image]),
            "file": None if name is None else PurePath(str(name)).name,
            "width": round(width),
            "height": round(height),
            "boxes": boxes,
            **({"paths": paths} if any(paths) else {}),
            **({"joints": joints} if any(joints) else {}),
            "hidden": hidden,
        }

    def _paths(
        self, table: BoxTable, rows: NDArray[np.intp], decimals: int, coarseness: float
    ) -> list[str | None]:
        """Return the outlines of rows that are more than upright boxes, as SVG paths."""
        rings = rings_of(table, rows, self.evaluation.protocol, tolerance=coarseness)
        return [path_text(each, decimals) if each else None for each in rings]

    def _joints(self, table: BoxTable, rows: NDArray[np.intp], decimals: int) -> list[list[float] | None]:
        """Return the keypoints of rows as one list of numbers each; None for a row that has none to draw."""
        joints = joints_of(table, rows, self.evaluation.protocol)
        if joints is None:
            return [None] * len(rows)
        joints[joints[..., 2] == 0] = 0
        lines = joints.reshape(len(rows), 3 * joints.shape[1]).tolist()
        return [[_rounded(number, decimals) for number in line] if any(line) else None for line in lines]

    def _of_detection(self, row: int) -> list[Any]:
        """Return what a false positive is, as further fields of its box."""
        wrong = self.evaluation.outcomes.detection[row] == FALSE_POSITIVE
        return self.mistakes.of_detection(row) if wrong else []

    def _of_truth(self, row: int) -> list[Any]:
        return self.mistakes.of_truth(row) if self._truth_outcome[row] == MISSED else []


class _Index:
    """Rows of a table by image."""

    def __init__(self, image: NDArray[np.int32], count: int) -> None:
        self._order = np.argsort(image, kind="stable")
        self._bounds = np.searchsorted(image[self._order], np.arange(count + 1))

    def rows(self, image: int) -> NDArray[np.intp]:
        return self._order[self._bounds[image] : self._bounds[image + 1]]


def _box_of(table: Any, row: int, decimals: int) -> list[Any]:
    """Left, top, width, height and class of a row."""
    exact = (*table.boxes[row, :2].tolist(), *table.sizes[row].tolist())
    return [*(_rounded(number, decimals) for number in exact), int(table.category[row])]


def _box_around(joints: list[float]) -> list[float]:
    """Left, top, width and height of what is drawn of keypoints: points that are not there have no place."""
    drawn = [at for at in range(0, len(joints), 3) if joints[at + 2]]
    x, y = [joints[at] for at in drawn], [joints[at + 1] for at in drawn]
    return [min(x), min(y), max(x) - min(x), max(y) - min(y)]


def _rounded(number: float, decimals: int) -> float:
    """Round a number; a whole one has no decimal point, which takes room in a page."""
    rounded = round(number, decimals)
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def frame_size(truth: GroundTruth, image: int, *boxes: NDArray[np.float64]) -> tuple[float, float]:
    """Width and height of an image: as stated, or of a frame that holds its boxes."""
    width, height = truth.images.sizes[image].tolist()
    if 0 < width < np.inf and 0 < height < np.inf:
        return width, height
    corners = np.concatenate(boxes)[:, 2:]
    if not len(corners):
        return 640.0, 480.0
    width, height = np.clip(corners.max(axis=0) * 1.02, 16, 1e5).tolist()
    return width, height
