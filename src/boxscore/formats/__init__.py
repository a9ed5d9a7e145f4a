"""Reading ground truth and detections: one file format, one module, and a registry that detects them.

Conventions
-----------
A format is detected by what lies at the path, never by the file's name alone: a folder with VOC annotations
or results files, or a JSON file. What was detected is a value that the command line prints.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

from boxscore._utils import checks
from boxscore.data.alignment import align, warn_left_out
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import FileFormatError, InputError
from boxscore.formats import _box_order
from boxscore.protocols.protocol import Similarity

__all__ = ["detect_format", "load_both", "load_detections", "load_ground_truth", "save_columns"]

Format = Literal["auto", "coco", "voc", "columns"]


def detect_format(path: str | Path) -> tuple[str, str]:
    """Tell the format of ground truth or detections, and by what it was told.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    format, reason : str

    Raises
    ------
    FileFormatError
        When nothing is there, or nothing that is known.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write("[]"), file.flush()
    ...     detect_format(file.name)
    ('coco', 'a JSON file')
    """
    from boxscore.formats import _voc_files

    path = Path(path)
    if not path.exists():
        raise FileFormatError(f"{path}: cannot be read: No such file or directory.")
    if path.is_dir():
        if _voc_files.is_results(path):
            return "voc", "a folder of comp*_det_*.txt files"
        if _voc_files.is_ground_truth(path):
            return "voc", "a folder of XML annotations"
        raise FileFormatError(
            "a folder", "hold VOC annotations or comp4_det_*.txt results", got="neither", place=str(path)
        )
    if path.suffix.lower() == ".xml":
        raise FileFormatError("VOC ground truth", "be the folder of the XML files", got=f"one file, {path}")
    if _voc_files.is_results_file(path):
        raise FileFormatError(
            "VOC results", "be the folder of the comp4_det_*.txt files", got=f"one file, {path}"
        )
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            return "columns", "an .npz archive"
    return "coco", "a JSON file"


def _format_of(path: Path, format: str) -> str:
    checks.one_of(format, get_args(Format), name="format")
    found, reason = detect_format(path)
    if format not in ("auto", found):
        raise FileFormatError(f"{path}", f"be in the {format} format", got=f"{reason} ({found})")
    return found


def load_ground_truth(
    path: str | Path,
    *,
    format: Format = "auto",
    image_set: str | Path | None = None,
    similarity: Similarity = "box",
    workers: int = 1,
) -> GroundTruth:
    """Read ground truth.

    Parameters
    ----------
    path : str or Path
        A COCO JSON file, a VOC folder (``VOC2007``, or a folder of XML files), or a file of columns.
    format : {"auto", "coco", "voc", "columns"}, default "auto"
    image_set : str or Path, optional
        VOC only: the name of a set in ``ImageSets/Main``, or a file of image ids.
    similarity : {"box", "mask", "boundary", "keypoints"}, default "box"
        What will be compared: ``load_protocol(name).similarity``. Masks and keypoints are read only when
        they are asked for; COCO files alone have them.
    workers : int, default 1
        Processes that read a large COCO file together. More than 1 forks this process: leave it at 1
        inside a training process that has threads or devices of its own.

    Returns
    -------
    GroundTruth

    Raises
    ------
    FileFormatError
        When the file breaks a rule of its format; the message names file, place, rule and value.
    InputError
        When a value does; for example a box with a negative side.

    Warns
    -----
    BoxscoreWarning
        When boxes look as if they were of another form, areas are missing, or ids occur twice.
    """
    path = Path(path)
    checks.one_of(similarity, get_args(Similarity), name="similarity")
    checks.whole_number(workers, 1, name="workers")
    found = _format_of(path, format)
    if image_set is not None and found != "voc":
        raise InputError("image_set", "be left out where the format is not voc", got=repr(str(image_set)))
    if found == "columns":
        from boxscore.formats import columns

        return columns.load_ground_truth(path, similarity=similarity)
    if found == "voc":
        from boxscore.formats import voc

        ground_truth = voc.load_ground_truth(path, image_set=image_set)
    else:
        from boxscore.formats import coco

        ground_truth = coco.load_ground_truth(path, similarity=similarity, workers=workers)
    _box_order.warn_of_box_order(ground_truth, given_sizes=not path.is_dir())
    return ground_truth


def load_detections(
    path: str | Path,
    ground_truth: GroundTruth,
    *,
    format: Format = "auto",
    similarity: Similarity = "box",
    workers: int = 1,
) -> Detections:
    """Read detections of the images of a ground truth.

    Parameters
    ----------
    path : str or Path
        A COCO results file, a folder of the VOC kit's ``comp4_det_<set>_<class>.txt`` files, or a file of
        columns. Either
        goes with either kind of ground truth.
    ground_truth : GroundTruth
    format : {"auto", "coco", "voc", "columns"}, default "auto"
    similarity : {"box", "mask", "boundary", "keypoints"}, default "box"
        As for :func:`load_ground_truth`. Results with masks or keypoints need no boxes.
    workers : int, default 1
        As in :func:`load_ground_truth`.

    Returns
    -------
    Detections
        Without those of classes that the ground truth does not have: ``left_out`` counts them.

    Raises
    ------
    FileFormatError
        When the file breaks a rule of its format; the message names file, place, rule and value.
    InputError
        When a value does, or an image is not in the ground truth.

    Warns
    -----
    BoxscoreWarning
        When detections were left out, or boxes look as if they were of another form.
    """
    path = Path(path)
    found = _format_of(path, format)
    with _reading(path, found, similarity, workers) as finish:
        detections = finish(ground_truth)
    _warn(detections, path, found)
    return detections


def load_both(
    ground_truth_path: str | Path,
    detections_path: str | Path,
    *,
    format: Format = "auto",
    image_set: str | Path | None = None,
    similarity: Similarity = "box",
    workers: int = 1,
) -> tuple[GroundTruth, Detections]:
    """Read ground truth and detections; with workers, a large COCO results file beside the ground truth.

    Parameters
    ----------
    ground_truth_path, detections_path : str or Path
    format, image_set
        Of the ground truth, as for :func:`load_ground_truth`.
    similarity, workers
        As for :func:`load_ground_truth`.

    Returns
    -------
    ground_truth : GroundTruth
    detections : Detections

    Raises
    ------
    FileFormatError, InputError
        As from :func:`load_ground_truth` and :func:`load_detections`.
    """
    path = Path(detections_path)
    truth_work = TRUTH_WORK * _size_of(Path(ground_truth_path))
    beside = truth_work / max(truth_work + _size_of(path), 1)
    found = _format_of(path, "auto")
    with _reading(path, found, similarity, workers, beside=beside) as finish:
        ground_truth = load_ground_truth(
            ground_truth_path,
            format=format,
            image_set=image_set,
            similarity=similarity,
            workers=max(1, round(workers * beside)),
        )
        detections = finish(ground_truth)
    _warn(detections, path, found)
    return ground_truth, detections


TRUTH_WORK = 2.0
"""How much longer a byte of ground truth takes to read than one of results."""


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@contextlib.contextmanager
def _reading(
    path: Path, format: str, similarity: Similarity, workers: int, *, beside: float = 0
) -> Iterator[Callable[[GroundTruth], Detections]]:
    """Begin to read detections; what it gives is called when the ground truth is known, and finishes."""
    checks.one_of(similarity, get_args(Similarity), name="similarity")
    checks.whole_number(workers, 1, name="workers")
    if format == "columns":
        from boxscore.formats import columns

        yield lambda ground_truth: align(columns.load_detections(path, similarity=similarity), ground_truth)
    elif format == "voc":
        from boxscore.formats import voc_results

        yield lambda ground_truth: voc_results.load_detections(path, ground_truth)
    else:
        from boxscore.formats import coco

        with coco.ResultsReading(path, similarity=similarity, workers=workers, beside=beside) as reading:
            yield reading.detections


def _warn(detections: Detections, path: Path, format: str) -> None:
    if format == "columns":
        return  # they were warned of before they were saved, or when they were aligned
    warn_left_out(detections.left_out, detections.source)
    if detections.boxes_given:
        _box_order.warn_of_box_order(detections, given_sizes=format == "coco", stacklevel=4)


def save_columns(table: GroundTruth | Detections, path: str | Path) -> None:
    """Save ground truth or detections as columns, which read in no time.

    Parameters
    ----------
    table : GroundTruth or Detections
    path : str or Path
        Must end in ``.npz``. :func:`load_ground_truth` and :func:`load_detections` read it.

    Raises
    ------
    InputError
        When the name does not end in ``.npz`` or the file cannot be written.
    """
    from boxscore.formats import columns

    columns.save_columns(table, path)
