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
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted
from boxscore.cli.arguments import GROUND_TRUTH, READERS, RESULTS_OUTPUT, Option
from boxscore.cli.choices import readers
from boxscore.cli.streams import say
from boxscore.data.image_names import names_of
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.data_tools.converting import save_as
from boxscore.extensions.raw_outputs.decoding import decode_outputs
from boxscore.extensions.raw_outputs.layouts import LAYOUTS, Listed, layout_of
from boxscore.extensions.raw_outputs.resizing import KINDS
from boxscore.formats.reading import read_ground_truth, read_options

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
        name="gt", help="ground truth: names and sizes of images, and classes", short="", key=""
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
    truth = read_ground_truth(arguments.gt, read_options(processes=readers(arguments)))
    batches = list(_batches(arguments.outputs, arguments.image_ids, truth))
    classes = len(truth.categories)
    layout = arguments.layout
    if layout == "auto":
        layout = layout_of(batches[0][1], classes).name
        say(f"note: {arguments.outputs} is read as {layout}: {LAYOUTS[layout].text}", name="boxscore")
    found: list[tuple[int, Listed]] = []
    for rows, arrays in batches:
        sizes = [tuple(truth.images.sizes[row].tolist()) for row in rows]
        if np.isnan(sizes).any():
            unknown = truth.images.names[rows[int(np.isnan(sizes).any(axis=1).argmax())]]
            raise InputError(
                "images", "have known sizes", got=f"{unknown!r} without a size", place=str(arguments.gt)
            )
        decoded = decode_outputs(
            arrays,
            sizes,
            (side[0], side[-1]),
            layout=layout,
            classes=classes,
            resizing=arguments.resizing,
            score_threshold=arguments.score_threshold,
            iou_threshold=arguments.iou_threshold,
            multi_label=not arguments.best_class,
            max_detections=arguments.max_detections,
        )
        found += zip(rows, decoded, strict=True)
    table = _table(found, truth, arguments)
    save_as(table, arguments.output)
    images = counted(len(found), "image")
    say(f"{counted(len(table), 'detection')} of {images} written to {arguments.output}")
    return 0


def _table(
    found: Sequence[tuple[int, Listed]], truth: GroundTruth, arguments: argparse.Namespace
) -> Detections:
    """Return the detections of all images, with the classes of the ground truth in order of their ids."""
    image = np.concatenate([np.full(len(one.scores), row) for row, one in found])
    numbers = np.concatenate([one.classes for _, one in found]) - arguments.first_class
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
        np.concatenate([one.boxes for _, one in found]),
        np.concatenate([one.scores for _, one in found]),
        images=truth.images,
        categories=truth.categories,
        source=str(arguments.outputs),
    )


def _batches(
    path: Path, given: Sequence[str] | None, truth: GroundTruth
) -> Sequence[tuple[list[int], Mapping[str, NDArray[Any]]]]:
    """Return the rows of the images and the arrays of each batch."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".npy", ".npz"))
        if not files:
            raise InputError(str(path), "have .npy or .npz files", got="none")
        if given is not None:
            raise InputError("--image-ids", "be left out for a folder, whose files are named", got="both")
        return [(_rows([file.stem], truth, str(file)), _arrays(file)[0]) for file in files]
    arrays, ids = _arrays(path)
    if given is not None:
        ids = given
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
    return [(_rows(ids, truth, "--image-ids" if given is not None else str(path)), arrays)]


def _arrays(path: Path) -> tuple[Mapping[str, NDArray[Any]], Sequence[str] | None]:
    """Read the arrays of a file, and the names of its images; nothing in it is executed."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"output": loaded}, None
            arrays = {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise InputError(str(path), "exist", got="no such file") from None
    except (
        OSError,
        ValueError,
        EOFError,
        zipfile.BadZipFile,
        KeyError,
        NotImplementedError,
        MemoryError,
    ) as error:
        raise FileFormatError(str(path), "be a NumPy file without pickled objects", got=str(error)) from error
    name = next((name for name in IDS if name in arrays), None)
    ids = None if name is None else [str(one) for one in arrays.pop(name).reshape(-1).tolist()]
    return arrays, ids


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
