"""PASCAL VOC: folders of XML annotations with image sets, and the kit's results files.

Conventions
-----------
- ``VOC2007/Annotations/<image>.xml``, ``VOC2007/ImageSets/Main/<set>.txt``; an image's id is the file's stem.
  A folder of XML files alone works as well.
- Boxes are ``xmin, ymin, xmax, ymax``, 1-based and inclusive, and are kept as they stand; the protocol's
  ``pixel_offset`` says what they mean. Decimals occur.
- Missing ``difficult``, ``truncated`` and ``occluded`` mean 0.
- Classes are the names that occur in the chosen images and, for results, in the ground truth: sorted, with
  ids 1, 2, ... in that order.
- Results: one file a class, ``comp4_det_<set>_<class>.txt``, lines of ``image score xmin ymin xmax ymax``.

References
----------
The PASCAL VOC development kit: ``VOCreadrecxml.m``, ``VOCevaldet.m``, and its documentation.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from boxscore import _validate
from boxscore._collector import paused_collector
from boxscore._files import is_file
from boxscore._validate import message
from boxscore.datasets._places import resolve_images
from boxscore.datasets._xml import XmlFile, read_xml
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.tables import Detections, GroundTruth
from boxscore.vocabulary import Images, as_ids

__all__ = [
    "is_ground_truth",
    "is_results",
    "is_results_file",
    "load_detections",
    "load_ground_truth",
    "load_results",
    "results_files",
    "stem_parts",
]

SIDES = ("xmin", "ymin", "xmax", "ymax")
RESULTS_COLUMNS = 6


def is_ground_truth(folder: Path) -> bool:
    """Whether a folder holds VOC annotations."""
    return (folder / "Annotations").is_dir() or any(folder.glob("*.xml"))


def is_results(folder: Path) -> bool:
    """Whether a folder holds the kit's results files."""
    return any(folder.glob("comp[0-9]_det_*.txt"))


def is_results_file(path: Path) -> bool:
    """Whether a file's name is that of one of the kit's results files."""
    return path.suffix == ".txt" and re.match(r"comp\d_det_", path.name) is not None


@paused_collector()
def load_ground_truth(path: Path, *, image_set: str | Path | None = None) -> GroundTruth:
    """Read a VOC folder.

    Parameters
    ----------
    path : Path
        ``VOC2007``, or a folder of XML files.
    image_set : str or Path, optional
        The name of a file in ``ImageSets/Main`` (``"test"``) or the path of one. When not given: the only
        set there is, or every XML file where there are no sets.

    Returns
    -------
    GroundTruth

    Raises
    ------
    FileFormatError
        When a file is missing or breaks a rule; names file, line and value.
    """
    from tqdm import tqdm

    annotations = path / "Annotations" if (path / "Annotations").is_dir() else path
    if not annotations.is_dir():
        raise FileFormatError(
            message("VOC ground truth", "be a folder with Annotations", got=f"{path}, which is not a folder")
        )
    names = _image_names(path, annotations, image_set)
    image_ids: list[str] = []
    classes: list[str] = []
    boxes: list[list[float]] = []
    flags: list[tuple[bool, bool, bool]] = []
    places: list[tuple[Path, int]] = []
    file_names: list[str | None] = []
    sizes: list[tuple[float, float]] = []
    for name in tqdm(names, desc=f"reading {path.name}", unit="file", delay=1, disable=None, leave=False):
        file = annotations / f"{name}.xml"
        if not is_file(file):
            raise FileFormatError(
                message(
                    "every image of the set",
                    "have its XML",
                    got=f"no {file.name}",
                    place=str(annotations),
                    cause="is this the right image set?",
                )
            )
        read = read_xml(file)
        root = read.root
        if root.tag != "annotation":
            raise FileFormatError(
                message(
                    "a VOC file",
                    "be an <annotation>",
                    got=f"<{root.tag}>",
                    place=str(file),
                    cause="was it written by another program?",
                )
            )
        file_names.append(_text_of(root, "filename"))
        sizes.append(_image_size(read))
        for number, element in enumerate(root.findall("object")):
            image_ids.append(name)
            classes.append(_class_name(element, read))
            boxes.append(_box(element, read))
            flags.append(
                (
                    _flag(element, "difficult", read),
                    _flag(element, "truncated", read),
                    _flag(element, "occluded", read),
                )
            )
            places.append((file, number))
    marks = np.array(flags, dtype=bool).reshape(-1, 3)
    numbers = {label: index for index, label in enumerate(sorted(set(classes)), start=1)}
    return GroundTruth.from_arrays(
        image_ids,
        np.array([numbers[label] for label in classes], dtype=np.int64),
        np.array(boxes, dtype=np.float64).reshape(-1, 4),
        box_format="xyxy",
        difficult=marks[:, 0],
        images=Images.build(names, file_names=file_names, sizes=np.array(sizes).reshape(-1, 2)),
        categories={index: label for label, index in numbers.items()},
        columns={"truncated": marks[:, 1], "occluded": marks[:, 2]},
        source=str(path),
        place=lambda row: _place_of_object(*places[row]),
    )


def _place_of_object(path: Path, number: int) -> str:
    file = read_xml(path)
    return file.place(file.root.findall("object")[number])


def load_detections(path: Path, ground_truth: GroundTruth) -> Detections:
    """Read a folder of the kit's results files, ``comp4_det_<set>_<class>.txt``.

    Parameters
    ----------
    path : Path
        The folder. A class without a file has no detections.
    ground_truth : GroundTruth

    Returns
    -------
    Detections
        In file order, class by class. Those of classes that the ground truth does not have are left out
        and counted in ``left_out``.

    Raises
    ------
    FileFormatError
        When a line breaks a rule; names file, line and value.
    InputError
        When an image is unknown, a number not finite or a side negative.
    """
    files = results_files(path)
    known = {str(label): row for row, label in enumerate(ground_truth.categories.names.tolist())}
    left_out: dict[str, int] = {}
    images: list[str] = []
    numbers: list[NDArray[np.float64]] = []
    rows: list[NDArray[np.int32]] = []
    starts: list[int] = []
    classes = _results_classes(files, known)
    for file, label in zip(files, classes, strict=True):
        names, values = _results_lines(file)
        if label not in known:
            left_out[label] = left_out.get(label, 0) + len(names)
            continue
        starts.append(len(images))
        images += names
        numbers.append(values)
        rows.append(np.full(len(names), known[label], dtype=np.int32))
    read = [file for file, label in zip(files, classes, strict=True) if label in known]

    def place(row: int) -> str:
        return _results_place(read, starts, row)

    table = np.concatenate([np.empty((0, 5)), *numbers])
    return Detections.from_rows(
        ground_truth,
        resolve_images(as_ids(images, name="image"), ground_truth, place=place),
        np.concatenate([np.empty(0, dtype=np.int32), *rows]),
        np.ascontiguousarray(table[:, 1:]),
        np.ascontiguousarray(table[:, 0]),
        box_format="xyxy",
        left_out={label: count for label, count in left_out.items() if count},
        source=str(path),
        place=place,
    )


def load_results(path: Path) -> Detections:
    """Read a folder of the kit's results files for its own sake: no ground truth says which classes exist.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Detections
        In the order of :func:`results_files`, every line that is not blank a row. A file's class is what its
        name says after ``comp4_det_<set>_``.

    Raises
    ------
    FileFormatError, InputError
        As from :func:`load_detections`.
    """
    files = results_files(path)
    read = [_results_lines(file) for file in files]
    labels = [stem_parts(file)[1] for file in files]
    counts = [len(names) for names, _ in read]
    starts = (np.cumsum(counts) - counts).tolist()
    table = np.concatenate([values for _, values in read])
    return Detections.from_arrays(
        as_ids([name for names, _ in read for name in names], name="image"),
        as_ids(
            [label for label, count in zip(labels, counts, strict=True) for _ in range(count)], name="class"
        ),
        table[:, 1:],
        table[:, 0],
        categories=dict.fromkeys(labels),
        source=str(path),
        place=lambda row: _results_place(files, starts, row),
    )


def results_files(path: Path) -> list[Path]:
    """List the results files of a folder, in the order in which they are read.

    Raises
    ------
    FileFormatError
        When there are none.
    """
    files = sorted(path.glob("comp[0-9]_det_*.txt"))
    if not files:
        raise FileFormatError(
            message(
                "VOC results",
                "be a folder of comp4_det_<set>_<class>.txt files",
                got=f"none of them in {path}",
                cause="is this the ground truth?" if is_ground_truth(path) else "",
            )
        )
    if len({stem_parts(file)[0] for file in files}) > 1:
        sets = sorted({stem_parts(file)[0] for file in files})
        warnings.warn(
            f"{path}: results of several competitions or sets lie here ({', '.join(sets)}); all are read.",
            BoxscoreWarning,
            stacklevel=4,
        )
    return files


def _results_place(files: Sequence[Path], starts: Sequence[int], row: int) -> str:
    """Name the file and line of a row; ``starts`` is the first row of each file."""
    index = int(np.searchsorted(starts, row, side="right")) - 1
    filled = (n for n, line in enumerate(_text(files[index]).splitlines(), start=1) if line.split())
    return f"{files[index]}, line {next(itertools.islice(filled, row - starts[index], None))}"


def _image_names(path: Path, annotations: Path, image_set: str | Path | None) -> list[str]:
    """Images of the set, in file order, each once."""
    folder = path / "ImageSets" / "Main"
    if image_set is None:
        sets = sorted(folder.glob("*.txt"))
        if not sets:
            names = sorted(file.stem for file in annotations.glob("*.xml"))
            if not names:
                raise FileFormatError(
                    message(
                        "VOC ground truth",
                        "hold XML files",
                        got=f"none in {annotations}",
                        cause="is this a folder of results?" if is_results(path) else "",
                    )
                )
            return names
        if len(sets) > 1:
            choices = ", ".join(file.stem for file in sets[:12]) + (", ..." if len(sets) > 12 else "")
            raise InputError(
                message(
                    "image_set",
                    "be given where there are several",
                    got=f"none, in {folder}",
                    cause=f"choose from {choices}",
                )
            )
        file = sets[0]
    else:
        file = Path(image_set)
        if file.suffix != ".txt":
            file = folder / f"{_validate.plain_name(str(image_set), name='image_set')}.txt"
    if not is_file(file):
        known = sorted(entry.stem for entry in folder.glob("*.txt"))
        cause = _validate.did_you_mean(file.stem, known) if file.parent == folder else ""
        raise FileFormatError(
            message(
                "image_set", "be the name of a set or a file", got=f"{file}, which is not there", cause=cause
            )
        )
    names = []
    for number, line in enumerate(_text(file).splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) > 2:
            raise FileFormatError(
                message(
                    "a line of an image set",
                    "be an image, or an image and 1, 0 or -1",
                    got=repr(line),
                    place=f"{file}, line {number}",
                )
            )
        if len(fields) == 2 and fields[1] == "-1":
            continue  # a class's set lists the images without it, too
        names.append(_validate.plain_name(fields[0], name="an image id", place=f"{file}, line {number}"))
    if not names:
        raise FileFormatError(
            message("an image set", "name at least one image", got="an empty file", place=str(file))
        )
    return list(dict.fromkeys(names))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileFormatError(
            message("a text file", "be UTF-8", got="other bytes", place=str(path))
        ) from None


def _text_of(element: Element, tag: str) -> str | None:
    """Return the text of the first child with a tag, None without one or when it is blank."""
    return (element.findtext(tag) or "").strip() or None


def _image_size(file: XmlFile) -> tuple[float, float]:
    size = file.root.find("size")
    if size is None:
        return (np.nan, np.nan)
    return (_number(size, "width", file, default=np.nan), _number(size, "height", file, default=np.nan))


def _class_name(element: Element, file: XmlFile) -> str:
    name = _text_of(element, "name")
    if name is None:
        raise FileFormatError(message("an object", "have a name", got="none", place=file.place(element)))
    return name


def _box(element: Element, file: XmlFile) -> list[float]:
    box = element.find("bndbox")
    if box is None:
        raise FileFormatError(message("an object", "have a bndbox", got="none", place=file.place(element)))
    return [_number(box, side, file) for side in SIDES]


def _number(parent: Element, tag: str, file: XmlFile, *, default: float | None = None) -> float:
    text = _text_of(parent, tag)
    if text is None:
        if default is not None:
            return default
        raise FileFormatError(message(f"a {parent.tag}", f"have {tag}", got="none", place=file.place(parent)))
    try:
        return float(text)
    except ValueError:
        raise FileFormatError(message(tag, "be a number", got=repr(text), place=file.place(parent))) from None


def _flag(element: Element, tag: str, file: XmlFile) -> bool:
    text = _text_of(element, tag)
    if text is None or text == "0":
        return False
    if text == "1":
        return True
    raise FileFormatError(message(tag, "be 0 or 1", got=repr(text), place=file.place(element)))


def stem_parts(file: Path) -> tuple[str, str]:
    """Split ``comp4_det_test_car`` into ``comp4_det_test`` and ``car``."""
    found = re.match(r"(comp\d_det_[^_]+)_(.+)$", file.stem)
    return (found[1], found[2]) if found else (file.stem, file.stem)


def _results_classes(files: Sequence[Path], known: Iterable[str]) -> list[str]:
    """Name the class of each results file: what stands after the part that names competition and set.

    Sets and classes may both have underscores. That part is taken to be the one with which most files of the
    folder end in a known class, so that ``..._tabby_cat`` beside ``..._cat`` is not a cat.
    """
    labels = sorted(known)
    votes = Counter(
        file.stem.removesuffix(label) for file in files for label in labels if file.stem.endswith(f"_{label}")
    )
    classes = []
    for file in files:
        starts = [start for start in votes if file.stem.startswith(start)]
        start = max(starts, key=lambda start: (votes[start], -len(start)), default="")
        classes.append(file.stem.removeprefix(start) if start else stem_parts(file)[1])
    return classes


@paused_collector()
def _results_lines(file: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Image of each line, and its score and box [N, 5]."""
    lines = [(number, line.split()) for number, line in enumerate(_text(file).splitlines(), start=1)]
    lines = [(number, fields) for number, fields in lines if fields]
    for number, fields in lines:
        if len(fields) != RESULTS_COLUMNS:
            raise FileFormatError(
                message(
                    "a line of a results file",
                    "have 6 columns: image score xmin ymin xmax ymax",
                    got=f"{len(fields)}, {' '.join(fields)[:60]!r},",
                    place=f"{file}, line {number}",
                )
            )
    try:
        values = [float(field) for _, fields in lines for field in fields[1:]]
    except ValueError:
        number, fields = next((n, f) for n, f in lines if not all(map(_is_number, f[1:])))
        bad = next(field for field in fields[1:] if not _is_number(field))
        raise FileFormatError(
            message("scores and coordinates", "be numbers", got=repr(bad), place=f"{file}, line {number}")
        ) from None
    return [fields[0] for _, fields in lines], np.array(values, dtype=np.float64).reshape(-1, 5)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
