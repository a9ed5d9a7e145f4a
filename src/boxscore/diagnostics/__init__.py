"""Why a score is what it is: one file per question, answered by arrays and a table. Nothing here draws.

Conventions
-----------
- Every function takes an :class:`~boxscore.evaluation.Evaluation` and reads its ``Matches``, or the overlaps
  across classes that its matcher computes once. Nothing is matched again for a second question. Only
  ``sweep`` and ``explain`` take tables, because they vary what comes before matching.
- A result holds arrays; ``to_frame()`` makes a DataFrame. Totals are separate from the rows.
- Undefined is NaN. Rows for all classes together have the ``class`` ``(all)``.
"""

from typing import TYPE_CHECKING

from boxscore._utils.lazy import lazy_names

if TYPE_CHECKING:
    from boxscore.diagnostics._result import DiagnosticResult
    from boxscore.diagnostics._tools import tool_names
    from boxscore.diagnostics.bootstrap import bootstrap_intervals
    from boxscore.diagnostics.calibration import calibration_error, reliability
    from boxscore.diagnostics.compare import compare_detectors
    from boxscore.diagnostics.confidence import confidence_curve, operating_points
    from boxscore.diagnostics.confusion import confusion_matrix, top_confusions
    from boxscore.diagnostics.explaining import (
        Explanation,
        Reading,
        Readings,
        ablation,
        expansions,
        explain,
        find_number,
        readings,
    )
    from boxscore.diagnostics.froc import froc_curve, froc_scores
    from boxscore.diagnostics.images import image_scores
    from boxscore.diagnostics.lrp import localisation_recall_precision
    from boxscore.diagnostics.slices import slice_names, slice_scores
    from boxscore.diagnostics.suspects import label_suspects
    from boxscore.diagnostics.sweeping import best_settings, sweep
    from boxscore.diagnostics.tide import error_list, error_types
    from boxscore.diagnostics.ties import tie_bounds

_NAMES = {
    "boxscore.diagnostics._result": ("DiagnosticResult",),
    "boxscore.diagnostics._tools": ("tool_names",),
    "boxscore.diagnostics.bootstrap": ("bootstrap_intervals",),
    "boxscore.diagnostics.calibration": ("calibration_error", "reliability"),
    "boxscore.diagnostics.compare": ("compare_detectors",),
    "boxscore.diagnostics.confidence": ("confidence_curve", "operating_points"),
    "boxscore.diagnostics.confusion": ("confusion_matrix", "top_confusions"),
    "boxscore.diagnostics.explaining": (
        "Explanation",
        "Reading",
        "Readings",
        "ablation",
        "expansions",
        "explain",
        "find_number",
        "readings",
    ),
    "boxscore.diagnostics.froc": ("froc_curve", "froc_scores"),
    "boxscore.diagnostics.images": ("image_scores",),
    "boxscore.diagnostics.lrp": ("localisation_recall_precision",),
    "boxscore.diagnostics.slices": ("slice_names", "slice_scores"),
    "boxscore.diagnostics.suspects": ("label_suspects",),
    "boxscore.diagnostics.sweeping": ("best_settings", "sweep"),
    "boxscore.diagnostics.tide": ("error_list", "error_types"),
    "boxscore.diagnostics.ties": ("tie_bounds",),
}

__getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "DiagnosticResult",
    "Explanation",
    "Reading",
    "Readings",
    "ablation",
    "best_settings",
    "bootstrap_intervals",
    "calibration_error",
    "compare_detectors",
    "confidence_curve",
    "confusion_matrix",
    "error_list",
    "error_types",
    "expansions",
    "explain",
    "find_number",
    "froc_curve",
    "froc_scores",
    "image_scores",
    "label_suspects",
    "localisation_recall_precision",
    "operating_points",
    "readings",
    "reliability",
    "slice_names",
    "slice_scores",
    "sweep",
    "tie_bounds",
    "tool_names",
    "top_confusions",
]
