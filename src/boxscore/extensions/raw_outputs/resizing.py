"""Map boxes from the input of a network back to the original image.

Conventions
-----------
- An image of w x h is scaled by ``min(W / w, H / h)`` and placed in the middle of the input; ``corner``
  places it in the upper left corner, ``stretch`` scales both sides to the input.
- ``ultralytics``: the sides of the scaled image are rounded, and so is the padding at the left and the top; a
  box is divided by rounded side / side. ``yolov5`` divides by the one factor and does not round the padding.
- Rounding is half to even, as in Python.

References
----------
ultralytics 8.4, ``LetterBox`` and ``scale_boxes``; yolov5, ``scale_boxes``; YOLOX, ``preproc``.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import NamedTuple
from boxscore.extensions.hints.network_input import NetworkInput

Kind = Literal["ultralytics", "yolov5", "corner", "stretch"]
KINDS: tuple[str, ...] = get_args(Kind)


class Resizing(NamedTuple):
    """How an image became the input: ``input = image * gain + padding`` on both axes.

    Attributes
    ----------
    gain : (float, float)
    padding : (float, float)
        At the left and at the top, in pixels of the input.
    """

    gain: tuple[float, float]
    padding: tuple[float, float]

    def back(self, boxes: FloatArray) -> FloatArray:
        """Return corners [N, 4] of the input in pixels of the image."""
        return np.asarray((boxes - np.tile(self.padding, 2)) / np.tile(self.gain, 2))


def letterbox(size: tuple[float, float], input_size: tuple[int, int], kind: Kind = "ultralytics") -> Resizing:
    """Return how an image of a size became the input of a network.

    Parameters
    ----------
    size : (float, float)
        Width and height of the image in pixels.
    input_size : (int, int)
        Width and height of the input.
    kind : {"ultralytics", "yolov5", "corner", "stretch"}, default "ultralytics"

    Returns
    -------
    Resizing

    Raises
    ------
    InputError
        If the kind is unknown.

    Examples
    --------
    >>> letterbox((640, 360), (640, 640))
    Resizing(gain=(1.0, 1.0), padding=(0.0, 140.0))
    """
    checks.one_of(kind, KINDS, name="kind of resizing")
    named = {"yolov5": "letterbox", "ultralytics": "letterbox"}.get(kind, kind)
    scale, offset = NetworkInput(named, *input_size).placed(np.array([size], dtype=np.float64))
    (across, down), (left, top) = scale[0].tolist(), offset[0].tolist()
    if kind != "ultralytics":
        return Resizing((across, down), (left, top))
    # Round the sides, and then half of the room that they leave.
    (width, height), (wide, high) = size, input_size
    sides = max(round(width * across), 1), max(round(height * down), 1)
    left, top = (
        float(round((room - side) / 2 - 0.1)) for room, side in zip((wide, high), sides, strict=True)
    )
    return Resizing((sides[0] / width, sides[1] / height), (left, top))
