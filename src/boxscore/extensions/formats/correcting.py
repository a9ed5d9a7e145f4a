"""Ground truth with some labels corrected, and everything else byte for byte as it stands.

Conventions
-----------
- A format that knows how (the capability ``correct``) changes the text of the labels alone; any other is
  written anew, and refused where that would lose something.
- What was written is read again before it is put in place: every label that was not corrected must be what it
  was, to the bit, and every corrected one what it should be. So no format has to be trusted.
- Of a data set that is a folder every other file is copied; pictures are linked where the file system can.
- The original is never written to.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.files import temporary_folder, write_atomically
from boxscore._utils.ordering import rank_in_runs, stable_order
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError
from boxscore.extensions.data_tools.converting import save_as
from boxscore.formats._yolo_folders import IMAGE_ENDINGS
from boxscore.formats.registry import capability, open_at

CLOSE = 1e-6
"""How far, in pixels or of the image, a corrected box may be read from where it should be."""


class Correction(NamedTuple):
    """One label that is changed, or a new one, which formats write into their files."""

    image: Id
    file_name: str
    """Of the image; empty where it has none."""
    place: int | None
    """Of the label among those of its image, from 0; None for a new one."""
    id: Id | None
    """Of the annotation; None for a new one."""
    label: str
    number: Id
    """The id of the class."""
    box: tuple[float, float, float, float] | None
    """Corners, or None where they stay."""
    size: tuple[float, float]
    """Width and height of the image in the unit of the box; NaN where unknown."""


def corrections_of(
    before: GroundTruth, after: Mapping[int, GroundTruth], new: GroundTruth
) -> list[Correction]:
    """Return the corrections that put labels, tables of one row, in the place of rows, and add new ones."""
    # A file numbers labels within each image: the rank of a row among those of its image.
    order = stable_order(before.image, len(before.images))
    place = np.empty(len(before), dtype=np.intp)
    place[order] = rank_in_runs(before.image[order])
    # New labels have no row; a label that did not move keeps its box as the file writes it.
    made = []
    for row, label in [*after.items(), *((None, new.take(np.array([n]))) for n in range(len(new)))]:
        image = int(label.image[0])
        moved = row is None or bool((before.boxes[row] != label.boxes[0]).any())
        sizes = np.ones(2) if before.units == "fractions" else before.images.sizes[image]
        made.append(
            Correction(
                before.images.ids.tolist()[image],
                before.images.file_names[image] or "",
                None if row is None else int(place[row]),
                None if row is None else before.ids.tolist()[row],
                before.categories.names.tolist()[label.category[0]],
                before.categories.ids.tolist()[label.category[0]],
                tuple(label.boxes[0].tolist()) if moved else None,
                tuple(sizes.tolist()),
            )
        )
    return made


def write_corrected(
    path: Path,
    output: Path,
    before: GroundTruth,
    after: GroundTruth,
    corrections: Sequence[Correction],
    *,
    read: Callable[[Path], GroundTruth],
    **options: Any,
) -> None:
    """Write the ground truth at a path with corrections, after reading what was written.

    Parameters
    ----------
    path, output : Path
        Of the original, and where the corrected one is put; a file, or a folder that is not there yet.
    before, after : GroundTruth
        The original, in file order; and with the corrections, new labels at the end.
    corrections : sequence of Correction
    read : callable
        Reads ground truth at a path as the original was read.
    **options
        ``format`` and ``image_set`` with which it was read.

    Raises
    ------
    InputError
        When the format cannot hold the corrections, or would change other labels.
    """
    # A format edits its own text where it can; else the whole table is written again.
    opened = open_at(path, options["format"], side="ground truth")
    format_, is_direct = opened.format, opened.is_direct
    correct = capability(format_, "correct") if is_direct else None
    files = None if correct is None else correct(path, corrections, options["image_set"])
    if files is None and not (is_direct and "ground truth" in format_.holds):
        rule = "be COCO, YOLO, VOC, CVAT or another format that is written"
        cause = "boxscore convert --to coco first, and fix that"
        raise InputError(
            "ground truth that is corrected", rule, got=format_.name, place=str(path), cause=cause
        )
    # Never write into a folder with files, or into the original.
    if path.is_dir() and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError("--output", "be a folder that is not there yet", got=repr(str(output)))
    if path.is_dir() and output.resolve().is_relative_to(path.resolve()):
        raise InputError("--output", "be outside the folder to correct", got=repr(str(output)))
    # Write a copy, read it back and compare; only then does it get its name.
    with _scratch(output) as folder:
        copy = folder / (output.name if path.is_dir() else path.name)
        # A folder is copied whole, so that other files stay with it.
        if files is None:
            save_as(after, copy, format=format_.name)
        elif path.is_dir():
            _copied(path, copy)
            for file, content in files.items():
                target = copy / _below(file, path)
                target.unlink(missing_ok=True)  # never through a link
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        else:
            copy.write_bytes(files[path])
        # Moving is atomic: an interrupt leaves nothing half written.
        _check(after, read(copy), changed=_rows_changed(before, after), place=str(path))
        if (path.is_dir() and files is not None) or copy.is_dir():
            with contextlib.suppress(FileNotFoundError):
                output.rmdir()
            copy.rename(output)
        else:
            write_atomically(output, copy.read_bytes())


@contextlib.contextmanager
def _scratch(output: Path) -> Iterator[Path]:
    output.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(output.parent) as folder:
        yield folder


def _below(file: Path, folder: Path) -> Path:
    try:
        return file.resolve().relative_to(folder.resolve())
    except ValueError:
        rule = "have all its labels below the folder that is corrected"
        raise InputError("a data set", rule, got=str(file), place=str(folder)) from None


def _copied(path: Path, copy: Path) -> None:
    def copied(source: str, target: str) -> str:
        if Path(source).suffix.lower() in IMAGE_ENDINGS:
            with contextlib.suppress(OSError):
                os.link(source, target)
                return target
        return str(shutil.copy2(source, target))

    try:
        shutil.copytree(path, copy, copy_function=copied)
    except (OSError, shutil.Error) as error:
        raise InputError("a data set", "be a folder that can be copied", got=str(error)[:200]) from None


def _rows_changed(before: GroundTruth, after: GroundTruth) -> set[int]:
    """Rows of the corrected table that are not those of the original."""
    count = len(before)
    changed = (before.boxes != after.boxes[:count]).any(axis=1) | (before.category != after.category[:count])
    return {*np.flatnonzero(changed).tolist(), *range(count, len(after))}


def _check(expected: GroundTruth, read: GroundTruth, *, changed: set[int], place: str) -> None:
    """Compare what was written with what it should be, image by image, in the order of its labels."""
    # Sort both tables by image, so that labels compare in the order of the file.
    names = {key: row for row, key in enumerate(read.images.ids.tolist())}
    wrong = "labels of other images" if len(read) != len(expected) else ""
    rows = [stable_order(table.image, len(table.images)) for table in (expected, read)]
    of_image = [
        np.split(order, np.cumsum(np.bincount(table.image, minlength=len(table.images)))[:-1])
        for order, table in zip(rows, (expected, read), strict=True)
    ]
    # The first difference is enough, and is named.
    for image, key in enumerate(expected.images.ids.tolist()):
        if wrong:
            break
        # An image has the same number of labels in both.
        mine = of_image[0][image].tolist()
        theirs = of_image[1][names[key]].tolist() if key in names else []
        if len(mine) != len(theirs):
            wrong = f"{len(theirs)} labels of image {key!r}, which has {len(mine)}"
        for row, other in zip(mine, theirs, strict=False):
            # The class must be the same.
            label = expected.categories.names[expected.category[row]]
            same = label == read.categories.names[read.category[other]]
            first, second = expected.boxes[row], read.boxes[other]
            # A corrected box may round in the file's form; all others must be equal bit for bit.
            if row in changed:
                same &= bool(np.abs(first - second).max() <= CLOSE * max(1.0, float(np.abs(first).max())))
            else:
                same &= bool((first == second).all()) and all(
                    np.array_equal(getattr(expected, name)[row], getattr(read, name)[other], equal_nan=True)
                    for name in ("area", "crowd", "difficult", "ignore", "group")
                )
            if not same and not wrong:
                wrong = f"another {label} in image {key!r}"
    if wrong:
        raise InputError(
            "corrected ground truth",
            "be read as it should be, with all other labels as they were",
            got=wrong,
            place=place,
            cause="its format cannot hold these corrections; boxscore convert to coco first, and fix that",
        )


def corrected_coco(
    path: Path, corrections: Sequence[Correction], image_set: str | Path | None
) -> dict[Path, bytes] | None:
    """Return a file of ground truth with some annotations corrected, and everything else unchanged."""
    if not path.is_file():
        return None
    # json keeps the order of keys and every key that is not COCO's.
    content: Any = json.loads(path.read_bytes())
    annotations = content["annotations"]
    place = {annotation.get("id"): number for number, annotation in enumerate(annotations)}
    highest = max((key for key in place if isinstance(key, int)), default=0)
    for one in corrections:
        box = None if one.box is None else [*one.box[:2], one.box[2] - one.box[0], one.box[3] - one.box[1]]
        # A new annotation has the next free id.
        if one.id is None:
            assert box is not None, "a new label has a box"
            highest += 1
            new = {"id": highest, "image_id": one.image, "category_id": one.number}
            annotations.append({**new, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
            continue
        if one.id not in place:
            rule = "have ids of its own to be corrected"
            raise InputError("an annotation", rule, got=repr(one.id), place=str(path))
        # A corrected one is found by its id; an outline of the old place goes.
        annotation = annotations[place[one.id]]
        annotation["category_id"] = one.number
        if box is not None:
            annotation |= {"bbox": box, "area": box[2] * box[3]}
            annotation.pop("segmentation", None)  # of the place where it was
    return {path: json.dumps(content, ensure_ascii=False).encode()}
