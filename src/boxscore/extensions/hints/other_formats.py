"""Find annotation files in a second format next to the files that are read from a folder.

Conventions
-----------
- A folder is read in one format. Files in another format are counted and named in a note. If they describe
  images that the files of the first format do not, this is an error, unless the user names the format.
- Only files of the same side count: files with scores are detections, all others are ground truth.
- Images are compared by name, without folder and extension.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boxscore._utils.text import counted, short_list, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.image_names import ENDINGS
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import BoxscoreError, BoxscoreWarning, FileFormatError
from boxscore.formats._format import Opened, ReadOptions, Side
from boxscore.formats._sniffer import Sniffer, listed
from boxscore.formats._yolo_folders import is_label_file, read_in_split
from boxscore.formats._yolo_lines import is_number
from boxscore.formats.registry import detected, format_named
from boxscore.formats.voc import RESULTS

DEEPEST, MOST_FOLDERS = 4, 200

SAMPLE = 20
"""Number of files with one extension to open; more only if their images are missing."""

LARGEST = 64_000_000
"""Maximum size in bytes of a file of many images that is read to find its images."""

_LINES = ("dota", "xview", "yolo", "visdrone", "kitti", "text")
"""Formats with a text file per image, in the order of detection."""

_TEXT = frozenset({*_LINES, "darknet", "answers"})
_PER_IMAGE = {**dict.fromkeys(_TEXT, ".txt"), "voc": ".xml", "hrsc": ".xml"} | dict.fromkeys(
    ("labelme", "supervisely", "darwin", "superannotate", "ultralytics", "pipeline", "roboflow", "mmdetjson"),
    ".json",
)
"""Formats with a file per image, and the extension of these files."""

_PER_CLASS = ("voc", "dota")
"""Formats whose detections are a file per class."""

_OTHERS = (".xml", ".json", ".txt", ".csv", ".jsonl", ".ndjson")
"""Extensions of annotation files."""

_SCORE = re.compile(r'"(?:scores?|confidence)"\s*:[\s\[]*[\d.]|^(?:[^\n]*,)?(?:score|confidence)[,\s]')
_NUMBERS = {"yolo": 6, "text": 5, "kitti": 15, "xview": 6}
"""Number of numbers in a line with a score."""


class _Group(NamedTuple):
    """Files of another format in one folder."""

    kind: str
    files: list[str]
    """Names of all files."""
    alone: list[str]
    """Names of files with images that the files that are read do not have."""
    images: int
    """The number of such images."""


def check_other_formats(
    opened: Opened, table: BoxTable, options: ReadOptions, truth: GroundTruth | None = None
) -> None:
    """Name files of other formats next to those that were read; raise if only they describe some images."""
    side: Side = "detections" if isinstance(table, Detections) else "ground truth"
    if isinstance(table, Detections) and not table.scored:
        return  # without scores, detections look like ground truth
    folders = _folders_read(opened, table, options, side)
    if not any(folders.values()):
        return
    own = opened.format.name
    ending = _own_ending(own, side)
    known = set().union(*_stems_of_images(table)) if ending is None else set()
    for names in folders.values():
        known |= {_stem(name) for name in names.get(ending or "", [])}
    for folder, names in folders.items():
        for group in _groups(folder, names, own, known, side, truth):
            _tell(_shown(folder, opened), group, own, side, is_named=options.format == own)


def _shown(folder: Path, opened: Opened) -> Path:
    """Return a folder with the path of an archive instead of its temporary folder."""
    if opened.unpacked is None:
        return folder
    return Path(str(folder).replace(str(opened.unpacked), str(opened.path)))


def _tell(folder: Path, group: _Group, own: str, side: Side, *, is_named: bool) -> None:
    """Raise if only the files of a group describe some images; otherwise show a note."""
    kind, images = group.kind, counted(group.images, "image")
    if group.images and not is_named:
        option = "--format" if side == "ground truth" else "--dt-format"
        path = folder / (group.files[0] if len(group.files) == 1 else f"*{Path(group.alone[0]).suffix}")
        reads = f"use {option} {kind}" if kind in _PER_IMAGE else f"pass {path}"
        raise FileFormatError(
            str(folder),
            "describe all its images in one format",
            got=f"{images} only in {kind} files ({short_list(group.alone, 5)}), not in {own} files",
            cause=f"{reads} to read these, or {option} {own} (in Python format=) to ignore them",
        )
    also = f"; {images} {verb(group.images, 'are')} only in these" if group.images else ""
    text = (
        f"{folder}: reading the {own} files, ignoring {counted(len(group.files), f'{kind} file')} "
        f"({short_list(group.files, 5)}){also}."
    )
    warn_user(BoxscoreWarning(text, severity="note"))


# ---------------------------------------------------------------- folders


def _own_ending(own: str, side: Side) -> str | None:
    """Return the extension of the files per image of a format; None if its files hold many images."""
    return None if side == "detections" and own in _PER_CLASS else _PER_IMAGE.get(own)


def _folders_read(
    opened: Opened, table: BoxTable, options: ReadOptions, side: Side
) -> dict[Path, dict[str, list[str]]]:
    """Return the folders with files that were read, and their annotation files by extension."""
    ending = _own_ending(opened.format.name, side)
    if ending is None:
        return {opened.data: _files(opened.data)[0]} if opened.data.is_dir() else {}
    # A YOLO data set names its folders; search all others.
    is_split = opened.format.name in ("yolo", "darknet") and side == "ground truth"
    level = read_in_split(opened.data, options.image_set) if is_split else [opened.data]
    listing: dict[Path, dict[str, list[str]]] = {}
    left = MOST_FOLDERS
    for _ in range(DEEPEST + 1):
        within: list[Path] = []
        for folder in level[:left]:
            listing[folder], inner = _files(folder) if folder.is_dir() else ({}, [])
            within += inner
        left -= len(level[:left])
        level = within
    # Most folders have files with one extension: return early.
    if not any(ending in names and len(names) > 1 for names in listing.values()):
        return {}
    # Files were read from a folder if one of them has the name of an image of the table.
    stems = set().union(*_stems_of_images(table))
    first = {
        folder: next((name for name in names.get(ending, []) if _stem(name) in stems), None)
        for folder, names in listing.items()
    }
    own = opened.format.name
    return {
        folder: listing[folder]
        for folder, name in first.items()
        if name is not None and _is_same(_kind_of(folder / name), own, none=True)
    }


def _files(folder: Path) -> tuple[dict[str, list[str]], list[Path]]:
    """Return the annotation files in a folder by extension, sorted, and the folders in it."""
    names: dict[str, list[str]] = {}
    inner: list[Path] = []
    with listed(folder) as entries:
        for entry in entries:
            ending = Path(entry.name).suffix.lower()
            if ending in _OTHERS and entry.is_file():
                names.setdefault(ending, []).append(entry.name)
            elif not ending and entry.is_dir(follow_symlinks=False):
                inner.append(Path(entry.path))
    return {ending: sorted(names[ending]) for ending in sorted(names)}, sorted(inner)


def _stems_of_images(table: BoxTable) -> list[set[str]]:
    """Return the names of each image, or of each with detections, without folders and extensions."""
    rows = np.unique(table.image).tolist() if isinstance(table, Detections) else range(len(table.images))
    ids, files = table.images.ids.tolist(), table.images.file_names.tolist()
    return [{_stem(str(name)) for name in (ids[row], files[row]) if name is not None} for row in rows]


def _stem(name: str) -> str:
    """Return a name without folders and extensions of images and label files."""
    stem = name.replace("\\", "/").rpartition("/")[2]
    while "." in stem and stem.rpartition(".")[2].lower() in ENDINGS:
        stem = stem.rpartition(".")[0]
    return stem


# ---------------------------------------------------------------- files of other formats


def _groups(
    folder: Path,
    names: Mapping[str, list[str]],
    own: str,
    known: set[str],
    side: Side,
    truth: GroundTruth | None,
) -> Iterator[_Group]:
    """Yield the files of each other format in a folder."""
    for of_ending in names.values():
        # Open a sample: most files are those that are read, or all of one other format.
        sample = of_ending[:: -(-len(of_ending) // SAMPLE)]
        kinds = {name: _kind_of(folder / name) for name in sample}
        others = {name: kind for name, kind in kinds.items() if kind and not _is_same(kind, own)}
        for kind in sorted(set(others.values())):
            files = [name for name in of_ending if kinds.get(name, kind) == kind]
            yield from _group(folder, kind, files, known, side, truth)


def _group(
    folder: Path, kind: str, files: list[str], known: set[str], side: Side, truth: GroundTruth | None
) -> Iterator[_Group]:
    """Yield a group if its files belong to this side: detections have scores, ground truth does not."""
    # Find the images of each file: by its name, or by reading it.
    kept: list[str] = []
    alone: dict[str, set[str]] = {}
    for number, name in enumerate(files):
        path = folder / name
        images = [{_stem(name)}] if kind in _PER_IMAGE else _images_in(path, kind, side, truth)
        if images is None:
            continue
        # Check a sample of the files, and all with other images.
        unknown = {min(stems) for stems in images if not stems & known}
        if (number < SAMPLE or unknown) and not _is_of(path, kind, side):
            continue
        kept.append(name)
        if unknown:
            alone[name] = unknown
    if kept:
        yield _Group(kind, kept, list(alone), len(set().union(*alone.values())))


def _is_same(kind: str | None, own: str, *, none: bool = False) -> bool:
    """Whether files are of the format that is read; text files are judged by their reader."""
    return kind == own or (kind in _TEXT and own in _TEXT) or (kind is None and none)


def _kind_of(file: Path) -> str | None:
    """Return the format of a file, or of the folders that consist of such files; None if unknown."""
    sniffer = Sniffer(file)
    try:
        if sniffer.suffix == ".txt":
            return _kind_of_lines(sniffer)
        found = detected(sniffer)
    except FileFormatError:  # a file of a format that is read as a folder
        return None if not sniffer.is_xml else "hrsc" if "<HRSC_Image" in sniffer.text else "voc"
    if found is None or found[0] != "coco":
        return None if found is None else found[0]
    # Any JSON file may be COCO's; require its keys.
    if sniffer.has_keys("classTitle") or sniffer.has_keys("objects", "size"):
        return "supervisely"
    is_coco = sniffer.has_keys("images", "annotations") or sniffer.has_keys("images", "file_name")
    return "coco" if is_coco or sniffer.has_keys("image_id", "bbox") else None


class _FolderOfOne(Sniffer):
    """Sniffs a folder as if one text file were its only entry."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.parent)
        self.names = (file.name,)


def _kind_of_lines(sniffer: Sniffer) -> str | None:
    """Return the format of a text file per image; None for class lists, image lists and other text."""
    file = sniffer.path
    if fnmatchcase(file.name, RESULTS) or re.fullmatch(r"Task[12]_.+\.txt", file.name):
        return None
    folder = _FolderOfOne(file)
    for kind in _LINES:
        if is_label_file(file) if kind == "yolo" else format_named(kind).detect(folder) is not None:
            return kind
    return None


def _is_of(file: Path, kind: str, side: Side) -> bool:
    """Whether a file has a format and belongs to a side."""
    if _kind_of(file) != kind:
        return False
    sniffer = Sniffer(file)
    if kind == "visdrone":
        return True  # both sides have scores
    if kind in _NUMBERS:
        numbers = [field for field in sniffer.first_line.split() if is_number(field)]
        has_scores = len(numbers) == _NUMBERS[kind]
    else:
        has_scores = _SCORE.search(sniffer.text) is not None
    return has_scores == (side == "detections")


def _images_in(file: Path, kind: str, side: Side, truth: GroundTruth | None) -> list[set[str]] | None:
    """Return the names of the images in a file of many, without those of a large file; None if unreadable."""
    if file.stat().st_size > LARGEST:
        return []
    form = format_named(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if side == "detections":
                return _stems_of_images(form.load_detections(file, ReadOptions(), truth))
            return _stems_of_images(form.load_ground_truth(file, ReadOptions()))
        except BoxscoreError:
            return None
