"""Read TFRecord files of the TensorFlow Object Detection API.

Conventions
-----------
- A record is a ``tf.train.Example``: ``image/object/bbox/xmin`` and so on are lists of fractions; detections
  are ``image/detection/bbox/...`` with ``image/detection/score``.
- Class names come from ``class/text``, otherwise from ``label_map.pbtxt`` next to the file, with ids from 1.
- Lengths are checked, checksums are not. Encoded images are skipped.
- The image set selects one of several files in a folder by its stem.

References
----------
https://www.tensorflow.org/tutorials/load_data/tfrecord, tensorflow/models ``tf_example_decoder.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from boxscore._utils.files import is_file, read_text
from boxscore.data.hints import ask
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.formats._gathered import short_names
from boxscore.extensions.formats._protobuf import Values, features
from boxscore.formats import _json
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows, collected
from boxscore.formats._sniffer import Sniffer

LARGEST_RECORD = 1_000_000_000
"""Maximum size in bytes of one record, including its image."""

ENDINGS = (".tfrecord", ".tfrecords", ".record", ".tfrec")
_SKIPPED = ("image/encoded", "image/object/mask", "image/segmentation")
_ITEM = re.compile(r"item\s*\{([^}]*)\}")
_ID = re.compile(r"\bid\s*:\s*(\d{1,9})\b")
_NAME = re.compile(r"""\b(display_name|name)\s*:\s*(?:"([^"\n]*)"|'([^'\n]*)')""")


class TFRecordFormat(RowFormat):
    """TFRecord files."""

    name = "tfrecord"
    boxes = "xyxy"
    takes = frozenset({"image_set", "classes", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the first record of a file, or a folder with such files."""
        if sniffer.is_folder:
            files = [name for name in sniffer.names if name.lower().endswith(ENDINGS)]
            return "a folder of TFRecord files" if files else None
        head = sniffer.head
        length = int.from_bytes(head[:8], "little")
        is_record = (
            len(head) > 16 and head[12:13] == b"\n" and 0 < length <= LARGEST_RECORD and b"image/" in head
        )
        return "a TFRecord file" if is_record else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every record."""
        # A record is an image; its features become rows.
        file = _file(path, options.image_set)
        names = _label_map(file.parent / "label_map.pbtxt")
        kind = "detection" if of_results else "object"
        images: dict[Id, int] = {}
        sizes: list[tuple[float, float]] = []
        image: list[int] = []
        labels: list[Id] = []
        numbers: list[tuple[float, ...]] = []
        crowd: list[bool] = []
        with _json.open_binary(file) as opened:
            for number, record in enumerate(_records(opened, file)):
                place = f"record {number} of {file}"
                example = _example(record, place)
                name = _text(example, "image/filename") or _text(example, "image/source_id") or f"{number}"
                width, height = (_image_side(example, f"image/{side}") for side in ("width", "height"))
                # Several records may belong to one image: group its rows.
                position = images.setdefault(name, len(images))
                if position == len(sizes):
                    sizes.append((width, height))
                rows, record_labels = _objects(example, kind, names, place)
                image += [position] * len(rows)
                labels += record_labels
                numbers += rows
                # Use crowd flags only if every object has one.
                marks = _numbers(example, "image/object/is_crowd")
                crowd += [bool(mark) for mark in marks] if len(marks) == len(rows) else [False] * len(rows)
        # The classes of the label map come first, then other names.
        values = np.array(numbers, dtype=np.float64).reshape(-1, 5)
        ordered = [names[key] for key in sorted(names)]
        classes = list(dict.fromkeys([*ordered, *(label for label in labels if isinstance(label, str))]))
        distinct = collected(labels)
        # Boxes are fractions of the image size.
        return Rows(
            source=str(path),
            images=short_names(list(images)),
            image=np.array(image, dtype=np.int64),
            labels=distinct.values,
            label=distinct.positions,
            boxes=values[:, :4],
            box_format="xyxy",
            place=lambda row: f"object {row} of {file}",
            fractions=True,
            scores=values[:, 4] if of_results else None,
            classes=classes if ordered else None,
            file_names=[str(name) for name in images],
            sizes=np.array(sizes, dtype=np.float64).reshape(-1, 2),
            given={"crowd": np.array(crowd)} if any(crowd) and not of_results else {},
        )


FORMAT = TFRecordFormat()


def _file(path: Path, image_set: object) -> Path:
    # A folder with several files needs an image set.
    if path.is_file():
        if image_set is not None:
            rule = "be left out where one file is given"
            raise InputError("image_set", rule, got=repr(str(image_set)), place=str(path))
        return path
    files = {file.stem: file for file in sorted(path.iterdir()) if file.name.lower().endswith(ENDINGS)}
    if image_set is not None and str(image_set) in files:
        return files[str(image_set)]
    if image_set is None and len(files) == 1:
        ask("folders in a folder", path, FORMAT.detect)
        return next(iter(files.values()))
    # The error for a missing or unknown name lists the available ones.
    cause = f"choose from {', '.join(list(files)[:12])}"
    if image_set is None:
        rule = "be given where there are several files"
        raise InputError("image_set", rule, got=f"none, in {path}", cause=cause)
    rule = "be the name of a file of the folder"
    raise InputError("image_set", rule, got=repr(str(image_set)), place=str(path), cause=cause)


def _records(file: BinaryIO, path: Path) -> Iterator[memoryview]:
    number = 0
    size = path.stat().st_size
    while head := file.read(12):
        length = int.from_bytes(head[:8], "little")
        if len(head) < 12 or length > min(LARGEST_RECORD, size - file.tell()):
            got = f"a record of {length:,} bytes" if len(head) == 12 else "an end of file"
            place, cause = f"record {number} of {path}", "was the download or the write cut short?"
            raise FileFormatError("a TFRecord file", "be complete", got=got, place=place, cause=cause)
        yield memoryview(file.read(length))
        file.read(4)
        number += 1


def _example(record: memoryview, place: str) -> dict[str, Values]:
    try:
        return features(record, lambda name: name.startswith("image/") and not name.startswith(_SKIPPED))
    except (ValueError, UnicodeDecodeError) as error:
        got = str(error).split("\n", 1)[0][:80]
        raise FileFormatError("a record", "be a tf.train.Example", got=got, place=place) from None


def _objects(
    example: Mapping[str, Values], kind: str, names: Mapping[int, str], place: str
) -> tuple[list[tuple[float, ...]], list[Id]]:
    """Return the corners, score and class of every object of a record."""
    # Each property is a list with one value per object.
    columns: list[list[float]] = [
        _numbers(example, f"image/{kind}/bbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")
    ]
    columns.append(
        _numbers(example, f"image/{kind}/score") if kind == "detection" else [0.0] * len(columns[0])
    )
    # Prefer names to numbers, which the label map names.
    texts = [_decode(text) for text in example.get(f"image/{kind}/class/text", ())]
    ids = _numbers(example, f"image/{kind}/class/label") or _numbers(example, f"image/{kind}/label")
    labels: list[Id] = [*texts] if texts and all(texts) else [names.get(int(each), int(each)) for each in ids]
    # Reject lists of different lengths, which would mix up objects.
    counts = dict(zip(("ymin", "xmax", "ymax", "score"), map(len, columns[1:]), strict=True))
    for name, count in {**counts, "class": len(labels)}.items():
        if count != len(columns[0]):
            got = f"{count} of {len(columns[0])}"
            raise FileFormatError(f"{kind}s", f"have one {name} each", got=got, place=place)
    rows = np.array(columns, dtype=np.float64).T
    if not np.isfinite(rows).all():
        raise FileFormatError(f"{kind}s", "have finite numbers", got="others", place=place)
    return [tuple(row) for row in rows.tolist()], labels


def _numbers(example: Mapping[str, Values], name: str) -> list[float]:
    values: Any = example.get(name, ())
    return [float(value) for value in values if not isinstance(value, bytes)]


def _image_side(example: Mapping[str, Values], name: str) -> float:
    values = _numbers(example, name)
    return values[0] if len(values) == 1 and 1 <= values[0] <= 1e9 else np.nan


def _text(example: Mapping[str, Values], name: str) -> str:
    values = example.get(name) or [b""]
    return _decode(values[0])


def _decode(value: object) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def _label_map(path: Path) -> dict[int, str]:
    """Return the class names by id; empty without a label map file."""
    if not is_file(path):
        return {}
    text = read_text(path, "a label map", largest=10_000_000)
    names: dict[int, str] = {}
    for item in _ITEM.finditer(text):
        number = _ID.search(item[1])
        fields = {match[1]: match[2] or match[3] or "" for match in _NAME.finditer(item[1])}
        name = fields.get("name") or fields.get("display_name")
        if number is None or not name:
            got, place = repr(" ".join(item[1].split()))[:60], str(path)
            raise FileFormatError("an item of a label map", "have id and name", got=got, place=place)
        names[int(number[1])] = name
    if not names and text.strip():
        raise FileFormatError("a label map", "have items", got="none", place=str(path))
    return names
