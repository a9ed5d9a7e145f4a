"""Read SuperAnnotate: a JSON file per image, ``a.jpg.json`` or, in older exports, ``a.jpg___objects.json``.

Conventions
-----------
- An image is the ``name`` in ``metadata``; in older files without it, the name of the file.
- ``probability`` is 100 for objects drawn by hand, so it is not a score.
- Objects without a class are left out, like points, lines, ellipses and cuboids, with a warning.
- ``exclude`` of a polygon has its holes, which make the mask a run-length encoding.
- ``classes/classes.json`` of an export lists the classes.

References
----------
https://doc.superannotate.com/docs/vector-json, superannotate-python-sdk ``schemas``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from boxscore._utils.files import is_file
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded
from boxscore.extensions.formats._json_folders import first_json, image_of, json_files
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

_OLD = "___objects.json"
_CLASSES = Path("classes", "classes.json")


class _Metadata(msgspec.Struct, gc=False):
    name: str | None = None
    width: float | None = None
    height: float | None = None
    duration: float | None = None


class _Instance(msgspec.Struct, gc=False):
    type: str | None = None
    class_name: str | None = msgspec.field(default=None, name="className")
    class_id: int | None = msgspec.field(default=None, name="classId")
    points: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))
    exclude: list[list[float]] | None = None
    name: str | None = None
    width: float | None = None
    height: float | None = None
    meta: Any = None


class _File(msgspec.Struct, gc=False):
    metadata: _Metadata
    instances: list[_Instance]


_EITHER: Any = _File | list[_Instance]


class _Class(msgspec.Struct, gc=False):
    name: str


class SuperAnnotateFormat(RowFormat):
    """Folders of SuperAnnotate's JSON files."""

    name = "superannotate"
    folder_endings = (".json",)
    boxes = "xyxy"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a file of one image, or a folder whose first JSON file is one."""
        file = first_json(sniffer)
        if file is None or file.has_keys("images", "annotations"):
            return None
        new = file.text.lstrip().startswith("{") and file.has_keys("metadata", "instances")
        old = file.path.name.endswith(_OLD) and file.text.lstrip().startswith("[")
        if not (new or old):
            return None
        return "a folder of SuperAnnotate's JSON" if sniffer.is_folder else "SuperAnnotate's JSON"

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every file."""
        # The class list is a file in a folder of its own.
        home = path if path.is_dir() else path.parent
        classes = None
        if is_file(home / _CLASSES):
            of_list = ("classes.json", "a list of classes")
            listed = decoded(home / _CLASSES, list[_Class], record="class", whole=of_list)
            classes = list(dict.fromkeys(class_.name for class_ in listed)) or None
        gathered = Gathered(path, options)
        for file in json_files(path):
            if file.relative_to(home) == _CLASSES:
                continue
            whole = ("SuperAnnotate's JSON", "an object with metadata and instances")
            content: Any = decoded(file, _EITHER, record="instance", whole=whole)
            if isinstance(content, list):
                # In older files, the size is an instance too.
                size = next((one for one in content if one.type == "meta" and one.width), _Instance())
                metadata = _Metadata(None, size.width, size.height)
                instances = [one for one in content if one.type not in ("meta", "comment")]
            else:
                metadata, instances = content.metadata, content.instances
            if metadata.duration is not None or any(one.meta is not None for one in instances):
                cause = "boxscore evaluates images, not videos"
                raise FileFormatError("a file", "be of an image", got="a video", place=str(file), cause=cause)
            name = metadata.name or image_of(file, path)
            image = gathered.image(name, metadata.width, metadata.height)
            for number, instance in enumerate(instances):
                _add(instance, image, Origin("instance", number, file), gathered)
        return gathered.rows(of_results=of_results, classes=classes)


FORMAT = SuperAnnotateFormat()

_CORNERS = {
    "bbox": ("x1", "y1", "x2", "y2"),
    "rbbox": tuple(f"{axis}{n}" for n in range(1, 5) for axis in "xy"),
}


def _add(instance: _Instance, image: int, origin: Origin, gathered: Gathered) -> None:
    kind, label = instance.type or "none", instance.class_name
    if kind == "tag":
        gathered.label_image(label or "a tag")
        return
    if kind not in (*_CORNERS, "polygon"):
        gathered.leave_out("", f"of type {kind[:20]}")
        return
    if not label or instance.class_id == -1:
        gathered.leave_out("", "without a class")
        return
    # Boxes name their corners, polygons list numbers.
    of_kind: Any = list[float] if kind == "polygon" else dict[str, float]
    try:
        points = msgspec.json.decode(bytes(instance.points), type=of_kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        rule = "be x1, y1, x2 and y2" if kind == "bbox" else "be numbers"
        got = " ".join(bytes(instance.points).decode(errors="replace").split())[:40]
        raise FileFormatError(f"points of a {kind}", rule, got=got, place=str(origin)) from None
    if kind == "polygon":
        gathered.add_polygons(image, label, [points], origin, holes=instance.exclude)
        return
    missing = [name for name in _CORNERS[kind] if name not in points]
    if missing:
        raise FileFormatError(f"a {kind}", f"have {missing[0]}", got="none", place=str(origin))
    numbers = [points[name] for name in _CORNERS[kind]]
    if kind == "bbox":
        gathered.add_box(image, label, (numbers[0], numbers[1], numbers[2], numbers[3]), "xyxy", origin)
    else:
        gathered.add_rotated(image, label, np.array(numbers).reshape(4, 2), origin)
