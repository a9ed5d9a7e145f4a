"""Draw boxes over an image, colored by outcome.

Conventions
-----------
- A detection is drawn with class, score and, if it is matched, its IoU. Ground truths are drawn if they are
  missed or ignored; matched ones are represented by their detection (``pairs.py`` draws both).
- If the protocol compares masks or keypoints, these are drawn: outlines with a tinted interior, or limbs and
  points. A point that is labeled but not visible is hollow.
- Outcomes differ in color and line style: true positives are solid green, false positives dashed orange,
  missed objects dotted blue, ignored ones thin gray dots.
- Labels do not cover each other: each takes the first free place at its box, the highest scores first. A
  label without a free place is left out, and the title counts these.
- If only some boxes are chosen, the other objects of the image are thin gray lines without a label.
- For tables of several images, give ``image_id``. The protocol decides the outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.pages.gallery import MOST_BOXES, frame_size
from boxscore.extensions.pages.pictures import read_picture
from boxscore.extensions.pages.plots._style import axes, is_inline, label, pyplot
from boxscore.extensions.pages.shapes import Ring, box_ring, joints_of, limbs_of, rings_of
from boxscore.matching.outcomes import FALSE_POSITIVE, IGNORED, MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import ranked_by
from boxscore.protocols.protocol import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST_SIDE = 2048
"""Longer side in pixels that is drawn, or up to twice as many: a figure of 8 inches has 1200."""

TINT = 0.25
"""Opacity of the interior of a mask."""

SIZE, GLYPH, LINE = 7, 0.62, 1.7
"""Font size of a label in points; width of a character and height of a label, as fractions of it."""


class Style(NamedTuple):
    """The style of a kind of box."""

    name: str
    color: str
    line: Any
    width: float


class Canvas(NamedTuple):
    """Axes that show an image, or a blank frame."""

    figure: Figure
    panel: Axes
    row: int
    """Row of the image."""
    width: float
    height: float


class Chosen(NamedTuple):
    """Boxes to draw, if not all of them."""

    detections: NDArray[np.bool_]
    """[D]"""
    truths: NDArray[np.bool_]
    """[G]"""


OTHER = Style("other object", "#7b828c", "-", 0.8)
"""Style of objects around chosen boxes."""

STYLES = {
    TRUE_POSITIVE: Style("true positive", "#009E73", "-", 1.6),
    FALSE_POSITIVE: Style("false positive", "#D55E00", (0, (5, 2)), 1.6),
    MISSED: Style("missed", "#0072B2", (0, (1.5, 1)), 2.0),
    IGNORED: Style("ignored", "#7b828c", (0, (1, 2)), 1.2),
}


def score_text(detections: Detections, row: int) -> str:
    """Format the score of a detection, to follow its class; empty without scores."""
    return f" {detections.scores[row]:.2f}" if detections.scored else ""


def draw_boxes(
    image: Any,
    ground_truth: GroundTruth,
    detections: Detections | None = None,
    *,
    image_id: Id | None = None,
    score_threshold: float = -np.inf,
    protocol: str | Protocol = "coco",
    labels: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draw ground truth and detections over an image.

    Parameters
    ----------
    image : array_like of shape [height, width] or [height, width, 3], path, Pillow image, or None
        None draws over a blank frame with the image size of the ground truth.
    ground_truth : GroundTruth
    detections : Detections, optional
    image_id : int or str, optional
        Which image to draw; required if the tables hold several.
    score_threshold : float, optional
        Leave out detections that score below this.
    protocol : str or Protocol, default "coco"
        Decides which detections are true positives, at its first IoU threshold.
    labels, legend : bool, default True
        Whether to label boxes, and whether to draw a legend.
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
    if detections is None:
        detections = Detections.from_arrays(
            [], [], [], [], images=ground_truth.images, categories=ground_truth.categories
        )
    evaluation, image_id = evaluated_image(ground_truth, detections, image_id=image_id, protocol=protocol)
    return draw_evaluated(
        image, evaluation, image_id, score_threshold=score_threshold, labels=labels, legend=legend, ax=ax
    )


def evaluated_image(
    ground_truth: GroundTruth, detections: Detections, *, image_id: Id | None, protocol: str | Protocol
) -> tuple[Evaluation, Id]:
    """Evaluate one image: the chosen one, or the only one; also return its id."""
    ids = ground_truth.images.ids.tolist()
    if image_id is None:
        if len(ids) != 1:
            raise InputError("image_id", f"be given for {len(ids)} images", got="none")
        image_id = ids[0]
    evaluation = evaluate(ground_truth, detections, protocol=protocol, images=[image_id], digest=False)
    return evaluation, image_id


def draw_evaluated(
    image: Any,
    evaluation: Evaluation,
    image_id: Id,
    *,
    score_threshold: float = -np.inf,
    labels: bool = True,
    legend: bool = True,
    only: Chosen | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw one image of an evaluation, or ``only`` some of its boxes; arguments as in :func:`draw_boxes`.

    Returns
    -------
    matplotlib Figure
    """
    # Get detections with their outcomes, and objects without a detection at this score.
    canvas = canvas_of(image, evaluation, image_id, ax=ax)
    figure, panel, row = canvas[:3]
    outcomes = evaluation.outcomes
    truth, detections = evaluation.ground_truth, evaluation.detections
    shown = shown_detections(evaluation, row, score_threshold, only=only)
    outcome = outcomes.truth(score_threshold)
    is_shown = outcome != TRUE_POSITIVE if only is None else only.truths
    truths = np.flatnonzero((truth.image == row) & is_shown)[:MOST_BOXES]
    # Draw the objects around chosen boxes below them.
    others = np.flatnonzero((truth.image == row) & ~is_shown)[:MOST_BOXES] if only is not None else ()
    for index in np.asarray(others, dtype=np.int64).tolist():
        draw_shape(panel, truth, index, evaluation.protocol, OTHER)
    # Collect outcomes that occur, for the legend, and the labels.
    used = {}
    names = truth.categories.labels
    written = Labels(canvas)
    # Draw low scores first, so that confident detections are on top.
    for index in reversed(shown.tolist()):
        code = int(outcomes.detection[index])
        draw_shape(panel, detections, index, evaluation.protocol, STYLES[code])
        used[code] = STYLES[code]
    # Draw missed and ignored objects; matched ones have their detection.
    for index in truths.tolist():
        draw_shape(panel, truth, index, evaluation.protocol, STYLES[int(outcome[index])])
        used[int(outcome[index])] = STYLES[int(outcome[index])]
    # Write the labels, those of confident detections first.
    for index in shown.tolist() if labels else ():
        overlap = outcomes.iou[index]
        text = f"{label(names[detections.category[index]], longest=24)}{score_text(detections, index)}"
        text += "" if np.isnan(overlap) else f" IoU {overlap:.2f}"
        written.add(detections.boxes[index], text, STYLES[int(outcomes.detection[index])])
    for index in truths.tolist() if labels else ():
        text = label(names[truth.category[index]], longest=24)
        written.add(truth.boxes[index], text, STYLES[int(outcome[index])])
    if written.left_out:
        panel.set_title(f"{counted(written.left_out, 'label')} left out", fontsize="small", color=OTHER.color)
    # Show only the outcomes that occur in the legend, in a fixed order.
    if legend and used:
        styles = [style for code, style in STYLES.items() if code in used]
        draw_legend(panel, [*styles, *([OTHER] if len(others) else [])])
    if ax is None and is_inline():
        pyplot().close(figure)
    return figure


def shown_detections(
    evaluation: Evaluation, image: int, score_threshold: float, *, only: Chosen | None = None
) -> NDArray[np.int64]:
    """Return the rows of an image's detections above a score, best first; at most ``MOST_BOXES``."""
    scores = ranked_by(evaluation.detections)
    shown = (evaluation.detections.image == image) & (scores >= score_threshold)
    rows = np.flatnonzero(shown if only is None else shown & only.detections)
    return rows[np.argsort(-scores[rows], kind="stable")][:MOST_BOXES]


def canvas_of(image: Any, evaluation: Evaluation, image_id: Id, *, ax: Axes | None) -> Canvas:
    """Show an image of an evaluation, or a blank frame of its size."""
    # Without a picture, make the frame as large as the image or the drawn shapes.
    row = int(evaluation.ground_truth.images.rows([image_id])[0])
    if row < 0:
        raise InputError("image_id", "be known", got=repr(image_id))
    pixels, frame = _pixels(image)
    width, height = frame
    if pixels is None:
        tables = (evaluation.ground_truth, evaluation.detections)
        corners = [table.boxes[table.image == row] for table in tables]
        width, height = frame_size(evaluation.ground_truth, row, *corners)
    # Keep the aspect ratio of the image, with a limit for very long ones.
    long = max(width, height)
    size = (8.0 * max(width / long, 0.3), 8.0 * max(height / long, 0.3))
    figure, panel = axes(ax, size=size)
    if pixels is None:
        panel.set_facecolor("#eef1f5")
    else:
        panel.imshow(pixels, extent=(0, width, height, 0), cmap="gray" if pixels.ndim == 2 else None)
    # Use pixel coordinates, with y downwards.
    panel.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[], aspect="equal")
    return Canvas(figure, panel, row, width, height)


class Labels:
    """Writes labels at boxes so that none covers another.

    Attributes
    ----------
    left_out : int
        Number of labels without a free place.
    """

    def __init__(self, canvas: Canvas) -> None:
        self._panel, self._frame = canvas.panel, (canvas.width, canvas.height)
        # Convert points to the coordinates of the image; one scale holds for both axes.
        inches = canvas.panel.bbox.width / canvas.figure.dpi, canvas.panel.bbox.height / canvas.figure.dpi
        point = max(canvas.width / (72 * inches[0]), canvas.height / (72 * inches[1]))
        self._glyph, self._line = SIZE * GLYPH * point, SIZE * LINE * point
        # Left, top, right and bottom of the written labels.
        self._taken: list[tuple[float, float, float, float]] = []
        self.left_out = 0

    def add(self, box: NDArray[np.float64], text: str, style: Style) -> None:
        """Write a label in the first free place: above the box, below it, or inside from the top down."""
        width, height = len(text) * self._glyph, self._line
        left, right = (float(np.clip(side, 0, self._frame[0])) for side in box[[0, 2]])
        top, bottom = (float(np.clip(side, 0, self._frame[1])) for side in box[[1, 3]])
        inside = np.arange(top, max(bottom - height, top) + 0.1 * height, height).tolist()
        places = [
            (left, top - height),
            (right - width, top - height),
            (left, bottom),
            (right - width, bottom),
        ]
        places += [(left, y) for y in inside] + [(right - width, y) for y in inside]
        for x, y in places:
            x = float(np.clip(x, 0, max(self._frame[0] - width, 0)))
            one = (x, y, x + width, y + height)
            if y >= 0 and one[3] <= self._frame[1] and not any(_overlap(one, other) for other in self._taken):
                self._taken.append(one)
                write(self._panel, (x, one[3]), text, style, size=SIZE, va="bottom")
                return
        self.left_out += 1


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two rectangles overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def write(ax: Axes, at: tuple[float, float], text: str, style: Style, *, size: int, **sides: Any) -> None:
    """Write white text on the color of a style."""
    box = {"facecolor": style.color, "edgecolor": "none", "pad": 1.2, "alpha": 0.9}
    ax.text(*at, text, fontsize=size, color="white", clip_on=True, bbox=box, **sides)


def draw_shape(ax: Axes, table: BoxTable, row: int, protocol: Protocol, style: Style) -> None:
    """Draw a row: its mask's outline with a tinted interior, its corners, or its box with keypoints."""
    rows = np.array([row])
    rings, joints = rings_of(table, rows, protocol)[0], joints_of(table, rows, protocol)
    masked = bool(rings) and table.masks is not None
    thin = style if joints is None else style._replace(width=style.width / 2)
    _draw_rings(ax, rings or [box_ring(table, row)], thin, tint=TINT if masked else 0.0)
    if joints is not None:
        _draw_joints(ax, joints[0], limbs_of(protocol, table.categories), style)


def _draw_rings(ax: Axes, rings: Sequence[Ring], style: Style, *, tint: float) -> None:
    """Draw closed lines with a tinted interior, except for holes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Line
    from matplotlib.patheffects import Normal, Stroke

    closed = [Line([*ring.tolist(), ring[0].tolist()], closed=True) for ring in rings]
    line = Line.make_compound_path(*closed)
    if tint:
        ax.add_patch(PathPatch(line, facecolor=style.color, alpha=tint, linewidth=0))
    shape = PathPatch(line, fill=False, edgecolor=style.color, linestyle=style.line, linewidth=style.width)
    shape.set_path_effects([Stroke(linewidth=style.width + 1.2, foreground="white", alpha=0.7), Normal()])
    ax.add_patch(shape)


def _draw_joints(
    ax: Axes, joints: NDArray[np.float64], limbs: Sequence[tuple[int, int]], style: Style
) -> None:
    """Draw the limbs between present keypoints [J,3], and the points."""
    (x, y), seen = joints[:, :2].T, joints[:, 2]
    for ends in limbs:
        if seen[list(ends)].all():
            ax.plot(x[list(ends)], y[list(ends)], color=style.color, linewidth=style.width)
    for visible, filling in ((2, style.color), (1, "white")):
        ax.scatter(
            x[seen == visible],
            y[seen == visible],
            s=14,
            facecolor=filling,
            edgecolor=style.color,
            linewidth=style.width / 2,
            zorder=3,
        )


def draw_legend(ax: Axes, styles: Sequence[Style]) -> None:
    """Draw a legend of the box styles below the axes."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=style.color, linestyle=style.line, linewidth=style.width, label=style.name)
        for style in styles
    ]
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=4, frameon=False, fontsize=8
    )


def _pixels(image: Any) -> tuple[NDArray[Any] | None, tuple[float, float]]:
    """Return the pixels of an array, a Pillow image or a file, and its full size; None stays None.

    Large images are subsampled, because a figure does not show more pixels.
    """
    if image is None:
        return None, (0, 0)
    size = None
    if isinstance(image, (str, Path)):
        image, size = read_picture(Path(image), LONGEST_SIDE)
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)):
        raise InputError(
            "image", "have shape [height, width] or [height, width, 3]", got=f"shape {list(pixels.shape)}"
        )
    height, width = pixels.shape[:2]
    step = max(1, max(width, height) // LONGEST_SIDE)
    return pixels[::step, ::step], size or (width, height)
