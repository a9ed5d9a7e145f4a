"""Infer what the numbers of YOLO's lines are: boxes, polygons or keypoints, and the confidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.text import counted
from boxscore.data.boxes import BoxFormat, WrittenForm, box_convert
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._yolo_lines import Lines

CLEARLY = 10
"""How many more boxes than twice as many must lie inside their image, where not all do."""

OUTSIDE = 0.01
"""How far a label may reach beyond its image; ultralytics skips images with labels that reach further."""

_NO_CONFIDENCE = "write them with confidence: yolo predict|val ... save_txt=True save_conf=True"


# ---------------------------------------------------------------- kinds of lines


class Kind(NamedTuple):
    """What lines with one count of numbers are."""

    form: str  # "box", "polygon" or "keypoints"
    scores: int = 0  # where the confidence is, from the end; 0: nowhere
    end: int = 0  # numbers after the shape
    first: int = 1  # where the shape begins
    side: int = 3  # numbers of a keypoint


def label_kinds(lines: Lines, keypoint_shape: tuple[int, int] | None) -> dict[int, Kind]:
    """Return the kind of labels by their count of numbers."""
    kinds = {}
    for count in np.unique(lines.counts).tolist():
        # With keypoints declared, every line must have them.
        if keypoint_shape is not None:
            joints, side = keypoint_shape
            if count == 5 + joints * side:
                kinds[count] = Kind("keypoints", side=side)
                continue
            rule = f"be class cx cy w h and {joints} keypoints of {side} numbers, as kpt_shape says"
            _refuse(lines, count, "a line of labels", rule, "")
        # Five numbers are a box; an odd count from seven on is a class and pairs of coordinates.
        if count == 5:
            kinds[count] = Kind("box")
        elif count % 2 and count >= 7 and lines.words is None:
            kinds[count] = Kind("polygon")
        else:
            rule = "be class cx cy w h, or class and the corners of a polygon, x y each"
            cause = {6: "are these predictions with their confidence?", 10: "are these DOTA labels?"}
            pose = "keypoints need kpt_shape in data.yaml" if count > 6 else ""
            _refuse(lines, count, "a line of labels", rule, cause.get(count, pose))
    return kinds


def prediction_kinds(lines: Lines, joints: Callable[[], int | None]) -> dict[int, Kind]:
    """Return the kind of predictions with the confidence last, or boxes without any, by their numbers."""
    # The ground truth is asked for its keypoints only if lines are long enough to have any.
    kinds = {}
    counts = np.unique(lines.counts).tolist()
    known = joints() if any(count > 7 for count in counts) else None
    for count in counts:
        # A last column of whole numbers, some above 0, holds tracks: confidences are rarely 1 all through.
        rows = np.flatnonzero(lines.counts == count)
        last = lines.columns(rows)[:, -1]
        tracked = bool((last == np.floor(last)).all() and (last >= 1).any())
        # The counts that keypoints of the ground truth's number would have.
        of_keypoints = (
            {6 + known * side + track: (side, track) for track in (1, 0) for side in (2, 3)} if known else {}
        )
        # Six numbers whose last is beyond 1 are tracks without confidence.
        if count == 6 and tracked and (last > 1).any():
            cause = f"are these numbers of tracks? {_NO_CONFIDENCE}"
            _refuse(lines, count, "a confidence", "be a number from 0 to 1", cause)
        # Decide by the count; keypoints come before polygons of as many numbers, if all lines agree.
        if count == 5:
            kinds[count] = Kind("box")
        elif count == 6 or (count == 7 and tracked):
            kinds[count] = Kind("box", scores=count - 5, end=count - 5)
        elif count in of_keypoints and len(counts) == 1:
            side, track = of_keypoints[count]
            kinds[count] = Kind("keypoints", scores=1 + track, end=1 + track, side=side)
        # A polygon has pairs of coordinates, with a confidence and perhaps a track behind them.
        elif count >= 8 and count % 2 == 0:
            kinds[count] = Kind("polygon", scores=1, end=1)
        elif count >= 9 and tracked:
            kinds[count] = Kind("polygon", scores=2, end=2)
        elif count >= 9 and len(counts) == 1 and count % 3 == 0:
            kinds[count] = Kind("keypoints", scores=1, end=1)
        else:
            _refuse(lines, count, "a line of predictions", "be class cx cy w h confidence", _NO_CONFIDENCE)
    # Scores are of all boxes or of none.
    if 5 in kinds and len(kinds) > 1:
        row = int(np.argmax(lines.counts != 5))
        cause = f"{lines.place(row)} has one; {_NO_CONFIDENCE}"
        _refuse(lines, 5, "a line of predictions", "have a confidence where another has one", cause)
    return kinds


def second_kinds(lines: Lines) -> dict[int, Kind]:
    """Return the kind of predictions with the confidence second."""
    for count in np.unique(lines.counts).tolist():
        if count != 6:
            _refuse(lines, count, "a line of predictions", "be class confidence cx cy w h", "")
    return {6: Kind("box", scores=5, first=2)}


def _refuse(lines: Lines, count: int, name: str, rule: str, cause: str) -> NoReturn:
    row = int(np.argmax(lines.counts == count))
    number = count - (lines.words is not None)
    got = f"{lines.text(row)!r}, {counted(number, 'number')},"
    raise FileFormatError(name, rule, got=got, place=lines.place(row), cause=cause)


def is_last(
    columns: FloatArray, path: Path, written: WrittenForm | None = None, *, noted: bool | None = None
) -> bool:
    """Whether the confidence of lines of 6 numbers [N, 6] is the last of them, not the second.

    A confidence lies in 0..1, and most boxes of predictions lie inside their image: read at the wrong
    position, most do not. A note in the folder (``noted``) is followed if every number fits it.
    """
    # A note decides, if no number contradicts it.
    if noted is not None and not _is_no_confidence(
        _centred(columns[:, 1:5] if noted else columns[:, 2:], written), columns[:, 5 if noted else 1]
    ):
        return noted
    # Then the numbers: if only one reading has confidences in 0..1 and no negative side, it is right.
    read_last, read_second = _centred(columns[:, 1:5], written), _centred(columns[:, 2:], written)
    last = not _is_no_confidence(read_last, columns[:, 5])
    second = not _is_no_confidence(read_second, columns[:, 1])
    if last != second:
        return last
    # Then the boxes: if only one reading has all of them inside their image, it is right.
    count = len(columns)
    inside_last, inside_second = (int(_is_inside(boxes).sum()) for boxes in (read_last, read_second))
    if (inside_last == count) != (inside_second == count):
        return inside_last == count
    # Else one must have clearly more inside, and at least half; a close case is an error, not a guess.
    fewer, more = sorted((inside_last, inside_second))
    if 2 * more >= count and more >= 2 * fewer + CLEARLY:
        return inside_last > inside_second
    raise InputError(
        "the confidence of predictions",
        "be declared as last or second",
        got=f"{inside_last:,} of {count:,} boxes inside their image read as class cx cy w h confidence, and "
        f"{inside_second:,} as class confidence cx cy w h",
        place=str(path),
        cause="say --dt-format yolo (last, as ultralytics writes it) or --dt-format darknet (second) "
        "(in Python format=)",
    )


def _centred(boxes: FloatArray, written: WrittenForm | None) -> FloatArray:
    return boxes if written is None else box_convert(written.x_first(boxes), written.form, "cxcywh")


def _is_no_confidence(boxes: FloatArray, scores: FloatArray) -> bool:
    """Whether any number [N] is no confidence, or any size of a box [N, 4] is negative."""
    return bool(((scores < 0) | (scores > 1)).any() or (boxes[:, 2:] < 0).any())


def _is_inside(boxes: FloatArray) -> NDArray[np.bool_]:
    """Whether each box [N, 4] lies inside its image, [N]."""
    reach = np.abs(boxes[:, :2] - 0.5) + boxes[:, 2:] / 2
    inside: NDArray[np.bool_] = reach.max(axis=1) <= 0.5 + OUTSIDE
    return inside


# ---------------------------------------------------------------- shapes


class Shapes(NamedTuple):
    """The numbers of lines without the class."""

    boxes: FloatArray
    box_format: BoxFormat
    scores: FloatArray | None
    outlines: list[list[FloatArray] | None] | None
    corners: FloatArray | None
    keypoints: FloatArray | None
    area: FloatArray | None


def shapes_of(lines: Lines, kinds: Mapping[int, Kind], written: WrittenForm | None = None) -> Shapes:
    """Return the boxes, polygons and keypoints of lines; not checked where the user gives their form."""
    # Decide what the lines have in common, and make each column once.
    number = len(lines.counts)
    forms = {kind.form for kind in kinds.values()}
    polygons = "polygon" in forms
    if written is not None and polygons:
        rule = "be left out where lines are polygons"
        raise InputError("box_format", rule, got="one", place=lines.place(0))
    # Four corners everywhere are rotated boxes as well.
    four = polygons and all(
        kind.form == "box" or count - kind.first - kind.end == 8 for count, kind in kinds.items()
    )
    boxes = np.empty((number, 4))
    scores = np.empty(number) if all(kind.scores for kind in kinds.values()) else None
    outlines: list[list[FloatArray] | None] | None = [None] * number if polygons else None
    corners = np.empty((number, 4, 2)) if four else None
    area = np.empty(number) if polygons else None
    keypoints = None
    # All lines with equally many numbers are one array, so each kind takes a few operations.
    for rows in by_count(lines.counts):
        columns = lines.columns(rows)
        kind = kinds[columns.shape[1]]
        shape = columns[:, kind.first : columns.shape[1] - kind.end]
        if scores is not None:
            scores[rows] = columns[:, -kind.scores]
        if written is None or kind.form == "keypoints":
            check_fractions(shape[:, :4] if kind.form == "keypoints" else shape, rows, lines)
        # A polygon: its extent is the box, exactly, since minima and maxima do not round.
        if kind.form == "polygon":
            points = shape.reshape(len(rows), -1, 2)
            boxes[rows] = np.hstack([points.min(axis=1), points.max(axis=1)])
            for row, outline in zip(rows.tolist(), shape, strict=True):
                outlines[row] = [outline]  # type: ignore[index]
            if corners is not None:
                corners[rows] = points
            if area is not None:
                area[rows] = _polygon_areas(points)
            continue
        # A box: with polygons around, all become corners.
        boxes[rows] = box_convert(shape[:, :4], "cxcywh", "xyxy") if polygons else shape[:, :4]
        if written is None:
            _check_sizes(shape[:, 2:4], rows, lines)
        if area is not None:
            area[rows] = shape[:, 2] * shape[:, 3]
        if corners is not None:
            # A box as four corners, in order around it.
            corners[rows] = boxes[rows][:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
        if kind.form == "keypoints":  # the only form then
            keypoints = _keypoints(shape[:, 4:], kind.side)
    if scores is not None:
        _check_scores(scores, lines)
    return Shapes(boxes, "xyxy" if polygons else "cxcywh", scores, outlines, corners, keypoints, area)


def _polygon_areas(points: FloatArray) -> FloatArray:
    """Return the areas of polygons [N, P, 2]."""
    x, y = (points - points[:, :1]).transpose(2, 0, 1)
    areas: FloatArray = np.abs((x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)) / 2
    return areas


def by_count(counts: IntArray) -> list[IntArray]:
    """Return the rows of lines with equally many numbers."""
    if not len(counts) or (counts == counts[0]).all():
        return [np.arange(len(counts))] if len(counts) else []
    order = np.argsort(counts, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(counts[order])) + 1)


def _keypoints(numbers: FloatArray, side: int) -> FloatArray:
    """Return keypoints [N, J, 3]; without flags in the files, those below 0 are unlabelled."""
    points = numbers.reshape(len(numbers), -1, side)
    if side == 3:
        return points
    labelled = (points >= 0).all(axis=2, keepdims=True)
    return np.concatenate([points, labelled], axis=2)


def check_fractions(numbers: FloatArray, rows: IntArray, lines: Lines) -> None:
    """Refuse coordinates [n, C] that cannot be fractions; NaN and infinity are among them."""
    if not numbers.size or -1 <= numbers.min() <= numbers.max() <= 2:
        return
    at = int(np.argmax(~((numbers >= -1) & (numbers <= 2)).all(axis=1)))
    bad = numbers[at][~((numbers[at] >= -1) & (numbers[at] <= 2))][0]
    raise FileFormatError(
        "coordinates",
        "be fractions of the image's size",
        got=f"{bad:g}",
        place=lines.place(int(rows[at])),
        cause="are these pixels? then say so: --dt-box-format cxcywh (of ground truth --gt-box-format) "
        "(in Python box_format=)",
    )


def _check_sizes(sizes: FloatArray, rows: IntArray, lines: Lines) -> None:
    checks.sizes_not_negative(sizes, place=lambda at: lines.place(int(rows[at])), cause="")


def _check_scores(scores: FloatArray, lines: Lines) -> None:
    wrong = ~((scores >= 0) & (scores <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FileFormatError(
            "a confidence",
            "be a number from 0 to 1",
            got=f"{scores[row]:g}",
            place=lines.place(row),
            cause="is the confidence at the other place (--dt-format yolo: last, darknet: second)?",
        )
