"""Parse one answer of a language model.

Conventions
-----------
The answer is read like a file with only this answer. A few boxes rarely determine the convention of their
numbers; then ``coordinates`` must be given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import record
from boxscore._utils.text import counted
from boxscore.errors import InputError
from boxscore.extensions.scoreless._answer_boxes import AnswerBoxes
from boxscore.extensions.scoreless._answer_text import LONGEST, read_answer
from boxscore.extensions.scoreless.coordinates import COORDINATES


@record(frozen=True, eq=False, repr=False)
class Answer:
    """The boxes of an answer; returned by :func:`boxscore.parse_answer`.

    Attributes
    ----------
    status : {"read", "repaired", "truncated", "loose", "empty", "unreadable"}
        How the text was read: as a whole; in parts; truncated at the end; from prose; empty, because it says
        that there is nothing; or not at all.
    labels : list of str or None, [N]
        Labels as written.
    written : ndarray of float64, [N, 4]
        Numbers as written.
    boxes : ndarray of float64, [N, 4], or None
        ``x1, y1, x2, y2`` in pixels, sorted and clipped to the image; None without a size.
    coordinates : str or None
        The convention of the numbers; None without a size.
    because : str
        The reason for this convention.
    counts : mapping of str to int
        ``damaged`` (not four numbers), ``swapped``, ``without_area``, ``out_of_range``, ``repeated``, ...:
        the counts of :attr:`boxscore.Detections.answers` for a file.
    """

    status: str
    labels: list[str | None]
    written: FloatArray
    boxes: FloatArray | None
    coordinates: str | None
    because: str
    counts: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        said = f", {self.coordinates} ({self.because})" if self.coordinates else ""
        return f"Answer: {self.status}, {counted(len(self), 'box')}{said}"


def parse_answer(
    text: str,
    *,
    size: Sequence[float] | None = None,
    input_size: Sequence[float] | None = None,
    coordinates: str | None = None,
    loose: bool = False,
) -> Answer:
    """Read the boxes in the answer of a language model.

    Supported are JSON and Python literals, fenced, truncated or in prose, and the tags and tokens of
    Florence-2, PaliGemma, Kosmos-2, Qwen2-VL, Rex-Omni, DeepSeek-VL2, InternVL, CogVLM and Molmo.

    Parameters
    ----------
    text : str
    size : (float, float), optional
        Width and height of the image in pixels. Without it, the numbers are returned as written.
    input_size : (float, float), optional
        Width and height of the model's input, if it differs from the image and the numbers are its pixels.
    coordinates : str, optional
        Convention of the numbers: ``"pixels"``, ``"1000"``, ``"1000-yx"``, ``"999"``, ``"unit"``,
        ``"unit-yx"``, ``"percent"``, ``"florence-2"``, ``"paligemma"``, ``"kosmos-2"`` or ``"molmo"``. By
        default, it is inferred from the tags or the numbers.
    loose : bool, default False
        Whether the first four numbers in brackets are a box if there is only prose.

    Returns
    -------
    Answer

    Raises
    ------
    InputError
        When several conventions fit the numbers; the message has the evidence. When the text is longer than
        four million characters.

    Examples
    --------
    >>> answer = parse_answer('[{"bbox_2d": [100, 50, 300, 200], "label": "cat"}, {"bbox_2d": [1, 2')
    >>> answer.status, answer.labels, answer.written.tolist()
    ('truncated', ['cat'], [[100.0, 50.0, 300.0, 200.0]])
    >>> parse_answer("cat<loc_50><loc_100><loc_499><loc_899>", size=(640, 480)).boxes.round(1).tolist()
    [[32.3, 48.2, 319.7, 431.8]]
    """
    # Reject anything but text.
    given: Any = text
    if not isinstance(given, str):
        raise InputError("text", "be text", got=f"a value of type {type(given).__name__}")
    if len(text) > LONGEST:
        raise InputError("text", f"have at most {LONGEST:,} letters", got=f"{len(text):,}")
    if coordinates is not None:
        checks.one_of(coordinates, tuple(COORDINATES), name="coordinates")
    # Use the same code as for files, with one answer.
    answer = read_answer(text, loose=loose)
    boxes = AnswerBoxes([answer], ["the answer"])
    boxes.repeated(boxes.labels, np.zeros(len(boxes.labels), dtype=np.int64))
    boxes.counts["without_label"] = boxes.labels.count(None)
    # Without an image size, numbers stay as written.
    name, because, corners = coordinates, "", None
    if size is not None:
        sizes, inputs = _sides(size, "size"), _sides(input_size, "input_size")
        name, because = boxes.convention(coordinates, sizes, inputs, place="the answer")
        corners = boxes.corners(name, sizes, inputs)
        corners = corners if name == "pixels" else corners * np.tile(sizes, 2)
    return Answer(answer.status, boxes.labels, boxes.written, corners, name, because, boxes.counts)


def _sides(size: Sequence[float] | None, name: str) -> FloatArray:
    """Check a width and a height; NaN for None."""
    if size is None:
        return np.full((1, 2), np.nan)
    sides = checks.float_array([size], name=name, columns=2)
    if not (np.isfinite(sides) & (sides > 0)).all():
        raise InputError(name, "be a width and a height above 0", got=repr(size)[:60])
    return sides
