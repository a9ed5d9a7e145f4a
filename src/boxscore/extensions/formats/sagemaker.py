"""Read SageMaker Ground Truth manifests: the JSON lines output of a bounding box job.

Conventions
-----------
- The boxes are under the job's name, the class names of the line under ``<job>-metadata``.
- ``left, top, width, height`` are pixels. ``confidence`` describes the annotators and is not a score.
- A line without boxes is an image without objects.

References
----------
https://docs.aws.amazon.com/sagemaker/latest/dg/sms-data-output.html
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from boxscore._utils.files import read_text
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import LARGEST, Gathered, Origin, decoded_text
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

METADATA = "-metadata"


class _Box(msgspec.Struct, gc=False):
    class_id: int
    left: float
    top: float
    width: float
    height: float


class _Size(msgspec.Struct, gc=False):
    width: float
    height: float


class _Job(msgspec.Struct, gc=False):
    annotations: list[_Box]
    image_size: list[_Size] = []


class SageMakerFormat(RowFormat):
    """SageMaker's manifests."""

    name = "sagemaker"
    boxes = "xywh"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the key of the image in the first line."""
        line = sniffer.first_line
        return "a manifest of SageMaker" if line.startswith("{") and '"source-ref"' in line else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every line."""
        # Each line has a key per labeling job: decode it as raw text first, and choose the job.
        lines = read_text(path, "a manifest", largest=LARGEST).split("\n")
        gathered = Gathered(path, options)
        names: dict[int, str] = {}
        chosen: str | None = None
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            content = _read(line, Path(place), dict[str, msgspec.Raw], "an object")
            source = _read(
                bytes(content.get("source-ref", msgspec.Raw(b"null"))), Path(place), str, "a string"
            )
            # A line without the job is an unlabeled image.
            key = _job(content, chosen, place)
            chosen = key or chosen
            if key is None:
                gathered.image(source)
                for label in _image_labels(content, place):
                    gathered.label_image(label)
                continue
            job = _read(bytes(content[key]), Path(place), _Job, "an object with annotations")
            size = job.image_size[0] if job.image_size else _Size(0, 0)
            image = gathered.image(source, size.width, size.height)
            # Each line repeats the names of its classes, which must agree over all lines.
            _add_names(names, _class_map(content.get(key + METADATA), place), place)
            for index, box in enumerate(job.annotations):
                origin = Origin(f"annotation {index} in line", number, path)
                if box.class_id not in names:
                    got = f"class {box.class_id}"
                    raise FileFormatError("a class", "be in class-map", got=got, place=str(origin))
                numbers = (box.left, box.top, box.width, box.height)
                gathered.add_box(image, names[box.class_id], numbers, "xywh", origin)
        # Sort the classes by number.
        classes = list(dict.fromkeys(names[number] for number in sorted(names)))
        return gathered.rows(of_results=of_results, classes=classes or None)


FORMAT = SageMakerFormat()


def _read(text: str | bytes, place: Path, kind: Any, rule: str) -> Any:
    content = text.encode("utf-8") if isinstance(text, str) else text
    return decoded_text(content, place, kind, record="annotation", whole=("a line of the manifest", rule))


def _job(content: Mapping[str, msgspec.Raw], chosen: str | None, place: str) -> str | None:
    """Return the key with annotations."""
    keys = [
        key
        for key, raw in content.items()
        if not key.endswith(METADATA) and bytes(raw)[:1] == b"{" and b'"annotations"' in bytes(raw)
    ]
    if chosen in keys:
        return chosen
    if len(keys) > 1:
        got = ", ".join(map(repr, keys[:5]))
        cause = "remove the other jobs' keys from the manifest"
        raise FileFormatError(
            "a line of the manifest", "have the boxes of one job", got=got, place=place, cause=cause
        )
    return keys[0] if keys else None


def _image_labels(content: Mapping[str, msgspec.Raw], place: str) -> list[str]:
    """Return the class names of jobs that label whole images."""
    labels = []
    for key, raw in content.items():
        if key.endswith(METADATA) and b"image-classification" in bytes(raw):
            metadata = _read(bytes(raw), Path(place), dict[str, msgspec.Raw], "an object")
            name = metadata.get("class-name", msgspec.Raw(b'"several"'))
            labels.append(_read(bytes(name), Path(place), str, "a string"))
    return labels


def _class_map(raw: msgspec.Raw | None, place: str) -> Mapping[str, str]:
    """Return the class names by number from a line's metadata."""
    if raw is None:
        return {}
    metadata = _read(bytes(raw), Path(place), dict[str, msgspec.Raw], "an object")
    names: Mapping[str, str] = _read(
        bytes(metadata.get("class-map", msgspec.Raw(b"{}"))),
        Path(place),
        dict[str, str],
        "an object of names",
    )
    return names


def _add_names(names: dict[int, str], class_map: Mapping[str, str], place: str) -> None:
    """Add class names; a number must mean the same class in the whole file."""
    for text, name in class_map.items():
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise FileFormatError("class-map", "have numbers as keys", got=repr(text)[:40], place=place)
        known = names.setdefault(int(text), name)
        if known != name:
            got = f"{text}: {name!r}, and {known!r} before"
            raise FileFormatError("class-map", "name a class alike in every line", got=got, place=place)
