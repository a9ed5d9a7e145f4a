"""Read CVAT XML 1.1 files: images with their shapes, or the tracks of a video; write "CVAT for images".

Conventions
-----------
- Boxes are ``xtl, ytl, xbr, ybr`` in pixels, from 0. ``rotation`` rotates a box clockwise about its center.
- The images of a video are the frames that the task declares; ``outside="1"`` means absent.
- Polygons, ellipses and masks are objects too; points, lines and skeletons are skipped with a warning.
- The classes are the labels of the task. The image set selects a subset of a project.
- The score of a detection is an attribute of its shape, ``score`` or ``confidence``: CVAT has no place of its
  own for it, and the programs that prepare predictions for review in CVAT write one of the two. Scores of
  ground truth are not read.

References
----------
https://docs.cvat.ai/docs/manual/advanced/xml_format/
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import write_atomically
from boxscore.data.tables import BoxTable
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.formats._gathered import Gathered, rotated_corners
from boxscore.extensions.formats._writing import (
    names_of_images,
    plain_side,
    rows_of_images,
    scores_of,
    sizes_of_images,
    warn_of_lost,
)
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import refuse_shared_names
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._voc_xml import XmlFile, read_xml

MOST_FRAMES = 10_000_000
MOST_PIXELS = 100_000_000
"""Maximum number of pixels of an image with masks."""

_META = ("meta/task", "meta/project", "meta/job")
SCORE = "score"
SCORES = (SCORE, "confidence")
"""Names of attributes that are scores, in any case; the first is written."""


class CvatFormat(RowFormat):
    """CVAT's XML files."""

    name = "cvat"
    folder_endings = (".xml",)
    boxes = "xyxy"
    takes = frozenset({"image_set"})
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": frozenset({"sizes", "file names", "classes"}),
        "detections": frozenset(),
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the root element of a file, or of ``annotations.xml`` in a folder."""
        if sniffer.is_folder:
            only = _only_xml(sniffer)
            return None if only is None else self.detect(Sniffer(only))
        start = sniffer.text[:4096] if sniffer.is_xml else ""
        matches = re.search(r"<annotations[\s>]", start) and re.search(
            r"<(?:meta|image|track|version)\b", start
        )
        return "CVAT's XML" if matches else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read images or tracks."""
        file = read_xml(file_in(path))
        if file.root.tag != "annotations":
            got = f"<{file.root.tag}>"
            raise FileFormatError("CVAT's XML", "be <annotations>", got=got, place=str(file.path))
        gathered = Gathered(path, options)
        tracks = file.root.findall("track")
        if tracks:
            _read_tracks(file, tracks, gathered, scored=of_results)
        else:
            _read_images(file, options.image_set, gathered, scored=of_results)
        labels = itertools.chain.from_iterable(file.root.findall(f"{at}/labels/label/name") for at in _META)
        names = [name.text.strip() for name in labels if name.text and name.text.strip()]
        return gathered.rows(of_results=of_results, classes=list(dict.fromkeys(names)) or None)

    def class_ids(self, table: BoxTable) -> list[Id]:
        """Return the names of classes, which are their ids."""
        names: list[Id] = table.categories.names.tolist()
        return names

    def check_written(self, table: BoxTable) -> None:
        """Reject images without a name or size, and classes of one name."""
        refuse_shared_names(table)
        names = names_of_images(table, "CVAT")
        sizes_of_images(table, "CVAT", names)

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write "CVAT for images 1.1", with the scores of detections as an attribute."""
        self.check_written(table)
        if path.suffix != ".xml":
            raise InputError("the output of CVAT's XML", "end in .xml", got=repr(path.name))
        # Declare the labels, also those without objects, and their attributes.
        root = Element("annotations")
        SubElement(root, "version").text = "1.1"
        labels = SubElement(SubElement(SubElement(root, "meta"), "task"), "labels")
        scores = scores_of(table)
        for name in table.categories.names.tolist():
            label = SubElement(labels, "label")
            SubElement(label, "name").text = name
            if scores is not None:
                score = SubElement(SubElement(label, "attributes"), "attribute")
                for tag, text in (("name", SCORE), ("mutable", "False"), ("input_type", "text")):
                    SubElement(score, tag).text = text
        # Add each image with its boxes.
        names, rows = names_of_images(table, "CVAT"), rows_of_images(table)
        boxes, classes = table.boxes.tolist(), table.categories.names[table.category].tolist()
        for number, (name, size) in enumerate(zip(names, sizes_of_images(table, "CVAT", names), strict=True)):
            sides = {"width": f"{size[0]}", "height": f"{size[1]}"}
            image = SubElement(root, "image", {"id": f"{number}", "name": name, **sides})
            for row in rows[number]:
                corners = zip(("xtl", "ytl", "xbr", "ybr"), boxes[row], strict=True)
                places = {key: f"{plain_side(value)!r}" for key, value in corners}
                box = SubElement(
                    image, "box", {"label": classes[row], "occluded": "0", **places, "z_order": "0"}
                )
                if scores is not None:
                    SubElement(box, "attribute", {"name": SCORE}).text = repr(scores[row])
        indent(root, " ")
        warn_of_lost(table, self, path)
        write_atomically(path, tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


FORMAT = CvatFormat()


def file_in(path: Path) -> Path:
    """Return the file, or the only XML file of the folder."""
    return (_only_xml(Sniffer(path)) or path) if path.is_dir() else path


def _only_xml(sniffer: Sniffer) -> Path | None:
    """Return the only XML file of a folder."""
    files = [sniffer.path / name for name in sniffer.names if name.lower().endswith(".xml")]
    return files[0] if len(files) == 1 and files[0].is_file() else None


class _Where:
    """The position of an element for messages, formatted lazily."""

    def __init__(self, file: XmlFile, element: Element) -> None:
        self.file, self.element = file, element

    def __str__(self) -> str:
        return self.file.place(self.element)


def _read_images(file: XmlFile, image_set: object, gathered: Gathered, *, scored: bool) -> None:
    # Select the images of a subset.
    images = file.root.findall("image")
    subsets = [image.get("subset", "") for image in images]
    if image_set is not None:
        known = sorted(set(subsets) - {""})
        if str(image_set) not in known:
            cause = checks.did_you_mean(image_set, known)
            got, place = repr(str(image_set)), str(file.path)
            raise InputError("image_set", "be a subset of the project", got=got, place=place, cause=cause)
        images = [image for image, subset in zip(images, subsets, strict=True) if subset == str(image_set)]
    # Tasks of a project may use the same image names: prefix them with the subset, then the task.
    names = [image.get("name") or image.get("id") or "" for image in images]
    for attribute in ("subset", "task_id"):  # in a project whose tasks share image names
        if len(set(names)) < len(names):
            folders = [image.get(attribute, "") for image in images]
            names = [
                f"{folder}/{name}" if folder else name for folder, name in zip(folders, names, strict=True)
            ]
    # Add shapes in file order.
    for image, name in zip(images, names, strict=True):
        if not name:
            raise FileFormatError("an image", "have a name", got="none", place=file.place(image))
        width, height = (_number(image, side, file, default=math.nan) for side in ("width", "height"))
        position = gathered.image(name, width, height)
        for shape in image:
            score = _score(shape, file) if scored else None
            _add(shape, shape.get("label"), score, position, image, file, gathered)


def _read_tracks(file: XmlFile, tracks: list[Element], gathered: Gathered, *, scored: bool) -> None:
    # A video states one size for all frames.
    frames = list(_frames(file))
    size = next(
        (element for at in _META if (element := file.root.find(f"{at}/original_size")) is not None), None
    )
    width, height = (
        None if size is None else _plain(size.findtext(side), side, size, file)
        for side in ("width", "height")
    )
    # Add every frame, also without shapes, and frames with shapes beyond the declared range.
    used = {
        int(_number(shape, "frame", file)) for track in tracks for shape in track if shape.tag != "attribute"
    }
    holder = Element("track", {"width": str(width or ""), "height": str(height or "")})
    # Name frames as CVAT does when it exports images.
    positions = {
        frame: gathered.image(frame, width, height, file_name=f"frame_{frame:06d}.png")
        for frame in sorted({*frames, *used})
    }
    # An outside shape ends a visible stretch: the object is absent.
    for track in tracks:
        for shape in track:
            if shape.tag != "attribute" and shape.get("outside", "0") != "1":
                frame = int(_number(shape, "frame", file))
                label = track.get("label") or shape.get("label")
                score = _score(shape, file) if scored else None
                _add(shape, label, score, positions[frame], holder, file, gathered)


def _frames(file: XmlFile) -> Iterator[int]:
    """Return the frame numbers of a video task."""
    task = next((element for at in _META if (element := file.root.find(at)) is not None), None)
    if task is None:
        return
    start, stop = (task.findtext(tag) for tag in ("start_frame", "stop_frame"))
    if not start or not stop:
        return
    first, last = (_plain(text, "a frame", task, file) for text in (start, stop))
    step = re.search(r"step\s*=\s*(\d{1,9})", task.findtext("frame_filter") or "")
    if first < 0 or last - first > MOST_FRAMES:
        rule = f"have at most {MOST_FRAMES:,} frames"
        raise FileFormatError("a task", rule, got=f"{start} to {stop}", place=file.place(task))
    yield from range(int(first), int(last) + 1, max(1, int(step[1])) if step else 1)


def _add(
    shape: Element,
    label: str | None,
    score: float | None,
    image: int,
    holder: Element,
    file: XmlFile,
    gathered: Gathered,
) -> None:
    """Add a shape; ``holder`` has the image size."""
    # A tag labels the image; count points and skeletons as skipped.
    if shape.tag == "tag":
        gathered.label_image(label or "")
    if shape.tag in ("tag", "attribute"):
        return
    if shape.tag not in ("box", "polygon", "ellipse", "mask"):
        gathered.leave_out("", f"<{shape.tag}>")
        return
    origin: Any = _Where(file, shape)
    if not label:
        gathered.leave_out("", f"<{shape.tag}> without label")
        return
    # Polygon points are separated by semicolons, their coordinates by commas.
    if shape.tag == "polygon":
        points = (shape.get("points") or "").replace(";", ",").split(",")
        values = [_plain(text, "points", shape, file) for text in points]
        gathered.add_polygon(image, label, values, origin, score=score)
        return
    if shape.tag == "mask":
        _add_mask(shape, label, score, image, holder, file, gathered)
        return
    rotation = _number(shape, "rotation", file, default=0.0)
    # The bounding box of a rotated ellipse has a closed form; rotation keeps the area.
    if shape.tag == "ellipse":
        x, y, rx, ry = (_number(shape, side, file) for side in ("cx", "cy", "rx", "ry"))
        cosine, sine = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
        across, down = math.hypot(rx * cosine, ry * sine), math.hypot(rx * sine, ry * cosine)
        area = math.pi * abs(rx * ry)
        around = (x - across, y - down, x + across, y + down)
        gathered.add(image, label, around, origin, score=score, area=area)
        return
    # A box; if rotated, keep its corners too.
    x1, y1, x2, y2 = (_number(shape, side, file) for side in ("xtl", "ytl", "xbr", "ybr"))
    if rotation % 360 == 0:
        gathered.add_box(image, label, (x1, y1, x2, y2), "xyxy", origin, score=score)
        return
    center = ((x1 + x2) / 2, (y1 + y2) / 2)
    corners = rotated_corners((x1, y1, x2, y2), rotation, center=center)
    gathered.add_rotated(image, label, corners, origin, score=score)


def _add_mask(
    shape: Element,
    label: str,
    score: float | None,
    image: int,
    holder: Element,
    file: XmlFile,
    gathered: Gathered,
) -> None:
    """Add a mask given as row-wise runs within a box, starting with background."""
    # The mask must be inside its box, and the box inside the image; limit the allocated pixels.
    left, top, width, height = (
        int(_number(shape, side, file)) for side in ("left", "top", "width", "height")
    )
    across = int(_number(holder, "width", file, default=0.0))
    down = int(_number(holder, "height", file, default=0.0))
    inside = left >= 0 and top >= 0 and 0 < width <= across - left and 0 < height <= down - top
    if not inside or across * down > MOST_PIXELS:
        rule = f"be in an image of known size with at most {MOST_PIXELS:,} pixels"
        got = f"{width} x {height} at {left}, {top} in {across} x {down}"
        raise FileFormatError("a mask", rule, got=got, place=file.place(shape))
    # The runs must fill the box exactly.
    runs = [int(_plain(run, "rle", shape, file)) for run in (shape.get("rle") or "").split(",")]
    if min(runs) < 0 or sum(runs) != width * height:
        rule = f"have runs of {width * height} pixels in all"
        raise FileFormatError("a mask", rule, got=str(sum(runs)), place=file.place(shape))
    # COCO counts column by column over the whole image, starting with background: transpose the pixels.
    pixels = np.repeat(np.arange(len(runs)) % 2, runs).astype(bool).reshape(height, width)
    whole = np.zeros((across, down), dtype=bool)
    whole[left : left + width, top : top + height] = pixels.T
    # A run ends where neighbors differ; the first run is background, even if empty.
    flat = whole.ravel()
    changes = np.flatnonzero(np.diff(flat, prepend=False))
    counts = np.diff(changes, prepend=0, append=flat.size).tolist()
    box = (float(left), float(top), float(left + width), float(top + height))
    mask = {"size": [down, across], "counts": counts}
    origin: Any = _Where(file, shape)
    gathered.add(image, label, box, origin, score=score, area=float(pixels.sum()), mask=mask)


def _score(shape: Element, file: XmlFile) -> float | None:
    """Return the score among the attributes of a shape; None without one, or if it is left empty."""
    given = {
        text
        for attribute in shape.findall("attribute")
        if (attribute.get("name") or "").lower() in SCORES and (text := (attribute.text or "").strip())
    }
    if not given:
        return None
    # Annotators may fill in a confidence in words.
    try:
        (score,) = {checks.plain_number(text) for text in given}
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        rule = f"have one number as its {' or '.join(SCORES)}"
        got, place = ", ".join(map(repr, sorted(given)))[:60], file.place(shape)
        raise FileFormatError("a detection", rule, got=got, place=place)
    return score


def _number(element: Element, name: str, file: XmlFile, *, default: float | None = None) -> float:
    text = element.get(name)
    if not text:
        if default is not None:
            return default
        raise FileFormatError(f"a {element.tag}", f"have {name}", got="none", place=file.place(element))
    return _plain(text, name, element, file)


def _plain(text: str | None, name: str, element: Element, file: XmlFile) -> float:
    try:
        value = checks.plain_number(text or "")
    except ValueError:
        value = math.nan
    if not abs(value) <= 1e15:
        raise FileFormatError(name, "be a number", got=repr(text)[:60], place=file.place(element))
    return value
