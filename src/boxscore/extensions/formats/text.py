"""Read per-image text files in pixels, the format of Cartucho's and Padilla's scripts.

Conventions
-----------
- A line is an object, ``class x1 y1 x2 y2 [difficult]``, or a detection, ``class confidence`` and four
  numbers; if all detections lack a confidence, only ``class`` and four numbers. A class is a name, possibly
  of several words, or a number from 0.
- One line does not tell whether the four numbers are two corners or corner and size. Many boxes of negative
  size, or outside images of known size, rule a reading out. If both readings or neither remain,
  ``box_format`` is required.
- Fractions of the image size are the YOLO and darknet formats; here they are read if ``box_format`` is
  ``cxcywh``.
- Detections in files named as classes of the ground truth, whose lines begin with its images, are VOC results
  without the devkit's prefix, as darknet writes them.

References
----------
https://github.com/Cartucho/mAP, https://github.com/rafaelpadilla/review_object_detection_metrics
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.memory import paused_collector
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import Readings, may_be_fractions
from boxscore.data.hints import ask
from boxscore.data.lookup import image_rows_by_name
from boxscore.data.scores import all_or_none
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id, as_ids
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import TextLines, check_folders, inner_folders, numbers_of
from boxscore.formats._rows import RowFormat, Rows, collected, detections_of, other_numbering
from boxscore.formats._sniffer import Sniffer, is_text_file, listed
from boxscore.formats._yolo_folders import TEXT, files_below
from boxscore.formats._yolo_lines import is_number
from boxscore.formats.image_sizes import known_sizes
from boxscore.formats.voc import ResultsReading

FEW = 0.05
"""Largest fraction of boxes outside their image."""

_CLASS_LISTS = ("classes.txt", "obj.names", "voc.names", "class_list.txt")


class TextFormat(RowFormat):
    """Folders of text files with boxes in pixels."""

    name = "text"
    folder_endings = (".txt",)
    boxes = "xyxy"
    takes = frozenset({"classes", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the lines of the first files of a folder."""
        if not sniffer.is_folder:
            return None
        lines = [text.first_line for text in sniffer.texts if text.path.name not in _CLASS_LISTS]
        fits = [_looks_like_box(line) for line in lines if line]
        return "a folder of text files with boxes" if 2 * sum(fits) > len(fits) else None

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Return False: images without a file are unknown."""
        return False

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every file; infer the form of boxes without ground truth."""
        return _rows(path, options, None, of_results=of_results)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections; infer the form of boxes with the image sizes of the ground truth."""
        files = _class_files(path, ground_truth)
        if files:
            warn_user(
                f"{path}: the files are named as classes of the ground truth and their lines begin with its "
                "images, so they are read as VOC results: image score x1 y1 x2 y2."
            )
            return ResultsReading(path, options, files).detections(ground_truth)
        rows = _rows(path, options, ground_truth, of_results=True)
        return detections_of(rows, options, ground_truth)


FORMAT = TextFormat()


def _class_files(path: Path, ground_truth: GroundTruth | None) -> list[Path]:
    """Return the files of a folder if they are named as classes, and have lines of images; else none."""
    if ground_truth is None or not path.is_dir():
        return []
    # Names are classes and no images; darknet writes a file for each class, without the devkit's prefix.
    files = [Path(file) for _, file in _files(path, below=False)]
    stems = [file.stem for file in files]
    if not {*stems} & {*ground_truth.categories.names.tolist()}:
        return []
    if (image_rows_by_name(as_ids(stems, name="image ids"), ground_truth.images) >= 0).any():
        return []
    # Each file that is not empty begins with an image and five numbers.
    lines = [line.split() for line in (Sniffer(file).first_line for file in files) if line]
    if not lines or any(len(line) != 6 or not all(map(is_number, line[1:])) for line in lines):
        return []
    images = as_ids([line[0] for line in lines], name="image ids")
    return files if (image_rows_by_name(images, ground_truth.images) >= 0).all() else []


def _looks_like_box(line: str) -> bool:
    """Whether a line has a class and four or five numbers."""
    fields = line.split()
    fields = fields[: -1 if fields[-1] == "difficult" else None]
    words = next((i for i in range(len(fields), 0, -1) if not is_number(fields[i - 1])), 1)
    fits = len(fields) - words in (4, 5) and (words == 1 or not is_number(fields[0]))
    return fits and len(line) < 400


def _rows(path: Path, options: ReadOptions, ground_truth: GroundTruth | None, *, of_results: bool) -> Rows:
    # One file per image; compare the folder with the ground truth's before reading.
    if not path.is_dir():
        rule = "be the folder of the .txt files, one per image"
        raise FileFormatError("text files with boxes", rule, got=f"one file, {path}")
    files = _files(path, below=of_results)
    names = [name for name, _ in files]
    check_folders(path, names, ground_truth)
    if not inner_folders(names):
        ask("folders in a folder", path, FORMAT.detect, ending=".txt")
    # The class may contain blanks, so count the numbers from the end of the line.
    labels: list[Id] = []
    numbers: list[list[float]] = []
    difficult: list[bool] = []
    lines = TextLines([file for _, file in files], "a text file with boxes")
    for line in lines:
        label, values, marked = _parsed(line.split(), lines, of_results=of_results)
        labels.append(label)
        numbers.append(values)
        difficult.append(marked)
    # Convert all numbers to one array.
    table = np.array(numbers, dtype=np.float64).reshape(len(numbers), 5 if of_results else 4)
    boxes = table[:, -4:]
    are_small = len(boxes) > 0 and may_be_fractions(boxes, lines.place)
    # Infer the form of the boxes from all boxes and image sizes, unless it is given.
    extent = _extent(names, options, ground_truth)[lines.image]
    if options.written is not None:
        form = options.written.form
    else:
        readings = Readings((), ("xyxy", "xywh"), FEW)
        readings.add(boxes, extent, lines.place)
        option = "--dt-box-format" if of_results else "--gt-box-format"
        try:
            form = readings.chosen(usual=None, option=option, source=str(path))
        except InputError as error:
            numbered = options.classes is None and any(isinstance(label, int) for label in labels)
            if ground_truth is None or not numbered:
                raise
            raise error.and_also(other_numbering(str(path), ground_truth.categories)) from None
    # All lines have scores, or none.
    distinct = collected(labels)
    scores = all_or_none(table[:, 0], lines.place) if of_results else None
    return Rows(
        source=str(path),
        images=names,
        image=lines.image,
        labels=distinct.values,
        label=distinct.positions,
        boxes=boxes,
        box_format=form,
        place=lines.place,
        fractions=form == "cxcywh" and are_small,
        scores=scores,
        numbers="positions",
        given={} if of_results or not any(difficult) else {"difficult": np.array(difficult)},
    )


def _files(folder: Path, *, below: bool) -> list[tuple[str, str]]:
    """Return the stem and path of the text files of a folder, sorted.

    With ``below``, fall back to inner folders if the folder itself is empty.
    """
    with listed(folder) as entries:
        files = sorted(
            (entry.name[: -len(".txt")], entry.path)
            for entry in entries
            if entry.name not in _CLASS_LISTS and is_text_file(entry)
        )
    if files or not below:
        return files
    inner = files_below(folder, TEXT)
    return sorted((name, path) for name, path in inner if os.path.split(path)[1] not in _CLASS_LISTS)


def _parsed(fields: list[str], lines: TextLines, *, of_results: bool) -> tuple[Id, list[float], bool]:
    """Return the class, the numbers and the difficult flag of a line."""
    count = 5 if of_results else 4
    marked = not of_results and fields[-1] == "difficult"
    if marked:
        fields = fields[:-1]
    elif not of_results and len(fields) == 6 and fields[-1] in ("0", "1") and is_number(fields[1]):
        marked, fields = fields[-1] == "1", fields[:-1]
    without = of_results and len(fields) >= count and (len(fields) == count or not is_number(fields[-count]))
    if without:  # a class of one or more words, and four numbers
        fields = [*fields[: 1 - count], "nan", *fields[1 - count :]]
    words, values = fields[:-count], fields[-count:]
    extra = len(words) > 1 and is_number(words[-1])
    numbers = numbers_of(values)  # finiteness is checked with the boxes
    if not words or extra or numbers is None:
        rule = "be class confidence and four numbers" if of_results else "be class x1 y1 x2 y2 [difficult]"
        cause = "are these detections?" if extra and not of_results else ""
        got = repr(" ".join(fields))[:80]
        raise FileFormatError("a line of boxes", rule, got=got, place=lines.place(), cause=cause)
    name = " ".join(words)
    label: Id = int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else name
    return label, numbers, marked


def _extent(names: list[str], options: ReadOptions, ground_truth: GroundTruth | None) -> FloatArray:
    """Return the width and height of every image, [I, 2]; NaN if unknown."""
    sizes = np.full((len(names), 2), np.nan)
    if ground_truth is not None and names:
        known = image_rows_by_name(as_ids(names, name="image ids"), ground_truth.images)
        sizes[known >= 0] = ground_truth.images.sizes[known[known >= 0]]
    given = known_sizes(options.image_sizes, names)
    return np.where(np.isnan(given), sizes, given)
