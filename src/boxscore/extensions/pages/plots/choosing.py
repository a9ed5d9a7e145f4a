"""Choose the plot of a result, for ``plot()`` of evaluations and of diagnostic results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from boxscore._utils import checks
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.compare import DetectorComparison
from boxscore.extensions.diagnostics.analysis import ErrorCurves
from boxscore.extensions.diagnostics.confusion import ConfusionMatrix
from boxscore.extensions.diagnostics.sweeping import Sweep
from boxscore.extensions.diagnostics.tide import ErrorTypes
from boxscore.extensions.pages.plots.bars import CompareDisplay, ErrorsDisplay, errors, per_class
from boxscore.extensions.pages.plots.curves import (
    ErrorCurvesDisplay,
    error_curves,
    f1_curve,
    froc,
    miss_rate,
    pr_curve,
)
from boxscore.extensions.pages.plots.matrices import ConfusionDisplay, confusion_matrix, reliability
from boxscore.extensions.pages.plots.sweeps import SweepDisplay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OF_EVALUATIONS: dict[str, Callable[..., Any]] = {
    "pr_curve": pr_curve,
    "f1_curve": f1_curve,
    "froc": froc,
    "miss_rate": miss_rate,
    "per_class": per_class,
    "errors": errors,
    "error_curves": error_curves,
    "confusion_matrix": confusion_matrix,
    "reliability": reliability,
}

_OF_RESULTS: dict[type, Callable[..., Any]] = {
    ErrorTypes: ErrorsDisplay.from_errors,
    ErrorCurves: ErrorCurvesDisplay.from_curves,
    ConfusionMatrix: ConfusionDisplay.from_matrix,
    DetectorComparison: CompareDisplay.from_comparison,
    Sweep: SweepDisplay.from_sweep,
}


def plot_of(result: Any, kind: str = "", *, ax: Any = None, **options: Any) -> Figure:
    """Draw an evaluation, or the result of a diagnostic."""
    if isinstance(result, Evaluation):
        draw = _OF_EVALUATIONS[checks.one_of(kind, list(_OF_EVALUATIONS), name="kind")]
        figure: Figure = _call(draw, result, ax=ax, **options)
        return figure
    if type(result) not in _OF_RESULTS:
        known = ", ".join(kind.__name__ for kind in _OF_RESULTS)
        cause = f"these results have plots: {known}; to_frame() returns the numbers"
        raise InputError("a result to draw", "have a plot", got=f"a {type(result).__name__}", cause=cause)
    display = _call(_OF_RESULTS[type(result)], result, **options)
    plot: Figure = display.figure(ax)
    return plot


def _call(draw: Callable[..., Any], result: Any, **options: Any) -> Any:
    """Call a function; reject an option that it does not have."""
    import inspect

    _, *known = inspect.signature(draw).parameters
    for name in options:
        if name not in known:
            cause = checks.did_you_mean(name, known)
            raise InputError("an option", "be one of the plot", got=repr(name), cause=cause)
    return draw(result, **options)
