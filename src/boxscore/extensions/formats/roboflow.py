"""Read responses of Roboflow's inference, one file per image.

Conventions
-----------
- ``x`` and ``y`` are the center of the box, in pixels; ``points`` are the outline of a mask.
- An image is named by ``image_path`` of its predictions, as Roboflow's SDK writes it, or by the file. One
  object may hold the responses of several images, by file name.
- Boxes are pixels of the image that was sent. Another size than in the ground truth is an error, unless the
  user scales boxes back.
- A workflow wraps the response in its output, and in a list of one image.

References
----------
https://github.com/roboflow/inference, ``core/entities/responses/inference.py``
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np

from boxscore.data.image_names import stems_of
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import (
    Gathered,
    Origin,
    Point,
    decoded,
    decoded_text,
    flat_points,
    last_part,
)
from boxscore.extensions.formats._json_folders import check_keys, files_of_images, first_json
from boxscore.extensions.formats._responses import DetectionsFormat
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows, detections_of, matched_images
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._yolo_folders import IMAGE_ENDINGS

_WHOLE = ("a response of Roboflow's inference", "an object with predictions")
_DEEPEST = 4


class _Prediction(msgspec.Struct, gc=False):
    label: str = msgspec.field(name="class")
    confidence: float
    x: float | None = None
    y: float | None = None
    width: float | None = None
    height: float | None = None
    points: list[Point] | None = None
    image_path: str | None = None


class _Size(msgspec.Struct, gc=False):
    width: float | str | None = None
    height: float | str | None = None


class _Response(msgspec.Struct, gc=False):
    predictions: list[_Prediction]
    image: _Size | None = None


class RoboflowFormat(DetectionsFormat):
    """Responses of Roboflow's inference."""

    name = "roboflow"
    folder_endings = (".json",)

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect predictions next to the size of an image, or with the keys of a prediction."""
        file = first_json(sniffer)
        if file is None or not file.has_keys("predictions", "width", "height"):
            return None
        is_other = any(file.has_keys(key) for key in ("image_id", "annotations", "result", "data", "samples"))
        keys = file.has_keys("image") or file.has_keys("confidence", "class", "x", "y")
        if is_other or not keys:
            return None
        return f"{'a folder of responses' if sniffer.is_folder else 'a response'} of Roboflow's inference"

    def rows_of(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read every response."""
        gathered = Gathered(path, options, endings=False, any_corners=False)
        for file, named_after, content, is_key in _responses_of(path):
            found = _unwrapped(content, file)
            text = msgspec.json.encode(found)
            response = decoded_text(text, file, _Response, record="prediction", whole=_WHOLE)
            names = {prediction.image_path for prediction in response.predictions}
            if len(names) > 1:
                got = ", ".join(map(repr, sorted(map(str, names))[:3]))
                raise FileFormatError("predictions", "be of one image", got=got, place=str(file))
            name = (names.pop() if names else None) or named_after
            if is_key and len({*stems_of([last_part(name), last_part(named_after)])}) > 1:
                rule, got = "be of the image that it is listed under", f"image_path {name!r}"
                raise FileFormatError("a response", rule, got=got, place=str(file))
            size = response.image or _Size()
            image = gathered.image(name, _number(size.width), _number(size.height))
            for number, prediction in enumerate(response.predictions):
                _add(prediction, image, Origin("prediction", number, file), gathered)
        return gathered.rows(of_results=True)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections; raise if their images have other sizes than those of the ground truth."""
        rows = self.rows_of(path, options, ground_truth)
        is_scaled = "network_input" in options.further or (
            options.written is not None and options.written.fractions
        )
        if ground_truth is not None and not is_scaled:
            _check_sizes(rows, ground_truth)
        return detections_of(rows, options, ground_truth)


FORMAT = RoboflowFormat()


def _check_sizes(rows: Rows, ground_truth: GroundTruth) -> None:
    """Raise if an image with boxes is not as large as in the ground truth; unknown sizes pass."""
    if rows.sizes is None:
        return
    images = matched_images(rows, ground_truth)
    found = np.flatnonzero(images >= 0)
    sizes, known = rows.sizes[found], ground_truth.images.sizes[images[found]]
    wrong = np.asarray((np.abs(sizes - known) > 1).any(axis=1))
    if not wrong.any():
        return
    at = int(np.argmax(wrong))
    got, size = ("{:g} x {:g}".format(*side) for side in (sizes[at], known[at]))
    cause = (
        "were images resized before inference? run it on those of the ground truth, or scale boxes back: "
        f"--network-input stretch:{got.replace(' ', '')}, or letterbox: or corner: for padded images (in "
        "Python network_input=)"
    )
    raise FileFormatError(
        f"image {str(rows.images[int(found[at])])[:60]!r}",
        f"have the size that the ground truth states, {size}",
        got=f"{got}, and others in {int(wrong.sum()):,} of {len(wrong):,} images with detections",
        place=rows.source,
        cause=cause,
    )


def _responses_of(path: Path) -> Iterator[tuple[Path, str, Any, bool]]:
    """Yield the file, the image and the response of every image; an object may have several, by file name.

    The last value says whether the name is that of an object's key.
    """
    for file, named_after in files_of_images(path):
        content = decoded(file, Any, record="prediction", whole=_WHOLE)
        if isinstance(content, dict) and content and all(map(_is_image, content)):
            check_keys(file)
            for name, response in content.items():
                yield Path(f"{file}, {name[:60]}"), name, response, True
        else:
            yield file, named_after, content, False


def _is_image(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in IMAGE_ENDINGS


def _unwrapped(content: Any, file: Path, depth: int = 0) -> Any:
    """Return the response, which a workflow nests in its outputs."""
    if isinstance(content, list) and depth < _DEEPEST:
        if len(content) == 1 and not isinstance(content[0], list):
            return _unwrapped(content[0], file, depth + 1)
        rule, got = "be one response, of one image", f"a list of {len(content):,}"
        if content and isinstance(content[0], list):
            got = "lists in a list, which do not name the fields of a box"
        cause = "save a file per image, named like the image"
        raise FileFormatError(f"{file}", rule, got=got, cause=cause)
    if not isinstance(content, dict) or isinstance(content.get("predictions"), list) or depth >= _DEEPEST:
        return content
    inner = {key: value for key, value in content.items() if _has_predictions(value)}
    if len(inner) > 1:
        rule, cause = (
            "have one output with predictions",
            "keep the one to evaluate; if they are images, name them a.jpg, ...",
        )
        got = ", ".join(map(repr, [*inner][:5]))
        raise FileFormatError("a workflow", rule, got=got, place=str(file), cause=cause)
    return _unwrapped(next(iter(inner.values())), file, depth + 1) if inner else content


def _has_predictions(value: Any) -> bool:
    return isinstance(value, dict) and (
        "predictions" in value
        or any(isinstance(one, dict) and "predictions" in one for one in value.values())
    )


def _number(side: float | str | None) -> float | None:
    """Return a side of an image, which Roboflow's SDK writes as text."""
    try:
        return None if side is None else float(side)
    except ValueError:
        return None


def _add(prediction: _Prediction, image: int, origin: Origin, gathered: Gathered) -> None:
    label, score = prediction.label, prediction.confidence
    x, y, width, height = prediction.x, prediction.y, prediction.width, prediction.height
    if x is None or y is None or width is None or height is None:
        rule, cause = "have x, y, width and height", "results of classification have no boxes"
        raise FileFormatError("a prediction", rule, got="others", place=str(origin), cause=cause)
    if prediction.points is None or len(prediction.points) < 3:
        gathered.add_box(image, label, (x, y, width, height), "cxcywh", origin, score=score)
        return
    gathered.add_polygon(image, label, flat_points(prediction.points), origin, score=score)
