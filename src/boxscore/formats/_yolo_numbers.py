"""Interpret the numbers in YOLO lines, and infer the position of the confidence.

Conventions
-----------
Lines of boxes have 5 numbers, 6 with a confidence, or 7 with a confidence and a track id. Other lines are
polygons or keypoints, which an extension reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.lazy import loaded
from boxscore._utils.text import counted, counted_of, verb
from boxscore.data.boxes import BoxFormat, WrittenForm, are_few, box_convert
from boxscore.data.schema import SHAPES_OF_LINES
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._yolo_lines import Lines

CLEARLY = 10
"""One reading must put at least twice as many boxes plus this number inside the image as the other."""

OUTSIDE = 0.01
"""Tolerance for labels that extend beyond their image; ultralytics skips images with labels beyond it."""

NO_CONFIDENCE = "write them with confidence: yolo predict|val ... save_txt=True save_conf=True"
"""Advice for predictions without confidence."""


def is_last(
    columns: FloatArray, path: Path, written: WrittenForm | None = None, *, noted: bool | None = None
) -> bool:
    """Whether the confidence is the last of 6 numbers [N, 6]; otherwise it is the second.

    Confidences are in 0..1, and most predicted boxes are inside their image; with the wrong position, most
    are not. A note in the folder (``noted``) is used unless a number contradicts it.
    """
    read_last, read_second = _to_centers(columns[:, 1:5], written), _to_centers(columns[:, 2:], written)
    not_last = _are_no_confidences(read_last, columns[:, 5])
    not_second = _are_no_confidences(read_second, columns[:, 1])
    # The note decides, unless many numbers contradict it.
    count = len(columns)
    last, second = (are_few(int(odd.sum()), count) for odd in (not_last, not_second))
    if noted is not None and (last if noted else second):
        return noted
    # Then the numbers: accept the only reading in which most confidences are in 0..1 and most sides are not
    # negative; other lines are rejected later.
    if last != second:
        return last
    # Then the boxes: accept the only reading with all of them inside their image.
    inside_last, inside_second = (int(_is_inside(boxes).sum()) for boxes in (read_last, read_second))
    if (inside_last == count) != (inside_second == count):
        return inside_last == count
    # Otherwise, one reading must have clearly more boxes inside, and at least half; do not guess.
    fewer, more = sorted((inside_last, inside_second))
    if 2 * more >= count and more >= 2 * fewer + CLEARLY:
        return inside_last > inside_second
    raise InputError(
        "the confidence of predictions",
        "be declared as last or second",
        got=f"{inside_last:,} of {count:,} boxes inside their image read as class cx cy w h confidence, and "
        f"{inside_second:,} as class confidence cx cy w h",
        place=str(path),
        cause="use --dt-format yolo (last, as ultralytics writes it) or --dt-format darknet (second) (in "
        "Python format=)",
    )


def _to_centers(boxes: FloatArray, written: WrittenForm | None) -> FloatArray:
    return boxes if written is None else box_convert(written.x_first(boxes), written.form, "cxcywh")


def _are_no_confidences(boxes: FloatArray, scores: FloatArray) -> BoolArray:
    """Whether each score [N] is outside 0..1, or its box [N, 4] has a negative side."""
    odd: BoolArray = (scores < 0) | (scores > 1) | (boxes[:, 2] < 0) | (boxes[:, 3] < 0)
    return odd


def _is_inside(boxes: FloatArray) -> BoolArray:
    """Whether each box [N, 4] is inside its image, [N]."""
    reach = np.abs(boxes[:, :2] - 0.5) + boxes[:, 2:] / 2
    inside: BoolArray = reach.max(axis=1) <= 0.5 + OUTSIDE
    return inside


# ---------------------------------------------------------------- the numbers


class Shapes(NamedTuple):
    """The shapes in lines: boxes and others, without the class."""

    boxes: FloatArray
    box_format: BoxFormat
    scores: FloatArray | None
    outlines: list[list[FloatArray] | None] | None = None
    corners: FloatArray | None = None
    keypoints: FloatArray | None = None
    area: FloatArray | None = None


def shapes_of_labels(
    lines: Lines, keypoint_shape: tuple[int, int] | None, written: WrittenForm | None
) -> Shapes:
    """Return the boxes or other shapes of labels; they are not checked if the user gives their form."""
    if keypoint_shape is None and (lines.counts == 5).all():
        return _boxes(lines, written)
    shapes: Shapes = loaded(SHAPES_OF_LINES["labels"])(lines, keypoint_shape, written)
    return shapes


def shapes_of_predictions(
    lines: Lines, joints: Callable[[], int | None], written: WrittenForm | None, *, last: bool
) -> Shapes:
    """Return the boxes or other shapes of predictions, with the confidence last or second."""
    # With the confidence second, there are only boxes.
    if not last:
        wrong = lines.counts[lines.counts != 6]
        if len(wrong):
            refuse_count(
                lines, int(wrong.min()), "a line of predictions", "be class confidence cx cy w h", ""
            )
        return _boxes(lines, written, first=2, score=1)
    # Boxes in every line, without confidence, with confidence, or with confidence and track id.
    if (lines.counts == 5).all():
        return _boxes(lines, written)
    for count in (6, 7):
        if (lines.counts == count).all() and _ends_in_tracks(lines) == (count == 7):
            return _boxes(lines, written, score=5)
    shapes: Shapes = loaded(SHAPES_OF_LINES["predictions"])(lines, joints, written)
    return shapes


def _ends_in_tracks(lines: Lines) -> bool:
    """Whether the last numbers are track ids; all lines must have the same count of numbers."""
    tracks = lines.columns(np.arange(len(lines.counts)))[:, -1]
    return bool((tracks == np.floor(tracks)).all() and (tracks >= 1).any())


def _boxes(lines: Lines, written: WrittenForm | None, *, first: int = 1, score: int | None = None) -> Shapes:
    """Return boxes, from column ``first``, and confidences; all lines must have the same count of numbers."""
    rows = np.arange(len(lines.counts))
    if not len(rows):
        return Shapes(np.empty((0, 4)), "cxcywh", np.empty(0))
    columns = lines.columns(rows)
    boxes = columns[:, first : first + 4].copy()
    if written is None:
        check_fractions(boxes, rows, lines)
        check_sides(boxes[:, 2:], rows, lines)
    if score is None:
        return Shapes(boxes, "cxcywh", None)
    scores = columns[:, score].copy()
    check_scores(scores, lines)
    return Shapes(boxes, "cxcywh", scores)


def refuse_count(lines: Lines, count: int, name: str, rule: str, cause: str) -> NoReturn:
    """Reject the first line with this count of numbers."""
    row = int(np.argmax(lines.counts == count))
    number = count - (lines.words is not None)
    got = f"{lines.text(row)!r}, {counted(number, 'number')},"
    raise FileFormatError(name, rule, got=got, place=lines.place(row), cause=cause)


def by_count(counts: IntArray) -> list[IntArray]:
    """Group rows by count of numbers."""
    if not len(counts) or (counts == counts[0]).all():
        return [np.arange(len(counts))] if len(counts) else []
    order = np.argsort(counts, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(counts[order])) + 1)


def check_fractions(numbers: FloatArray, rows: IntArray, lines: Lines) -> None:
    """Reject coordinates [n, C] that cannot be fractions, including NaN and infinity."""
    if not numbers.size or -1 <= numbers.min() <= numbers.max() <= 2:
        return
    wrong = ~((numbers >= -1) & (numbers <= 2))
    lines_wrong = wrong.any(axis=1)
    at, count = int(np.argmax(lines_wrong)), int(lines_wrong.sum())
    bad = numbers[at][wrong[at]][0]
    if are_few(count, len(numbers)):
        cause = f"{_say_few(count, len(numbers))}; correct or remove {'it' if count == 1 else 'them'}"
    else:
        cause = (
            "if these are pixels, use --dt-box-format cxcywh (ground truth: --gt-box-format) (in Python "
            "box_format=)"
        )
    raise FileFormatError(
        "coordinates",
        "be fractions of the image size",
        got=f"{bad:g}",
        place=lines.place(int(rows[at])),
        cause=cause,
    )


def check_sides(sizes: FloatArray, rows: IntArray, lines: Lines) -> None:
    """Reject negative widths and heights [n, 2]."""
    checks.sizes_not_negative(sizes, place=lambda at: lines.place(int(rows[at])), cause="")


def check_scores(scores: FloatArray, lines: Lines) -> None:
    """Reject confidences [N] outside 0..1."""
    wrong = ~((scores >= 0) & (scores <= 1))
    if wrong.any():
        row, count = int(np.argmax(wrong)), int(wrong.sum())
        raise FileFormatError(
            "a confidence",
            "be a number from 0 to 1",
            got=f"{scores[row]:g}",
            place=lines.place(row),
            cause=_say_few(count, len(scores))
            if are_few(count, len(scores))
            else "is the confidence in the other position (--dt-format yolo: last, darknet: second)?",
        )


def _say_few(count: int, total: int) -> str:
    return f"{counted_of(count, total, 'line')} {verb(count, 'are')} so"
