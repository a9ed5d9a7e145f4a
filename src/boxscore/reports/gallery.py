"""Which images a report shows, and the boxes to draw over each.

Conventions
-----------
- The worst images have the most mistakes: false positives at or above the operating score, plus missed ground
  truths.
- A confident mistake is a false positive; per image the one with the highest score is shown.
- The number of images, and of boxes in each, is capped; the page says how many are left out.
- A box is ``[x, y, width, height, class, outcome, score or null, IoU or null]``, class as a row number and
  outcome as a code of ``matching/outcomes.py``; a false positive or missed object is followed by what
  ``mistakes.py`` says of it.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.data.quadrilaterals import corners_of_rotated
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.evaluation import Evaluation
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE
from boxscore.reports.curve_view import significant
from boxscore.reports.mistakes import Mistakes

WHOLE_PIXELS_FROM = 256
"""Longer side of an image from which its boxes are drawn to whole pixels."""

MOST_BOXES = 120
"""Boxes drawn in one image: detections by descending score, then ground truths."""


def image_errors(evaluation: Evaluation, score_threshold: float) -> NDArray[np.int64]:
    """Count the mistakes in each image, [images, 3]: false positives, missed, true positives."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    N = len(truth.images)
    outcomes = evaluation.outcomes
    false = (outcomes.detection == FALSE_POSITIVE) & (detections.scores >= score_threshold)
    outcome = outcomes.truth(score_threshold)
    return np.stack(
        [
            np.bincount(detections.image[false], minlength=N),
            np.bincount(truth.image[outcome == MISSED], minlength=N),
            np.bincount(truth.image[outcome == TRUE_POSITIVE], minlength=N),
        ],
        axis=1,
    )


def worst_images(evaluation: Evaluation, *, score_threshold: float = -np.inf, most: int = 48) -> list[int]:
    """Row numbers of the images with most mistakes, worst first."""
    errors = image_errors(evaluation, score_threshold)[:, :2].sum(axis=1)
    order = np.argsort(-errors, kind="stable")[:most]
    worst: list[int] = order[errors[order] > 0].tolist()
    return worst


def confident_mistakes(evaluation: Evaluation, *, most: int = 24) -> list[int]:
    """Rows of the false positives with the highest scores, one per image."""
    rows = np.flatnonzero(evaluation.outcomes.detection == FALSE_POSITIVE)
    rows = rows[np.argsort(-evaluation.detections.scores[rows], kind="stable")]
    _, first = np.unique(evaluation.detections.image[rows], return_index=True)
    chosen: list[int] = rows[np.sort(first)[:most]].tolist()
    return chosen


class Gallery:
    """Collects images for a report, each once.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float
        Detections below it are not drawn, and ground truths that only they matched are missed.

    Attributes
    ----------
    records : list of dict
        ``id``, ``file``, ``width``, ``height``, ``boxes``, ``hidden`` (boxes beyond the cap), in the order
        in which they were added.
    rows : list of int
        Image row of each record.
    """

    def __init__(self, evaluation: Evaluation, *, score_threshold: float = -np.inf) -> None:
        self.evaluation, self.score_threshold = evaluation, score_threshold
        self.records: list[dict[str, Any]] = []
        self.rows: list[int] = []
        self._position: dict[int, int] = {}
        self._truth_outcome = evaluation.outcomes.truth(score_threshold)
        self._mistakes = Mistakes(evaluation, score_threshold=score_threshold)
        self._detections = _Index(evaluation.detections.image, len(evaluation.ground_truth.images))
        self._truths = _Index(evaluation.ground_truth.image, len(evaluation.ground_truth.images))

    def add(self, image: int) -> int:
        """Add an image by its row number; return its position among the records."""
        if image not in self._position:
            self._position[image] = len(self.records)
            self.records.append(self._record(image))
            self.rows.append(image)
        return self._position[image]

    def _record(self, image: int) -> dict[str, Any]:
        truth, detections = self.evaluation.ground_truth, self.evaluation.detections
        outcomes = self.evaluation.outcomes
        rows = self._detections.rows(image)
        rows = rows[detections.scores[rows] >= self.score_threshold]
        rows = rows[np.argsort(-detections.scores[rows], kind="stable")]
        truths = self._truths.rows(image)
        # A matched one lies under its detection.
        truths = truths[self._truth_outcome[truths] != TRUE_POSITIVE]
        keep_truths = truths[:MOST_BOXES]
        keep = rows[: max(MOST_BOXES - len(keep_truths), MOST_BOXES // 2)]
        corners = (truth.boxes[self._truths.rows(image)], detections.boxes[rows])
        width, height = frame_size(truth, image, *corners)
        decimals = 0 if max(width, height) >= WHOLE_PIXELS_FROM else 1
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
                significant(detections.scores[keep], 3),
                significant(outcomes.iou[keep], 2),
                strict=True,
            )
        ]
        boxes += [
            [*_box_of(truth, row, decimals), int(self._truth_outcome[row]), None, None, *self._of_truth(row)]
            for row in keep_truths.tolist()
        ]
        outlines = [_outline(detections, row, decimals) for row in keep.tolist()]
        outlines += [_outline(truth, row, decimals) for row in keep_truths.tolist()]
        name = truth.images.file_names[image]
        return {
            "id": str(truth.images.ids[image]),
            "file": None if name is None else PurePath(str(name)).name,
            "width": round(width),
            "height": round(height),
            "boxes": boxes,
            **({} if not any(outlines) else {"corners": outlines}),
            "hidden": len(rows) - len(keep) + len(truths) - len(keep_truths),
        }

    def _of_detection(self, row: int) -> list[Any]:
        """Return what a false positive is, as further fields of its box."""
        wrong = self.evaluation.outcomes.detection[row] == FALSE_POSITIVE
        return self._mistakes.of_detection(row) if wrong else []

    def _of_truth(self, row: int) -> list[Any]:
        return self._mistakes.of_truth(row) if self._truth_outcome[row] == MISSED else []


class _Index:
    """Rows of a table by image."""

    def __init__(self, image: NDArray[np.int32], count: int) -> None:
        self._order = np.argsort(image, kind="stable")
        self._bounds = np.searchsorted(image[self._order], np.arange(count + 1))

    def rows(self, image: int) -> NDArray[np.intp]:
        return self._order[self._bounds[image] : self._bounds[image + 1]]


def outline_of(table: BoxTable, row: int) -> NDArray[np.float64]:
    """Corners of a row as they are drawn, [8]: of its quadrilateral, its rotated box, or its box."""
    if table.quadrilaterals is not None:
        return np.asarray(table.quadrilaterals[row])
    if table.rotated is not None:
        return np.asarray(corners_of_rotated(table.rotated[row : row + 1])[0])
    x, y = table.boxes[row, :2]
    w, h = table.sizes[row]
    return np.array([x, y, x + w, y, x + w, y + h, x, y + h])


def _outline(table: BoxTable, row: int, decimals: int) -> list[Any] | None:
    """Corners of a row that is no upright box, rounded; None for upright ones."""
    if table.quadrilaterals is None and table.rotated is None:
        return None
    numbers = [round(number, decimals) for number in outline_of(table, row).tolist()]
    return numbers if decimals else [_whole(number) for number in numbers]


def _box_of(table: Any, row: int, decimals: int) -> list[Any]:
    """Left, top, width, height and class of a row."""
    exact = (*table.boxes[row, :2].tolist(), *table.sizes[row].tolist())
    numbers = [round(number, decimals) for number in exact]
    return [*(numbers if decimals else map(_whole, numbers)), int(table.category[row])]


def _whole(number: float) -> float:
    """Return a whole number without its decimal point, which takes room in a page."""
    return int(number) if abs(number) < 1e15 else number


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
