"""Read MegaDetector's JSON, and that of Microsoft's package of the same name.

Conventions
-----------
- MegaDetector: an object with ``images``; boxes are ``x, y, width, height`` in fractions of the image size;
  classes are numbers of ``detection_categories``.
- Microsoft's package: a list of images; boxes are corners in pixels, classes are names.
- Images that the detector could not read, and videos, are rejected.

References
----------
https://github.com/agentmorris/MegaDetector, ``megadetector/postprocessing/validate_batch_results.py``
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from boxscore._utils.text import counted, short_list
from boxscore.data.box_reading import are_fractions
from boxscore.data.tables import GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded, in_fractions
from boxscore.extensions.formats._json_folders import first_object
from boxscore.extensions.formats._responses import DetectionsFormat
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows
from boxscore.formats._sniffer import Sniffer

_IMAGES = re.compile(r'"images"\s*:\s*\[')


class _Detection(msgspec.Struct, gc=False):
    category: str | int
    bbox: tuple[float, float, float, float]
    conf: float | None = None
    confidence: float | None = None
    frame_number: Any = None


class _Image(msgspec.Struct, gc=False):
    file: str
    detections: list[_Detection] | None = None
    failure: str | None = None
    frame_rate: Any = None
    frames_processed: Any = None


class _File(msgspec.Struct, gc=False):
    images: list[_Image]
    detection_categories: dict[str, str]


class MegaDetectorFormat(DetectionsFormat):
    """Both kinds of MegaDetector's JSON."""

    name = "megadetector"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect images with a file and detections."""
        if sniffer.is_folder or not sniffer.is_json:
            return None
        first = first_object(sniffer)
        if first and isinstance(first.get("file"), str) and isinstance(first.get("detections"), list):
            is_known = all(
                isinstance(one, dict) and {"category", "bbox"} <= one.keys() for one in first["detections"]
            )
            return "JSON of Microsoft's MegaDetector" if is_known else None
        is_known = _IMAGES.search(sniffer.text) is not None and sniffer.has_keys("file")
        is_known = is_known and (sniffer.has_keys("detections") or sniffer.has_keys("failure"))
        is_known = is_known and not (sniffer.has_keys("file_name") or sniffer.has_keys("annotations"))
        return "MegaDetector's JSON" if is_known else None

    def rows_of(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read every image."""
        # A list is of Microsoft's package: corners in pixels, and names of classes. MegaDetector writes
        # one too, before it adds the names of its classes.
        kind: Any = _File | list[_Image]
        whole = ("MegaDetector's JSON", "an object with images")
        content: _File | list[_Image] = decoded(path, kind, record="image", whole=whole)
        is_list = isinstance(content, list)
        images = content if isinstance(content, list) else content.images
        classes = None if isinstance(content, list) else content.detection_categories
        _check_seen(images, path)
        if is_list and any(one.conf is not None for image in images for one in image.detections or ()):
            cause = "save the results with write_results_to_file, which adds it"
            raise FileFormatError(
                "MegaDetector's JSON", "have detection_categories", got="a list", place=str(path), cause=cause
            )
        gathered = Gathered(path, options, any_corners=False)
        for image in images:
            position = gathered.image(image.file)
            for number, detection in enumerate(image.detections or ()):
                origin = Origin(f"image {image.file!r}, detection", number, path)
                if detection.frame_number is not None:
                    raise _video(image.file, path)
                label = str(detection.category)
                if classes is not None and label not in classes:
                    rule, got = "be one of detection_categories", repr(label)
                    raise FileFormatError("category", rule, got=got, place=str(origin))
                score = detection.conf if detection.confidence is None else detection.confidence
                gathered.add_box(
                    position,
                    label if classes is None else classes[label],
                    detection.bbox,
                    "xyxy" if is_list else "xywh",
                    origin,
                    score=score,
                )
        names = None if classes is None else list(classes.values())
        rows = gathered.rows(of_results=True, classes=names)
        if not is_list:
            return in_fractions(rows)
        if not rows.form_applied and rows.boxes is not None and are_fractions(rows.boxes, rows.place):
            cause = "use --dt-box-format xyxyn or xywhn (in Python box_format=)"
            raise FileFormatError(
                "boxes", "be in pixels in a list", got="fractions", place=str(path), cause=cause
            )
        return rows


FORMAT = MegaDetectorFormat()


def _check_seen(images: list[_Image], path: Path) -> None:
    """Raise if the detector did not read all images, or if they are videos."""
    for image in images:
        if image.frame_rate is not None or image.frames_processed is not None:
            raise _video(image.file, path)
    failed = [image.file for image in images if image.detections is None or image.failure]
    if failed:
        raise FileFormatError(
            "MegaDetector",
            "have read all images",
            got=f"{counted(len(failed), 'failure')}: {short_list(failed, 3)}",
            place=str(path),
            cause="these are not images without detections. Run it again on them, or remove them from this "
            "file and evaluate only the others: --images FILE",
        )


def _video(name: str, path: Path) -> FileFormatError:
    cause = "extract the frames, and run MegaDetector on them"
    return FileFormatError("a file", "be an image", got=f"video {name!r}", place=str(path), cause=cause)
