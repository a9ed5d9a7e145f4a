"""What is ignored: the only module that reads crowd, difficult and ignore flags.

Conventions
-----------
- Loaders record facts; the protocol's ``ignore`` rules decide here what they mean.
- An *ignored* ground truth is no false negative, and a detection that matches it is no false positive. One
  that *absorbs* may match any number of detections; any other, one.
- A ground truth outside an area range is ignored in it; so is a detection outside that matches nothing.
  Ranges are closed at both ends.
- Areas are unknown where boxes are fractions of images of unknown size. Nothing lies in small, medium or
  large then, so their metrics are undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.ordering import ragged_ranges
from boxscore._utils.records import NamedTuple
from boxscore.data.quadrilaterals import minimum_rectangles
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.base import box_only

EVERY_AREA = 1e10
"""A range from 0 to this, COCO's "all", or beyond holds an object of any area, also of an unknown one."""


class Ranges(NamedTuple):
    """What lies in which area range, ground truths in the order in which they are matched."""

    inside: BoolArray
    """Ground truths, [G, A]."""
    counted: BoolArray
    """Ground truths inside that are not ignored, [G, A]."""
    near: BoolArray | None
    """Detections of the right height, [D, A], by position in class order; None: all."""


class Ignoring(NamedTuple):
    """How each ground truth is treated, whatever its area.

    Attributes
    ----------
    ignored : ndarray of bool, [G]
        Not counted.
    absorbs : ndarray of bool, [G]
        Never used up by a match.
    deleted : ndarray of bool, [G]
        Takes no part in matching.
    by_foreground : ndarray of bool, [G]
        Measured by intersection over the detection's area alone.
    """

    ignored: BoolArray
    absorbs: BoolArray
    deleted: BoolArray
    by_foreground: BoolArray


def ignoring(ground_truth: GroundTruth, protocol: Protocol) -> Ignoring:
    """Read the flags of the ground truth by the protocol's rules."""
    count, rules = len(ground_truth), protocol.ignore
    flagged = _flagged(ground_truth, rules.flags)
    ignored, absorbs, deleted = (np.zeros(count, dtype=bool) for _ in range(3))
    for rule, flag, absorbing in (
        (rules.crowd, ground_truth.crowd, True),
        (rules.difficult, ground_truth.difficult, True),
        (rules.flagged, flagged, rules.flagged == "iof"),
    ):
        if rule == "count":
            continue
        ignored |= flag
        if absorbing:
            absorbs |= flag
        if rule == "delete":
            deleted |= flag
    if protocol.boxes.degenerate == "drop":
        nothing = without_area(ground_truth.area)
        ignored |= nothing
        deleted |= nothing
    if protocol.boxes.least_side:
        small = _shortest_side(ground_truth) < protocol.boxes.least_side
        ignored |= small
        deleted |= small
    if rules.unlabelled == "ignore" and ground_truth.keypoint_count is not None:
        ignored |= ground_truth.keypoint_count == 0
    if protocol.labels.not_evaluated:
        without = ~evaluated(ground_truth.categories, protocol)[ground_truth.category]
        ignored |= without
        deleted |= without
    by_foreground = ground_truth.crowd if rules.crowd == "iof" else np.zeros(count, dtype=bool)
    if rules.flagged == "iof":
        by_foreground = by_foreground | flagged
    if protocol.group.treatment == "merge":
        by_foreground = by_foreground | ground_truth.group
        if protocol.group.weight == 0:
            ignored |= ground_truth.group
    if protocol.masks_may_lack:
        ignored |= box_only(ground_truth)
    return Ignoring(ignored, absorbs, deleted, by_foreground)


def with_void(ground_truth: GroundTruth, detections: Detections, name: str) -> GroundTruth:
    """Add the objects of a class, flagged ``ignore``, to each class that is detected in their image."""
    K = len(ground_truth.categories)
    is_void = np.array(ground_truth.categories.names, dtype=object) == name
    void = np.flatnonzero(is_void[ground_truth.category])
    detected = np.unique(detections.image.astype(np.int64) * K + detections.category)
    detected = detected[~is_void[detected % K]]
    low, high = (
        np.searchsorted(detected, ground_truth.image[void].astype(np.int64) * K + end) for end in (0, K)
    )
    rows = np.append(np.arange(len(ground_truth)), np.repeat(void, high - low))
    added = detected[ragged_ranges(low, high - low)] % K
    table = ground_truth.take(rows)
    ignore, category = table.ignore.copy(), table.category.copy()
    ignore[len(ground_truth) :], category[len(ground_truth) :] = True, added
    return table.replaced(ignore=ignore, category=category)


def times_ignored(
    ground_truth: GroundTruth, ignored: Ignoring, outside: BoolArray, protocol: Protocol
) -> NDArray[np.int64]:
    """How often what lies on a ground truth counts as ignored, [G]; those ``outside`` of a range, [G].

    What is ignored by its flag, and is also outside, counts once; a crowd twice.
    """
    crowd = ground_truth.crowd & (protocol.ignore.crowd in ("iof", "ignore"))
    times = (ignored.ignored & ~crowd).astype(np.int64)
    times |= outside & ~crowd
    times += crowd.astype(np.int64) * (1 + outside)
    times[ignored.deleted] = 0
    return times


def _flagged(ground_truth: GroundTruth, names: Sequence[str]) -> BoolArray:
    """Whether each ground truth has the ignore flag, or one of some columns, [G]; a column may be missing."""
    columns = [ground_truth.columns[name] for name in names if name in ground_truth.columns]
    flags = [np.nan_to_num(np.asarray(column, dtype=np.float64)) != 0 for column in columns]
    return np.asarray(np.logical_or.reduce([ground_truth.ignore, *flags]))


def _shortest_side(ground_truth: GroundTruth) -> NDArray[np.float64]:
    """Shorter side of each ground truth [G], of its rotated rectangle where it has one."""
    sides = ground_truth.sizes
    if ground_truth.rotated is not None:
        sides = ground_truth.rotated[:, 2:4]
    elif ground_truth.quadrilaterals is not None:
        sides = minimum_rectangles(ground_truth.quadrilaterals)[:, 2:4]
    return np.asarray(sides.min(axis=1, initial=np.inf))


def evaluated(categories: Categories, protocol: Protocol) -> BoolArray:
    """Whether each class is evaluated, [K]."""
    return ~np.isin(np.array(categories.names, dtype=object), list(protocol.labels.not_evaluated))


def inside_column_ranges(ground_truth: GroundTruth, protocol: Protocol) -> BoolArray | None:
    """Whether each ground truth is within the bounds of each range on other columns, [G, A]; or None."""
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
    """Whether each image is within the bounds of each range on columns of images, [I, A]; or None."""
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
    """Whether each detection's height is near those of each range, [D, A]; None where nobody asks."""
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
    """Return what a range bounds, [G]: a column of the table, else a number of the boxes."""
    if name in ground_truth.columns:
        try:
            return np.asarray(ground_truth.columns[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"the column {name}", "hold numbers", got="others", place=ground_truth.source
            ) from None
    if not len(ground_truth):  # files without a line do not say which columns they would have
        return np.zeros(0)
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


def matching_passes(ground_truth: GroundTruth, protocol: Protocol) -> NDArray[np.int8] | None:
    """In which pass each ground truth is matched, [G]; None where all are matched together.

    Objects come first, then groups, then objects that only have a box (2), then such groups (3).
    """
    by_groups = protocol.group.treatment == "merge"
    if not by_groups and not protocol.masks_may_lack:
        return None
    of_pass = np.zeros(len(ground_truth), dtype=np.int8)
    if by_groups:
        of_pass += ground_truth.group
    if protocol.masks_may_lack:
        of_pass[box_only(ground_truth)] += 2
    return of_pass


def without_area(areas: NDArray[np.float64]) -> BoolArray:
    """Whether each area is no positive finite number."""
    return ~((areas > 0) & (areas < np.inf))


def inside_ranges(values: NDArray[np.float64], ranges: Sequence[tuple[float, float]]) -> BoolArray:
    """Whether each value [N] lies in each range; [N, A]. An unknown value, NaN, lies in the ranges of all."""
    inside = np.empty((len(ranges), len(values)), dtype=bool)  # a range at a time: long inner loops
    for flags, (low, high) in zip(inside, ranges, strict=True):
        np.greater_equal(values, low, out=flags)
        flags &= values <= high
        if low <= 0 and high >= EVERY_AREA:
            flags |= np.isnan(values)
    return inside.T


def zero_ids(ids: NDArray[Any]) -> BoolArray:
    """Whether each id reads as 0 in pycocotools, which stores the id of a match as a float; [G]."""
    if ids.dtype != object:
        return np.asarray(ids == 0)
    return np.fromiter(map(_is_zero, ids.tolist()), dtype=bool, count=len(ids))


def _is_zero(identifier: Id) -> bool:
    try:
        return float(identifier) == 0
    except (ValueError, OverflowError):
        return False
