"""Draw the confusion matrix, and reliability."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.plots._style import COLORS, Display, label, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

    from boxscore.extensions.diagnostics.confusion import ClassOrder, ConfusionMatrix

FEW = 20
"""Maximum number of classes with large cells."""

NUMBERED = 50
"""Maximum number of classes for which each cell shows its count."""


@dataclasses.dataclass
class ConfusionDisplay(Display):
    """A confusion matrix.

    Parameters
    ----------
    counts : ndarray of int64, [n, n]
        Rows are true classes, columns predicted ones.
    labels : list of str, [n]
        Classes, then the background.
    title : str
    """

    counts: NDArray[np.int64]
    labels: list[str]
    title: str = ""

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        score_threshold: float | None = None,
        most: int = 40,
        order: ClassOrder = "file",
    ) -> Self:
        """Count the confusions of an evaluation; see :func:`confusion_matrix`."""
        from boxscore.diagnostics import confusion_matrix as count
        from boxscore.extensions.diagnostics.confusion import EVERY_SCORE

        checks.whole_number(most, 1, name="most")
        if score_threshold is None:
            score_threshold = max(evaluation.operating_score, EVERY_SCORE)
        matrix = count(evaluation, score_threshold=score_threshold)
        display = cls.from_matrix(matrix, most=most)
        rows = matrix.ordered(matrix.most_confused(most), order, evaluation)
        display.counts, display.labels = _part(matrix, rows)
        if evaluation.has_scores and score_threshold > EVERY_SCORE:
            display.title = f"score \N{GREATER-THAN OR EQUAL TO} {score_threshold:.3g}{display.title}"
        return display

    @classmethod
    def from_matrix(cls, matrix: ConfusionMatrix, *, most: int = 40) -> Self:
        """Read a result of :func:`boxscore.diagnostics.confusion_matrix`."""
        checks.whole_number(most, 1, name="most")
        classes = len(matrix.labels) - 1
        title = f", the {most} most confused of {classes:,} classes" if most < classes else ""
        return cls(*_part(matrix, matrix.most_confused(most)), title)

    def _size(self) -> tuple[float, float]:
        n = len(self.labels)
        side = min(14.0, 2.2 + 0.22 * n) if n > FEW else 2.2 + 0.36 * n
        return side + 0.8, side

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import PowerNorm

        n = len(self.labels)
        total = self.counts.sum(axis=1, keepdims=True)
        shares = np.divide(self.counts, total, out=np.zeros(self.counts.shape), where=total > 0)
        # Color by the square root, which separates small fractions; the bar has the fractions.
        image = ax.imshow(shares, cmap="Blues", norm=PowerNorm(0.5, vmin=0, vmax=1.1))
        bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02, ticks=[0, 0.05, 0.2, 0.5, 1])
        bar.set_label("fraction of the true class", fontsize="small")
        bar.ax.tick_params(labelsize=8)
        bar.ax.set_ylim(0, 1)
        names = [label(name, longest=18) for name in self.labels]
        small = 8 if n <= FEW else 6
        ax.set_xticks(range(n), names, rotation=90, fontsize=small)
        ax.set_yticks(range(n), names, fontsize=small)
        if n <= NUMBERED:
            for row, column in np.argwhere(self.counts > 0).tolist():
                dark = "white" if shares[row, column] > 0.4 else "black"
                number = f"{self.counts[row, column]}"
                size = 7 if n <= FEW else 4.5
                ax.text(column, row, number, ha="center", va="center", color=dark, fontsize=size)
        ax.set(xlabel="prediction", ylabel="truth")
        ax.set_title(self.title.removeprefix(", "), fontsize="medium")


def _part(matrix: ConfusionMatrix, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the counts and labels of some classes and the background."""
    shown = [*rows.tolist(), len(matrix.labels) - 1]
    return matrix.counts_of(shown), [matrix.labels[row] for row in shown]


def confusion_matrix(
    evaluation: Evaluation,
    *,
    score_threshold: float | None = None,
    most: int = 40,
    order: ClassOrder = "file",
    ax: Axes | None = None,
) -> Figure:
    """Draw the confusion matrix, shaded by the fraction of each row.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float, optional
        Leave out detections that score below this; by default the score of the best F1.
    most : int, default 40
        Maximum number of classes to draw: those with the most confusions, and the background.
    order : {"file", "AP", "objects", "confusion"}, default "file"
        Order of the classes: that of the ground truth, the lowest first metric, the most objects, or classes
        that are confused with each other together: pairs are joined from the most confused down.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    display = ConfusionDisplay.from_evaluation(
        evaluation, score_threshold=score_threshold, most=most, order=order
    )
    return display.figure(ax)


@dataclasses.dataclass
class ReliabilityDisplay(Display):
    """Precision against the mean score in bins.

    Parameters
    ----------
    confidence, precision, count : ndarray of float64, [bins]
    error, debiased_error : float
        The expected calibration error, and the same corrected for sampling noise.
    """

    confidence: NDArray[np.float64]
    precision: NDArray[np.float64]
    count: NDArray[np.float64]
    error: float
    debiased_error: float

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, bins: int = 10) -> Self:
        """Bin the detections of an evaluation; see :func:`reliability`."""
        from boxscore import diagnostics

        total = diagnostics.reliability(evaluation, bins=bins).total
        filled = total.detections > 0
        errors = diagnostics.calibration_error(evaluation, bins=bins, resamples=0).total
        count = total.detections[filled].astype(np.float64)
        both = float(errors.expected_error), float(errors.debiased_error)
        return cls(total.confidence[filled], total.accuracy[filled], count, *both)

    def _size(self) -> tuple[float, float]:
        return (4.2, 4.0)

    def _draw(self, ax: Any) -> None:
        ax.plot([0, 1], [0, 1], "--", color="#666666", linewidth=1, label="perfect calibration")
        text = "detector"
        if self.error == self.error:
            text += f"\n(expected error {self.error:.3f}, debiased {self.debiased_error:.3f})"
        ax.plot(self.confidence, self.precision, "o-", color=COLORS[0], label=text)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="mean score", ylabel="precision")
        tidy(ax, legend=True)


def reliability(evaluation: Evaluation, *, bins: int = 10, ax: Axes | None = None) -> Figure:
    """Draw precision against the mean score; a calibrated detector follows the diagonal.

    Parameters
    ----------
    evaluation : Evaluation
        Evaluation with scores in [0, 1].
    bins : int, default 10
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    return ReliabilityDisplay.from_evaluation(evaluation, bins=bins).figure(ax)
