"""Write ground truth with corrected labels, keeping everything else byte for byte.

Conventions
-----------
- A format with the capability ``correct`` edits only the text of the labels. For any other format the whole
  table is written again; if that would lose content, it is an error.
- The output is read back before it gets its name: uncorrected labels must be equal bit for bit, and corrected
  ones must be as intended.
- If the data set is a folder, all other files are copied; images are hard-linked if the file system can.
- The original is never modified.
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
from boxscore._utils.ordering import rank_in_runs, rows_of_groups, stable_order
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError
from boxscore.extensions.data_tools.converting import save_as
from boxscore.formats._yolo_folders import IMAGE_ENDINGS
from boxscore.formats.registry import capability, open_at

CLOSE = 1e-6
"""Tolerance, in pixels or as a fraction of the image, for reading back a corrected box."""
_MORE_THAN_A_TABLE = ("labelstudio",)
"""Formats whose tasks hold ids, answers and authors, which a table written again would lose."""


class Correction(NamedTuple):
    """A changed or new label, for formats to write into their files."""

    image: Id
    file_name: str
    """File name of the image; empty if unknown."""
    place: int | None
    """Position of the label within its image, from 0; None if new."""
    id: Id | None
    """Id of the annotation; None if new."""
    label: str
    number: Id
    """Id of the class."""
    box: tuple[float, float, float, float] | None
    """Corners; None if unchanged."""
    size: tuple[float, float]
    """Width and height of the image in the unit of the box; NaN if unknown."""


def corrections_of(
    before: GroundTruth, after: Mapping[int, GroundTruth], new: GroundTruth
) -> list[Correction]:
    """Return the corrections that replace rows of ``before`` by one-row tables, and add ``new``."""
    # Files number labels within each image: use the rank of a row within its image.
    order = stable_order(before.image, len(before.images))
    place = np.empty(len(before), dtype=np.intp)
    place[order] = rank_in_runs(before.image[order])
    # The row of a new label is None. Unmoved labels keep the text of their box.
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
    """Write a corrected copy of the ground truth, and verify it by reading it back.

    Parameters
    ----------
    path, output : Path
        The original and the corrected copy: a file, or a folder that does not exist yet.
    before, after : GroundTruth
        The original table in file order, and the corrected one, with new labels at the end.
    corrections : sequence of Correction
    read : callable
        Reads ground truth at a path as the original was read.
    **options
        ``format`` and ``image_set`` with which the original was read.

    Raises
    ------
    InputError
        When the format cannot store the corrections, or would change other labels.
    """
    # Let the format edit its text if it can; otherwise write the whole table again.
    opened = open_at(path, options["format"], side="ground truth")
    format_, is_direct = opened.format, opened.is_direct
    correct = capability(format_, "correct") if is_direct else None
    files = None if correct is None else correct(path, corrections, options["image_set"])
    is_whole = "ground truth" in format_.holds and format_.name not in _MORE_THAN_A_TABLE
    if files is None and not (is_direct and is_whole):
        rule = "be COCO, YOLO, VOC, CVAT or another format that is written"
        cause = "boxscore convert --to coco first, and fix that"
        raise InputError(
            "ground truth that is corrected", rule, got=format_.name, place=str(path), cause=cause
        )
    # Never write into a folder that has files, or into the original.
    if path.is_dir() and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError("--output", "be a folder that is not there yet", got=repr(str(output)))
    if path.is_dir() and output.resolve().is_relative_to(path.resolve()):
        raise InputError("--output", "be outside the folder to correct", got=repr(str(output)))
    # Write a copy, read it back and compare, then rename it.
    with _scratch(output) as folder:
        copy = folder / (output.name if path.is_dir() else path.name)
        # Copy a folder with all other files.
        if files is None:
            save_as(after, copy, format=format_.name)
        elif path.is_dir():
            _copy_folder(path, copy)
            for file, content in files.items():
                target = copy / _below(file, path)
                target.unlink(missing_ok=True)  # never follow a link
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        else:
            copy.write_bytes(files[path])
        # Renaming is atomic, so an interrupt never leaves a partial output.
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


def _copy_folder(path: Path, copy: Path) -> None:
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
    """Return the rows of the corrected table that differ from the original."""
    count = len(before)
    changed = (before.boxes != after.boxes[:count]).any(axis=1) | (before.category != after.category[:count])
    return {*np.flatnonzero(changed).tolist(), *range(count, len(after))}


def _check(expected: GroundTruth, read: GroundTruth, *, changed: set[int], place: str) -> None:
    """Compare the table read back with the expected one, image by image and label by label."""
    # Sort both tables by image, so that labels are compared in file order.
    names = {key: row for row, key in enumerate(read.images.ids.tolist())}
    wrong = "labels of other images" if len(read) != len(expected) else ""
    of_image = [rows_of_groups(table.image, len(table.images)) for table in (expected, read)]
    # Report the first difference.
    for image, key in enumerate(expected.images.ids.tolist()):
        if wrong:
            break
        # Compare the number of labels.
        mine = of_image[0][image].tolist()
        theirs = of_image[1][names[key]].tolist() if key in names else []
        if len(mine) != len(theirs):
            wrong = f"{len(theirs)} labels of image {key!r}, which has {len(mine)}"
        for row, other in zip(mine, theirs, strict=False):
            # Compare the classes.
            label = expected.categories.names[expected.category[row]]
            same = label == read.categories.names[read.category[other]]
            first, second = expected.boxes[row], read.boxes[other]
            # The file's form may round a corrected box; all others must be equal bit for bit.
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
    """Return a COCO ground truth file with corrected annotations and everything else unchanged."""
    if not path.is_file():
        return None
    # json keeps unknown keys and the order of all keys.
    content: Any = json.loads(path.read_bytes())
    annotations = content["annotations"]
    place = {annotation.get("id"): number for number, annotation in enumerate(annotations)}
    highest = max((key for key in place if isinstance(key, int)), default=0)
    for one in corrections:
        box = None if one.box is None else [*one.box[:2], one.box[2] - one.box[0], one.box[3] - one.box[1]]
        # New annotations get the next free ids.
        if one.id is None:
            assert box is not None, "a new label has a box"
            highest += 1
            new = {"id": highest, "image_id": one.image, "category_id": one.number}
            annotations.append({**new, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
            continue
        if one.id not in place:
            rule = "have ids of its own to be corrected"
            raise InputError("an annotation", rule, got=repr(one.id), place=str(path))
        # Find a corrected annotation by its id, and drop the outline of its old position.
        annotation = annotations[place[one.id]]
        annotation["category_id"] = one.number
        if box is not None:
            annotation |= {"bbox": box, "area": box[2] * box[3]}
            annotation.pop("segmentation", None)  # outline of the old box
    return {path: json.dumps(content, ensure_ascii=False).encode()}
