"""boxscore: the box score for object detectors.

Exact COCO and PASCAL VOC evaluation, box overlaps and non-maximum suppression, in plain NumPy.

Names and sub-packages load when they are first used; importing the package changes nothing in the process.
"""

from typing import TYPE_CHECKING

from boxscore._utils.lazy import lazy_names
from boxscore._version import __version__

if TYPE_CHECKING:
    from boxscore import (
        compat,
        diagnostics,
        distributed,
        formats,
        label_maps,
        protocols,
        reports,
        suppression,
        validation,
    )
    from boxscore.compat import init_as_faster_coco_eval, init_as_lvis, init_as_pycocotools
    from boxscore.data.boxes import box_convert
    from boxscore.data.hierarchy import Hierarchy, expand_classes
    from boxscore.data.image_labels import ImageLabels
    from boxscore.data.masks import Masks
    from boxscore.data.operations import (
        filter_objects,
        merge_tables,
        remap_classes,
        sample_images,
        split_images,
    )
    from boxscore.data.patches import merge_patches
    from boxscore.data.quadrilaterals import rotated_convert
    from boxscore.data.statistics import TableStatistics, table_statistics
    from boxscore.data.tables import Detections, GroundTruth
    from boxscore.diagnostics.compare import compare_detectors
    from boxscore.distributed.scanning import scan
    from boxscore.errors import (
        BoxscoreError,
        BoxscoreWarning,
        FileFormatError,
        FindingWarning,
        InputError,
        MissingDependencyError,
        ProtocolError,
        VerificationError,
    )
    from boxscore.evaluation import Evaluation, evaluate
    from boxscore.evaluator import Evaluator
    from boxscore.formats import load_detections, load_ground_truth, save_as, save_columns
    from boxscore.label_maps.panoptic import PanopticQuality, panoptic_quality
    from boxscore.label_maps.semantic import SemanticIoU, semantic_iou
    from boxscore.protocols.loading import load_protocol
    from boxscore.protocols.protocol import Protocol
    from boxscore.reports import plots
    from boxscore.similarity.boundary import boundary_iou, mask_boundary
    from boxscore.similarity.box import (
        box_area,
        box_iof,
        box_iou,
        complete_box_iou,
        distance_box_iou,
        generalized_box_iou,
    )
    from boxscore.similarity.keypoints import object_keypoint_similarity
    from boxscore.similarity.mask import mask_area, mask_iof, mask_iou, mask_to_box
    from boxscore.similarity.probiou import probiou
    from boxscore.similarity.quadrilateral import quadrilateral_iou
    from boxscore.similarity.rotated import rotated_box_iou
    from boxscore.suppression.fast import cluster_nms, fast_nms
    from boxscore.suppression.fusion import nmw, weighted_boxes_fusion
    from boxscore.suppression.hard import batched_nms, diou_nms, nms
    from boxscore.suppression.masks import mask_nms
    from boxscore.suppression.matrix import matrix_nms
    from boxscore.suppression.merging import greedy_nmm, nmm
    from boxscore.suppression.result import Suppression
    from boxscore.suppression.rotated import quadrilateral_nms, rotated_nms
    from boxscore.suppression.soft import soft_nms
    from boxscore.suppression.suppressing import suppress, suppress_boxes

_NAMES = {
    "boxscore.compat": ("init_as_faster_coco_eval", "init_as_lvis", "init_as_pycocotools"),
    "boxscore.data.boxes": ("box_convert",),
    "boxscore.data.hierarchy": ("Hierarchy", "expand_classes"),
    "boxscore.data.image_labels": ("ImageLabels",),
    "boxscore.data.masks": ("Masks",),
    "boxscore.data.operations": (
        "filter_objects",
        "merge_patches",
        "merge_tables",
        "remap_classes",
        "sample_images",
        "split_images",
    ),
    "boxscore.data.patches": ("merge_patches",),
    "boxscore.data.quadrilaterals": ("rotated_convert",),
    "boxscore.data.statistics": ("TableStatistics", "table_statistics"),
    "boxscore.data.tables": ("Detections", "GroundTruth"),
    "boxscore.diagnostics.compare": ("compare_detectors",),
    "boxscore.distributed.scanning": ("scan",),
    "boxscore.errors": (
        "BoxscoreError",
        "BoxscoreWarning",
        "FileFormatError",
        "FindingWarning",
        "InputError",
        "MissingDependencyError",
        "ProtocolError",
        "VerificationError",
    ),
    "boxscore.evaluation": ("Evaluation", "evaluate"),
    "boxscore.evaluator": ("Evaluator",),
    "boxscore.formats": ("load_detections", "load_ground_truth", "save_as", "save_columns"),
    "boxscore.label_maps.panoptic": ("PanopticQuality", "panoptic_quality"),
    "boxscore.label_maps.semantic": ("SemanticIoU", "semantic_iou"),
    "boxscore.protocols.loading": ("load_protocol",),
    "boxscore.protocols.protocol": ("Protocol",),
    "boxscore.similarity.boundary": ("boundary_iou", "mask_boundary"),
    "boxscore.similarity.box": (
        "box_area",
        "box_iof",
        "box_iou",
        "complete_box_iou",
        "distance_box_iou",
        "generalized_box_iou",
    ),
    "boxscore.similarity.keypoints": ("object_keypoint_similarity",),
    "boxscore.similarity.mask": ("mask_area", "mask_iof", "mask_iou", "mask_to_box"),
    "boxscore.similarity.probiou": ("probiou",),
    "boxscore.similarity.quadrilateral": ("quadrilateral_iou",),
    "boxscore.similarity.rotated": ("rotated_box_iou",),
    "boxscore.suppression.fast": ("cluster_nms", "fast_nms"),
    "boxscore.suppression.fusion": ("nmw", "weighted_boxes_fusion"),
    "boxscore.suppression.hard": ("batched_nms", "diou_nms", "nms"),
    "boxscore.suppression.masks": ("mask_nms",),
    "boxscore.suppression.matrix": ("matrix_nms",),
    "boxscore.suppression.merging": ("greedy_nmm", "nmm"),
    "boxscore.suppression.rotated": ("quadrilateral_nms", "rotated_nms"),
    "boxscore.suppression.result": ("Suppression",),
    "boxscore.suppression.soft": ("soft_nms",),
    "boxscore.suppression.suppressing": ("suppress", "suppress_boxes"),
}
_MODULES = (
    "boxscore.compat",
    "boxscore.diagnostics",
    "boxscore.distributed",
    "boxscore.formats",
    "boxscore.label_maps",
    "boxscore.protocols",
    "boxscore.reports",
    "boxscore.reports.plots",
    "boxscore.suppression",
    "boxscore.validation",
)

if not TYPE_CHECKING:  # or a type checker would take any misspelt name
    __getattr__, __dir__ = lazy_names(__name__, _NAMES, modules=_MODULES, public_module=__name__)

__all__ = [
    "BoxscoreError",
    "BoxscoreWarning",
    "Detections",
    "Evaluation",
    "Evaluator",
    "FileFormatError",
    "FindingWarning",
    "GroundTruth",
    "Hierarchy",
    "ImageLabels",
    "InputError",
    "Masks",
    "MissingDependencyError",
    "PanopticQuality",
    "Protocol",
    "ProtocolError",
    "SemanticIoU",
    "Suppression",
    "TableStatistics",
    "VerificationError",
    "__version__",
    "batched_nms",
    "boundary_iou",
    "box_area",
    "box_convert",
    "box_iof",
    "box_iou",
    "cluster_nms",
    "compare_detectors",
    "compat",
    "complete_box_iou",
    "diagnostics",
    "diou_nms",
    "distance_box_iou",
    "distributed",
    "evaluate",
    "expand_classes",
    "fast_nms",
    "filter_objects",
    "formats",
    "generalized_box_iou",
    "greedy_nmm",
    "init_as_faster_coco_eval",
    "init_as_lvis",
    "init_as_pycocotools",
    "label_maps",
    "load_detections",
    "load_ground_truth",
    "load_protocol",
    "mask_area",
    "mask_boundary",
    "mask_iof",
    "mask_iou",
    "mask_nms",
    "mask_to_box",
    "matrix_nms",
    "merge_patches",
    "merge_tables",
    "nmm",
    "nms",
    "nmw",
    "object_keypoint_similarity",
    "panoptic_quality",
    "plots",
    "probiou",
    "protocols",
    "quadrilateral_iou",
    "quadrilateral_nms",
    "remap_classes",
    "reports",
    "rotated_box_iou",
    "rotated_convert",
    "rotated_nms",
    "sample_images",
    "save_as",
    "save_columns",
    "scan",
    "semantic_iou",
    "soft_nms",
    "split_images",
    "suppress",
    "suppress_boxes",
    "suppression",
    "table_statistics",
    "validation",
    "weighted_boxes_fusion",
]
