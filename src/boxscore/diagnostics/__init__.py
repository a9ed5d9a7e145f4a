"""Why a score is what it is: diagnostics as tidy pandas tables. Nothing here draws.

Conventions
-----------
- Every function takes an :class:`~boxscore.evaluation.Evaluation` and reads its one ``Matches`` value, or one
  matching across classes made with the same overlaps. Nothing is matched twice to answer a second question.
- Undefined is NaN. ``class`` is ``(all)`` for all classes together.
"""

from boxscore.diagnostics.bootstrap import bootstrap
from boxscore.diagnostics.compare import compare
from boxscore.diagnostics.confusion import confusion_matrix, top_confusions
from boxscore.diagnostics.error_types import error_list, error_types
from boxscore.diagnostics.operating_points import confidence_curve, operating_points
from boxscore.diagnostics.ties import tie_bounds

__all__ = [
    "bootstrap",
    "compare",
    "confidence_curve",
    "confusion_matrix",
    "error_list",
    "error_types",
    "operating_points",
    "tie_bounds",
    "top_confusions",
]
