"""boxscore: the box score for object detectors.

Exact COCO and PASCAL VOC evaluation, box overlaps and non-maximum suppression, in plain NumPy.
"""

from boxscore._version import __version__
from boxscore.boxes import (
    box_area,
    box_convert,
    box_iof,
    box_iou,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
)
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
from boxscore.protocol import Protocol
from boxscore.protocols import load_protocol
from boxscore.tables import Detections, GroundTruth

__all__ = [
    "BoxscoreError",
    "BoxscoreWarning",
    "Detections",
    "Evaluation",
    "FileFormatError",
    "GroundTruth",
    "InputError",
    "MissingDependencyError",
    "Protocol",
    "ProtocolError",
    "VerificationError",
    "__version__",
    "box_area",
    "box_convert",
    "box_iof",
    "box_iou",
    "complete_box_iou",
    "distance_box_iou",
    "evaluate",
    "generalized_box_iou",
    "load_detections",
    "load_ground_truth",
    "load_protocol",
    "save_columns",
]
