"""Draw metrics of successive runs, as ``boxscore check --history`` records them, or of epochs of one run."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore.extensions.decisions.gate import same_rules
from boxscore.extensions.decisions.history import Record
from boxscore.extensions.pages.plots._style import COLORS, GRAY, Display, label, tidy
from boxscore.protocols.metric_names import metric_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

    from boxscore.extensions.epochs.curve import EpochCurve

MARKERS = ("o", "s", "^", "D", "v", "P")
MOST_TICKS = 12


@dataclasses.dataclass
class HistoryDisplay(Display):
    """Metrics of successive runs, evenly spaced.

    Parameters
    ----------
    runs : list of str, [N]
        Day and name of each run.
    values : mapping of str to ndarray of float64, [N]
        Values by metric; NaN for a run without it.
    failed : ndarray of bool, [N]
    breaks : list of int
        Positions of runs at which the protocol changed; no line leads to them.
    """

    runs: list[str]
    values: dict[str, NDArray[np.float64]]
    failed: NDArray[np.bool_]
    breaks: list[int]

    @classmethod
    def from_records(cls, records: Sequence[Record], *, metrics: Sequence[str] = ()) -> Self:
        """Read the runs of a history; see :func:`history`."""
        ordered = sorted(records, key=lambda record: record.time)
        known = list(dict.fromkeys(name for record in reversed(ordered) for name in record.metrics))
        chosen = [metric_named(name, known, option="metrics") for name in metrics or known[:1]]
        pairs = enumerate(itertools.pairwise(ordered), start=1)
        return cls(
            [f"{record.time:%Y-%m-%d} {record.name or ''}".strip() for record in ordered],
            {name: np.array([record.metrics.get(name) for record in ordered], float) for name in chosen},
            np.array([not record.passed for record in ordered], dtype=bool),
            [i for i, (before, after) in pairs if not same_rules(before.signature, after.signature)],
        )

    def _size(self) -> tuple[float, float]:
        return 6.5, 3.6

    def _draw(self, ax: Any) -> None:
        # Break a line where the data or the protocol changed, because numbers are not comparable across it.
        run = np.arange(len(self.runs))
        for number, (name, values) in enumerate(self.values.items()):
            style = {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)]}
            for part in np.split(run, self.breaks):
                text = label(name) if part[0] == 0 else "_nolegend_"
                ax.plot(part, values[part], markersize=3.5, label=text, **style)
        # Mark failed checks on every line.
        failed = np.flatnonzero(self.failed)
        for number, values in enumerate(self.values.values() if len(failed) else ()):
            text = "_nolegend_" if number else "a check failed"
            ax.plot(failed, values[failed], "x", color="black", markersize=8, label=text)
        for start in self.breaks:
            ax.axvline(start - 0.5, color="#666666", linewidth=0.8, linestyle=":")
        # Label only some of the runs.
        shown = run[:: -(-len(run) // MOST_TICKS)]
        ax.set_xticks(
            shown, [label(self.runs[i]) for i in shown.tolist()], fontsize=8, rotation=30, ha="right"
        )
        if len(self.values) == 1:
            ax.set_ylabel(label(next(iter(self.values))))
        tidy(ax, legend=len(self.values) > 1 or len(failed) > 0)


def history(records: Sequence[Record], *, metrics: Sequence[str] = (), ax: Axes | None = None) -> Figure:
    """Draw metrics of successive runs, sorted by time.

    Parameters
    ----------
    records : sequence of Record
        Records of :func:`boxscore.reports.read_history`.
    metrics : sequence of str, optional
        By default the first one of the last run.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure
        Runs with a failed check have a cross. Where the protocol changes, a dotted line separates the runs,
        and no curve crosses it, because the scores are not comparable.

    Raises
    ------
    InputError
        When no run has the metric.
    MissingDependencyError
        When matplotlib is not installed.
    """
    return HistoryDisplay.from_records(records, metrics=metrics).figure(ax)


@dataclasses.dataclass
class EpochsDisplay(Display):
    """The score of each epoch of a training run.

    Parameters
    ----------
    curve : EpochCurve
    """

    curve: EpochCurve

    @classmethod
    def from_curve(cls, curve: EpochCurve) -> Self:
        """Take the result of :func:`boxscore.epochs.epoch_curve`; see :func:`epochs`."""
        return cls(curve)

    def _draw(self, ax: Any) -> None:
        curve, at = self.curve, np.array(self.curve.epochs, dtype=np.float64)
        ax.fill_between(at, curve.low, curve.high, color=COLORS[0], alpha=0.15, linewidth=0, label="interval")
        ax.plot(at, curve.values, color=COLORS[0], marker="o", markersize=3, label=label(curve.metric))
        # Epochs that may be the best are filled; the best one is circled.
        may = curve.may_be_best
        ax.plot(at[may], curve.values[may], "s", color=COLORS[1], markersize=5, label="may be the best")
        best = (at[curve.best], curve.values[curve.best])
        ax.plot(*best, "o", markersize=11, fillstyle="none", color=GRAY)
        text = f"{curve.values[curve.best]:.4f} at {curve.epochs[curve.best]}"
        ax.annotate(text, best, (6, 8), textcoords="offset points", fontsize="small")
        ax.set(xlabel="epoch", ylabel=label(curve.metric))
        tidy(ax, legend=True)


def epochs(curve: EpochCurve, *, ax: Axes | None = None) -> Figure:
    """Draw the score of each epoch of a training run, with the intervals and the epochs that may be the best.

    Parameters
    ----------
    curve : EpochCurve
        Result of :func:`boxscore.epochs.epoch_curve`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    MissingDependencyError
        When matplotlib is not installed.
    """
    return EpochsDisplay.from_curve(curve).figure(ax)
