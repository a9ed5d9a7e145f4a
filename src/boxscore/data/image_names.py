"""Match images by name: the one rule by which a name, a path or a file's name refers to an image.

Conventions
-----------
- A name is a path: folders, with slashes of either kind between, and a last part, whose ending is not
  compared if it is that of a picture or of a label file. Any other ending is part of the name.
- Folders that all images have in common are their root, which distinguishes none. Below it the last
  folders of both must be equal, as many as the shorter path has.
- A name refers to an image if it is the only one it can refer to. Among several it is the one that is
  written so; else one in these very folders, none more and none fewer; else the one that has most folders and
  most of the ending in common with it, if only one has.
- Names that have another folder in place of the root have another root, which is warned of; but where some
  have the root itself, the others are unknown images.
- Two names that differ in a folder or an ending are two images: they never refer to one.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import Images

UNKNOWN, SEVERAL = -1, -2
"""In place of a row: no image, or more than one."""

ENDINGS = frozenset(
    (
        *(
            "avif",
            "bmp",
            "dcm",
            "dib",
            "dng",
            "exr",
            "gif",
            "hdr",
            "heic",
            "heif",
            "ico",
            "j2k",
            "jfif",
            "jp2",
        ),
        *("jpe", "jpeg", "jpg", "mpo", "npy", "pbm", "pfm", "pgm", "png", "pnm", "ppm", "svs", "tga", "tif"),
        *("tiff", "webp", "json", "txt", "xml"),
    )
)
"""Of pictures, and of the files with the labels of one."""

FEW_SHOWN = 4
"""Candidates that a message names."""


class _Path(NamedTuple):
    """A name, taken apart."""

    folders: tuple[str, ...]
    stem: str
    ending: str


class _Entry(NamedTuple):
    """One name of an image: its folders below the root that all names of its kind have."""

    row: int
    name: str
    folders: tuple[str, ...]
    ending: str
    root: tuple[str, ...]


class NameMatches(NamedTuple):
    """The rows of names.

    Attributes
    ----------
    rows : ndarray of int32, [N]
        ``UNKNOWN`` and ``SEVERAL`` where there is not one.
    sure : ndarray of bool, [N]
        Whether the name is written as the image's.
    clashes : dict of str to str
        Another name that stands for the same image, of names that do not for that.
    other_root : (str, str), or None
        The folder that names have, and the one that images have in its place.
    """

    rows: NDArray[np.int32]
    sure: NDArray[np.bool_]
    clashes: dict[str, str]
    other_root: tuple[str, str] | None


def _written(name: str) -> str:
    """Return a path as it is compared: with ``/``, without what changes nothing."""
    if "\\" in name:
        name = name.replace("\\", "/")
    if "/" not in name:
        return name
    parts: list[str] = []
    for part in name.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def stem_of(name: str) -> str:
    """Return the last part of a path without its ending."""
    return _taken_apart(name).stem


def without_ending(name: str) -> str:
    """Return a path without its ending."""
    stem, _, ending = name.rpartition(".")
    return stem if ending.lower() in ENDINGS and stem and stem[-1] not in "/\\" else name


def stems_of(names: Sequence[str]) -> list[str]:
    """Return the last parts of paths without their endings."""
    together = "".join(names)
    if "/" in together or "\\" in together:
        names = [name.replace("\\", "/").rpartition("/")[2] for name in names]
    parts = [name.rpartition(".") for name in names]
    known = {ending for ending in {ending for _, _, ending in parts} if ending.lower() in ENDINGS}
    return [
        stem if stem and ending in known else name
        for name, (stem, _, ending) in zip(names, parts, strict=True)
    ]


def _common(paths: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the folders with which all paths begin."""
    first, last = min(paths, default=()), max(paths, default=())
    same = (folder == other for folder, other in zip(first, last, strict=False))
    return first[: next((at for at, is_same in enumerate(same) if not is_same), min(len(first), len(last)))]


def _taken_apart(name: str) -> _Path:
    folders, _, last = _written(name).rpartition("/")
    stem, _, ending = last.rpartition(".")
    if not stem or ending.lower() not in ENDINGS:
        stem, ending = last, ""
    return _Path(tuple(folders.split("/")) if folders else (), stem, ending.lower())


class ImageNames:
    """The names of images, by which others are looked up.

    Parameters
    ----------
    *columns : sequence of (str or None), [I] each
        Names of one kind: file names, ids that are text.
    """

    def __init__(self, *columns: Sequence[str | None]) -> None:
        self._exact: dict[str, int] = {}
        self._by_stem: dict[str, list[_Entry]] = {}
        self._added: set[str] = set()
        for column in columns:
            self._add(column)

    def _add(self, column: Sequence[str | None]) -> None:
        known = [(row, name) for row, name in enumerate(column) if name]
        paths = [_taken_apart(name) for _, name in known]
        root = _common({path.folders for path in paths})
        below = len(root)
        for (row, name), (folders, stem, ending) in zip(known, paths, strict=True):
            written = _written(name)
            if self._exact.setdefault(written, row) != row:
                self._exact[written] = SEVERAL
            self._by_stem.setdefault(stem, []).append(_Entry(row, name, folders[below:], ending, root))

    def with_more(self, rows: NDArray[np.int32], names: Iterable[tuple[str, int]]) -> ImageNames:
        """Return these names under new row numbers [I], and others, which must be written exactly so."""
        more, new = ImageNames(), rows.tolist()
        more._exact = {name: new[row] if row >= 0 else row for name, row in self._exact.items()}
        more._by_stem = {
            stem: [entry._replace(row=new[entry.row]) for entry in entries]
            for stem, entries in self._by_stem.items()
        }
        for name, row in names:
            more._exact.setdefault(_written(name), row)
        more._added = {*self._added, *more._exact.keys() - self._exact.keys()}
        return more

    def candidates(self, name: str) -> list[int]:
        """Return the rows of the images that a name can refer to; a single row is the image it refers to."""
        return self._match(name)[0]

    def find(self, names: Sequence[str]) -> NameMatches:
        """Return the rows of distinct names that belong together, of one file."""
        rows: list[int] = []
        roots: list[tuple[int, tuple[str, str] | None]] = []
        sure: list[bool] = []
        # Look each name up as it is written; else find the images whose path can end like it.
        for name in names:
            written = _written(name)
            row = self._exact.get(written, UNKNOWN)
            sure.append(row >= 0)
            if row >= 0:
                rows.append(row)
                roots.append((int("/" in written and written not in self._added), None))
            else:
                # Of several images that fit equally, none is taken.
                matched, root = self._match(name)
                rows.append(matched[0] if len(matched) == 1 else SEVERAL if matched else UNKNOWN)
                roots.append(root)
        # Names of one file are in one folder: ``sign`` is 1 if a name has the root of the known names, -1 if
        # it has another. If both occur, only those with the known root count; if all have another, it is
        # reported.
        other_root = None
        signs = {sign for sign, _ in roots}
        if -1 in signs:
            if 1 in signs:
                rows = [UNKNOWN if sign < 0 else row for row, (sign, _) in zip(rows, roots, strict=True)]
            else:
                other_root = next(both for sign, both in roots if sign < 0)
        # Mark names that lead to the image of another, different name; a name that is written like the
        # image's own stays.
        clashes = _clashes(names, rows, sure)
        return NameMatches(np.array(rows, dtype=np.int32), np.array(sure, dtype=bool), clashes, other_root)

    def _match(self, name: str) -> tuple[list[int], tuple[int, tuple[str, str] | None]]:
        """Return the rows that a name can refer to, and whether it has the root: 1, -1 for another, or 0."""
        written = _written(name)
        path = _taken_apart(name)
        entries = self._by_stem.get(path.stem, ())
        # A name that is written exactly like a known one needs no comparison.
        row = self._exact.get(written, UNKNOWN)
        if row != UNKNOWN:
            same = [row] if row >= 0 else [entry.row for entry in entries if _written(entry.name) == written]
            return [*dict.fromkeys(same)], (0, None)
        # Of each image: whether it is in these very folders, how many it shares, and how alike its ending is.
        fits: dict[int, tuple[bool, int, int]] = {}
        roots: dict[int, tuple[int, tuple[str, str] | None]] = {}
        # Compare the folders from the end, since paths can start anywhere; a shorter path must agree as far
        # as it goes. An image with several names keeps the best of each measure.
        for row, _, folders, ending, root in entries:
            # Folders must agree from the file upwards, as far as both have some.
            shared = min(len(folders), len(path.folders))
            if shared and folders[-shared:] != path.folders[-shared:]:
                continue
            # The ending agrees, is missing on one side, or differs.
            likeness = 2 if ending == path.ending else 0 if ending and path.ending else 1
            whole = bool(path.folders) and likeness > 0 and (*root, *folders) == path.folders
            before = fits.get(row, (False, 0, 0))
            fits[row] = (max(before[0], whole), max(before[1], shared), max(before[2], likeness))
            # What is above the shared folders is the root of each: compare the two where they end.
            above = path.folders[: len(path.folders) - len(folders)]
            sign = 0 if not (above and root) else 1 if above[-1] == root[-1] else -1
            both = (above[-1], root[-1]) if sign < 0 else None
            if row not in roots or sign > roots[row][0]:
                roots[row] = (sign, both)
        # Of several images keep those in these very folders, then those that are best in every measure.
        if len(fits) > 1:
            fits = {row: key for row, key in fits.items() if key[0]} or fits
            best = tuple(max(each) for each in zip(*(key[1:] for key in fits.values()), strict=True))
            chosen = [row for row, key in fits.items() if key[1:] == best]
            fits = {row: fits[row] for row in chosen or fits}
        return list(fits), roots[next(iter(fits))] if len(fits) == 1 else (0, None)

    def nearest(self, name: str) -> str:
        """Return the name of an image in another folder, or of another ending, that may be meant; else ""."""
        stem = _taken_apart(name).stem
        start = stem.partition(".")[0]
        alike = (entries for other, entries in self._by_stem.items() if other.partition(".")[0] == start)
        near = self._by_stem.get(stem) or (next(alike, ()) if start else ())
        return near[0].name if near else ""


def _clashes(names: Sequence[str], rows: list[int], sure: Sequence[bool]) -> dict[str, str]:
    """Mark names that refer to the image of another name, and differ from it; change their ``rows``.

    A name that is written as the image's stays.
    """
    first: dict[int, int] = {}
    shared: dict[int, list[int]] = {}
    for at, row in enumerate(rows):
        if row >= 0 and first.setdefault(row, at) != at:
            shared.setdefault(row, [first[row]]).append(at)
    clashes: dict[str, str] = {}
    for positions in shared.values():
        paths = {at: _taken_apart(names[at]) for at in sorted(positions, key=lambda at: not sure[at])}
        different: dict[_Path, int] = {}
        for at, path in paths.items():
            different.setdefault(path, at)  # what is sure comes first
        for at in positions:
            other = next((path for path in different if not _may_be_same(path, paths[at])), None)
            if other is not None and not sure[at]:
                beside = different[other]
                rows[at] = UNKNOWN if sure[beside] else SEVERAL
                clashes[names[at]] = names[beside]
    return clashes


def _may_be_same(first: _Path, second: _Path) -> bool:
    """Whether two names can be those of the same image."""
    shared = min(len(first.folders), len(second.folders))
    if first.stem != second.stem:
        return True  # its id and its file's name
    if shared and first.folders[-shared:] != second.folders[-shared:]:
        return False
    return first.ending == second.ending or not (first.ending and second.ending)


_KNOWN: weakref.WeakKeyDictionary[Images, ImageNames] = weakref.WeakKeyDictionary()


def names_of(images: Images) -> ImageNames:
    """Return the names of images, file names and ids that are text, which are indexed once."""
    names = _KNOWN.get(images)
    if names is None:
        file_names = images.file_names.tolist()
        ids = images.ids.tolist() if images.ids.dtype == object else []
        texts = [identifier if isinstance(identifier, str) else None for identifier in ids]
        names = ImageNames(file_names, texts) if texts != file_names else ImageNames(texts)
        _KNOWN[images] = names
    return names


def folders_of(images: Images) -> set[tuple[str, ...]]:
    """Return the folders in which images lie, also by their last parts alone."""
    names = {*images.file_names.tolist(), *(images.ids.tolist() if images.ids.dtype == object else ())}
    written = {_written(name).rpartition("/")[0] for name in names if isinstance(name, str)}
    paths = [tuple(folder.split("/")) for folder in written if folder]
    return {path[first:] for path in paths for first in range(len(path))}


def below_their_root(folders: Sequence[str]) -> list[tuple[str, ...]]:
    """Take folders apart, without what all of them lie in."""
    paths = [tuple(folder.split("/")) for folder in folders]
    root = len(_common({path[:-1] for path in paths}))
    return [path[root:] for path in paths]


def add_names(images: Images, old: Images, rows: NDArray[np.int32], more: Images) -> None:
    """Index images that are the ``old`` ones, at ``rows`` [I], matched as before, and ``more``."""
    at = images.rows(more.ids).tolist()
    names = [(str(name), row) for name, row in zip(more.file_names.tolist(), at, strict=True)]
    _KNOWN[images] = names_of(old).with_more(rows, names)
