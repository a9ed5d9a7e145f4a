"""Plots for papers, and boxes over images, with matplotlib.

Goal
----
One function per plot, which returns the matplotlib figure, and a display object behind it for its arrays or
your own axes.

Conventions
-----------
- scikit-learn's: a display holds computed arrays; ``from_evaluation`` computes, ``plot(ax=None)`` draws and
  sets ``figure_`` and ``ax_``. The functions are ``from_evaluation(...).plot(...).figure_``; those of a
  sweep, a comparison and a history, ``from_sweep``, ``from_comparison`` and ``from_records``.
- matplotlib is imported when something is drawn: ``pip install 'boxscore[plots]'``.
- Colours are told apart by colour-blind readers (Okabe and Ito), and are never the only difference.
- Class and file names are drawn as written: no mathematics, no control or direction marks.
"""

from boxscore.reports.plots.bars import (
    CompareDisplay,
    ErrorsDisplay,
    PerClassDisplay,
    compare,
    errors,
    per_class,
)
from boxscore.reports.plots.boxes import draw_boxes
from boxscore.reports.plots.choosing import plot_of
from boxscore.reports.plots.curves import (
    ConfidenceDisplay,
    FrocDisplay,
    MissRateDisplay,
    PrecisionRecallDisplay,
    f1_curve,
    froc,
    miss_rate,
    pr_curve,
)
from boxscore.reports.plots.matrices import (
    ConfusionDisplay,
    ReliabilityDisplay,
    confusion_matrix,
    reliability,
)
from boxscore.reports.plots.runs import HistoryDisplay, history
from boxscore.reports.plots.sweeps import SweepDisplay, sweep

__all__ = [
    "CompareDisplay",
    "ConfidenceDisplay",
    "ConfusionDisplay",
    "ErrorsDisplay",
    "FrocDisplay",
    "HistoryDisplay",
    "MissRateDisplay",
    "PerClassDisplay",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "SweepDisplay",
    "compare",
    "confusion_matrix",
    "draw_boxes",
    "errors",
    "f1_curve",
    "froc",
    "history",
    "miss_rate",
    "per_class",
    "plot_of",
    "pr_curve",
    "reliability",
    "sweep",
]
