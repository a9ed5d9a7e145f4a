"""Read PASCAL VOC: XML annotations with image sets, and the devkit's results files, one per class.

Conventions
-----------
- ``VOC2007/Annotations/<image>.xml``, ``VOC2007/ImageSets/Main/<set>.txt``; the image id is the stem of the
  file. A plain folder of XML files is accepted too.
- Boxes are ``xmin, ymin, xmax, ymax``, 1-based and inclusive, and are kept as given; ``pixel_offset`` of the
  protocol defines their size. Decimals are allowed.
- Results may have inverted boxes (xmax < xmin), which darknet writes at the border of an image. They are
  kept, as in the devkit, where they do not overlap anything unless inverted by less than a pixel.
- Results are ``comp4_det_<set>_<class>.txt`` with lines ``image score xmin ymin xmax ymax``. Without ground
  truth, the classes are the names in the file names, sorted, with ids 1, 2, ... in that order.

References
----------
The PASCAL VOC development kit: ``VOCreadrecxml.m``, ``VOCevaldet.m``, and its documentation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore._utils.files import is_file, read_text, write_folder
from boxscore._utils.text import counted_of, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import in_pixels
from boxscore.data.boxes import CORNERS
from boxscore.data.building import built_columns, vocabulary_columns
from boxscore.data.hints import ask
from boxscore.data.lookup import find_images
from boxscore.data.schema import DETECTIONS
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Id, as_ids
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._label_files import file_stems, refuse_shared_names
from boxscore.formats._results_by_class import (
    ResultLines,
    place_of_row,
    read_results,
    results_texts,
    rewrite_results,
)
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._survivors import Survivors
from boxscore.formats.image_sizes import with_known_sizes

RESULTS = "comp[0-9]_det_*.txt"
RESULTS_COLUMNS = 6


class VocFormat(Format):
    """PASCAL VOC folders."""

    name = "voc"
    folder_endings = (".xml", ".txt")
    boxes = "xyxy"
    takes = frozenset({"image_set"})
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": frozenset(
            {"difficult", "sizes", "file names", "column truncated", "column occluded"}
        ),
        "detections": frozenset({"classes"}),
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Accept a folder by its files; raise for a single file of such a folder."""
        path = sniffer.path
        if sniffer.is_folder:
            if _has_results(path):
                return "a folder of comp*_det_*.txt files"
            return "a folder of XML annotations" if _has_annotations(path) else None
        if path.suffix.lower() == ".xml" and re.search(r"<[Aa]nnotation[\s>]", sniffer.text) is not None:
            raise FileFormatError(
                "VOC ground truth", "be the folder of the XML files", got=f"one file, {path}"
            )
        if path.suffix == ".txt" and re.match(r"comp\d_det_", path.name):
            raise FileFormatError(
                "VOC results", "be the folder of the comp4_det_*.txt files", got=f"one file, {path}"
            )
        return None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read a folder of annotations."""
        from boxscore.formats._voc_xml import read_annotations

        folder, names = annotations_of(path, options)
        return read_annotations(path, folder, names, options.written or CORNERS)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read a folder of the devkit's results files."""
        return ResultsReading(path, options).detections(ground_truth)

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write an XML file per image, or a results file per class, even if it is empty."""
        _refuse_file(path)
        refuse_shared_names(table)
        if isinstance(table, GroundTruth):
            from boxscore.formats._voc_xml import annotation_files

            _refuse_other_annotations(path, files := annotation_files(table))
            write_folder(path, files)
            return
        prefix = "comp4_det_test" if like is None else _stem_parts(_results_files(like)[0])[0]
        labels = table.categories.names.tolist()
        names = [f"{prefix}_{checks.plain_name(label, name='a class name')}.txt" for label in labels]
        _refuse_other_results(path, set(names))
        write_folder(path, dict(zip(names, _results_texts(cast(Detections, table)), strict=True)))

    def class_ids(self, table: BoxTable) -> list[Id]:
        """Return ids 1, 2, ... for the classes that occur, sorted by name."""
        ids, names = table.categories.ids.tolist(), table.categories.names
        occurring = sorted(names[np.unique(table.category)].tolist())
        numbers = {name: number for number, name in enumerate(occurring, start=1)}
        return [numbers.get(name, identifier) for name, identifier in zip(names.tolist(), ids, strict=True)]


FORMAT = VocFormat()


def files_of_results(path: Path) -> list[Path]:
    """List the devkit's results files in a folder."""
    return sorted(path.glob(RESULTS))


def rewrite(path: Path, survivors: Survivors, output: Path) -> None:
    """Copy the surviving lines, with new scores and boxes where they change."""
    _refuse_file(output)
    files = files_of_results(path)
    _refuse_other_results(output, {file.name for file in files})

    def corners(numbers: FloatArray) -> FloatArray:
        boxes = survivors.written("xyxy").corners_of(numbers)
        boxes[(boxes[:, 2:] < boxes[:, :2]).any(axis=1)] = np.nan  # do not compare inverted boxes
        return boxes

    rewrite_results(path, files, RESULTS_COLUMNS, survivors, output, corners=corners)


def _has_annotations(folder: Path) -> bool:
    return (folder / "Annotations").is_dir() or any(folder.glob("*.xml"))


def _has_results(folder: Path) -> bool:
    return any(folder.glob(RESULTS))


def _cause_of_missing_xml(path: Path, annotations: Path) -> str:
    """Return the probable cause of missing XML files; empty if unknown."""
    if _has_results(path):
        return "is this a folder of results?"
    return "it has .txt files: if they are YOLO labels, give it" if any(annotations.glob("*.txt")) else ""


def joins(folder: Path, file: Path) -> bool:
    """Whether a new file would be read with the annotations, image sets or results of a folder."""
    annotations = folder / "Annotations" if (folder / "Annotations").is_dir() else folder
    within = {".xml": annotations, ".txt": folder / "ImageSets" / "Main"}.get(file.suffix.lower())
    return file.parent == within or (file.parent == folder and file.match(RESULTS))


# ---------------------------------------------------------------- image sets


def annotations_of(path: Path, options: ReadOptions) -> tuple[Path, list[str]]:
    """Return the annotation folder and the images of the set."""
    folder = path / "Annotations" if (path / "Annotations").is_dir() else path
    return folder, _image_names(path, folder, options.image_set)


def _image_names(path: Path, annotations: Path, image_set: str | Path | None) -> list[str]:
    """Return the distinct images of a set, in file order."""
    # By default, use the only set of the folder, or all XML files if sets are missing.
    folder = path / "ImageSets" / "Main"
    if image_set is None:
        sets = sorted(folder.glob("*.txt"))
        if not sets:
            names = sorted(file.stem for file in annotations.glob("*.xml"))
            if not names:
                raise FileFormatError(
                    "VOC ground truth",
                    "hold XML files",
                    got=f"none in {annotations}",
                    cause=_cause_of_missing_xml(path, annotations),
                )
            ask("folders in a folder", annotations, lambda sniffer: sniffer.first_with(".xml"), ending=".xml")
            return names
        # Suggest complete sets first; "aeroplane_train" is the set of one class.
        if len(sets) > 1:
            stems = [file.stem for file in sets]
            names = sorted(stems, key=lambda name: "_" in name and name.rpartition("_")[2] in stems)
            choices = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
            raise InputError(
                "image_set",
                "be given where there are several",
                got=f"none, in {folder}",
                cause=f"choose from {choices}",
            )
        file = sets[0]
    else:
        # A given set is a name in the folder or the path of a file.
        file = Path(image_set)
        if file.suffix != ".txt":
            file = folder / f"{checks.plain_name(str(image_set), name='image_set')}.txt"
    # Reject a missing set, and suggest the nearest name.
    if not is_file(file):
        known = sorted(entry.stem for entry in folder.glob("*.txt"))
        cause = checks.did_you_mean(file.stem, known) if file.parent == folder else ""
        raise FileFormatError(
            "image_set", "be the name of a set or a file", got=f"{file}, which is not there", cause=cause
        )
    # A line is an image, optionally followed by a flag for the class of the set.
    names = []
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) > 2 or fields[1:] not in ([], ["1"], ["0"], ["-1"]):
            raise FileFormatError(
                "a line of an image set",
                "be an image, or an image and 1, 0 or -1",
                got=repr(line),
                place=f"{file}, line {number}",
            )
        if fields[1:] == ["-1"]:
            continue  # sets of a class also list images without the class
        names.append(checks.plain_name(fields[0], name="an image id", place=f"{file}, line {number}"))
    if not names:
        raise FileFormatError("an image set", "name at least one image", got="an empty file", place=str(file))
    # Drop repeated images, and keep the order of the file.
    return list(dict.fromkeys(names))


# ---------------------------------------------------------------- results


class ResultsReading:
    """Read a folder of results files, class by class.

    Parameters
    ----------
    path : Path
    options : ReadOptions
    files : sequence of Path, optional
        Files whose stems are the classes, instead of the devkit's names.
    """

    def __init__(self, path: Path, options: ReadOptions, files: Sequence[Path] | None = None) -> None:
        self.path, self.options = path, options
        self._named_by_class = files
        self.files: list[Path] = []
        """The files that were read, of known classes."""

    def lines(self, file: Path) -> ResultLines:
        """Read a file."""
        return read_results(file, RESULTS_COLUMNS, refusal_of_line)

    def number(self, file: int, line: int) -> int:
        """Return the number of a line in one of ``files``, given its number among the lines read."""
        return line

    def detections(self, ground_truth: GroundTruth | None) -> Detections:
        """Return the table."""
        path = self.path
        # Find the class of each file from its name.
        files = _results_files(path) if self._named_by_class is None else self._named_by_class
        ask("folders in a folder", path, lambda sniffer: _has_results(sniffer.path))
        if ground_truth is None:
            labels, known = [_stem_parts(file)[1] for file in files], None
        else:
            known = {str(label): row for row, label in enumerate(ground_truth.categories.names.tolist())}
            labels = (
                _results_classes(files, known)
                if self._named_by_class is None
                else [file.stem for file in files]
            )
        # Read the files; only count the lines of unknown classes.
        left_out: dict[str, int] = {}
        read: list[tuple[str, ResultLines]] = []
        for file, label in zip(files, labels, strict=True):
            lines = self.lines(file)
            if known is None or label in known:
                self.files.append(file)
                read.append((label, lines))
            elif lines.images:
                left_out[label] = left_out.get(label, 0) + len(lines.images)
        # Number the lines across files, to find the file and line of a row for messages.
        counts = [len(lines.images) for _, lines in read]
        starts = np.cumsum(counts) - counts

        def place(row: int) -> str:
            at = int(np.searchsorted(starts, row, side="right")) - 1
            return place_of_row([self.files[at]], [0], self.number(at, row - int(starts[at])))

        # Concatenate the files, and repeat the class for every line.
        images = as_ids([name for _, lines in read for name in lines.images], name="image")
        numbers = np.concatenate([np.empty((0, 5)), *(lines.numbers for _, lines in read)])
        rows: dict[str, Any]
        if ground_truth is None or known is None:
            classes = [label for label, lines in read for _ in lines.images]
            rows = vocabulary_columns(
                images, classes, None, list(dict.fromkeys(labels)), count=None, of="detections", place=place
            )
        else:
            rows_of_classes = [known[label] for label, _ in read]

            # If image names are ambiguous, the boxes decide.
            def count_matched(image: NDArray[np.int32]) -> int:
                matched: int = ask(
                    "ids that are names", ground_truth, image, numbers[:, 1:], numbers[:, 0]
                ).matched
                return matched

            rows = {
                "images": ground_truth.images,
                "categories": ground_truth.categories,
                "image": find_images(
                    images,
                    ground_truth.images,
                    count_matched=count_matched if np.isfinite(numbers).all() else None,
                    place=place,
                ),
                "category": np.repeat(np.array(rows_of_classes, dtype=np.int32), counts),
            }
        # Negative sides are kept, as in the devkit, so accept any size.
        written = self.options.written or CORNERS
        extent = with_known_sizes(rows["images"], self.options.image_sizes).sizes[rows["image"]]
        table = built_columns(
            DETECTIONS,
            rows,
            np.ascontiguousarray(in_pixels(numbers[:, 1:], written, extent, place=place)),
            box_format=written.form,
            given={"scores": np.ascontiguousarray(numbers[:, 0])},
            columns={},
            lowest_size=-np.inf,
            reuse=True,
            place=place,
        )
        _warn_of_inverted(table["sizes"], path, place)
        return Detections(**table, left_out=left_out, source=str(path))


def _warn_of_inverted(sizes: NDArray[np.float64], path: Path, place: Place) -> None:
    if not sizes.size or sizes.min() >= 0:
        return
    rows = np.flatnonzero((sizes < 0).any(axis=1))
    warn_user(
        f"{path}: {counted_of(len(rows), len(sizes), 'box')} {verb(len(rows), 'have')} xmax < xmin or "
        f"ymax < ymin, the first in {place(int(rows[0]))}; as in the VOC devkit "
        f"{'it is a false positive' if len(rows) == 1 else 'they are false positives'}.",
    )


def _results_files(path: Path) -> list[Path]:
    """List the results files in a folder in reading order."""
    files = files_of_results(path)
    if not files:
        raise FileFormatError(
            "VOC results",
            "be a folder of comp4_det_<set>_<class>.txt files",
            got=f"none of them in {path}",
            cause="is this the ground truth?" if _has_annotations(path) else "",
        )
    if len({_stem_parts(file)[0] for file in files}) > 1:
        sets = sorted({_stem_parts(file)[0] for file in files})
        warn_user(f"{path}: results of several competitions or sets ({', '.join(sets)}); all are read.")
    return files


def classes_without_file(path: Path, classes: Sequence[str]) -> list[str]:
    """Return the classes without a results file in a folder; empty if all files are missing."""
    files = sorted(path.glob(RESULTS)) if path.is_dir() else []
    with_file = set(_results_classes(files, classes)) if files else set(classes)
    return [name for name in classes if name not in with_file]


def _stem_parts(file: Path) -> tuple[str, str]:
    """Split ``comp4_det_test_car`` into ``comp4_det_test`` and ``car``."""
    parts = re.match(r"(comp\d_det_[^_]+)_(.+)$", file.stem)
    return (parts[1], parts[2]) if parts else (file.stem, file.stem)


def _results_classes(files: Sequence[Path], known: Iterable[str]) -> list[str]:
    """Return the class in each file name: the text after competition and set.

    Both set and class may contain underscores. Use the prefix that most files share; of several, the one that
    leaves a known class in most names. So ``..._tabby_cat`` is not read as ``cat`` if there is ``..._cat``.
    """
    labels = sorted(known)
    votes = Counter(
        file.stem.removesuffix(label) for file in files for label in labels if file.stem.endswith(f"_{label}")
    )
    starts = dict.fromkeys([*votes, *(f"{_stem_parts(file)[0]}_" for file in files)])
    files_with = {start: sum(file.stem.startswith(start) for file in files) for start in starts}
    classes = []
    for file in files:
        fitting = [start for start in starts if file.stem.startswith(start)]
        start = max(fitting, key=lambda start: (files_with[start], votes[start], -len(start)), default="")
        classes.append(file.stem.removeprefix(start) if start else _stem_parts(file)[1])
    return classes


def refusal_of_line(fields: list[str], columns: int, place: str) -> FileFormatError:
    """Return the error for a line with a wrong number of columns."""
    rule = f"have {columns} columns: image score xmin ymin xmax ymax"
    got = f"{len(fields)}, {' '.join(fields)[:60]!r},"
    return FileFormatError("a line of a results file", rule, got=got, place=place)


# ---------------------------------------------------------------- writing


def _refuse_file(path: Path) -> None:
    if path.is_file():
        raise InputError("the output of VOC results", "be a folder", got=f"the file {path}")


def _results_texts(table: Detections) -> list[str]:
    """Return the text of the results file of each class."""
    images = file_stems(table, in_lines=True)
    blank = next((name for name in images if len(name.split()) != 1), None)
    if blank is not None:
        raise InputError("an image's name", "not contain spaces in VOC results", got=repr(blank))
    return results_texts(table, images, table.boxes)


def _refuse_other_annotations(path: Path, files: Mapping[str, object]) -> None:
    """Reject a folder with annotations or image sets that would not be overwritten."""
    old = [*path.glob("Annotations/*.xml"), *path.glob("ImageSets/Main/*.txt"), *path.glob("*.xml")]
    others = {file.relative_to(path).as_posix() for file in old} - {*files}
    if others:
        rule = "hold no other annotations, which would be read with these"
        raise InputError("the output folder", rule, got=min(others), place=str(path))


def _refuse_other_results(path: Path, written: set[str]) -> None:
    """Reject a folder with VOC results that would not be overwritten."""
    others = {file.name for file in path.glob(RESULTS)} - written
    if others:
        raise InputError(
            "the output folder",
            "hold no other results, which would be read with these",
            got=f"{min(others)}",
            place=str(path),
        )
