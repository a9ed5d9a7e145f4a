"""Read regions: lists of points in JSON, GeoJSON, boxes in CSV, PNG masks, and objects of any other format.

Conventions
-----------
- In JSON, a region is a list of points; two points are opposite corners of a box. A file is one region, a
  list of them, or an object with the regions of each image by name.
- Regions of no image, or of the image ``*``, are those of every image that has no regions of its own.
- Numbers without a unit are fractions of the image size if none is above 1.
- If the objects of a file have several classes, the user chooses those that are regions: ``FILE:CLASS``.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import read_text
from boxscore._utils.given_paths import path_of
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.base import MaskColumn
from boxscore.data.box_reading import LARGEST_FRACTION
from boxscore.data.column_names import ColumnParts, column_parts
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.masks._png import read_labels
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.oriented.oriented import corners_of
from boxscore.extensions.oriented.quadrilaterals import corners_of_boxes
from boxscore.extensions.regions.shapes import Shape, checked_ring
from boxscore.formats.reading import read_ground_truth, read_options

RegionsLike: TypeAlias = "str | Path | Sequence[Any] | Mapping[str, Any]"
"""A path, or values as in JSON."""

EVERY = "*"
"""The image whose regions are those of every image."""

LARGEST_FILE = 1 << 28
"""Maximum bytes of a JSON or CSV file of regions."""

_POINTS = "a list of points [[x, y], ...], where two points are opposite corners of a box"

_IMAGE_KEYS = ("image", "image_id", "file_name", "filename")
_CLASS_KEYS = ("class", "label", "name")


class Region(NamedTuple):
    """One region."""

    image: Id | None
    """None: of every image."""
    shape: Shape
    label: str
    """Its class; may be empty."""
    place: str


class RegionFile(NamedTuple):
    """The regions of a file."""

    regions: list[Region]
    source: str
    fractions: bool
    """Whether coordinates are fractions of the image size."""
    sizes: Mapping[Id, tuple[float, float]] = {}
    """Width and height of images, where the file has them."""
    only_image: Id | None = None
    """The only image of a file, whose regions are of every image."""


def read_regions(value: RegionsLike, name: str) -> RegionFile:
    """Read regions from a path, ``FILE:CLASS,CLASS`` or JSON values; ``name`` is that of the option."""
    if not isinstance(value, (str, os.PathLike)):
        found = _of_json(value, name)
        if found is None:
            raise InputError(name, f"be a path, or {_POINTS}, or have these by image", got=repr(value)[:60])
        return _checked(found, name)
    path, labels = _path_and_classes(value)
    if not path.exists():
        raise InputError(name, "be a file or folder of regions", got=repr(str(value)))
    file = _checked(_read(path), name)
    known = dict.fromkeys(region.label for region in file.regions)
    if labels is None and len(known) > 1:
        first = next(filter(None, known))
        raise InputError(
            name,
            "say which classes are regions if a file has several",
            got=short_list(known),
            place=str(path),
            cause=f"type {path}:{first}, or {path}:{EVERY} for all of them",
        )
    if labels is None or labels == [EVERY]:
        return file
    for label in labels:
        if label not in known:
            cause = checks.did_you_mean(label, known)
            raise InputError(name, "name classes of the file", got=repr(label), place=str(path), cause=cause)
    return file._replace(regions=[region for region in file.regions if region.label in labels])


def _path_and_classes(value: str | os.PathLike[str]) -> tuple[Path, list[str] | None]:
    """Split ``FILE:CLASS,CLASS``; a path that exists is never split."""
    text = os.fspath(value)
    before, colon, after = text.rpartition(":")
    if not path_of(text).exists() and colon and path_of(before).exists():
        return path_of(before), [label.strip() for label in after.split(",")]
    return path_of(text), None


def _read(path: Path) -> RegionFile:
    ending = "" if path.is_dir() else path.suffix.lower()
    if ending == ".png":
        code = _code_of(Masks([read_labels(path) != 0]))
        height, width = code["size"]
        only = [Region(None, code, "", str(path))]
        return RegionFile(only, str(path), False, {EVERY: (float(width), float(height))})
    if ending in (".csv", ".tsv"):
        return _of_table(path, "\t" if ending == ".tsv" else ",")
    if ending not in (".json", ".geojson"):
        return _of_objects(path)
    text = read_text(path, "a file of regions", largest=LARGEST_FILE)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _of_objects(path)  # the reader of its format names the error
    found = _of_json(value, str(path))
    try:
        return _of_objects(path) if found is None else found
    except FileFormatError as error:
        if error.name != "ground truth":
            raise
        # No format has the file.
        got = repr(text[:60])
        raise FileFormatError("a file of regions", f"be {_POINTS}", got=got, place=str(path)) from None


def _code_of(masks: MaskColumn) -> dict[str, Any]:
    """Return the only mask of a column as a compressed RLE of text."""
    (code,) = masks.codes()
    counts = code["counts"]
    return {"size": list(code["size"]), "counts": counts.decode() if isinstance(counts, bytes) else counts}


def _checked(file: RegionFile, name: str) -> RegionFile:
    """Check that there are regions, and that each polygon has an area and does not cross itself."""
    if not file.regions:
        raise InputError(name, "have at least one region", got="none", place=file.source)
    checked = [
        region
        if isinstance(region.shape, Mapping)
        else region._replace(shape=tuple(checked_ring(ring, region.place) for ring in region.shape))
        for region in file.regions
    ]
    return file._replace(regions=checked)


# ---------------------------------------------------------------- lists of points


def _of_json(value: Any, source: str) -> RegionFile | None:
    """Read JSON values; None if they have another form."""
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        if {"features", "geometry", "coordinates"} & value.keys():
            return _with_units(list(_of_geojson(value, source)), source)
        return None
    if isinstance(value, Mapping) and value.keys() == {"polygons"}:  # as supervision writes zones
        value = value["polygons"]
    if isinstance(value, Mapping):
        if not value or not all(map(_holds_points, value.values())):
            return None
        by_image = value.items()
    elif _holds_points(value):
        by_image = {None: value}.items()
    else:
        return None
    regions = []
    for image, listed in by_image:
        of_image = source if image is None else f"image {image!r} of {source}"
        several = listed if _is_list(listed[0]) and _is_list(listed[0][0]) else [listed]
        for number, points in enumerate(several):
            place = f"region {number} of {of_image}"
            regions.append(Region(_named(image), (_ring(points, place),), "", place))
    return _with_units(regions, source)


def _named(image: Any) -> Id | None:
    return None if image in (None, EVERY) else image


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and len(value) > 0


def _holds_points(value: Any) -> bool:
    """Whether the first value in nested lists is a number."""
    is_list = _is_list(value)
    while _is_list(value):
        value = value[0]
    return is_list and isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _ring(points: Any, place: str) -> FloatArray:
    """Return points [V, 2]; those of two opposite corners are the four of the box."""
    if not _is_list(points) or not all(_is_list(point) and len(point) >= 2 for point in points):
        raise InputError("a region", f"be {_POINTS}", got=repr(points)[:60], place=place)
    try:
        ring = checks.float_array([list(point[:2]) for point in points], name="a region", columns=2)
    except InputError:
        raise InputError("a region", f"be {_POINTS}", got=repr(points)[:60], place=place) from None
    if len(ring) == 2:
        ring = corners_of_boxes(np.concatenate([ring.min(axis=0), ring.max(axis=0)])[None]).reshape(4, 2)
    return ring


def _of_geojson(value: Mapping[str, Any], source: str) -> Iterator[Region]:
    """Yield the polygons of a GeoJSON object; the properties of a feature may name the image and class."""
    features: Any = value.get("features", [value])
    for number, feature in enumerate(features if _is_list(features) else []):
        place = f"feature {number} of {source}"
        geometry = feature.get("geometry", feature) if isinstance(feature, Mapping) else None
        kind = geometry.get("type") if isinstance(geometry, Mapping) else None
        polygons: Any = geometry.get("coordinates") if isinstance(geometry, Mapping) else None
        if kind not in ("Polygon", "MultiPolygon") or not _is_list(polygons):
            got = f"{kind!r}" if kind not in ("Polygon", "MultiPolygon") else "no coordinates"
            raise FileFormatError("a region", "be a Polygon or MultiPolygon", got=got, place=place)
        said = feature.get("properties")
        properties = said if isinstance(said, Mapping) else {}
        image = next((properties[key] for key in _IMAGE_KEYS if key in properties), None)
        label = next((properties[key] for key in _CLASS_KEYS if key in properties), "")
        if isinstance(image, bool) or not isinstance(image, (int, str, type(None))):
            raise FileFormatError("an image", "be a name or number", got=repr(image)[:60], place=place)
        for rings in [polygons] if kind == "Polygon" else polygons:
            if not _is_list(rings):
                raise FileFormatError("a polygon", "be a list of rings", got=repr(rings)[:60], place=place)
            yield Region(_named(image), tuple(_ring(ring, place) for ring in rings), str(label), place)


def _with_units(regions: list[Region], source: str) -> RegionFile:
    """Decide whether coordinates are fractions: no value is above 1."""
    largest = max((float(np.abs(ring).max()) for region in regions for ring in region.shape), default=0.0)
    if 1 < largest <= LARGEST_FRACTION:
        raise InputError(
            "regions",
            "be in pixels, or fractions up to 1",
            got=f"a largest value of {largest:g}",
            place=source,
        )
    return RegionFile(regions, source, fractions=largest <= 1)


# ---------------------------------------------------------------- tables and other formats


def _of_table(path: Path, delimiter: str) -> RegionFile:
    """Read boxes from a table; the image and the class may be missing."""
    lines = csv.reader(
        io.StringIO(read_text(path, "a file of regions", largest=LARGEST_FILE)), delimiter=delimiter
    )
    try:
        names, *rows = [line for line in lines if line] or [[]]
    except csv.Error as error:
        raise FileFormatError("a table", "be valid CSV", got=str(error), place=str(path)) from None
    parts = _parts_of(names, str(path))
    if parts is None:  # without a column of the image, regions of every image
        names, rows = [*names, "image"], [[*row, EVERY] for row in rows]
        parts = _parts_of(names, str(path))
    if parts is None:
        rule = "have the columns of a box: x1,y1,x2,y2, or left,top,width,height"
        raise FileFormatError("a table of regions", rule, got=short_list(names[:-1]), place=str(path))
    if parts.box_format is None or len(parts.box) != 4:
        rule = "have columns that say the form of boxes: x1,y1,x2,y2, or left,top,width,height"
        raise FileFormatError("a table of regions", rule, got=short_list(names), place=str(path))
    regions = []
    for number, row in enumerate(rows, start=2):
        place = f"line {number} of {path}"
        if len(row) != len(names):
            rule = f"have {len(names)} values"
            raise FileFormatError("a line", rule, got=f"{len(row)} values", place=place)
        values = dict(zip(names, row, strict=True))
        try:
            a, b, c, d = (checks.plain_number(values[name]) for name in parts.box)
        except ValueError:
            got = ", ".join(values[name] for name in parts.box)
            raise FileFormatError("a box", "be four numbers", got=repr(got)[:60], place=place) from None
        corners = {
            "xyxy": [[a, b], [c, d]],
            "xywh": [[a, b], [a + c, b + d]],
            "cxcywh": [[a - c / 2, b - d / 2], [a + c / 2, b + d / 2]],
        }[parts.box_format]
        if corners[0][0] >= corners[1][0] or corners[0][1] >= corners[1][1]:
            raise FileFormatError("a box", "have sides above 0", got=(a, b, c, d), place=place)
        label = parts.class_name or parts.class_id
        regions.append(
            Region(
                _named(values[parts.image]),
                (_ring(corners, place),),
                "" if label is None else values[label],
                place,
            )
        )
    return _with_units(regions, str(path))


def _parts_of(names: Sequence[str], place: str) -> ColumnParts | None:
    """Return the columns by role; None without those of an image and a box."""
    try:
        return column_parts(names, place=place)
    except InputError:
        return None


def _read_objects(path: Path) -> GroundTruth:
    """Read ground truth; messages that advise its options, which regions lack, name boxscore convert."""
    call = f"boxscore convert --gt {shlex.quote(str(path))} --to coco --output regions.json --"

    def advice(message: object) -> str:
        return re.sub(r"(?<![\w-])--(?=gt-|swap-image-sizes)", lambda _: call, str(message))

    def report(warning: BoxscoreWarning) -> None:
        warn_user(BoxscoreWarning(advice(warning), code=warning.code, severity=warning.severity))

    options = dataclasses.replace(read_options(instances=("masks",), needs_areas=False), report=report)
    try:
        return read_ground_truth(path, options)
    except InputError as error:
        if advice(error) == str(error):
            raise
        raise type(error)(advice(error)) from None


def _of_objects(path: Path) -> RegionFile:
    """Read the objects of a ground truth as regions."""
    table = _read_objects(path)
    names = [
        identifier if name is None else name
        for identifier, name in zip(table.images.ids.tolist(), table.images.file_names.tolist(), strict=True)
    ]
    only = names[0] if len(names) == 1 and names[0] != EVERY else None
    corners = corners_of(table).reshape(-1, 4, 2)
    masks = table.masks
    given: list[Any] = [None] * len(table) if masks is None else masks.given
    regions = []
    for row, (image, category) in enumerate(zip(table.image.tolist(), table.category.tolist(), strict=True)):
        place = f"object {row} of {path}"
        label = str(table.categories.names[category])
        if isinstance(given[row], list):
            if any(len(points) % 2 for points in given[row]):
                rule = "have an x and a y for each point"
                raise FileFormatError("a polygon", rule, got="an odd number of values", place=place)
            shapes: list[Shape] = [
                (np.array(points, dtype=np.float64).reshape(-1, 2),) for points in given[row]
            ]
        elif masks is not None and given[row] is not None:
            shapes = [_code_of(masks[np.array([row])])]
        else:
            shapes = [(corners[row],)]
        named = None if only is not None else _named(names[image])
        regions += [Region(named, shape, label, place) for shape in shapes]
    sizes = {
        name: (width, height)
        for name, (width, height) in zip(names, table.images.sizes.tolist(), strict=True)
        if width == width
    }
    return RegionFile(regions, str(path), table.units != "pixels", sizes, only)
