"""Interpret YOLO lines as boxes, polygons or keypoints, by their count of numbers.

Conventions
-----------
- Lines with equal counts are of one kind. If every line has four corners, they are rotated boxes as well as
  masks.
- Boxes around polygons are exact: minima and maxima do not round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.data.boxes import WrittenForm, box_convert
from boxscore.errors import InputError
from boxscore.formats._yolo_lines import Lines
from boxscore.formats._yolo_numbers import (
    NO_CONFIDENCE,
    Shapes,
    by_count,
    check_fractions,
    check_scores,
    check_sides,
    refuse_count,
)


class Kind(NamedTuple):
    """Interpretation of lines with one count of numbers."""

    form: str  # "box", "polygon" or "keypoints"
    scores: int = 0  # position of the confidence from the end; 0 if absent
    end: int = 0  # numbers after the shape
    first: int = 1  # position of the shape
    side: int = 3  # numbers per keypoint


def shapes_of_labels(
    lines: Lines, keypoint_shape: tuple[int, int] | None, written: WrittenForm | None
) -> Shapes:
    """Return the shapes of labels; ``keypoint_shape`` is that of the data set, if it has keypoints."""
    return _shapes_of(lines, _label_kinds(lines, keypoint_shape), written)


def shapes_of_predictions(
    lines: Lines, joints: Callable[[], int | None], written: WrittenForm | None
) -> Shapes:
    """Return the shapes of predictions with confidence last; ``joints`` returns the ground truth's number."""
    return _shapes_of(lines, _prediction_kinds(lines, joints), written)


def _label_kinds(lines: Lines, keypoint_shape: tuple[int, int] | None) -> dict[int, Kind]:
    """Return the kind of labels by count of numbers."""
    kinds = {}
    for count in np.unique(lines.counts).tolist():
        # If the data set declares keypoints, every line must have them.
        if keypoint_shape is not None:
            joints, side = keypoint_shape
            if count == 5 + joints * side:
                kinds[count] = Kind("keypoints", side=side)
                continue
            rule = f"be class cx cy w h and {joints} keypoints of {side} numbers, as kpt_shape says"
            refuse_count(lines, count, "a line of labels", rule, "")
        # Five numbers are a box; an odd count from seven on is a class and pairs of coordinates.
        if count == 5:
            kinds[count] = Kind("box")
        elif count % 2 and count >= 7 and lines.words is None:
            kinds[count] = Kind("polygon")
        else:
            rule = "be class cx cy w h, or class and the corners of a polygon, x y each"
            cause = {6: "are these predictions with their confidence?", 10: "are these DOTA labels?"}
            pose = "keypoints need kpt_shape in data.yaml" if count > 6 else ""
            refuse_count(lines, count, "a line of labels", rule, cause.get(count, pose))
    return kinds


def _prediction_kinds(lines: Lines, joints: Callable[[], int | None]) -> dict[int, Kind]:
    """Return the kind of predictions, with confidence last or without it, by count of numbers."""
    # Look up the ground truth's keypoints only if lines are long enough.
    kinds = {}
    counts = np.unique(lines.counts).tolist()
    known = joints() if any(count > 7 for count in counts) else None
    for count in counts:
        # A last column of integers, some above 0, holds track ids: confidences are rarely all 1.
        rows = np.flatnonzero(lines.counts == count)
        last = lines.columns(rows)[:, -1]
        tracked = bool((last == np.floor(last)).all() and (last >= 1).any())
        # Counts of lines with the ground truth's keypoints.
        of_keypoints = (
            {6 + known * side + track: (side, track) for track in (1, 0) for side in (2, 3)} if known else {}
        )
        # Six numbers, the last above 1, are tracks without confidence.
        if count == 6 and tracked and (last > 1).any():
            cause = f"are these numbers of tracks? {NO_CONFIDENCE}"
            refuse_count(lines, count, "a confidence", "be a number from 0 to 1", cause)
        # Decide by the count; if all lines agree, keypoints take precedence over polygons.
        if count == 5:
            kinds[count] = Kind("box")
        elif count == 6 or (count == 7 and tracked):
            kinds[count] = Kind("box", scores=count - 5, end=count - 5)
        elif count in of_keypoints and len(counts) == 1:
            side, track = of_keypoints[count]
            kinds[count] = Kind("keypoints", scores=1 + track, end=1 + track, side=side)
        # Polygons have pairs of coordinates, followed by a confidence and possibly a track.
        elif count >= 8 and count % 2 == 0:
            kinds[count] = Kind("polygon", scores=1, end=1)
        elif count >= 9 and tracked:
            kinds[count] = Kind("polygon", scores=2, end=2)
        elif count >= 9 and len(counts) == 1 and count % 3 == 0:
            kinds[count] = Kind("keypoints", scores=1, end=1)
        else:
            refuse_count(
                lines, count, "a line of predictions", "be class cx cy w h confidence", NO_CONFIDENCE
            )
    # Either all boxes have scores or none has.
    if 5 in kinds and len(kinds) > 1:
        row = int(np.argmax(lines.counts != 5))
        cause = f"{lines.place(row)} has one; {NO_CONFIDENCE}"
        refuse_count(lines, 5, "a line of predictions", "have a confidence where another has one", cause)
    return kinds


def _shapes_of(lines: Lines, kinds: Mapping[int, Kind], written: WrittenForm | None) -> Shapes:
    """Return the boxes, polygons and keypoints of lines; unchecked if the user gives the format."""
    # Find what all lines have in common, and create each column once.
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
    # Process all lines with the same count together.
    for rows in by_count(lines.counts):
        columns = lines.columns(rows)
        kind = kinds[columns.shape[1]]
        shape = columns[:, kind.first : columns.shape[1] - kind.end]
        if scores is not None:
            scores[rows] = columns[:, -kind.scores]
        if written is None or kind.form == "keypoints":
            check_fractions(shape[:, :4] if kind.form == "keypoints" else shape, rows, lines)
        # Compute the box of a polygon, exactly.
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
        # Among polygons, convert boxes to corners.
        boxes[rows] = box_convert(shape[:, :4], "cxcywh", "xyxy") if polygons else shape[:, :4]
        if written is None:
            check_sides(shape[:, 2:4], rows, lines)
        if area is not None:
            area[rows] = shape[:, 2] * shape[:, 3]
        if corners is not None:
            # Write the box as four corners, in order around it.
            corners[rows] = boxes[rows][:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
        if kind.form == "keypoints":  # all lines are keypoints then
            keypoints = _keypoints(shape[:, 4:], kind.side)
    if scores is not None:
        check_scores(scores, lines)
    return Shapes(boxes, "xyxy" if polygons else "cxcywh", scores, outlines, corners, keypoints, area)


def _polygon_areas(points: FloatArray) -> FloatArray:
    """Return the areas of polygons [N, P, 2]."""
    x, y = (points - points[:, :1]).transpose(2, 0, 1)
    areas: FloatArray = np.abs((x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)) / 2
    return areas


def _keypoints(numbers: FloatArray, side: int) -> FloatArray:
    """Return keypoints [N, J, 3]; without visibility flags, negative coordinates mean unlabeled."""
    points = numbers.reshape(len(numbers), -1, side)
    if side == 3:
        return points
    labeled = (points >= 0).all(axis=2, keepdims=True)
    return np.concatenate([points, labeled], axis=2)
