"""Read Ultralytics NDJSON: a line on the data set, then a line per image with its labels.

Conventions
-----------
- Labels are those of YOLO text files, and are read by the same code: fractions of the image size, class
  numbers from 0 into ``class_names``. An image without ``annotations`` has no objects.
- Labels under ``obb`` are rotated boxes. Those under ``segments`` never are, even with four points.
- The split is ``val`` unless the user gives another; a file without ``val`` has no default, because
  Ultralytics then splits the images at random.
- When it trains, Ultralytics may rename images to their line number in the file (the line on the data set is
  0). Ground truth keeps it as the image column ``ndjson_line``; an extension looks up images by it.

References
----------
https://docs.ultralytics.com/datasets/detect/#ultralytics-ndjson-format, ``ultralytics/data/converter.py``
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from boxscore._utils.user_warnings import warn_user
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.extensions.formats._gathered import Gathered, chosen_split, lines_of
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._yolo_lines import Lines
from boxscore.formats._yolo_numbers import shapes_of_labels
from boxscore.formats.yolo import ImageFiles, rows_of_lines

LINE = "ndjson_line"
"""Image column with the number of an image's line; an extension finds images by it."""

_SHAPES = ("boxes", "segments", "obb", "pose")


class _Line(msgspec.Struct, gc=False):
    type: str = ""
    task: str | None = None
    class_names: dict[str, str] | None = None
    kpt_shape: tuple[int, int] | None = None
    file: str | None = None
    width: float | None = None
    height: float | None = None
    split: str | None = None
    annotations: dict[str, Any] | None = None


class _Labels(Lines):
    """Labels whose files are lines of one file."""

    def place(self, row: int) -> str:
        """Return the line of a label."""
        return self.files[int(np.searchsorted(self.ends, row, side="right"))]

    def text(self, row: int) -> str:
        """Return the numbers of a label."""
        start = int(self.starts[row])
        return " ".join(f"{number:g}" for number in self.values[start : start + int(self.counts[row])][:12])


class NdjsonFormat(RowFormat):
    """Ultralytics NDJSON."""

    name = "ndjson"
    boxes = "xywh"
    takes = frozenset({"image_set", "classes", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the line on the data set."""
        line = sniffer.first_line
        if not line.startswith("{") or '"type"' not in line:
            return None
        try:
            kind = msgspec.json.decode(line, type=_Line).type
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return "Ultralytics NDJSON" if kind == "dataset" else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the images of a split."""
        # The first line describes the data set; the others are images.
        if of_results:
            rule, cause = "have scores", "Ultralytics NDJSON holds annotations"
            raise FileFormatError("detections", rule, got="annotations", place=str(path), cause=cause)
        every = list(lines_of(path, _Line, "an Ultralytics NDJSON"))
        if not every:
            raise FileFormatError("Ultralytics NDJSON", "have a line", got="none", place=str(path))
        head, images = every[0][1], every[1:]
        for line, content in images:
            if content.type != "image":
                rule, place = 'have "type": "image"', f"line {line} of {path}"
                raise FileFormatError("a line", rule, got=repr(content.type)[:40], place=place)
        split = chosen_split(
            options.image_set, [line.split or "train" for _, line in images], path, default=False
        )
        # Gather names and sizes, and the numbers of each label.
        gathered = Gathered(path, options)
        labels: list[list[float]] = []
        ends: list[int] = []
        places: list[str] = []
        numbers: list[int] = []
        kinds: set[str | None] = set()
        for position, (line, content) in enumerate(images, start=1):
            if (content.split or "train") != split:
                continue
            place = f"line {line} of {path}"
            if not content.file:
                raise FileFormatError("an image", "have a file", got="none", place=place)
            gathered.image(content.file, content.width, content.height)
            shape, of_image = _labels(content.annotations or {}, place)
            labels += of_image
            kinds.add(shape)
            ends.append(len(labels))
            places.append(place)
            numbers.append(position)
        # Read them as lines of YOLO's text files, which they are.
        flat = np.array([number for label in labels for number in label], dtype=np.float64)
        counts = np.array([len(label) for label in labels], dtype=np.int64)
        lines = _Labels(places, np.array(ends, dtype=np.int64), flat, counts, None)
        of_images = gathered.rows(of_results=False)
        files = ImageFiles(
            str(path),
            [str(name) for name in of_images.images],
            _class_names(head, options, lines, path),
            None,
            [str(name) for name in of_images.file_names or ()],
            of_images.sizes,
        )
        _report_numbers(path, files.images, numbers, len(images))
        shapes = shapes_of_labels(lines, _keypoints(head), options.written)
        if "obb" not in kinds or "segments" in kinds:
            shapes = shapes._replace(corners=None)
        rows = rows_of_lines(files, lines, shapes)
        return dataclasses.replace(rows, scores=None, image_columns={LINE: np.array(numbers, dtype=np.int64)})


FORMAT = NdjsonFormat()


def _report_numbers(path: Path, names: Sequence[str], numbers: Sequence[int], count: int) -> None:
    """Tell the user if the names of images are the numbers of other lines."""
    lines = set(map(str, range(1, count + 1)))
    if names and lines.issuperset(names) and list(names) != list(map(str, numbers)):
        text = (
            f"{path}: images are named by numbers, which are the numbers of other lines. Detections are "
            "matched by name; if Ultralytics named their images by line, rename them in one of the files."
        )
        warn_user(BoxscoreWarning(text, severity="note"))


def _labels(annotations: dict[str, Any], place: str) -> tuple[str | None, list[list[float]]]:
    """Return the kind of the labels of an image, and the numbers of each, the class first."""
    given = [key for key in _SHAPES if annotations.get(key)]
    other = [key for key in annotations if key not in _SHAPES and annotations[key]]
    if other:
        cause = "boxscore evaluates detection; is this the right data set?"
        raise FileFormatError(
            "annotations", f"be {', '.join(_SHAPES)}", got=repr(other[0])[:40], place=place, cause=cause
        )
    if len(given) > 1:
        rule = "be of one kind"
        raise FileFormatError("annotations", rule, got=" and ".join(map(repr, given)), place=place)
    labels = annotations[given[0]] if given else []
    for label in labels if isinstance(labels, list) else [labels]:
        valid = isinstance(label, list) and len(label) > 1
        if not valid or not all(type(number) in (int, float) and abs(number) < 1e300 for number in label):
            got = msgspec.json.encode(label).decode()[:60]
            raise FileFormatError("a label", "be a list of numbers", got=got, place=place)
    return (given[0] if given else None), labels


def _keypoints(head: _Line) -> tuple[int, int] | None:
    """Return the number of keypoints, and of numbers of each, if the objects have keypoints."""
    shape = head.kpt_shape if head.task == "pose" else None
    return shape if shape is not None and 0 < shape[0] <= 10_000 and shape[1] in (2, 3) else None


def _class_names(head: _Line, options: ReadOptions, lines: Lines, path: Path) -> list[str] | None:
    """Return the class names by number; raise if a label has a number without a name."""
    given = head.class_names
    if options.classes is not None or not given:
        if options.classes is None and len(lines.counts):
            raise FileFormatError(
                "class_names",
                "name the classes",
                got="none",
                place=str(path),
                cause="pass the names in order of their numbers: --gt-classes FILE (in Python classes=)",
            )
        return None
    rule = "be numbered 0, 1, 2, ... without a gap"
    if set(given) != set(map(str, range(len(given)))):
        raise FileFormatError("class_names", rule, got=", ".join(list(given)[:10]), place=str(path))
    return [given[str(number)] for number in range(len(given))]
