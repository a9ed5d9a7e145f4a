"""Resolve arguments of the command line: processes, folders, images, classes and groups of classes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxscore._utils import checks
from boxscore._utils.files import read_bytes
from boxscore._utils.processes import available_processors
from boxscore.cli.sockets import names_at
from boxscore.data.alignment import without_classes
from boxscore.data.lookup import image_rows_by_name
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.errors import InputError

if TYPE_CHECKING:
    from boxscore.data.column_names import ColumnMap
    from boxscore.suppression.suppressing import GroupOptions

LONGEST_ID = 1000
"""Maximum number of digits of an integer id; Python refuses to parse more than 4,300."""


def readers(arguments: argparse.Namespace) -> int:
    """Return the number of processes for large files: ``--workers``, or the number of available CPUs."""
    if arguments.workers is not None:
        return checks.whole_number(arguments.workers, 1, name="--workers", high=checks.MOST_WORKERS)
    return available_processors()


def existing_folder(path: Path | None, *, name: str) -> Path | None:
    """Check that a folder exists, before other work starts."""
    if path is not None and not path.is_dir():
        raise InputError(name, "be a folder", got=repr(str(path)))
    return path


def results_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options in ``RESULTS_FILES``, by the parameter names of loaders."""
    columns = arguments.columns
    return {
        "format": arguments.dt_format,
        "classes": arguments.dt_classes,
        "image_sizes": arguments.image_sizes,
        "image_folder": existing_folder(arguments.image_folder, name="--image-folder"),
        "box_format": arguments.dt_box_format,
        "columns": None if columns is None else column_map(columns, name="--columns"),
        **{name: getattr(arguments, name) for name in names_at("results")},
    }


def column_map(texts: Sequence[str], **options: Any) -> ColumnMap:
    """Return the map of ``--columns``; ``options`` as those of ``ColumnMap.of``."""
    from boxscore.data.column_names import ColumnMap

    return ColumnMap.of(_pairs(texts), **options)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    """Parse ``image=photo`` pairs, separate or joined by commas; column names may contain commas."""
    pairs = [pair for text in texts for pair in re.split(r",(?=\w+=)", text)]
    wrong = next((pair for pair in pairs if "=" not in pair), None)
    if wrong is not None:
        raise InputError(
            "--columns",
            "be image=NAME class=NAME ...",
            got=repr(wrong)[:60],
            cause="--columns names the columns of an input table; --show chooses the columns to print",
        )
    columns = dict(pair.split("=", 1) for pair in pairs)
    if len(columns) < len(pairs):
        raise InputError("--columns", "say each part once", got=repr(" ".join(texts))[:60])
    return columns


def group_options(arguments: argparse.Namespace, categories: Categories) -> GroupOptions:
    """Convert the arguments in ``GROUPS`` to options of grouping and capping."""
    return {
        "class_agnostic": arguments.class_agnostic,
        "class_groups": None if arguments.groups is None else _groups(arguments.groups, categories),
        "max_per_group": arguments.max_per_group,
        "max_per_image": arguments.max_per_image,
        "pixel_offset": arguments.pixel_offset,
    }


def _groups(path: Path, categories: Categories) -> list[list[Id]]:
    """Read groups of classes, one per line."""
    import csv

    lines = csv.reader(_lines(path, "groups"), skipinitialspace=True)
    lists = [[word.strip() for word in words if word.strip()] for words in lines]
    groups = [_labels(words, categories, what="a class of a group") for words in lists if words]
    if not groups:
        raise InputError("a file with groups", "name at least one class", got="none", place=str(path))
    return groups


def chosen_classes(
    values: Sequence[str] | None, categories: Categories, excluded: Sequence[str] | None = None
) -> list[Id] | None:
    """Return the labels of the classes in ``--classes``, without those in ``--exclude-classes``.

    Files are replaced by their lines. Unknown words are returned unchanged.
    """
    classes = None if values is None else _classes(values, categories, what="a chosen class")
    if excluded is None:
        return classes
    return without_classes(
        categories,
        classes,
        _classes(excluded, categories, what="an excluded class"),
        name="--exclude-classes",
    )


def _classes(values: Sequence[str], categories: Categories, *, what: str) -> list[Id]:
    words: list[str] = []
    rows = categories.rows_by_word(values, what=what, numbers=True)
    for word, row in zip(values, rows.tolist(), strict=True):
        words += [word] if row >= 0 or not Path(word).is_file() else _lines_of_ids(Path(word))
    return _labels(words, categories, what=what)


def _labels(words: Sequence[str], categories: Categories, *, what: str) -> list[Id]:
    labels = categories.labels
    rows = categories.rows_by_word(words, what=what, numbers=True).tolist()
    unknown = categories.ids.dtype != object
    return [
        labels[row] if row >= 0 else _integer(word) if unknown else word
        for word, row in zip(words, rows, strict=True)
    ]


def _lines_of_ids(path: Path) -> list[str]:
    lines = _lines(path, "ids")
    if not lines:
        raise InputError("a file with ids", "name at least one", got="an empty file", place=str(path))
    return lines


def chosen(values: Sequence[str] | None, images: Images) -> list[Id] | None:
    """Return ids or names of images from the command line; files are replaced by their lines or JSON list."""
    if values is None:
        return None
    # Image names take precedence over files of the same name.
    known = {*map(str, images.ids.tolist()), *images.file_names.tolist()}
    integers = images.ids.dtype != object
    ids: list[Id] = []
    for value in values:
        path = Path(value)
        if value in known or not path.is_file():
            # Commas separate names, unless the whole text is the name of an image.
            texts: list[Any] = [value]
        else:
            texts = _ids_in(path)
        for text in texts:
            if isinstance(text, int):
                ids.append(text)
            else:
                parts = [text] if text in known or "," not in text else _split_at_commas(text, images)
                ids += _ids(parts, names=(), integers=integers)
    return ids


def _split_at_commas(text: str, images: Images) -> list[str]:
    """Split a text at commas, unless it is the name of an image."""
    if image_rows_by_name(as_ids([text], name="image ids"), images)[0] >= 0:
        return [text]
    return [word.strip() for word in text.split(",") if word.strip()]


def _ids_in(path: Path) -> list[Any]:
    """Read a file of ids: lines, or a JSON list."""
    import json

    lines = _lines_of_ids(path)
    if not lines[0].startswith("["):
        return lines
    try:
        values = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        values = None
    kinds = {type(value) for value in values} if isinstance(values, list) else {None}
    if not values or not kinds <= {int, str}:
        rule, got = "have one per line, or be a JSON list", "other JSON"
        raise InputError("a file with ids", rule, got=got, place=str(path))
    return values  # type: ignore[no-any-return]


def _lines(path: Path, what: str) -> list[str]:
    """Read the non-blank lines of a file."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"a file with {what}", "be UTF-8 text", got="other bytes", place=str(path)) from None
    except ValueError as error:  # NUL in the path
        raise InputError(f"{path}: cannot be read: {error}.") from None
    return [line.strip() for line in lines if line.strip()]


def _ids(texts: Sequence[str], *, names: Sequence[str] | set[str], integers: bool) -> list[Id]:
    """Convert words to integers if ids are integers and the word is not a name."""
    return [_integer(text) if integers and text not in names else text for text in texts]


def _integer(text: str) -> Id:
    """Convert a word of digits to an integer; keep any other word."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        return text
    if len(digits) > LONGEST_ID:
        got = f"{len(digits):,}, {digits[:12]}..."
        raise InputError("an id", f"have at most {LONGEST_ID:,} digits", got=got)
    return int(text)
