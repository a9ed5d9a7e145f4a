"""Arguments of suppression that several subcommands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError
from boxscore.suppression.methods import METHODS
from boxscore.suppression.suppressing import GroupOptions

__all__ = ["add_group_arguments", "group_options", "method_names"]


def method_names() -> str:
    """Return the names of the methods, for a help text."""
    return ", ".join(METHODS)


def add_group_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which boxes meet and how many stay."""
    parser.add_argument(
        "--max-per-group", type=int, metavar="N", help="keep the best N of an image and class"
    )
    parser.add_argument("--max-per-image", type=int, metavar="N", help="keep the best N of an image")
    together = parser.add_mutually_exclusive_group()
    together.add_argument("--class-agnostic", action="store_true", help="suppress all classes together")
    together.add_argument(
        "--groups",
        type=Path,
        metavar="FILE",
        help="suppress some classes together: a line is a group, ids or names with commas between",
    )
    parser.add_argument(
        "--pixel-offset", type=float, default=0, metavar="0|1", help="1 for inclusive pixels (default: 0)"
    )


def group_options(arguments: argparse.Namespace, detections: Detections) -> GroupOptions:
    """Return what the arguments of :func:`add_group_arguments` mean for these detections.

    Raises
    ------
    InputError
        When the file of groups cannot be read or breaks a rule.
    """
    return {
        "class_agnostic": arguments.class_agnostic,
        "class_groups": None if arguments.groups is None else _read_groups(arguments.groups, detections),
        "max_per_group": arguments.max_per_group,
        "max_per_image": arguments.max_per_image,
        "pixel_offset": arguments.pixel_offset,
    }


def _read_groups(path: Path, detections: Detections) -> list[list[Id]]:
    """Read groups of classes; ids are integers where the detections have such."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError("a file of groups", "be UTF-8 text", got="other bytes", place=str(path)) from None
    names = set(detections.categories.names.tolist())
    integers = detections.categories.ids.dtype != object

    def label(text: str) -> Id:
        return int(text) if integers and text not in names and text.isdecimal() else text

    lists = [[word.strip() for word in line.split(",") if word.strip()] for line in lines]
    groups = [[label(word) for word in words] for words in lists if words]
    if not groups:
        raise InputError("a file of groups", "name at least one class", got="none", place=str(path))
    return groups
