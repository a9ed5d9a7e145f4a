"""PASCAL VOC results: the kit's files, one a class.

Conventions
-----------
- ``comp4_det_<set>_<class>.txt``, lines of ``image score xmin ymin xmax ymax``, 1-based and inclusive.
- Classes are the names that occur in the ground truth, or where there is none in the files' names: sorted,
  with ids 1, 2, ... in that order.

References
----------
The PASCAL VOC development kit: ``VOCevaldet.m``, and its documentation.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.collector import paused_collector
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import as_ids
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.formats._places import resolve_images
from boxscore.formats._voc_files import is_ground_truth, read_text

__all__ = ["load_detections", "load_results", "results_files", "stem_parts"]

RESULTS_COLUMNS = 6


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
            "VOC results",
            "be a folder of comp4_det_<set>_<class>.txt files",
            got=f"none of them in {path}",
            cause="is this the ground truth?" if is_ground_truth(path) else "",
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
    filled = (n for n, line in enumerate(read_text(files[index]).splitlines(), start=1) if line.split())
    return f"{files[index]}, line {next(itertools.islice(filled, row - starts[index], None))}"


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
    lines = [(number, line.split()) for number, line in enumerate(read_text(file).splitlines(), start=1)]
    lines = [(number, fields) for number, fields in lines if fields]
    for number, fields in lines:
        if len(fields) != RESULTS_COLUMNS:
            raise FileFormatError(
                "a line of a results file",
                "have 6 columns: image score xmin ymin xmax ymax",
                got=f"{len(fields)}, {' '.join(fields)[:60]!r},",
                place=f"{file}, line {number}",
            )
    try:
        values = [float(field) for _, fields in lines for field in fields[1:]]
    except ValueError:
        number, fields = next((n, f) for n, f in lines if not all(map(_is_number, f[1:])))
        bad = next(field for field in fields[1:] if not _is_number(field))
        raise FileFormatError(
            "scores and coordinates", "be numbers", got=repr(bad), place=f"{file}, line {number}"
        ) from None
    return [fields[0] for _, fields in lines], np.array(values, dtype=np.float64).reshape(-1, 5)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
