"""Read results files without ground truth, and write them again with some of their rows.

Goal
----
Programs that drop, rescore or merge detections need the rows as a table, and afterwards the same file with
the remaining rows, each as it stood, with every key it had.

Conventions
-----------
- A row that does not change is written byte for byte as it was read. In one that does, only the score or the
  box is written again, with every digit.
- Rows keep the order of the file. COCO results files are read a slice at a time, both times.
- Files are written under a temporary name and renamed when they are complete.
- What is written belongs to what was read: the file must be the same one, unchanged, at the end. Where that
  cannot be known from its times, because it was written just before, image, class, score and box of every row
  that is written are compared with the table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import Snapshot
from boxscore._utils.given_paths import files_of, path_of
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections
from boxscore.errors import InputError
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._sniffer import errors_named
from boxscore.formats._survivors import Results, Survivors
from boxscore.formats.reading import PLAIN, warn_of_box_order
from boxscore.formats.registry import capability, format_named, open_at


def load_results(path: str | Path, options: ReadOptions = PLAIN, *, oriented: bool = False) -> Results:
    """Read results of any format without ground truth; warn of oriented boxes unless they are compared."""
    path = path_of(path)
    opened = open_at(path, options.format, side="detections")
    file_format = opened.format
    files = [each.path for each in opened.files] or _files_of_results(file_format, opened.data)
    snapshots = tuple(map(Snapshot, files))
    with errors_named(path, side="dt"):
        table = opened.load_detections(options, None)
    if not oriented and (table.rotated is not None or table.quadrilaterals is not None):
        warn_user(f"{path}: rotated boxes; the upright boxes around them are suppressed or fused.")
    if table.boxes_given:
        warn_of_box_order(table, file_format, options)
    return Results(opened.data, file_format.name, table, snapshots, options.written)


def check_one_form(given: Iterable[tuple[Path, str]]) -> None:
    """Refuse files, each with the name of its format, that are of several formats and should be fused."""
    (first, form), *others = given
    for path, other in others:
        if other != form:
            rule = f"have one format, {form} like {first}"
            raise InputError("the results to fuse", rule, got=other, place=str(path))


def save_results(
    results: Results,
    rows: NDArray[np.int64],
    path: str | Path,
    *,
    scores: FloatArray | None = None,
    boxes: FloatArray | None = None,
) -> None:
    """Write the remaining rows, int64 [K] ascending, in the format and to the file names of the input."""
    if len(files_of(results.path)) > 1:
        got, cause = f"{len(files_of(results.path)):,}", "merge them first with boxscore convert"
        place = str(results.path)
        raise InputError("the results to rewrite", "be one file", got=got, place=place, cause=cause)
    form = format_named(results.format)
    rewrite = capability(form, "rewrite")
    if rewrite is None:
        raise InputError(
            f"{results.path}: boxscore cannot write results in the format {form.name}; convert them first: "
            "boxscore convert --gt GT --dt DT --to coco --output FILE.json."
        )
    files_at = functools.partial(_files_of_results, form)
    rewrite(results.path, Survivors(results, rows, scores, boxes, form, files_at=files_at), Path(path))


def _files_of_results(form: Format, path: Path) -> list[Path]:
    """List the files of the results at a path, in the order in which they are read."""
    files = capability(form, "files_of_results")
    return [path] if files is None else list(files(path))


def save_table(table: Detections, path: str | Path, *, like: Results) -> None:
    """Write a table in the format, and for VOC results under the file names, of ``like``."""
    format_named(like.format).save(table, Path(path), like=like.path)
