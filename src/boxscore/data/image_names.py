"""Match images by name, path or file name.

Conventions
-----------
- A name is a path: folders separated by slashes or backslashes, a stem and an extension. Extensions of images
  and label files may differ; any other extension is part of the stem.
- The common folders of all images are their root. Below the root, the last folders of both paths must be
  equal, up to the length of the shorter path.
- A name refers to the only image that it matches. If it matches several, an exact match wins, then one with
  exactly the same folders, then the one with the most folders and the best extension in common, if unique.
- Names with another folder instead of the root produce a warning; if other names have the root, they are
  unknown images.
- Two names that differ in a folder or an extension never refer to the same image.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import Images

UNKNOWN, SEVERAL = -1, -2
"""Special rows: no image, or several images."""

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
"""Extensions of images and label files."""

FEW_SHOWN = 4
"""Maximum number of candidates in a message."""


class _Path(NamedTuple):
    """The components of a name."""

    folders: tuple[str, ...]
    stem: str
    ending: str


class _Entry(NamedTuple):
    """A name of an image; ``folders`` are those below the ``root`` of all names of its kind."""

    row: int
    name: str
    folders: tuple[str, ...]
    ending: str
    root: tuple[str, ...]


class NameMatches(NamedTuple):
    """The images that names refer to.

    Attributes
    ----------
    rows : ndarray of int32, [N]
        The row of the image, or ``UNKNOWN`` or ``SEVERAL``.
    sure : ndarray of bool, [N]
        Whether the match is exact.
    clashes : dict of str to str
        For each name that was rejected because another name refers to the same image, the other name.
    other_root : (str, str), or None
        The folder in the names, and the folder of the images in its place.
    """

    rows: NDArray[np.int32]
    sure: NDArray[np.bool_]
    clashes: dict[str, str]
    other_root: tuple[str, str] | None


def _normalize(name: str) -> str:
    """Normalize a path: use ``/``, and resolve ``.``, ``..`` and empty components."""
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
    """Return the stem of a path."""
    return _split_path(name).stem


def without_ending(name: str) -> str:
    """Return a path without its extension."""
    stem, _, ending = name.rpartition(".")
    return stem if ending.lower() in ENDINGS and stem and stem[-1] not in "/\\" else name


def stems_of(names: Sequence[str]) -> list[str]:
    """Return the stems of paths."""
    together = "".join(names)
    if "/" in together or "\\" in together:
        names = [name.replace("\\", "/").rpartition("/")[2] for name in names]
    parts = [name.rpartition(".") for name in names]
    known = {ending for ending in {ending for _, _, ending in parts} if ending.lower() in ENDINGS}
    return [
        stem if stem and ending in known else name
        for name, (stem, _, ending) in zip(names, parts, strict=True)
    ]


def _common_folders(paths: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the longest common prefix of all paths."""
    first, last = min(paths, default=()), max(paths, default=())
    same = (folder == other for folder, other in zip(first, last, strict=False))
    return first[: next((at for at, is_same in enumerate(same) if not is_same), min(len(first), len(last)))]


def _split_path(name: str) -> _Path:
    folders, _, last = _normalize(name).rpartition("/")
    stem, _, ending = last.rpartition(".")
    if not stem or ending.lower() not in ENDINGS:
        stem, ending = last, ""
    return _Path(tuple(folders.split("/")) if folders else (), stem, ending.lower())


class ImageNames:
    """An index of image names.

    Parameters
    ----------
    *columns : sequence of (str or None), [I] each
        Names of one kind: file names, or ids that are text.
    """

    def __init__(self, *columns: Sequence[str | None]) -> None:
        self._exact: dict[str, int] = {}
        self._by_stem: dict[str, list[_Entry]] = {}
        self._added: set[str] = set()
        for column in columns:
            self._add(column)

    def _add(self, column: Sequence[str | None]) -> None:
        known = [(row, name) for row, name in enumerate(column) if name]
        paths = [_split_path(name) for _, name in known]
        root = _common_folders({path.folders for path in paths})
        below = len(root)
        for (row, name), (folders, stem, ending) in zip(known, paths, strict=True):
            written = _normalize(name)
            if self._exact.setdefault(written, row) != row:
                self._exact[written] = SEVERAL
            self._by_stem.setdefault(stem, []).append(_Entry(row, name, folders[below:], ending, root))

    def with_more(self, rows: NDArray[np.int32], names: Iterable[tuple[str, int]]) -> ImageNames:
        """Return an index with new row numbers [I], and with additional names that only match exactly."""
        more, new = ImageNames(), rows.tolist()
        more._exact = {name: new[row] if row >= 0 else row for name, row in self._exact.items()}
        more._by_stem = {
            stem: [entry._replace(row=new[entry.row]) for entry in entries]
            for stem, entries in self._by_stem.items()
        }
        for name, row in names:
            more._exact.setdefault(_normalize(name), row)
        more._added = {*self._added, *more._exact.keys() - self._exact.keys()}
        return more

    def candidates(self, name: str) -> list[int]:
        """Return the rows of all images that a name may refer to."""
        return self._match(name)[0]

    def find(self, names: Sequence[str]) -> NameMatches:
        """Find the images of distinct names from the same file."""
        rows: list[int] = []
        roots: list[tuple[int, tuple[str, str] | None]] = []
        sure: list[bool] = []
        # Try an exact match; otherwise find images whose paths match from the end.
        for name in names:
            written = _normalize(name)
            row = self._exact.get(written, UNKNOWN)
            sure.append(row >= 0)
            if row >= 0:
                rows.append(row)
                roots.append((int("/" in written and written not in self._added), None))
            else:
                # Do not choose if several images match equally well.
                matched, root = self._match(name)
                rows.append(matched[0] if len(matched) == 1 else SEVERAL if matched else UNKNOWN)
                roots.append(root)
        # ``sign`` is 1 if a name has the root of the known names, -1 if it has another one. If both occur,
        # only use names with the known root; if all names have another root, report it.
        other_root = None
        signs = {sign for sign, _ in roots}
        if -1 in signs:
            if 1 in signs:
                rows = [UNKNOWN if sign < 0 else row for row, (sign, _) in zip(rows, roots, strict=True)]
            else:
                other_root = next(both for sign, both in roots if sign < 0)
        # Reject names that refer to the same image as a different name, unless they match exactly.
        clashes = _reject_clashes(names, rows, sure)
        return NameMatches(np.array(rows, dtype=np.int32), np.array(sure, dtype=bool), clashes, other_root)

    def _match(self, name: str) -> tuple[list[int], tuple[int, tuple[str, str] | None]]:
        """Return the rows that a name may refer to, and its root: 1 if known, -1 if another, else 0."""
        written = _normalize(name)
        path = _split_path(name)
        entries = self._by_stem.get(path.stem, ())
        # Exact match.
        row = self._exact.get(written, UNKNOWN)
        if row != UNKNOWN:
            same = (
                [row] if row >= 0 else [entry.row for entry in entries if _normalize(entry.name) == written]
            )
            return [*dict.fromkeys(same)], (0, None)
        # For each image: are all folders the same, how many are shared, and how similar is the extension?
        fits: dict[int, tuple[bool, int, int]] = {}
        roots: dict[int, tuple[int, tuple[str, str] | None]] = {}
        # If an image has several names, keep the best value of each measure.
        for row, _, folders, ending, root in entries:
            # Compare folders from the end, up to the length of the shorter path.
            shared = min(len(folders), len(path.folders))
            if shared and folders[-shared:] != path.folders[-shared:]:
                continue
            # The extension is the same (2), missing on one side (1), or different (0).
            likeness = 2 if ending == path.ending else 0 if ending and path.ending else 1
            whole = bool(path.folders) and likeness > 0 and (*root, *folders) == path.folders
            before = fits.get(row, (False, 0, 0))
            fits[row] = (max(before[0], whole), max(before[1], shared), max(before[2], likeness))
            # The folders above the shared ones are the roots; compare their last components.
            above = path.folders[: len(path.folders) - len(folders)]
            sign = 0 if not (above and root) else 1 if above[-1] == root[-1] else -1
            both = (above[-1], root[-1]) if sign < 0 else None
            if row not in roots or sign > roots[row][0]:
                roots[row] = (sign, both)
        # Keep images with exactly the same folders if any, then those that are best in every measure.
        if len(fits) > 1:
            fits = {row: key for row, key in fits.items() if key[0]} or fits
            best = tuple(max(each) for each in zip(*(key[1:] for key in fits.values()), strict=True))
            chosen = [row for row, key in fits.items() if key[1:] == best]
            fits = {row: fits[row] for row in chosen or fits}
        return list(fits), roots[next(iter(fits))] if len(fits) == 1 else (0, None)

    def is_added(self, name: str) -> bool:
        """Whether a name was added by :meth:`with_more`."""
        return _normalize(name) in self._added


def _reject_clashes(names: Sequence[str], rows: list[int], sure: Sequence[bool]) -> dict[str, str]:
    """Reject names that refer to the same image as a different name, unless they match exactly.

    This modifies ``rows``.
    """
    first: dict[int, int] = {}
    shared: dict[int, list[int]] = {}
    for at, row in enumerate(rows):
        if row >= 0 and first.setdefault(row, at) != at:
            shared.setdefault(row, [first[row]]).append(at)
    clashes: dict[str, str] = {}
    for positions in shared.values():
        paths = {at: _split_path(names[at]) for at in sorted(positions, key=lambda at: not sure[at])}
        different: dict[_Path, int] = {}
        for at, path in paths.items():
            different.setdefault(path, at)  # exact matches come first
        for at in positions:
            other = next((path for path in different if not _may_be_same(path, paths[at])), None)
            if other is not None and not sure[at]:
                earlier = different[other]
                rows[at] = UNKNOWN if sure[earlier] else SEVERAL
                clashes[names[at]] = names[earlier]
    return clashes


def _may_be_same(first: _Path, second: _Path) -> bool:
    """Whether two names may refer to the same image."""
    shared = min(len(first.folders), len(second.folders))
    if first.stem != second.stem:
        return True  # the id and the file name of an image
    if shared and first.folders[-shared:] != second.folders[-shared:]:
        return False
    return first.ending == second.ending or not (first.ending and second.ending)


_KNOWN: weakref.WeakKeyDictionary[Images, ImageNames] = weakref.WeakKeyDictionary()


def names_of(images: Images) -> ImageNames:
    """Return the cached index of the file names and text ids of images."""
    names = _KNOWN.get(images)
    if names is None:
        file_names = images.file_names.tolist()
        ids = images.ids.tolist() if images.ids.dtype == object else []
        texts = [identifier if isinstance(identifier, str) else None for identifier in ids]
        names = ImageNames(file_names, texts) if texts != file_names else ImageNames(texts)
        _KNOWN[images] = names
    return names


def folders_of(images: Images) -> set[tuple[str, ...]]:
    """Return the folders of images, and all suffixes of their paths."""
    names = {*images.file_names.tolist(), *(images.ids.tolist() if images.ids.dtype == object else ())}
    written = {_normalize(name).rpartition("/")[0] for name in names if isinstance(name, str)}
    paths = [tuple(folder.split("/")) for folder in written if folder]
    return {path[first:] for path in paths for first in range(len(path))}


def below_their_root(folders: Sequence[str]) -> list[tuple[str, ...]]:
    """Split folders into components, and drop their common parent."""
    paths = [tuple(folder.split("/")) for folder in folders]
    root = len(_common_folders({path[:-1] for path in paths}))
    return [path[root:] for path in paths]


def add_names(images: Images, old: Images, rows: NDArray[np.int32], more: Images) -> None:
    """Cache the index of images that are the ``old`` ones, at ``rows`` [I], and ``more``, matched exactly."""
    at = images.rows(more.ids).tolist()
    names = [(str(name), row) for name, row in zip(more.file_names.tolist(), at, strict=True)]
    _KNOWN[images] = names_of(old).with_more(rows, names)
