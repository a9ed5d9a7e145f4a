"""Draw bars: a metric per class, the cost of each kind of error, and differences of two detectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.plots._style import COLORS, Display, label, tidy
from boxscore.protocols.metric_names import metric_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

    from boxscore.extensions.decisions.compare import DetectorComparison
    from boxscore.extensions.diagnostics.tide import ErrorTypes


def _bar_size(count: int) -> tuple[float, float]:
    return 5.0, float(min(30.0, 1.0 + 0.24 * max(count, 3)))


def _name_bars(ax: Axes, labels: list[str]) -> None:
    ax.set_yticks(range(len(labels)), [label(name) for name in labels], fontsize=8)
    ax.set_ylim(len(labels) - 0.4, -0.6)


@dataclasses.dataclass
class PerClassDisplay(Display):
    """One metric per class, best first.

    Parameters
    ----------
    labels : list of str, [K]
    values : ndarray of float64, [K]
    metric : str
    """

    labels: list[str]
    values: FloatArray
    metric: str

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, metric: str | None = None, most: int = 100) -> Self:
        """Read the numbers of an evaluation; see :func:`per_class`."""
        checks.whole_number(most, 1, name="most")
        known = evaluation.class_values
        chosen = next(iter(known)) if metric is None else metric_named(metric, list(known), option="metric")
        values = known[chosen]
        order = np.argsort(-values, kind="stable")
        order = order[~np.isnan(values[order])][:most]
        return cls([evaluation.labels[row] for row in order.tolist()], values[order], chosen)

    def _size(self) -> tuple[float, float]:
        return _bar_size(len(self.labels))

    def _draw(self, ax: Any) -> None:
        ax.barh(range(len(self.labels)), self.values, color=COLORS[0], height=0.7)
        _name_bars(ax, self.labels)
        ax.set(xlabel=self.metric, xlim=(0, 1))
        tidy(ax, grid="x")


def per_class(
    evaluation: Evaluation, *, metric: str | None = None, most: int = 100, ax: Axes | None = None
) -> Figure:
    """Draw one metric per class as bars.

    Parameters
    ----------
    evaluation : Evaluation
    metric : str, optional
        A column of ``per_class``; by default the first summary metric.
    most : int, default 100
        Maximum number of classes to draw, best first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    return PerClassDisplay.from_evaluation(evaluation, metric=metric, most=most).figure(ax)


def best_classes(evaluation: Evaluation, most: int = 5) -> list[str]:
    """Return the classes with the highest values of the first metric; empty for a single class."""
    if len(evaluation.labels) < 2:
        return []
    return PerClassDisplay.from_evaluation(evaluation, most=most).labels


@dataclasses.dataclass
class ErrorsDisplay(Display):
    """The cost of each kind of error.

    Parameters
    ----------
    kinds : list of str
    costs : ndarray of float64
        AP, as a fraction; F1 without scores.
    metric : str, default "AP"
        Metric of the costs.
    """

    kinds: list[str]
    costs: FloatArray
    metric: str = "AP"

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation) -> Self:
        """Sort the errors of an evaluation; see :func:`errors`."""
        from boxscore.diagnostics import error_types

        return cls.from_errors(error_types(evaluation))

    @classmethod
    def from_errors(cls, result: ErrorTypes) -> Self:
        """Read a result of :func:`boxscore.diagnostics.error_types`."""
        return cls([name.replace("_", " ") for name in result.errors], result.total.cost, result.metric)

    def _size(self) -> tuple[float, float]:
        return _bar_size(len(self.kinds))

    def _draw(self, ax: Any) -> None:
        special = [kind.startswith("false") for kind in self.kinds]
        colors = [COLORS[1] if flag else COLORS[0] for flag in special]
        positions = np.arange(len(self.kinds)) + 0.5 * np.array(special, dtype=float)
        bars = ax.barh(positions, np.nan_to_num(self.costs), color=colors, height=0.7)
        ax.bar_label(bars, [f"{cost:.3f}" for cost in self.costs], padding=3, fontsize=8)
        ax.set_yticks(positions, self.kinds, fontsize=8)
        ax.invert_yaxis()
        ax.set_xlabel(f"cost in {self.metric} at IoU 0.50")
        ax.margins(x=0.15)
        tidy(ax, grid="x")


def errors(evaluation: Evaluation, *, ax: Axes | None = None) -> Figure:
    """Draw the cost of each kind of error in AP, or F1 without scores, after TIDE.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    return ErrorsDisplay.from_evaluation(evaluation).figure(ax)


@dataclasses.dataclass
class CompareDisplay(Display):
    """Differences of two detectors with their intervals.

    Parameters
    ----------
    names : tuple of str
        First and second; deltas are second minus first.
    metrics : list of str
    delta, low, high : ndarray of float64
    """

    names: tuple[str, str]
    metrics: list[str]
    delta: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def from_evaluations(
        cls, evaluations: Mapping[str, Evaluation], *, resamples: int = 200, seed: int = 0
    ) -> Self:
        """Compare two evaluations; see :func:`compare`."""
        from boxscore.diagnostics import compare_detectors

        return cls.from_comparison(compare_detectors(evaluations, resamples=resamples, seed=seed))

    @classmethod
    def from_comparison(cls, comparison: DetectorComparison) -> Self:
        """Read the first of the others of :func:`boxscore.diagnostics.compare_detectors`."""
        total = comparison.total
        names = (comparison.first, comparison.others[0])
        return cls(names, comparison.metrics, total.delta[0], total.low[0], total.high[0])

    def _size(self) -> tuple[float, float]:
        return _bar_size(len(self.metrics))

    def _draw(self, ax: Any) -> None:
        # Draw two kinds of points: intervals that exclude 0, and the others.
        sure = (self.low > 0) | (self.high < 0)
        for chosen, color, marker, text in (
            (sure, COLORS[0], "o", "interval excludes 0"),
            (~sure, "#666666", "D", "cannot tell"),
        ):
            rows = np.flatnonzero(chosen)
            # Compute the lengths of both sides; an end on the wrong side of the point has length 0, as
            # matplotlib needs.
            reach = [
                self.delta - np.minimum(self.low, self.delta),
                np.maximum(self.high, self.delta) - self.delta,
            ]
            if len(rows):
                spread = [side[rows] for side in reach]
                ax.errorbar(
                    self.delta[rows], rows, xerr=spread, fmt=marker, color=color, markersize=4, label=text
                )
        # Draw the line at 0 for comparison.
        ax.axvline(0, color="black", linewidth=0.8)
        _name_bars(ax, self.metrics)
        ax.set_xlabel(f"{label(self.names[1])} minus {label(self.names[0])}")
        tidy(ax, grid="x", legend=bool(self.metrics))


def compare(
    evaluations: Mapping[str, Evaluation],
    *,
    resamples: int = 200,
    seed: int = 0,
    ax: Axes | None = None,
) -> Figure:
    """Draw the differences of two detectors with 95% intervals.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two evaluations, by name, with one ground truth; of more, the first two are drawn.
    resamples : int, default 200
    seed : int, default 0
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    display = CompareDisplay.from_evaluations(evaluations, resamples=resamples, seed=seed)
    return display.figure(ax)
