"""Draw curves: precision-recall, F1 against the score threshold, sensitivity against false positives."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.plots._style import COLORS, GRAY, Display, label, tidy
from boxscore.scoring.blocks import mean_of_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

    from boxscore.extensions.diagnostics.analysis import ErrorCurves

FROC_VALUES = 512
"""Number of points, in false positives per image, at which a curve is drawn."""

MOST_TICKS = 12

STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
"""Line styles of classes in color."""

STEP_COLORS = ("#FFFFFF", "#E8EBEF", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
"""Colors of the steps of COCO's analysis, in the familiar order and hues."""


STEP_HATCHES = ("", "", "////", "xxxx", "....", "\\\\\\\\", "")
"""Patterns of the steps, so that they differ in grayscale."""

MARKERS = ("", "o", "s", "^", "D", "v", "P")
"""Markers of classes in color, one more for each round of the line styles."""


@dataclasses.dataclass
class PrecisionRecallDisplay(Display):
    """Precision-recall curves of some classes and their mean.

    Parameters
    ----------
    recall : ndarray of float64, [R]
    precision : ndarray of float64, [K, R]
        Interpolated, one row per class with ground truth.
    labels : list of str, [K]
    iou : float
    highlight : sequence of str
        Classes drawn in color and labeled; the others are faint.
    weights : ndarray of float64, [K], optional
        Weight of each class in the mean.
    average_precision : ndarray of float64, [K], optional
        AP of each class at this IoU threshold, for the legend.
    """

    recall: FloatArray
    precision: FloatArray
    labels: list[str]
    iou: float
    highlight: Sequence[str] = ()
    weights: FloatArray | None = None
    average_precision: FloatArray | None = None

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, iou_threshold: float | None = None, classes: Sequence[str] = ()
    ) -> Self:
        """Read the curves of an evaluation; see :func:`pr_curve`."""
        from boxscore.extensions.diagnostics._reading import threshold_index

        evaluation._require_scores()
        index = threshold_index(evaluation, iou_threshold)
        _check_classes(evaluation, classes)
        curves = evaluation.curves_of()
        defined = np.flatnonzero(curves.positive)
        precision = np.ascontiguousarray(curves.interpolated[index, :, defined])
        labels = [evaluation.labels[k] for k in defined.tolist()]
        points = np.array(evaluation.protocol.ap.recall_points)
        iou = evaluation.protocol.matching.iou_thresholds[index]
        weights = None if evaluation._class_weights is None else evaluation._class_weights[defined]
        values = curves.average_precision[index, defined]
        return cls(points, precision, labels, iou, list(classes), weights, values)

    def _draw(self, ax: Any) -> None:
        _highlight(ax, self.recall, self.precision, self.labels, self.highlight, self.average_precision)
        if len(self.precision):
            mean = mean_of_lines(self.precision.T, self.weights)
            name = "mean over classes" if len(self.precision) > 1 else label(self.labels[0])
            if self.average_precision is not None:
                name += f", AP {np.average(self.average_precision, weights=self.weights):.3f}"
            ax.plot(self.recall, mean, color="black", linewidth=2, label=name)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel=f"precision at IoU {self.iou:.2f}")
        tidy(ax, legend=len(self.precision) > 0)


def pr_curve(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    classes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Figure:
    """Draw precision against recall.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first).
    classes : sequence of str
        Classes to draw in color; all others are faint lines.
    ax : matplotlib Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        When the protocol does not have the threshold, or a class does not exist.
    MissingDependencyError
        When matplotlib is not installed.
    """
    display = PrecisionRecallDisplay.from_evaluation(evaluation, iou_threshold=iou_threshold, classes=classes)
    return display.figure(ax)


@dataclasses.dataclass
class ConfidenceDisplay(Display):
    """F1, precision and recall of all classes together against the score threshold.

    Parameters
    ----------
    score, f1, precision, recall : ndarray of float64, [N]
    best : float
        The threshold of the best F1; NaN for none.
    """

    score: FloatArray
    f1: FloatArray
    precision: FloatArray
    recall: FloatArray
    best: float

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation) -> Self:
        """Read the counted curves of an evaluation; see :func:`f1_curve`."""
        from boxscore.diagnostics import confidence_curve, operating_points

        curve, best = confidence_curve(evaluation).total, operating_points(evaluation).total
        return cls(curve.score, curve.f_score, curve.precision, curve.recall, float(best.score))

    def _draw(self, ax: Any) -> None:
        lines = ((self.precision, "precision", "--"), (self.recall, "recall", ":"), (self.f1, "F1", "-"))
        for (values, name, style), color in zip(lines, COLORS, strict=False):
            ax.plot(self.score, values, style, color=color, label=name, linewidth=1.8)
        if self.best == self.best:
            top = float(np.nanmax(self.f1))
            ax.plot([self.best], [top], "o", color=COLORS[2])
            text = f"F1 {top:.3f} at {self.best:.3g}"
            ax.annotate(text, (self.best, top), (4, 6), textcoords="offset points", fontsize="small")
        ax.set(xlabel="score threshold", ylim=(0, 1.05))
        tidy(ax, legend=True)


def f1_curve(evaluation: Evaluation, *, ax: Axes | None = None) -> Figure:
    """Draw F1, precision and recall against the score threshold, and mark the best F1.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    return ConfidenceDisplay.from_evaluation(evaluation).figure(ax)


@dataclasses.dataclass
class FrocDisplay(Display):
    """Sensitivity of some classes, and of all together, against false positives per image.

    Parameters
    ----------
    fppi : ndarray of float64, [R]
        Ascending and positive; evenly spaced on a logarithmic axis.
    sensitivity : ndarray of float64, [K, R]
        One row per class with ground truth.
    total : ndarray of float64, [R]
        All classes together.
    labels : list of str, [K]
    iou : float
    points : ndarray of float64, [P]
        Points at which the table evaluates the curve; marked.
    mean : float
        Mean over the points for all classes together.
    highlight : sequence of str
        Classes drawn in color and labeled; the others are faint.
    """

    fppi: FloatArray
    sensitivity: FloatArray
    total: FloatArray
    labels: list[str]
    iou: float
    points: FloatArray
    mean: float
    highlight: Sequence[str] = ()

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, iou_threshold: float | None = None, classes: Sequence[str] = ()
    ) -> Self:
        """Read the curves of an evaluation; see :func:`froc`."""
        from boxscore.diagnostics import froc_scores

        _check_classes(evaluation, classes)
        # The protocol's points define the mean and the range of the curve.
        table = froc_scores(evaluation, iou_threshold=iou_threshold)
        points = table.fppi[table.fppi > 0]
        low, high = (points[0], points[-1]) if len(points) > 1 else (0.125, 8.0)
        # Use the same function at many points to draw the line, so that it passes through the numbers of the
        # table.
        line = froc_scores(
            evaluation, fppi=np.geomspace(low, high, FROC_VALUES).tolist(), iou_threshold=iou_threshold
        )
        # Skip classes without objects.
        defined = np.flatnonzero(~np.isnan(line.per_class.mean))
        iou = evaluation.protocol.matching.iou_thresholds[0] if iou_threshold is None else iou_threshold
        return cls(
            line.fppi,
            line.per_class.sensitivity[defined],
            line.total.sensitivity,
            [evaluation.labels[k] for k in defined.tolist()],
            iou,
            table.fppi,
            float(table.total.mean),
            list(classes),
        )

    def _draw(self, ax: Any) -> None:
        # Draw chosen classes in color, all others faint, the total on top.
        _highlight(ax, self.fppi, self.sensitivity, self.labels, self.highlight)
        if self.mean == self.mean:
            text = f"all classes, mean {self.mean:.3f}"
            ax.plot(self.fppi, self.total, color="black", linewidth=2, label=text)
        # Put ticks at the points of the protocol, thinned if there are many.
        ax.set_xscale("log", base=2)
        ticks = self.points[(self.points >= self.fppi[0]) & (self.points <= self.fppi[-1])]
        ticks = ticks[:: len(ticks) // MOST_TICKS + 1]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set(
            xlim=(self.fppi[0], self.fppi[-1]),
            ylim=(0, 1.02),
            xlabel="false positives per image",
            ylabel=f"sensitivity at IoU {self.iou:.2f}",
        )
        tidy(ax, legend=self.mean == self.mean)


def froc(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    classes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Figure:
    """Draw sensitivity against false positives per image, the free-response ROC.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first).
    classes : sequence of str
        Classes to draw in color; all others are faint lines.
    ax : matplotlib Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        When the protocol does not have the threshold, or a class does not exist.
    MissingDependencyError
        When matplotlib is not installed.
    """
    return FrocDisplay.from_evaluation(evaluation, iou_threshold=iou_threshold, classes=classes).figure(ax)


@dataclasses.dataclass
class MissRateDisplay(Display):
    """Miss rate against false positives per image, both logarithmic, one line per summary metric.

    Parameters
    ----------
    fppi : ndarray of float64, [R]
    missed : ndarray of float64, [N, R]
        One row per line.
    labels : list of str, [N]
    anchors : ndarray of float64, [P]
        Points at which the log-average miss rate is evaluated; marked.
    """

    fppi: FloatArray
    missed: FloatArray
    labels: list[str]
    anchors: FloatArray

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, classes: Sequence[str] = ()) -> Self:
        """Read the curves of an evaluation; see :func:`miss_rate`."""
        from boxscore.extensions.crowds.miss_rate_metric import miss_rates
        from boxscore.scoring.curves import Curves

        _check_classes(evaluation, classes)
        # Apply the metric's own rules at many points, so that the curve passes through its points.
        protocol = evaluation.protocol
        areas = [row.area for row in protocol.rows if row.metric == "MR"] or list(
            protocol.ignore.area_ranges
        )[:1]
        anchors = np.array(protocol.miss_rate.false_positives_per_image)
        positive = anchors[anchors > 0]
        low, high = (positive[0], positive[-1]) if len(positive) > 1 else (0.01, 1.0)
        fppi = np.geomspace(low / 2, high * 2, FROC_VALUES)
        rules = protocol.miss_rate.replaced(
            false_positives_per_image=tuple(fppi.tolist()), reading="last_at_most"
        )
        finer = protocol.replaced(miss_rate=rules)
        # Draw a line for each area range of the summary and each class that has a value.
        lines, labels = [], []
        chosen = classes or evaluation.labels
        for area in dict.fromkeys(areas):
            at = list(protocol.ignore.area_ranges).index(area)
            # Compute the rates of all classes together, and choose the lines from them.
            rates = miss_rates(Curves.of(evaluation.matched, protocol, at), finer)[0]
            for name in chosen:
                line = rates[:, evaluation.labels.index(name)]
                if not np.isnan(line).any():
                    lines.append(line)
                    labels.append(", ".join([name] * (len(evaluation.labels) > 1) + [area]))
        return cls(fppi, np.array(lines).reshape(-1, len(fppi)), labels, anchors)

    def _draw(self, ax: Any) -> None:
        for number, (line, name) in enumerate(zip(self.missed, self.labels, strict=True)):
            ax.plot(self.fppi, line, label=label(name), **_look(number))
        for anchor in self.anchors.tolist():
            ax.axvline(anchor, color=GRAY, linewidth=0.5, alpha=0.5)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set(xlim=(self.fppi[0], self.fppi[-1]), ylim=(0.01, 1.1), xlabel="false positives per image")
        ax.set_ylabel("miss rate")
        tidy(ax, legend=bool(self.labels))


def miss_rate(evaluation: Evaluation, *, classes: Sequence[str] = (), ax: Axes | None = None) -> Figure:
    """Draw miss rate against false positives per image, the curve behind MR^-2.

    Parameters
    ----------
    evaluation : Evaluation
    classes : sequence of str
        Classes to draw; by default all.
    ax : matplotlib Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        When a class does not exist.
    MissingDependencyError
        When matplotlib is not installed.
    """
    return MissRateDisplay.from_evaluation(evaluation, classes=classes).figure(ax)


@dataclasses.dataclass
class ErrorCurvesDisplay(Display):
    """COCO's error analysis: the stacked areas between the curves of its steps.

    Parameters
    ----------
    recall : ndarray of float64, [R]
    precision : ndarray of float64, [S, R]
        One row per step.
    areas : ndarray of float64, [S]
        Area under each curve.
    steps : sequence of str, [S]
    name : str
        Title of the plot.
    """

    recall: FloatArray
    precision: FloatArray
    areas: FloatArray
    steps: Sequence[str]
    name: str = ""

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, name: str | None = None, max_detections: int = 100
    ) -> Self:
        """Compute the steps; see :func:`error_curves`."""
        from boxscore.diagnostics import error_curves as compute

        return cls.from_curves(compute(evaluation, max_detections=max_detections), name=name)

    @classmethod
    def from_curves(cls, curves: ErrorCurves, *, name: str | None = None) -> Self:
        """Take the curves of a class, or their mean over classes."""
        title, precision = "mean over classes", curves.mean
        if name is not None:
            title = checks.one_of(name, curves.classes, name="name")
            precision = curves.precision[curves.classes.index(name)]
        return cls(curves.recall, precision, precision.mean(axis=1), curves.steps, title)

    def _draw(self, ax: Any) -> None:
        below = np.zeros(len(self.recall))
        for number, (step, line, area) in enumerate(zip(self.steps, self.precision, self.areas, strict=True)):
            words = f"{step} {area:.3f}"
            look = {"facecolor": STEP_COLORS[number], "hatch": STEP_HATCHES[number]}
            ax.fill_between(self.recall, below, line, edgecolor="#333333", linewidth=0, label=words, **look)
            ax.plot(self.recall, line, color="black", linewidth=0.6)
            below = line
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="recall", ylabel="precision")
        ax.set_title(label(self.name), fontsize="medium")
        tidy(ax, grid=None)
        ax.legend(fontsize="small", loc="lower left", framealpha=0.85)


def error_curves(
    evaluation: Evaluation, *, name: str | None = None, max_detections: int = 100, ax: Axes | None = None
) -> Figure:
    """Draw COCO's error analysis: precision-recall curves that each forgive one more kind of error.

    Parameters
    ----------
    evaluation : Evaluation
    name : str, optional
        A class; by default the mean over classes.
    max_detections : int, default 100
        Use the N highest-scoring detections per image and class.
    ax : matplotlib Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        When the class does not exist, or an option is out of range.
    MissingDependencyError
        When matplotlib is not installed.
    """
    display = ErrorCurvesDisplay.from_evaluation(evaluation, name=name, max_detections=max_detections)
    return display.figure(ax)


def _check_classes(evaluation: Evaluation, names: Sequence[str]) -> None:
    for name in names:
        checks.one_of(name, evaluation.labels, name="classes")


def _look(number: int) -> dict[str, Any]:
    """Return the look of a line: style and marker vary too, so that lines differ in grayscale."""
    turn, place = divmod(number, len(STYLES))
    # The last color, black, is that of the mean.
    return {
        "linestyle": STYLES[place],
        "color": COLORS[number % (len(COLORS) - 1)],
        "linewidth": 1.5,
        "marker": MARKERS[turn % len(MARKERS)],
        "markersize": 4,
        "markevery": 0.1,
    }


def _highlight(
    ax: Any,
    x: FloatArray,
    rows: FloatArray,
    labels: list[str],
    names: Sequence[str],
    values: FloatArray | None = None,
) -> None:
    """Draw the lines of all classes faint, and some in color and style with a label and their AP."""
    for row in rows:
        ax.plot(x, row, color=GRAY, linewidth=0.6, alpha=0.35)
    for number, name in enumerate(names):
        if name in labels:
            row = labels.index(name)
            text = label(name) if values is None else f"{label(name)}, AP {values[row]:.3f}"
            ax.plot(x, rows[row], label=text, **_look(number))
