"""Read and write DOTA folders: labels with a file per image, results with a file per class.

Conventions
-----------
- Label lines are ``x1 y1 ... x4 y4 class [difficult]``, separated by spaces, below header lines such as
  ``imagesource:GoogleEarth`` and ``gsd:0.115``. Corners stay as written: in either direction, not made
  rectangular, not clipped to the image. Difficult is any number but 0; the devkit's tools write 0, 1 and 2.
- Results are ``Task1_<class>.txt`` with lines ``image score x1 y1 ... x4 y4``, or ``Task2_<class>.txt`` with
  lines ``image score xmin ymin xmax ymax``.
- Image names are the names of label files without ending.

References
----------
CAPTAIN-WHU/DOTA_devkit: ``dota_evaluation_task1.py``, ``dota_evaluation_task2.py``, ``dota_utils.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, cast

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import is_file, read_text, write_folder
from boxscore._utils.memory import paused_collector
from boxscore._utils.text import counted_of
from boxscore._utils.user_warnings import warn_user
from boxscore.data.hints import ask
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.oriented.oriented import corners_of
from boxscore.extensions.oriented.quadrilaterals import crossing
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import TextLines, file_stems, refuse_shared_names
from boxscore.formats._results_by_class import place_of_row, read_results, results_texts, rewrite_results
from boxscore.formats._rows import RowFormat, Rows, collected, detections_of
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._survivors import Survivors
from boxscore.formats._yolo_lines import is_number

RESULTS = re.compile(r"(Task[12])_(.+)\.txt")
_HEADER = re.compile(r"(imagesource|gsd|acquisition dates?)\s*:\s*(.*)", re.IGNORECASE)
_FOLDERS = ("labelTxt", "labelTxt-v1.0", "labelTxt-v1.5", "labelTxt-v2.0", "labelTxt_hbb")

DIFFICULTIES = ("0", "1", "2")
UPRIGHT_COLUMNS = 6
"""Number of columns of task 2 results."""


class DotaFormat(RowFormat):
    """DOTA labels and results."""

    name = "dota"
    folder_endings = (".txt",)
    boxes = "xyxy"
    takes: ClassVar[frozenset[str]] = frozenset({"image_set"})
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": frozenset({"quadrilaterals", "rotated", "areas", "difficult", "file names"}),
        "detections": frozenset({"quadrilaterals", "rotated", "classes"}),
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize results by file name, labels by their first line."""
        if not sniffer.is_folder:
            if RESULTS.fullmatch(sniffer.path.name):
                raise FileFormatError(
                    "DOTA results", "be the folder of the Task1_*.txt files", got=f"one file, {sniffer.path}"
                )
            if sniffer.suffix == ".txt" and _is_label(sniffer):
                raise FileFormatError(
                    "DOTA ground truth", "be the folder of the .txt files", got=f"one file, {sniffer.path}"
                )
            return None
        if _has_results(sniffer):
            return "a folder of Task1_*.txt or Task2_*.txt files"
        if any(text.first_line for text in sniffer.texts):
            return "a folder of DOTA labels" if _has_labels(sniffer) else None
        inner = _label_folder(sniffer)
        return None if inner is None else f"a folder with DOTA labels in {inner}"

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every label or results file."""
        return _results(path) if of_results else _labels(path, options.image_set)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read results; warn about classes of the ground truth without a file."""
        rows = self.rows(path, options, of_results=True)
        if ground_truth is not None:
            _warn_of_missing(path, rows, ground_truth)
        return detections_of(rows, options, ground_truth)

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a label file per image; or a results file per class, including empty ones."""
        # Fields are separated by spaces, so names must not contain any, or look like a number.
        if path.is_file():
            raise InputError("the output of DOTA files", "be a folder", got=f"the file {path}")
        refuse_shared_names(table)
        images = file_stems(table, in_lines=True)
        for names, what in ((images, "an image's name"), (table.categories.names.tolist(), "a class name")):
            blank = next((name for name in names if len(name.split()) != 1), None)
            if blank is not None:
                raise InputError(what, "not contain spaces in DOTA files", got=repr(blank))
        number = next((name for name in table.categories.names.tolist() if is_number(name)), None)
        if number is not None:
            raise InputError("a class name", "not be a number in DOTA files", got=repr(number))
        # Create and check all files before changing the folder.
        files = (
            _label_files(table, images)
            if isinstance(table, GroundTruth)
            else _result_files(cast(Detections, table), images)
        )
        _refuse_others(path, files)
        write_folder(path, files)


FORMAT = DotaFormat()


def rewrite(path: Path, survivors: Survivors, output: Path) -> None:
    """Write the remaining result lines, unchanged except for changed scores."""
    if output.is_file():
        raise InputError("the output of DOTA results", "be a folder", got=f"the file {output}")
    if survivors.boxes is not None:
        rule = "be one that keeps boxes as they are, where results are written to DOTA files"
        raise InputError("method", rule, got="one that merges boxes")
    files = files_of_results(path)
    _refuse_others(output, {file.name: "" for file in files})
    rewrite_results(path, files, _columns(files), survivors, output, corners=lambda numbers: None)


def _is_label(sniffer: Sniffer) -> bool:
    """Return whether a text file starts like labels: a header line, or eight numbers and a class."""
    fields = sniffer.first_line.split()
    if _HEADER.fullmatch(sniffer.first_line):
        return True
    return (
        9 <= len(fields) <= 10
        and all(map(is_number, fields[:8]))
        and not is_number(fields[8])
        and (len(fields) == 9 or is_number(fields[9]))
    )


def _has_labels(sniffer: Sniffer) -> bool:
    first = next((text for text in sniffer.texts if text.first_line), None)
    return first is not None and _is_label(first)


def _has_results(sniffer: Sniffer) -> bool:
    return any(RESULTS.fullmatch(name) for name in sniffer.names)


def _label_folder(sniffer: Sniffer) -> str | None:
    """Return the label folder inside a data set's folder, or None."""
    return next(_label_folders(sniffer), None)


def _label_folders(sniffer: Sniffer) -> Iterator[str]:
    """Yield the label folders inside a data set's folder; the first one is read."""
    for name in _FOLDERS:
        inner = sniffer.inside(name)
        if inner is not None and inner.is_folder:
            file = inner.first_with(".txt")
            if file is not None and _is_label(Sniffer(file)):
                yield name


# ---------------------------------------------------------------- labels


def _labels(path: Path, image_set: str | Path | None) -> Rows:
    # A data set may have several label folders: read the first, with a note.
    folder = path
    if path.is_dir():
        inner = [*_label_folders(Sniffer(path))]
        folder = path / inner[0] if inner else path
        if len(inner) > 1:
            text = (
                f"{path}: {inner[0]} is read, not {' or '.join(inner[1:])}; give the folder itself to choose."
            )
            warn_user(BoxscoreWarning(text, severity="note"))
    # Skip header lines (source, resolution).
    files = _label_paths(folder, image_set)
    classes: list[Id] = []
    numbers: list[list[float]] = []
    difficult: list[bool] = []
    resolution = np.full(len(files), np.nan)
    lines = TextLines(files, "a DOTA label file", largest=None)
    for line in lines:
        header = _HEADER.fullmatch(line.strip())
        if header is not None:
            image = lines.leave_out()
            if header[1].lower() == "gsd" and is_number(header[2]):
                resolution[image] = float(header[2])
            continue
        # Every other line is an object.
        corners_of_line, label, flag = _label(line.split(), lines)
        classes.append(label)
        numbers.append(corners_of_line)
        difficult.append(flag)
    # Warn about corners that cross: they would enclose another area.
    corners = np.array(numbers, dtype=np.float64).reshape(-1, 8)
    distinct = collected(classes)
    _warn_of_crossing(corners, path, lines.place)
    return Rows(
        source=str(path),
        images=[file.stem for file in files],
        image=lines.image,
        labels=distinct.values,
        label=distinct.positions,
        boxes=None,
        box_format="xyxy",
        place=lines.place,
        given={"quadrilaterals": corners, "difficult": np.array(difficult, dtype=bool)},
        image_columns={} if np.isnan(resolution).all() else {"gsd": resolution},
    )


def _label_paths(folder: Path, image_set: str | Path | None) -> list[Path]:
    # Without a set, read every text file.
    if not folder.is_dir():
        raise FileFormatError("DOTA ground truth", "be the folder of the .txt files", got=str(folder))
    if image_set is None:
        files = sorted(file for file in folder.glob("*.txt") if file.is_file())
        if not files:
            cause = "is this the folder of images?"
            raise FileFormatError("DOTA labels", "be .txt files", got=f"none in {folder}", cause=cause)
        ask("folders in a folder", folder, _has_labels, ending=".txt")
        return files
    # A set is a list of images, each of which must have labels.
    listed = Path(image_set)
    listed = listed if is_file(listed) else folder / listed
    if not is_file(listed):
        raise FileFormatError(
            "image_set", "be a file that names the images", got=f"{image_set}, which is not there"
        )
    # Ignore repeated names.
    names = [line.strip() for line in read_text(listed).splitlines() if line.strip()]
    files = []
    for number, name in enumerate(dict.fromkeys(names), start=1):
        file = folder / f"{checks.plain_name(name, name='an image', place=f'{listed}, line {number}')}.txt"
        if not is_file(file):
            cause = "is this the right image set?"
            raise FileFormatError(
                "every image of the set",
                "have its labels",
                got=f"no {file.name}",
                place=str(folder),
                cause=cause,
            )
        files.append(file)
    return files


def _label(fields: Sequence[str], lines: TextLines) -> tuple[list[float], str, bool]:
    """Return the corners, the class and the difficult flag of a line."""
    # Count the numbers before the class: a wrong count hints at the cause.
    words = next((at for at, field in enumerate(fields) if not is_number(field)), len(fields))
    if words != 8 or len(fields) not in (9, 10):
        causes = {
            4: "is this an upright box? Task 2's labels have four corners as well",
            5: "is this a rotated box, cx cy w h angle? Labels have four corners",
            6: "a corner is missing",
        }
        cause = causes.get(words, "")
        if words == 8 and len(fields) > 10:
            cause = "does the class name contain spaces? Replace them with hyphens"
        raise FileFormatError(
            "a line of DOTA labels",
            "be x1 y1 x2 y2 x3 y3 x4 y4 class [difficult]",
            got=repr(" ".join(fields))[:80],
            place=lines.place(),
            cause=cause,
        )
    # 2 also means difficult, as in the benchmark's tool.
    flag = fields[9] if len(fields) == 10 else "0"
    if flag not in DIFFICULTIES:
        raise FileFormatError(
            "difficult", "be 0 or 1 (2 is also difficult)", got=repr(flag), place=lines.place()
        )
    return [float(field) for field in fields[:8]], fields[8], flag != "0"


def _warn_of_crossing(corners: FloatArray, path: Path, place: checks.Place) -> None:
    rows = np.flatnonzero(crossing(corners))
    if len(rows):
        warn_user(
            f"{path}: {counted_of(len(rows), len(corners), 'quadrilateral')} "
            f"{'crosses itself' if len(rows) == 1 else 'cross themselves'}, the first in "
            f"{place(int(rows[0]))}: their overlaps mean nothing; are the corners out of order?",
        )


# ---------------------------------------------------------------- results


def files_of_results(path: Path) -> list[Path]:
    """List the results files of a folder."""
    files = sorted(file for file in path.glob("Task[12]_*.txt") if RESULTS.fullmatch(file.name))
    if not files:
        labels = path.is_dir() and _label_folder(Sniffer(path)) is not None
        raise FileFormatError(
            "DOTA results",
            "be a folder of Task1_<class>.txt or Task2_<class>.txt files",
            got=f"none of them in {path}",
            cause="is this the ground truth?" if labels or any(path.glob("*.txt")) else "",
        )
    tasks = sorted({file.name[:5] for file in files})
    if len(tasks) > 1:
        raise FileFormatError("DOTA results", "be of one task", got=" and ".join(tasks), place=str(path))
    return files


def _results(path: Path) -> Rows:
    # Read a file per class with a line per detection, as for VOC.
    files = files_of_results(path)
    ask("folders in a folder", path, _has_results)
    columns = _columns(files)
    read = [read_results(file, columns, _refusal) for file in files]
    starts = np.cumsum([0, *(len(lines.images) for lines in read)]).tolist()
    numbers = np.concatenate([lines.numbers for lines in read])
    images = collected([name for lines in read for name in lines.images])
    classes: list[Id] = [cast(re.Match[str], RESULTS.fullmatch(file.name))[2] for file in files]

    def place(row: int) -> str:
        return place_of_row(files, starts, row)

    # Task 1 has four corners, task 2 upright boxes.
    corners = np.ascontiguousarray(numbers[:, 1:])
    upright = columns == UPRIGHT_COLUMNS
    if not upright:
        _warn_of_crossing(corners, path, place)
    return Rows(
        source=str(path),
        images=images.values,
        image=images.positions,
        labels=classes,
        label=np.repeat(np.arange(len(files)), np.diff(starts)),
        boxes=corners if upright else None,
        box_format="xyxy",
        place=place,
        scores=np.ascontiguousarray(numbers[:, 0]),
        given={} if upright else {"quadrilaterals": corners},
    )


def _columns(files: Sequence[Path]) -> int:
    """Return the number of columns of a task's result lines."""
    return 10 if files[0].name.startswith("Task1") else UPRIGHT_COLUMNS


def _refusal(fields: list[str], columns: int, place: str) -> FileFormatError:
    """Return the error for a line with another number of columns."""
    upright = columns == UPRIGHT_COLUMNS
    rule = "be image score xmin ymin xmax ymax" if upright else "be image score x1 y1 x2 y2 x3 y3 x4 y4"
    causes = {
        (False, 6): "upright boxes belong into Task2_<class>.txt",
        (False, 7): "is this a rotated box, cx cy w h angle? Results have four corners",
        (False, 8): "a corner is missing",
        (True, 7): "is this a rotated box, cx cy w h angle? Task 2 has upright boxes",
        (True, 10): "four corners belong into Task1_<class>.txt",
    }
    got, cause = repr(" ".join(fields))[:80], causes.get((upright, len(fields)), "")
    return FileFormatError("a line of a results file", rule, got=got, place=place, cause=cause)


def _warn_of_missing(path: Path, rows: Rows, ground_truth: GroundTruth) -> None:
    occurring = np.unique(ground_truth.category)
    names = ground_truth.categories.names[occurring].tolist()
    missing = [name for name in names if name not in rows.labels]
    if missing:
        prefix = files_of_results(path)[0].name[:5]
        shown = ", ".join(f"{prefix}_{name}.txt" for name in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        warn_user(
            f"{path}: no {shown}{more}: every object of the class counts as missed (the DOTA devkit stops "
            "here); a class without detections has an empty file.",
        )


# ---------------------------------------------------------------- writing


def _label_files(table: GroundTruth, images: Sequence[str]) -> dict[str, str | bytes]:
    names = table.categories.names.tolist()
    lines: list[list[str]] = [[] for _ in images]
    rows = (
        table.image.tolist(),
        table.category.tolist(),
        table.difficult.tolist(),
        corners_of(table).tolist(),
    )
    for image, category, difficult, corners in zip(*rows, strict=True):
        lines[image].append(" ".join([*map(repr, corners), names[category], str(int(difficult))]) + "\n")
    return {f"{name}.txt": "".join(texts) for name, texts in zip(images, lines, strict=True)}


def _result_files(table: Detections, images: Sequence[str]) -> dict[str, str | bytes]:
    upright = table.quadrilaterals is None and table.rotated is None
    shapes = table.boxes if upright else corners_of(table)
    task = "Task2" if upright else "Task1"
    names = [checks.plain_name(name, name="a class name") for name in table.categories.names.tolist()]
    texts = results_texts(table, images, shapes)
    return {f"{task}_{name}.txt": text for name, text in zip(names, texts, strict=True)}


def _refuse_others(path: Path, files: Mapping[str, object]) -> None:
    """Raise if a folder has other .txt files, which would be read with the new ones."""
    others = {file.name for file in path.glob("*.txt")} - {*files}
    if others:
        rule = "hold no other .txt files, which would be read with these"
        raise InputError("the output folder", rule, got=min(others), place=str(path))
