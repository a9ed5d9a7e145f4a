"""Draw a sweep of suppression settings: a metric against the IoU threshold, one line per method."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.data.class_names import EVERY_CLASS
from boxscore.extensions.pages.plots._style import COLORS, GRAY, Display, label, tidy
from boxscore.protocols.metric_names import metric_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

    from boxscore.extensions.diagnostics.sweeping import Sweep

STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


class Line(NamedTuple):
    """Settings that differ only in the IoU threshold."""

    method: str
    rest: str
    """The other settings, such as ``sigma 0.5, scores >= 0.05``; may be empty."""
    iou_thresholds: FloatArray
    """[N], ascending; empty for a method without an IoU threshold."""
    values: FloatArray
    """[N], or the one value of a method without an IoU threshold."""

    @property
    def name(self) -> str:
        """Label in the legend."""
        return f"{self.method}, {self.rest}" if self.rest else self.method


@dataclasses.dataclass
class SweepDisplay(Display):
    """One metric of every setting of a sweep.

    Parameters
    ----------
    lines : list of Line
    metric : str
    class_name : str
        ``(all)`` for all classes together.
    """

    lines: list[Line]
    metric: str
    class_name: str

    @classmethod
    def from_sweep(cls, result: Sweep, *, metric: str | None = None, class_name: str = EVERY_CLASS) -> Self:
        """Read a result of :func:`boxscore.diagnostics.sweep`; see :func:`sweep`."""
        # Take the metric over all classes, or for one class.
        known = list(result.values)
        chosen = known[0] if metric is None else metric_named(metric, known, option="metric")
        checks.one_of(class_name, [EVERY_CLASS, *result.classes], name="class_name")
        if class_name == EVERY_CLASS:
            values = result.total[chosen]
        else:
            values = result.values[chosen][:, result.classes.index(class_name)]
        # Settings that differ only in the IoU threshold are one line.
        groups: dict[tuple[str, float | None, float | None], list[int]] = {}
        for position, setting in enumerate(result.settings):
            key = (setting.method, setting.sigma, setting.score_threshold)
            groups.setdefault(key, []).append(position)
        lines = []
        for (method, sigma, floor), positions in groups.items():
            parts = {"sigma": sigma, "scores >=": floor}
            rest = ", ".join(f"{text} {value:g}" for text, value in parts.items() if value is not None)
            # Sort a line by its thresholds; a setting without one is a point.
            thresholds = [result.settings[i].iou_threshold for i in positions]
            at = np.array([t for t in thresholds if t is not None], dtype=np.float64)
            order = np.argsort(at, kind="stable") if len(at) else np.arange(len(positions))
            lines.append(Line(method, rest, at[order] if len(at) else at, values[positions][order]))
        return cls(lines, chosen, class_name)

    def _draw(self, ax: Any) -> None:
        methods = list(dict.fromkeys(line.method for line in self.lines))
        rests = list(dict.fromkeys(line.rest for line in self.lines))
        for line in self.lines:
            number, style = methods.index(line.method), STYLES[rests.index(line.rest) % len(STYLES)]
            name = label(line.name, longest=60)
            style_of_line = {"color": COLORS[number % len(COLORS)], "linestyle": style, "label": name}
            if len(line.iou_thresholds):
                marker = MARKERS[number % len(MARKERS)]
                ax.plot(line.iou_thresholds, line.values, marker=marker, markersize=3.5, **style_of_line)
            else:
                ax.axhline(line.values[0], **style_of_line)
        self._mark_the_best()
        of = "" if self.class_name == EVERY_CLASS else f" of {label(self.class_name)}"
        ax.set(xlabel="IoU threshold of the suppression", ylabel=f"{label(self.metric)}{of}")
        tidy(ax, legend=len(self.lines) > 1)

    def _mark_the_best(self) -> None:
        """Circle the highest value, if it has a threshold."""
        defined = [np.where(np.isnan(line.values), -np.inf, line.values) for line in self.lines]
        highest = [float(values.max(initial=-np.inf)) for values in defined]
        best = int(np.argmax(highest)) if highest else 0
        if not highest or not np.isfinite(highest[best]) or not len(self.lines[best].iou_thresholds):
            return
        line = self.lines[best]
        at = int(np.argmax(defined[best]))
        point = (line.iou_thresholds[at], line.values[at])
        self.ax_.plot(*point, "o", markersize=10, fillstyle="none", color=GRAY)
        self.ax_.annotate(
            f"{point[1]:.4f} at {point[0]:g}", point, (6, 6), textcoords="offset points", fontsize="small"
        )


def sweep(
    result: Sweep, *, metric: str | None = None, class_name: str = EVERY_CLASS, ax: Axes | None = None
) -> Figure:
    """Draw a metric against the IoU threshold of the suppression, one line per method.

    Parameters
    ----------
    result : Sweep
        Result of :func:`boxscore.diagnostics.sweep`.
    metric : str, optional
        By default the first of the protocol.
    class_name : str, default "(all)"
        A class, instead of all together.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        When the sweep lacks the metric or class.
    MissingDependencyError
        When matplotlib is not installed.
    """
    return SweepDisplay.from_sweep(result, metric=metric, class_name=class_name).figure(ax)
