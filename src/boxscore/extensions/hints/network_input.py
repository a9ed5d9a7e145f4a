"""Scale boxes in the coordinates of a network's input back to the image, and recognize such boxes.

Goal
----
Detectors resize an image before they see it. If a program writes their boxes without scaling them back, the
score is near 0, and no value is invalid.

Conventions
-----------
- An input is ``letterbox:640``: the way an image gets there, and its width and height in pixels
  (``letterbox:640x384`` if they differ). With ``letterbox``, the image keeps its shape and is centered;
  with ``corner``, it keeps its shape and begins at the top left; with ``stretch``, it fills the input.
  ``scale:0.5`` is an image of half its width and height, of any size.
- A box ``b`` of the image is at ``b * scale + offset`` in the input.
- The evidence is the best detections of a few images, as for class numbers: scaled back from the right input,
  they overlap far more annotations.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.checks import did_you_mean
from boxscore._utils.records import NamedTuple
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.hints.numbering import FEW_IMAGES, LEAST_OVERLAP, best_of_images
from boxscore.extensions.hints.swapped_sizes import SwappedSizes

KINDS = {
    "letterbox": "with centered padding",
    "corner": "with the image at the top left",
    "stretch": "that the image fills",
    "scale": "",
}
"""The ways an image gets into an input, in words."""

SIDES = (300, 320, 384, 416, 448, 512, 608, 640, 800, 960, 1024, 1280, 1536)
"""Widths and heights of common inputs."""

REACHED, BEYOND = 0.7, 1.05
"""Range of the largest coordinate as a fraction of the side of an input, for boxes that may be in it."""

FACTORS = (0.5, 2.0, 0.25, 4.0)
"""Factors of common scaled images."""

MOST_PAIRS = 200_000
"""Maximum pairs of detections and annotations to compare."""

FEWEST = 10
"""Minimum number of confident detections on annotations as evidence."""

MORE = 1.15
"""Minimum ratio of the overlap with annotations to that of the boxes as they are."""


class NetworkInput(NamedTuple):
    """The input of a network: how an image gets there, and its size in pixels, or relative to the image."""

    kind: str
    width: float
    height: float

    def __str__(self) -> str:
        size = f"{self.width:g}" if self.width == self.height else f"{self.width:g}x{self.height:g}"
        return f"{self.kind}:{size}"

    @property
    def words(self) -> str:
        """The input in words."""
        if self.kind == "scale":
            return f"in the coordinates of images {self.width:g} times as large"
        return f"in the coordinates of an input of {self.width:g} x {self.height:g} pixels {KINDS[self.kind]}"

    @property
    def option(self) -> str:
        """The option that scales boxes back."""
        return f"--network-input {self}"

    def __call__(self, read: Callable[[GroundTruth], Detections], ground_truth: GroundTruth) -> Detections:
        """Read detections, and scale their boxes back to the image."""
        detections = read(ground_truth)
        problem = ""
        if detections.units != "pixels":
            problem = "fractions of the image size"
        elif self.kind != "scale" and np.isnan(detections.images.sizes[detections.image]).any():
            problem = "images of unknown size: give --image-sizes or --image-folder"
        elif any(map(detections.instances.shows, ("masks", "keypoints", "rotated", "quadrilaterals"))):
            problem = "more than upright boxes"
        if problem:
            raise InputError(
                "network_input", "be used with boxes in pixels", got=problem, place=detections.source
            )
        boxes = self.scaled_back(detections.boxes, detections.images.sizes[detections.image])
        return dataclasses.replace(detections, boxes=boxes, sizes=boxes[:, 2:] - boxes[:, :2])

    def scaled_back(self, boxes: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return boxes of the input [N, 4] in images of these sizes [N, 2]."""
        if self.kind == "scale":
            of_scale: FloatArray = boxes / self.width
            return of_scale
        scale, offset = self.placed(sizes)
        back: FloatArray = (boxes - np.tile(offset, 2)) / np.tile(scale, 2)
        return back

    def placed(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors and the offsets, [N, 2] each, that put images of these sizes into the input."""
        scale = np.array([self.width, self.height]) / sizes
        if self.kind != "stretch":
            scale = np.repeat(scale.min(axis=1, keepdims=True), 2, axis=1)
        offset = np.zeros_like(scale)
        if self.kind == "letterbox":
            offset = (np.array([self.width, self.height]) - sizes * scale) / 2
        return scale, offset


def network_input_of(value: Any) -> NetworkInput:
    """Read ``letterbox:640``, ``stretch:640x384`` or ``scale:0.5``."""
    if isinstance(value, NetworkInput):
        return value
    text = str(value).strip().lower()
    scale = re.fullmatch(r"scale:(\d{1,3}(?:\.\d{1,6})?)", text)
    if scale is not None and float(scale[1]) > 0:
        return NetworkInput("scale", float(scale[1]), float(scale[1]))
    found = re.fullmatch(r"(\w+):([1-9]\d{0,5})(?:x([1-9]\d{0,5}))?", text)
    if found is None or found[1] not in KINDS:
        kind = str(value).partition(":")[0]
        raise InputError(
            "network_input",
            f"be {', '.join(KINDS)} with a size, such as letterbox:640, stretch:640x384 or scale:0.5",
            got=repr(str(value))[:60],
            cause="" if kind in KINDS else did_you_mean(kind, KINDS),
        )
    return NetworkInput(found[1], int(found[2]), int(found[3] or found[2]))


class FoundInput(NamedTuple):
    """Where boxes seem to be instead of in the image, and the evidence."""

    input: NetworkInput | SwappedSizes
    best: int
    """Number of confident detections that were compared."""
    given: int
    """Number of these that overlap an annotation as they are."""
    scaled: int
    """Number of these that overlap one when they are scaled back."""


def find_network_input(ground_truth: GroundTruth, detections: Detections) -> FoundInput | None:
    """Return from where boxes must be scaled back to overlap annotations; None if they need not be."""
    if detections.units != "pixels" or ground_truth.units != "pixels":
        return None
    pairs = _Pairs.of(ground_truth, detections)
    if pairs is None:
        return None
    # Compare the boxes as they are with those of exchanged image sizes, and of each input that the largest
    # coordinate may belong to.
    given = pairs.overlap(pairs.boxes)
    best, found = given, None
    for tried in _inputs(float(pairs.boxes.max()), sized=not np.isnan(pairs.sizes).any()):
        overlap = pairs.overlap(tried.scaled_back(pairs.boxes, pairs.sizes))
        if overlap.total > best.total:
            best, found = overlap, tried
    if found is None or best.matched < FEWEST or best.total < MORE * given.total:
        return None
    return FoundInput(found, len(pairs.boxes), given.matched, best.matched)


def _inputs(largest: float, *, sized: bool) -> Iterator[NetworkInput | SwappedSizes]:
    """Yield where boxes may be: anywhere in images of known size, else only in scaled ones."""
    if sized:
        yield SwappedSizes()
    for side in SIDES if sized else ():
        if REACHED * side <= largest <= BEYOND * side:
            yield from (NetworkInput(kind, side, side) for kind in KINDS if kind != "scale")
    yield from (NetworkInput("scale", factor, factor) for factor in FACTORS)


class _Overlap(NamedTuple):
    """The number of detections that overlap an annotation, and the sum of these overlaps."""

    matched: int
    total: float


class _Pairs(NamedTuple):
    """The best detections of some images, and their pairs with the annotations there."""

    boxes: FloatArray
    """Boxes of the detections, [n, 4]."""
    sizes: FloatArray
    """Sizes of their images, [n, 2]."""
    truths: FloatArray
    """Boxes of the annotations, one per pair, by coordinate, [4, P]."""
    detection: NDArray[np.int64]
    """Position of the detection of each pair, ascending, [P]."""
    starts: NDArray[np.int64]
    """First pair of each detection, [n]."""

    @classmethod
    def of(cls, ground_truth: GroundTruth, detections: Detections) -> _Pairs | None:
        """Choose images and pairs; None without any."""
        rows: list[IntArray] = []
        truths: list[IntArray] = []
        counts: list[IntArray] = []
        total = 0
        for of_image, truths_there in best_of_images(
            ground_truth, detections.image, detections.given_scores, most=FEW_IMAGES
        ):
            total += len(of_image) * len(truths_there)
            if total > MOST_PAIRS and rows:
                break
            rows.append(of_image)
            truths.append(np.tile(truths_there, len(of_image)))
            counts.append(np.full(len(of_image), len(truths_there)))
        if not rows:
            return None
        chosen, of_each = np.concatenate(rows), np.concatenate(counts)
        sizes = detections.images.sizes[detections.image[chosen]]
        return cls(
            detections.boxes[chosen],
            sizes,
            ground_truth.boxes[np.concatenate(truths)].T.copy(),
            np.repeat(np.arange(len(chosen)), of_each),
            np.cumsum(of_each) - of_each,
        )

    def overlap(self, boxes: FloatArray) -> _Overlap:
        """Compare detections, as these boxes [n, 4], with the annotations of their images."""
        moved = boxes.T.copy().take(self.detection, axis=1)
        width, height = np.minimum(moved[2:], self.truths[2:]) - np.maximum(moved[:2], self.truths[:2])
        common = np.maximum(width, 0) * np.maximum(height, 0)
        union = (moved[2] - moved[0]) * (moved[3] - moved[1]) - common
        union += (self.truths[2] - self.truths[0]) * (self.truths[3] - self.truths[1])
        iou = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
        largest = np.maximum.reduceat(iou, self.starts)
        lies = largest >= LEAST_OVERLAP
        return _Overlap(int(lies.sum()), float(largest[lies].sum()))
