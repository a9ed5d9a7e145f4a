"""Read class descriptions and label maps: names or numbers for label ids such as ``/m/01g317``.

Conventions
-----------
- A description gives a class a readable name; the label stays its id. Format: CSV with
  ``LabelName,DisplayName``, or two columns without a header whose labels start with ``/``.
- A label map gives numbers to all classes of a data set; the label becomes the name. Format: CSV with
  ``LabelName,Id``, or a text file of ``item { name: "/m/01g317" id: 1 }``.

References
----------
Open Images: ``class-descriptions-boxable.csv``. The TensorFlow Object Detection API:
``challenge_evaluation.md`` and its label maps.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np

from boxscore._utils.files import read_text
from boxscore.data.alignment import with_labels
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Categories
from boxscore.errors import FileFormatError, InputError

LARGEST = 10_000_000
_WHOLE = "have a label and a description"
_ITEM = re.compile(r"item\s*\{(.*?)\}", re.DOTALL)
_KEY = re.compile(r"(name|id)\s*:\s*(?:\"([^\"]*)\"|'([^']*)'|(-?[0-9]+))")


class ClassDescriptions(dict[str, "int | str"]):
    """The number or the name of each label; ``source`` names the file."""

    source = ""


def class_descriptions(path: Path) -> ClassDescriptions | None:
    """Read a file of descriptions or a label map; return None if it is neither."""
    # Any other file is an ordinary class list.
    if path.suffix.lower() not in (".csv", ".pbtxt", ".txt"):
        return None
    # A TensorFlow label map: items with a name and an id.
    text = read_text(path, "a class list", largest=LARGEST).removeprefix("\ufeff")
    pairs: list[tuple[str, str]] = []
    if _ITEM.match(text.strip()):
        numbered = True
        for item in _ITEM.findall(text):
            fields = {
                key: "".join(rest) for key, *rest in _KEY.findall(re.sub(r"display_name\s*:", "", item))
            }
            pairs.append((fields.get("name", ""), fields.get("id", "")))
    else:
        # A table with a header, or Open Images' two columns whose labels start with a slash.
        rows = [row for row in csv.reader(text.splitlines()) if row]
        head = [cell.strip() for cell in rows[0]] if rows else []
        if "LabelName" in head and {"Id", "DisplayName"} & set(head):
            numbered = "Id" in head
            at, value_at = head.index("LabelName"), head.index("Id" if numbered else "DisplayName")
            rows = rows[1:]
        elif rows and all(len(row) == 2 and row[0].startswith("/") for row in rows):
            numbered, at, value_at = False, 0, 1
        else:
            return None
        # Report a line without a value.
        short = next((number for number, row in enumerate(rows) if len(row) <= max(at, value_at)), None)
        if short is not None:
            raise FileFormatError(
                "a class of a list",
                "have a label and a description",
                got=repr(rows[short])[:60],
                place=str(path),
            )
        pairs = [(row[at].strip(), row[value_at].strip()) for row in rows]
    return _check_pairs(pairs, path, numbered=numbered)


def _check_pairs(pairs: list[tuple[str, str]], path: Path, *, numbered: bool) -> ClassDescriptions:
    # Classes and their values must be unique: two classes of one number would be merged.
    descriptions = ClassDescriptions()
    descriptions.source = str(path)
    numbers: set[int] = set()
    for label, value in pairs:
        if not label or not value:
            got = repr(label or value)
            raise FileFormatError(
                "a class of a list", "have a label and a description", got=got, place=str(path)
            )
        if label in descriptions:
            raise FileFormatError(
                "a class list", "name each class once", got=f"{label!r} twice", place=str(path)
            )
        descriptions[label] = value
        # Numbers must be unique integers.
        if numbered:
            if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) in numbers:
                rule = "be a whole number of its own"
                raise FileFormatError("the Id of a class", rule, got=f"{value!r}, {label}", place=str(path))
            numbers.add(int(value))
            descriptions[label] = int(value)
    return descriptions


def described(ground_truth: GroundTruth, descriptions: ClassDescriptions) -> GroundTruth:
    """Return the ground truth with these names or numbers of classes."""
    # Every class of the data must be in the list; others would silently drop out of the evaluation.
    names = ground_truth.categories.names.tolist()
    unknown = [name for name in names if name not in descriptions]
    if unknown:
        raise InputError(
            "a class",
            "be in the list of classes",
            got=repr(unknown[0]),
            place=ground_truth.source,
            cause=f"{len(unknown):,} such classes; is {descriptions.source} the list of another version?",
        )
    # With numbers, use all classes of the list, so that absent ones keep their id.
    values = [descriptions[name] for name in names]
    if all(isinstance(value, int) for value in descriptions.values()):
        categories = Categories.build(list(descriptions.values()), names=list(descriptions))
        rows = categories.rows(np.array(values, dtype=np.int64))
    else:
        # With names, append the label where several classes share one.
        times = Counter(values)
        names_shown = [
            str(value) if times[value] == 1 else f"{value} ({name})"
            for name, value in zip(names, values, strict=True)
        ]
        categories = Categories.build(names, names=names_shown)
        rows = categories.rows(np.array(names, dtype=object))
    # Renumber rows and image labels with one lookup.
    wider = ground_truth.replaced(categories=categories, category=rows[ground_truth.category])
    return with_labels(wider, categories=rows)
