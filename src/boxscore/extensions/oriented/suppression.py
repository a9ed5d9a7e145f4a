"""Apply hard non-maximum suppression to oriented boxes: by IoU, by ProbIoU, or by the IoU of corners.

See :mod:`boxscore.extensions.oriented.rotated`, :mod:`boxscore.extensions.oriented.probiou` and
:mod:`boxscore.extensions.oriented.quadrilateral`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.extensions.oriented.oriented import corners_of, rotated_of
from boxscore.extensions.oriented.probiou import ProbIouMeasure
from boxscore.extensions.oriented.quadrilateral import QuadrilateralMeasure
from boxscore.extensions.oriented.rotated import AngleUnit, RotatedMeasure, rotated_boxes
from boxscore.similarity.measures import Measure, MeasureOf
from boxscore.similarity.pairs import Overlap
from boxscore.suppression._ranked import Ranked, check_groups, check_scores, rank
from boxscore.suppression.hard import select

if TYPE_CHECKING:
    from boxscore.data.tables import Detections


def rotated_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    angle_unit: AngleUnit = "radians",
    measure: Literal["iou", "probiou"] = "iou",
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IntArray:
    """Apply hard non-maximum suppression to rotated boxes.

    Parameters
    ----------
    boxes : array_like, [N, 5]
        ``cx, cy, w, h, angle``.
    angle_unit : {"radians", "degrees"}, default "radians"
    measure : {"iou", "probiou"}, default "iou"
        The overlap to compare with ``iou_threshold``; ultralytics uses ProbIoU.
    scores, groups, iou_threshold, score_threshold, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`; ``groups`` are its ``idxs``, None for one group.

    Returns
    -------
    ndarray of int64, [K]
        Rows of the kept boxes by descending score, ties by lowest index.

    Raises
    ------
    InputError
        As in :func:`rotated_box_iou` and :func:`boxscore.batched_nms`.

    Examples
    --------
    >>> boxes = [[6, 3, 8, 7, 0.5], [3, 6, 9, 11, 0.6], [3, 7, 10, 12, 0.3], [1, 4, 13, 7, 0.6]]
    >>> rotated_nms(boxes, [0.7, 0.8, 0.5, 0.9], 0.5).tolist()
    [3, 1, 0]
    """
    array = rotated_boxes(boxes, angle_unit, name="boxes")
    checks.one_of(measure, ("iou", "probiou"), name="measure")
    similarity = "rotated" if measure == "iou" else "probiou"
    ranked = _ranked(similarity, array, scores, iou_threshold, groups, score_threshold, pre_top_k)
    return select(ranked, iou_threshold, max_per_group=max_per_group).indices


def quadrilateral_nms(
    corners: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IntArray:
    """Apply hard non-maximum suppression to quadrilaterals, as the DOTA devkit merges patches.

    Parameters
    ----------
    corners : array_like, [N, 8]
        ``x1, y1, ..., x4, y4``, the corners in order.
    scores, groups, iou_threshold, score_threshold, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`; ``groups`` are its ``idxs``, None for one group.

    Returns
    -------
    ndarray of int64, [K]
        Kept rows by descending score, ties by lowest index (the devkit's sort does not define their order).

    Raises
    ------
    InputError
        As in :func:`quadrilateral_iou` and :func:`boxscore.batched_nms`.

    Examples
    --------
    >>> corners = [[0, 0, 4, 0, 4, 4, 0, 4], [1, 0, 5, 0, 5, 4, 1, 4], [3, 0, 7, 0, 7, 4, 3, 4]]
    >>> quadrilateral_nms(corners, [0.9, 0.8, 0.7], 0.3).tolist()
    [0, 2]
    """
    array = checks.float_array(corners, name="corners", columns=8)
    checks.finite(array, name="corners")
    ranked = _ranked("quadrilateral", array, scores, iou_threshold, groups, score_threshold, pre_top_k)
    return select(ranked, iou_threshold, max_per_group=max_per_group).indices


def _ranked(
    similarity: str,
    shapes: FloatArray,
    scores: ArrayLike,
    iou_threshold: float,
    groups: ArrayLike | None,
    score_threshold: float | None,
    pre_top_k: int | None,
) -> Ranked:
    """Check the arguments of a public function, except its shapes, and rank the boxes."""
    checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    return rank(
        check_scores(scores, length=len(shapes)),
        None if groups is None else check_groups(groups, length=len(shapes)),
        _measure_of(similarity, shapes, iou_threshold),
        score_threshold=score_threshold,
        pre_top_k=pre_top_k,
    )


def table_measure(
    detections: Detections, group: IntArray, similarity: str, *, overlap: Overlap, lowest: float
) -> MeasureOf:
    """Return the measure of a table's oriented boxes; overlaps up to ``lowest`` may read 0."""
    shapes = corners_of(detections) if similarity == "quadrilateral" else rotated_of(detections)
    return _measure_of(similarity, shapes, lowest)


def _measure_of(similarity: str, shapes: FloatArray, lowest: float) -> MeasureOf:
    def measure_of(rows: IntArray) -> Measure:
        some = shapes.take(rows, axis=0)
        if similarity == "quadrilateral":
            return QuadrilateralMeasure(some, levels=(lowest,))
        return RotatedMeasure(some) if similarity == "rotated" else ProbIouMeasure(some, lowest=lowest)

    return measure_of
