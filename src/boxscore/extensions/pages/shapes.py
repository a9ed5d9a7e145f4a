"""Compute the shapes to draw for an object: mask outline, four corners, keypoints, or only its box.

Conventions
-----------
- Masks and keypoints are drawn if the protocol compares them; a row without one is drawn as its box.
- A keypoint is ``x, y, v``: v 2 is visible, 1 labeled but not visible, 0 is not drawn. All keypoints of a
  detection are visible, except those whose third number in the file is 0 while others differ from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.data.vocabulary import SKELETON, Categories, limbs_of_text
from boxscore.extensions.masks.column import masks_of
from boxscore.extensions.masks.contours import outlines
from boxscore.extensions.oriented.quadrilaterals import corners_of_rotated
from boxscore.protocols.loading import load_protocol
from boxscore.protocols.protocol import Protocol

Ring = NDArray[Any]
"""Corners ``x, y`` of a closed line, [C,2]."""


def rings_of(
    table: BoxTable, rows: NDArray[np.intp], protocol: Protocol, *, tolerance: float | None = None
) -> list[list[Ring]]:
    """Return the outlines of rows of a table, [N]: one or more rings each, or none for a plain box.

    ``tolerance`` is the maximum shift of a mask's outline, in pixels; None keeps it exact.
    """
    if table.quadrilaterals is not None:
        return [[corners.reshape(4, 2)] for corners in table.quadrilaterals[rows]]
    if table.rotated is not None:
        return [[corners.reshape(4, 2)] for corners in corners_of_rotated(table.rotated[rows])]
    rings: list[list[Ring]] = [[] for _ in range(len(rows))]
    # Do not read masks unnecessarily.
    if protocol.similarity not in ("mask", "boundary") or table.masks is None:
        return rings
    masks = masks_of(table)[rows]
    some = np.flatnonzero(~masks.missing)
    for at, outline in zip(some.tolist(), outlines(masks[some], tolerance=tolerance), strict=True):
        rings[at] = list(outline)
    return rings


def box_ring(table: BoxTable, row: int) -> Ring:
    """Return the corners of an upright box."""
    x, y = table.boxes[row, :2]
    w, h = table.sizes[row]
    return np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h]])


def joints_of(table: BoxTable, rows: NDArray[np.intp], protocol: Protocol) -> FloatArray | None:
    """Return the keypoints of rows as drawn, [N,J,3]; None if keypoints are not compared."""
    if protocol.similarity != "keypoints" or table.keypoints is None:
        return None
    joints = np.array(table.keypoints[rows], dtype=np.float64)
    visibility = joints[..., 2]
    if isinstance(table, GroundTruth):
        visibility[:] = np.clip(np.nan_to_num(visibility), 0, 2).astype(int)
    else:
        given = visibility > 0
        visibility[:] = np.where(given | ~given.any(axis=1, keepdims=True), 2, 0)
    visibility[~np.isfinite(joints[..., :2]).all(axis=-1)] = 0
    return joints


def limbs_of(protocol: Protocol, categories: Categories | None = None) -> list[tuple[int, int]]:
    """Return pairs of keypoints joined by the skeleton of the data set, or of the protocol, from 0.

    Without a skeleton, COCO's is used for the same number of keypoints, unless they have other names.
    """
    if protocol.similarity != "keypoints":
        return []
    drawn = () if categories is None else categories.columns.get(SKELETON, np.empty(0)).tolist()
    # Classes with several skeletons use the rules.
    if len({text for text in drawn if text is not None}) == 1:
        count = len(protocol.keypoints.sigmas)
        limbs = limbs_of_text(next(text for text in drawn if text is not None))
        return [
            (first - 1, second - 1)
            for first, second in limbs
            if min(first, second) > 0 and max(first, second) <= count
        ]
    given, coco = protocol.keypoints, load_protocol("coco-keypoints").keypoints
    is_coco = len(given.sigmas) == len(coco.sigmas) and given.names in ((), coco.names)
    skeleton = given.skeleton or (coco.skeleton if is_coco else ())
    return [(first - 1, second - 1) for first, second in skeleton]


def path_text(rings: Sequence[Ring], decimals: int) -> str:
    """Write rings as SVG path data, each corner after the first relative to the one before."""
    texts = []
    scale = 10**decimals
    for ring in rings:
        fixed = np.round(np.clip(ring, -1e12, 1e12) * scale).astype(np.int64)
        steps = np.diff(fixed, axis=0, prepend=[[0, 0]]).ravel().tolist()
        numbers = [_short(step, scale) for step in steps]
        line = " ".join(numbers[2:]).replace(" -", "-")
        texts.append(f"M{numbers[0]} {numbers[1]}l{line}z".replace(" -", "-"))
    return "".join(texts)


def _short(number: int, scale: int) -> str:
    """Write a fixed-point number in its shortest SVG form."""
    return f"{number / scale:.{len(str(scale)) - 1}f}".rstrip("0").rstrip(".") if scale > 1 else str(number)
