"""Check coordinates: infer from them how boxes were written.

Conventions
-----------
A box may overhang its image by :data:`SLACK` pixels. The rule of the loaders decides whether the whole file
has another box order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted, verb
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.extensions.validation._findings import (
    HIGH,
    IN_PASSING,
    MUCH,
    SIZES_SWAPPED,
    SWAP_SIZES,
    WHEN_ASKED,
    Context,
    Finding,
    Repair,
    RowCheck,
)
from boxscore.formats.reading import boxes_look_right
from boxscore.protocols.protocol import Protocol

if TYPE_CHECKING:
    from boxscore.extensions.hints.box_order import BoxOrder

SLACK = 1.0
FEWEST = 20
"""Minimum number of boxes whose coordinates are evidence."""

SAMPLED = 1_000
"""Sample size for counting boxes of whole numbers."""

ALL = 0.99
"""Fraction of whole numbers above which they are not a coincidence."""

Table = TypeVar("Table", bound=BoxTable)


def geometric_findings(context: Context) -> Iterator[Finding]:
    """Check the boxes of both tables; quick checks repeat loaders' warnings only for repairable faults."""
    # Skip boxes derived from other shapes: they are not in any file.
    tables: list[BoxTable] = [context.ground_truth]
    if context.detections is not None and context.detections.boxes_given:
        tables.append(context.detections)
    for table in tables:
        # Check the order of boxes first: if it is wrong, the other checks would only repeat it.
        warned = context.effort == IN_PASSING and context.was_read(table)
        evidence = _evidence(table)
        order = []
        if evidence is not None and (not warned or evidence.may_be_sizes or context.is_below(HIGH)):
            order = list(_order(context, table, evidence))
        yield from (
            one
            for one in order
            if not warned
            or one.code == SIZES_SWAPPED
            or (one.code in context.repairs and not one.effect <= 0)
        )
        # Then check rows; run the costly checks only on request.
        flat, inverted, outside = _checks_of(table)
        yield from flat.finding(context, table)
        if context.effort > IN_PASSING:
            yield from inverted.finding(context, table)
        # After a warning of the loader, report only repairable problems.
        if warned:
            if evidence is None and isinstance(table, GroundTruth) and _reaches_outside(table):
                yield from outside.finding(context, table)
        elif not order and (context.effort > IN_PASSING or isinstance(table, GroundTruth)):
            yield from outside.finding(context, table)
    yield from _whole_numbers(context)


def _has_sizes(table: BoxTable) -> bool:
    """Return whether a table came from a file with widths and heights, such as COCO's."""
    return Path(table.source).suffix.lower() == ".json"


def _evidence(table: BoxTable) -> BoxOrder | None:
    if boxes_look_right(table):
        return None
    from boxscore.extensions.hints.box_order import box_order

    return box_order(table, given_sizes=_has_sizes(table))


def _nouns(table: BoxTable) -> tuple[str, str]:
    return ("annotation", "ground truth") if isinstance(table, GroundTruth) else ("detection", "detections")


def _order(context: Context, table: BoxTable, evidence: BoxOrder) -> Iterator[Finding]:
    from boxscore.extensions.hints.box_order import FRACTIONS, reread

    # Fractions concern every row; another order of the four numbers places boxes outside their image.
    noun, name = _nouns(table)
    reading = evidence.reading
    count = len(table) if reading == FRACTIONS else round(evidence.outside * len(table))
    # Only examples need the rows, and quick checks have none.
    rows = np.arange(len(table))
    if reading != FRACTIONS and context.effort == WHEN_ASKED:
        rows = np.flatnonzero(_overhang(table) > SLACK)
    if reading is None:
        yield context.finding(
            f"{noun}-box-order", "geometric", "error", count, f"{name}: {evidence.message}",
            table=table, rows=rows,
        )  # fmt: skip
        return
    # The repair reads the same numbers in the other order.
    corners = reread(table, reading, given_sizes=_has_sizes(table))
    # The loader rejects boxes of negative size, which the repair leaves out: the option would then not help.
    as_typed = context.was_read(table) and len(_regular(corners)) == len(table)
    repaired = with_boxes(table, corners)
    at_once, message = context.is_soon(context.protocol), f"{name}: {evidence.message}"
    # Boxes of images whose width and height are exchanged look the same, but the repair does not help.
    if evidence.may_be_sizes and context.detections is None:
        message += evidence.question_of_sizes
    elif evidence.may_be_sizes and not context.is_raised(repaired, MUCH):
        of_truth = evidence if table is context.ground_truth else _evidence(context.ground_truth)
        if of_truth is not None and of_truth.may_be_sizes:
            yield from _sizes_swapped(context, table, of_truth, rows)
            return
    if at_once and context.repaired_value(repaired) < context.value:
        text = evidence.message.partition("; read as")[0]
        yield context.finding(
            f"{noun}-box-order", "geometric", "error", count,
            f"{name}: {text}. Do they belong to another image size or data set?",
            table=table, rows=rows,
        )  # fmt: skip
        return
    yield context.finding(
        f"{noun}-box-order", "geometric", "error", count, message,
        table=table, rows=rows,
        repair=f"with {evidence.option}" if as_typed else f"with boxes read as {reading}",
        repaired=repaired,
        at_once=at_once,
    )  # fmt: skip


def _sizes_swapped(
    context: Context, table: BoxTable, evidence: BoxOrder, rows: NDArray[np.intp]
) -> Iterator[Finding]:
    """Report that width and height of the images are exchanged, once for both tables."""
    if table is not context.ground_truth:
        return
    yield context.finding(
        SIZES_SWAPPED,
        "geometric",
        "warning",
        len(table.images),
        f"width and height of the images seem to be exchanged: {evidence.outside:.0%} of the boxes "
        f"of the ground truth extend outside their image, and {evidence.outside_swapped:.1%} if the two are "
        f"exchanged. Use {SWAP_SIZES}",
        table=table,
        rows=rows,
    )


def _overhang(table: BoxTable) -> NDArray[np.float64]:
    """Return how far each box extends beyond its image, in pixels, [N]; 0 if the image's size is unknown."""
    beyond = np.zeros(len(table))
    if np.isnan(table.images.sizes).all():
        return beyond
    extent = table.images.sizes[table.image]
    for low, high, end in zip(table.boxes.T[:2], table.boxes.T[2:], extent.T, strict=True):
        beyond = np.maximum(beyond, np.maximum(-low, high - end))
    known: NDArray[np.float64] = np.nan_to_num(beyond, nan=0.0)
    return known


def _reaches_outside(table: BoxTable) -> bool:
    """Return whether any box may extend beyond its image by more than :data:`SLACK`.

    This is four times faster than computing how far.
    """
    ends = zip(table.boxes.T[2:], table.images.sizes.T, strict=True)
    return bool(table.boxes.min(initial=0.0) < -SLACK) or any(
        bool((high - size.take(table.image) > SLACK).any()) for high, size in ends
    )


def _regular(corners: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the rows of boxes whose sides are not negative."""
    return np.flatnonzero((corners[:, 2:] >= corners[:, :2]).all(axis=1) & np.isfinite(corners).all(axis=1))


def with_boxes(table: BoxTable, corners: NDArray[np.float64]) -> Repair:
    """Return the tables with other boxes in one of them, without boxes of negative size."""
    good = _regular(corners)

    def repaired(context: Context, detections: Detections) -> tuple[GroundTruth, Detections, Protocol]:
        truth = context.ground_truth
        if isinstance(table, GroundTruth):
            moved = _with_corners(truth, corners, good)
            boxes_area = moved.sizes[:, 0] * moved.sizes[:, 1]
            stated = truth.area[good] != truth.sizes[good, 0] * truth.sizes[good, 1]
            area = np.where(stated, truth.area[good], boxes_area)
            return dataclasses.replace(moved, area=area), detections, context.protocol
        return truth, _with_corners(detections, corners, good), context.protocol

    return repaired


def _with_corners(table: Table, corners: NDArray[np.float64], rows: NDArray[np.intp]) -> Table:
    boxes = corners[rows]
    return dataclasses.replace(table.take(rows), boxes=boxes, sizes=boxes[:, 2:] - boxes[:, :2])


def _flat(context: Context, table: BoxTable) -> tuple[NDArray[np.intp], float]:
    """Return the boxes of width or height 0; with inclusive pixels they are one pixel wide."""
    if not len(table) or table.sizes.min() > 0 or context.protocol.boxes.pixel_offset:
        return np.empty(0, dtype=np.intp), 0.0
    return np.flatnonzero((table.sizes[:, 0] == 0) | (table.sizes[:, 1] == 0)), 0.0


def _inverted(context: Context, table: BoxTable) -> tuple[NDArray[np.intp], float]:
    """Return the boxes with negative sides, which loaders warn about, and the largest deviation."""
    return np.flatnonzero((table.sizes < 0).any(axis=1)), -float(table.sizes.min(initial=0.0))


def _beyond(context: Context, table: BoxTable) -> tuple[NDArray[np.intp], float]:
    """Return the boxes outside their image, the furthest first, and the largest overhang."""
    overhang = _overhang(table)
    rows = np.flatnonzero(overhang > SLACK)
    return rows[np.argsort(-overhang[rows], kind="stable")], float(overhang.max(initial=0.0))


def _clip_boxes(context: Context, table: BoxTable, rows: NDArray[np.intp]) -> Repair:
    extent, clipped = np.tile(table.images.sizes[table.image[rows]], 2), table.boxes.copy()
    clipped[rows] = np.where(
        np.isnan(extent), table.boxes[rows], np.clip(table.boxes[rows], 0.0, np.nan_to_num(extent, nan=0.0))
    )
    return with_boxes(table, clipped)


def _row_checks(noun: str, kind: type[BoxTable]) -> tuple[RowCheck, RowCheck, RowCheck]:
    """Return the row checks of one side: flat boxes, inverted ones, and those outside their image."""
    # The three checks have one form: rows, severity, message, and repair.
    is_truth = kind is GroundTruth
    match = "no detection can match such boxes" if is_truth else "such boxes cannot match anything"
    dropped = "the protocol drops such boxes"
    return (
        RowCheck(
            f"{noun}-degenerate",
            "geometric",
            _flat,
            lambda context: "note" if _are_dropped(context, kind) else "warning",
            lambda context, count, _: (
                f"{counted(count, noun)} with a box of width or height 0: "
                f"{dropped if _are_dropped(context, kind) else match}"
            ),
            "without these boxes",
            without,
        ),
        RowCheck(
            f"{noun}-inside-out",
            "geometric",
            _inverted,
            lambda context: "warning" if context.protocol.boxes.degenerate == "count" else "note",
            lambda context, count, most: (
                f"{counted(count, noun)} with a box of negative width or height (down to {-most:g}): "
                f"{dropped if _are_dropped(context, kind) else 'such boxes match nothing'}"
            ),
            "without these boxes",
            without,
        ),
        RowCheck(
            f"{noun}-outside-image",
            "geometric",
            _beyond,
            lambda _: "warning" if is_truth else "note",
            lambda _, count, most: (
                f"{counted(count, noun)} {verb(count, 'extend')} more than {SLACK:g} pixel outside "
                f"{('its' if count == 1 else 'their')} image (up to {most:.1f})"
            ),
            "with boxes clipped to their image",
            _clip_boxes,
        ),
    )


def _are_dropped(context: Context, kind: type[BoxTable]) -> bool:
    """Return whether the protocol drops boxes without area from a kind of table."""
    rule = context.protocol.boxes.degenerate
    return rule == "drop" or (rule == "drop_detections" and kind is Detections)


def without(context: Context, table: BoxTable, rows: NDArray[np.intp]) -> Repair:
    """Return the tables without some rows of one of them."""
    rest = np.delete(np.arange(len(table)), rows)
    is_truth = isinstance(table, GroundTruth)

    def repaired(c: Context, detections: Detections) -> tuple[GroundTruth, Detections, Protocol]:
        if is_truth:
            return c.ground_truth.take(rest), detections, c.protocol
        return c.ground_truth, detections.take(rest), c.protocol

    return repaired


OF_TRUTH = _row_checks("annotation", GroundTruth)
OF_DETECTIONS = _row_checks("detection", Detections)


def _checks_of(table: BoxTable) -> tuple[RowCheck, RowCheck, RowCheck]:
    return OF_TRUTH if isinstance(table, GroundTruth) else OF_DETECTIONS


def _whole_numbers(context: Context) -> Iterator[Finding]:
    """Report whole numbers in one table and fractions in the other, which suggests ``int(x)``."""
    truth, detections = context.ground_truth, context.detections
    if detections is None or not detections.boxes_given or min(len(truth), len(detections)) < FEWEST:
        return
    if _almost_all_whole(detections):
        shares = _share_whole(detections), _share_whole(truth)
        yield from whole_numbers(context, len(detections), *shares, table=detections)


def whole_numbers(
    context: Context, count: int, whole: float, whole_truth: float, *, table: Detections | None = None
) -> Iterator[Finding]:
    """Report the fractions of whole-number boxes on both sides if they are inconsistent."""
    if whole_truth < 0.5:
        yield context.finding(
            "integer-coordinates",
            "geometric",
            "warning",
            round(whole * count),
            f"{whole:.0%} of the detected boxes have integer coordinates, but only {whole_truth:.0%} of "
            "the annotated ones. Were coordinates truncated with int()? This lowers AP most for small "
            "objects at high IoU thresholds",
            table=table,
            rows=np.arange(3),
        )


def _almost_all_whole(table: BoxTable) -> bool:
    """Return whether over 99% of the boxes are whole numbers; a sample rules out most tables."""
    sample = table.boxes[:: len(table) // SAMPLED + 1]
    return bool(whole_boxes(sample).mean() > 0.9) and _share_whole(table) > ALL


def _share_whole(table: BoxTable) -> float:
    return float(whole_boxes(table.boxes).mean())


def whole_boxes(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each box has whole numbers, [N]."""
    whole: NDArray[np.bool_] = (boxes == np.round(boxes)).all(axis=1)
    return whole
