"""Why a score is what it is: each question one file, each answer arrays and a table. Nothing here draws.

Conventions
-----------
- Every function takes an :class:`~boxscore.evaluation.Evaluation` and reads its one ``Matches`` value, or
  overlaps across classes that its matcher finds once. Nothing is matched twice to answer a second question.
  ``sweep`` alone takes the tables: it tries what comes before evaluation.
- A result holds arrays; ``to_frame()`` makes a DataFrame. Totals stand apart from the rows.
- Undefined is NaN. Where a table has rows of all classes together, their ``class`` is ``(all)``.
"""

from typing import TYPE_CHECKING

from boxscore._utils.lazy import lazy_names

if TYPE_CHECKING:
    from boxscore.diagnostics._result import DiagnosticResult
    from boxscore.diagnostics.bootstrap import bootstrap
    from boxscore.diagnostics.calibration import calibration, reliability
    from boxscore.diagnostics.compare import DetectorComparison, compare_detectors
    from boxscore.diagnostics.confusion import (
        ConfusionMatrix,
        TopConfusions,
        confusion_matrix,
        top_confusions,
    )
    from boxscore.diagnostics.error_types import error_list, error_types
    from boxscore.diagnostics.explain import Explanation, ablation, explain, find_number, tool_names
    from boxscore.diagnostics.localisation_recall_precision import localisation_recall_precision
    from boxscore.diagnostics.operating_points import confidence_curve, operating_points
    from boxscore.diagnostics.slices import slice_names, slices
    from boxscore.diagnostics.suspects import LabelSuspects, label_suspects
    from boxscore.diagnostics.sweeping import BestSettings, Sweep, best_settings, sweep
    from boxscore.diagnostics.ties import tie_bounds

_NAMES = {
    "boxscore.diagnostics._result": ("DiagnosticResult",),
    "boxscore.diagnostics.bootstrap": ("bootstrap",),
    "boxscore.diagnostics.calibration": ("calibration", "reliability"),
    "boxscore.diagnostics.compare": ("DetectorComparison", "compare_detectors"),
    "boxscore.diagnostics.confusion": (
        "ConfusionMatrix",
        "TopConfusions",
        "confusion_matrix",
        "top_confusions",
    ),
    "boxscore.diagnostics.error_types": ("error_list", "error_types"),
    "boxscore.diagnostics.explain": ("Explanation", "ablation", "explain", "find_number", "tool_names"),
    "boxscore.diagnostics.localisation_recall_precision": ("localisation_recall_precision",),
    "boxscore.diagnostics.operating_points": ("confidence_curve", "operating_points"),
    "boxscore.diagnostics.slices": ("slice_names", "slices"),
    "boxscore.diagnostics.suspects": ("LabelSuspects", "label_suspects"),
    "boxscore.diagnostics.sweeping": ("BestSettings", "Sweep", "best_settings", "sweep"),
    "boxscore.diagnostics.ties": ("tie_bounds",),
}

__getattr__, __dir__ = lazy_names(__name__, _NAMES)

if not TYPE_CHECKING:
    # These are named like their modules; loading each here puts the function in the module's place.
    from boxscore.diagnostics.bootstrap import bootstrap
    from boxscore.diagnostics.calibration import calibration
    from boxscore.diagnostics.error_types import error_types
    from boxscore.diagnostics.explain import explain
    from boxscore.diagnostics.localisation_recall_precision import localisation_recall_precision
    from boxscore.diagnostics.operating_points import operating_points
    from boxscore.diagnostics.slices import slices

__all__ = [
    "BestSettings",
    "ConfusionMatrix",
    "DetectorComparison",
    "DiagnosticResult",
    "Explanation",
    "LabelSuspects",
    "Sweep",
    "TopConfusions",
    "ablation",
    "best_settings",
    "bootstrap",
    "calibration",
    "compare_detectors",
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
    "slices",
    "sweep",
    "tie_bounds",
    "tool_names",
    "top_confusions",
]
