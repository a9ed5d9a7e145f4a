"""Prepare both tables, and flag ignored ground truths and evaluated detections.

Conventions
-----------
- Tables are prepared before anything is ranked or compared: scores are rounded, boxes lengthened, and rules
  may do more. Each step only depends on one table and the protocol, and rows keep their order.
- Loaders record facts; the protocol's ``ignore`` rules interpret them here. Only this module, and functions
  that a rule names, read crowd, difficult and ignore flags.
- An *ignored* ground truth does not count as a false negative, nor a detection that matches it as a false
  positive. A ground truth that *absorbs* may match any number of detections; any other, one.
- A ground truth outside an area range is ignored in it; so is an unmatched detection outside. Ranges are
  closed at both ends.
- The order is lvis-api's: detections are cut at max detections (of an image if classes are pooled, or of a
  class in the whole data set), then those without area are dropped, then those that other rules drop. All
  other limits are applied later (:mod:`boxscore.matching.ranking`).
- Areas are unknown if boxes are fractions of images of unknown size. Then every object is outside the small,
  medium and large ranges, whose metrics are undefined.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import descending_order, top_k_per_group
from boxscore._utils.records import NamedTuple
from boxscore.data.scores import COUNTED
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import InputError
from boxscore.matching.points import functions_at, prepared_at
from boxscore.matching.ranking import ranked_by, scored_enough
from boxscore.protocols.protocol import Protocol

Table = TypeVar("Table", bound=BoxTable)


def prepared(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, *, share: bool = False
) -> tuple[GroundTruth, Detections]:
    """Return both tables, aligned, as the protocol evaluates them.

    With ``share`` the tables hold only some of the images, and scores are not scaled yet.
    """
    # Run rules that need the original numbers first.
    for prepare in prepared_at(protocol, early=True):
        ground_truth, detections = prepare(ground_truth, detections, protocol, share)
    # Drop the scores if the protocol does not read them; otherwise require them.
    if protocol.matching.scores != "given":
        detections = detections.without_scores()
    elif not detections.scored:
        raise InputError(
            "the detections",
            f"have scores for the protocol {protocol.name}",
            got="none",
            place=detections.source,
            cause=COUNTED,
        )
    # Round the detections as a text file would, then lengthen the boxes of both sides.
    rounding = protocol.rounding
    if rounding.scores is not None or rounding.boxes is not None:
        detections = rounded(detections, scores=rounding.scores, boxes=rounding.boxes)
    if protocol.boxes.longer_sides:
        longer = protocol.boxes.longer_sides
        ground_truth, detections = _longer(ground_truth, longer), _longer(detections, longer)
    # Run all other rules on the final numbers.
    for prepare in prepared_at(protocol, early=False):
        ground_truth, detections = prepare(ground_truth, detections, protocol, share)
    return ground_truth, detections


def _longer(table: Table, pixels: float) -> Table:
    """Add pixels to the width and height of boxes."""
    corners, sides = table.boxes.copy(), table.sizes + pixels
    corners[:, 2:] += pixels
    changes = {"area": sides.prod(axis=1)} if isinstance(table, GroundTruth) else {}
    return dataclasses.replace(table, boxes=corners, sizes=sides, **changes)


def rounded(detections: Detections, *, scores: int | None, boxes: int | None) -> Detections:
    """Round scores and box corners to a number of decimals, half to even; None leaves them unchanged."""
    if scores is not None:
        detections = detections.replaced(scores=rounded_values(detections.scores, scores))
    if boxes is not None:
        corners = rounded_values(detections.boxes, boxes)
        sizes = corners[:, 2:] - corners[:, :2]
        detections = dataclasses.replace(detections, boxes=corners, sizes=sizes)
    return detections


def rounded_values(values: FloatArray, decimals: int) -> FloatArray:
    """Round; keep values that are so large that NumPy's product overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.round(values, decimals)
    return np.where(np.isfinite(near), near, values)


EVERY_AREA = 1e10
"""COCO's upper end of "all"; a range from 0 to this or more contains objects of any area, even NaN."""


class Ranges(NamedTuple):
    """Membership of rows in area ranges, with ground truths in matching order."""

    inside: BoolArray
    """Whether each ground truth is in each range, [G, A]."""
    counted: BoolArray
    """Whether it is in the range and not ignored, [G, A]."""
    near: BoolArray | None
    """Whether each detection takes part in each range, [D, A], in class order; None: all do."""


class Ignoring(NamedTuple):
    """The treatment of each ground truth, before area ranges.

    Attributes
    ----------
    ignored : ndarray of bool, [G]
        Not counted.
    absorbs : ndarray of bool, [G]
        May match any number of detections.
    deleted : ndarray of bool, [G]
        Excluded from matching.
    by_foreground : ndarray of bool, [G]
        Measured by intersection over the detection's area alone.
    """

    ignored: BoolArray
    absorbs: BoolArray
    deleted: BoolArray
    by_foreground: BoolArray


def ignoring(
    ground_truth: GroundTruth,
    protocol: Protocol,
    matched: Callable[[GroundTruth, Protocol], Any] | None = None,
) -> Ignoring:
    """Read the flags of the ground truth by the protocol's rules.

    ``matched`` matches other ground truths with all detections, for rules that depend on such matches;
    without it these rules ignore nothing.
    """
    count, rules = len(ground_truth), protocol.ignore
    # Start without a flag and add what each rule of the protocol sets; all arrays are [G].
    flagged = _flagged(ground_truth, rules.flags)
    ignored, absorbs, deleted = (np.zeros(count, dtype=bool) for _ in range(3))
    for rule, flag, absorbing in (
        (rules.crowd, ground_truth.crowd, True),
        (rules.difficult, ground_truth.difficult, True),
        (rules.flagged, flagged, rules.flagged == "iof"),
    ):
        # A rule ignores the flagged ground truths; most also let them absorb, and "delete" takes them out of
        # matching.
        if rule == "count":
            continue
        ignored |= flag
        if absorbing:
            absorbs |= flag
        if rule == "delete":
            deleted |= flag
    # Exclude ground truths without area, and those of classes that are not evaluated.
    if protocol.boxes.degenerate == "drop":
        nothing = without_area(ground_truth.area)
        ignored |= nothing
        deleted |= nothing
    if protocol.labels.not_evaluated:
        without = ~evaluated(ground_truth.categories, protocol)[ground_truth.category]
        ignored |= without
        deleted |= without
    # Crowd regions, and flagged ones where the protocol says so, are measured by intersection over the
    # detection's area, as pycocotools does with ``iscrowd``.
    by_foreground = ground_truth.crowd if rules.crowd == "iof" else np.zeros(count, dtype=bool)
    if rules.flagged == "iof":
        by_foreground = by_foreground | flagged
    flags = Ignoring(ignored, absorbs, deleted, by_foreground)
    # Rules that name a function come last, in their order.
    for act in functions_at("ignore", protocol):
        flags = act(ground_truth, protocol, flags, matched)
    return flags


def _flagged(ground_truth: GroundTruth, names: Sequence[str]) -> BoolArray:
    """Whether each ground truth has the ignore flag, or one of some columns, [G]; a column may be missing."""
    columns = [ground_truth.columns[name] for name in names if name in ground_truth.columns]
    flags = [np.nan_to_num(np.asarray(column, dtype=np.float64)) != 0 for column in columns]
    return np.asarray(np.logical_or.reduce([ground_truth.ignore, *flags]))


def eligible(
    ground_truth: GroundTruth,
    detections: Detections,
    areas: Callable[[], FloatArray],
    ignoring: Ignoring,
    protocol: Protocol,
) -> BoolArray | None:
    """Return whether each detection is evaluated at all, [D]; None if all are.

    ``areas`` returns the area of each detection that area ranges compare, [D].
    """
    matching = protocol.matching
    # Skip the mask if nothing can drop a detection, as in most protocols.
    over_file = matching.caps_data_set or (
        matching.caps_image and not matching.per_class  # equal scores at the cut go in file order
    )
    labels = protocol.labels
    rules = functions_at("eligible", protocol)
    everything = protocol.boxes.degenerate == "count" and not rules and not labels.not_evaluated
    if everything and not over_file:
        return None
    # Apply the rules in the order of lvis-api: cut at max detections first, so that a detection dropped later
    # does not make room for another.
    mask = np.ones(len(detections), dtype=bool)
    if over_file and protocol.caps[-1] is not None:
        mask = _best(detections, protocol, protocol.caps[-1])
    # Then drop detections without area, by the area that ranges measure or by their sides.
    if protocol.boxes.degenerate == "drop":
        mask &= ~without_area(areas())
    elif protocol.boxes.degenerate == "drop_detections":
        mask &= (detections.sizes > 0).all(axis=1)
    # Then run rules that name a function, and drop classes that are not evaluated. These only narrow the
    # mask, so their order does not matter.
    for act in rules:
        mask &= act(ground_truth, detections, ignoring, protocol)
    if labels.not_evaluated:
        mask &= evaluated(detections.categories, protocol)[detections.category]
    return mask


def _best(detections: Detections, protocol: Protocol, max_detections: int) -> BoolArray:
    """Whether each detection is among the best of its image, or of its class; equal scores in file order."""
    of_image = not protocol.matching.caps_data_set
    group = detections.image if of_image else detections.category
    count = len(detections.images) if of_image else len(detections.categories)
    scores = ranked_by(detections)
    best = scored_enough(scores, protocol)
    over = np.bincount(group, minlength=count) > max_detections
    if over.any():  # sort only groups above the limit, which are rare
        rows = np.flatnonzero(best & np.take(over, group))
        rows = rows[descending_order(scores[rows])]
        best[rows] = False
        best[rows[top_k_per_group(np.take(group, rows), max_detections, count)]] = True
    return best


def evaluated(categories: Categories, protocol: Protocol) -> BoolArray:
    """Whether each class is evaluated, [K]."""
    return ~np.isin(np.array(categories.names, dtype=object), list(protocol.labels.not_evaluated))


def without_area(areas: NDArray[np.float64]) -> BoolArray:
    """Whether each area is zero, negative, infinite or NaN."""
    return ~((areas > 0) & (areas < np.inf))


def inside_ranges(values: NDArray[np.float64], ranges: Sequence[tuple[float, float]]) -> BoolArray:
    """Whether each value [N] is in each range; [N, A]. NaN, an unknown value, is in ranges of all areas."""
    inside = np.empty((len(ranges), len(values)), dtype=bool)  # a row for each range: long inner loops
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
