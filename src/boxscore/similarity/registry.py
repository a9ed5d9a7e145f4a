"""Define the interface of a similarity, and find one by its name in a protocol.

A similarity defines the columns to compare, the pairs and the areas.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.lazy import loaded
from boxscore.data.schema import DETECTIONS
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.similarity.pairs import Comparison, PairValues

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol, SimilarityName


class Similarity(abc.ABC):
    """Measures the agreement of two objects under a protocol.

    To add one, add a file with a subclass and a line in :mod:`~boxscore.similarity.registry`.

    Parameters
    ----------
    protocol : Protocol
        Its ``boxes`` and ``ignore`` are read here; subclasses read ``masks``, ``keypoints``, ...
    """

    column: ClassVar[str | None] = None
    """The compared column; None for the boxes, which every table has."""
    forks_from: ClassVar[int | None] = None
    """Number of detections above which workers are processes that divide the pairs.

    Below, they are threads that divide the images. None: always threads.
    """
    shares_pairs: ClassVar[bool] = False
    """Whether the similarity divides the pairs among processes; else the matcher does."""

    measures_foreground: ClassVar[bool] = True
    """Whether it can measure the intersection over the detection."""

    def __init__(self, protocol: Protocol) -> None:
        self.pixel_offset = protocol.boxes.pixel_offset
        self.edges = protocol.boxes.edges
        self.aspect_ratio = protocol.boxes.aspect_ratio
        self.overlap_epsilon = protocol.boxes.overlap_epsilon
        self.shares_from_iou = protocol.boxes.foreground_share == "from_iou"
        self.area_rule = protocol.ignore.detection_area
        self.has_area_ranges = len(protocol.ignore.area_ranges) > 1

    @abc.abstractmethod
    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs that agree enough, those of one detection in the order of ``truth_rows``."""

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Return the detections with the compared column; raise if a missing one cannot be replaced."""
        return detections

    def with_needed_columns(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Return the detections with every column that is compared or measured."""
        detections = self.complete(ground_truth, detections)
        completed = DETECTIONS.column("masks").completed if self.area_rule == "mask" else None
        return detections if completed is None else completed(detections)

    @property
    def needed_columns(self) -> list[str]:
        """Names of the instance columns that are compared or measured, for loaders to read with the boxes."""
        measured = "masks" if self.area_rule == "mask" else None
        return sorted({column for column in (self.column, measured) if column is not None})

    @property
    def fitted_to(self) -> tuple[float, ...]:
        """Thresholds that values depend on; protocols reuse values only if these are the same."""
        return ()

    def fallbacks(self, ground_truth: GroundTruth, detections: Detections) -> str:
        """Return a warning if the tables have more precise shapes than are compared; else empty."""
        return ""

    def check_units(self, ground_truth: GroundTruth) -> None:
        """Reject fractions of images of unknown size if the comparison needs more than the IoU of boxes."""
        if ground_truth.units == "fractions" and (self.column is not None or self.pixel_offset):
            what = "inclusive pixels (pixel_offset)" if self.column is None else self.column
            raise InputError(
                "the sizes of the images",
                f"be known where the protocol compares {what}",
                got=f"fractions of unknown sizes, {ground_truth.source}",
                cause=checks.GIVE_SIZES,
            )

    def reference_evaluator(self, evaluator: type[Any]) -> type[Any]:
        """Return pycocotools' evaluator, or a subclass of it that measures pairs as this similarity does."""
        return evaluator

    def forks_for(self, detections: Detections) -> bool:
        """Whether several workers are processes."""
        return self.forks_from is not None and len(detections) >= self.forks_from

    def measures_masks(self, detections: Detections) -> bool:
        """Whether area ranges measure the masks of detections rather than their boxes."""
        rule = self.area_rule
        return rule == "mask" or (rule == "box_or_mask" and not detections.boxes_given)

    def truth_areas(self, ground_truth: GroundTruth) -> NDArray[np.float64]:
        """Area of each ground truth [G] in square pixels, for area ranges; NaN where unknown."""
        return ground_truth.area if ground_truth.units == "pixels" else np.full(len(ground_truth), np.nan)

    def detection_areas(self, detections: Detections) -> NDArray[np.float64]:
        """Area of each detection [D] in square pixels, for area ranges; NaN where unknown."""
        if detections.units != "pixels":
            return np.full(len(detections), np.nan)
        if self.measures_masks(detections) and detections.masks is not None:
            return detections.masks.area
        sizes = detections.sizes + self.pixel_offset
        area: NDArray[np.float64] = sizes[:, 0] * sizes[:, 1]
        return area


SIMILARITIES: dict[SimilarityName, str] = {
    "box": "boxscore.similarity.box:BoxSimilarity",
    "rotated": "boxscore.extensions.oriented.rotated:RotatedSimilarity",
    "quadrilateral": "boxscore.extensions.oriented.quadrilateral:QuadrilateralSimilarity",
    "probiou": "boxscore.extensions.oriented.probiou:ProbIouSimilarity",
    "mask": "boxscore.extensions.masks.mask:MaskSimilarity",
    "boundary": "boxscore.extensions.masks.boundary:BoundarySimilarity",
    "keypoints": "boxscore.extensions.keypoints.similarity:KeypointSimilarity",
    "distance": "boxscore.extensions.crowds.points:DistanceSimilarity",
    "point_in_box": "boxscore.extensions.crowds.points:PointInBoxSimilarity",
    "point_in_mask": "boxscore.extensions.crowds.points:PointInMaskSimilarity",
}
"""The module and class of each, imported lazily; an extension adds a line."""


def similarity_class(name: SimilarityName) -> type[Similarity]:
    """Return the class of the similarity with a name."""
    similarity: type[Similarity] = loaded(SIMILARITIES[name])
    return similarity


def similarity_of(protocol: Protocol) -> Similarity:
    """Make the similarity that a protocol asks for."""
    return similarity_class(protocol.similarity)(protocol)


class FileNeeds(TypedDict):
    """Options of ``read_options`` that select the needed parts of files."""

    instances: list[str]
    any_sides: bool
    needs_areas: bool
    keys: tuple[str, ...]
    image_keys: tuple[str, ...]


def needs_of(*protocols: Protocol) -> FileNeeds:
    """Return the options for reading files that will be evaluated under all of these protocols."""
    return {
        "instances": sorted({name for rules in protocols for name in similarity_of(rules).needed_columns}),
        "any_sides": any(rules.boxes.degenerate != "count" for rules in protocols),
        "needs_areas": any(len(rules.ignore.area_ranges) > 1 for rules in protocols),
        "keys": _each(rules.scope.keys_read("rows") for rules in protocols),
        "image_keys": _each(rules.scope.keys_read("images") for rules in protocols),
    }


def _each(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(names)))
