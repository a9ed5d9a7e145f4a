"""Collect the images that a report shows, and the boxes to draw over each.

Conventions
-----------
- The number of boxes in an image is capped; the page says how many are left out.
- A box is ``[x, y, width, height, class, outcome, score or null, IoU or null]``, with class as a row number
  and outcome as a code of ``matching/outcomes.py``. For false positives and missed objects, the fields of
  ``mistakes.py`` follow.
- Shapes other than upright boxes are in separate lists in the same order: ``paths`` are outlines as SVG path
  data or null, ``joints`` are keypoints ``[x, y, visibility, x, ...]`` or null (``shapes.py``).
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.ordering import group_starts
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.curve_view import significant
from boxscore.extensions.pages.mistakes import Mistakes
from boxscore.extensions.pages.shapes import joints_of, limbs_of, path_text, rings_of
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import listed_scores, ranked_by

WHOLE_PIXELS_FROM = 256
"""Longer side of an image above which boxes are drawn to whole pixels."""

FINEST = 640
"""Longer side of an image up to which outlines are drawn to the pixel; above it they are proportionally
coarser."""

MOST_BOXES = 120
"""Maximum number of boxes drawn in one image: detections by descending score, then ground truths."""


class Gallery:
    """Collects images for a report, each only once.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float
        Leave out detections that score below this; ground truths matched only by these are missed.
    among : ndarray of int64, [images], optional
        Row of each image in a larger data set, ascending; images are then identified by these.

    Attributes
    ----------
    records : list of dict
        ``id``, ``file``, ``width``, ``height``, ``boxes``, ``paths`` and ``joints`` if there are some,
        ``hidden`` (boxes beyond the cap), in the order in which they were added.
    limbs : list of (int, int)
        Pairs of keypoints that are connected, counted from 0; empty if none are drawn.
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
        """Return the position of the highest-scoring false positive among the boxes of a record."""
        drawn = self.drawn(self.rows[record])[0]
        false = np.flatnonzero(self.evaluation.outcomes.detection[drawn] == FALSE_POSITIVE)
        return int(false[0]) if len(false) else None

    def _shown_rows(self, image: int) -> NDArray[np.intp]:
        """Return the rows of an image's detections above the score threshold, by descending score."""
        rows = self._detections.rows(image)
        scores = ranked_by(self.evaluation.detections)
        rows = rows[scores[rows] >= self.score_threshold]
        return rows[np.argsort(-scores[rows], kind="stable")]

    def drawn(self, image: int) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
        """Return the rows of drawn detections and ground truths in box order, and the number left out."""
        rows, truths = self._shown_rows(image), self._truths.rows(image)
        # Matched ground truths are represented by their detection.
        truths = truths[self._truth_outcome[truths] != TRUE_POSITIVE]
        keep_truths = truths[:MOST_BOXES]
        keep = rows[: max(MOST_BOXES - len(keep_truths), MOST_BOXES // 2)]
        return keep, keep_truths, len(rows) - len(keep) + len(truths) - len(keep_truths)

    def record(self, image: int) -> dict[str, Any]:
        """Return the record of an image by its row number, without adding it."""
        # Choose the boxes: a limit keeps an image with thousands of them readable.
        truth, detections = self.evaluation.ground_truth, self.evaluation.detections
        outcomes = self.evaluation.outcomes
        rows = self._shown_rows(image)
        keep, keep_truths, hidden = self.drawn(image)
        corners = (truth.boxes[self._truths.rows(image)], detections.boxes[rows])
        width, height = frame_size(truth, image, *corners)
        # Large images do not need fractions of a pixel, which makes the page smaller.
        decimals = 0 if max(width, height) >= WHOLE_PIXELS_FROM else 1
        # Write a box as a list of numbers, which is shorter than an object: a page has thousands.
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
        # Thin outlines to the resolution of a screen.
        coarseness = max(1.0, max(width, height) / FINEST)
        paths: list[str | None] = []
        joints: list[list[float] | None] = []
        for table, drawn in ((detections, keep), (truth, keep_truths)):
            paths += self._paths(table, drawn, decimals, coarseness)
            joints += self._joints(table, drawn, decimals)
        # Keypoints without boxes have an enclosing box.
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
        """Return the outlines of rows that are not upright boxes, as SVG paths."""
        rings = rings_of(table, rows, self.evaluation.protocol, tolerance=coarseness)
        return [path_text(each, decimals) if each else None for each in rings]

    def _joints(self, table: BoxTable, rows: NDArray[np.intp], decimals: int) -> list[list[float] | None]:
        """Return the keypoints of rows as one list of numbers each; None for a row without any to draw."""
        joints = joints_of(table, rows, self.evaluation.protocol)
        if joints is None:
            return [None] * len(rows)
        joints[joints[..., 2] == 0] = 0
        lines = joints.reshape(len(rows), 3 * joints.shape[1]).tolist()
        return [[_round(number, decimals) for number in line] if any(line) else None for line in lines]

    def _of_detection(self, row: int) -> list[Any]:
        """Return the further fields of the box of a false positive."""
        wrong = self.evaluation.outcomes.detection[row] == FALSE_POSITIVE
        return self.mistakes.of_detection(row) if wrong else []

    def _of_truth(self, row: int) -> list[Any]:
        return self.mistakes.of_truth(row) if self._truth_outcome[row] == MISSED else []


class _Index:
    """Rows of a table by image."""

    def __init__(self, image: NDArray[np.int32], count: int) -> None:
        self._order = np.argsort(image, kind="stable")
        self._bounds = group_starts(image[self._order], count)

    def rows(self, image: int) -> NDArray[np.intp]:
        return self._order[self._bounds[image] : self._bounds[image + 1]]


def _box_of(table: Any, row: int, decimals: int) -> list[Any]:
    """Return left, top, width, height and class of a row."""
    exact = (*table.boxes[row, :2].tolist(), *table.sizes[row].tolist())
    return [*(_round(number, decimals) for number in exact), int(table.category[row])]


def _box_around(joints: list[float]) -> list[float]:
    """Return left, top, width and height of the drawn keypoints; absent points are skipped."""
    drawn = [at for at in range(0, len(joints), 3) if joints[at + 2]]
    x, y = [joints[at] for at in drawn], [joints[at + 1] for at in drawn]
    return [min(x), min(y), max(x) - min(x), max(y) - min(y)]


def _round(number: float, decimals: int) -> float:
    """Round a number; whole numbers lose the decimal point to save space."""
    rounded = round(number, decimals)
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def frame_size(truth: GroundTruth, image: int, *boxes: NDArray[np.float64]) -> tuple[float, float]:
    """Return width and height of an image: as stated, or of a frame that contains its boxes."""
    width, height = truth.images.sizes[image].tolist()
    if 0 < width < np.inf and 0 < height < np.inf:
        return width, height
    corners = np.concatenate(boxes)[:, 2:]
    if not len(corners):
        return 640.0, 480.0
    width, height = np.clip(corners.max(axis=0) * 1.02, 16, 1e5).tolist()
    return width, height
