"""Parse notations of boxes with model-specific tags or tokens.

Conventions
-----------
A notation is recognized by its marker, which also determines the convention of its numbers. If a list of
boxes is truncated, the complete boxes are kept. Numbers are returned as written, in the written order. For
Kosmos-2's patches these are the columns and rows of the two cells, for points x and y twice.

References
----------
- Florence-2: ``cat<loc_52><loc_333><loc_932><loc_774>``, processing_florence2.py of its model card
- PaliGemma: ``<loc0123><loc0456><loc0789><loc1000> cat ; ...``, big_vision's paligemma README
- Kosmos-2: ``<phrase>cat</phrase><object><patch_index_0044><patch_index_0863></object>``, Transformers'
  processing_kosmos2.py
- Qwen2-VL: ``<|box_start|>(x1,y1),(x2,y2)<|box_end|>``, its README; Qwen-VL the same in ``<box>``
- Rex-Omni: ``<|box_start|><12><34><56><78>, ...<|box_end|>``, its README
- DeepSeek-VL2: ``<|ref|>cat<|/ref|><|det|>[[x1, y1, x2, y2]]<|/det|>``, its README
- InternVL: ``<ref>cat</ref><box>[[x1, y1, x2, y2]]</box>``, its documentation
- CogVLM: ``cat [[012,034,056,078;...]]``, its README
- Molmo: ``<point x="17.0" y="66.5" alt="cat">cat</point>``, ``<points x1= y1= x2= ...>``, its model card
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][-+]?[0-9]{1,3})?")
_SPECIAL = re.compile(r"<\|?/?[a-zA-Z_]{1,30}\|?>")


class TaggedBoxes(NamedTuple):
    """The contents of a notation: boxes with labels, damaged ones, and whether the last is truncated."""

    boxes: list[tuple[str | None, list[float]]]
    damaged: int
    is_cut: bool


class Notation(NamedTuple):
    """A way to write boxes: the convention of its numbers, its marker, and its parser."""

    name: str
    coordinates: str
    sign: re.Pattern[str]
    read: Callable[[str], TaggedBoxes]


def numbers_in(text: str) -> list[float] | None:
    """Return the numbers of a text that contains only numbers, commas and blanks; None for any other."""
    words = text.replace(",", " ").split()
    if len(words) > 16 or not all(_NUMBER.fullmatch(word) for word in words):
        return None
    return [float(word) for word in words]


def _label(text: str) -> str | None:
    """Return the words before or after a box, without separators."""
    return _SPECIAL.sub(" ", text).strip(" \t\r\n,.;:&*-") or None


def _runs(token: re.Pattern[str], text: str) -> Iterator[tuple[int, int, list[int]]]:
    """Return the positions of consecutive tokens with only blanks between, and their numbers."""
    start, end, numbers = 0, 0, list[int]()
    for found in token.finditer(text):
        if numbers and text[end : found.start()].strip():
            yield start, end, numbers
            numbers = []
        if not numbers:
            start = found.start()
        numbers.append(int(found[1]))
        end = found.end()
    if numbers:
        yield start, end, numbers


class _Groups:
    """Numbers in groups of four: complete ones become boxes, others are damaged, or truncated at the end."""

    def __init__(self) -> None:
        self.boxes: list[tuple[str | None, list[float]]] = []
        self.damaged = 0
        self.is_cut = False

    def add(self, label: str | None, numbers: Sequence[float], *, at_end: bool = False) -> None:
        """Take a run of numbers, four per box; ``at_end`` tells whether the text ends with it."""
        whole = len(numbers) // 4 * 4
        self.boxes += [(label, [*map(float, numbers[at : at + 4])]) for at in range(0, whole, 4)]
        if len(numbers) > whole:
            self.is_cut |= at_end
            self.damaged += not at_end

    @property
    def found(self) -> TaggedBoxes:
        """The collected boxes."""
        return TaggedBoxes(self.boxes, self.damaged, self.is_cut)


_FLORENCE = re.compile(r"<loc_([0-9]{1,4})>")
_PALIGEMMA = re.compile(r"<loc([0-9]{4})>")
_PATCH = re.compile(r"<patch_index_([0-9]{1,4})>")
_BINS = re.compile(r"<([0-9]{1,4})>")


def _labeled_before(token: re.Pattern[str]) -> Callable[[str], TaggedBoxes]:
    """Parse tokens that follow their label."""

    def read(text: str) -> TaggedBoxes:
        groups, last = _Groups(), 0
        for start, end, numbers in _runs(token, text):
            groups.add(_label(text[last:start]), numbers, at_end=_is_cut_after(text, end))
            last = end
        return groups.found

    return read


def _is_cut_after(text: str, end: int) -> bool:
    """Return whether a text ends there, apart from a partial token and end-of-answer tokens."""
    rest = text[end : end + 200]
    return len(rest) < 200 and not _SPECIAL.sub("", rest).partition("<")[0].strip(" ,\n")


def _paligemma(text: str) -> TaggedBoxes:
    """Parse four tokens that precede their label, which ends at a semicolon."""
    groups = _Groups()
    runs = list(_runs(_PALIGEMMA, text))
    ends = [start for start, _, _ in runs[1:]] + [len(text)]
    for (_, end, numbers), limit in zip(runs, ends, strict=True):
        words = re.sub(r"<seg[0-9]{3}>", "", text[end:limit]).partition(";")[0]
        groups.add(_label(words), numbers, at_end=_is_cut_after(text, end))
    return groups.found


def _kosmos(text: str) -> TaggedBoxes:
    """Parse pairs of patches that follow their phrase."""
    groups, label, last = _Groups(), None, 0
    text = text.replace("</delimiter_of_multi_objects/>", "")
    for start, end, numbers in _runs(_PATCH, text):
        opened = text.rfind("<phrase>", last, start)
        closed = text.find("</phrase>", opened, start) if opened >= 0 else -1
        label = _label(text[opened:closed]) if closed >= 0 else label
        cells = [value for number in numbers for value in (number % 32, number // 32)]
        groups.add(label, cells, at_end=_is_cut_after(text, end))
        last = end
    return groups.found


def _in_brackets(content: str) -> Iterator[list[float] | None]:
    """Return the numbers in each innermost pair of square brackets; None for other contents."""
    for found in re.finditer(r"\[([^\[\]]*)\]", content):
        if found[1].strip():
            yield numbers_in(found[1])


def _in_pairs(content: str) -> Iterator[list[float] | None]:
    """Return the numbers of each ``(x1,y1),(x2,y2)``."""
    for found in re.finditer(r"\(([^()]*)\)\s*,\s*\(([^()]*)\)", content):
        yield numbers_in(f"{found[1]},{found[2]}")


def _in_brackets_or_pairs(content: str) -> Iterator[list[float] | None]:
    return _in_brackets(content) if "[" in content else _in_pairs(content)


def _in_bins(content: str) -> Iterator[list[float] | None]:
    """Return the numbers of each four tokens ``<12>``, and the rest of a run."""
    for _, _, numbers in _runs(_BINS, content):
        for at in range(0, len(numbers), 4):
            yield [*map(float, numbers[at : at + 4])]


def _sections(
    label_tags: tuple[str, str],
    box_tags: tuple[str, str],
    groups_of: Callable[[str], Iterator[list[float] | None]],
) -> Callable[[str], TaggedBoxes]:
    """Parse labels and boxes that each have an opening and a closing tag."""
    # Find all tags with one pattern, so that the text is read in one pass.
    opens_label, closes_label = label_tags
    opens_box, closes_box = box_tags
    tag = re.compile("|".join(map(re.escape, (*label_tags, *box_tags))))

    def read(text: str) -> TaggedBoxes:
        boxes: list[tuple[str | None, list[float]]] = []
        label: str | None = None
        damaged, opened, at = 0, "", 0
        is_cut = False

        # Boxes with another number of coordinates are damaged.
        def take(content: str) -> None:
            nonlocal damaged
            for numbers in groups_of(content):
                if numbers is None or len(numbers) != 4:
                    damaged += 1
                else:
                    boxes.append((label, numbers))

        # A box ends with its tag, or where another begins; a label counts if it is closed.
        for found in tag.finditer(text):
            if opened == opens_box and found[0] in (closes_box, opens_label, opens_box):
                take(text[at : found.start()])
                is_cut |= found[0] != closes_box and _is_open(text[at : found.start()])
            if opened == opens_label and found[0] == closes_label:
                label = _label(text[at : found.start()])
            opened = found[0] if found[0] in (opens_label, opens_box) else ""
            at = found.end()
        # Text may end inside a box: complete boxes in it count, and the rest is truncated, not damaged.
        if opened == opens_box:
            is_cut = True
            before = damaged
            take(text[at:])
            # Do not count the truncated one.
            damaged = before
        return TaggedBoxes(boxes, damaged, is_cut or opened == opens_label)

    return read


def _is_open(content: str) -> bool:
    """Return whether a bracket of a section that is not closed is open, or the section is empty."""
    return (
        any(content.count(left) > content.count(right) for left, right in ("[]", "()")) or not content.strip()
    )


_rex_in_tags = _sections(
    ("<|object_ref_start|>", "<|object_ref_end|>"), ("<|box_start|>", "<|box_end|>"), _in_bins
)


def _rex(text: str) -> TaggedBoxes:
    """Parse tokens between tags; without tags, groups of four that follow their label."""
    return _rex_in_tags(text) if "<|box_start|>" in text else _labeled_before(_BINS)(text)


def _cogvlm(text: str) -> TaggedBoxes:
    """Parse ``[[012,034,056,078;...]]`` that follows its label."""
    boxes: list[tuple[str | None, list[float]]] = []
    damaged, last = 0, 0
    for found in re.finditer(r"\[\[([0-9,; ]*)\]\]", text):
        label, last = _label(text[last : found.start()]), found.end()
        for group in found[1].split(";"):
            numbers = numbers_in(group)
            if numbers is None or len(numbers) != 4:
                damaged += 1
            else:
                boxes.append((label, numbers))
    return TaggedBoxes(boxes, damaged, "[[" in text[last:])


def _molmo(text: str) -> TaggedBoxes:
    """Parse points."""
    boxes: list[tuple[str | None, list[float]]] = []
    damaged, last = 0, 0
    for found in re.finditer(r"<points?\b([^<>]*)>", text):
        last = found.end()
        fields = dict(re.findall(r'\b((?:x|y)[0-9]{0,4}|alt)\s{0,4}=\s{0,4}"([^"<>]*)"', found[1]))
        label = _label(fields.get("alt", ""))
        ends = [name[1:] for name in fields if name[0] == "x"]
        damaged += not ends
        for end in ends:
            point = numbers_in(f"{fields['x' + end]},{fields.get('y' + end, '')}")
            if point is None or len(point) != 2:
                damaged += 1
            else:
                boxes.append((label, point * 2))
    return TaggedBoxes(boxes, damaged, re.search(r"<points?\b[^<>]*\Z", text[last:]) is not None)


NOTATIONS = (
    Notation("kosmos-2", "kosmos-2", _PATCH, _kosmos),
    Notation("florence-2", "florence-2", _FLORENCE, _labeled_before(_FLORENCE)),
    Notation("paligemma", "paligemma", _PALIGEMMA, _paligemma),
    Notation(
        "deepseek-vl2",
        "999",
        re.compile(r"<\|det\|>"),
        _sections(("<|ref|>", "<|/ref|>"), ("<|det|>", "<|/det|>"), _in_brackets),
    ),
    Notation(
        "rex-omni", "999", re.compile(r"<\|box_start\|>\s{0,4}(?:<[0-9]{1,4}>|None)|<[0-9]{1,4}>"), _rex
    ),
    Notation(
        "qwen2-vl",
        "1000",
        re.compile(r"<\|box_start\|>"),
        _sections(
            ("<|object_ref_start|>", "<|object_ref_end|>"), ("<|box_start|>", "<|box_end|>"), _in_pairs
        ),
    ),
    Notation(
        "internvl",
        "1000",
        re.compile(r"<box>"),
        _sections(("<ref>", "</ref>"), ("<box>", "</box>"), _in_brackets_or_pairs),
    ),
    Notation("molmo", "molmo", re.compile(r"<points?\s"), _molmo),
    Notation("cogvlm", "1000", re.compile(r"\[\[[0-9]{3},[0-9]{3},[0-9]{3},[0-9]{3}(?:;|\]\])"), _cogvlm),
)
"""In the order in which they are tried."""
