"""Read MOTChallenge's text files, and CVAT's "MOT 1.1": every frame is an image.

Conventions
-----------
- Lines of ground truth are ``frame, id, left, top, width, height, flag, class, visibility``; MOT15's have ten
  cells and no class. Lines of detections are ``frame, id, left, top, width, height, score``, perhaps with a
  class (nine cells), or three numbers that are not used (ten cells). Ids of tracks are not used.
- The image id is the frame. ``seqinfo.ini`` gives the number of frames, the image size and the file names;
  without it, the images are the frames in the file.
- MOTChallenge counts pixels from 1, so 1 is subtracted from left and top. CVAT, which writes ``labels.txt``,
  counts from 0.
- MOTChallenge's objects are the pedestrians whose flag is not 0. Objects of classes that TrackEval removes
  with their detections (2, 7, 8 and 12, in MOT20 also 6) are ignored, others are dropped. The column of
  ``ignore`` or ``crowd``, given by the user, changes this: ``flag`` adds pedestrians with flag 0, ``none``
  drops all of them.
- With a class list, from ``labels.txt`` or from the user, classes count from 1, as CVAT writes them, and
  objects with flag 0 are ignored; a column ``none`` drops them.
- Detections count pixels as their ground truth does, if that is of this format.

References
----------
https://motchallenge.net/instructions, TrackEval's ``mot_challenge_2d_box.py``,
https://docs.cvat.ai/docs/manual/advanced/formats/format-mot/
"""

from __future__ import annotations

import configparser
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.files import read_text
from boxscore._utils.memory import paused_collector
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.formats._gathered import are_numbers
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._label_files import TextLines, numbers_of
from boxscore.formats._rows import Rows, detections_of, ground_truth_of
from boxscore.formats._sniffer import Sniffer
from boxscore.formats.class_lists import class_list
from boxscore.formats.registry import open_at

FROM_ONE = "left and top were reduced by 1, because MOTChallenge counts pixels from 1"

PEDESTRIAN, CLASSES = "pedestrian", 13
"""MOTChallenge's class 1, and the number of its classes."""
DISTRACTORS, ALSO_IN_MOT20 = (2, 7, 8, 12), (6,)
"""Person on vehicle, static person, distractor, reflection; MOT20 adds other vehicles."""

LARGEST = 1 << 30
"""Maximum size in bytes of a file."""
MOST_FRAMES = 10_000_000


class _Sequence(NamedTuple):
    """The content of seqinfo.ini."""

    name: str
    frames: int
    size: tuple[float, float]
    folder: str
    ending: str

    def file_name(self, frame: int) -> str:
        """Return the name of the image of a frame."""
        return f"{self.folder}/{frame:06}{self.ending}"


class _Read(NamedTuple):
    """The lines of a file as numbers, [N, 7, 9 or 10]."""

    numbers: FloatArray
    lines: TextLines
    file: Path

    @property
    def frames(self) -> IntArray:
        """The frame of each line."""
        return self.numbers[:, 0].astype(np.int64)

    @property
    def has_classes(self) -> bool:
        """Whether lines have a class, the eighth of nine numbers, other than -1."""
        return self.numbers.shape[1] == 9 and bool((self.numbers[:, 7] != -1).any())

    def classes(self, most: int, cause: str) -> IntArray:
        """Return the class of each line, from 1; raise for others than the first ``most``."""
        given = self.numbers[:, 7]
        wrong = (given < 1) | (given > most) | (given % 1 != 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            rule, got = f"be a number from 1 to {most}", f"{given[row]:g}"
            raise FileFormatError("a class", rule, got=got, place=self.lines.place(row), cause=cause)
        return given.astype(np.int64)

    def boxes(self, *, from_one: bool) -> FloatArray:
        """Return left, top, width and height, [N, 4], of pixels that count from 0."""
        return self.numbers[:, 2:6] - (np.array([1.0, 1.0, 0.0, 0.0]) if from_one else 0.0)


class MotFormat(Format):
    """MOTChallenge's gt.txt, det.txt and results."""

    name = "mot"
    boxes = "xywh"
    takes = frozenset({"classes", "columns", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the folder of a sequence, or a first line of numbers with a frame and an id."""
        if sniffer.is_folder:
            files = (sniffer.path / "gt" / "gt.txt", sniffer.path / "det" / "det.txt")
            return "a sequence of MOTChallenge" if any(file.is_file() for file in files) else None
        cells = _cells(sniffer.first_line)
        known = cells is not None and cells[0] >= 0 and cells[0] % 1 == 0 == cells[1] % 1
        return "lines of MOTChallenge" if known else None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read annotations."""
        with paused_collector():
            read = _read(path / "gt" / "gt.txt" if path.is_dir() else path)
        numbers, file = read.numbers, read.file
        if numbers.shape[1] == 7 or (len(numbers) and (numbers[:, 1] < 0).all()):
            cause = "pass it as the detections, after the ground truth"
            raise FileFormatError(
                "ground truth", "be annotations", got="detections", place=str(file), cause=cause
            )
        info, (role, column) = _sequence_of(file), _role(options, file)
        labels = _labels_of(file) if options.classes is None else options.classes
        # Choose the objects that count, and those to ignore.
        flagged = numbers[:, 6] != 0
        if labels is None:
            label = np.zeros(len(numbers), dtype=np.int64)
            pedestrian, distracting = _kinds(read, flagged, info)
            ignored = distracting | (pedestrian & ~flagged & (column == "flag"))
            kept = (pedestrian & flagged) | ignored
        else:
            label = read.classes(len(labels), "is this the class list of these files?") - 1
            ignored = ~flagged
            kept = np.ones(len(numbers), dtype=bool)
        if column == "none":
            kept &= ~ignored
        from_one = _labels_of(file) is None
        _tell(read, kept, ignored, role, column, of_pedestrians=labels is None, from_one=from_one)
        # Every frame of the sequence is an image.
        chosen = np.flatnonzero(kept)
        frames = read.frames
        images = np.unique(frames) if info is None else np.arange(1, info.frames + 1)
        if info is None:
            warn_user(
                f"{file.name}: without seqinfo.ini in its folder or the one above, the images are the "
                f"{counted(len(images), 'frame')} in the file."
            )
        elif len(frames) and not 1 <= frames.min() <= frames.max() <= info.frames:
            row = int(np.argmax((frames < 1) | (frames > info.frames)))
            rule = f"be from 1 to {info.frames}, the seqLength of seqinfo.ini"
            raise FileFormatError("a frame", rule, got=frames[row], place=read.lines.place(row))
        rows = Rows(
            source=str(path),
            images=images.tolist(),
            image=np.searchsorted(images, frames[chosen]),
            labels=[PEDESTRIAN] if labels is None else list(range(len(labels))),
            label=label[chosen],
            classes=labels,
            boxes=read.boxes(from_one=from_one)[chosen],
            box_format="xywh",
            place=lambda row: read.lines.place(int(chosen[row])),
            file_names=None if info is None else [info.file_name(frame) for frame in images.tolist()],
            sizes=None if info is None else np.tile(info.size, (len(images), 1)),
            given={} if column == "none" else {role: ignored[chosen]},
            columns={"visibility": numbers[chosen, 8]} if numbers.shape[1] == 9 else {},
        )
        return ground_truth_of(rows, options)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections."""
        with paused_collector():
            read = _read(path / "det" / "det.txt" if path.is_dir() else path)
        if options.columns is not None and options.columns.tables is None:
            rule, got = "be left out for the detections of MOTChallenge", str(options.columns)
            raise InputError(options.columns.name, rule, got=got, place=str(read.file))
        # Pixels count as in the ground truth if that is of the same format.
        is_same = ground_truth is not None and _is_mot(ground_truth)
        from_one = not read.has_classes
        if ground_truth is not None and is_same:
            source = Path(ground_truth.source)
            from_one = _labels_of(source / "gt" / "gt.txt" if source.is_dir() else source) is None
        if from_one and not is_same:
            warn_user(BoxscoreWarning(f"{read.file.name}: {FROM_ONE}.", severity="note"))
        labels, label = _labels(read, options, ground_truth, is_same=is_same)
        images, image = np.unique(read.frames, return_inverse=True)
        rows = Rows(
            source=str(path),
            images=images.tolist(),
            image=image.astype(np.int64).ravel(),
            labels=labels,
            label=label,
            boxes=read.boxes(from_one=from_one),
            box_format="xywh",
            place=read.lines.place,
            scores=read.numbers[:, 6],
        )
        return detections_of(rows, options, ground_truth)


def _cells(line: str) -> list[float] | None:
    """Return the numbers of a line; None for other lines."""
    fields = line.strip().rstrip(",").split(",")
    cells = numbers_of(fields) if len(fields) in (7, 9, 10) else None
    return cells if cells is not None and np.isfinite(cells).all() else None


def _read(file: Path) -> _Read:
    """Read all lines of a file, which have as many numbers as the first."""
    numbers: list[list[float]] = []
    lines = TextLines([file], "a text file of MOTChallenge", largest=LARGEST)
    for line in lines:
        cells = _cells(line)
        if cells is None or (numbers and len(cells) != len(numbers[0])):
            rule = "be frame,id,left,top,width,height,score,... of "
            rule += f"{len(numbers[0])} numbers, as the first" if numbers else "7, 9 or 10 numbers"
            raise FileFormatError("a line", rule, got=repr(line)[:80], place=lines.place())
        if not 0 <= cells[0] <= MOST_FRAMES or cells[0] % 1:
            rule = f"be a whole number from 0 to {MOST_FRAMES:,}"
            raise FileFormatError("a frame", rule, got=f"{cells[0]:g}", place=lines.place())
        numbers.append(cells)
    table = np.array(numbers, dtype=np.float64).reshape(len(numbers), len(numbers[0]) if numbers else 9)
    # MOTChallenge has three coordinates at the end of ten numbers, or -1; VisDrone's videos have a class.
    last = table[:, 7:]
    are_flags = np.isin(last[:, 1:], (-1, 0, 1, 2)).all() and not (last == -1).all()
    if table.shape[1] == 10 and are_flags and np.isin(last[:, 0], range(12)).all():
        cause = "VisDrone's videos are not read: write nine numbers, frame,id,left,top,width,height,flag,"
        cause += "class,visibility, and the names of the classes to labels.txt"
        got = ",".join(f"{cell:g}" for cell in last[0])
        rule = "not have a class if it has ten numbers"
        raise FileFormatError("a line", rule, got=got, place=lines.place(0), cause=cause)
    return _Read(table, lines, file)


# ---------------------------------------------------------------- ground truth


def _role(options: ReadOptions, file: Path) -> tuple[str, str | None]:
    """Return the column for objects with flag 0, and the value given by the user, or None."""
    if options.columns is None:
        return "ignore", None
    options.columns.record_table(("flag", "none"), str(file))
    roles = {"ignore": "ignore", "isignore": "ignore", "crowd": "crowd", "iscrowd": "crowd"}
    ((part, column), *more) = options.columns.columns.items()
    if more or part not in roles or column not in ("flag", "none"):
        rule = "be ignore=flag, ignore=none or crowd=flag for files of MOTChallenge"
        raise InputError(options.columns.name, rule, got=str(options.columns), place=str(file))
    return roles[part], column


def _kinds(read: _Read, flagged: BoolArray, info: _Sequence | None) -> tuple[BoolArray, BoolArray]:
    """Return which objects are pedestrians, and which TrackEval removes with their detections, [N] each."""
    give = "if these are not MOTChallenge's classes, pass their names from number 1: --gt-classes FILE"
    if read.numbers.shape[1] == 10:
        return np.ones(len(read.numbers), dtype=bool), np.zeros(len(read.numbers), dtype=bool)
    classes = read.classes(CLASSES, give)
    strange = flagged & (classes != 1)
    if strange.any():
        row = int(np.argmax(strange))
        got = f"a flag for class {classes[row]}"
        raise FileFormatError(
            "an object", "be a pedestrian (1) to count", got=got, place=read.lines.place(row), cause=give
        )
    name = read.file.parent.parent.name if info is None else info.name
    distractors = (*DISTRACTORS, *(ALSO_IN_MOT20 if name.startswith("MOT20") else ()))
    return classes == 1, np.isin(classes, distractors)


def _tell(
    read: _Read,
    kept: BoolArray,
    ignored: BoolArray,
    role: str,
    column: str | None,
    *,
    of_pedestrians: bool,
    from_one: bool,
) -> None:
    """Tell the user how flags and pixels are read, if that matters, and how to read flags in another way."""
    count = int((kept & ignored).sum())
    treated = f"{counted(count, 'object')} " + ("to ignore" if role == "ignore" else "taken as crowds")
    left_out = f"{int((~kept).sum()):,} left out"
    parts = []
    if of_pedestrians:
        how = "as in TrackEval: " if column is None else ""
        parts.append(f"{how}{counted(int((kept & ~ignored).sum()), 'pedestrian')}, {treated}, {left_out}")
    elif ignored.any():
        parts.append(f"flag 0: {treated}, {left_out}")
    by_flag = bool(parts)
    if from_one:
        parts.append(FROM_ONE)
    if by_flag:
        parts.append("--gt-columns ignore=flag, crowd=flag or ignore=none reads flag 0 in another way")
    if parts:
        warn_user(BoxscoreWarning(f"{read.file.name}: {'; '.join(parts)}.", severity="note"))


def _labels_of(file: Path) -> Sequence[str] | None:
    """Return the class list that CVAT writes next to gt.txt, or None."""
    path = file.parent / "labels.txt"
    return class_list(path) if path.is_file() else None


def _sequence_of(file: Path) -> _Sequence | None:
    """Read seqinfo.ini in the folder of a file, or in the folder above; None without one."""
    places = (file.parent / "seqinfo.ini", file.parent.parent / "seqinfo.ini")
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        return None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(read_text(path, "seqinfo.ini", largest=1 << 16))
        section = parser["Sequence"]
        frames = int(section["seqLength"])
        size = (float(int(section.get("imWidth", "0"))), float(int(section.get("imHeight", "0"))))
    except (configparser.Error, KeyError, ValueError, OverflowError):
        rule = "have [Sequence] with seqLength, imWidth and imHeight, whole numbers"
        raise FileFormatError("seqinfo.ini", rule, got="others", place=str(path)) from None
    if not 0 <= frames <= MOST_FRAMES or not all(0 <= side <= 1e9 for side in size):
        rule = f"have a seqLength from 0 to {MOST_FRAMES:,} and an image size"
        raise FileFormatError("seqinfo.ini", rule, got=frames, place=str(path))
    names = (section.get(key, other) for key, other in (("imDir", "img1"), ("imExt", ".jpg")))
    return _Sequence(section.get("name", path.parent.name), frames, size, *names)


# ---------------------------------------------------------------- detections


def _is_mot(ground_truth: GroundTruth) -> bool:
    """Whether a ground truth was read from a file of this format."""
    path = Path(ground_truth.source)
    return bool(ground_truth.source) and path.exists() and open_at(path).format.name == "mot"


def _labels(
    read: _Read, options: ReadOptions, truth: GroundTruth | None, *, is_same: bool
) -> tuple[list[Id], IntArray]:
    """Return the classes, and the class of each line."""
    one = np.zeros(len(read.numbers), dtype=np.int64)
    names: list[Id] = [PEDESTRIAN] if truth is None else truth.categories.ids.tolist()
    give = "pass the names of the classes, from number 1: --dt-classes FILE (in Python classes=)"
    positions = truth is not None and truth.categories.are_positions
    # Lines with a class: its number counts from 1 in a list.
    if read.has_classes:
        if options.classes is not None:
            return list(range(len(options.classes))), read.classes(len(options.classes), give) - 1
        # Without ground truth, and for a class map, classes are the numbers of the file.
        if truth is None or are_numbers(truth.categories):
            numbers, label = np.unique(read.classes(1 << 31, ""), return_inverse=True)
            return numbers.tolist(), label.astype(np.int64).ravel()
        if is_same and positions:
            return names, read.classes(len(names), give) - 1
        if is_same:
            cause = "MOTChallenge evaluates pedestrians alone, class 1: leave other lines out"
            return [PEDESTRIAN], read.classes(1, cause) - 1
        rule, got = "be named, because they are numbers from 1", "no list of them"
        raise FileFormatError("the classes", rule, got=got, place=str(read.file), cause=give)
    # Lines without a class: the only one.
    if options.classes is not None:
        names = list(range(len(options.classes)))
    if len(names) > 1 or not names:
        rule, got = "have one class, because lines without a class have one", counted(len(names), "class")
        raise FileFormatError(
            "the ground truth" if options.classes is None else "the class list of the detections",
            rule,
            got=got,
            place=str(read.file),
            cause="pass a file with the name of their class: --dt-classes FILE (in Python classes=)",
        )
    return names, one


FORMAT = MotFormat()
