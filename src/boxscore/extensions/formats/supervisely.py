"""Read Supervisely projects: a folder with ``meta.json`` and ``<data set>/ann/<image>.json``.

Conventions
-----------
- The corners of a rectangle are inclusive pixels, as in Supervisely's export to COCO: the width is their
  difference plus 1.
- Polygons are objects too, with their holes filled. Bitmaps, points and lines are skipped with a warning.
- The image set selects a data set of the project; by default all are read.

References
----------
https://docs.supervisely.com/data-organization/00_ann_format_navi
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore._utils import checks
from boxscore._utils.files import is_file
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.formats._gathered import Gathered, Origin, Size, decoded
from boxscore.extensions.formats._json_folders import first_json, json_files
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Class(msgspec.Struct, gc=False):
    title: str


class _Meta(msgspec.Struct, gc=False):
    classes: list[_Class] = []


class _Points(msgspec.Struct, gc=False):
    exterior: list[tuple[float, float]] = []


class _Object(msgspec.Struct, gc=False):
    class_title: str = msgspec.field(name="classTitle")
    geometry_type: str = msgspec.field(default="rectangle", name="geometryType")
    points: _Points = msgspec.field(default_factory=_Points)


class _File(msgspec.Struct, gc=False):
    objects: list[_Object]
    size: Size = msgspec.field(default_factory=Size)
    tags: Any = None


class SuperviselyFormat(RowFormat):
    """Supervisely projects."""

    name = "supervisely"
    folder_endings = (".json",)
    boxes = "xyxy"
    takes = frozenset({"image_set"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a project, a data set with ``ann``, or a folder of annotations."""
        if not sniffer.is_folder:
            return None
        meta = sniffer.inside("meta.json")
        if meta is not None and not meta.is_folder and meta.has_keys("classes", "title"):
            return "a project of Supervisely"
        inside = sniffer.inside("ann")
        first = first_json(inside if inside is not None and inside.is_folder else sniffer)
        of_ann = first is not None and first.has_keys("objects", "size")
        return "a data set of Supervisely" if of_ann else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the annotations of one or all data sets."""
        # The class list is in the project's file, next to the data set or up to two folders above it.
        folders = _folders(path, options.image_set)
        meta = next(
            (near for near in (path, *path.absolute().parents[:2]) if is_file(near / "meta.json")), None
        )
        classes = None
        if meta is not None:
            of_meta = ("meta.json", "an object with classes")
            project = decoded(meta / "meta.json", _Meta, record="class", whole=of_meta)
            classes = [class_.title for class_ in project.classes] or None
        # Name an image by its file, prefixed with the data set if there are several.
        gathered = Gathered(path, options)
        whole = ("an annotation of Supervisely", "an object with objects")
        for folder in folders:
            for file in json_files(folder, depth=0):
                # Each annotation file is an image with its objects.
                content = decoded(file, _File, record="object", whole=whole)
                name = file.name[: -len(".json")]
                name = f"{folder.parent.name}/{name}" if len(folders) > 1 else name
                image = gathered.image(name, content.size.width, content.size.height)
                for tag in content.tags if isinstance(content.tags, list) else ():
                    gathered.label_image(str(tag.get("name", "")) if isinstance(tag, dict) else str(tag))
                for number, class_ in enumerate(content.objects):
                    _add(class_, image, Origin("object", number, file), gathered)
        return gathered.rows(of_results=of_results, classes=classes)


FORMAT = SuperviselyFormat()


def _folders(path: Path, image_set: object) -> list[Path]:
    """Return the folders of annotations."""
    # Without meta.json in it, the path is one data set or its folder of annotations.
    if not (path / "meta.json").is_file():
        if image_set is not None:
            rule = "be left out where one data set is given"
            raise InputError("image_set", rule, got=repr(str(image_set)), place=str(path))
        return [path / "ann" if (path / "ann").is_dir() else path]
    # A project: one or all of its data sets.
    folders = sorted(folder for folder in path.glob("*/ann") if folder.is_dir())
    if image_set is not None:
        known = [folder.parent.name for folder in folders]
        if str(image_set) not in known:
            cause, got = checks.did_you_mean(image_set, known), repr(str(image_set))
            rule = "be a data set of the project"
            raise InputError("image_set", rule, got=got, place=str(path), cause=cause)
        folders = [path / str(image_set) / "ann"]
    if not folders:
        rule = "have data sets with a folder ann"
        raise FileFormatError("a project of Supervisely", rule, got="none", place=str(path))
    return folders


def _add(item: _Object, image: int, origin: Origin, gathered: Gathered) -> None:
    flat = [number for point in item.points.exterior for number in point]
    if item.geometry_type == "rectangle":
        if len(flat) != 4:
            got = f"{len(flat) // 2} points"
            raise FileFormatError("a rectangle", "have two points", got=got, place=str(origin))
        gathered.add_box(image, item.class_title, gathered.inclusive(flat), "xyxy", origin)
    elif item.geometry_type == "polygon":
        gathered.add_polygon(image, item.class_title, flat, origin)
    else:
        gathered.leave_out(item.geometry_type[:20])
