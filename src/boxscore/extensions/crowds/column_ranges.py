"""Apply ranges on columns other than area, and match range by range where pairs depend on the range.

Conventions
-----------
- Ranges on columns of objects and of images are closed at both ends; ``ignore.least_height_closed`` opens the
  lower end of a height.
- With ``ignore.height_slack``, a range drops detections of other heights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.records import record
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import InputError
from boxscore.matching.candidates import Asked, Blocks, Match, PairSource
from boxscore.matching.ignoring import Ignoring, Ranges
from boxscore.matching.pairs import Outcome
from boxscore.protocols.protocol import Protocol


def in_column_ranges(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol
) -> tuple[BoolArray | None, BoolArray | None]:
    """Return which ground truths are in each range [G, A], and which detections have its height [D, A]."""
    return inside_column_ranges(ground_truth, protocol), of_right_height(detections, protocol)


def in_image_ranges(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol
) -> tuple[BoolArray | None, BoolArray | None]:
    """Return which ground truths are in an image of each range, [G, A]."""
    of_images = images_in_ranges(ground_truth.images, protocol)
    return None if of_images is None else of_images[ground_truth.image], None


def counted_in_image_ranges(
    ground_truth: GroundTruth, detections: Detections, rows: NDArray[np.int64], protocol: Protocol
) -> BoolArray | None:
    """Return which of some detections are in an image of each range, [rows, A]."""
    of_images = images_in_ranges(ground_truth.images, protocol)
    return None if of_images is None else of_images[detections.image[rows]]


def range_by_range(asked: Asked, before: Callable[[], PairSource]) -> PairSource:
    """Return a source that matches range by range."""
    return RangeByRange(asked.find, asked.ordered_ignoring, asked.ranges, asked.protocol.ignore.outside)


@record(frozen=True, eq=False)
class RangeByRange:
    """Pairs that are matched range by range: the range decides how they are measured, or which take part."""

    under: Callable[[Ignoring], Blocks]
    """Finds the pairs under flags of the ground truths."""
    flags: Ignoring
    ranges: Ranges
    outside: str
    """``ignore.outside`` of the protocol."""
    lasting: bool = False

    def matched(self, match: Match) -> Outcome:
        """Match range by range."""
        same = None if self.outside == "iof" else Blocks.held(self.under(self.flags).blocks)
        areas = range(self.ranges.inside.shape[1])
        return Outcome.joined([self._of_range(area, same, match) for area in areas])

    def _of_range(self, area: int, same: Blocks | None, match: Match) -> Outcome:
        """Match one range, using the pairs in ``same`` or, if None, pairs measured for the range."""
        flags, beyond = self.flags, ~self.ranges.inside[:, area]
        if self.outside != "ignore":
            flags = flags._replace(absorbs=flags.absorbs | beyond)
        if self.outside == "iof":
            flags = flags._replace(by_foreground=flags.by_foreground | beyond)
        blocks = self.under(flags).blocks if same is None else same.blocks
        near = self.ranges.near
        if near is not None:
            blocks = (block.of_detections(near[:, area]) for block in blocks)
        outcome = match(blocks, counted=self.ranges.counted[:, area : area + 1], absorbs=flags.absorbs)
        bits = np.zeros((len(outcome.bits), self.ranges.inside.shape[1]), dtype=outcome.bits.dtype)
        bits[:, area] = outcome.bits[:, 0]
        return outcome._replace(bits=bits)


def inside_column_ranges(ground_truth: GroundTruth, protocol: Protocol) -> BoolArray | None:
    """Return which ground truths are in each range on other columns, [G, A]; None without such ranges."""
    rules = protocol.ignore
    if not any(name in rules.column_ranges for name in rules.area_ranges):
        return None
    inside = np.ones((len(ground_truth), len(rules.area_ranges)), dtype=bool)
    for a, name in enumerate(rules.area_ranges):
        for column, (low, high) in rules.column_ranges.get(name, {}).items():
            values = _column(ground_truth, column)
            is_open = column == "height" and not rules.least_height_closed
            inside[:, a] &= (values > low if is_open else values >= low) & (values <= high)
    return inside


def images_in_ranges(images: Images, protocol: Protocol) -> BoolArray | None:
    """Return which images are in each range on image columns, [I, A]; None without such ranges."""
    rules = protocol.ignore
    if not any(name in rules.image_ranges for name in rules.area_ranges):
        return None
    inside = np.ones((len(images), len(rules.area_ranges)), dtype=bool)
    for a, name in enumerate(rules.area_ranges):
        for column, (low, high) in rules.image_ranges.get(name, {}).items():
            if column not in images.columns:
                rule = f"have the column {column}, which the protocol's ranges bound"
                raise InputError("images", rule, got="none")
            values = np.asarray(images.columns[column], dtype=np.float64)
            inside[:, a] &= (values >= low) & (values <= high)
    return inside


def of_right_height(detections: Detections, protocol: Protocol) -> BoolArray | None:
    """Return which detections have about the height of each range, [D, A]; None if not applicable."""
    rules = protocol.ignore
    if not rules.height_slack or not any(name in rules.column_ranges for name in rules.area_ranges):
        return None
    near = np.ones((len(detections), len(rules.area_ranges)), dtype=bool)
    height = detections.sizes[:, 1]
    for a, name in enumerate(rules.area_ranges):
        bounds = rules.column_ranges.get(name, {}).get("height")
        if bounds is not None:
            low, high = bounds[0] / rules.height_slack, bounds[1] * rules.height_slack
            near[:, a] = (height >= low) & (height < high)
    return near


_OF_BOXES = {"x1": 0, "y1": 1, "x2": 2, "y2": 3}


def _column(ground_truth: GroundTruth, name: str) -> NDArray[np.float64]:
    """Return the values that a range bounds, [G]: a column of the table, or else a number of the boxes."""
    # Columns of the file take precedence over numbers of the boxes.
    if name in ground_truth.columns:
        try:
            return np.asarray(ground_truth.columns[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"the column {name}", "hold numbers", got="others", place=ground_truth.source
            ) from None
    if not len(ground_truth):  # an empty file may lack the columns
        return np.zeros(0)
    # Use numbers of the boxes only in pixels: fractions of images do not have a common unit.
    if ground_truth.units == "pixels" and name == "area":
        return ground_truth.area
    if ground_truth.units == "pixels" and name in _OF_BOXES:
        return ground_truth.boxes[:, _OF_BOXES[name]]
    if ground_truth.units == "pixels" and name in ("width", "height"):
        return ground_truth.sizes[:, int(name == "height")]
    raise InputError(
        "ground truth",
        f"have the column {name}, which the protocol's ranges bound",
        got="none",
        place=ground_truth.source,
        cause="does the file say how much of each object is visible?" if name == "visibility" else "",
    )
