"""Evaluate label maps: panoptic quality and semantic IoU, separate from detection.

Conventions
-----------
- Maps become one table of pixel counts; every number is a function of the table, and tables merge.
- Pixels are counted as integers, and sums over segments are rounded one time (:func:`math.fsum`). Numbers
  therefore do not depend on the order of images, or on the number of processes.
- Differences between tools are data: the TOML files in ``panoptic_rules`` and ``semantic_rules``.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.label_maps.folders import panoptic_quality_of_files as panoptic_quality_of_files
    from boxscore.extensions.label_maps.folders import semantic_iou_of_folders as semantic_iou_of_folders
    from boxscore.extensions.label_maps.panoptic import PanopticQuality as PanopticQuality
    from boxscore.extensions.label_maps.panoptic import panoptic_quality as panoptic_quality
    from boxscore.extensions.label_maps.resampled import MetricIntervals as MetricIntervals
    from boxscore.extensions.label_maps.rules import PanopticRules as PanopticRules
    from boxscore.extensions.label_maps.rules import SemanticRules as SemanticRules
    from boxscore.extensions.label_maps.rules import load_panoptic_rules as load_panoptic_rules
    from boxscore.extensions.label_maps.rules import load_semantic_rules as load_semantic_rules
    from boxscore.extensions.label_maps.rules import panoptic_rule_names as panoptic_rule_names
    from boxscore.extensions.label_maps.rules import semantic_rule_names as semantic_rule_names
    from boxscore.extensions.label_maps.semantic import SemanticIoU as SemanticIoU
    from boxscore.extensions.label_maps.semantic import semantic_iou as semantic_iou
