"""The interface of a similarity: the columns it compares, the pairs it finds, the areas it measures."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore.data.masks import Masks
from boxscore.data.tables import Detections, GroundTruth
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.pairs import Comparison, PairValues

__all__ = ["Similarity", "with_masks"]


class Similarity(abc.ABC):
    """How much two objects agree, as a protocol measures it.

    A new one is a file with a subclass and a line in :mod:`~boxscore.similarity.registry`.

    Parameters
    ----------
    protocol : Protocol
        Its ``boxes``, ``masks``, ``keypoints`` and ``ignore.detection_area`` are read once, here.
    """

    column: ClassVar[Literal["masks", "keypoints"] | None] = None
    """The column of a table that is compared; None for the boxes, which every table has."""

    def __init__(self, protocol: Protocol) -> None:
        self.pixel_offset = protocol.boxes.pixel_offset
        self.area_rule = protocol.ignore.detection_area
        self.has_area_ranges = len(protocol.ignore.area_ranges) > 1

    @abc.abstractmethod
    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs that agree enough, those of one detection in the order of ``truth_rows``."""

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Return the detections with what is compared; raise where it is missing and has no substitute."""
        return detections

    def with_needed_columns(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Return the detections with every column that is compared or measured."""
        detections = self.complete(ground_truth, detections)
        return with_masks(detections) if self.area_rule == "mask" else detections

    @property
    def needed_columns(self) -> list[str]:
        """Names of the instance columns that are compared or measured, for loaders to read with the boxes."""
        measured = "masks" if self.area_rule == "mask" else None
        return sorted({column for column in (self.column, measured) if column is not None})

    def stand_ins(self, detections: Detections) -> str:
        """Describe where boxes are used in place of what is compared; empty if nowhere."""
        return ""

    def detection_areas(self, detections: Detections) -> NDArray[np.float64]:
        """Area of each detection [D] in square pixels: what area ranges measure."""
        rule = self.area_rule
        by_mask = rule == "mask" or (rule == "box_or_mask" and not detections.boxes_given)
        if by_mask and detections.masks is not None:  # asked last: it reads the masks of a file
            return detections.masks.area
        sizes = detections.sizes + self.pixel_offset
        area: NDArray[np.float64] = sizes[:, 0] * sizes[:, 1]
        return area


def with_masks(detections: Detections) -> Detections:
    """Return the detections with their boxes as masks where they have none, as pycocotools does."""
    masks = detections.masks
    if masks is not None and not masks.missing.any():
        return detections
    rectangles = Masks.from_boxes(
        detections.boxes,
        detections.images.sizes[detections.image],
        place=lambda row: f"row {row} of {detections.source}",
    )
    return dataclasses.replace(detections, masks=rectangles if masks is None else masks.filled(rectangles))
