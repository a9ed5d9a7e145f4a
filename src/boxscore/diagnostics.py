"""Explain a score: one file per question, answered by arrays and a table, without drawing.

Conventions
-----------
- Every function takes an :class:`~boxscore.evaluation.Evaluation` and reads its ``Matches``, or the overlaps
  across classes that its matcher caches. Only ``sweep`` and ``explain`` take tables and match again, because
  they vary steps before matching.
- A result holds arrays; ``to_frame()`` makes a DataFrame. Totals are separate from the rows.
- Undefined is NaN. Rows for all classes together have the ``class`` ``(all)``.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.crowds.froc import froc_curve as froc_curve
    from boxscore.extensions.crowds.froc import froc_scores as froc_scores
    from boxscore.extensions.decisions.compare import compare_detectors as compare_detectors
    from boxscore.extensions.decisions.guarantee import threshold_guarantee as threshold_guarantee
    from boxscore.extensions.decisions.power import ComparisonPlan as ComparisonPlan
    from boxscore.extensions.decisions.power import plan_comparison as plan_comparison
    from boxscore.extensions.decisions.sequential import compare_sequentially as compare_sequentially
    from boxscore.extensions.diagnostics._result import DiagnosticResult as DiagnosticResult
    from boxscore.extensions.diagnostics._tools import tool_names as tool_names
    from boxscore.extensions.diagnostics.analysis import error_areas as error_areas
    from boxscore.extensions.diagnostics.analysis import error_curves as error_curves
    from boxscore.extensions.diagnostics.bootstrap import bootstrap_intervals as bootstrap_intervals
    from boxscore.extensions.diagnostics.calibration import calibration_error as calibration_error
    from boxscore.extensions.diagnostics.calibration import reliability as reliability
    from boxscore.extensions.diagnostics.class_groups import class_group_scores as class_group_scores
    from boxscore.extensions.diagnostics.confidence import confidence_curve as confidence_curve
    from boxscore.extensions.diagnostics.confidence import operating_points as operating_points
    from boxscore.extensions.diagnostics.confusion import confusion_matrix as confusion_matrix
    from boxscore.extensions.diagnostics.confusion import top_confusions as top_confusions
    from boxscore.extensions.diagnostics.explaining import Explanation as Explanation
    from boxscore.extensions.diagnostics.explaining import Reading as Reading
    from boxscore.extensions.diagnostics.explaining import Readings as Readings
    from boxscore.extensions.diagnostics.explaining import ablation as ablation
    from boxscore.extensions.diagnostics.explaining import compare_protocols as compare_protocols
    from boxscore.extensions.diagnostics.explaining import expansions as expansions
    from boxscore.extensions.diagnostics.explaining import explain as explain
    from boxscore.extensions.diagnostics.explaining import find_number as find_number
    from boxscore.extensions.diagnostics.images import image_scores as image_scores
    from boxscore.extensions.diagnostics.lrp import (
        localization_recall_precision as localization_recall_precision,
    )
    from boxscore.extensions.diagnostics.overlaps import pair_overlaps as pair_overlaps
    from boxscore.extensions.diagnostics.presence import count_errors as count_errors
    from boxscore.extensions.diagnostics.presence import image_presence as image_presence
    from boxscore.extensions.diagnostics.slices import slice_names as slice_names
    from boxscore.extensions.diagnostics.slices import slice_scores as slice_scores
    from boxscore.extensions.diagnostics.sweeping import best_settings as best_settings
    from boxscore.extensions.diagnostics.sweeping import sweep as sweep
    from boxscore.extensions.diagnostics.tide import error_list as error_list
    from boxscore.extensions.diagnostics.tide import error_types as error_types
    from boxscore.extensions.diagnostics.ties import tie_bounds as tie_bounds
    from boxscore.extensions.keypoints.annotator_sigmas import keypoint_sigmas as keypoint_sigmas
    from boxscore.extensions.keypoints.keypoint_distances import correct_keypoints as correct_keypoints
    from boxscore.extensions.keypoints.misplaced_keypoints import keypoint_errors as keypoint_errors
    from boxscore.extensions.labels.agreement import Agreement as Agreement
    from boxscore.extensions.labels.agreement import AnnotatorPair as AnnotatorPair
    from boxscore.extensions.labels.agreement import annotator_agreement as annotator_agreement
    from boxscore.extensions.labels.agreement import labels_by_annotator as labels_by_annotator
    from boxscore.extensions.labels.label_edits import LabelEdits as LabelEdits
    from boxscore.extensions.labels.leave_one_out import LabelCosts as LabelCosts
    from boxscore.extensions.labels.leave_one_out import label_costs as label_costs
    from boxscore.extensions.labels.suspects import label_suspects as label_suspects
    from boxscore.extensions.labels.vetting import VettedSuspects as VettedSuspects
    from boxscore.extensions.labels.vetting import vetted_suspects as vetted_suspects
