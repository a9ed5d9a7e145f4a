"""Decode the raw output tensors of an exported network (.npy, .npz) into a file of detections.

The layout is recognized from names, shapes and ranges: YOLOv5 to YOLO12, YOLOv10 and YOLO26 end to end,
YOLOX, DETR, RT-DETR, RF-DETR, TensorFlow, TFLite, OpenVINO, TensorRT EfficientNMS and MMDeploy. Boxes are
mapped back to the images of the ground truth, which also gives the classes, in order of their ids.

The images of a batch are in the array image_ids (or image_names) of the .npz, or in --image-ids. In a folder,
each file is one image and has its name. The defaults are those of validation in ultralytics.

Examples
--------
  boxscore decode outputs.npz --gt instances.json --input-size 640 --output detections.json
  boxscore decode outputs --gt instances.json --input-size 640 --layout yolov5 --output detections.json
  boxscore decode batch.npy --gt instances.json --input-size 640 --image-ids ids.txt --output detections.json
"""

from __future__ import annotations

import argparse
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted
from boxscore.cli.arguments import GROUND_TRUTH, READERS, RESULTS_OUTPUT, Option
from boxscore.cli.choices import readers
from boxscore.cli.streams import say
from boxscore.data.image_names import names_of
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.data_tools.converting import save_as, writable
from boxscore.extensions.raw_outputs.decoding import decode_outputs
from boxscore.extensions.raw_outputs.layouts import LAYOUTS, Listed, layout_of
from boxscore.extensions.raw_outputs.resizing import KINDS
from boxscore.formats.reading import read_ground_truth, read_options

MOST_UNPACKED = 200
"""Largest ratio of unpacked to packed bytes; large arrays of different numbers have less."""

IDS = ("image_ids", "image_id", "image_names", "names")
"""Arrays of an .npz that name the images of the batch."""

OPTIONS = (
    Option(
        "outputs",
        "an .npy or .npz file, or a folder with one for each image",
        kind=Path,
        positional=True,
        required=True,
        metavar="FILE|FOLDER",
    ),
    GROUND_TRUTH.but(
        name="gt", help="ground truth: names and sizes of images, and classes", short="", key="", topic=""
    ),
    RESULTS_OUTPUT.but(help="file of detections to write: .json, .csv, .parquet, ..."),
    Option(
        "input-size",
        "side, or width and height, of the input of the network",
        kind=int,
        many=True,
        metavar="PIXELS",
    ),
    Option(
        "layout",
        f"layout of the tensors: auto, {', '.join(LAYOUTS)}",
        default="auto",
        choices=("auto", *LAYOUTS),
        metavar="NAME",
    ),
    Option(
        "resizing",
        "how images became the input: ultralytics, yolov5, corner (letterboxes) or stretch (default: that of "
        "the layout)",
        choices=KINDS,
        metavar="KIND",
    ),
    Option(
        "image-ids",
        "ids or names of the images in the batch, in order, or a file with one per line",
        many=True,
        metavar="ID",
    ),
    Option(
        "score-threshold", "drop scores up to this", kind=float, default=0.001, metavar="S", short="--conf"
    ),
    Option(
        "iou-threshold",
        "suppress boxes whose IoU exceeds this",
        kind=float,
        default=0.7,
        metavar="T",
        short="--iou",
    ),
    Option("best-class", "keep only the best class of each box", kind=bool, default=False),
    Option("max-detections", "keep the N highest scores of an image", kind=int, default=300, metavar="N"),
    Option(
        "first-class",
        "number of the first class, 1 in the TensorFlow API",
        kind=int,
        default=0,
        metavar="0|1",
    ),
    READERS,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, decode, write; return the exit status."""
    side = arguments.input_size
    if side is None:
        raise InputError("--input-size", "be given, such as --input-size 640", got="none")
    if len(side) > 2 or min(side) < 1:
        raise InputError("--input-size", "be one or two numbers above 0", got=" ".join(map(str, side)))
    writable(arguments.output, name="--output")
    truth = read_ground_truth(arguments.gt, read_options(processes=readers(arguments)))
    chosen = {
        "classes": len(truth.categories),
        "resizing": arguments.resizing,
        "score_threshold": arguments.score_threshold,
        "iou_threshold": arguments.iou_threshold,
        "multi_label": not arguments.best_class,
        "max_detections": arguments.max_detections,
    }
    layout = arguments.layout
    found: dict[int, Listed] = {}
    undecided: list[list[int]] = []
    for rows, arrays in _batches(arguments.outputs, arguments.image_ids, truth):
        repeated = next((row for row in rows if row in found or rows.count(row) > 1), None)
        if repeated is not None:
            name = truth.images.names[repeated]
            raise InputError(
                "images of the batch", "be different", got=f"{name!r} twice", place=str(arguments.outputs)
            )
        sizes = [tuple(truth.images.sizes[row].tolist()) for row in rows]
        if np.isnan(sizes).any():
            unknown = truth.images.names[rows[int(np.isnan(sizes).any(axis=1).argmax())]]
            raise InputError(
                "images", "have known sizes", got=f"{unknown!r} without a size", place=str(arguments.gt)
            )
        # Arrays of zeros, which pad outputs without detections, have no recognizable layout.
        if layout == "auto" and not any(np.any(array) for array in arrays.values()):
            undecided.append(rows)
            continue
        if layout == "auto":  # the first file with numbers decides for a folder
            layout = layout_of(arrays, len(truth.categories)).name
            say(f"note: {arguments.outputs} is read as {layout}: {LAYOUTS[layout].text}", name="boxscore")
        decoded = decode_outputs(arrays, sizes, (side[0], side[-1]), layout=layout, **chosen)
        found |= dict(zip(rows, decoded, strict=True))
    table = _table(found, truth, arguments)
    save_as(table, arguments.output)
    images = counted(len(found) + sum(map(len, undecided)), "image")
    say(f"{counted(len(table), 'detection')} of {images} written to {arguments.output}")
    return 0


def _table(found: Mapping[int, Listed], truth: GroundTruth, arguments: argparse.Namespace) -> Detections:
    """Return the detections of all images, with the classes of the ground truth in order of their ids."""
    none = Listed(np.empty((0, 4)), np.empty(0), np.empty(0, dtype=np.int64))
    listed = [none, *found.values()]
    image = np.repeat(np.array([0, *found]), [len(one.scores) for one in listed])
    numbers = np.concatenate([one.classes for one in listed]) - arguments.first_class
    known = len(truth.categories)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= known):
        wrong = int(numbers.max() if numbers.max() >= known else numbers.min()) + arguments.first_class
        raise InputError(
            "class numbers",
            f"be {arguments.first_class} to {known - 1 + arguments.first_class}, because the ground truth "
            f"has {counted(known, 'class')}",
            got=wrong,
            place=str(arguments.outputs),
            cause="is the model trained on other classes, or does it count from 1 (--first-class 1)?",
        )
    return Detections.from_arrays(
        truth.images.ids[image],
        truth.categories.ids[numbers],
        np.concatenate([one.boxes for one in listed]),
        np.concatenate([one.scores for one in listed]),
        images=truth.images,
        categories=truth.categories,
        source=str(arguments.outputs),
    )


def _batches(
    path: Path, given: Sequence[str] | None, truth: GroundTruth
) -> Iterator[tuple[list[int], Mapping[str, NDArray[Any]]]]:
    """Yield the rows of the images and the arrays of each batch."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in (".npy", ".npz"))
        if not files:
            raise InputError(str(path), "have .npy or .npz files", got="none")
        if given is not None:
            raise InputError("--image-ids", "be left out for a folder, whose files are named", got="both")
        for file in files:
            yield _rows([file.stem], truth, str(file)), _arrays(file)[0]
        return
    arrays, ids = _arrays(path)
    if given is not None:
        ids = given
        if len(given) == 1 and Path(given[0]).suffix == ".txt" and not Path(given[0]).is_file():
            raise InputError(
                "--image-ids", "be ids, names or a file of them", got=f"{given[0]!r}, which does not exist"
            )
        if len(given) == 1 and Path(given[0]).is_file():
            ids = Path(given[0]).read_text(encoding="utf-8").split("\n")
            ids = [line.strip() for line in ids if line.strip()]
    if ids is None:
        raise InputError(
            "images of the batch",
            "be named",
            got=f"{path} without {' or '.join(IDS[::2])}",
            cause="--image-ids gives ids or names in the order of the batch",
        )
    images = {len(array) for array in arrays.values() if array.ndim == 3}
    if len(images) == 1 and max(images) != len(ids) and len(ids) > 1:
        raise InputError("images of the batch", f"be {max(images)}, as in the arrays", got=f"{len(ids)} ids")
    yield _rows(ids, truth, "--image-ids" if given is not None else str(path)), arrays


def _arrays(path: Path) -> tuple[Mapping[str, NDArray[Any]], Sequence[str] | None]:
    """Read the arrays of a file, and the names of its images; nothing in it is executed."""
    try:
        with path.open("rb") as file:
            check_declared_size(file)
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"output": loaded}, None
            arrays = {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise InputError(str(path), "exist", got="no such file") from None
    except _BROKEN as error:
        raise FileFormatError(
            str(path), "be an .npy or .npz file of numbers, without pickled objects", got=short(error)
        ) from error
    name = next((name for name in IDS if name in arrays), None)
    ids = None if name is None else [_id(one) for one in arrays.pop(name).reshape(-1).tolist()]
    if not arrays:
        raise FileFormatError(str(path), "have arrays of outputs", got="none")
    return arrays, ids


_BROKEN = (
    *(OSError, ValueError, EOFError, KeyError, NotImplementedError, SyntaxError, RecursionError, TypeError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
"""Errors of damaged files."""


def check_declared_size(file: BinaryIO) -> None:
    """Raise if a header declares more numbers than the file has; then go back to its start."""
    limit = file.seek(0, 2)
    file.seek(0)
    if file.read(2) == b"PK":
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if entry.file_size > MOST_UNPACKED * max(entry.compress_size, 1 << 20):
                    raise ValueError(f"{entry.filename} unpacks to {entry.file_size:,} bytes")
                if entry.filename.endswith(".npy"):
                    with archive.open(entry) as member:
                        _check_header(member, entry.file_size)
    else:
        file.seek(0)
        _check_header(file, limit)
    file.seek(0)


def _check_header(file: Any, size: int) -> None:
    """Raise if the header of an array declares more bytes than there are."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"a header declares {math.prod(shape) * dtype.itemsize:,} bytes of {size:,}")


def short(error: Exception) -> str:
    """Return the first line of an error, without advice of NumPy that does not apply here."""
    text = str(error).partition("\n")[0]
    return "other content" if "pickle" in text or "magic string" in text else text[:120]


def _id(value: object) -> str:
    """Return an image id as text: bytes are names, and whole floats are integers."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _rows(ids: Sequence[str], truth: GroundTruth, place: str) -> list[int]:
    """Return the rows of images by id or name."""
    index = {str(identifier): row for row, identifier in enumerate(truth.images.ids.tolist())}
    unknown = [name for name in ids if name not in index]
    if unknown:
        matches = names_of(truth.images).find(unknown)
        index.update(
            (name, row) for name, row in zip(unknown, matches.rows.tolist(), strict=True) if row >= 0
        )
    for name in ids:
        if name not in index:
            raise InputError("images of the batch", "be in the ground truth", got=repr(name), place=place)
    return [index[name] for name in ids]
