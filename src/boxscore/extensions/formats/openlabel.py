"""Read OpenLABEL files of images: boxes by frame.

Conventions
-----------
- ``val`` of a ``bbox`` is its center and size in pixels. The class is the ``type`` of the object.
- The image of a frame is ``file_name`` of its ``frame_properties``, or ``uri`` of its only stream; if no
  frame has one, the number of the frame, with a note. A file without frames is one image of its own name.
  Sizes are ``width`` and ``height`` of ``frame_properties``.
- Cuboids, polygons, points and the like are left out with a warning.

References
----------
https://www.asam.net/standards/detail/openlabel/
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore._utils.text import counted, short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded
from boxscore.extensions.formats._json_folders import is_coco
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Text(msgspec.Struct, gc=False):
    name: str = ""
    val: Any = None


class _Attributes(msgspec.Struct, gc=False):
    text: list[_Text] = []


class _Box(msgspec.Struct, gc=False):
    val: tuple[float, float, float, float]
    name: str = ""
    coordinate_system: str | None = None
    stream: str | None = None
    attributes: _Attributes = msgspec.field(default_factory=_Attributes)


class _Data(msgspec.Struct, gc=False):
    bbox: list[_Box] = []
    cuboid: list[Any] = []
    rbbox: list[Any] = []
    poly2d: list[Any] = []
    poly3d: list[Any] = []
    point2d: list[Any] = []
    point3d: list[Any] = []


class _FrameObject(msgspec.Struct, gc=False):
    data: _Data = msgspec.field(default_factory=_Data, name="object_data")


class _Frame(msgspec.Struct, gc=False):
    objects: dict[str, _FrameObject] = {}
    properties: dict[str, Any] = msgspec.field(default={}, name="frame_properties")


class _Object(_FrameObject, kw_only=True):
    type: str


class _Content(msgspec.Struct, gc=False):
    objects: dict[str, _Object] = {}
    frames: dict[int, _Frame] = {}


class _File(msgspec.Struct, gc=False):
    openlabel: _Content


class OpenLabelFormat(RowFormat):
    """OpenLABEL files."""

    name = "openlabel"
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the only key of the file."""
        return "OpenLABEL" if sniffer.has_keys("openlabel") and not is_coco(sniffer) else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the boxes of every frame."""
        gathered = Gathered(path, options)
        whole = ("OpenLABEL", "an object with openlabel")
        content = decoded(path, _File, record="object", whole=whole).openlabel
        # Without frames, the file is an image, and has its name.
        frames, names = content.frames, {0: path.stem}
        if frames:
            names = {number: _image_name(frame.properties) for number, frame in frames.items()}
            still = sum(len(item.data.bbox) for item in content.objects.values())
            if still:
                outside = f"{counted(still, 'box')} outside frames"
                if not of_results and not any(
                    item.data.bbox for frame in frames.values() for item in frame.objects.values()
                ):
                    only = f"only {outside}, which have no image"
                    raise FileFormatError("ground truth", "have boxes in frames", got=only, place=str(path))
                warn_user(f"{path}: left out {outside}, which have no image.")
            for static in content.objects.values():
                _leave_out_shapes(static.data, gathered)
        else:
            frames = {0: _Frame(dict(content.objects))}
        if not any(names.values()):
            text = f"{path}: no frame names its image, so images have the numbers of their frames."
            warn_user(BoxscoreWarning(text, severity="note"))
        elif not all(names.values()):
            place = f"frame {next(number for number, name in names.items() if not name)} of {path}"
            raise FileFormatError("a frame", "name its image, as others do", got="no name", place=place)
        for number, frame in sorted(frames.items()):
            width, height = (_side(frame.properties.get(side)) for side in ("width", "height"))
            image = gathered.image(names[number] or number, width, height)
            cameras: set[str] = set()
            for key, item in frame.objects.items():
                _leave_out_shapes(item.data, gathered)
                origin = Origin(f"object {key!r} of frame", number, path)
                cameras |= {_camera(box) for box in item.data.bbox}
                if len(item.data.bbox) > 1 or len(cameras) > 1:
                    got = [box.name for box in item.data.bbox] if len(cameras) < 2 else sorted(cameras)
                    rule = "have one box" if len(cameras) < 2 else "have its boxes in one camera"
                    what = "an object of a frame" if len(cameras) < 2 else "a frame"
                    raise FileFormatError(what, rule, got=short_list(got, 5), place=str(origin))
                for box in item.data.bbox:
                    if key not in content.objects:
                        rule = "be in objects, with its type"
                        raise FileFormatError("an object", rule, got="none", place=str(origin))
                    gathered.add_box(image, content.objects[key].type, box.val, "cxcywh", origin)
        return gathered.rows(of_results=of_results)


FORMAT = OpenLabelFormat()


def _leave_out_shapes(data: _Data, gathered: Gathered) -> None:
    """Count the shapes of an object that are not boxes."""
    for shape in _Data.__struct_fields__[1:]:
        for _ in getattr(data, shape):
            gathered.leave_out(shape)


def _image_name(properties: dict[str, Any]) -> str:
    """Return the name of the image of a frame; empty if it has none, or several streams."""
    streams = properties.get("streams")
    values = list(streams.values()) if isinstance(streams, dict) else []
    inner = [value.get("stream_properties") for value in values if isinstance(value, dict)]
    places = [properties.get("file_name"), properties.get("uri")]
    if len(values) == 1:
        places += [value.get("uri") for value in (*values, *inner) if isinstance(value, dict)]
    return next((name for name in places if isinstance(name, str) and name), "")


def _side(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e9 else None


def _camera(box: _Box) -> str:
    """Return the stream or coordinate system of a box."""
    texts = {text.name: text.val for text in box.attributes.text}
    return str(box.stream or texts.get("stream") or box.coordinate_system or "")
