"""Bars: AP of each class, the cost of each kind of error, and differences of two detectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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

    from boxscore.diagnostics.compare import DetectorComparison

__all__ = ["CompareDisplay", "ErrorsDisplay", "PerClassDisplay", "compare", "errors", "per_class"]

FloatArray = NDArray[np.float64]


def _bar_size(count: int) -> tuple[float, float]:
    return 5.0, float(min(30.0, 1.0 + 0.24 * max(count, 3)))


def _name_bars(ax: Axes, labels: list[str]) -> None:
    ax.set_yticks(range(len(labels)), [label(name) for name in labels], fontsize=8)
    ax.set_ylim(len(labels) - 0.4, -0.6)


@dataclasses.dataclass
class PerClassDisplay:
    """One number of each class, best first.

    Parameters
    ----------
    labels : list of str, [K]
    values : ndarray of float64, [K]
    metric : str
    """

    labels: list[str]
    values: FloatArray
    metric: str
    figure_: Any = dataclasses.field(default=None, init=False)
    ax_: Any = dataclasses.field(default=None, init=False)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, metric: str | None = None, most: int = 100) -> Self:
        """Read the numbers of an evaluation; see :func:`per_class`."""
        checks.whole_number(most, 1, name="most")
        known = evaluation.class_values
        chosen = next(iter(known)) if metric is None else checks.one_of(metric, list(known), name="metric")
        values = known[chosen]
        order = np.argsort(-values, kind="stable")
        order = order[~np.isnan(values[order])][:most]
        return cls([evaluation.labels[row] for row in order.tolist()], values[order], chosen)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; sets ``figure_`` and ``ax_``."""
        self.figure_, self.ax_ = axes(ax, size=_bar_size(len(self.labels)))
        self.ax_.barh(range(len(self.labels)), self.values, color=COLOURS[0], height=0.7)
        _name_bars(self.ax_, self.labels)
        self.ax_.set(xlabel=self.metric, xlim=(0, 1))
        tidy(self.ax_, grid="x")
        return self


def per_class(
    evaluation: Evaluation, *, metric: str | None = None, most: int = 100, ax: Axes | None = None
) -> Figure:
    """Draw one number of each class as bars.

    Parameters
    ----------
    evaluation : Evaluation
    metric : str, optional
        A column of ``per_class``; the first headline number when not given.
    most : int, default 100
        Classes drawn, best first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    figure: Figure = PerClassDisplay.from_evaluation(evaluation, metric=metric, most=most).plot(ax).figure_
    return figure


@dataclasses.dataclass
class ErrorsDisplay:
    """What each kind of error costs.

    Parameters
    ----------
    kinds : list of str
    costs : ndarray of float64
        AP, as a fraction.
    """

    kinds: list[str]
    costs: FloatArray
    figure_: Any = dataclasses.field(default=None, init=False)
    ax_: Any = dataclasses.field(default=None, init=False)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation) -> Self:
        """Sort the errors of an evaluation; see :func:`errors`."""
        from boxscore.diagnostics import error_types

        result = error_types(evaluation)
        return cls([name.replace("_", " ") for name in result.errors], result.total.cost)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; sets ``figure_`` and ``ax_``."""
        self.figure_, self.ax_ = axes(ax, size=_bar_size(len(self.kinds)))
        special = [kind.startswith("false") for kind in self.kinds]
        colours = [COLOURS[1] if flag else COLOURS[0] for flag in special]
        places = np.arange(len(self.kinds)) + 0.5 * np.array(special, dtype=float)
        bars = self.ax_.barh(places, np.nan_to_num(self.costs), color=colours, height=0.7)
        self.ax_.bar_label(bars, [f"{cost:.3f}" for cost in self.costs], padding=3, fontsize=8)
        self.ax_.set_yticks(places, self.kinds, fontsize=8)
        self.ax_.invert_yaxis()
        self.ax_.set_xlabel("AP at IoU 0.50 that it costs")
        self.ax_.margins(x=0.15)
        tidy(self.ax_, grid="x")
        return self


def errors(evaluation: Evaluation, *, ax: Axes | None = None) -> Figure:
    """Draw what each kind of error costs in AP, after TIDE.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    figure: Figure = ErrorsDisplay.from_evaluation(evaluation).plot(ax).figure_
    return figure


@dataclasses.dataclass
class CompareDisplay:
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
    figure_: Any = dataclasses.field(default=None, init=False)
    ax_: Any = dataclasses.field(default=None, init=False)

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

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; sets ``figure_`` and ``ax_``."""
        self.figure_, self.ax_ = axes(ax, size=_bar_size(len(self.metrics)))
        sure = (self.low > 0) | (self.high < 0)
        for chosen, colour, marker, text in (
            (sure, COLOURS[0], "o", "interval leaves out 0"),
            (~sure, "#666666", "D", "cannot tell"),
        ):
            place = np.flatnonzero(chosen)
            reach = [
                self.delta - np.minimum(self.low, self.delta),
                np.maximum(self.high, self.delta) - self.delta,
            ]
            if len(place):
                spread = [side[place] for side in reach]
                self.ax_.errorbar(
                    self.delta[place], place, xerr=spread, fmt=marker, color=colour, markersize=4, label=text
                )
        self.ax_.axvline(0, color="black", linewidth=0.8)
        _name_bars(self.ax_, self.metrics)
        self.ax_.set_xlabel(f"{label(self.names[1])} minus {label(self.names[0])}")
        if len(self.metrics):
            self.ax_.legend(frameon=False, fontsize="small")
        tidy(self.ax_, grid="x")
        return self


def compare(
    evaluations: Mapping[str, Evaluation],
    *,
    resamples: int = 200,
    seed: int = 0,
    ax: Axes | None = None,
) -> Figure:
    """Draw the differences of two detectors with 95 % intervals.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two, by name, of one ground truth; of more, the first two are drawn.
    resamples : int, default 200
    seed : int, default 0
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
    """
    display = CompareDisplay.from_evaluations(evaluations, resamples=resamples, seed=seed)
    figure: Figure = display.plot(ax).figure_
    return figure
