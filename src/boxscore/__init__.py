"""boxscore: the box score for object detectors.

Exact COCO and PASCAL VOC evaluation, box overlaps and non-maximum suppression, in plain NumPy.

Names and sub-packages load lazily; importing the package has no side effects on the process.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore import compat as compat
    from boxscore import diagnostics as diagnostics
    from boxscore import distributed as distributed
    from boxscore import formats as formats
    from boxscore import label_maps as label_maps
    from boxscore import protocols as protocols
    from boxscore import reports as reports
    from boxscore import suppression as suppression
    from boxscore import validation as validation
    from boxscore._version import __version__ as __version__
    from boxscore.compat import init_as_faster_coco_eval as init_as_faster_coco_eval
    from boxscore.compat import init_as_lvis as init_as_lvis
    from boxscore.compat import init_as_pycocotools as init_as_pycocotools
    from boxscore.data.boxes import box_convert as box_convert
    from boxscore.data.tables import Detections as Detections
    from boxscore.data.tables import GroundTruth as GroundTruth
    from boxscore.errors import BoxscoreError as BoxscoreError
    from boxscore.errors import BoxscoreWarning as BoxscoreWarning
    from boxscore.errors import FileFormatError as FileFormatError
    from boxscore.errors import FindingWarning as FindingWarning
    from boxscore.errors import InputError as InputError
    from boxscore.errors import MissingDependencyError as MissingDependencyError
    from boxscore.errors import ProtocolError as ProtocolError
    from boxscore.errors import VerificationError as VerificationError
    from boxscore.evaluation import Evaluation as Evaluation
    from boxscore.evaluation import evaluate as evaluate
    from boxscore.evaluator import Evaluator as Evaluator
    from boxscore.extensions.data_tools.anchors import Anchors as Anchors
    from boxscore.extensions.data_tools.anchors import table_anchors as table_anchors
    from boxscore.extensions.data_tools.operations import filter_objects as filter_objects
    from boxscore.extensions.data_tools.operations import merge_tables as merge_tables
    from boxscore.extensions.data_tools.operations import remap_classes as remap_classes
    from boxscore.extensions.data_tools.operations import sample_images as sample_images
    from boxscore.extensions.data_tools.operations import split_images as split_images
    from boxscore.extensions.data_tools.statistics import TableStatistics as TableStatistics
    from boxscore.extensions.data_tools.statistics import table_statistics as table_statistics
    from boxscore.extensions.decisions.compare import compare_detectors as compare_detectors
    from boxscore.extensions.federated.hierarchy import Hierarchy as Hierarchy
    from boxscore.extensions.federated.hierarchy import expand_classes as expand_classes
    from boxscore.extensions.federated.image_labels import ImageLabels as ImageLabels
    from boxscore.extensions.fusion.fusion import nmw as nmw
    from boxscore.extensions.fusion.fusion import weighted_boxes_fusion as weighted_boxes_fusion
    from boxscore.extensions.fusion.tables import fuse as fuse
    from boxscore.extensions.keypoints.similarity import (
        object_keypoint_similarity as object_keypoint_similarity,
    )
    from boxscore.extensions.label_maps.panoptic import PanopticQuality as PanopticQuality
    from boxscore.extensions.label_maps.panoptic import panoptic_quality as panoptic_quality
    from boxscore.extensions.label_maps.semantic import SemanticIoU as SemanticIoU
    from boxscore.extensions.label_maps.semantic import semantic_iou as semantic_iou
    from boxscore.extensions.large.scanning import scan as scan
    from boxscore.extensions.masks.boundary import boundary_iou as boundary_iou
    from boxscore.extensions.masks.boundary import mask_boundary as mask_boundary
    from boxscore.extensions.masks.column import Masks as Masks
    from boxscore.extensions.masks.mask import mask_area as mask_area
    from boxscore.extensions.masks.mask import mask_iof as mask_iof
    from boxscore.extensions.masks.mask import mask_iou as mask_iou
    from boxscore.extensions.masks.mask import mask_to_box as mask_to_box
    from boxscore.extensions.masks.suppression import mask_nms as mask_nms
    from boxscore.extensions.oriented.patches import merge_patches as merge_patches
    from boxscore.extensions.oriented.probiou import probiou as probiou
    from boxscore.extensions.oriented.quadrilateral import quadrilateral_iou as quadrilateral_iou
    from boxscore.extensions.oriented.quadrilaterals import rotated_convert as rotated_convert
    from boxscore.extensions.oriented.rotated import rotated_box_iou as rotated_box_iou
    from boxscore.extensions.oriented.suppression import quadrilateral_nms as quadrilateral_nms
    from boxscore.extensions.oriented.suppression import rotated_nms as rotated_nms
    from boxscore.extensions.scoreless.parsed_answers import Answer as Answer
    from boxscore.extensions.scoreless.parsed_answers import parse_answer as parse_answer
    from boxscore.extensions.suite.reading import Suite as Suite
    from boxscore.extensions.suite.reading import SuiteSet as SuiteSet
    from boxscore.extensions.suite.result import SuiteResult as SuiteResult
    from boxscore.extensions.suite.running import run_suite as run_suite
    from boxscore.formats import load_detections as load_detections
    from boxscore.formats import load_ground_truth as load_ground_truth
    from boxscore.formats import save_as as save_as
    from boxscore.formats import save_columns as save_columns
    from boxscore.protocols.loading import load_protocol as load_protocol
    from boxscore.protocols.protocol import Protocol as Protocol
    from boxscore.reports import plots as plots
    from boxscore.similarity.box import box_area as box_area
    from boxscore.similarity.box import box_iof as box_iof
    from boxscore.similarity.box import box_iou as box_iou
    from boxscore.similarity.box import complete_box_iou as complete_box_iou
    from boxscore.similarity.box import distance_box_iou as distance_box_iou
    from boxscore.similarity.box import generalized_box_iou as generalized_box_iou
    from boxscore.suppression.fast import cluster_nms as cluster_nms
    from boxscore.suppression.fast import fast_nms as fast_nms
    from boxscore.suppression.hard import batched_nms as batched_nms
    from boxscore.suppression.hard import diou_nms as diou_nms
    from boxscore.suppression.hard import nms as nms
    from boxscore.suppression.matrix import matrix_nms as matrix_nms
    from boxscore.suppression.merging import greedy_nmm as greedy_nmm
    from boxscore.suppression.merging import nmm as nmm
    from boxscore.suppression.result import Suppression as Suppression
    from boxscore.suppression.soft import soft_nms as soft_nms
    from boxscore.suppression.suppressing import suppress as suppress
    from boxscore.suppression.suppressing import suppress_boxes as suppress_boxes
