"""Parse an answer of a language model: the boxes as written, and how the text was read.

Conventions
-----------
- Attempts, until one gives a box: the whole text as JSON or as a Python literal; every complete ``{...}``; a
  notation with tags. Before that, thoughts are removed, everything outside of ``<answer>``, and everything
  but the first fenced block.
- In an object, the first of ``KEYS_OF_BOXES`` is its box or list of boxes, and is not searched further;
  without one, four named sides are its box. A list of four numbers is a box only if it is nested only in
  lists.
- Numbers in prose are not a box, unless the reading is ``loose``: then the first four in brackets are one.
- A sentence is always unreadable: only ``None`` and the like, and an empty list, mean that there is nothing.
- Text that ends inside an open list or object is truncated, even if every box in it is complete; so are
  unfinished thoughts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from boxscore._utils.checks import LARGEST_COORDINATE
from boxscore.extensions.scoreless._answer_tags import NOTATIONS, Notation, numbers_in
from boxscore.extensions.scoreless._answer_values import DEEPEST, Span, complete_objects, value_of

KEYS_OF_BOXES = ("bbox_2d", "box_2d", "bbox", "box", "bboxes_2d", "boxes_2d", "bboxes", "boxes")
"""Keys of an object's box or boxes."""

KEYS_OF_LABELS = ("label", "class", "category", "name", "class_name", "object_name", "description")

SIDES = (
    ("x_min", "y_min", "x_max", "y_max"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x1", "y1", "x2", "y2"),
)

STATUSES = ("read", "repaired", "truncated", "loose", "empty", "unreadable")
"""How an answer was read."""

LONGEST = 1 << 22
"""Maximum characters of an answer; a loop up to the longest context of current models has a tenth of that."""

_NOTHING = frozenset({"none", "null", "nothing", "n/a", "no objects", "no boxes"})
_ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "</s>", "<eos>", "<pad>")
_STARTS = ("<s>", "<bos>", "</s>")
_FENCE = "```"
MOST_MARKS = 4
"""Maximum start and end tokens of an answer that are removed; a tokenizer leaves one or two."""

_INFO = re.compile(r"[A-Za-z0-9_+-]{0,20}")
_KEY = re.compile(
    rf"""["'](?:{"|".join((*KEYS_OF_BOXES, *(side for four in SIDES for side in four)))})["']"""
)
_IN_BRACKETS = re.compile(r"[\[(]([^\[\]()]{1,120})[\])]")


class WrittenBox(NamedTuple):
    """A box as written: its label, four numbers, and its key."""

    label: str | None
    numbers: tuple[float, float, float, float]
    key: str


class ReadAnswer(NamedTuple):
    """The contents of an answer.

    Attributes
    ----------
    status : str
        One of ``STATUSES``.
    boxes : list of WrittenBox
    damaged : int
        Number of boxes that are not four finite numbers.
    notation : Notation or None
        Notation of the tags, if boxes were read from tags.
    has_more : bool
        Whether there is a second fenced block, which is not read.
    """

    status: str
    boxes: list[WrittenBox]
    damaged: int = 0
    notation: Notation | None = None
    has_more: bool = False


class _Found:
    """Boxes collected from values."""

    def __init__(self) -> None:
        self.boxes: list[WrittenBox] = []
        self.damaged = 0
        self.has_empty_list = False

    def __bool__(self) -> bool:
        return bool(self.boxes) or self.damaged > 0

    def add(self, label: str | None, value: Any, key: str) -> None:
        """Add a box, or count it as damaged."""
        four = _four_numbers(value)
        if four is None:
            self.damaged += 1
        else:
            self.boxes.append(WrittenBox(label, four, key))

    def take(self, value: Any) -> None:
        """Add every box of a value, in order; lists and objects are walked without recursion."""
        waiting: list[tuple[Any, bool]] = [(value, True)]
        while waiting:
            value, in_lists = waiting.pop()
            if isinstance(value, dict):
                rest = self._take_object(value)
                waiting += [(each, False) for each in reversed(rest) if isinstance(each, (dict, list))]
            elif not value:
                self.has_empty_list = True
            elif in_lists and all(map(_is_number, value)):
                self.add(None, value, "")
            else:
                waiting += [(each, in_lists) for each in reversed(value) if isinstance(each, (dict, list))]

    def _take_object(self, value: dict[Any, Any]) -> list[Any]:
        """Add the boxes of an object, and return its other values."""
        self.has_empty_list |= not value
        key = next((name for name in KEYS_OF_BOXES if name in value), None)
        if key is not None:
            self._take_boxes(_label_of(value), value[key], key)
            return [each for name, each in value.items() if name != key]
        if any(sides[0] in value and sides[3] in value for sides in SIDES):
            self.add(_label_of(value), value, "")
        return list(value.values())

    def _take_boxes(self, label: str | None, value: Any, key: str) -> None:
        """Add the box or list of boxes of a key; objects with boxes each have their own label."""
        if isinstance(value, list) and not value:
            self.has_empty_list = True
        elif isinstance(value, list) and all(isinstance(each, (list, dict)) for each in value):
            for each in value:
                if isinstance(each, dict) and _four_numbers(each) is None:
                    inner = next((name for name in KEYS_OF_BOXES if name in each), None)
                    self.add(_label_of(each) or label, each[inner] if inner else None, inner or key)
                else:
                    self.add(_label_of(each) or label if isinstance(each, dict) else label, each, key)
        else:
            self.add(label, value, key)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _label_of(value: dict[Any, Any]) -> str | None:
    """Return an object's label; None unless it is a string or an integer."""
    for key in KEYS_OF_LABELS:
        label = value.get(key)
        if isinstance(label, str) and label.strip():
            return label
        if isinstance(label, int) and not isinstance(label, bool):
            return str(label) if abs(label) < 10**18 else None
    return None


def _four_numbers(value: Any) -> tuple[float, float, float, float] | None:
    """Return the four finite numbers of a list, a string or an object of named sides; None for others."""
    if isinstance(value, dict):
        sides = next((names for names in SIDES if all(name in value for name in names)), None)
        value = None if sides is None else [value[name] for name in sides]
    if isinstance(value, str):
        value = numbers_in(value.strip(" \t\r\n[]()")) if len(value) < 400 else None
    if not isinstance(value, list) or len(value) != 4:
        return None
    numbers = [_finite(each) for each in value]
    if None in numbers:
        return None
    x1, y1, x2, y2 = numbers
    return x1, y1, x2, y2  # type: ignore[return-value]


def _finite(value: Any) -> float | None:
    if isinstance(value, str):
        written = numbers_in(value) if len(value) < 100 else None
        value = written[0] if written is not None and len(written) == 1 else None
    if not _is_number(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) <= LARGEST_COORDINATE else None


def read_answer(answer: str, *, loose: bool = False) -> ReadAnswer:
    """Read the boxes of an answer."""
    text, is_endless_thought = _without_thoughts(answer.removeprefix("\ufeff"))
    if is_endless_thought:
        return ReadAnswer("truncated", [])
    block, has_more = _first_block(text)
    read = _read(block)
    if read.status == "unreadable" and block is not text:
        read = _read(text.replace(_FENCE, " "))
        has_more = False
    if read.status == "unreadable" and loose:
        read = _read_prose(text)
    return read._replace(has_more=has_more)


def _without_thoughts(text: str) -> tuple[str, bool]:
    """Return the text inside ``<answer>``, without thoughts; and whether everything is thoughts."""
    _, end_of_thought, text = text.rpartition("</think>")
    _, opening, inner = text.rpartition("<answer>")
    if opening:
        text = inner.partition("</answer>")[0]
    text = text.strip()
    is_endless = not end_of_thought and not opening and text.startswith("<think>")
    for _ in range(MOST_MARKS):
        start = next((mark for mark in _STARTS if text.startswith(mark)), "")
        end = next((mark for mark in _ENDS if text.endswith(mark)), "")
        text = text.removeprefix(start).removesuffix(end).strip()
    return text, is_endless


def _first_block(text: str) -> tuple[str, bool]:
    """Return the first fenced block, closed or not, or the text; and whether another follows."""
    parts = text.split(_FENCE, 3)
    if len(parts) == 1:
        return text, False
    inner = parts[1][_INFO.match(parts[1]).end() :]  # type: ignore[union-attr]
    if len(parts) == 2:
        return (inner if inner.strip() else parts[0]), False
    return inner, len(parts) > 3


def _read(text: str) -> ReadAnswer:
    # Some words mean that there is nothing.
    text = text.strip()
    if text.casefold().strip(" .!*`'\"") in _NOTHING:
        return ReadAnswer("empty", [])
    # Try valid JSON or Python as a whole, then complete objects inside other text.
    found = _Found()
    try:
        value = value_of(text)
    except ValueError:
        is_cut = _take_objects(text, found)
        if found or is_cut:
            return ReadAnswer("truncated" if is_cut else "repaired", found.boxes, found.damaged)
    # A value without boxes may still contain tags.
    else:
        if isinstance(value, (dict, list)):
            found.take(value)
        if found:
            return ReadAnswer("read", found.boxes, found.damaged)
        if found.has_empty_list or value is None:
            return ReadAnswer("empty", [])
    return _read_tags(text)


def _take_objects(text: str, found: _Found) -> bool:
    """Add the boxes of every complete object; return whether the text is truncated boxes."""
    spans, is_cut = complete_objects(text)
    waiting: list[tuple[Span, int]] = [(span, 0) for span in reversed(spans)]
    while waiting:
        span, depth = waiting.pop()
        try:
            found.take(value_of(text[span.start : span.end]))
        except ValueError:
            if depth < DEEPEST and span.children:
                waiting += [(child, depth + 1) for child in reversed(span.children)]
            elif _KEY.search(text, span.start, span.end):
                found.damaged += 1
    return is_cut and (bool(found) or text[:1] in ("[", "{") or _KEY.search(text) is not None)


def _read_tags(text: str) -> ReadAnswer:
    """Parse the first notation with tags whose marker occurs."""
    notation = next((each for each in NOTATIONS if each.sign.search(text)), None)
    if notation is None:
        return ReadAnswer("unreadable", [])
    tagged = notation.read(text)
    found = _Found()
    found.damaged = tagged.damaged
    for label, numbers in tagged.boxes:
        found.add(label, numbers, "")
    if tagged.is_cut:
        return ReadAnswer("truncated", found.boxes, found.damaged, notation)
    if found:
        return ReadAnswer("read", found.boxes, found.damaged, notation)
    says_nothing = ">none<" in text.casefold().replace(" ", "")
    return ReadAnswer("empty" if says_nothing else "unreadable", [])


def _in_prose(text: str) -> Iterator[list[float]]:
    for found in _IN_BRACKETS.finditer(text):
        numbers = numbers_in(found[1])
        if numbers is not None:
            yield numbers


def _read_prose(text: str) -> ReadAnswer:
    """Read the first four numbers in brackets in prose, or the first two corners."""
    corner: list[float] = []
    for numbers in _in_prose(text):
        if len(numbers) == 2 and len(corner) == 2:
            numbers = corner + numbers
        corner = numbers if len(numbers) == 2 else []
        four = _four_numbers(numbers)
        if four is not None:
            return ReadAnswer("loose", [WrittenBox(None, four, "")])
    return ReadAnswer("unreadable", [])
