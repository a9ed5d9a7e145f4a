"""Read Label Studio's exports: JSON, with annotations and predictions, and JSON_MIN; write tasks to import.

Conventions
-----------
- Coordinates are percent of ``original_width`` and ``original_height``; ``rotation`` rotates a rectangle
  clockwise about its top left corner.
- Annotations are ground truth; predictions with their ``score`` are detections. If a task has several, the
  first counts, with a warning; canceled ones never count. If a region has several classes, the first counts,
  as in Label Studio's export to COCO.
- An image has the name of its upload, without the eight digits that Label Studio prepends.

References
----------
https://labelstud.io/guide/export, https://labelstud.io/guide/predictions
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec
import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import write_atomically
from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import BoxTable, Detections
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.formats._gathered import (
    Gathered,
    Origin,
    decoded,
    decoded_text,
    last_part,
    rotated_corners,
)
from boxscore.extensions.formats._writing import (
    names_of_images,
    rows_of_images,
    scores_of,
    sizes_of_images,
    warn_of_lost,
)
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import refuse_shared_names
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

_UPLOAD = re.compile(r"[0-9a-f]{8}-(?=.)")
_IMAGE = re.compile(r".*\.(?:jpe?g|png|bmp|webp|tiff?|gif|avif)", re.IGNORECASE)


class _Value(msgspec.Struct, gc=False):
    x: float | None = None
    y: float | None = None
    width: float | None = None
    height: float | None = None
    rotation: float | None = 0
    points: list[tuple[float, float]] | None = None
    rectanglelabels: list[str] | None = None
    polygonlabels: list[str] | None = None
    labels: list[str] | None = None
    choices: Any = None
    original_width: float | None = None
    original_height: float | None = None


class _Result(msgspec.Struct, gc=False):
    value: _Value = msgspec.field(default_factory=_Value)
    type: str | None = ""
    from_name: str | None = ""
    to_name: str | None = ""
    score: float | None = None
    original_width: float | None = None
    original_height: float | None = None


class _Annotation(msgspec.Struct, gc=False):
    result: list[_Result] = []
    was_cancelled: bool | None = False
    ground_truth: bool | None = False
    score: float | None = None


class _Task(msgspec.Struct, gc=False):
    annotations: list[_Annotation] | None = None
    predictions: list[_Annotation | int] | None = None
    data: dict[str, Any] = {}
    file_upload: str | None = None


class LabelStudioFormat(RowFormat):
    """Label Studio's JSON exports, and the tasks to import.

    Parameters
    ----------
    image_prefix : str, default ""
        The address of images before their names, for writing.
    from_name, to_name : str
        The names of the labels and of the image in the labeling configuration, for writing.
    """

    name = "labelstudio"
    boxes = "xyxy"
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": frozenset({"sizes", "file names"}),
        "detections": frozenset(),
    }

    def __init__(self, image_prefix: str = "", from_name: str = "label", to_name: str = "image") -> None:
        self._prefix, self._from_name, self._to_name = image_prefix, from_name, to_name

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect tasks by the keys of annotations."""
        if not sniffer.is_json or not sniffer.text.lstrip().startswith("["):
            return None
        # Tasks without any region have no names of labels.
        if sniffer.has_keys("result", "data") and any(
            sniffer.has_keys(key) for key in ("from_name", "completed_by", "predictions", "annotations")
        ):
            return "Label Studio's JSON"
        regions = sniffer.has_keys("rectanglelabels") or sniffer.has_keys("polygonlabels")
        return "Label Studio's JSON_MIN" if regions and sniffer.has_keys("original_width") else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the annotations, or the predictions."""
        # JSON_MIN lacks results; its labels are under their own key.
        sniffer = Sniffer(path)
        whole = ("Label Studio's JSON", "a list of tasks")
        gathered = Gathered(path, options)
        if not sniffer.has_keys("result"):
            tasks = decoded(path, list[dict[str, msgspec.Raw]], record="task", whole=whole)
            for number, task in enumerate(tasks):
                _add_minimal(task, Origin("task", number, path), gathered)
            return gathered.rows(of_results=of_results)
        # A task may have annotations of several people: skip canceled ones, prefer ground truth.
        several = 0
        for number, full in enumerate(decoded(path, list[_Task], record="task", whole=whole)):
            origin = Origin("task", number, path)
            given = full.predictions if of_results else full.annotations
            valid = [
                annotation
                for annotation in given or []
                if isinstance(annotation, _Annotation) and not annotation.was_cancelled
            ]
            # Take the first annotation that counts.
            chosen = [annotation for annotation in valid if annotation.ground_truth] or valid
            several += len(chosen) > 1
            results = chosen[0].result if chosen else []
            regions = [(result, result.value) for result in results]
            name = _image_name(full.data, full.file_upload, origin)
            score = chosen[0].score if chosen else None
            _add(name, regions, origin, gathered, score)
        # Warn if there are several.
        if several:
            what = "predictions" if of_results else "annotations"
            counts = f"{counted(several, 'task')} {verb(several, 'have')}"
            text = f"{path}: {counts} several {what}; the first of each counts."
            warn_user(text)
        return gathered.rows(of_results=of_results)

    def class_ids(self, table: BoxTable) -> list[Id]:
        """Return the names of classes, which are their ids."""
        names: list[Id] = table.categories.names.tolist()
        return names

    def check_written(self, table: BoxTable) -> None:
        """Reject images without a name or size, and classes of one name."""
        refuse_shared_names(table)
        for name in names_of_images(table, "Label Studio", by_last_part=True):
            if last_part(self._prefix + quote(name)) != name.rpartition("/")[2]:
                rule = "be an address up to the names of images, as of a folder"
                # No example with a query: messages hide what is like the query that the user gave.
                cause = "e.g. https://host/ or s3://bucket/"
                raise InputError("--image-prefix", rule, got=repr(self._prefix), cause=cause)
        sizes_of_images(table, "Label Studio", rows_of_images(table))

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a task per image, with its detections as a prediction, or its objects as an annotation."""
        self.check_written(table)
        if path.suffix != ".json":
            raise InputError("the output of Label Studio's tasks", "end in .json", got=repr(path.name))
        writer = self if like is None else self._as_in(like)
        tasks = b",\n".join(map(msgspec.json.encode, writer._tasks(table)))
        warn_of_lost(table, self, path)
        write_atomically(path, b"[" + tasks + b"]\n")

    def _as_in(self, file: Path) -> LabelStudioFormat:
        """Return a writer that uses the names and the addresses of another file."""
        full = decoded(file, list[_Task], record="task", whole=("Label Studio's JSON", "a list of tasks"))
        regions = (
            result
            for task in full
            for given in task.predictions or []
            if isinstance(given, _Annotation)
            for result in given.result
        )
        first = next(regions, _Result())
        text = next((value for value in full[0].data.values() if isinstance(value, str)), "") if full else ""
        prefix = text[: len(text) - len(re.split(r"[/=]", text)[-1])]
        return LabelStudioFormat(prefix, first.from_name or "label", first.to_name or "image")

    def _tasks(self, table: BoxTable) -> Iterator[dict[str, Any]]:
        rows = rows_of_images(table)
        sizes = sizes_of_images(table, "Label Studio", rows)
        percent = _percent(table.boxes, np.array(sizes, dtype=float).reshape(-1, 2)[table.image]).tolist()
        labels = table.categories.names[table.category].tolist()
        scores = scores_of(table)
        for name, size, of_image in zip(names_of_images(table, "Label Studio"), sizes, rows, strict=True):
            results = []
            for row in of_image:
                x, y, width, height = percent[row]
                value = {"rotation": 0, "x": x, "y": y, "width": width, "height": height}
                result: dict[str, Any] = {
                    "id": f"box-{row + 1}",
                    "type": "rectanglelabels",
                    "from_name": self._from_name,
                    "to_name": self._to_name,
                    "original_width": size[0],
                    "original_height": size[1],
                    "image_rotation": 0,
                    "value": value | {"rectanglelabels": [labels[row]]},
                }
                results.append(result if scores is None else result | {"score": scores[row]})
            task: dict[str, Any] = {"data": {"image": self._prefix + quote(name)}}
            if isinstance(table, Detections):
                best = {"score": max(scores[row] for row in of_image)} if scores and of_image else {}
                yield task | {"predictions": [{"model_version": "boxscore", **best, "result": results}]}
            else:
                yield task | {"annotations": [{"result": results}]}


FORMAT = LabelStudioFormat()


def _percent(boxes: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return left, top, width and height in percent, from which the reader computes the same corners."""
    starts, ends = boxes[:, :2], boxes[:, 2:]
    first = _nearest(starts / sizes * 100, starts, lambda at: at * sizes / 100)
    read = first * sizes / 100
    second = _nearest((ends - read) / sizes * 100, ends, lambda side: read + side * sizes / 100)
    return np.hstack([first, second])


def _nearest(values: FloatArray, wanted: FloatArray, read: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return each value, or the neighbor that is read as the nearest to the wanted number."""
    best, lower, upper = values, values, values
    for _ in range(4):
        lower, upper = np.nextafter(lower, -np.inf), np.nextafter(upper, np.inf)
        for other in (lower, upper):
            is_nearer = abs(read(other) - wanted) < abs(read(best) - wanted)
            best = np.where(is_nearer, other, best)
    return best


def _add_minimal(task: dict[str, msgspec.Raw], origin: Origin, gathered: Gathered) -> None:
    """Add a task of JSON_MIN, whose regions are values of its keys."""
    data: dict[str, Any] = {}
    regions: list[tuple[_Result, _Value]] = []
    place = Path(str(origin))
    for key, raw in task.items():
        text = bytes(raw)
        if text.startswith(b'"'):
            data[key] = decoded_text(text, place, str, record="task", whole=(repr(key), "text"))
        elif text.startswith(b"[") and b'"original_width"' in text:
            whole = (repr(key), "a list of regions")
            values = decoded_text(text, place, list[_Value], record="region", whole=whole)
            regions += [
                (_Result(original_width=value.original_width, original_height=value.original_height), value)
                for value in values
            ]
    _add(_image_name(data, None, origin), regions, origin, gathered, None)


def _image_name(data: dict[str, Any], upload: str | None, origin: Origin) -> str:
    """Return the image name of a task: that of its upload, otherwise of the path in its data."""
    texts = {key: value for key, value in data.items() if isinstance(value, str) and value.strip()}
    usual: tuple[str, ...] = ("image", "img", "photo", "url", "picture")
    named = [key for key in usual if key in texts]
    paths = named or [key for key, value in texts.items() if _IMAGE.fullmatch(last_part(value))]
    if upload and _IMAGE.fullmatch(upload):
        return upload
    if paths and last_part(texts[paths[0]]):
        return last_part(texts[paths[0]])
    got = ", ".join(map(repr, list(data)[:8])) or "no data"
    raise FileFormatError("a task", "have one image", got=got, place=str(origin))


def _add(
    name: str, regions: list[tuple[_Result, _Value]], origin: Origin, gathered: Gathered, score: float | None
) -> None:
    # Any region has the image size; without regions it is unknown.
    width, height = next(
        (
            (result.original_width, result.original_height)
            for result, _ in regions
            if result.original_width and result.original_height
        ),
        (None, None),
    )
    # A task with several images does not tell which one a region belongs to.
    if len({result.to_name for result, value in regions if _labels(value)}) > 1:
        raise FileFormatError("a task", "have one image", got="several", place=str(origin))
    # Strip the prefix of uploads, which other tools do not have.
    image = gathered.image(_UPLOAD.sub("", name, count=1), width, height, file_name=name)
    for number, (result, value) in enumerate(regions):
        # Skip relations and answers without a region; count unlabeled regions.
        labels = _labels(value)
        if not labels:
            kind = result.type or ""
            if kind in ("choices", "taxonomy"):
                gathered.label_image(
                    ", ".join(map(str, value.choices)) if isinstance(value.choices, list) else kind
                )
            if kind not in ("choices", "textarea", "rating", "taxonomy", "number"):
                gathered.leave_out(*(("", f"of type {kind[:30]}") if kind else ("region", "without label")))
            continue
        region_origin = Origin(f"task {origin.number}, region", number, origin.file)
        across, down = result.original_width or width, result.original_height or height
        if not across or not down:
            raise FileFormatError("a region", "have original_width", got="none", place=str(region_origin))
        # Numbers are percent of the image's size; a region's own score comes before the task's.
        points = score if result.score is None else result.score
        if value.points is not None:
            flat = [
                part * side / 100
                for pair in value.points
                for part, side in zip(pair, (across, down), strict=True)
            ]
            gathered.add_polygon(image, labels[0], flat, region_origin, score=points)
            continue
        if value.x is None or value.y is None or value.width is None or value.height is None:
            raise FileFormatError(
                "a region", "have x, y, width and height", got="not all", place=str(region_origin)
            )
        # A box rotates about its first corner, not about its center.
        if value.rotation:
            x1, y1 = value.x * across / 100, value.y * down / 100
            box = (x1, y1, x1 + value.width * across / 100, y1 + value.height * down / 100)
            corners = rotated_corners(box, value.rotation, center=(x1, y1))
            gathered.add_rotated(image, labels[0], corners, region_origin, score=points)
            continue
        numbers, size = (value.x, value.y, value.width, value.height), (across, down)
        gathered.add_box(image, labels[0], numbers, "xywh", region_origin, score=points, percent_of=size)


def _labels(value: _Value) -> list[str] | None:
    """Return the classes of a rectangle or polygon; None for anything else."""
    has_shape = value.points is not None or value.width is not None
    return value.rectanglelabels or value.polygonlabels or (value.labels if has_shape else None)
