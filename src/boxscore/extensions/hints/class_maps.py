"""Map each class of the detections to a class of the ground truth if the files differ.

Conventions
-----------
- A map is a name (:data:`~boxscore.extensions.hints.numbering.CLASS_MAPS`), ``"auto"``, a mapping, or a text
  file with lines ``from,to``: ids or names. An empty ``to`` leaves a class out. Blank lines, and lines that
  begin with ``#``, are skipped.
- The first line is a header if both words are typical of one (``from,to``, ``source,target``, ...), and
  neither the detections have a class of the first word nor the ground truth one of the second.
- Detections are first read in the classes of their file, and then renumbered, so that a map works the same
  for every format.
"""

from __future__ import annotations

import csv
import dataclasses
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.files import is_there, nearest_file, read_text
from boxscore._utils.user_warnings import warn_user
from boxscore.data.image_names import FEW_SHOWN
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.hints.numbering import (
    AS_THEY_ARE,
    BY_EVIDENCE,
    CLASS_MAPS,
    class_pairs,
    infer_class_map,
    mapped_rows,
    refused,
    rows_as_given,
    with_classes,
)
from boxscore.formats._format import Opened
from boxscore.formats._sniffer import errors_named
from boxscore.formats.reading import FileOptions

ClassMap = str | Mapping[Id, Id | None]
"""``"auto"``, another name, or pairs."""

LARGEST = 10_000_000
"""Maximum bytes of a file of pairs."""

_CLASS = "a class of a class map"
_CLASS_LIST = "is it a class list? That goes to --dt-classes or --gt-classes (in Python classes=)"

_FROM = {
    "from",
    "source",
    "src",
    "old",
    "original",
    "detections",
    "detection",
    "dt",
    "predicted",
    "prediction",
}
_TO = {"to", "target", "dst", "destination", "new", "mapped", "groundtruth", "truth", "gt"}
_OF_A_CLASS = re.compile(r"class(es)?|categor(y|ies)|labels?|names?|ids?(?![a-z])")
"""Removed from the words of a first line before they are compared with those of a header."""


class PairsInFile(dict[Id, "Id | None"]):
    """The pairs of a file.

    Attributes
    ----------
    path : Path
    lines : dict
        The line of each class that is mapped.
    head : tuple of line, from and to, or None
        A first line that is a header unless there are classes of these names.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.lines: dict[Id, int] = {}
        self.head: tuple[int, str, str] | None = None

    def add(self, line: int, source: Id, target: Id | None) -> None:
        """Add a pair of a line."""
        if source in self:
            place = f"line {line} of {self.path}"
            raise FileFormatError("a class map", "map each class once", got=f"{source!r} twice", place=place)
        self[source] = target
        self.lines[source] = line

    def resolved(self, file_classes: Categories, known: Categories) -> PairsInFile:
        """Return the pairs from one vocabulary to another, with the first line if it is not a header."""
        pairs = PairsInFile(self.path)
        if self.head is not None:
            line, source, target = self.head
            if file_classes.finder(numbers=True).rows(source) or known.finder(numbers=True).rows(target):
                pairs.add(line, source, target)
        for key, to in self.items():
            pairs.add(self.lines[key], key, to)
        if not pairs:
            raise _without_pairs(self.path)
        return pairs


def _without_pairs(path: Path) -> FileFormatError:
    return FileFormatError("a class map", "map at least one class", got="none", place=str(path))


def class_map_of(value: str | Path | Mapping[Any, Any]) -> ClassMap:
    """Check a user's class map; read it if it is a file."""
    if isinstance(value, Mapping):
        return _check_pairs(value)
    if str(value) == "auto" or str(value) in CLASS_MAPS:
        return str(value)
    path = Path(value)
    if is_there(path):
        return pairs_in_file(path)
    names = ("auto", *CLASS_MAPS)
    near = checks.nearest(str(value), names)
    if near or not (path.suffix or len(path.parts) > 1):
        rule = f"be {', '.join(names)} or a file with lines from,to"
        raise InputError("class_map", rule, got=repr(str(value)), cause=near or "the file does not exist")
    rule = "be an existing file or the name of a class map"
    raise InputError("class_map", rule, got=repr(str(value)), cause=nearest_file(path))


def _check_pairs(pairs: Mapping[Any, Any]) -> dict[Id, Id | None]:
    for key, to in pairs.items():
        for value in (key, to):
            if isinstance(value, bool) or not (
                isinstance(value, (int, str)) or (value is None and to is None)
            ):
                raise InputError("class_map", "map ids or names to ids or names", got=f"{key!r}: {to!r}")
    if not pairs:
        raise InputError("class_map", "map at least one class", got="none")
    return dict(pairs)


def pairs_in_file(path: Path) -> PairsInFile:
    """Read lines ``from,to``."""
    if path.suffix.lower() in (".yaml", ".yml"):
        raise FileFormatError(
            "a class map", "be lines from,to", got="a YAML file", place=str(path), cause=_CLASS_LIST
        )
    # Parse each line as a CSV file of its own, so that its number is known and a quoted name may contain a
    # comma.
    pairs = PairsInFile(path)
    is_first = True
    for number, line in enumerate(read_text(path, "a class map", largest=LARGEST).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            words = [word.strip() for word in next(csv.reader([line], skipinitialspace=True, strict=True))]
        except csv.Error:
            words = []
        if len(words) != 2 or not words[0]:
            raise FileFormatError(
                "a line of a class map",
                "be from,to",
                got=repr(line[:60]),
                place=f"line {number} of {path}",
                cause=_other_kind(line, words, path),
            )
        # A first line may be a header; this depends on the vocabularies, which are known later.
        if is_first and _is_head(words):
            pairs.head = number, words[0], words[1]
        else:
            pairs.add(number, _id(words[0]), _id(words[1]) if words[1] else None)
        is_first = False
    if not pairs and pairs.head is None:
        raise _without_pairs(path)
    return pairs


def _is_head(words: list[str]) -> bool:
    """Return whether both words belong to a header, apart from words such as ``class`` and ``id``."""
    plain = ["".join(re.findall(r"[a-z]+", _OF_A_CLASS.sub("", word.lower()))) for word in words]
    return plain[0] in _FROM and plain[1] in _TO


def _other_kind(line: str, words: list[str], path: Path) -> str:
    """Describe what a file without lines ``from,to`` may be."""
    if line.count('"') % 2:
        return "is a quotation mark missing? Use the id of a class whose name has a line break"
    if line.lstrip()[:1] in ("{", "["):
        return "write one line per class (in Python, class_map= takes a mapping)"
    if len(words) == 1 and (";" in line or "\t" in line):
        return "separate the two with a comma"
    if len(words) == 1:
        return _CLASS_LIST
    return "quote a name that has a comma" if len(words) > 2 else ""


def _id(word: str) -> Id:
    """Convert a word that is written as a number."""
    digits = word.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < 19
    return int(word) if is_number and str(int(word)) == word else word


def read_mapped(
    opened: Opened,
    ground_truth: GroundTruth,
    options: FileOptions,
    load: Callable[[GroundTruth], Detections],
) -> Detections:
    """Read detections with the class map of the options, or with the one that their boxes imply.

    ``load`` reads them without a map, for numbers that follow the list of the ground truth.
    """
    detections = read_in_file_classes(opened, ground_truth, options)
    class_map = options.further.get("class_map")
    if class_map is not None:
        return renumbered(detections, ground_truth, class_map, options.classes)
    mapped = renumbered_by_boxes(ground_truth, detections)
    return load(ground_truth) if mapped is None else mapped


def read_in_file_classes(opened: Opened, ground_truth: GroundTruth, options: FileOptions) -> Detections:
    """Read detections in the images of the ground truth, but in the classes of their file."""
    numbers = dataclasses.replace(options, classes=None)
    empty = ground_truth.take(np.empty(0, dtype=np.intp))
    with errors_named(opened.path, side="dt"):
        with warnings.catch_warnings():
            # The second reading warns again.
            warnings.simplefilter("ignore", BoxscoreWarning)
            file_classes = opened.load_detections(numbers, None).categories
        return opened.load_detections(numbers, dataclasses.replace(empty, categories=file_classes))


def renumbered(
    detections: Detections,
    ground_truth: GroundTruth,
    class_map: ClassMap,
    classes: tuple[str, ...] | None,
) -> Detections:
    """Map detections from the classes of their file to those of the ground truth."""
    if class_map == "auto":
        return _automatic(detections, ground_truth, classes)
    known = ground_truth.categories
    if not isinstance(class_map, str):
        return with_classes(detections, known, _given_rows(class_map, detections, known))
    file_classes = detections.categories
    pairs = class_pairs(class_map, known, classes=classes)
    if not any(_is_known(to, known) for to in pairs.values()):
        raise _unknown_target(next(iter(pairs.values()), None), known, detections.source)
    pairs |= {key: None for key in file_classes.ids.tolist() if key not in pairs and isinstance(key, int)}
    pairs = {key: to if _is_known(to, known) else None for key, to in pairs.items()}
    return with_classes(detections, known, mapped_rows(pairs, file_classes, known))


def _given_rows(
    given: Mapping[Id, Id | None], detections: Detections, known: Categories
) -> NDArray[np.int32]:
    """Return the class of each class of the detections by a user's pairs, [classes]; -1 for none."""
    # Classes without a pair keep their id or name.
    file_classes = detections.categories
    pairs = given.resolved(file_classes, known) if isinstance(given, PairsInFile) else given
    in_file = isinstance(pairs, PairsInFile)
    sources = file_classes.finder(numbers=in_file)
    targets = known.finder(numbers=in_file)
    rows = rows_as_given(file_classes, known)
    # Words of a file may be ids or names; a class given both ways must have one target.
    new: dict[int, int] = {}
    for source, to in pairs.items():
        place = f"line {pairs.lines[source]} of {pairs.path}" if isinstance(pairs, PairsInFile) else ""
        words = (str(source), None if to is None else str(to)) if in_file else (source, to)
        target = -1 if words[1] is None else targets.row(words[1], what=_CLASS, place=place)
        if target < 0 and to is not None:
            raise _unknown_target(to, known, place or detections.source)
        row = sources.row(words[0], what=_CLASS, place=place) if words[0] is not None else -1
        if row >= 0 and new.setdefault(row, target) != target:
            got = f"{file_classes.labels[row]!r} twice, by name and id"
            raise InputError("a class map", "map each class once", got=got, place=place)
    # Reject pairs if none of them occurs.
    if not new and len(detections):
        raise _unknown_sources(pairs, detections)
    rows[[*new]] = [*new.values()]
    return rows


def renumbered_by_boxes(ground_truth: GroundTruth, detections: Detections) -> Detections | None:
    """Return detections with the numbering inferred from boxes, if it differs from the ground truth's.

    Return None if it does not differ, if it is unclear, with a warning, or if the file names its classes.
    Only named numberings are applied: other evidence may be a detector's mistake.
    """
    # Only numbers without names can start elsewhere.
    classes = detections.categories
    ids = classes.ids.tolist()
    if not len(detections) or classes.names.tolist() != list(map(str, ids)):
        return None
    if not all(str(identifier).removeprefix("-").isdecimal() for identifier in ids):  # names, used as ids
        return None
    # Apply a known numbering that the boxes imply, with a note.
    inferred, source = infer_class_map(ground_truth, detections), detections.source
    if inferred.name in CLASS_MAPS:
        warn_user(
            BoxscoreWarning(
                f"{source}: applied class map {inferred.name}, because {ground_truth.source} has class "
                f"names without ids: {inferred}. Use --class-map (in Python class_map=) to choose "
                "another.",
                severity="note",
            )
        )
        rows = mapped_rows(inferred.pairs, classes, ground_truth.categories)
        return with_classes(detections, ground_truth.categories, rows)
    # Only warn about an unclear one: a detector's own mistakes look similar.
    if inferred.name is None and inferred.given < inferred.placed:
        warn_user(
            f"{source}: class numbers are read as positions in the class list of {ground_truth.source}, "
            f"counted from 0: {inferred}. If they count differently, use --class-map (in Python "
            "class_map=): one-based (predictions.json of ultralytics), coco91to80, ...",
        )
    return None


def _automatic(
    detections: Detections, ground_truth: GroundTruth, classes: tuple[str, ...] | None
) -> Detections:
    if not len(detections):
        return with_classes(detections, ground_truth.categories, np.empty(0, dtype=np.int32))
    inferred = infer_class_map(ground_truth, detections, classes=classes)
    if inferred.name is None:
        raise refused(inferred, detections.source)
    rows = mapped_rows(inferred.pairs, detections.categories, ground_truth.categories)
    text = "no class map is needed" if inferred.name == AS_THEY_ARE else f"class map {inferred.name}"
    if inferred.name == BY_EVIDENCE:
        text += _changes(detections.categories, ground_truth.categories, rows)
    warn_user(BoxscoreWarning(f"{detections.source}: {text}: {inferred}.", severity="note"))
    return with_classes(detections, ground_truth.categories, rows)


def _changes(file_classes: Categories, known: Categories, rows: NDArray[np.int32]) -> str:
    """List the classes that a map gives another label if they are few; empty if they are many."""
    labels = known.labels
    pairs = [
        (label, labels[row])
        for label, row in zip(file_classes.labels, rows.tolist(), strict=True)
        if row >= 0
    ]
    changed = [f"{label} is {other}" for label, other in pairs if label != other]
    return f" ({', '.join(changed)})" if 0 < len(changed) <= FEW_SHOWN else ""


def _is_known(to: Id | None, known: Categories) -> bool:
    return to is not None and int(known.rows_by_id_or_name([to])[0]) >= 0


def _unknown_target(to: Id | None, known: Categories, place: str) -> InputError:
    names = known.names.tolist()
    if isinstance(to, int):
        names = [f"{identifier} ({name})" for identifier, name in zip(known.ids.tolist(), names, strict=True)]
    rule, cause = "map to classes of the ground truth", checks.did_you_mean(to, names)
    return InputError("class_map", rule, got=repr(to), place=place, cause=cause)


def _unknown_sources(pairs: Mapping[Id, Id | None], detections: Detections) -> InputError:
    file_classes = detections.categories
    labels = f"{', '.join(file_classes.labels[:5])}{', ...' * (len(file_classes) > 5)}"
    place, subject = detections.source, "the detections have"
    if isinstance(pairs, PairsInFile):
        place, subject = str(pairs.path), f"{detections.source} has"
    return InputError(
        "class_map",
        "name classes of the detections",
        got=f"only others ({', '.join(map(repr, list(pairs)[:3]))}{', ...' * (len(pairs) > 3)})",
        place=place,
        cause=f"{subject} {labels}",
    )
