"""Correct lines of YOLO label files, keeping all others byte for byte."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boxscore._utils.files import read_bytes
from boxscore.errors import InputError
from boxscore.formats._yolo_folders import data_set
from boxscore.formats._yolo_lines import is_number

if TYPE_CHECKING:
    from boxscore.extensions.formats.correcting import Correction


def corrected(
    path: Path, corrections: Sequence[Correction], image_set: str | Path | None
) -> dict[Path, bytes] | None:
    """Return the changed label files of a folder."""
    if not path.is_dir():
        return None
    # Find the label file of each image, or name a new one like the others.
    split = data_set(path, image_set)
    file_of = dict(zip(split.images, split.labels, strict=True))
    known = [Path(file) for file in split.labels if file]
    # Read each file once, and keep its line endings.
    lines: dict[Path, list[bytes]] = {}
    for one in corrections:
        file = Path(file_of[str(one.image)] or _new_file(known, str(one.image), path))
        if file not in lines:
            lines[file] = read_bytes(file).splitlines(keepends=True) if file_of[str(one.image)] else []
        of_file = lines[file]
        # Append a new label as a line; end the last line first.
        if one.place is None:
            if of_file and not of_file[-1].endswith(b"\n"):
                of_file[-1] += b"\n"
            of_file.append(f"{one.number} {_numbers(one)}\n".encode())
            continue
        # Skip blank lines.
        at = [number for number, line in enumerate(of_file) if line.strip()][one.place]
        of_file[at] = _line(of_file[at].decode(), one, f"{file}, line {at + 1}").encode()
    return {file: b"".join(of_file) for file, of_file in lines.items()}


def _line(line: str, one: Correction, place: str) -> str:
    head, name, rest = re.match(r"(\s*)(\S+)(.*)", line, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    if not is_number(name):
        raise InputError("a class", "be a number to be corrected", got=repr(name)[:60], place=place)
    if one.box is not None:
        if len(rest.split()) != 4:
            rule = "be a box of four numbers to be drawn again"
            raise InputError("a label", rule, got=f"{len(rest.split())}", place=place)
        rest = f" {_numbers(one)}{rest[len(rest.rstrip()) :]}"
    return f"{head}{one.number}{rest}"


def _numbers(one: Correction) -> str:
    """Return center and size as fractions."""
    assert one.box is not None, "a new label has a box"
    x1, y1, x2, y2 = one.box
    width, height = one.size
    if not (width > 0 and height > 0):
        cause = "give the sizes with --image-sizes or --image-folder"
        raise InputError("the size of an image", "be known", got=repr(one.image), cause=cause)
    numbers = (x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height
    return " ".join(map(repr, numbers))


def _new_file(known: Sequence[Path], image: str, path: Path) -> Path:
    """Return the path of a new label file, next to the others."""
    if not known:
        rule = "have at least one label file"
        raise InputError("a data set", rule, got="none", place=str(path))
    return known[0].with_name(f"{Path(image).name}.txt")
