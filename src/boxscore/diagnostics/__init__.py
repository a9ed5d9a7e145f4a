"""Why a score is what it is: one file per question, answered by arrays and a table. Nothing here draws.

Conventions
-----------
- Every function takes an :class:`~boxscore.evaluation.Evaluation` and reads its ``Matches``, or the overlaps
  across classes that its matcher computes once. Nothing is matched again for a second question. Only
  ``sweep`` and ``explain`` take tables, because they vary what comes before matching.
- A result holds arrays; ``to_frame()`` makes a DataFrame. Totals are separate from the rows.
- Undefined is NaN. Rows for all classes together have the ``class`` ``(all)``.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.diagnostics._result import DiagnosticResult as DiagnosticResult
    from boxscore.diagnostics._tools import tool_names as tool_names
    from boxscore.diagnostics.agreement import Agreement as Agreement
    from boxscore.diagnostics.agreement import AnnotatorPair as AnnotatorPair
    from boxscore.diagnostics.agreement import annotator_agreement as annotator_agreement
    from boxscore.diagnostics.agreement import labels_by_annotator as labels_by_annotator
    from boxscore.diagnostics.analysis import error_areas as error_areas
    from boxscore.diagnostics.analysis import error_curves as error_curves
    from boxscore.diagnostics.annotator_sigmas import keypoint_sigmas as keypoint_sigmas
    from boxscore.diagnostics.bootstrap import bootstrap_intervals as bootstrap_intervals
    from boxscore.diagnostics.calibration import calibration_error as calibration_error
    from boxscore.diagnostics.calibration import reliability as reliability
    from boxscore.diagnostics.compare import compare_detectors as compare_detectors
    from boxscore.diagnostics.confidence import confidence_curve as confidence_curve
    from boxscore.diagnostics.confidence import operating_points as operating_points
    from boxscore.diagnostics.confusion import confusion_matrix as confusion_matrix
    from boxscore.diagnostics.confusion import top_confusions as top_confusions
    from boxscore.diagnostics.explaining import Explanation as Explanation
    from boxscore.diagnostics.explaining import Reading as Reading
    from boxscore.diagnostics.explaining import Readings as Readings
    from boxscore.diagnostics.explaining import ablation as ablation
    from boxscore.diagnostics.explaining import expansions as expansions
    from boxscore.diagnostics.explaining import explain as explain
    from boxscore.diagnostics.explaining import find_number as find_number
    from boxscore.diagnostics.explaining import readings as readings
    from boxscore.diagnostics.froc import froc_curve as froc_curve
    from boxscore.diagnostics.froc import froc_scores as froc_scores
    from boxscore.diagnostics.guarantee import threshold_guarantee as threshold_guarantee
    from boxscore.diagnostics.images import image_scores as image_scores
    from boxscore.diagnostics.keypoint_distances import correct_keypoints as correct_keypoints
    from boxscore.diagnostics.label_edits import LabelEdits as LabelEdits
    from boxscore.diagnostics.leave_one_out import LabelCosts as LabelCosts
    from boxscore.diagnostics.leave_one_out import label_costs as label_costs
    from boxscore.diagnostics.lrp import localisation_recall_precision as localisation_recall_precision
    from boxscore.diagnostics.misplaced_keypoints import keypoint_errors as keypoint_errors
    from boxscore.diagnostics.overlaps import pair_overlaps as pair_overlaps
    from boxscore.diagnostics.power import ComparisonPlan as ComparisonPlan
    from boxscore.diagnostics.power import plan_comparison as plan_comparison
    from boxscore.diagnostics.sequential import compare_sequentially as compare_sequentially
    from boxscore.diagnostics.slices import slice_names as slice_names
    from boxscore.diagnostics.slices import slice_scores as slice_scores
    from boxscore.diagnostics.suspects import label_suspects as label_suspects
    from boxscore.diagnostics.sweeping import best_settings as best_settings
    from boxscore.diagnostics.sweeping import sweep as sweep
    from boxscore.diagnostics.tide import error_list as error_list
    from boxscore.diagnostics.tide import error_types as error_types
    from boxscore.diagnostics.ties import tie_bounds as tie_bounds
    from boxscore.diagnostics.vetting import VettedSuspects as VettedSuspects
    from boxscore.diagnostics.vetting import vetted_suspects as vetted_suspects
