"""Label maps: panoptic quality and semantic IoU, beside the detection chain.

Conventions
-----------
- Maps in, one table of counted pixels out; every number is a function of the table, and tables merge.
- Pixels are counted as integers, and sums over segments are rounded once (:func:`math.fsum`). So no number
  depends on the order of images, or on the number of processes.
- What tools do differently is data: the TOML files in ``panoptic_rules`` and ``semantic_rules``.
"""

from typing import TYPE_CHECKING

from boxscore._utils.lazy import lazy_names

if TYPE_CHECKING:
    from boxscore.label_maps.folders import panoptic_quality_of_files, semantic_iou_of_folders
    from boxscore.label_maps.panoptic import PanopticQuality, panoptic_quality
    from boxscore.label_maps.resampled import MetricIntervals
    from boxscore.label_maps.rules import (
        PanopticRules,
        SemanticRules,
        load_panoptic_rules,
        load_semantic_rules,
        panoptic_rule_names,
        semantic_rule_names,
    )
    from boxscore.label_maps.semantic import SemanticIoU, semantic_iou

_NAMES = {
    "boxscore.label_maps.folders": ("panoptic_quality_of_files", "semantic_iou_of_folders"),
    "boxscore.label_maps.panoptic": ("PanopticQuality", "panoptic_quality"),
    "boxscore.label_maps.resampled": ("MetricIntervals",),
    "boxscore.label_maps.rules": (
        "PanopticRules",
        "SemanticRules",
        "load_panoptic_rules",
        "load_semantic_rules",
        "panoptic_rule_names",
        "semantic_rule_names",
    ),
    "boxscore.label_maps.semantic": ("SemanticIoU", "semantic_iou"),
}

if not TYPE_CHECKING:  # or a type checker would take any misspelt name
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "MetricIntervals",
    "PanopticQuality",
    "PanopticRules",
    "SemanticIoU",
    "SemanticRules",
    "load_panoptic_rules",
    "load_semantic_rules",
    "panoptic_quality",
    "panoptic_quality_of_files",
    "panoptic_rule_names",
    "semantic_iou",
    "semantic_iou_of_folders",
    "semantic_rule_names",
]
