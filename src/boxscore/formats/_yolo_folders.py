"""Find the images and labels of a YOLO data set.

Conventions
-----------
- The labels of ``.../images/.../a.b.jpg`` are ``.../labels/.../a.b.txt``; without such folders they are next
  to the image.
- A ``data.yaml`` or a list of images was often written on another machine. Its paths are tried as written,
  then by their last components relative to the folder of the file.
- A split consists of all its images, with or without labels; if image files are missing, of all label files.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from boxscore._utils import checks
from boxscore._utils.files import is_file, read_text
from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import FEW
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._sniffer import MOST_NAMES, MOST_TEXTS, is_text_file
from boxscore.formats._yaml import names_of, read_yaml
from boxscore.formats._yolo_lines import is_number
from boxscore.formats.class_lists import class_list

IMAGE_ENDINGS = frozenset(
    f".{ending}"
    for ending in (
        *("avif", "bmp", "dng", "gif", "heic", "jfif", "jp2", "jpeg"),
        *("jpg", "mpo", "pfm", "png", "tif", "tiff", "webp"),
    )
)
TEXT = frozenset({".txt"})
CLASS_LISTS = ("classes.txt", "obj.names", "_darknet.labels")
SPLITS = ("val", "valid", "validation", "test", "train")
"""Default splits; the first that exists is read."""

DEEPEST = 4
"""Maximum depth of subfolders of a split."""

LARGEST_LIST = 1_000_000_000
"""Maximum size of a list of images in bytes."""

_SAME_SPLITS = (("val", "valid", "validation"),)
_NO_LABELS = re.compile(
    r"(?:classes|train|val|valid|test|trainval|minival|readme.*|notes.*|license.*|origin)\.txt", re.I
)
"""Names of text files in label folders that are usually not labels."""


@dataclasses.dataclass(frozen=True)
class DataSet:
    """The files of one split.

    Attributes
    ----------
    source : str
        The path of the data set, for messages.
    images : list of str
        The id of each image: its stem, with the folder if stems are not unique.
    labels : list of str
        The path of the label file of each image; empty if missing.
    paths : list of str, or None
        The path of each image; None if there are only label files.
    file_names : list of str, or None
    classes : sequence of str, or None
    keypoint_shape : (int, int), or None
        Keypoints per object, and numbers per keypoint (2 or 3).
    """

    source: str
    images: list[str]
    labels: list[str]
    paths: list[str] | None = None
    file_names: list[str] | None = None
    classes: Sequence[str] | None = None
    keypoint_shape: tuple[int, int] | None = None


class _File(NamedTuple):
    """An image of a split: its relative path without extension, and its files; empty if unknown."""

    name: str
    label: str
    image: str
    file_name: str


@dataclasses.dataclass(frozen=True)
class _Split:
    """The label folder and the image folder of a split; one may be missing."""

    labels: Path | None
    images: Path | None


@dataclasses.dataclass(frozen=True)
class _Source:
    """The splits and classes defined by a ``data.yaml``, an ``obj.data`` or a folder."""

    path: Path
    splits: Mapping[str, Any]
    classes: Sequence[str] | None = None
    keypoint_shape: tuple[int, int] | None = None
    roots: tuple[Path, ...] = ()


def read_elsewhere(path: Path) -> list[Path]:
    """Return the image lists and folders that the splits of a data set refer to."""
    source = _source(path)
    read: list[Path] = []
    for name, value in source.splits.items():
        for entry in value if isinstance(value, list) else [value]:
            try:
                read += _paths_of(source, name, entry)
            except FileFormatError:  # a missing split, which may not be needed
                continue
    return list(dict.fromkeys(read))


def joins(folder: Path, file: Path) -> bool:
    """Whether a new file would be read with the labels of a folder: not if it has a description of others."""
    return _description(folder) is None or any(
        Path(os.path.realpath(path)) in file.parents for path in read_elsewhere(folder)
    )


def read_in_split(path: Path, image_set: str | Path | None) -> list[Path]:
    """Return the image lists and folders of a split."""
    source = _source(path)
    name = _choose_split(source, None if image_set is None else str(image_set))
    value = source.splits[name]
    entries = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(part for entry in entries for part in _paths_of(source, name, entry)))


def _paths_of(source: _Source, name: str, entry: Any) -> list[Path]:
    """Return the image list and the folders that an entry of a split refers to."""
    location = _location_of(source, name, entry)
    if isinstance(location, _Split):
        return [path for path in (location.labels, location.images) if path is not None]
    lines = read_text(location, "a list of images", largest=LARGEST_LIST).splitlines()
    parents = {line.strip().replace("\\", "/").rpartition("/")[0] for line in lines if line.strip()}
    pairs = (_folder_listed(parent, (*source.roots, location.parent)) for parent in sorted(parents))
    return [location, *(folder for pair in pairs if pair is not None for folder in pair)]


def data_set(path: Path, image_set: str | Path | None) -> DataSet:
    """Find the images and labels of a split of the data set at a path."""
    source = _source(path)
    name = _choose_split(source, None if image_set is None else str(image_set))
    value = source.splits[name]
    entries = value if isinstance(value, list) else [value]
    title = f"{source.path}, {name}" if name and len(source.splits) > 1 else str(source.path)
    files = [file for entry in entries for file in _files_of(source, name, entry)]
    return _data_set_of(title, files, source)


def _source(path: Path) -> _Source:
    """Read a description of a data set, a list of images, or a folder."""
    description = path if path.is_file() else _description(path)
    if description is None:
        return _folder_source(path)
    if description.suffix.lower() in (".yaml", ".yml"):
        return _yaml_source(description)
    if description.suffix.lower() == ".txt":
        return _Source(path, {"": str(description.name)}, _near_classes(path.parent), None, (path.parent,))
    return _darknet_source(description)


def label_folder(path: Path) -> Path:
    """Return the folder of the label files of predictions: the path, or its subfolder ``labels``."""
    if not path.is_dir():
        rule = "be the folder of the .txt files, one per image"
        raise FileFormatError("YOLO predictions", rule, got=f"one file, {path}")
    inside = path / "labels"
    return inside if inside.is_dir() and not any(_text_files(path)) else path


def label_files(folder: Path) -> list[tuple[str, str]]:
    """Return stem and path of the label files in a folder, or else in its subfolders, sorted."""
    files = sorted(
        (entry.name[:-4], entry.path)
        for entry in _entries(folder)
        if entry.name[-4:].lower() == ".txt" and entry.is_file() and not _is_not_labels(entry.path)
    )
    return files or sorted(file for file in files_below(folder, TEXT) if not _is_not_labels(file[1]))


# ---------------------------------------------------------------- kinds of paths


def is_darknet_data(text: str) -> bool:
    """Whether a text is a darknet ``obj.data``: lines ``key = value``, with a list of images."""
    return re.search(r"^\s*(?:train|valid|val|test)\s*=", text, re.MULTILINE) is not None


def is_image_list(text: str) -> bool:
    """Whether a text starts with lines that are paths of images."""
    lines = [line.strip() for line in text[:4096].split("\n")]
    whole = [line for line in (lines[:-1] if len(text) > 4096 else lines) if line]
    return bool(whole) and all(map(_is_image, whole))


def _is_image(line: str) -> bool:
    return PurePosixPath(line.replace("\\", "/")).suffix.lower() in IMAGE_ENDINGS and "," not in line


def _description(folder: Path) -> Path | None:
    """Return the ``data.yaml`` or ``obj.data`` of a folder, or None."""
    # Filter files by extension first, because the folder may hold thousands of others.
    files = [
        entry
        for entry in _entries(folder)
        if entry.name.lower().endswith((".yaml", ".yml", ".data")) and entry.is_file()
    ]
    # Check the keys, because the YAML file may belong to another tool; it takes precedence over obj.data.
    for entry in sorted(files, key=lambda entry: entry.name):
        if entry.name.lower().endswith((".yaml", ".yml")) and _is_data_yaml(Path(entry.path)):
            return Path(entry.path)
    # The same for obj.data; skip unreadable files.
    for entry in files:
        if entry.name.lower().endswith(".data"):
            try:
                text = read_text(Path(entry.path), largest=LARGEST_LIST)
            except FileFormatError:
                continue
            if is_darknet_data(text):
                return Path(entry.path)
    return None


_SPLIT_KEY = re.compile(r"^(?:path|train|val|valid|test|nc)\s*:", re.MULTILINE)
_NAMES_KEY = re.compile(r"^[\"']?names[\"']?\s*:", re.MULTILINE)


def _is_data_yaml(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_data_yaml(file.read(1 << 16).decode("utf-8", errors="replace"))
    except OSError:
        return False


def is_data_yaml(text: str) -> bool:
    """Whether a text is a ``data.yaml``: it has splits, and class names or their count."""
    return _SPLIT_KEY.search(text) is not None and (
        _NAMES_KEY.search(text) is not None or (re.search(r"^nc\s*:", text, re.MULTILINE) is not None)
    )


def looks_like_labels(folder: Path) -> bool:
    """Whether the first text files in a folder, or in its subfolders, have YOLO lines."""
    empty = other = False
    verdicts: list[bool] = []
    read = 0
    for file in itertools.islice(_text_files(folder), MOST_NAMES):
        if read > MOST_TEXTS:
            break
        # An empty file is an image without objects, which does not decide.
        if not file.stat().st_size and _NO_LABELS.fullmatch(file.name) is None:
            empty = True  # an image without objects
            continue
        read += 1
        if _NO_LABELS.fullmatch(file.name) is not None and not _looks_like_label(file):
            other = True
            continue
        verdict = _looks_like_label(file)
        empty |= verdict is None
        if verdict is not None:
            verdicts.append(verdict)
    # Almost all of the files decide; if they are mixed, the first.
    if verdicts:
        yes = sum(verdicts)
        return yes >= (1 - FEW) * len(verdicts) or (verdicts[0] and yes > FEW * len(verdicts))
    # Otherwise the subfolders decide.
    if empty and not other:
        return True  # images without objects
    return any(
        looks_like_labels(Path(entry.path)) for entry in _entries(folder) if entry.is_dir() and _depth(entry)
    )


def _depth(entry: os.DirEntry[str]) -> bool:
    return not entry.is_symlink() and entry.name in {*SPLITS, "labels", "obj_train_data", "Annotations"}


def _is_not_labels(file: str) -> bool:
    """Whether a text file is a class list, a list of images or a readme instead of labels.

    An empty file, other than ``classes.txt``, is the label file of an image without objects.
    """
    name = os.path.split(file)[1]
    if _NO_LABELS.fullmatch(name) is None:
        return False
    verdict = _looks_like_label(Path(file))
    return verdict is False or (verdict is None and name.lower() == "classes.txt")


def is_label_file(file: Path) -> bool:
    """Whether a text file holds YOLO labels: not a class list, a list of images or other text."""
    return _looks_like_label(file) is True


def _looks_like_label(file: Path) -> bool | None:
    """Whether a file starts with YOLO lines; None if it is empty."""
    try:
        with file.open("rb") as opened:
            lines = opened.read(4096).decode("utf-8-sig", errors="replace").split("\n")
    except OSError:
        return False
    whole = lines[:-1] if len(lines) > 1 and len(lines[-1]) else lines
    lines = [line for line in whole if line.strip()][:20]
    return 2 * sum(map(_looks_like_line, lines)) > len(lines) if lines else None


def _looks_like_line(line: str) -> bool:
    """Whether a line has a class followed by fractions."""
    fields = line.split()
    last = next((i for i in range(len(fields) - 1, -1, -1) if not is_number(fields[i])), -1)
    if last > 0 and is_number(fields[0]):
        return False
    numbers = [float(field) for field in fields[max(last + 1, 1) :]]
    if len(numbers) < 4 or (last >= 0 and len(numbers) > 5):
        return False
    return all(-1 <= number <= 2 for number in numbers[:4])


# ---------------------------------------------------------------- sources


def _yaml_source(path: Path) -> _Source:
    content = read_yaml(path)
    # Splits, under any of their usual keys.
    splits = {
        str(key): _folder_names(content[key], str(key), path)
        for key in ("train", "val", "valid", "validation", "test")
        if content.get(key)
    }
    # Class names: a list, a mapping or a single text; warn if the count is wrong.
    given = content.get("names")
    names = [given] if isinstance(given, str) else names_of(content, path)
    number = content.get("nc")
    if names is not None and isinstance(number, int) and number != len(names):
        warn_user(
            f"{path}: nc is {number}, but there {verb(len(names), 'are')} {counted(len(names), 'name')}; "
            "using the names.",
        )
    # Paths are relative to "path" if that folder or its last components exist, else to the file: "path" may
    # be of another machine.
    roots = [path.parent]
    root = content.get("path")
    if isinstance(root, str) and "\0" not in root:
        inside = _find_below(root, (path.parent,), _is_folder)
        if inside is not None:
            roots.insert(0, inside)
    # Keypoints per object; a file without splits describes its own folder.
    shape = content.get("kpt_shape")
    keypoints = None if shape is None else _keypoint_shape(shape, path)
    if not splits:
        splits = dict(_folder_source(path.parent, quiet=True).splits)
        if not splits:
            raise FileFormatError(
                "data.yaml", "have train, val or test", got=f"keys {list(content)[:10]}", place=str(path)
            )
    return _Source(path, splits, names, keypoints, tuple(roots))


def _folder_names(value: Any, key: str, path: Path) -> list[str]:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or "\0" in name or len(name) > 4096:
            rule = "be a folder, a list of images, or several"
            raise FileFormatError(key, rule, got=repr(name)[:60], place=str(path))
    return names


def _keypoint_shape(shape: Any, path: Path) -> tuple[int, int]:
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(side) is int for side in shape)
    if not whole or not 1 <= shape[0] <= 10_000 or shape[1] not in (2, 3):
        rule = "be [keypoints, 2 or 3]"
        raise FileFormatError("kpt_shape", rule, got=repr(shape)[:60], place=str(path))
    return shape[0], shape[1]


def _darknet_source(path: Path) -> _Source:
    text = read_text(path, "a data file of darknet", largest=1_000_000)
    parts = (line.partition("=") for line in text.splitlines())
    pairs = {key.strip(): value.strip() for key, _, value in parts}
    splits = {key: [pairs[key]] for key in ("train", "valid", "val", "test") if pairs.get(key)}
    if not splits:
        rule = "have train = ... or valid = ..."
        raise FileFormatError("a data file of darknet", rule, got="neither", place=str(path))
    names = None
    if "names" in pairs:
        file_of_names = _find_below(
            pairs["names"], (path.parent,), lambda file: _inside(file, path.parent) and is_file(file)
        )
        names = None if file_of_names is None else class_list(file_of_names)
    return _Source(path, splits, names or _near_classes(path.parent), None, (path.parent,))


def _folder_source(folder: Path, *, quiet: bool = False) -> _Source:
    """Find the splits of a folder by its subfolders."""
    splits = _layout(folder)
    if not splits and not quiet:
        raise FileFormatError(
            "a YOLO data set",
            "have folders images/ and labels/, or .txt files",
            got=f"neither in {folder}",
            cause=_cause_of_missing_labels(folder),
        )
    return _Source(folder, splits, _near_classes(folder), _near_keypoints(folder), (folder,))


def _cause_of_missing_labels(folder: Path) -> str:
    """Return the probable cause of missing YOLO labels; empty if unknown."""
    dota_labels = next(folder.glob("*/labelTxt"), None)
    return "" if dota_labels is None else f"{dota_labels.relative_to(folder)} is a folder of DOTA labels"


def _layout(folder: Path) -> dict[str, _Split]:
    # labels/ next to images/, with or without a subfolder per split.
    labels, images = folder / "labels", folder / "images"
    if labels.is_dir():
        names = _inner_names(labels) if not any(_text_files(labels)) else []
        if names:
            return {name: _Split(labels / name, _existing(images / name)) for name in names}
        return {"": _Split(labels, _existing(images))}
    # A folder per split, each with labels/ and images/.
    inner = [name for name in _inner_names(folder) if (folder / name / "labels").is_dir()]
    if inner:
        return {name: _Split(folder / name / "labels", _existing(folder / name / "images")) for name in inner}
    # The folder itself holds labels; find its images by replacing "labels" in its path.
    if any(_text_files(folder)):
        twin = _replace_component(folder, "labels", "images")
        return {"": _Split(folder, folder if twin is None or not _is_folder(twin) else twin)}
    # Subfolders hold labels, as in labels/.
    with_labels = [name for name in _inner_names(folder) if any(_text_files(folder / name))]
    twin = _replace_component(folder, "labels", "images")
    return {
        name: _Split(folder / name, folder / name if twin is None else _existing(twin / name))
        for name in with_labels
    }


def _choose_split(source: _Source, name: str | None) -> str:
    """Return the key of the named split, or of the default split."""
    # A named split; val, valid and validation are synonyms.
    known = list(source.splits)
    if name is not None:
        spellings = next((group for group in _SAME_SPLITS if name in group), (name,))
        match: str | None = next((key for key in (name, *spellings) if key in source.splits), None)
        if match is None:
            if known == [""]:
                rule = "not be used if a data set lacks splits"
                raise InputError("image_set", rule, got=repr(name), place=str(source.path))
            cause = checks.did_you_mean(name, known)
            raise InputError(
                "image_set", "be a split of the data set", got=repr(name), place=str(source.path), cause=cause
            )
        return match
    # By default, the only split, or the first of ``SPLITS`` that is not for training.
    if len(known) == 1:
        return known[0]
    chosen = next((key for key in SPLITS if key in source.splits), None)
    if chosen is None or chosen == "train":
        choices = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
        rule = "be given where there are several splits"
        raise InputError("image_set", rule, got=f"none, in {source.path}", cause=f"choose from {choices}")
    return chosen


# ---------------------------------------------------------------- paths in files


def _files_of(source: _Source, name: str, entry: Any) -> list[_File]:
    """Return the files of each image of a split."""
    location = _location_of(source, name, entry)
    return _pair_files(location) if isinstance(location, _Split) else _files_in_list(location, source.roots)


def _location_of(source: _Source, name: str, entry: Any) -> _Split | Path:
    """Return the folders of a split, or the path of its list of images."""
    if isinstance(entry, _Split):
        return entry
    home = source.roots[-1]
    for spelling in _spellings(entry, name):
        fewest = 1 if spelling.lower().endswith(".txt") else 2  # "images" alone may belong to another split
        path = _find_below(spelling, source.roots, lambda path: _is_list_or_split(path, home), fewest=fewest)
        if path is not None:
            return path if path.is_file() else _split_at(path)
    layout = _layout(home)
    group = next((group for group in _SAME_SPLITS if name in group), (name,))
    for spelling in group:
        if spelling in layout:
            return layout[spelling]
    tried = " and ".join(dict.fromkeys(str(root / entry) for root in source.roots))
    raise FileFormatError(
        name or "a split",
        "be a folder of images or labels, or a list of images",
        got=f"{entry!r}, which is not there (tried {tried})",
        place=str(source.path),
        cause=_cause_of_missing_labels(source.path.parent)
        or "pass the folder of the labels itself, and this file as class list (--gt-classes)",
    )


def _spellings(entry: str, name: str) -> Iterator[str]:
    yield entry
    for group in _SAME_SPLITS:
        if name in group:
            for written in group:
                for other in group:
                    changed = re.sub(rf"(^|[/\\]){written}([/\\]|$)", rf"\g<1>{other}\g<2>", entry)
                    if changed != entry:
                        yield changed


def _find_below(
    entry: str, roots: Sequence[Path], exists: Callable[[Path], bool], *, fewest: int = 1
) -> Path | None:
    """Find a path as written, or by its last components (at least ``fewest``) in one of the ``roots``."""
    text = entry.replace("\\", "/").strip()
    for root in roots:
        if exists(root / text):
            return root / text
    parts = [part for part in text.split("/") if part not in ("", ".")]
    for first in range(len(parts)):
        tail = parts[first:]
        if tail[0] == ".." or len(tail) < min(fewest, len(parts)):
            continue
        for root in roots:
            if exists(root.joinpath(*tail)):
                return root.joinpath(*tail)
    return None


def _inside(path: Path, folder: Path) -> bool:
    """Whether a path is lexically inside a folder, or equal to it."""
    inner, outer = os.path.normpath(path.absolute()), os.path.normpath(folder.absolute())
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)


def _is_list_or_split(path: Path, home: Path) -> bool:
    """Whether a path is a list of images, or a folder of images or labels.

    Outside the folder of the data set, only telling names are accepted, so that a file cannot redirect the
    reader to arbitrary paths.
    """
    if not _inside(path, home):
        near = (
            {entry.name for entry in _entries(path.parent)} if path.suffix.lower() == ".txt" else path.parts
        )
        if not {"images", "labels"} & set(near):
            return False
    if path.suffix.lower() == ".txt":
        return is_file(path)
    twin = _replace_component(path, "images", "labels")
    return _is_folder(path) or (twin is not None and _is_folder(twin))


def _split_at(path: Path) -> _Split:
    """Return the folders of the split whose images or labels are at a path."""
    labels = _replace_component(path, "images", "labels")
    if labels is not None and _is_folder(labels):
        return _Split(labels, _existing(path))
    images = _replace_component(path, "labels", "images")
    if images is not None and _is_folder(images):
        return _Split(path, images)
    if not any(_text_files(path)) and (path / "labels").is_dir():
        return _Split(path / "labels", _existing(path / "images"))
    return _Split(path, path)


def _replace_component(path: Path, name: str, replacement: str) -> Path | None:
    """Replace the last path component ``name``; None if it does not occur."""
    parts = list((path if name in path.parts else path.absolute()).parts)
    for position in range(len(parts) - 1, -1, -1):
        if parts[position] == name:
            return Path(*parts[:position], replacement, *parts[position + 1 :])
    return None


def _files_in_list(file: Path, roots: Sequence[Path]) -> list[_File]:
    """Return the images in a list."""
    # Look up each folder once, because lists may have millions of lines.
    text = read_text(file, "a list of images", largest=LARGEST_LIST)
    folders: dict[str, tuple[Path, Path] | None] = {}
    files = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip().replace("\\", "/")
        if not line:
            continue
        place = f"{file}, line {number}"
        if "\0" in line or len(line) > 4096 or not _is_image(line):
            raise FileFormatError(
                "a line of a list of images", "be an image", got=repr(line[:60]), place=place
            )
        # Find the folders of the image and its labels on this machine.
        parent, _, name = line.rpartition("/")
        if parent not in folders:
            folders[parent] = _folder_listed(parent, (*roots, file.parent))
        pair = folders[parent]
        if pair is None:
            raise FileFormatError(
                "a listed image",
                "be in a folder of the data set",
                got=repr(line[:80]),
                place=place,
                cause="pass the folder of the labels itself",
            )
        # Use an empty path if the label file or the image does not exist.
        stem = name.rpartition(".")[0]
        label, image = pair[0] / f"{stem}.txt", pair[1] / name
        files.append(_File(stem, str(label) * is_file(label), str(image) * is_file(image), name))
    if not files:
        rule = "name at least one image"
        raise FileFormatError("a list of images", rule, got="an empty file", place=str(file))
    # Drop repeated lines, and keep the order.
    return list(dict.fromkeys(files))


def _folder_listed(parent: str, roots: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return the label folder and the image folder for a folder in a list."""
    if not parent:
        folder: Path | None = roots[-1]
    else:
        folder = _find_below(parent, roots, lambda path: any(_is_list_or_split(path, root) for root in roots))
    if folder is None:
        return None
    twin = _replace_component(folder, "images", "labels")
    return (folder if twin is None or not _is_folder(twin) else twin), folder


# ---------------------------------------------------------------- files of a split


def _pair_files(split: _Split) -> list[_File]:
    """Match the images and labels of a split."""
    # Without images, every label file is an image.
    labels = {} if split.labels is None else dict(files_below(split.labels, TEXT))
    images = [] if split.images is None else files_below(split.images, IMAGE_ENDINGS)
    if not images:
        return [
            _File(name, label, "", "") for name, label in sorted(labels.items()) if not _is_not_labels(label)
        ]
    # With images, find the label file of each by name.
    files = sorted(
        _File(name, labels.get(name, ""), image, os.path.split(image)[1]) for name, image in images
    )
    # Drop labels without an image, as ultralytics does, but with a warning.
    names = {file.name for file in files}
    alone = [name for name, label in labels.items() if name not in names and not _is_not_labels(label)]
    if alone:
        warn_user(
            f"{split.labels}: ignoring {counted(len(alone), 'label file')} without an image in "
            f"{split.images}: {', '.join(sorted(alone)[:5])}{', ...' * (len(alone) > 5)}.",
        )
    return files


def files_below(
    folder: Path, endings: frozenset[str], below: str = "", depth: int = 0
) -> list[tuple[str, str]]:
    """Return relative path without extension, and path, of the files with these endings."""
    files: list[tuple[str, str]] = []
    inner = []
    for entry in _entries(folder):
        stem, dot, ending = entry.name.rpartition(".")
        if dot and f".{ending.lower()}" in endings and entry.is_file():
            files.append((below + stem, entry.path))
        elif depth < DEEPEST and entry.is_dir(follow_symlinks=False):
            inner.append(entry)
    for entry in inner:
        files += files_below(Path(entry.path), endings, f"{below}{entry.name}/", depth + 1)
    return files


def _data_set_of(source: str, files: Sequence[_File], data_source: _Source) -> DataSet:
    # Reject an empty split.
    if not files:
        rule = "have images or label files"
        raise FileFormatError("a split", rule, got="neither", place=source)
    if not any(file.label for file in files):
        raise FileFormatError(
            "a split",
            "have label files",
            got=f"{counted(len(files), 'image')} without any",
            place=source,
            cause="labels of .../images/a.jpg must be in .../labels/a.txt or next to the image",
        )
    # Use stems if they are unique, otherwise include the folder.
    names = [file.name.rpartition("/")[2] for file in files]
    if len(set(names)) < len(names):
        names = [file.name for file in files]
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError(
            "images",
            "have different names, without ending",
            got=f"{twice!r} twice",
            place=source,
            cause="both would have the same label file",
        )
    # Keep parallel lists, one entry per image.
    # File names include the subfolder, because several may have images of the same name.
    has_file_names = any(file.file_name for file in files)
    return DataSet(
        source,
        names,
        [file.label for file in files],
        [file.image for file in files] if any(file.image for file in files) else None,
        [file.name.rpartition("/")[0] + "/" * ("/" in file.name) + file.file_name for file in files]
        if has_file_names
        else None,
        data_source.classes,
        data_source.keypoint_shape,
    )


def _near_classes(folder: Path) -> Sequence[str] | None:
    """Return the class list in a folder, or in one of its two parents."""
    for near in (folder, *list(folder.absolute().parents)[:2]):
        names = classes_in(near)
        if names is not None:
            return names
    return None


def classes_in(folder: Path) -> Sequence[str] | None:
    """Return the class list in a folder, or None; an empty file is the label file of an image instead."""
    for name in CLASS_LISTS:
        if is_file(folder / name) and (folder / name).stat().st_size:
            return class_list(folder / name)
    content = _near_yaml(folder)
    return None if content is None or content.get("names") is None else names_of(content, folder)


def _near_keypoints(folder: Path) -> tuple[int, int] | None:
    """Return the keypoint shape of a ``data.yaml`` in a folder or in one of its two parents."""
    for near in (folder, *list(folder.absolute().parents)[:2]):
        content = _near_yaml(near)
        if content is not None and content.get("kpt_shape") is not None:
            return _keypoint_shape(content["kpt_shape"], near)
    return None


def _near_yaml(folder: Path) -> Mapping[str, Any] | None:
    path = folder / "data.yaml"
    return read_yaml(path) if is_file(path) and _is_data_yaml(path) else None


# ---------------------------------------------------------------- folders


def _existing(folder: Path) -> Path | None:
    return folder if _is_folder(folder) else None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder that are not hidden; nothing if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError:
        return


def _inner_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in _entries(folder) if entry.is_dir())


def _text_files(folder: Path) -> Iterator[Path]:
    return (Path(entry.path) for entry in _entries(folder) if is_text_file(entry))
