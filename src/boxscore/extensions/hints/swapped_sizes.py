"""Exchange the width and height of all images of a ground truth.

Exporters that ignore the rotation of photos write the two in the wrong order. Boxes in pixels then seem to
extend outside their image, and fractions of the image size are read as wrong boxes.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import NamedTuple
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import InputError

OPTION = "--swap-image-sizes"


class SwappedSizes(NamedTuple):
    """Boxes that were read as fractions of images whose width and height are exchanged."""

    words: str = "fractions of images whose width and height are exchanged"
    option: str = OPTION

    def scaled_back(self, boxes: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return boxes [N, 4] as the same fractions of images of the other sizes; given are [N, 2]."""
        scaled: FloatArray = boxes * np.tile(sizes[:, ::-1] / sizes, 2)
        return scaled


def with_swapped_sizes(ground_truth: GroundTruth, value: bool = True) -> GroundTruth:
    """Return a ground truth whose images have width and height exchanged."""
    if ground_truth.units != "pixels":
        raise InputError(
            "swap_image_sizes", "be used with boxes in pixels", got="fractions", place=ground_truth.source
        )
    return ground_truth.replaced(images=swapped(ground_truth.images))


def swapped(images: Images) -> Images:
    """Return images with width and height exchanged."""
    return dataclasses.replace(images, sizes=images.sizes[:, ::-1])
