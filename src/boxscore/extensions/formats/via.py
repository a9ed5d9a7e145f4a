"""Read VGG Image Annotator (VIA) files of version 1 and 2, JSON and CSV.

Conventions
-----------
- ``regions`` is a list in version 2, a mapping in version 1. CSV has a line per region, with JSON in cells,
  or a line with ``region_count`` 0. Shapes are in pixels; sizes of images are unknown.
- The class is the only attribute of the regions, the one called ``label``, ``class``, ``category`` or
  ``name``, or the one whose values are in the given class list. Otherwise a class list is required.

References
----------
https://www.robots.ox.ac.uk/~vgg/software/via/
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from boxscore._utils.files import read_text
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.formats._gathered import LARGEST, Gathered, Origin, decoded, decoded_text
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

USUAL = ("label", "class", "category", "name")
"""Attribute names that mean the class, in order of preference."""

COLUMN = "region_shape_attributes"
"""Column of CSV that no other table has."""


class _Shape(msgspec.Struct, gc=False):
    name: str
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    cx: float = 0
    cy: float = 0
    r: float = 0
    rx: float = 0
    ry: float = 0
    all_points_x: list[float] = []
    all_points_y: list[float] = []


class _Region(msgspec.Struct, gc=False):
    shape_attributes: _Shape
    region_attributes: dict[str, Any] = {}


class _Image(msgspec.Struct, gc=False):
    filename: str
    regions: list[_Region] | dict[str, _Region] | None = None
    file_attributes: Any = None


class _Project(msgspec.Struct, gc=False):
    images: dict[str, _Image] = msgspec.field(name="_via_img_metadata")


class ViaFormat(RowFormat):
    """VIA's JSON and CSV files."""

    name = "via"
    boxes = "xyxy"
    takes = frozenset({"classes", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the keys of regions or of a project."""
        if not sniffer.text.lstrip().startswith("{"):
            return "VIA's CSV" if COLUMN in sniffer.first_line else None
        if sniffer.has_keys("_via_img_metadata"):
            return "a project of VIA"
        regions = sniffer.has_keys("filename", "regions")
        return (
            "VIA's JSON"
            if regions and (sniffer.has_keys("size") or sniffer.has_keys("shape_attributes"))
            else None
        )

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every region."""
        whole = ("VIA's JSON", "an object of images")
        sniffer = Sniffer(path)
        if not sniffer.is_json:
            images = _images_of_csv(path)
        elif sniffer.has_keys("_via_img_metadata"):
            images = [*decoded(path, _Project, record="image", whole=whole).images.values()]
        else:
            images = [*decoded(path, dict[str, _Image], record="image", whole=whole).values()]
        regions = [(image.filename, _region_list(image)) for image in images]
        of_images = [image.file_attributes for image in images]
        attribute = _label(path, [region for _, listed in regions for region in listed], options.classes)
        gathered = Gathered(path, options)
        for name, listed in regions:
            image = gathered.image(name)
            for number, region in enumerate(listed):
                origin = Origin(f"image {name!r}, region", number, path)
                label = _value(region.region_attributes.get(attribute), origin)
                _add(region.shape_attributes, label, image, origin, gathered)
        # An attribute of a file labels the image.
        for attributes in of_images:
            for value in attributes.values() if isinstance(attributes, dict) else ():
                if _text_of(value):
                    gathered.label_image(_text_of(value))
        return gathered.rows(of_results=of_results)


FORMAT = ViaFormat()


def _images_of_csv(path: Path) -> list[_Image]:
    """Return the images of a CSV file with their regions."""
    text = read_text(path, "VIA's CSV", largest=LARGEST)
    images: dict[tuple[str, str | None], _Image] = {}
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            place = Path(f"{path}, line {reader.line_num}")
            name, shape = row.get("filename") or row.get("#filename"), row.get(COLUMN)
            if not name or shape is None:
                rule = f"have filename and {COLUMN}"
                raise FileFormatError("a line of VIA's CSV", rule, got="not both", place=str(place))
            # Two images may have one name: the size tells them apart, as in VIA's JSON.
            image = images.setdefault((name, row.get("file_size")), _Image(name, []))
            if shape.strip() not in ("", "{}") and isinstance(image.regions, list):
                values = (shape, row.get("region_attributes") or "{}")
                region = f'{{"shape_attributes": {values[0]}, "region_attributes": {values[1]}}}'.encode()
                whole = ("a region of VIA's CSV", "two JSON objects")
                image.regions.append(decoded_text(region, place, _Region, record="region", whole=whole))
    except csv.Error as error:
        raise FileFormatError(f"{path}: cannot be read: {error}.") from None
    return [*images.values()]


def _region_list(image: _Image) -> list[_Region]:
    regions = image.regions or []
    return list(regions.values()) if isinstance(regions, dict) else regions


def _label(path: Path, regions: Sequence[_Region], classes: Sequence[str] | None) -> str:
    """Return the attribute that is the class."""
    # Collect the values of every attribute.
    values: dict[str, set[str]] = {}
    for region in regions:
        for name, value in region.region_attributes.items():
            values.setdefault(name, set()).update([_text_of(value)] if _text_of(value) else [])
    if len(values) == 1:
        return next(iter(values))
    # With a class list, take the only attribute whose values are all in it.
    if classes is not None:
        fitting = [
            name for name, of_attribute in values.items() if of_attribute and of_attribute <= set(classes)
        ]
        if len(fitting) == 1:
            return fitting[0]
    # Otherwise take the one with a usual name.
    by_name = {name.strip().lower(): name for name in values}
    usual = next((by_name[name] for name in USUAL if name in by_name), None)
    if usual is not None or not regions:
        return usual or ""
    raise InputError(
        "the class of a region",
        "be its only attribute, or the one called label, class, category or name",
        got=", ".join(map(repr, sorted(values)[:8])) or "no attribute",
        place=str(path),
        cause="give the class list (--gt-classes FILE): the attribute whose values are in it is taken"
        if values
        else "add an attribute with the class to the regions in VIA",
    )


def _text_of(value: Any) -> str:
    """Return the value of an attribute: text, a number, or the only ticked checkbox."""
    if isinstance(value, Mapping):
        ticked = [name for name, state in value.items() if state]
        return ticked[0] if len(ticked) == 1 else ""
    return str(value).strip() if isinstance(value, (str, int, float)) else ""


def _value(value: Any, origin: Origin) -> str:
    label = _text_of(value)
    if not label:
        got = "none" if value is None else repr(value)[:60]
        raise FileFormatError("a region", "have one class", got=got, place=str(origin))
    return label


def _add(shape: _Shape, label: str, image: int, origin: Origin, gathered: Gathered) -> None:
    if shape.name == "rect":
        numbers = (shape.x, shape.y, shape.width, shape.height)
        gathered.add_box(image, label, numbers, "xywh", origin)
    elif shape.name in ("circle", "ellipse"):
        across, down = (shape.r, shape.r) if shape.name == "circle" else (shape.rx, shape.ry)
        box = (shape.cx - across, shape.cy - down, shape.cx + across, shape.cy + down)
        gathered.add(image, label, box, origin)
    elif shape.name == "polygon":
        if len(shape.all_points_x) != len(shape.all_points_y):
            got = f"{len(shape.all_points_x)} and {len(shape.all_points_y)}"
            raise FileFormatError("a polygon", "have as many x as y", got=got, place=str(origin))
        pairs = zip(shape.all_points_x, shape.all_points_y, strict=True)
        gathered.add_polygon(image, label, [number for pair in pairs for number in pair], origin)
    else:
        gathered.leave_out(shape.name[:20])
