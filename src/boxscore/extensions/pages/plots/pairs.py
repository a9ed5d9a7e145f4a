"""Draw pairs over an image: ground truth in green, detections in red, and the IoU of each pair.

Conventions
-----------
- Every ground truth is drawn, matched or not, with a solid line; detections have dashed lines.
- The pair of a detection is its matched object, otherwise the object of its class with the largest overlap;
  then ``(no match)`` follows the IoU.
- If the protocol compares masks or keypoints, these are drawn.
- Plain boxes are accepted instead of tables; they belong to one image and one class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.data.base import BaseTable
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.overlaps import pair_overlaps
from boxscore.extensions.pages.gallery import MOST_BOXES
from boxscore.extensions.pages.plots._style import is_inline, label, pyplot
from boxscore.extensions.pages.plots.boxes import (
    Canvas,
    Style,
    canvas_of,
    draw_legend,
    draw_shape,
    evaluated_image,
    score_text,
    shown_detections,
    write,
)
from boxscore.matching.outcomes import MISSED
from boxscore.protocols.protocol import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRUTH = Style("ground truth", "#0a8f3c", "-", 2.0)
DETECTION = Style("detection", "#d81b1b", (0, (5, 2)), 2.0)


class _Pair(NamedTuple):
    """The label of a detection."""

    overlap: float
    matched: bool


def draw_pairs(
    image: Any,
    ground_truth: GroundTruth | ArrayLike,
    detections: Detections | ArrayLike,
    *,
    image_id: Id | None = None,
    score_threshold: float = -np.inf,
    protocol: str | Protocol = "coco",
    labels: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draw ground truth in green and detections in red, with the IoU of each pair.

    Parameters
    ----------
    image : array_like of shape [height, width] or [height, width, 3], path, Pillow image, or None
        None draws over a blank frame with the image size of the ground truth.
    ground_truth : GroundTruth or array_like, [G, 4]
        A table, or boxes ``x1, y1, x2, y2`` in pixels.
    detections : Detections or array_like, [D, 4]
    image_id : int or str, optional
        Which image to draw; required if the tables hold several.
    score_threshold : float, optional
        Leave out detections that score below this.
    protocol : str or Protocol, default "coco"
        Decides how shapes are compared (boxes, inclusive pixels, masks) and which match at its first
        threshold.
    labels, legend : bool, default True
        Whether to add classes and scores to the IoU, and whether to draw a legend.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        When the tables hold several images and ``image_id`` is missing, or the image cannot be read.
    MissingDependencyError
        When matplotlib is not installed.
    """
    pyplot()
    named = isinstance(ground_truth, BaseTable) and isinstance(detections, BaseTable)
    truth, detected = _tables(ground_truth, detections)
    evaluation, image_id = evaluated_image(truth, detected, image_id=image_id, protocol=protocol)
    return draw_evaluated_pairs(
        image,
        evaluation,
        image_id,
        score_threshold=score_threshold,
        labels=labels and named,
        legend=legend,
        ax=ax,
    )


def _tables(
    ground_truth: GroundTruth | ArrayLike, detections: Detections | ArrayLike
) -> tuple[GroundTruth, Detections]:
    """Make tables of boxes; image and class come from the other side if that is a table."""
    # Arrays on both sides are boxes of one image and one class.
    if not isinstance(ground_truth, GroundTruth):
        boxes = checks.float_array(ground_truth, name="ground_truth", columns=4)
        ground_truth = GroundTruth.from_arrays(
            [0] * len(boxes), ["object"] * len(boxes), boxes, images=[0], categories=["object"]
        )
    # Without scores, all scores are equal; the vocabulary must be that of the ground truth.
    if not isinstance(detections, Detections):
        boxes = checks.float_array(detections, name="detections", columns=4)
        ids, classes = ground_truth.images.ids.tolist(), ground_truth.categories.ids.tolist()
        detections = Detections.from_arrays(
            ids[:1] * len(boxes),
            classes[:1] * len(boxes),
            boxes,
            [1.0] * len(boxes),
            images=ground_truth.images,
            categories=ground_truth.categories,
        )
    return ground_truth, detections


def draw_evaluated_pairs(
    image: Any,
    evaluation: Evaluation,
    image_id: Id,
    *,
    score_threshold: float = -np.inf,
    labels: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draw the pairs of one image of an evaluation; arguments as in :func:`draw_pairs`.

    Returns
    -------
    matplotlib Figure
    """
    # Draw objects first, then detections with the most confident last.
    canvas = canvas_of(image, evaluation, image_id, ax=ax)
    truth, detections = evaluation.ground_truth, evaluation.detections
    shown = shown_detections(evaluation, canvas.row, score_threshold)
    truths = np.flatnonzero(truth.image == canvas.row)[:MOST_BOXES]
    for table, rows, style in ((truth, truths, TRUTH), (detections, shown[::-1], DETECTION)):
        for row in rows.tolist():
            draw_shape(canvas.panel, table, row, evaluation.protocol, style)
    # Label objects below their box and detections above, so that labels do not collide.
    names = truth.categories.labels
    if labels:
        outcome = evaluation.outcomes.truth(score_threshold)
        for row in truths.tolist():
            missed = ", missed" if outcome[row] == MISSED else ""
            _write(canvas, truth.boxes[row], label(names[truth.category[row]]) + missed, TRUTH, below=True)
    # Label each detection with the overlap with its partner, matched or not.
    measure, pairs = _pairs(evaluation, canvas.row)
    for row in shown[::-1].tolist():
        words = [f"{label(names[detections.category[row]])}{score_text(detections, row)}"] if labels else []
        if row in pairs:
            overlap, matched = pairs[row]
            words.append(f"{measure}: {overlap:.4f}" + ("" if matched else " (no match)"))
        if words:
            _write(canvas, detections.boxes[row], "  ".join(words), DETECTION, below=False)
    # The legend has only the drawn kinds.
    if legend:
        draw_legend(
            canvas.panel, [style for style, rows in ((TRUTH, truths), (DETECTION, shown)) if len(rows)]
        )
    if ax is None and is_inline():
        pyplot().close(canvas.figure)
    return canvas.figure


def _pairs(evaluation: Evaluation, image: int) -> tuple[str, dict[int, _Pair]]:
    """Return the name of the overlap, and the pair of each detection of an image, by row."""
    table = pair_overlaps(evaluation)
    measure, values = next(iter(table.overlaps.items()))
    chosen = np.flatnonzero(evaluation.detections.image[table.detection] == image)
    # The best one is last, so it remains.
    order = np.lexsort((values[chosen], table.matched[chosen]))
    return measure, {
        int(table.detection[at]): _Pair(float(values[at]), bool(table.matched[at]))
        for at in chosen[order].tolist()
    }


def _write(canvas: Canvas, box: FloatArray, text: str, style: Style, *, below: bool) -> None:
    """Write above the top left or below the bottom left corner of a box, inside the frame."""
    at_right = box[0] > canvas.width * 0.8
    x = float(np.clip(box[2 if at_right else 0], 0, canvas.width))
    y = float(np.clip(box[3 if below else 1], 0, canvas.height))
    inside = y > canvas.height * 0.96 if below else y < canvas.height * 0.04
    sides = {"ha": "right" if at_right else "left", "va": "top" if below != inside else "bottom"}
    write(canvas.panel, (x, y), text, style, size=8, **sides)
