"""Read and write YOLO: one text file per image, with lines of fractions of the image size.

Conventions
-----------
- Ground truth is a ``data.yaml``, darknet's ``obj.data``, a list of images, the folder of a data set, or a
  folder of labels. A line is ``class cx cy w h``, or ``class x y x y x y ...`` for a polygon; with
  ``kpt_shape`` in the ``data.yaml``, keypoints follow the box.
- Predictions are a folder of files with lines ``class cx cy w h confidence [track]``, as ultralytics writes
  with ``save_txt=True save_conf=True``; the same for polygons and keypoints. Darknet writes the confidence
  second. The order is inferred from the boxes, or given by the format name.
- Four corners are both a polygon and a rotated box; the protocol decides which one is used.
- Fractions are multiplied by the image size in float64.

References
----------
ultralytics 8.4: ``verify_image_label`` in ``data/utils.py``, ``Results.save_txt`` in ``engine/results.py``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.files import is_file, read_text, write_folder, write_new_folder
from boxscore._utils.memory import paused_collector
from boxscore._utils.text import counted, csv_table, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import report_reading
from boxscore.data.boxes import are_few, box_convert
from boxscore.data.hints import ask
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import check_folders, file_stems, inner_folders, refuse_shared_names
from boxscore.formats._rows import (
    RowFormat,
    Rows,
    collected,
    detections_of,
    other_numbering,
)
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._yolo_folders import (
    DataSet,
    classes_in,
    data_set,
    is_darknet_data,
    is_data_yaml,
    is_image_list,
    label_files,
    label_folder,
    looks_like_labels,
)
from boxscore.formats._yolo_lines import Lines, read_lines
from boxscore.formats._yolo_numbers import (
    NO_CONFIDENCE,
    OUTSIDE,
    Shapes,
    by_count,
    check_fractions,
    is_last,
    shapes_of_labels,
    shapes_of_predictions,
)
from boxscore.formats.image_sizes import LARGEST, ImageSizes, header_size, image_sizes_of, known_sizes

NOTE, LARGEST_NOTE = "notes.boxscore.txt", 1000
"""A file written next to predictions, which states the form of their lines; numbers may be ambiguous."""
LAST, SECOND = "class cx cy w h confidence", "class confidence cx cy w h"

SIZES, SIZES_HEAD = "image_sizes.csv", "image,width,height"
"""A file written next to ground truth, with the image sizes."""

MOST_CLASSES = 10_000_000
"""Upper bound of class numbers, exclusive."""


class YoloFormat(RowFormat):
    """Folders of YOLO's text files."""

    name = "yolo"
    line = LAST
    folder_endings = (".txt", ".yaml", ".yml", ".data", ".names")
    boxes = "xywh"
    takes = frozenset({"image_set", "classes", "image_sizes"})
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": frozenset({"fractions", "sizes", "file names", "classes"}),
        "detections": frozenset({"fractions", "classes"}),
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Accept the description of a data set, or a folder with YOLO lines."""
        if not sniffer.is_folder:
            if sniffer.suffix in (".yaml", ".yml"):
                return "YOLO's data.yaml" if is_data_yaml(sniffer.text) else None
            if sniffer.suffix == ".data":
                return "darknet's obj.data" if is_darknet_data(sniffer.text) else None
            return "a list of images" if sniffer.suffix == ".txt" and is_image_list(sniffer.text) else None
        for name in sniffer.names:
            if name.lower().endswith((".yaml", ".yml", ".data")):
                reason = self.detect(Sniffer(sniffer.path / name))
                if reason is not None:
                    return f"a folder with {reason}"
        if looks_like_labels(sniffer.path):
            return "a folder of YOLO's text files"
        return None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read labels or predictions, the latter without keypoints."""
        return self.prediction_rows(path, options, None) if of_results else _read_labels(path, options)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read predictions; the keypoints of the ground truth distinguish keypoints from polygons."""
        rows = self.prediction_rows(path, options, ground_truth)
        return detections_of(rows, options, ground_truth)

    @paused_collector()
    def prediction_rows(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read predictions."""
        names, files, classes = prediction_files(path, options)
        check_folders(label_folder(path), names, ground_truth)
        lines = read_lines(files)
        try:
            last = self.confidence_last(lines, options, path)
        except InputError as error:
            if ground_truth is None or classes is not None or options.classes is not None:
                raise
            raise error.and_also(other_numbering(str(path), ground_truth.categories)) from None
        shapes = shapes_of_predictions(
            lines, lambda: _keypoint_count(ground_truth), options.written, last=last
        )
        if shapes.scores is None and len(lines.counts):
            text = f"{path}: no line has a confidence. If these are predictions, {NO_CONFIDENCE}."
            warn_user(BoxscoreWarning(text, severity="note"))
        return rows_of_lines(ImageFiles(str(path), names, classes), lines, shapes)

    def confidence_last(self, lines: Lines, options: ReadOptions, path: Path) -> bool:
        """Whether the confidence is the last number of a line; otherwise it is the second."""
        rows = np.flatnonzero(lines.counts == 6)
        others = len(lines.counts) - len(rows)
        if options.format != "auto" or not len(rows) or not are_few(others, len(lines.counts)):
            return True
        columns = lines.columns(rows)
        if options.written is None:
            check_fractions(columns[:, 2:5], rows, lines)  # numbers of the box in either order
        note = label_folder(path) / NOTE
        noted = read_text(note, largest=LARGEST_NOTE).strip() if is_file(note) else ""
        try:
            last = is_last(columns, path, options.written, noted={SECOND: False, LAST: True}.get(noted))
        except InputError:
            if not others:
                raise
            return True  # lines of several kinds have the confidence last
        if not last and not noted:
            reason = "as the last it would be outside 0..1, or boxes outside their images"
            advice = "--dt-format (in Python format=) sets it"
            report_reading(str(path), "the confidence is read as the second number", reason, advice)
        return last

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Whether image files or a list of images are known."""
        return any(ground_truth.images.file_names.tolist())

    def class_ids(self, table: BoxTable) -> list[Id]:
        """Return ids 0, 1, 2, ..."""
        return [*range(len(table.categories))]

    def written(self, box: list[float], score: float) -> list[float]:
        """Return the numbers in a line of predictions."""
        return [*box, score]

    def check_written(self, table: BoxTable) -> None:
        """Reject values that readers of fractions reject."""
        _check_boxes(table)

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write boxes as fractions: labels and a ``data.yaml``, or predictions with the confidence last."""
        # Check everything first, to write either all files or none.
        names, boxes = file_stems(table), _check_boxes(table)
        _check_readable(names, of_results=isinstance(table, Detections))
        # Write every number with repr, which preserves all bits.
        lines: list[list[str]] = [[] for _ in names]
        scores = table.scores.tolist() if isinstance(table, Detections) and table.scored else None
        classes = table.categories
        number = classes.ids if classes.are_positions else np.arange(len(classes))
        for row, (image, category, box) in enumerate(
            zip(table.image.tolist(), number[table.category].tolist(), boxes.tolist(), strict=True)
        ):
            numbers = box if scores is None else self.written(box, scores[row])
            lines[image].append(f"{category} {' '.join(map(repr, numbers))}\n")
        files: dict[str, str | bytes] = {
            f"labels/{name}.txt": "".join(texts) for name, texts in zip(names, lines, strict=True)
        }
        # Add data.yaml and known sizes to ground truth, a class list and a note on the form to predictions.
        labels = table.categories.names.tolist()
        if not isinstance(table, Detections):
            import yaml

            content = {"path": ".", "val": "images", "names": dict(enumerate(labels))}
            files["data.yaml"] = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
            # Write known sizes, which are needed to convert fractions to pixels.
            known = ~np.isnan(table.images.sizes).any(axis=1)
            if known.any():
                files[SIZES] = _size_table(names, table.images)
        else:
            # Class numbers without names stay without.
            if not classes.are_positions or labels != [*map(str, classes.ids.tolist())]:
                files["labels/classes.txt"] = "".join(f"{label}\n" for label in labels)
            files[f"labels/{NOTE}"] = f"{self.line}\n"
        _write(path, files)


FORMAT = YoloFormat()


# ---------------------------------------------------------------- rows


class ImageFiles(NamedTuple):
    """The images of ground truth or predictions, and their label files."""

    source: str
    images: Sequence[str]
    classes: Sequence[str] | None
    image_of_file: IntArray | None = None
    file_names: Sequence[str] | None = None
    sizes: FloatArray | None = None


@paused_collector()
def _read_labels(path: Path, options: ReadOptions) -> Rows:
    """Read ground truth."""
    split = data_set(path, options.image_set)
    lines = read_lines(files_with_labels(split))
    rows = rows_of_labels(split, lines, path, options)
    if options.written is None:
        warn_of_labels(rows, lines)
    return rows


def files_with_labels(split: DataSet) -> list[str]:
    """List the label files; images without a file do not have objects."""
    return [file for file in split.labels if file]


def rows_of_labels(split: DataSet, lines: Lines, path: Path, options: ReadOptions) -> Rows:
    """Convert the lines of label files to rows; ``path`` is that of the data set."""
    of_file = np.array([number for number, file in enumerate(split.labels) if file], dtype=np.int64)
    # The count of numbers determines the shape in a line; labels do not have a confidence.
    shapes = shapes_of_labels(lines, split.keypoint_shape, options.written)
    files = ImageFiles(
        split.source,
        split.images,
        split.classes,
        of_file,
        split.file_names,
        _image_sizes(split, path, options),
    )
    return rows_of_lines(files, lines, shapes._replace(scores=None))


def _keypoint_count(ground_truth: GroundTruth | None) -> int | None:
    """Return the number of keypoints per object in the ground truth, or None."""
    keypoints = None if ground_truth is None else ground_truth.keypoints
    return None if keypoints is None else int(keypoints.shape[1])


def prediction_files(path: Path, options: ReadOptions) -> tuple[list[str], list[str], Sequence[str] | None]:
    """Return the names, label files and class list of a folder of predictions."""
    folder = label_folder(path)
    files = label_files(folder)
    if not files:
        rule = "be .txt files, one per image"
        raise FileFormatError("YOLO predictions", rule, got=f"none in {folder}")
    names = [name for name, _ in files]
    inner = inner_folders(names)
    if not inner:
        ask("folders in a folder", folder, lambda sniffer: looks_like_labels(sniffer.path), ending=".txt")
    classes = None if options.classes is not None else _only_class_list(folder, inner)
    return names, [file for _, file in files], classes


def _only_class_list(folder: Path, inner: Sequence[str]) -> Sequence[str] | None:
    """Return the class list of a folder and its subfolders, or None; raise if there are different lists."""
    # Look in the folder, in subfolders with files, and in all folders between.
    lists: dict[str, tuple[str, ...]] = {}
    above = {outer for each in inner for outer in PurePath(each).parents}
    for each in (folder / below for below in sorted({PurePath(), *above, *map(PurePath, inner)})):
        names = classes_in(each)
        if names is not None:
            lists[str(each)] = tuple(names)
    # With different lists, class numbers are ambiguous.
    if len(set(lists.values())) > 1:
        first = next(iter(lists))
        other = next(each for each in lists if lists[each] != lists[first])
        raise InputError(
            "the class lists of folders that are read as one",
            "be equal",
            got=f"those in {first} and {other}, which differ",
            cause="pass a common class list with --dt-classes, or one folder",
        )
    return next(iter(lists.values()), None)


def rows_of_lines(files: ImageFiles, lines: Lines, shapes: Shapes) -> Rows:
    """Convert lines and their shapes to rows."""
    # Repeat the image of each file for its lines; class numbers are indices in the class list.
    per_file = np.diff(lines.ends, prepend=0)
    of_file = np.arange(len(per_file)) if files.image_of_file is None else files.image_of_file
    labels, label = _labels(lines)
    return Rows(
        source=files.source,
        images=files.images,
        image=np.repeat(of_file, per_file),
        labels=labels,
        label=label,
        boxes=shapes.boxes,
        box_format=shapes.box_format,
        place=lines.place,
        fractions=True,
        scores=shapes.scores,
        classes=files.classes,
        numbers="positions",
        file_names=files.file_names,
        sizes=files.sizes,
        outlines=shapes.outlines,
        keypoints=shapes.keypoints,
        corners=shapes.corners,
        given={} if shapes.area is None else {"area": shapes.area},
    )


def _labels(lines: Lines) -> tuple[list[Id], IntArray]:
    """Return the distinct classes, and the index of each line's class."""
    if lines.words is not None:
        distinct = collected(lines.words)
        return distinct.values, distinct.positions
    first = lines.values[lines.starts]
    wrong = ~((first >= 0) & (first < MOST_CLASSES) & (first == np.floor(first)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FileFormatError(
            "a class number",
            f"be a whole number from 0 to {MOST_CLASSES - 1}",
            got=f"{first[row]:g}",
            place=lines.place(row),
        )
    numbers, positions = np.unique(first.astype(np.int64), return_inverse=True)
    return numbers.tolist(), positions.reshape(-1)


def _image_sizes(split: DataSet, path: Path, options: ReadOptions) -> FloatArray | None:
    """Return the image sizes [I, 2]: from the user, from a file next to the labels, or from image headers."""
    given = _written_sizes(path) if options.image_sizes is None else options.image_sizes
    if split.paths is None or split.file_names is None:
        return None if given is None else known_sizes(given, split.images)
    sizes = known_sizes(given, split.images, split.file_names)
    for row, image in enumerate(split.paths):
        if image and np.isnan(sizes[row]).any():
            sizes[row] = header_size(Path(image)) or (np.nan, np.nan)
    return sizes


def _written_sizes(path: Path) -> ImageSizes | None:
    """Read the table of sizes that :meth:`YoloFormat.save` writes next to labels; None if missing."""
    folders = [path] if path.is_dir() else [path.parent]
    if path.name == "labels":
        folders = [path, path.parent]
    for table in (folder / SIZES for folder in folders):
        if is_file(table) and read_text(table, largest=LARGEST).startswith(SIZES_HEAD):
            return image_sizes_of(table)
    return None


def warn_of_labels(rows: Rows, lines: Lines) -> None:
    """Warn of labels that ultralytics reads differently."""
    # Repeated labels are kept here, but dropped by ultralytics.
    texts = []
    repeated = _are_repeated(rows, lines)
    if repeated.any():
        row, count = int(np.argmax(repeated)), int(repeated.sum())
        texts.append(
            f"{counted(count, 'label')} {verb(count, 'repeat')} another of the same image "
            f"({lines.place(row)}); all count here, but ultralytics drops repeats"
        )
    # Check all boxes with two reductions, and search for rows only if one is outside.
    boxes = rows.boxes
    if boxes is not None and len(boxes) and (boxes.min() < -OUTSIDE or boxes.max() > 1 + OUTSIDE):
        outside = ((boxes < -OUTSIDE) | (boxes > 1 + OUTSIDE)).any(axis=1)
        row, count = int(np.argmax(outside)), int(outside.sum())
        images = counted(len(np.unique(rows.image[outside])), "image")
        texts.append(
            f"{counted(count, 'label')} {verb(count, 'extend')} outside the image ({lines.place(row)}); "
            f"ultralytics skips the {images} of such labels"
        )
    if texts:
        warn_user(f"{rows.source}: {'. '.join(texts)}.")


def _are_repeated(rows: Rows, lines: Lines) -> NDArray[np.bool_]:
    """Whether each line repeats the numbers of an earlier line of its image, [N]."""
    repeated = np.zeros(len(lines.counts), dtype=bool)
    for of_count in by_count(lines.counts):
        columns = lines.columns(of_count)
        if lines.words is not None:
            columns = np.column_stack([columns, rows.label[of_count]])
        # Equal rows have equal keys, so they are adjacent after sorting; compare adjacent rows.
        key = columns @ np.sqrt(np.arange(2.0, 2 + columns.shape[1]))
        image = rows.image[of_count]
        order = np.argsort(key, kind="stable")  # keeps the rows of an image together
        same = (np.diff(key[order]) == 0) & (np.diff(image[order]) == 0)
        for first, second in zip(order[:-1][same].tolist(), order[1:][same].tolist(), strict=True):
            repeated[of_count[second]] |= bool((columns[first] == columns[second]).all())
    return repeated


# ---------------------------------------------------------------- writing


def _check_readable(stems: Sequence[str], *, of_results: bool) -> None:
    """Reject image names if readers would skip their label files."""
    for stem in stems:
        if stem.startswith("."):
            rule, got = "not begin with a dot: hidden label files are not read", repr(stem)
            raise InputError("an image's name", rule, got=got)
        if of_results and stem in ("classes", NOTE.removesuffix(".txt")):
            raise InputError(
                "an image's name", f"not be that of {stem}.txt, which is written", got=repr(stem)
            )


def _write(path: Path, files: Mapping[str, str | bytes]) -> None:
    """Write the folder of a data set; reject a folder with other label files."""
    if not path.exists():
        write_new_folder(path, files)
        return
    if not path.is_dir():
        raise InputError("the output of YOLO labels", "be a folder", got=f"the file {path}")
    refuse_other_labels(path, path / "labels", files)
    write_folder(path, files)


def refuse_other_labels(path: Path, folder: Path, files: Container[str]) -> None:
    """Reject an output with label files in ``folder`` that are not among the files to write."""
    there = label_files(folder) if folder.is_dir() else []
    others = [name for _, file in there if (name := Path(file).relative_to(path).as_posix()) not in files]
    if others:
        rule = "hold no other labels, which would be read with these"
        raise InputError("the output folder", rule, got=min(others), place=str(path))


def _check_boxes(table: BoxTable) -> FloatArray:
    """Return centers and sizes as fractions, [N, 4]; reject values that readers reject."""
    # Take sizes from the table, because the difference of corners may round.
    refuse_shared_names(table)
    boxes = box_convert(table.boxes, "xyxy", "cxcywh")
    boxes[:, 2:] = table.sizes
    if table.units == "pixels":
        boxes /= np.tile(_sizes_of(table), 2)
    # The negated condition also catches NaN.
    far = np.flatnonzero(~((boxes >= -1) & (boxes <= 2)).all(axis=1))
    if len(far):
        row = int(far[0])
        rule = "reach out of its image by less than its size, to be written as fractions"
        got, place = table.boxes[row].tolist(), f"row {row} of {table.source}"
        raise InputError("a box", rule, got=got, place=place)
    # Readers expect confidences in 0..1.
    if isinstance(table, Detections) and table.scored:
        other = ~((table.scores >= 0) & (table.scores <= 1))
        if other.any():
            row = int(np.argmax(other))
            got, place = f"{table.scores[row]:g}", f"row {row} of {table.source}"
            raise InputError("a confidence", "be from 0 to 1", got=got, place=place)
    return boxes


def _size_table(stems: Sequence[str], images: Images) -> str:
    """Return the text of a table of known sizes, for ``--image-sizes``."""
    columns: dict[str, list[Any]] = {name: [] for name in SIZES_HEAD.split(",")}
    for stem, name, size in zip(stems, images.file_names.tolist(), images.sizes.tolist(), strict=True):
        if not any(side != side for side in size):
            values = (name or stem, *(int(side) if side.is_integer() else side for side in size))
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
    return csv_table(columns)


def _sizes_of(table: BoxTable) -> FloatArray:
    """Return the image size of each row, [N, 2]."""
    sizes: FloatArray = table.images.sizes[table.image]
    unknown = np.isnan(sizes).any(axis=1)
    if unknown.any():
        image = table.images.ids[table.image].tolist()[int(np.argmax(unknown))]
        raise InputError(
            "an image",
            "have a known size where boxes are written as fractions of it",
            got=f"no size of image {image!r}",
            place=table.source,
            cause=checks.GIVE_SIZES,
        )
    return sizes
