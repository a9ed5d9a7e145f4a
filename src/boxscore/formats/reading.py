"""Reading files of any format, for the public loaders and for the command line.

Conventions
-----------
``columns`` names the instance columns (``"masks"``, ``"keypoints"``) that will be needed. It is only a hint:
a table has the same columns without it, but reads its file once more for them.
``processes`` above 1 forks; only the command line does so, because the process belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boxscore._utils import checks
from boxscore.data.alignment import warn_left_out
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.formats._box_order import warn_of_box_order
from boxscore.formats._format import Format
from boxscore.formats.registry import format_at

__all__ = ["load_both", "read_detections", "read_ground_truth"]

TRUTH_WORK = 2.0
"""How much longer a byte of ground truth takes to read than one of results."""


def read_ground_truth(
    path: str | Path,
    *,
    format: str = "auto",
    image_set: str | Path | None = None,
    columns: Sequence[str] = (),
    processes: int = 1,
) -> GroundTruth:
    """Read ground truth; see :func:`boxscore.load_ground_truth`."""
    path = Path(path)
    checks.whole_number(processes, 1, name="processes", high=checks.MOST_WORKERS)
    at = format_at(path, format)
    if image_set is not None and not at.takes_image_set:
        raise InputError("image_set", "be left out where the format is not voc", got=repr(str(image_set)))
    ground_truth = at.load_ground_truth(path, image_set=image_set, columns=columns, processes=processes)
    if at.boxes is not None:
        warn_of_box_order(ground_truth, given_sizes=at.boxes == "xywh", stacklevel=4)
    return ground_truth


def read_detections(
    path: str | Path,
    ground_truth: GroundTruth,
    *,
    format: str = "auto",
    columns: Sequence[str] = (),
    processes: int = 1,
) -> Detections:
    """Read detections; see :func:`boxscore.load_detections`."""
    path = Path(path)
    checks.whole_number(processes, 1, name="processes", high=checks.MOST_WORKERS)
    at = format_at(path, format)
    with at.reading(path, columns=columns, processes=processes, beside=0) as finish:
        detections = finish(ground_truth)
    _warn(detections, at)
    return detections


def load_both(
    ground_truth_path: str | Path,
    detections_path: str | Path,
    *,
    format: str = "auto",
    image_set: str | Path | None = None,
    columns: Sequence[str] = (),
    processes: int = 1,
) -> tuple[GroundTruth, Detections]:
    """Read ground truth and detections; with processes, a large results file beside the ground truth.

    Parameters
    ----------
    ground_truth_path, detections_path : str or Path
    format, image_set
        Of the ground truth, as for :func:`boxscore.load_ground_truth`.
    columns : sequence of str
        Instance columns that will be asked for, to be read at once.
    processes : int, default 1
        More than one forks this process.

    Returns
    -------
    ground_truth : GroundTruth
    detections : Detections

    Raises
    ------
    FileFormatError, InputError
        As from the public loaders.
    """
    checks.whole_number(processes, 1, name="processes", high=checks.MOST_WORKERS)
    path = Path(detections_path)
    truth_work = TRUTH_WORK * _size_of(Path(ground_truth_path))
    beside = truth_work / max(truth_work + _size_of(path), 1)
    at = format_at(path)
    with at.reading(path, columns=columns, processes=processes, beside=beside) as finish:
        ground_truth = read_ground_truth(
            ground_truth_path,
            format=format,
            image_set=image_set,
            columns=columns,
            processes=max(1, round(processes * beside)),
        )
        detections = finish(ground_truth)
    _warn(detections, at)
    return ground_truth, detections


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _warn(detections: Detections, at: Format) -> None:
    if at.boxes is None:
        return  # warned of before saving, or when aligned
    warn_left_out(detections.left_out, detections.source, stacklevel=5)
    if detections.boxes_given:
        warn_of_box_order(detections, given_sizes=at.boxes == "xywh", stacklevel=5)
