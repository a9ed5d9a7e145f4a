"""Arguments that several subcommands share: ground truth, detections, protocol and what to keep of them."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from boxscore._utils import checks
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.formats import detect_format, format_names, load_both
from boxscore.matching.inputs import needed_columns
from boxscore.protocols import IOU_TYPES, load_protocol, protocol_of_type
from boxscore.protocols.protocol import Protocol

__all__ = [
    "Inputs",
    "add_input_arguments",
    "add_output_argument",
    "available_processors",
    "chosen_protocol",
    "evaluate_inputs",
    "read_inputs",
]


class Inputs(NamedTuple):
    """What the input arguments name, read and checked."""

    ground_truth: GroundTruth
    detections: Detections
    protocol: Protocol
    images: list[Id] | None
    classes: list[Id] | None
    workers: int


def add_input_arguments(
    parser: argparse.ArgumentParser, *, several_detections: bool = False, required: bool = True
) -> None:
    """Add the arguments that name what to evaluate and how."""
    parser.add_argument(
        "--ground-truth",
        "--gt",
        required=required,
        type=Path,
        metavar="PATH",
        help="COCO JSON file or VOC folder",
    )
    parser.add_argument(
        "--detections",
        "--dt",
        required=required,
        nargs="+" if several_detections else None,
        type=Path,
        metavar="PATH",
        help="COCO results file or folder of comp4_det_<set>_<class>.txt",
    )
    parser.add_argument(
        "--format",
        default="auto",
        choices=format_names(),
        help="of the ground truth (default: auto)",
    )
    parser.add_argument(
        "--protocol", default="coco", metavar="NAME|FILE.toml", help="how to score (default: coco)"
    )
    parser.add_argument(
        "--iou-type",
        choices=list(IOU_TYPES),
        help="what to compare: boxes, masks, their boundaries or keypoints (default: as the protocol says)",
    )
    parser.add_argument(
        "--detection-area",
        choices=["box", "mask", "box_or_mask"],
        help="what tells small, medium and large detections (default: as the protocol says)",
    )
    parser.add_argument("--image-set", metavar="NAME|FILE", help="VOC: the image set, e.g. test")
    parser.add_argument(
        "--classes", nargs="+", metavar="CLASS|FILE", help="only these: names or ids, or a file of them"
    )
    parser.add_argument("--images", nargs="+", metavar="ID|FILE", help="only these: ids, or a file of them")
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that read large files, and threads that match blocks of images; the result is the "
        "same (default: read with every processor, match with one)",
    )


def add_output_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--output``."""
    parser.add_argument(
        "--output", default="text", choices=["text", "json", "csv", "markdown"], help="form of the result"
    )


def read_inputs(arguments: argparse.Namespace) -> Inputs:
    """Read the files that the input arguments name.

    Raises
    ------
    InputError
        When a file or value breaks a rule.
    """
    protocol = chosen_protocol(arguments)
    if arguments.workers is not None:
        checks.whole_number(arguments.workers, 1, name="--workers")
    readers = arguments.workers or available_processors()
    for name, path in (("ground truth", arguments.ground_truth), ("detections", arguments.detections)):
        found, reason = detect_format(path)
        if arguments.format == "auto" and sys.stderr.isatty():
            print(f"{name}: {path} is {reason}; reading it as {found}", file=sys.stderr)
    ground_truth, detections = load_both(
        arguments.ground_truth,
        arguments.detections,
        format=arguments.format,
        image_set=arguments.image_set,
        columns=needed_columns(protocol),
        processes=readers,
    )
    return Inputs(
        ground_truth,
        detections,
        protocol,
        _chosen(arguments.images, names=(), integers=ground_truth.images.ids.dtype != object),
        _chosen(
            arguments.classes,
            names=ground_truth.categories.names.tolist(),
            integers=ground_truth.categories.ids.dtype != object,
        ),
        arguments.workers or 1,
    )


def chosen_protocol(arguments: argparse.Namespace) -> Protocol:
    """Return the protocol that the arguments name, with what they change in it."""
    protocol = load_protocol(arguments.protocol)
    if arguments.iou_type is not None:
        protocol = protocol_of_type(protocol, arguments.iou_type)
    if arguments.detection_area is not None:
        ignore = dataclasses.replace(protocol.ignore, detection_area=arguments.detection_area)
        protocol = dataclasses.replace(protocol, ignore=ignore)
    return protocol


def evaluate_inputs(inputs: Inputs) -> Evaluation:
    """Evaluate what :func:`read_inputs` read."""
    return evaluate(
        inputs.ground_truth,
        inputs.detections,
        protocol=inputs.protocol,
        images=inputs.images,
        classes=inputs.classes,
        workers=inputs.workers,
    )


def available_processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chosen(values: Sequence[str] | None, *, names: Sequence[str], integers: bool) -> list[Id] | None:
    """Ids or names from the command line; a value that is a file stands for its lines."""
    if values is None:
        return None
    texts: list[str] = []
    for value in values:
        path = Path(value)
        if value not in names and path.is_file():
            try:
                lines = path.read_text(encoding="utf-8-sig").splitlines()
            except UnicodeDecodeError:
                raise InputError(
                    "a file of ids", "be UTF-8 text", got="other bytes", place=str(path)
                ) from None
            chosen = [line.strip() for line in lines if line.strip()]
            if not chosen:
                raise InputError("a file of ids", "name at least one", got="an empty file", place=str(path))
            texts += chosen
        else:
            texts.append(value)
    return [int(text) if integers and text not in names and _is_integer(text) else text for text in texts]


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
