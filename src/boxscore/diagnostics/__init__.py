"""Why a score is what it is: diagnostics as tidy pandas tables. Nothing here draws.

Conventions
-----------
- Every function takes an :class:`~boxscore.evaluation.Evaluation` and reads its one ``Matches`` value, or one
  matching across classes made with the same overlaps. Nothing is matched twice to answer a second question.
  ``sweep`` alone takes the tables: it tries what comes before evaluation.
- Undefined is NaN. ``class`` is ``(all)`` for all classes together.
"""

from boxscore.diagnostics.bootstrap import bootstrap_intervals
from boxscore.diagnostics.calibration import calibration_error, reliability
from boxscore.diagnostics.compare import compare
from boxscore.diagnostics.confidence import confidence_curve, operating_points
from boxscore.diagnostics.confusion import confusion_matrix, top_confusions
from boxscore.diagnostics.explain import Explanation, ablation, explain, find_number, tool_names
from boxscore.diagnostics.label_suspects import label_suspects
from boxscore.diagnostics.lrp import localisation_recall_precision
from boxscore.diagnostics.slices import slice_names, slice_scores
from boxscore.diagnostics.sweeping import best_settings, sweep
from boxscore.diagnostics.tide import error_list, error_types
from boxscore.diagnostics.ties import tie_bounds

__all__ = [
    "Explanation",
    "ablation",
    "best_settings",
    "bootstrap_intervals",
    "calibration_error",
    "compare",
    "confidence_curve",
    "confusion_matrix",
    "error_list",
    "error_types",
    "explain",
    "find_number",
    "label_suspects",
    "localisation_recall_precision",
    "operating_points",
    "reliability",
    "slice_names",
    "slice_scores",
    "sweep",
    "tie_bounds",
    "tool_names",
    "top_confusions",
]
