"""Print the IoU of two boxes, or of every pair of an object and a detection in two files.

Also prints GIoU, DIoU, CIoU and IoF, the fraction of the detection inside the object. With two boxes, the
first is the object. With files, there is one row per pair of the same class and image, measured as the
protocol compares them: boxes, masks, rotated boxes or keypoints.

Examples
--------
  boxscore iou 0 0 10 10 5 5 15 15
  boxscore iou 39 63 203 112 54 66 198 114 --pixels inclusive
  boxscore iou 0 0 0.5 0.5 0.25 0.25 0.5 0.5 --box-format xywhn --image-sizes 640x480 --output json
  boxscore iou instances.json results.json
  boxscore iou instances.json results.json --which matched --sort IoU --top 20
  boxscore iou instances.json results.json --iou-type segm --output csv
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import Columns
from boxscore.cli.arguments import DT_BOX_FORMAT, Option
from boxscore.cli.inputs import PIXEL_OFFSETS, chosen_protocol
from boxscore.cli.output import Section, written
from boxscore.cli.sockets import without
from boxscore.cli.streams import show
from boxscore.data.boxes import OTHER_FORMS, BoxFormat, cause_of_negative, corners_and_sizes, written_form
from boxscore.errors import InputError
from boxscore.extensions.diagnostics.commands import Diagnostic

_OF_FILES = Diagnostic(
    description="",
    function="pair_overlaps",
    title="IoU of {which} pairs",
    first_out=lambda _: ["file_name", "score", "CIoU", "DIoU", "GIoU", "IoF"],
)

OPTIONS = (
    Option(
        "boxes",
        "two boxes instead of files, ground truth first",
        positional=True,
        instead=True,
        metavar="X1 Y1 X2 Y2 X1 Y1 X2 Y2",
    ),
    *(option for option in _OF_FILES.arguments if option.name not in ("inside", "outside")),
    Option(
        "pixels",
        "meaning of corners: continuous coordinates, or inclusive (first and last pixel, so that 0 to 9 "
        "is 10 wide) (default: set by the protocol; coco: continuous)",
        choices=tuple(PIXEL_OFFSETS),
    ),
    DT_BOX_FORMAT.but(
        name="box-format",
        help="order of the four numbers of both boxes: xyxy, xywh, cxcywh, yxyx, yxhw; append n (xyxyn) "
        "for fractions of the image size (default: xyxy; for files set by the format)",
        key="",
        group="",
    ),
)

WITHOUT = without("evaluation", "measures all pairs, whether they count or not")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print; return the exit status."""
    if arguments.boxes is not None:
        return _print_boxes(arguments)
    for name in ("gt_box_format", "dt_box_format"):
        setattr(arguments, name, getattr(arguments, name) or arguments.box_format)
    return _OF_FILES.run(arguments)


def _print_boxes(arguments: argparse.Namespace) -> int:
    """Print the overlaps of two boxes."""
    from boxscore.extensions.diagnostics.overlaps import measures_of_boxes
    from boxscore.similarity.box import intersection_and_union

    # Read eight numbers, in the form and the pixels of the protocol.
    if len(arguments.boxes) != 8:
        raise InputError(
            "boxscore iou",
            "get two boxes with four numbers each",
            got=f"{len(arguments.boxes)} numbers",
            cause="for example: boxscore iou 0 0 10 10 5 5 15 15",
        )
    numbers = np.array(arguments.boxes).reshape(2, 4)
    checks.finite(numbers, name="a box", limit=checks.LARGEST_COORDINATE)
    offset = chosen_protocol(arguments).boxes.pixel_offset
    form = written_form(arguments.box_format or "xyxy")
    boxes, in_pixels = form.x_first(numbers), not form.fractions
    size = _size(arguments.image_sizes)
    # Fractions need the image size only for values that depend on the aspect ratio.
    if form.fractions and size is not None:
        boxes, in_pixels = boxes * [*size, *size], True
    if offset and not in_pixels:
        raise InputError(
            "--image-sizes",
            "be set for inclusive pixels with fractions",
            got="none",
            cause="for example 640x480",
        )
    _check_sides(boxes, form.form)
    # Use the functions of an evaluation on one pair.
    how: dict[str, Any] = {"box_format": form.form, "pixel_offset": offset}
    shared, union, _ = intersection_and_union(boxes[:1], boxes[1:], **how)
    measured = measures_of_boxes(boxes[:1], boxes[1:], in_pixels=in_pixels, **how)
    areas = {"intersection": _format_number(shared), "union": _format_number(union)}
    columns: Columns = {**areas, **{name: values.tolist() for name, values in measured.items()}}
    # Describe what was compared.
    pixels = next((name for name, value in PIXEL_OFFSETS.items() if value == offset), f"offset {offset:g}")
    unit = "pixels" if in_pixels else "fractions of the image"
    title = f"Two boxes, {arguments.box_format or 'xyxy'}, {pixels} {unit}"
    value = {"boxes": numbers.tolist(), "box_format": arguments.box_format or "xyxy", "pixel_offset": offset}
    value |= {name: values[0] for name, values in columns.items()}
    note = "" if in_pixels else "DIoU and CIoU depend on the image's shape: --image-sizes WxH"
    show(written(arguments.output, [Section(title, columns, note)], value=value))
    return 0


def _check_sides(boxes: FloatArray, form: BoxFormat) -> None:
    """Raise an error for a box with a negative width or height."""
    corners, sizes = corners_and_sizes(boxes, form)
    for box, side in np.argwhere(sizes < 0).tolist():
        cause = cause_of_negative(corners, sizes, form)
        other = OTHER_FORMS.get(cause)
        raise InputError(
            f"the {('first', 'second')[box]} box",
            f"have a {('width', 'height')[side]} >= 0",
            got=f"{sizes[box, side]:g}",
            cause=f"{cause} If so, use --box-format {other}" if other else cause,
        )


def _format_number(area: FloatArray) -> list[float]:
    """Format whole numbers of pixels without decimals."""
    return [int(value) if value.is_integer() else value for value in area.tolist()]


def _size(text: Path | None) -> tuple[float, float] | None:
    """Parse ``640x480``."""
    from boxscore.formats.image_sizes import image_sizes_of

    if text is None:
        return None
    sizes = image_sizes_of(text) if re.fullmatch(r"\d+[xX]\d+", str(text), re.ASCII) else None
    if sizes is None or sizes.every is None:
        raise InputError(
            "--image-sizes", "be WIDTHxHEIGHT when boxes are passed as numbers", got=repr(str(text))
        )
    return sizes.every
