"""Read folders of JSON files, one per image.

Conventions
-----------
Files that do not name their image are named after it: ``a.json``, ``a.jpg.json`` or ``a.jpg___objects.json``.
Folders below the given one are part of the name.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxscore.data.image_names import without_ending
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import json_text
from boxscore.formats._sniffer import Sniffer, listed

DEEPEST = 4
EMPTY_BYTES = 64
"""Maximum size of a file that may be an empty list."""

_ENDING = re.compile(r"(?:___objects|___pixel)?\.json$", re.IGNORECASE)
_STRING = r'"(?:[^"\\]|\\.)*"'
_OF_NAMES = re.compile(rf"\s*\{{(?:\s*{_STRING}\s*:\s*\[\s*\]\s*,)*\s*{_STRING}\s*:\s*\[")
"""The beginning of an object of lists by name, up to the first list that is not empty."""


@functools.lru_cache(maxsize=8)
def first_json(sniffer: Sniffer) -> Sniffer | None:
    """Sniff the file, or the first JSON file directly inside the folder; None without any.

    Files of images without objects may be empty lists, which are like those of other formats: another file is
    preferred.
    """
    if not sniffer.is_folder:
        return sniffer if sniffer.is_json else None
    first = None
    for name in sniffer.names:
        file = sniffer.path / name
        if name.lower().endswith(".json") and file.is_file():
            first = first or file
            if file.stat().st_size > EMPTY_BYTES or _is_filled(file):
                return Sniffer(file)
    return None if first is None else Sniffer(first)


def is_coco(sniffer: Sniffer) -> bool:
    """Whether a JSON file has the lists or the records of COCO; other keys next to them mean nothing."""
    keys = (("images", "annotations"), ("images", "categories"), ("image_id", "category_id"))
    return any(sniffer.has_keys(*pair) for pair in keys)


def is_coco_results(sniffer: Sniffer) -> bool:
    """Whether a JSON file is a list of records of COCO results, whose other keys mean nothing."""
    return {"image_id", "category_id"} <= first_object(sniffer).keys()


def _is_filled(file: Path) -> bool:
    return file.read_bytes().removeprefix(b"\xef\xbb\xbf").split() not in ([b"[]"], [b"[", b"]"], [])


def first_object(sniffer: Sniffer, *, by_name: bool = False) -> dict[str, Any]:
    """Return the first object in a list near the beginning of a JSON file; empty without one.

    With ``by_name``, the list may be in an object of lists by image name.
    """
    text = sniffer.text.lstrip()
    named = _OF_NAMES.match(text) if by_name else None
    if named is not None:
        text = text[named.end() - 1 :]
    start = re.match(r"[\[\],\s]*(?=\{)", text)
    if start is None or not text.startswith("["):
        return {}
    try:
        found: dict[str, Any] = json.JSONDecoder().raw_decode(text, start.end())[0]
    except (ValueError, RecursionError):
        return {}
    return found


def json_files(path: Path, *, depth: int = DEEPEST) -> list[Path]:
    """Return the file, or all JSON files below the folder, sorted; raise if others are deeper or linked."""
    if not path.is_dir():
        return [path]
    files: list[Path] = []
    folders = [path]
    for _ in range(depth + 1):
        inner: list[Path] = []
        for folder in folders:
            with listed(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(Path(entry.path))
                    elif entry.name.lower().endswith(".json") and entry.is_file():
                        files.append(Path(entry.path))
                    elif entry.is_symlink():
                        _check_link(Path(entry.path), path)
        folders = inner
    deeper = next(filter(_has_json, folders), None)
    if deeper is not None:
        rule = f"be at most {depth} folders deep" if depth else "be in the folder itself"
        cause = "pass a folder further down"
        raise FileFormatError("JSON files", rule, got=str(deeper), place=str(path), cause=cause)
    return sorted(files)


def _check_link(link: Path, path: Path) -> None:
    """Raise if a link below ``path`` leads to JSON files that are not read, or to a missing one."""
    if not link.is_dir():
        if link.name.lower().endswith(".json") and not link.exists():
            rule, got = "exist", f"the link {link} to nothing"
            raise FileFormatError("a JSON file", rule, got=got, cause="fetch the file, or remove the link")
        return
    # Files that are linked inside the folder are read under their own name; a folder around it is a loop.
    target, whole = link.resolve(), path.resolve()
    if whole.is_relative_to(target) or (target.is_relative_to(whole) and not _is_hidden(target, whole)):
        return
    if _has_json(link, depth=DEEPEST):
        rule, cause = (
            "be in folders, not in links to them",
            f"pass {target}, or replace the link by the folder",
        )
        raise FileFormatError("JSON files", rule, got=f"the link {link}", place=str(path), cause=cause)


def _has_json(folder: Path, *, depth: int | None = None) -> bool:
    """Whether a folder has JSON files, at any depth or at most ``depth`` folders deep."""
    for inner, folders, names in os.walk(folder):
        if any(name.lower().endswith(".json") and not name.startswith(".") for name in names):
            return True
        is_deepest = depth is not None and len(Path(inner).relative_to(folder).parts) >= depth
        folders[:] = [name for name in folders if not is_deepest and not name.startswith(".")]
    return False


def _is_hidden(inner: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in inner.relative_to(folder).parts)


def image_of(file: Path, path: Path) -> str:
    """Return the name of the image that a file is named after, with its folder below ``path``."""
    name = _ENDING.sub("", file.name)
    folder = file.parent.relative_to(path).as_posix() if file != path else "."
    return name if folder == "." else f"{folder}/{name}"


def files_of_images(path: Path) -> list[tuple[Path, str]]:
    """Return the file, or all JSON files below the folder, each with the image that it is named after."""
    files = [(file, image_of(file, path)) for file in json_files(path)]
    same = _of_one_image([name for _, name in files])
    if same is not None:
        raise FileFormatError("an image", "have one file", got=" and ".join(str(files[at][0]) for at in same))
    return files


def check_keys(file: Path) -> None:
    """Raise if two keys of an object by image name are of one image."""
    # A decoded object has only the last of equal keys.
    pairs = json.loads(json_text(file), object_pairs_hook=list)
    names = [name for name, _ in pairs]
    same = _of_one_image(names)
    if same is not None:
        got = " and ".join(repr(names[at])[:60] for at in same)
        raise FileFormatError("an image", "have one key", got=got, place=str(file))


def _of_one_image(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of two names of one image: "a" and "a.jpg", or "a.jpg" and "x/a.jpg"."""
    exact: dict[str, int] = {}
    for position, name in enumerate(names):
        other = exact.setdefault(name, position)
        if other != position:
            return other, position
    known = {without_ending(name): position for name, position in exact.items()}
    for name, position in exact.items():
        parts = without_ending(name).split("/")
        shorter = (known.get("/".join(parts[first:])) for first in range(1, len(parts)))
        for at in (exact.get("/".join(parts)), *shorter):
            if at is not None and at != position:
                return at, position
    return None
