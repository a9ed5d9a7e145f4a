"""Find the classes of the numbers in a model's results, which have no names.

Conventions
-----------
- Numbers count from 0: in MMDetection in the order of the list of the COCO file that the model was tested on,
  in detectron2 by ascending category id.
- Without a COCO file, they are those of the user's class list. A note states the classes.

References
----------
``CocoDataset`` of MMDetection; ``COCOEvaluator`` of detectron2.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from boxscore._utils.array_types import IntArray
from boxscore._utils.text import counted, short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.formats._gathered import are_numbers, decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats.registry import open_at

MOST_CLASSES = 1_000_000
"""Maximum number of a class, which bounds lists of classes."""

_GIVE_CLASSES = (
    "pass the class names in the model's order, one per line: --dt-classes FILE (in Python classes=)"
)


class _Numbered(msgspec.Struct, gc=False):
    id: Id


class _Class(msgspec.Struct, gc=False):
    id: Id
    name: str = ""


class Listed(msgspec.Struct, gc=False):
    """Images and categories of a COCO file, in the order of its lists."""

    images: list[_Numbered]
    categories: list[_Class]


def listed_by(ground_truth: GroundTruth) -> Listed | None:
    """Return the lists of the COCO file that a ground truth was read from; None for others."""
    path = Path(ground_truth.source)
    if not ground_truth.source or not path.is_file():
        return None
    opened = open_at(path)
    if opened.format.name != "coco":
        return None
    return decoded(opened.data, Listed, record="image", whole=("COCO ground truth", "images and categories"))


def classes_of(
    numbers: IntArray,
    tool: str,
    options: ReadOptions,
    truth: GroundTruth | None,
    listed: Listed | None,
    path: Path,
    *,
    declared: int | None = None,
) -> tuple[list[str] | None, list[Id]]:
    """Return the names, or None, and the ids of the classes from number 0, and tell the user what they mean.

    ``declared`` is the number of classes, if the file has it.
    """
    count = int(numbers.max(initial=-1)) + 1 if declared is None else declared
    ids: list[Id] = list(range(count))
    if options.classes is not None:
        if declared not in (None, len(options.classes)):
            rule, got = (
                f"have a name for each of the {declared} classes",
                f"{len(options.classes)} names",
            )
            raise InputError("the class list of the detections", rule, got=got, place=str(path))
        return None, ids
    # Without ground truth, and for a class map, classes are the numbers of the file.
    if truth is None or are_numbers(truth.categories):
        return None, ids
    known = dict(zip(truth.categories.ids.tolist(), truth.categories.names.tolist(), strict=True))
    if listed is not None and known.items() <= {(one.id, one.name) for one in listed.categories}:
        known = {one.id: one.name or str(one.id) for one in listed.categories}
        if tool == "detectron2":
            known = dict(sorted(known.items(), key=lambda pair: (isinstance(pair[0], str), pair[0])))
    elif not truth.categories.are_positions:
        rule = "be named, because the ground truth has no order of classes"
        got = f"class numbers from 0 of {tool}"
        raise FileFormatError("the classes", rule, got=got, place=str(path), cause=_GIVE_CLASSES)
    if count > len(known) or declared not in (None, len(known)):
        got = counted(count, "class") if declared is not None else f"class number {count - 1}"
        rule = f"be the {counted(len(known), 'class')} of the ground truth"
        raise FileFormatError("the classes", rule, got=got, place=str(path), cause=_GIVE_CLASSES)
    shown = short_list(f"{number} {name}" for number, name in enumerate(known.values()))
    images = "" if tool != "MMDetection 2" else "images and "
    order = "in order of their ids" if tool == "detectron2" else "in its order"
    text = f"{path.name}: {images}classes are those of {truth.source} {order}: {shown}."
    warn_user(BoxscoreWarning(text, severity="note"))
    return list(known.values())[:count], list(known)[:count]
