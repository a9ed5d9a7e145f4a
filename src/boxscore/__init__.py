"""boxscore: the box score for object detectors.

Exact COCO and PASCAL VOC evaluation, box overlaps and non-maximum suppression, in plain NumPy.
"""

from boxscore._version import __version__
from boxscore.boundaries import boundary_iou, mask_boundary
from boxscore.boxes import (
    box_area,
    box_convert,
    box_iof,
    box_iou,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
)
from boxscore.compat import init_as_pycocotools
from boxscore.datasets import load_detections, load_ground_truth, save_columns
from boxscore.errors import (
    BoxscoreError,
    BoxscoreWarning,
    FileFormatError,
    InputError,
    MissingDependencyError,
    ProtocolError,
    VerificationError,
)
from boxscore.evaluation import Evaluation, evaluate
from boxscore.evaluator import Evaluator
from boxscore.keypoints import object_keypoint_similarity
from boxscore.mask_column import Masks
from boxscore.masks import mask_area, mask_iof, mask_iou, mask_to_box
from boxscore.nms import (
    batched_nms,
    cluster_nms,
    diou_nms,
    fast_nms,
    greedy_nmm,
    mask_nms,
    matrix_nms,
    nmm,
    nms,
    nmw,
    rotated_box_iou,
    rotated_nms,
    soft_nms,
    weighted_boxes_fusion,
)
from boxscore.protocol import Protocol
from boxscore.protocols import load_protocol
from boxscore.tables import Detections, GroundTruth

__all__ = [
    "BoxscoreError",
    "BoxscoreWarning",
    "Detections",
    "Evaluation",
    "Evaluator",
    "FileFormatError",
    "GroundTruth",
    "InputError",
    "Masks",
    "MissingDependencyError",
    "Protocol",
    "ProtocolError",
    "VerificationError",
    "__version__",
    "batched_nms",
    "boundary_iou",
    "box_area",
    "box_convert",
    "box_iof",
    "box_iou",
    "cluster_nms",
    "complete_box_iou",
    "diou_nms",
    "distance_box_iou",
    "evaluate",
    "fast_nms",
    "generalized_box_iou",
    "greedy_nmm",
    "init_as_pycocotools",
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
    "nmm",
    "nms",
    "nmw",
    "object_keypoint_similarity",
    "rotated_box_iou",
    "rotated_nms",
    "save_columns",
    "soft_nms",
    "weighted_boxes_fusion",
]
