"""A sweep of suppression settings: a metric against the IoU threshold, one line a method."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.diagnostics.sweeping import ALL, SETTING
from boxscore.reports.plots._style import COLOURS, GREY, axes, label, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

__all__ = ["Line", "SweepDisplay", "sweep"]

FloatArray = NDArray[np.float64]
STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


class Line(NamedTuple):
    """The settings that differ in the IoU threshold alone."""

    method: str
    rest: str
    """What else is set: ``sigma 0.5, scores >= 0.05``, or nothing."""
    iou_thresholds: FloatArray
    """[N], ascending; empty for a method without."""
    values: FloatArray
    """[N], or the one value of a method without an IoU threshold."""

    @property
    def name(self) -> str:
        """What the legend says."""
        return f"{self.method}, {self.rest}" if self.rest else self.method


@dataclasses.dataclass
class SweepDisplay:
    """One metric of every setting of a sweep.

    Parameters
    ----------
    lines : list of Line
    metric : str
    class_name : str
        ``(all)`` for the whole.
    """

    lines: list[Line]
    metric: str
    class_name: str
    figure_: Any = dataclasses.field(default=None, init=False)
    ax_: Any = dataclasses.field(default=None, init=False)

    @classmethod
    def from_table(cls, table: pd.DataFrame, *, metric: str | None = None, class_name: str = ALL) -> Self:
        """Read a table of :func:`boxscore.diagnostics.sweep`; see :func:`sweep`."""
        known = [name for name in table.columns if name not in (*SETTING, "class", "detections")]
        chosen = known[0] if metric is None else checks.one_of(metric, known, name="metric")
        checks.one_of(class_name, table["class"].unique().tolist(), name="class_name")
        rows = table[table["class"] == class_name]
        lines = []
        for (method, sigma, floor), part in rows.groupby(
            ["method", "sigma", "score_threshold"], dropna=False, sort=False
        ):
            said = {f"sigma {sigma:g}": sigma, f"scores >= {floor:g}": floor}
            rest = ", ".join(text for text, value in said.items() if value == value)
            part = part.sort_values("iou_threshold")
            thresholds = part["iou_threshold"].to_numpy(dtype=np.float64)
            values = part[chosen].to_numpy(dtype=np.float64)
            lines.append(Line(str(method), rest, thresholds[~np.isnan(thresholds)], values))
        return cls(lines, chosen, class_name)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; sets ``figure_`` and ``ax_``."""
        self.figure_, self.ax_ = axes(ax)
        methods = list(dict.fromkeys(line.method for line in self.lines))
        rests = list(dict.fromkeys(line.rest for line in self.lines))
        for line in self.lines:
            number, style = methods.index(line.method), STYLES[rests.index(line.rest) % len(STYLES)]
            name = label(line.name, longest=60)
            look = {"color": COLOURS[number % len(COLOURS)], "linestyle": style, "label": name}
            if len(line.iou_thresholds):
                marker = MARKERS[number % len(MARKERS)]
                self.ax_.plot(line.iou_thresholds, line.values, marker=marker, markersize=3.5, **look)
            else:
                self.ax_.axhline(line.values[0], **look)
        self._mark_the_best()
        of = "" if self.class_name == ALL else f" of {label(self.class_name)}"
        self.ax_.set(xlabel="IoU threshold of the suppression", ylabel=f"{label(self.metric)}{of}")
        if len(self.lines) > 1:
            self.ax_.legend(frameon=False, fontsize="small")
        tidy(self.ax_)
        return self

    def _mark_the_best(self) -> None:
        """Ring the highest value, where it stands at a threshold."""
        defined = [np.where(np.isnan(line.values), -np.inf, line.values) for line in self.lines]
        highest = [float(values.max(initial=-np.inf)) for values in defined]
        best = int(np.argmax(highest)) if highest else 0
        if not highest or not np.isfinite(highest[best]) or not len(self.lines[best].iou_thresholds):
            return
        line = self.lines[best]
        at = int(np.argmax(defined[best]))
        place = (line.iou_thresholds[at], line.values[at])
        self.ax_.plot(*place, "o", markersize=10, fillstyle="none", color=GREY)
        self.ax_.annotate(
            f"{place[1]:.4f} at {place[0]:g}", place, (6, 6), textcoords="offset points", fontsize="small"
        )


def sweep(
    table: pd.DataFrame, *, metric: str | None = None, class_name: str = ALL, ax: Axes | None = None
) -> Figure:
    """Draw a metric against the IoU threshold of the suppression, one line a method.

    Parameters
    ----------
    table : DataFrame
        From :func:`boxscore.diagnostics.sweep`.
    metric : str, optional
        A column of the table; the first metric when not given.
    class_name : str, default "(all)"
        A class, instead of the whole.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        When the table has no such metric or class.
    MissingDependencyError
        When matplotlib is not installed.
    """
    figure: Figure = SweepDisplay.from_table(table, metric=metric, class_name=class_name).plot(ax).figure_
    return figure
