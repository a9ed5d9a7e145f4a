"""Check masks: their areas, masks without a pixel, and boxes that do not enclose their mask."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import counted
from boxscore.data.base import MaskColumn
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.validation._findings import (
    BOXES_OF_MASKS,
    MUCH,
    WHEN_ASKED,
    Context,
    Finding,
    with_areas,
)
from boxscore.extensions.validation.geometric import with_boxes, without

SAMPLED = 200
"""Number of boxes that are compared with their masks."""

MOST = 0.5
"""Minimum fraction of boxes that do not enclose their mask."""

PIXELS, OF_SIDE = 2.0, 0.1
"""How far a mask may extend beyond its box: in pixels, and in addition as a fraction of its side."""

DIFFERENT, FEW_PIXELS = 1.1, 16
"""Ratio and difference of the areas in the file and of the mask above which they disagree."""


def mask_findings(context: Context) -> Iterator[Finding]:
    """Check annotated masks where masks are compared, all masks on request, and boxes around masks."""
    try:
        yield from _findings(context)
    # If masks are compared, the evaluation has already raised the error.
    except InputError:
        return


def _findings(context: Context) -> Iterator[Finding]:
    truth = context.ground_truth
    compared = context.compares_masks
    tables: list[BoxTable] = [truth] if compared or context.effort == WHEN_ASKED else []
    if context.detections is not None and context.effort == WHEN_ASKED:
        tables.append(context.detections)
    for table in tables:
        if table.masks is None or table.units != "pixels":
            continue
        rows = np.flatnonzero(~table.masks.missing)
        area = table.masks[rows].area
        yield from _empty(context, table, rows[area == 0], compared=compared)
        if compared and isinstance(table, GroundTruth):
            yield from _other_areas(context, table, rows[area > 0], area[area > 0])
    if truth.masks is not None and not compared:
        yield from _boxes(context, truth, truth.masks)


def _empty(context: Context, table: BoxTable, rows: NDArray[np.intp], *, compared: bool) -> Iterator[Finding]:
    """Report masks without a pixel, such as polygons whose points are on one line."""
    if not len(rows):
        return
    noun = "annotation" if isinstance(table, GroundTruth) else "detection"
    match = "no detection can match it" if noun == "annotation" else "it can match no annotation"
    yield context.finding(
        f"{noun}-empty-mask",
        "semantic",
        "warning" if compared else "note",
        len(rows),
        f"{counted(len(rows), noun)} with a mask that covers no pixel: "
        f"{'' if compared else 'if masks are compared, '}{match}",
        table=table,
        rows=rows,
        repair=f"without {'this' if len(rows) == 1 else 'these'} {noun}{'s' * (len(rows) > 1)}",
        repaired=without(context, table, rows) if compared else None,
        at_once=context.is_soon(context.protocol),
    )


def _other_areas(
    context: Context, truth: GroundTruth, rows: NDArray[np.intp], area: FloatArray
) -> Iterator[Finding]:
    """Report areas that are not those of the masks."""
    # The ratio is symmetric; small differences come from rounding.
    stated = truth.area[rows]
    ratio = np.maximum(stated, area) / np.maximum(np.minimum(stated, area), 1.0)
    apart = rows[(ratio > DIFFERENT) & (np.abs(stated - area) > FEW_PIXELS)]
    if not len(apart):
        return
    of_masks = truth.area.copy()
    of_masks[rows] = area
    yield context.finding(
        "area-disagrees-with-mask",
        "semantic",
        "warning",
        len(apart),
        f"{counted(len(apart), 'annotation')} with an area that differs from the mask area",
        table=truth,
        rows=apart,
        repair="with mask areas",
        repaired=with_areas(of_masks),
    )


def _boxes(context: Context, truth: GroundTruth, masks: MaskColumn) -> Iterator[Finding]:
    """Report annotations whose boxes do not enclose their own masks."""
    # Judge a sample. The box of a crowd region may be any; an empty mask has none.
    rows = np.flatnonzero(~(truth.crowd | masks.missing))
    sample = rows[:: len(rows) // SAMPLED + 1]
    sample = sample[masks[sample].area > 0]
    beyond = _extends(masks[sample].boxes, truth.boxes[sample])
    if truth.units != "pixels" or not len(sample) or beyond.mean() < MOST:
        return
    corners = truth.boxes.copy()
    corners[rows] = np.where(masks[rows].area[:, None] > 0, masks[rows].boxes, corners[rows])
    repaired = with_boxes(truth, corners)
    yield context.finding(
        BOXES_OF_MASKS,
        "geometric",
        "error" if context.is_raised(repaired, MUCH) else "warning",
        round(float(beyond.mean()) * len(rows)),
        f"{int(beyond.sum()):,} of {counted(len(sample), 'box')} of the ground truth do not enclose the mask "
        "of their annotation. Write the boxes around the masks (boxscore.mask_to_box), or compare masks",
        table=truth,
        rows=sample[beyond],
        repair="with the boxes around the masks",
        repaired=repaired,
    )


def _extends(masks: FloatArray, boxes: FloatArray) -> NDArray[np.bool_]:
    """Return whether each mask, given by the box around it, extends beyond its annotation's box, [N]."""
    slack = PIXELS + OF_SIDE * (masks[:, 2:] - masks[:, :2])
    beyond = np.maximum(boxes[:, :2] - masks[:, :2], masks[:, 2:] - boxes[:, 2:]) > slack
    return np.logical_or(beyond[:, 0], beyond[:, 1])
