"""Read results files without ground truth, and write a subset of their rows.

This is for commands that drop, rescore or merge detections: they read the rows as a table, and write the
surviving rows with all their original keys.

Conventions
-----------
- Unchanged rows keep their exact bytes. In changed rows, only the score or the box is replaced, with all
  digits. Tables are written as a whole, and formats that boxscore only reads in another format.
- Rows keep the order of the file. COCO results files are read one slice at a time, in both passes.
- Files are written atomically.
- The input must not change between the two passes. If timestamps cannot prove this, because the file was
  written just before, the image, class, score and box of every written row are compared with the table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import Snapshot
from boxscore._utils.given_paths import files_of, path_of
from boxscore._utils.lazy import loaded
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections
from boxscore.errors import InputError
from boxscore.formats._format import Format
from boxscore.formats._sniffer import errors_named
from boxscore.formats._survivors import Results, Survivors
from boxscore.formats.reading import (
    PLAIN,
    FileOptions,
    check_other_formats,
    refuse_useless,
    warn_of_box_order,
)
from boxscore.formats.registry import ELSEWHERE, capability, format_named, open_at


def load_results(
    path: str | Path, options: FileOptions = PLAIN, *, oriented: bool = False, output: Path | None = None
) -> Results:
    """Read results of any format without ground truth; warn of rotated boxes unless ``oriented``.

    If they are to be rewritten, ``output`` is checked first: if their format cannot be written, it needs the
    extension of one that can.
    """
    path = path_of(path)
    opened = open_at(path, options.format, side="detections")
    file_format = opened.format
    refuse_useless(options, file_format, of_detections=True)
    if output is not None:
        _elsewhere(file_format, opened.data, output)
    files = [each.path for each in opened.files] or _files_of_results(file_format, opened.data)
    snapshots = tuple(map(Snapshot, files))
    with errors_named(path, side="dt"):
        table = opened.load_detections(options, None)
    check_other_formats(opened, table, options)
    if not oriented and (table.rotated is not None or table.quadrilaterals is not None):
        warn_user(
            f"{path}: rotated boxes; the upright boxes around them are suppressed or fused. To compare the "
            "rotated boxes, pass --iou-type rotated."
        )
    if table.boxes_given:
        warn_of_box_order(table, file_format, options)
    return Results(opened.data, file_format.name, table, snapshots, options.written)


def check_one_form(given: Iterable[tuple[Path, str]]) -> None:
    """Reject files to fuse if their formats differ; ``given`` has pairs of path and format name."""
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
    """Write the surviving rows, int64 [K] ascending, in the format and with the file names of the input.

    If the extension of the output is that of another format, they are written in that format.
    """
    form = format_named(results.format)
    files_at = functools.partial(_files_of_results, form)
    survivors = Survivors(results, rows, scores, boxes, form, files_at=files_at)
    rewrite = capability(form, "rewrite")
    if rewrite is None or _elsewhere(form, results.path, Path(path)) is not None:
        save_table(survivors.as_table(), path, like=results)
        return
    if len(files_of(results.path)) > 1:
        got, cause = f"{len(files_of(results.path)):,}", "merge them first with boxscore convert"
        place = str(results.path)
        raise InputError("the results to rewrite", "be one file", got=got, place=place, cause=cause)
    rewrite(results.path, survivors, Path(path))


def _files_of_results(form: Format, path: Path) -> list[Path]:
    """List the files of results in reading order."""
    files = capability(form, "files_of_results")
    return [path] if files is None else list(files(path))


def save_table(table: Detections, path: str | Path, *, like: Results) -> None:
    """Write a table in the format of ``like``, with its file names, or in that of the extension."""
    form, output = format_named(like.format), Path(path)
    other = _elsewhere(form, like.path, output)
    if other is None:
        form.save(table, output, like=like.path)
    else:
        other.save(table)


def _elsewhere(form: Format, path: Path, output: Path) -> Any:
    """Return what writes the output in another format than the input at a path, or None."""
    alike = "detections" in form.holds and output.suffix.lower() == path.suffix.lower()
    return None if alike else loaded(ELSEWHERE)(form, path, output)
