"""Plots for papers, and boxes over images, with matplotlib.

Goal
----
Each plot has one function, which returns the matplotlib figure, and one display class, for its arrays or for
drawing on existing axes.

Conventions
-----------
- scikit-learn's: a display holds computed arrays; ``from_evaluation`` computes, ``plot(ax=None)`` draws and
  sets ``figure_`` and ``ax_``. The functions are ``from_evaluation(...).plot(...).figure_``; those of a
  sweep, a comparison, a history and epochs, ``from_sweep``, ``from_comparison``, ``from_records`` and
  ``from_curve``.
- matplotlib is imported lazily: ``pip install 'boxscore[plots]'``.
- Colors are distinguishable for color-blind readers (Okabe and Ito), and are never the only difference.
- Class and file names are drawn literally: without mathematics, control or direction marks.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.pages.plots.bars import CompareDisplay as CompareDisplay
    from boxscore.extensions.pages.plots.bars import ErrorsDisplay as ErrorsDisplay
    from boxscore.extensions.pages.plots.bars import PerClassDisplay as PerClassDisplay
    from boxscore.extensions.pages.plots.bars import compare as compare
    from boxscore.extensions.pages.plots.bars import errors as errors
    from boxscore.extensions.pages.plots.bars import per_class as per_class
    from boxscore.extensions.pages.plots.boxes import draw_boxes as draw_boxes
    from boxscore.extensions.pages.plots.choosing import plot_of as plot_of
    from boxscore.extensions.pages.plots.curves import ConfidenceDisplay as ConfidenceDisplay
    from boxscore.extensions.pages.plots.curves import ErrorCurvesDisplay as ErrorCurvesDisplay
    from boxscore.extensions.pages.plots.curves import FrocDisplay as FrocDisplay
    from boxscore.extensions.pages.plots.curves import MissRateDisplay as MissRateDisplay
    from boxscore.extensions.pages.plots.curves import PrecisionRecallDisplay as PrecisionRecallDisplay
    from boxscore.extensions.pages.plots.curves import error_curves as error_curves
    from boxscore.extensions.pages.plots.curves import f1_curve as f1_curve
    from boxscore.extensions.pages.plots.curves import froc as froc
    from boxscore.extensions.pages.plots.curves import miss_rate as miss_rate
    from boxscore.extensions.pages.plots.curves import pr_curve as pr_curve
    from boxscore.extensions.pages.plots.matrices import ConfusionDisplay as ConfusionDisplay
    from boxscore.extensions.pages.plots.matrices import ReliabilityDisplay as ReliabilityDisplay
    from boxscore.extensions.pages.plots.matrices import confusion_matrix as confusion_matrix
    from boxscore.extensions.pages.plots.matrices import reliability as reliability
    from boxscore.extensions.pages.plots.pairs import draw_pairs as draw_pairs
    from boxscore.extensions.pages.plots.runs import EpochsDisplay as EpochsDisplay
    from boxscore.extensions.pages.plots.runs import HistoryDisplay as HistoryDisplay
    from boxscore.extensions.pages.plots.runs import epochs as epochs
    from boxscore.extensions.pages.plots.runs import history as history
    from boxscore.extensions.pages.plots.sweeps import SweepDisplay as SweepDisplay
    from boxscore.extensions.pages.plots.sweeps import sweep as sweep
