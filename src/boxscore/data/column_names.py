"""Recognize common column names: which column is the image, the class, the box, the score.

Conventions
-----------
- Names are compared by letters and digits only, ignoring case: ``ImageID``, ``image_id`` and ``image id`` are
  the same name; ``bbox_x1`` is ``x1``.
- If a box has several columns, their names define its form, except for ``x, y, w, h``, where ``x, y`` may be
  a corner or the center. A single column of four numbers does not define the form.
- Columns without a role are user columns.
- Whole numbers in a column such as ``class`` with texts in a column such as ``name`` are the number and the
  name of a class (:func:`are_number_and_name`).
- A user may map roles to columns (:class:`ColumnMap`). The mapping overrides names; other columns with names
  of that role become user columns. A map for two tables may contain columns that only one of them has; a
  column that neither has is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore._utils.lazy import loaded
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BoxFormat
from boxscore.data.schema import SHAPES_OF_TABLES
from boxscore.errors import FileFormatError, InputError

_IDS = ("imageid", "imgid")
_IMAGES = ("image", "img")
_FILES = ("filename", "filepath", "imagename", "imagepath", "imagefile", "imgname", "imgpath", "path", "file")
_NAMES = ("class", "classname", "category", "categoryname", "label", "labelname", "cls", "clsname")
_LATE_NAMES = ("categories", "classes", "labels", "objectclass", "name")
_NUMBERS = ("categoryid", "classid", "labelid", "clsid", "catid")
_SCORES = ("score", "scores", "confidence", "confidences", "conf", "probability", "prob")
_OTHERS = {
    "area": ("area", "areas"),
    "crowd": ("iscrowd", "crowd"),
    "difficult": ("difficult", "isdifficult"),
    "ignore": ("ignore", "isignore"),
    "group": ("isgroupof", "group"),
    "ids": ("annotationid", "annid", "boxid", "objectid", "id"),
}
_IMAGE_SIZES = (
    ("imagewidth", "imageheight"),
    ("imgwidth", "imgheight"),
    ("imagew", "imageh"),
    ("imgw", "imgh"),
    ("width", "height"),
)
_SIDES = (("w", "h"), ("width", "height"))
_FIRST = (("x1", "y1"), ("xmin", "ymin"), ("left", "top"), ("x0", "y0"), ("xtl", "ytl"), ("minx", "miny"))
_LAST = (("x2", "y2"), ("xmax", "ymax"), ("right", "bottom"), ("x1", "y1"), ("xbr", "ybr"), ("maxx", "maxy"))
_CENTERS = (
    ("cx", "cy"),
    ("xc", "yc"),
    ("xcenter", "ycenter"),
    ("centerx", "centery"),
    ("xcentre", "ycentre"),
)
_BOXES: tuple[tuple[tuple[str, ...], BoxFormat | None], ...] = (
    *(((*first, *last), "xyxy") for first, last in zip(_FIRST, _LAST, strict=True)),
    *(((*first, *sides), "xywh") for first in _FIRST for sides in _SIDES),
    *(((*center, *sides), "cxcywh") for center in _CENTERS for sides in _SIDES),
    *((("x", "y", *sides), None) for sides in _SIDES),
    (("xyxy",), "xyxy"),
    (("xywh",), "xywh"),
    (("cxcywh",), "cxcywh"),
    *(((name,), None) for name in ("bbox", "box", "bboxes", "boxes", "boundingbox", "boundingboxes")),
)

_SHAPE = re.compile("(keypoint|rotated|corner)_")
"""Prefix of columns that hold one number of a shape."""

_NEEDED = {
    "image": "a column of the image (image_id, image, filename)",
    "box": "the columns of a box (x1,y1,x2,y2, or left,top,width,height, or bbox)",
}


_GROUPS: tuple[tuple[str, ...], ...] = (
    (*_IDS, *_IMAGES),
    _FILES,
    (*_NAMES, *_LATE_NAMES),
    _NUMBERS,
    _SCORES,
    *_OTHERS.values(),
)
"""Groups of synonyms for a single role; columns of boxes and sizes are recognized together instead."""
_SIZES_AND_BOXES = {name for names in (*_IMAGE_SIZES, *(keys for keys, _ in _BOXES)) for name in names}
_KNOWN = {name for group in _GROUPS for name in group} | _SIZES_AND_BOXES | {"mask"}
_EXAMPLE = "image, class, class_id, score, x1, y1, x2, y2, x, y, w, h, cx, cy, bbox, image_width, area, ..."


_FILE_NAME = re.compile(r"\.[A-Za-z]{3,4}$")

MOST_NAMED = 0.9
"""Minimum fraction of rows whose name is the most common one of their class number."""


class ColumnMap(NamedTuple):
    """The mapping from roles to columns given by the user."""

    columns: dict[str, str]
    """From the normalized name of a role to the column."""
    tables: dict[str, list[str]] | None = None
    """Column names of the tables read so far, if the map applies to several tables."""
    name: str = "columns"
    """Name of the option, for messages."""

    @classmethod
    def of(cls, columns: Mapping[str, str], *, shared: bool = False, name: str = "columns") -> ColumnMap:
        """Check a mapping such as ``{"image": "photo", "class": "label"}``; ``shared`` if for both tables."""
        if not isinstance(columns, Mapping) or not columns:
            rule = "say at least one part and its column, as in image=photo"
            raise InputError(name, rule, got=repr(columns)[:60])
        checked: dict[str, str] = {}
        for part, column in columns.items():
            plain = _normalize(part) if isinstance(part, str) else ""
            if plain not in _KNOWN or not isinstance(column, str) or not column:
                got, near = f"{part!r}: {column!r}", checks.nearest(part, _EXAMPLE.split(", "))
                raise InputError(name, f"name the columns as {_EXAMPLE}", got=got, cause=near)
            if plain in checked or column in checked.values():
                raise InputError(name, "name each part and each column once", got=f"{part!r}: {column!r}")
            checked[plain] = column
        return cls(checked, {} if shared else None, name)

    def __str__(self) -> str:
        return " ".join(f"{part}={column}" for part, column in self.columns.items())

    def present(self, names: Sequence[str], place: str) -> dict[str, str]:
        """Return the entries whose columns are in a table."""
        missing = self.missing(names)
        if missing and self.tables is None:
            raise self._absent_error(missing[0], names, place)
        return {part: name for part, name in self.columns.items() if name in names}

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the mapped columns that a table does not have."""
        return [name for name in self.columns.values() if name not in names]

    def record_table(self, names: Sequence[str], place: str) -> None:
        """Record the columns of a table that was read."""
        if self.tables is not None:
            self.tables[place] = [*self.tables.get(place, []), *names]

    def refuse_absent(self) -> None:
        """Raise if none of the tables has a mapped column; call this after all tables are read."""
        if self.tables:
            every = list(dict.fromkeys(name for names in self.tables.values() for name in names))
            missing = self.missing(every)
            if missing:
                raise self._absent_error(missing[0], every, " and ".join(self.tables))

    def _absent_error(self, name: str, names: Sequence[str], place: str) -> InputError:
        near = checks.nearest(name, [*map(str, names)][: checks.MOST_COMPARED])
        rule = "name columns that are in the table"
        if self.tables is not None and len(self.tables) > 1:
            rule = "name columns that are in one of the tables"
        cause = f"{near} There are {short_list(names)}" if near else f"there are {short_list(names)}"
        return InputError(self.name, rule, got=repr(name), place=place, cause=cause)


class ColumnParts(NamedTuple):
    """The columns by role; None if missing."""

    image: str
    box: tuple[str, ...]
    """Four columns, a column of four numbers, or empty if there are masks."""
    box_format: BoxFormat | None
    """None if the names do not define it."""
    class_name: str | None
    class_id: str | None
    file_name: str | None
    score: str | None
    image_size: tuple[str, str] | None
    sides: tuple[str, str] | None
    """Width and height columns in addition to corners."""
    flags: dict[str, str]
    """``area``, ``crowd``, ``difficult``, ``ignore``, ``group``, ``ids``, if present."""
    other: tuple[str, ...]
    mask: str | None
    """Open Images masks, with ImageWidth and ImageHeight."""
    shapes: dict[str, tuple[str, ...]]
    """Columns of keypoints, rotated boxes and corners, as written by boxscore."""
    open_images: bool
    """Whether columns are in the order of Open Images: XMin, XMax, YMin, YMax."""
    late_name: str | None = None
    """Column such as ``name``, which holds class names if ``class_name`` holds numbers; one of ``other``."""

    def with_number_and_name(self) -> ColumnParts:
        """Return the columns with ``class_name`` as the class number and ``late_name`` as the class name."""
        other = tuple(name for name in self.other if name != self.late_name)
        return self._replace(class_id=self.class_name, class_name=self.late_name, other=other, late_name=None)

    def class_map(self, column_map: ColumnMap | None) -> ColumnMap:
        """Return a mapping that fixes which columns hold the class, next to the given mapping."""
        fixed = {"class": self.class_name, "categoryid": self.class_id}
        given = ColumnMap({}) if column_map is None else column_map
        return given._replace(columns=given.columns | {key: name for key, name in fixed.items() if name})


def _normalize(name: str) -> str:
    """Normalize a column name for comparison."""
    short = re.sub(r"[^a-z0-9]", "", name.lower())
    return short[4:] if short.startswith("bbox") and short not in ("bbox", "bboxes") else short


def column_parts(names: Sequence[str], *, place: str, column_map: ColumnMap | None = None) -> ColumnParts:
    """Return the columns by role; raise if a required one is missing."""
    # Columns by normalized name; the user's mapping overrides all names of a role.
    mapped = {} if column_map is None else column_map.present(names, place)
    known: dict[str, str] = dict(mapped)
    for name in names:
        if name not in mapped.values():
            known.setdefault(_normalize(name), name)
    for group in _GROUPS:
        if not mapped.keys().isdisjoint(group):
            known = {key: name for key, name in known.items() if key not in group or key in mapped}
    # Box: the first known set of columns that is present.
    _reject_unsupported(known, names, place)
    boxes = [(keys, form) for keys, form in _BOXES if all(key in known for key in keys)]
    boxes.sort(key=lambda box: -len(mapped.keys() & set(box[0])))  # stable: mapped ones come first
    box = boxes[0] if boxes else None
    image = next((known[key] for key in (*_IDS, *_IMAGES, *_FILES) if key in known), None)
    has_masks = "mask" in known and {"imagewidth", "imageheight"} <= set(known)
    if box is None and has_masks:
        box = (), "xyxy"
    if box is None and "mask" in known:
        rule = "have the columns ImageWidth and ImageHeight in addition to Mask"
        raise InputError("a table of masks", rule, got=f"only {short_list(names)}", place=place)
    # Image and box are required; the message shows how to map them.
    if box is None or image is None:
        missing = [part for part, columns in (("image", image), ("box", box)) if columns is None]
        rule = "have " + " and ".join(_NEEDED[part] for part in missing)
        cause = absent_of(column_map, names) or _how_to_map(missing, known)
        raise InputError("a table of boxes", rule, got=f"only {short_list(names)}", place=place, cause=cause)
    keys, form = box
    used = {known[key] for key in keys} | {image} | ({known["mask"]} if has_masks else set())
    if len({known[key] for key in keys}) < len(keys) or any(names.count(name) > 1 for name in used):
        raise InputError("a column", "occur once", got=short_list(names), place=place)
    # Other roles, each by the first matching name.
    file_name = next((known[key] for key in (*_FILES, *_IMAGES) if known.get(key, image) != image), None)
    class_name = _single_column(known, _NAMES, place) or next(
        (known[k] for k in _LATE_NAMES if k in known), None
    )
    class_id = next((known[key] for key in _NUMBERS if key in known), None)
    late = late_name(names, column_map) if class_name is not None and class_id is None else None
    score = next((known[key] for key in _SCORES if key in known), None)
    flags = {
        part: next(known[key] for key in keys if key in known)
        for part, keys in _OTHERS.items()
        if any(key in known for key in keys)
    }
    used |= {name for name in (file_name, class_name, class_id, score, *flags.values()) if name is not None}
    # With corners, width and height are sides of the box; otherwise of the image.
    sides = None
    if form == "xyxy" and len(keys) == 4 and {"w", "h"} <= set(known):
        sides = (known["w"], known["h"])
        used |= set(sides)
    # The image size is the first known pair of columns that is still unused.
    image_size = None
    for width, height in _IMAGE_SIZES:
        if width in known and height in known and not used & {known[width], known[height]}:
            image_size = (known[width], known[height])
            used |= set(image_size)
            break
    # Look for shapes in several columns among the remaining columns.
    shapes: dict[str, tuple[str, ...]] = {}
    others = [name for name in names if name not in used]
    if any(map(_SHAPE.match, others)):
        shapes = loaded(SHAPES_OF_TABLES["names"])(others, place=place)
        used |= {name for columns in shapes.values() for name in columns}
    if column_map is not None:
        column_map.record_table(names, place)
    # Recognize Open Images, whose coordinates are fractions, by its order of columns.
    order = [_normalize(name) for name in names]
    start = order.index("xmin") if "xmin" in order else -1
    open_images = "imageid" in known and order[start : start + 4] == ["xmin", "xmax", "ymin", "ymax"]
    return ColumnParts(
        image=image,
        box=tuple(known[key] for key in keys),
        box_format=form,
        class_name=class_name,
        class_id=class_id,
        file_name=file_name,
        score=score,
        image_size=image_size,
        sides=sides,
        flags=flags,
        other=tuple(name for name in names if name not in used),
        mask=known["mask"] if has_masks else None,
        shapes=shapes,
        open_images=open_images,
        late_name=late if late not in used else None,
    )


def are_number_and_name(
    pairs: Mapping[tuple[Any, Any], int],
    *,
    class_column: str,
    name_column: str,
    place: str,
    of_results: bool,
    known: Collection[str] | None = None,
) -> bool:
    """Whether two columns are the number and the name of a class.

    The first must be whole numbers and the second texts that are not files, with another name for each number
    in at least ``MOST_NAMED`` of the rows. With class names of the ground truth, one must occur. Where the
    columns leave doubt, a warning says how they are read.

    Parameters
    ----------
    pairs : mapping of pair to int
        Number of rows of each pair of values; see :func:`count_pairs`.
    class_column, name_column, place : str
        For the warning.
    of_results : bool
        Whether these are detections.
    known : collection of str, optional
        Class names of the ground truth, empty if it has only ids.
    """
    numbers, names = {number for number, _ in pairs}, {name for _, name in pairs}
    if not pairs or any(isinstance(one, bool) or not isinstance(one, (int, np.integer)) for one in numbers):
        return False
    if any(not isinstance(one, str) or _FILE_NAME.search(one) for one in names):
        return False
    # Find the most common name of each number.
    most: dict[Any, Any] = {}
    for (number, name), _ in sorted(pairs.items(), key=lambda pair: pair[1]):
        most[number] = name
    common = sum(pairs[pair] for pair in most.items())
    if len({*most.values()}) < len(most) or common < MOST_NAMED * sum(pairs.values()):
        return False
    # Unknown names may be cameras or remarks, and so may a single name for a single number.
    first = next(iter(most.values()))
    option = f"--{'dt' if of_results else 'gt'}-columns"
    if known is not None and names.isdisjoint(known):
        if known:
            warn_user(
                f"{place}: the column {name_column} has no name of a known class ({first!r}, ...), so the "
                f"column {class_column} is read as the class. If the names are classes, use {option} "
                f"class={name_column} (in Python columns=)."
            )
        return False
    if not of_results and len(most) == 1:
        warn_user(
            f"{place}: the column {name_column} has one value, {first!r}, read as the name of class "
            f"{next(iter(most))}. If it is not, use {option} class={class_column} (in Python columns=)."
        )
    return True


def count_pairs(
    first: Sequence[Any], first_of_row: IntArray, second: Sequence[Any], second_of_row: IntArray
) -> dict[tuple[Any, Any], int]:
    """Count the rows of each pair of values of two columns, given as distinct values and their indices.

    An index of -1 is an empty cell, whose row does not count.
    """
    rows = np.flatnonzero((first_of_row >= 0) & (second_of_row >= 0))
    # Count a pair by one number.
    pairs, counts = np.unique(
        first_of_row[rows].astype(np.int64) * len(second) + second_of_row[rows], return_counts=True
    )
    return {
        (first[pair // len(second)], second[pair % len(second)]): count
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
    }


def _how_to_map(missing: Sequence[str], known: Mapping[str, str]) -> str:
    """Return advice on how to map missing roles, including class and score if they are missing too."""
    words = ["image=NAME"] if "image" in missing else []
    if known.keys().isdisjoint((*_NAMES, *_LATE_NAMES, *_NUMBERS)):
        words.append("class=NAME")
    if "box" in missing:
        words.append("x1=NAME y1=NAME x2=NAME y2=NAME")
    score = ", and score=NAME for detections" if known.keys().isdisjoint(_SCORES) else ""
    return f"{say_columns(' '.join(words))}{score}; --gt-columns and --dt-columns where the two files differ"


def say_columns(words: str) -> str:
    """Return advice on how to map these roles (such as ``class=NAME``)."""
    return f"name {'the columns' if ' ' in words else 'the column'}: --columns {words} (in Python columns=)"


def absent_of(column_map: ColumnMap | None, names: Sequence[str]) -> str:
    """Return the likely cause of a missing role: a mapped column that the table does not have."""
    missing = [] if column_map is None else column_map.missing(names)
    if column_map is None or not missing:
        return ""
    near = checks.nearest(missing[0], [*map(str, names)][: checks.MOST_COMPARED])
    return f"{column_map.name} names a column {missing[0]!r} that it does not have{near and f'; {near}'}"


def absent_score(column_map: ColumnMap | None, names: Sequence[str], place: str) -> FileFormatError | None:
    """Return the error for a mapped score column that a table does not have; None if not applicable."""
    score = None if column_map is None else column_map.columns.get("score")
    if score is None or score in names:
        return None
    return FileFormatError(
        "detections",
        "have a column score or confidence",
        got=f"only {short_list(names)}",
        place=place,
        cause=absent_of(column_map, names),
    )


def late_name(names: Sequence[str], column_map: ColumnMap | None = None) -> str | None:
    """Return a column such as ``name`` that may hold class names; None if the user mapped the class."""
    mapped = {} if column_map is None else column_map.columns
    if not mapped.keys().isdisjoint((*_NAMES, *_LATE_NAMES, *_NUMBERS)):
        return None
    others = [name for name in names if name not in mapped.values()]
    return next((name for key in _LATE_NAMES for name in others if _normalize(name) == key), None)


def is_box(name: str, *, columns: int | None = None, column_map: ColumnMap | None = None) -> bool:
    """Whether a column belongs to a box of one or four columns."""
    part = _role_of(name, column_map)
    return any(part in keys for keys, _ in _BOXES if columns in (None, len(keys)))


def has_part(name: str, *, column_map: ColumnMap | None = None) -> bool:
    """Whether a column belongs to the box, the class or the score."""
    others = (*_NAMES, *_LATE_NAMES, *_NUMBERS, *_SCORES)
    return is_box(name, column_map=column_map) or _role_of(name, column_map) in others


def _role_of(name: str, column_map: ColumnMap | None) -> str:
    """Return the role of a column in the user's mapping, or its normalized name."""
    mapped = {} if column_map is None else column_map.columns
    return next((part for part, column in mapped.items() if column == name), _normalize(name))


def _single_column(known: dict[str, str], keys: Sequence[str], place: str) -> str | None:
    """Return the column with the first of these names; raise if there are several."""
    columns = [known[key] for key in keys if key in known]
    if len(columns) > 1 and not {"class", "category_id"} <= set(known.values()):  # boxscore writes both
        raise InputError(
            "a table of boxes",
            "have one column of class names",
            got=" and ".join(map(repr, columns)),
            place=place,
            cause="rename the others",
        )
    return columns[0] if columns else None


def _reject_unsupported(known: dict[str, str], names: Sequence[str], place: str) -> None:
    """Reject tables that do not have a box per row."""
    if "predictionstring" in known:
        raise InputError(
            "a table of boxes",
            "have a row per box",
            got="a column PredictionString, which holds all boxes of an image in one text",
            place=place,
            cause="write a row per box: image,class,score,xmin,ymin,xmax,ymax",
        )
    if "maskpath" in known:
        raise InputError(
            "masks of Open Images",
            "be in a column Mask, next to ImageWidth and ImageHeight",
            got="a column MaskPath, the names of PNG files",
            place=place,
            cause="write base64(zlib(counts of a COCO RLE)) of each mask, as in the challenge files",
        )
    if {"x1", "y1", "x2", "y2", "x3", "y3"} <= set(known):
        raise InputError(
            "a table of boxes",
            "have upright boxes",
            got=f"more than two corners, {short_list(names)}",
            place=place,
            cause="boxscore reads rotated boxes from COCO and DOTA files",
        )
