"""The confusion matrix, and reliability."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.evaluation import Evaluation
from boxscore.reports.plots._style import COLOURS, axes, label, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

__all__ = ["ConfusionDisplay", "ReliabilityDisplay", "confusion_matrix", "reliability"]

NUMBERED = 20
"""Up to this many classes each cell says its count."""


@dataclasses.dataclass
class ConfusionDisplay:
    """A confusion matrix.

    Parameters
    ----------
    counts : ndarray of int64, [n, n]
        Rows are the truth, columns the prediction.
    labels : list of str, [n]
    """

    counts: NDArray[np.int64]
    labels: list[str]
    figure_: Any = dataclasses.field(default=None, init=False)
    ax_: Any = dataclasses.field(default=None, init=False)

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, score_threshold: float | None = None, most: int = 40
    ) -> Self:
        """Count the confusions of an evaluation; see :func:`confusion_matrix`."""
        from boxscore.diagnostics import confusion_matrix as count
        from boxscore.reports.diagnosis import operating_score

        checks.whole_number(most, 1, name="most")
        if score_threshold is None:
            score_threshold = max(operating_score(evaluation), -1e300)
        matrix = count(evaluation, score_threshold=score_threshold)
        shown = [*matrix.most_confused(most).tolist(), len(matrix.counts) - 1]
        return cls(matrix.counts[np.ix_(shown, shown)], [matrix.labels[row] for row in shown])

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; sets ``figure_`` and ``ax_``."""
        n = len(self.labels)
        side = min(14.0, 2.2 + 0.22 * n) if n > NUMBERED else 2.2 + 0.36 * n
        self.figure_, self.ax_ = axes(ax, size=(side, side))
        total = self.counts.sum(axis=1, keepdims=True)
        shares = np.divide(self.counts, total, out=np.zeros(self.counts.shape), where=total > 0)
        self.ax_.imshow(np.sqrt(shares), cmap="Blues", vmin=0, vmax=1.05)
        names = [label(name, longest=18) for name in self.labels]
        small = 8 if n <= NUMBERED else 6
        self.ax_.set_xticks(range(n), names, rotation=90, fontsize=small)
        self.ax_.set_yticks(range(n), names, fontsize=small)
        if n <= NUMBERED:
            for row, column in np.argwhere(self.counts > 0).tolist():
                dark = "white" if shares[row, column] > 0.4 else "black"
                number = f"{self.counts[row, column]}"
                self.ax_.text(column, row, number, ha="center", va="center", color=dark, fontsize=7)
        self.ax_.set(xlabel="prediction", ylabel="truth")
        return self


def confusion_matrix(
    evaluation: Evaluation,
    *,
    score_threshold: float | None = None,
    most: int = 40,
    ax: Axes | None = None,
) -> Figure:
    """Draw the confusion matrix; the shade is the share of the row.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float, optional
        Detections below take no part; the score of the best F1 when not given.
    most : int, default 40
        Classes drawn: those with most confusions, and the background.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    figure: Figure = (
        ConfusionDisplay.from_evaluation(evaluation, score_threshold=score_threshold, most=most)
        .plot(ax)
        .figure_
    )
    return figure


@dataclasses.dataclass
class ReliabilityDisplay:
    """Precision against confidence in bins.

    Parameters
    ----------
    confidence, precision, count : ndarray of float64, [bins]
    error : float
        The expected calibration error.
    """

    confidence: NDArray[np.float64]
    precision: NDArray[np.float64]
    count: NDArray[np.float64]
    error: float
    figure_: Any = dataclasses.field(default=None, init=False)
    ax_: Any = dataclasses.field(default=None, init=False)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, bins: int = 10) -> Self:
        """Bin the detections of an evaluation; see :func:`reliability`."""
        from boxscore import diagnostics

        total = diagnostics.reliability(evaluation, bins=bins).total
        filled = total.detections > 0
        error = float(diagnostics.calibration_error(evaluation, bins=bins).total.expected_error)
        count = total.detections[filled].astype(np.float64)
        return cls(total.confidence[filled], total.accuracy[filled], count, error)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; sets ``figure_`` and ``ax_``."""
        self.figure_, self.ax_ = axes(ax, size=(4.2, 4.0))
        self.ax_.plot([0, 1], [0, 1], "--", color="#666666", linewidth=1, label="as it should be")
        text = "detector" if self.error != self.error else f"detector (expected error {self.error:.3f})"
        self.ax_.plot(self.confidence, self.precision, "o-", color=COLOURS[0], label=text)
        self.ax_.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="mean confidence", ylabel="precision")
        self.ax_.legend(frameon=False, fontsize="small")
        tidy(self.ax_)
        return self


def reliability(evaluation: Evaluation, *, bins: int = 10, ax: Axes | None = None) -> Figure:
    """Draw precision against confidence; a calibrated detector lies on the diagonal.

    Parameters
    ----------
    evaluation : Evaluation
        With scores in [0, 1].
    bins : int, default 10
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    figure: Figure = ReliabilityDisplay.from_evaluation(evaluation, bins=bins).plot(ax).figure_
    return figure
