"""Read VOC XML annotations safely and quickly, with line numbers in error messages; write them.

Conventions
-----------
- Document type declarations are rejected before parsing: entities can exhaust memory or read other files, and
  annotation tools do not write them. To guarantee that the searched text is the parsed text, it is decoded
  here, by its byte order mark or declaration, and must not contain NUL, which would make the parser detect
  UTF-16.
- Only common encodings are decoded, each in linear time.
- Fast path: a file of plain tags without attributes, as annotation tools write, is split at its tags. The
  position of each value follows from the sequence of tags, which most files of a folder share. All other
  files, including invalid ones, go to the parser. Both paths give the same result; only the parser raises.
- Elements of the standard library do not know their lines, so an invalid file is parsed again by expat, which
  counts lines.
- Missing ``difficult``, ``truncated`` and ``occluded`` are 0. No metric reads the last two, so they may have
  any value: a number above 0 is 1, and anything else 0, with a warning.
- The root element may be ``Annotation`` too. An object with Labelbox's ``polygon`` (x1, y1, x2, ...) instead
  of a ``bndbox`` has the box around it, with a warning.
- Classes are the names that occur, sorted, with ids 1, 2, ... in that order.
"""

from __future__ import annotations

import codecs
import functools
import operator
import os
import re
import stat
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import is_file, read_bytes
from boxscore._utils.memory import paused_collector
from boxscore._utils.progress import progress
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import in_pixels
from boxscore.data.boxes import CORNERS, WrittenForm
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Images, without_zeros
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._label_files import file_stems

SIDES = ("xmin", "ymin", "xmax", "ymax")
FLAGS = ("difficult", "truncated", "occluded")
IMAGE_SET = "all"
"""Name of the image set that lists all images, for output."""

_DECLARED = re.compile(rb"""\A\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_ENCODINGS = frozenset(
    [
        *(
            "ascii",
            "utf-8",
            "big5",
            "gb2312",
            "gbk",
            "gb18030",
            "euc_jp",
            "shift_jis",
            "iso2022_jp",
            "euc_kr",
        ),
        *("cp949", "koi8-r", "koi8-u", "tis-620", "iso8859-1"),
        *(f"iso8859-{part}" for part in (*range(2, 12), *range(13, 17))),
        *(f"cp{page}" for page in (866, 874, 932, 950, *range(1250, 1259))),
    ]
)
"""Accepted encodings, as named by Python's codecs; UTF-16 is detected by its byte order mark."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class XmlFile(NamedTuple):
    """An XML file with its root element and text."""

    path: Path
    root: ElementTree.Element
    text: str

    def place(self, element: ElementTree.Element) -> str:
        """Return the file and line where an element starts."""
        number = next(number for number, other in enumerate(self.root.iter()) if other is element)
        return f"{self.path}, line {_line_of(self.text, number)}"


def read_xml(path: Path) -> XmlFile:
    """Parse an XML file."""
    # Reject NULs, which look like UTF-16, and entities, which may expand without limit.
    text = _text(path)
    if not text.strip():
        raise FileFormatError("an XML file", "hold XML", got="an empty file", place=str(path))
    for what, mark, cause in (
        ("NUL", "\0", "UTF-16 without a byte order mark? Save it as UTF-8"),
        ("DOCTYPE", "<!DOCTYPE", "entities are not read"),
    ):
        start = text.find(mark)
        if start >= 0:
            place = f"{path}, line {text.count(chr(10), 0, start) + 1}"
            raise FileFormatError("an XML file", f"have no {what}", got="one", place=place, cause=cause)
    # expat reports the line of an error.
    try:
        return XmlFile(path, ElementTree.fromstring(text), text)
    except (ElementTree.ParseError, ValueError) as error:
        line = error.position[0] if isinstance(error, ElementTree.ParseError) else 1
        raise _malformed_error(path, line, str(error).split(":")[0]) from None


def _text(path: Path) -> str:
    try:
        content = read_bytes(path)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    declared = _DECLARED.search(content, 0, 200)
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    encoding = encoding or _check_encoding(declared[1].decode("ascii") if declared else "utf-8", path)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _malformed_error(path, line, f"bytes that are not {encoding}") from None
    if text.startswith("\ufeff"):
        raise _malformed_error(path, 1, "a second byte order mark")
    return text


def _check_encoding(declared: str, path: Path) -> str:
    """Return a declared encoding if it is accepted; raise otherwise."""
    try:
        known = codecs.lookup(declared).name in _ENCODINGS
    except LookupError:
        known = False
    if not known:
        raise FileFormatError(
            "an XML file",
            "be in an encoding that XML is written in",
            got=repr(declared),
            place=f"{path}, line 1",
            cause="save it as UTF-8",
        )
    return declared


def _malformed_error(path: Path, line: int, got: str) -> FileFormatError:
    return FileFormatError("an XML file", "be well-formed", got=got, place=f"{path}, line {line}")


def _line_of(text: str, number: int) -> int:
    """Return the line where an element starts; ``number`` counts elements from 0 in document order."""
    lines: list[int] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda *_: lines.append(parser.CurrentLineNumber)
    parser.Parse(text, True)
    return lines[number]


@paused_collector()
def read_annotations(
    path: Path, folder: Path, names: Sequence[str], written: WrittenForm = CORNERS
) -> GroundTruth:
    """Read the annotations of these images in a folder; ``path`` is the data set, for messages."""
    annotations = list(annotations_in(path, folder, names))
    classes = {label for annotation in annotations for label in annotation.classes}
    return joined_annotations(path, folder, names, annotations, classes, written)


def annotations_in(path: Path, folder: Path, names: Sequence[str]) -> Iterator[Annotation]:
    """Read the file of each image."""
    for name in progress(names, desc=f"reading {path.name}", unit="file", delay=1, leave=False):
        # Split files of plain tags, nearly all, as text; parse the others.
        file = f"{folder}{os.sep}{name}.xml"
        yield _plainly_read(file) or _parsed(Path(file))


def joined_annotations(
    path: Path,
    folder: Path,
    names: Sequence[str],
    annotations: Sequence[Annotation],
    known: Iterable[str],
    written: WrittenForm,
) -> GroundTruth:
    """Build a table from the annotations of these images; ``known`` are all classes."""
    _say_odd(path, annotations)
    # Concatenate the lists of all images to columns.
    counts = [len(annotation.classes) for annotation in annotations]
    classes = [label for annotation in annotations for label in annotation.classes]
    marks = np.array([mark for annotation in annotations for mark in annotation.flags], dtype=bool)
    marks = marks.reshape(-1, len(FLAGS))
    boxes = np.array([side for annotation in annotations for side in annotation.boxes], dtype=np.float64)
    sizes = without_zeros(np.array([annotation.size for annotation in annotations]).reshape(-1, 2))
    # Number the classes 1, 2, ... in the order of their names.
    numbers = {label: index for index, label in enumerate(sorted(known), start=1)}

    def place(row: int) -> str:
        image = int(np.searchsorted(np.cumsum(counts), row, side="right"))
        return _place_of_object(folder / f"{names[image]}.xml", row - sum(counts[:image]))

    # The table checks the boxes, and keeps images without objects.
    return GroundTruth.from_arrays(
        [name for name, count in zip(names, counts, strict=True) for _ in range(count)],
        np.array([numbers[label] for label in classes], dtype=np.int64),
        in_pixels(boxes.reshape(-1, len(SIDES)), written, np.repeat(sizes, counts, axis=0), place=place),
        box_format=written.form,
        difficult=marks[:, 0],
        images=Images.build(
            names,
            file_names=[annotation.file_name for annotation in annotations],
            sizes=sizes,
        ),
        categories={index: label for label, index in numbers.items()},
        columns={"truncated": marks[:, 1], "occluded": marks[:, 2]},
        source=str(path),
        place=place,
    )


class Annotation(NamedTuple):
    """The annotation of one image, with the boxes and flags of all objects in flat lists."""

    file_name: str | None
    size: tuple[float, float]
    classes: list[str]
    boxes: list[float]
    flags: list[bool]
    odd: tuple[Odd, ...] = ()


class Odd(NamedTuple):
    """Values of one kind that are read in an unusual way."""

    kind: str
    objects: int
    first: str


_ODD = {
    "flag": "in {count}, truncated or occluded is not 0 or 1; a number above 0 is read as 1, anything else "
    "as 0. First: {first}",
    "polygon": "{count} without a bndbox; the box around the polygon is read. First: {first}",
}
"""The warning for each kind."""


def _say_odd(path: Path, annotations: Sequence[Annotation]) -> None:
    """Warn once of each kind of odd values in a folder."""
    odd = [one for annotation in annotations for one in annotation.odd]
    for kind, text in _ODD.items():
        some = [one for one in odd if one.kind == kind]
        if some:
            count = counted(sum(one.objects for one in some), "object")
            warn_user(f"{path}: {text.format(count=count, first=some[0].first)}.")


def _parsed(file: Path) -> Annotation:
    """Read a file with the parser."""
    # Reject a missing file, or one that is not a VOC annotation.
    if not is_file(file):
        raise FileFormatError(
            "every image of the set",
            "have its XML",
            got=f"no {file.name}",
            place=str(file.parent),
            cause="is this the right image set?",
        )
    read = read_xml(file)
    root = read.root
    if root.tag.lower() != "annotation":
        raise FileFormatError(
            "a VOC file",
            "be an <annotation>",
            got=f"<{root.tag}>",
            place=str(file),
            cause="was it written by another program?",
        )
    # Read the objects in file order; each function reports the line of an invalid value.
    file_name, size = _text_of(root, "filename"), _image_size(read)
    classes: list[str] = []
    boxes: list[float] = []
    flags: list[bool] = []
    odd: dict[str, list[Element]] = {}
    for element in root.findall("object"):
        classes.append(_class_name(element, read))
        sides = _sides_of_polygon(element, read)
        if sides is not None:
            odd.setdefault("polygon", []).append(element)
        boxes += _box(element, read) if sides is None else sides
        texts = [_text_of(element, tag) for tag in FLAGS[1:]]
        if not {*texts} <= {None, "0", "1"}:
            odd.setdefault("flag", []).append(element)
        flags += [_flag(element, FLAGS[0], read), *map(_loose_flag, texts)]
    kinds = tuple(Odd(kind, len(some), read.place(some[0])) for kind, some in odd.items())
    return Annotation(file_name, size, classes, boxes, flags, kinds)


# ---------------------------------------------------------------- files of plain tags

_DECLARATION = re.compile(rb'<\?xml version="1\.0"(?: encoding="[Uu][Tt][Ff]-8")?\?>')
_PLAIN = bytes({*b"\t\n", *range(0x20, 0x7F)} - {*b"&<>"})
"""ASCII without control characters and markup."""
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_FLAG_VALUES = {"": False, "0": False, "1": True}
LARGEST_PLAIN, MOST_TAGS = 1 << 16, 1000
"""Maximum number of bytes and tags of a file on the fast path."""
Pick = Callable[[Sequence[str]], tuple[str, ...]]


class _Layout(NamedTuple):
    """Functions that pick the values from the parts of a file; the last part that each returns is padding."""

    head: Pick
    """File name, width and height."""
    names: Pick
    sides: Pick
    flags: Pick


def _plainly_read(path: str) -> Annotation | None:
    """Read a valid file of plain tags; None for any other file."""
    try:
        content = _small_file(path)
    except (OSError, ValueError):
        return None
    if content.startswith(b"<?"):
        declared = _DECLARATION.match(content)
        content = b"" if declared is None else content[declared.end() :]
    # Alternating < and > rule out entities and comments; ``_layout`` rejects attributes.
    marks = content.translate(None, _PLAIN)
    if not 0 < len(marks) <= 2 * MOST_TAGS or marks != b"<>" * (len(marks) // 2):
        return None
    # Split into text and tags; files with the same tags share a layout, which locates the values.
    parts = content.decode("ascii").replace(">", "<").split("<")  # text, tag, text, ..., tag, text
    layout = _layout(tuple(parts[1::2]))
    if layout is None or parts[0].strip() or parts[-1].strip():
        return None
    parts[-1] = ""
    # Pick the values; leave values that are not plain numbers to the parser, which has the error messages.
    file_name, *size = (value.strip() for value in layout.head(parts)[:-1])
    classes = [name.strip() for name in layout.names(parts)[:-1]]
    sides = layout.sides(parts)[:-1]
    if "_" in "".join(sides) or not all(classes):
        return None
    try:
        width, height = (checks.plain_number(side) if side else np.nan for side in size)
        flags = [_FLAG_VALUES[flag] for flag in layout.flags(parts)[:-1]]
        return Annotation(file_name or None, (width, height), classes, list(map(float, sides)), flags)
    except (ValueError, KeyError):
        return None


def _small_file(path: str) -> bytes:
    """Return the content of a small regular file; empty for any other."""
    status = os.stat(path)  # noqa: PTH116, one of thousands
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_PLAIN:
        return b""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        content = os.read(file, LARGEST_PLAIN + 1)
    finally:
        os.close(file)
    return content if len(content) == status.st_size else b""


@functools.lru_cache(maxsize=1024)
def _layout(tags: tuple[str, ...]) -> _Layout | None:
    """Locate the values in a file with these tags; None if the tags do not nest.

    The position of a missing value is the end of the file, where the text is blank.
    """
    # Walk through the tags with a stack, and record where the text after each opening tag is.
    outermost: dict[str, _Node] = {}
    unclosed: list[tuple[str, dict[str, _Node]]] = []
    objects: list[dict[str, _Node]] = []
    end = 2 * len(tags)
    for number, tag in enumerate(tags):
        if tag.startswith("/"):
            if not unclosed or unclosed.pop()[0] != tag[1:] or (not unclosed and number < len(tags) - 1):
                return None
            continue
        if _NAME.fullmatch(tag) is None:
            return None
        node = _Node(2 * number + 2, {})
        # Record children, and the objects of the annotation.
        if unclosed:
            unclosed[-1][1].setdefault(tag, node)  # the first child with this tag counts
            if [name for name, _ in unclosed] == ["annotation"] and tag == "object":
                objects.append(node.children)
        elif tag == "annotation":
            outermost = node.children
        else:
            return None
        unclosed.append((tag, node.children))
    # Leave files with objects that lack a name or a corner to the parser, which has the error messages.
    missing = _Node(end, {})
    boxes = [children.get("bndbox", missing).children for children in objects]
    if (
        unclosed
        or not all(box.keys() >= {*SIDES} for box in boxes)
        or not all("name" in children for children in objects)
    ):
        return None
    # Build itemgetters from the positions: with the cache, another file with these tags takes four calls.
    size = outermost.get("size", missing).children
    picked = (
        [outermost.get("filename", missing), *(size.get(side, missing) for side in ("width", "height"))],
        [children["name"] for children in objects],
        [box[side] for box in boxes for side in SIDES],
        [children.get(flag, missing) for children in objects for flag in FLAGS],
    )
    return _Layout(*(_picker([node.text for node in nodes], end) for nodes in picked))


class _Node(NamedTuple):
    """Position of the text after an element's tag, and its first child of each tag."""

    text: int
    children: dict[str, _Node]


def _picker(positions: list[int], end: int) -> Pick:
    if not positions:
        return lambda parts: ("",)
    return operator.itemgetter(*positions, end)  # at least two positions, so that it returns a tuple


def _place_of_object(path: Path, number: int) -> str:
    try:
        file = read_xml(path)
        return file.place(file.root.findall("object")[number])
    except (FileFormatError, IndexError):  # the file has changed since it was read
        return f"object {number} of {path}"


def _text_of(element: Element, tag: str) -> str | None:
    """Return the text of the first child with this tag; None if it is missing or blank."""
    return (element.findtext(tag) or "").strip() or None


def _image_size(file: XmlFile) -> tuple[float, float]:
    size = file.root.find("size")
    if size is None:
        return (np.nan, np.nan)
    return (_number(size, "width", file, default=np.nan), _number(size, "height", file, default=np.nan))


def _class_name(element: Element, file: XmlFile) -> str:
    name = _text_of(element, "name")
    if name is None:
        raise FileFormatError("an object", "have a name", got="none", place=file.place(element))
    return name


def _box(element: Element, file: XmlFile) -> list[float]:
    box = element.find("bndbox")
    if box is None:
        cause = "LabelMe's old XML? It has polygons" if element.find("polygon") is not None else ""
        raise FileFormatError(
            "an object", "have a bndbox", got="none", place=file.place(element), cause=cause
        )
    return [_number(box, side, file) for side in SIDES]


def _sides_of_polygon(element: Element, file: XmlFile) -> list[float] | None:
    """Return the box around a polygon of x1, y1, x2, ... that has no bndbox; None for any other object."""
    polygon = element.find("polygon")
    if polygon is None or element.find("bndbox") is not None or polygon.find("x1") is None:
        return None
    points = [child.tag for child in polygon if re.fullmatch("[xy][0-9]+", child.tag)]
    x, y = ([_number(polygon, tag, file) for tag in dict.fromkeys(points) if tag[0] == side] for side in "xy")
    if len(x) != len(y):
        got = f"{len(x)} and {len(y)}"
        raise FileFormatError("a polygon", "have as many x as y", got=got, place=file.place(polygon))
    return [min(x), min(y), max(x), max(y)]


def _number(parent: Element, tag: str, file: XmlFile, *, default: float | None = None) -> float:
    text = _text_of(parent, tag)
    if text is None:
        if default is not None:
            return default
        raise FileFormatError(f"a {parent.tag}", f"have {tag}", got="none", place=file.place(parent))
    try:
        return checks.plain_number(text)
    except ValueError:
        raise FileFormatError(tag, "be a number", got=repr(text), place=file.place(parent)) from None


def _flag(element: Element, tag: str, file: XmlFile) -> bool:
    text = _text_of(element, tag)
    if text is None or text == "0":
        return False
    if text == "1":
        return True
    raise FileFormatError(tag, "be 0 or 1", got=repr(text), place=file.place(element))


def _loose_flag(text: str | None) -> bool:
    """Return a flag that no metric reads."""
    try:
        return text is not None and checks.plain_number(text) > 0
    except ValueError:
        return False


# ---------------------------------------------------------------- writing


def annotation_files(table: GroundTruth) -> dict[str, str | bytes]:
    """Return the files to write by relative path: an XML file per image, and the image set."""
    # Escape each class name once.
    names = file_stems(table, in_lines=True)
    labels = [_xml_text(label, "a class name") for label in table.categories.names.tolist()]
    objects: list[list[str]] = [[] for _ in names]
    marks = [table.difficult, *(table.columns.get(flag) for flag in FLAGS[1:])]
    flags = [np.zeros(len(table), dtype=bool) if mark is None else mark.astype(bool) for mark in marks]
    rows = (
        table.image.tolist(),
        table.category.tolist(),
        table.boxes.tolist(),
        *map(np.ndarray.tolist, flags),
    )
    # Append the text of each object to its image in one pass.
    for image, category, box, *raised in zip(*rows, strict=True):
        sides = "".join(f"<{side}>{_plain(at)}</{side}>" for side, at in zip(SIDES, box, strict=True))
        states = "".join(f"<{flag}>{int(is_so)}</{flag}>" for flag, is_so in zip(FLAGS, raised, strict=True))
        objects[image].append(
            f"  <object><name>{labels[category]}</name>{states}<bndbox>{sides}</bndbox></object>\n"
        )
    # Write a file for every image, with or without objects; leave out unknown sizes.
    files: dict[str, str | bytes] = {}
    known = zip(names, table.images.file_names.tolist(), table.images.sizes.tolist(), objects, strict=True)
    for name, file_name, (width, height), texts in known:
        head = "" if file_name is None else f"  <filename>{_xml_text(file_name, 'a file name')}</filename>\n"
        sides = "".join(
            f"<{tag}>{_plain(side)}</{tag}>"
            for tag, side in (("width", width), ("height", height))
            if side == side
        )
        head += f"  <size>{sides}<depth>3</depth></size>\n" if sides else ""
        files[f"Annotations/{name}.xml"] = f"<annotation>\n{head}{''.join(texts)}</annotation>\n"
    # Image sets only support names without spaces.
    if names and all(len(name.split()) == 1 for name in names):
        files[f"ImageSets/Main/{IMAGE_SET}.txt"] = "".join(f"{name}\n" for name in names)
    return files


def _plain(number: float) -> str:
    """Format a number with all its digits, and integers without a decimal point."""
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _xml_text(text: str, name: str) -> str:
    """Escape text; reject text that XML does not preserve."""
    if text != text.strip() or not text.isprintable() or not text:
        rule = "be printable, without blanks at its ends, to be written in XML"
        raise InputError(name, rule, got=repr(text)[:60])
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
