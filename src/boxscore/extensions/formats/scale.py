"""Read Scale AI: tasks with their response, and annotations or predictions of Scale Nucleus.

Conventions
-----------
- Boxes are left, top, width and height in pixels; a rotated box has its four corners in ``vertices``.
- The image of a task is the last part of the address in ``attachment``, that of Nucleus the ``reference_id``.
- A page of the API is an object with ``docs``. It is an error if ``has_more`` says that others follow.
- Tasks that are not completed are left out with a warning, as are lines, points, cuboids and ellipses.
- Nucleus lists no images without annotations.

References
----------
https://scale.com/docs/api-reference/tasks, scaleapi-python-client ``__init__.py``,
nucleus-python-client ``annotation.py`` and ``prediction.py``
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from boxscore._utils.text import counted
from boxscore.data.tables import GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import (
    Gathered,
    Origin,
    Point,
    decoded,
    flat_points,
    json_text,
    last_part,
    named,
    records_of,
)
from boxscore.extensions.formats._json_folders import is_coco_results
from boxscore.formats._coco_records import DECODING_ERRORS
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Shape(msgspec.Struct, gc=False):
    left: float | None = None
    top: float | None = None
    x: float | None = None
    y: float | None = None
    width: float | None = None
    height: float | None = None
    rotation: float | None = None
    vertices: list[Point] | None = None
    label: str | None = None
    type: str | None = None


class _Annotated(msgspec.Struct, gc=False):
    label: str | None = None
    type: str | None = None
    geometry: _Shape | None = None
    reference_id: str | None = None
    confidence: float | None = None


class _Parameters(msgspec.Struct, gc=False):
    attachment: str | None = None


class _Response(msgspec.Struct, gc=False):
    annotations: list[_Shape] | dict[str, Any] = []


class _Task(msgspec.Struct, gc=False):
    params: _Parameters = msgspec.field(default_factory=_Parameters)
    response: _Response | None = None
    status: str | None = "completed"


class _Page(msgspec.Struct, gc=False):
    docs: list[_Task]
    has_more: bool | None = None
    next_token: str | None = None


class ScaleFormat(RowFormat):
    """Scale AI's tasks, and Nucleus JSON."""

    name = "scale"
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect tasks or annotations by their keys."""
        if is_coco_results(sniffer):
            return None
        if sniffer.has_keys("task_id", "params") and sniffer.has_keys("response"):
            return "tasks of Scale AI"
        return "JSON of Scale Nucleus" if sniffer.has_keys("reference_id", "geometry") else None

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Whether every image is listed: by tasks, but not by Nucleus."""
        path = Path(ground_truth.source)
        return path.is_file() and Sniffer(path).has_keys("task_id")

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every task, or every annotation."""
        gathered = Gathered(path, options)
        (_add_tasks if Sniffer(path).has_keys("task_id", "params") else _add_annotations)(path, gathered)
        return gathered.rows(of_results=of_results)


FORMAT = ScaleFormat()


def _is_page(path: Path) -> bool:
    """Whether a file is an object with ``docs``, and not a task."""
    sniffer = Sniffer(path)
    if not sniffer.text.lstrip().startswith("{") or not sniffer.has_keys("docs"):
        return False
    # Lines of objects are read as tasks; content that is wrong raises an error there.
    try:
        top = msgspec.json.decode(json_text(path), type=dict[str, msgspec.Raw])
    except DECODING_ERRORS:
        return False
    return "docs" in top and "task_id" not in top


def _tasks(path: Path) -> Iterator[tuple[Origin, _Task]]:
    """Yield the tasks of a list, or of a page of the API, each with its place."""
    if not _is_page(path):
        yield from records_of(path, _Task, "a file of tasks of Scale AI")
        return
    page = decoded(path, _Page, record="task", whole=("a page of Scale AI", "an object with docs"))
    if page.has_more or (page.has_more is None and page.next_token):
        rule, got = "list all tasks", f"{counted(len(page.docs), 'task')} of a page, and others follow it"
        cause = "save every page: tasks_all of Scale's Python client lists all tasks"
        raise FileFormatError("a file of tasks of Scale AI", rule, got=got, place=str(path), cause=cause)
    yield from ((Origin("task", number, path), task) for number, task in enumerate(page.docs))


def _add_tasks(path: Path, gathered: Gathered) -> None:
    open_tasks = 0
    for origin, task in _tasks(path):
        if task.status != "completed" or task.response is None:
            open_tasks += 1
            continue
        annotations = task.response.annotations
        if not isinstance(annotations, list):
            cause = "download it, and put it in place of the address"
            got = "an object, perhaps an address"
            raise FileFormatError("annotations", "be a list", got=got, place=str(origin), cause=cause)
        image = gathered.image(named(last_part(task.params.attachment or ""), origin, "attachment"))
        for number, shape in enumerate(annotations):
            place = Origin(f"annotation {number}, {origin.kind}", origin.number, path)
            _add(shape, shape.type, shape.label, image, place, gathered)
    gathered.leave_out_images(open_tasks, "without a completed response")


def _add_annotations(path: Path, gathered: Gathered) -> None:
    for origin, one in records_of(path, _Annotated, "a file of Scale Nucleus"):
        image = gathered.known_image(named(one.reference_id, origin, "reference_id"))
        if one.type == "category":
            gathered.label_image(one.label or "a category")
            continue
        _add(one.geometry or _Shape(), one.type, one.label, image, origin, gathered, one.confidence)


def _add(
    shape: _Shape,
    kind: str | None,
    label: str | None,
    image: int,
    origin: Origin,
    gathered: Gathered,
    score: float | None = None,
) -> None:
    """Add a box or a polygon; count what is neither."""
    if kind not in ("box", "polygon"):
        gathered.leave_out((kind or "untyped annotation")[:20])
        return
    if not label:
        raise FileFormatError("an annotation", "have a label", got="none", place=str(origin))
    outline = flat_points(shape.vertices or ())
    if kind == "polygon":
        gathered.add_polygon(image, label, outline, origin, score=score)
        return
    if shape.rotation:
        if len(outline) != 8:
            got = f"{len(outline) // 2} vertices"
            raise FileFormatError("a rotated box", "have four vertices", got=got, place=str(origin))
        gathered.add_rotated(image, label, np.reshape(outline, (4, 2)), origin, score=score)
        return
    left, top = (shape.x, shape.y) if shape.left is None else (shape.left, shape.top)
    if left is None or top is None or shape.width is None or shape.height is None:
        rule = "have left, top, width and height (x and y in Nucleus)"
        raise FileFormatError("a box", rule, got="not all", place=str(origin))
    gathered.add_box(image, label, (left, top, shape.width, shape.height), "xywh", origin, score=score)
