"""Read data sets of Unity's Perception package: SOLO, and the form before it.

Conventions
-----------
- SOLO is a folder of ``sequence.N/stepM.frame_data.json``, with image sizes. Images of several sequences have
  the same names, so the name of the folder stays: ``sequence.0/step0.camera.png``.
- The form before it is ``captures_000.json``, ..., without image sizes.
- Only 2D boxes are read, in pixels from the top left corner. Every capture is an image.

References
----------
https://github.com/Unity-Technologies/com.unity.perception, ``Documentation~/Schema``
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Corners, Gathered, Origin, decoded, decoded_text
from boxscore.extensions.formats._json_folders import is_coco, json_files
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

_SOLO = ".frame_data.json"
_BOXES = "BoundingBox2DAnnotation"
_DEFINITIONS = "annotation_definitions.json"


class _Value(msgspec.Struct, gc=False):
    """A box of either form."""

    label: str | None = msgspec.field(default=None, name="labelName")
    origin: tuple[float, float] | None = None
    dimension: tuple[float, float] | None = None
    label_name: str | None = None
    x: float | None = None
    y: float | None = None
    width: float | None = None
    height: float | None = None


class _Annotation(msgspec.Struct, gc=False):
    type: str | None = msgspec.field(default=None, name="@type")
    definition: str | None = msgspec.field(default=None, name="annotation_definition")
    values: msgspec.Raw = msgspec.Raw(b"[]")


class _Capture(msgspec.Struct, gc=False):
    filename: str
    dimension: tuple[float, float] = (0, 0)
    annotations: list[_Annotation] = []


class _File(msgspec.Struct, gc=False):
    captures: list[_Capture]


class _Label(msgspec.Struct, gc=False):
    number: int | None = msgspec.field(default=None, name="label_id")
    name: str | None = msgspec.field(default=None, name="label_name")


class _Definition(msgspec.Struct, gc=False):
    id: str | None = None
    type: str | None = msgspec.field(default=None, name="@type")
    spec: list[_Label] | None = None


class _Definitions(msgspec.Struct, gc=False):
    solo: list[_Definition] = msgspec.field(default=[], name="annotationDefinitions")
    older: list[_Definition] = msgspec.field(default=[], name="annotation_definitions")


class UnityFormat(RowFormat):
    """Folders of Unity's Perception package."""

    name = "unity"
    folder_endings = (".json",)
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect captures with annotations, or a folder of such files."""
        if not sniffer.is_folder:
            known = sniffer.has_keys("captures", "annotations") or sniffer.has_keys("captures", "sensor")
            return "captures of Unity's Perception" if known and not is_coco(sniffer) else None
        inner = sniffer.inside(next((name for name in sniffer.names if name.startswith("sequence.")), ""))
        if any(_is_captures(name) for name in sniffer.names):
            return "a folder of captures of Unity's Perception"
        return "a folder of Unity's SOLO" if inner and inner.first_with(_SOLO) else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the 2D boxes of every capture."""
        gathered = Gathered(path, options)
        whole = ("a file of Unity", "an object with captures")
        used: set[str] = set()
        for file in json_files(path):
            if path.is_dir() and not _is_captures(file.name):
                continue
            # In SOLO, a file is next to its images; the name of the folder distinguishes sequences.
            folder = f"{file.parent.name}/" if file.name.endswith(_SOLO) else ""
            for number, capture in enumerate(decoded(file, _File, record="capture", whole=whole).captures):
                origin = Origin("capture", number, file)
                image = gathered.image(folder + capture.filename, *capture.dimension)
                boxes = _boxes(capture.annotations, origin, used)
                for index, (label, box) in enumerate(boxes):
                    place = Origin(f"capture {number}, box", index, file)
                    gathered.add_box(image, label, box, "xywh", place)
        return gathered.rows(of_results=of_results, classes=_classes(path, used))


FORMAT = UnityFormat()


def _is_captures(name: str) -> bool:
    return name.endswith(_SOLO) or (name.startswith("captures_") and name.endswith(".json"))


def _boxes(annotations: list[_Annotation], origin: Origin, used: set[str]) -> list[tuple[str, Corners]]:
    """Return class and box of every object of a capture, and add the definition to those ``used``."""
    # The older form tells its annotations by their values alone: segmentations and keypoints have no width.
    found: list[list[_Value]] = []
    for annotation in annotations:
        text = bytes(annotation.values)
        is_of_boxes = b'"width"' in text if annotation.type is None else annotation.type.endswith(_BOXES)
        if is_of_boxes:
            whole = ("values", "a list of boxes")
            found.append(decoded_text(text, Path(str(origin)), list[_Value], record="value", whole=whole))
            used.add(annotation.definition or annotation.type or "")
    if len(found) > 1:
        rule = "have one annotation of 2D boxes"
        raise FileFormatError("a capture", rule, got=len(found), place=str(origin))
    boxes: list[tuple[str, Corners]] = []
    for number, value in enumerate(found[0] if found else []):
        label = value.label or value.label_name
        x, y = value.origin or (value.x, value.y)
        width, height = value.dimension or (value.width, value.height)
        if not label or x is None or y is None or width is None or height is None:
            rule = "have a label, and origin and dimension, or x, y, width and height"
            raise FileFormatError("a box", rule, got="not all", place=f"box {number} of {origin}")
        boxes.append((label, (x, y, width, height)))
    return boxes


def _classes(path: Path, used: set[str]) -> list[str] | None:
    """Return the names of the definitions of boxes, by number."""
    folder = path if path.is_dir() else path.parent
    if not (folder / _DEFINITIONS).is_file():
        return None
    whole = (_DEFINITIONS, "an object with definitions")
    content = decoded(folder / _DEFINITIONS, _Definitions, record="definition", whole=whole)
    labels = {
        label.number: label.name
        for definition in (*content.solo, *content.older)
        if {definition.id, definition.type} & used
        for label in definition.spec or ()
        if label.number is not None and label.name
    }
    return [labels[number] for number in sorted(labels)] or None
