"""Check the structure of COCO files: problems that loaders reject or resolve, so that tables hide them.

Conventions
-----------
The file is decoded again with every field optional, and nothing is rejected here. A file that is not JSON
gives no findings: the loader's message explains it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.memory import paused_collector
from boxscore._utils.text import counted
from boxscore.data.boxes import ROUNDING
from boxscore.data.lookup import other_spellings
from boxscore.data.tables import GroundTruth
from boxscore.errors import Severity
from boxscore.extensions.validation._findings import MOST_EXAMPLES, Finding


class _Record(msgspec.Struct, gc=False):
    id: Any = None
    image_id: Any = None
    category_id: Any = None
    bbox: Any = None
    area: Any = None
    score: Any = None
    iscrowd: Any = None
    ignore: Any = None


class _File(msgspec.Struct):
    images: list[_Record] = msgspec.field(default_factory=list)
    categories: list[_Record] = msgspec.field(default_factory=list)
    annotations: list[_Record] = msgspec.field(default_factory=list)


@dataclasses.dataclass
class _Check:
    code: str
    severity: Severity
    rows: list[int]
    message: str


def _decode(path: Path) -> _File | None:
    try:
        text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        with paused_collector():
            if text.lstrip()[:1] == b"[":
                return _File(annotations=msgspec.json.decode(text, type=list[_Record]))
            return msgspec.json.decode(text, type=_File)
    except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _hashable(value: Any) -> Any:
    return value if isinstance(value, (int, str, float)) else repr(value)


def ground_truth_file_findings(path: Path) -> Iterator[Finding]:
    """Check a COCO ground-truth file without loading it."""
    # Read the raw file: the loader rejected it, or dropped the records in question.
    content = _decode(path) if path.is_file() else None
    if content is None:
        return
    # Count all ids to find those declared twice.
    for name, records in (("image", content.images), ("category", content.categories)):
        counts = Counter(_hashable(record.id) for record in records)
        repeated = {identifier: count for identifier, count in counts.items() if count > 1}
        if repeated:
            yield Finding(
                f"repeated-{name}-id",
                "structural",
                "error",
                len(repeated),
                f"{counted(len(repeated), f'{name} id')} declared more than once; the last one counts, "
                "as in pycocotools",
                tuple(f"id {key!r}: {count} times in {path}" for key, count in repeated.items())[
                    :MOST_EXAMPLES
                ],
            )
    # Each check is a list of rows with a message; lookups use sets.
    rows = list(enumerate(content.annotations))
    images = {_hashable(record.id) for record in content.images}
    classes = {_hashable(record.id) for record in content.categories}
    left_out = "that the file does not list; they are ignored, as in pycocotools"
    checks = [
        _Check(
            "annotation-of-unknown-image",
            "warning",
            _unlisted(content, "image_id", images),
            f"of an image {left_out}",
        ),
        _Check(
            "annotation-of-unknown-class",
            "warning",
            _unlisted(content, "category_id", classes),
            f"of a class {left_out}",
        ),
        _Check(
            "annotation-without-area",
            "note",
            [row for row, record in rows if record.area is None],
            "without an area; the box area decides which objects are small, medium or large",
        ),
        _Check(
            "ignore-key-without-effect",
            "warning",
            [row for row, record in rows if record.ignore and not record.iscrowd],
            "with ignore but without iscrowd; they count, because iscrowd overrides ignore as in pycocotools",
        ),
        _Check("annotation-negative-size", "error", _negative(content), "with a negative width or height"),
    ]
    # If most annotations have unknown images or classes, the lists belong to another data set.
    for check in checks:
        if check.code.startswith("annotation-of-unknown") and 2 * len(check.rows) > len(rows):
            check.severity = "error"
        yield from _finding(check, content, path, "annotation")


def _unlisted(content: _File, key: str, listed: set[Any]) -> list[int]:
    """Return the rows of annotations whose image or class is not listed in any spelling."""
    ids = [_hashable(getattr(record, key)) for record in content.annotations]
    other = other_spellings(filter(_is_id, ids), list(filter(_is_id, listed)))
    return [row for row, identifier in enumerate(ids) if identifier not in listed and identifier not in other]


def _is_id(value: Any) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def detection_file_findings(path: Path, ground_truth: GroundTruth) -> Iterator[Finding]:
    """Check a COCO results file that its loader rejected."""
    # Read the raw file, because the loader rejected it.
    content = _decode(path) if path.is_file() else None
    if content is None:
        return
    # An image may be identified by its id or by its file name.
    known = set(ground_truth.images.ids.tolist()) | set(ground_truth.images.file_names.tolist())
    unknown = [
        row for row, record in enumerate(content.annotations) if _hashable(record.image_id) not in known
    ]
    images = len({_hashable(content.annotations[row].image_id) for row in unknown})
    end = (
        f"of {counted(images, 'image')} that the ground truth does not have. Are these results of "
        "another split?"
    )
    yield from _finding(
        _Check("detection-of-unknown-image", "error", unknown, end), content, path, "detection"
    )
    negative = _Check(
        "detection-negative-size", "error", _negative(content), "with a negative width or height"
    )
    yield from _finding(negative, content, path, "detection")


def rows_read(path: Path, ground_truth: GroundTruth, count: int) -> NDArray[np.intp] | None:
    """Return the rows in a COCO results file of the ``count`` detections that its loader read, or None."""
    content = _decode(path) if path.is_file() else None
    if content is None:
        return None
    categories = ground_truth.categories
    known = set(categories.ids.tolist()) | set(categories.names.tolist())
    rows = [row for row, record in enumerate(content.annotations) if _hashable(record.category_id) in known]
    return np.array(rows, dtype=np.intp) if len(rows) == count else None


def _negative(content: _File) -> list[int]:
    rows = []
    for row, record in enumerate(content.annotations):
        box = record.bbox
        is_box = isinstance(box, list) and len(box) == 4 and all(isinstance(n, (int, float)) for n in box)
        if is_box and min(box[2:]) < -ROUNDING:
            rows.append(row)
    return rows


def _finding(check: _Check, content: _File, path: Path, noun: str) -> Iterator[Finding]:
    if not check.rows:
        return
    # Describe only the examples that are shown.
    total = len(content.annotations)
    examples = []
    for row in check.rows[:MOST_EXAMPLES]:
        record = content.annotations[row]
        name = f"{noun} {row}" + (f" (id {record.id})" if noun == "annotation" else "")
        examples.append(f"{name} of {path}: image {record.image_id}, class {record.category_id}")
    yield Finding(
        check.code,
        "structural",
        check.severity,
        len(check.rows),
        f"{counted(len(check.rows), noun)} of {total} {check.message}",
        tuple(examples),
    )
