"""Class maps: which class of the ground truth each class of the detections is, where the files do not agree.

Conventions
-----------
- A map is a name (:data:`boxscore.data.numbering.CLASS_MAPS`), ``"auto"``, a mapping, or a text file with
  lines ``from,to``: ids or names. Nothing behind the comma leaves a class out. Blank lines, and those that
  begin with ``#``, are skipped.
- Detections are read in the classes of their own file first, and then renumbered, so that a map applies to
  every format alike.
"""

from __future__ import annotations

import csv
import dataclasses
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import read_text
from boxscore.data.numbering import (
    AS_THEY_ARE,
    CLASS_MAPS,
    class_pairs,
    found_class_map,
    mapped_rows,
    refused,
    with_classes,
)
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError

__all__ = ["ClassMap", "class_map_of", "counted_otherwise", "in_own_classes", "pairs_in_file", "renumbered"]

ClassMap = str | Mapping[Id, Id | None]
"""``"auto"``, another name, or pairs."""

LARGEST = 10_000_000
"""Bytes of a file of pairs."""


def class_map_of(value: str | Path | Mapping[Any, Any]) -> ClassMap:
    """Check a class map that a user gives; a file is read."""
    if isinstance(value, Mapping):
        return _checked(value)
    if str(value) == "auto" or str(value) in CLASS_MAPS:
        return str(value)
    path = Path(value)
    if not path.exists():
        names = ("auto", *CLASS_MAPS)
        raise InputError(
            "class_map",
            f"be {', '.join(names)} or a file of lines from,to",
            got=repr(str(value)),
            cause=checks.did_you_mean(str(value), names),
        )
    return pairs_in_file(path)


def _checked(pairs: Mapping[Any, Any]) -> dict[Id, Id | None]:
    for key, to in pairs.items():
        for value in (key, to):
            if isinstance(value, bool) or not (
                isinstance(value, (int, str)) or (value is None and to is None)
            ):
                raise InputError("class_map", "map ids or names to ids or names", got=f"{key!r}: {to!r}")
    if not pairs:
        raise InputError("class_map", "map at least one class", got="none")
    return dict(pairs)


def pairs_in_file(path: Path) -> dict[Id, Id | None]:
    """Read lines ``from,to``."""
    pairs: dict[Id, Id | None] = {}
    for number, line in enumerate(read_text(path, "a class map", largest=LARGEST).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place = f"line {number} of {path}"
        try:
            words = [word.strip() for word in next(csv.reader([line], skipinitialspace=True, strict=True))]
        except csv.Error:
            words = []
        if len(words) != 2 or not words[0]:
            raise FileFormatError("a line of a class map", "be from,to", got=repr(line[:60]), place=place)
        source, target = _id(words[0]), _id(words[1]) if words[1] else None
        if source in pairs:
            raise FileFormatError("a class map", "map each class once", got=f"{source!r} twice", place=place)
        pairs[source] = target
    if not pairs:
        raise FileFormatError("a class map", "map at least one class", got="none", place=str(path))
    return pairs


def _id(word: str) -> Id:
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else word


def in_own_classes(read: Callable[[GroundTruth | None], Detections], ground_truth: GroundTruth) -> Detections:
    """Read detections in the images of the ground truth, but in the classes of their file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)  # the second reading says it again
        own = read(None).categories
    empty = ground_truth.take(np.empty(0, dtype=np.intp))
    return read(dataclasses.replace(empty, categories=own))


def renumbered(
    detections: Detections,
    ground_truth: GroundTruth,
    class_map: ClassMap,
    classes: tuple[str, ...] | None,
) -> Detections:
    """Return detections in the classes of their file with those of the ground truth, by a map."""
    own = detections.categories
    if class_map == "auto":
        return _automatic(detections, ground_truth, classes)
    known = ground_truth.categories
    pairs = class_pairs(class_map, known, classes=classes) if isinstance(class_map, str) else dict(class_map)
    _check_targets(pairs, known, detections.source, given=not isinstance(class_map, str))
    if isinstance(class_map, str):
        pairs |= {key: None for key in own.ids.tolist() if key not in pairs and isinstance(key, int)}
        pairs = {key: to if _is_known(to, known) else None for key, to in pairs.items()}
    else:
        _check_sources(pairs, detections)
    rows = mapped_rows(pairs, own, known)
    return with_classes(detections, known, rows)


def counted_otherwise(path: Path, ground_truth: GroundTruth, own: Detections) -> Detections | None:
    """Return detections by the numbering that their boxes show, where it is not the ground truth's.

    None where it is, or is not clear, which is said, or where the file names its classes. Only numberings
    with a name are taken: what is only evident may be a detector's mistake.
    """
    if not len(own) or own.categories.names.tolist() != list(map(str, own.categories.ids.tolist())):
        return None
    found = found_class_map(ground_truth, own)
    if found.name in CLASS_MAPS:
        warnings.warn(
            f"{own.source}: class map {found.name} applied, for {ground_truth.source} has a list of class "
            f"names and no numbers in common with it: {found}. --class-map says another.",
            BoxscoreWarning,
            stacklevel=4,
        )
        rows = mapped_rows(found.pairs, own.categories, ground_truth.categories)
        return with_classes(own, ground_truth.categories, rows)
    if found.name is None and found.given < found.placed:
        warnings.warn(
            f"{own.source}: class numbers are taken for places in the list of {ground_truth.source}, counted "
            f"from 0, for the boxes show nothing else: {found}. Say how they count: --class-map one-based "
            "(predictions.json of ultralytics), coco91to80, ...",
            BoxscoreWarning,
            stacklevel=4,
        )
    return None


def _automatic(
    detections: Detections, ground_truth: GroundTruth, classes: tuple[str, ...] | None
) -> Detections:
    if not len(detections):
        return with_classes(detections, ground_truth.categories, np.empty(0, dtype=np.int32))
    found = found_class_map(ground_truth, detections, classes=classes)
    if found.name is None:
        raise refused(found, detections.source)
    says = "no class map is needed" if found.name == AS_THEY_ARE else f"class map {found.name}"
    warnings.warn(f"{detections.source}: {says}: {found}.", BoxscoreWarning, stacklevel=5)
    rows = mapped_rows(found.pairs, detections.categories, ground_truth.categories)
    return with_classes(detections, ground_truth.categories, rows)


def _is_known(to: Id | None, known: Categories) -> bool:
    return to is not None and int(known.rows_by_id_or_name([to])[0]) >= 0


def _check_targets(pairs: Mapping[Id, Id | None], known: Categories, source: str, *, given: bool) -> None:
    """Refuse a map to unknown classes; one with a name only where it leads to none that is known."""
    missing = [to for to in pairs.values() if to is not None and not _is_known(to, known)]
    if not missing or (not given and len(missing) < len(pairs)):
        return
    raise InputError(
        "class_map",
        "lead to classes of the ground truth",
        got=repr(missing[0]),
        place=source,
        cause=checks.did_you_mean(missing[0], known.names.tolist()[:1000]),
    )


def _check_sources(pairs: Mapping[Id, Id | None], detections: Detections) -> None:
    own = detections.categories
    occurring = {*own.ids.tolist(), *own.names.tolist()}
    if not len(detections) or any(key in occurring for key in pairs):
        return
    raise InputError(
        "class_map",
        "name classes of the detections",
        got=f"none that occurs ({', '.join(map(repr, list(pairs)[:3]))}{', ...' * (len(pairs) > 3)})",
        place=detections.source,
        cause=f"the detections have {', '.join(own.labels[:5])}{', ...' * (len(own) > 5)}",
    )
