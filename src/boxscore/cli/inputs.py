"""Read the inputs given by the arguments: ground truth, detections, protocol, images and classes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxscore._utils.given_paths import path_of
from boxscore._utils.lazy import loaded
from boxscore._utils.processes import idle_processors
from boxscore._utils.progress import stage
from boxscore._utils.records import NamedTuple
from boxscore.cli.arguments import DEFAULT_PROTOCOL, further, given
from boxscore.cli.choices import chosen, chosen_classes, column_map, existing_folder, readers
from boxscore.cli.sockets import extension, names_at
from boxscore.cli.streams import say, stderr_is_terminal
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.evaluation import Evaluation, evaluate
from boxscore.formats import load_both
from boxscore.formats._format import SIDES, Side
from boxscore.formats.reading import read_options, takes_sizes
from boxscore.formats.registry import open_at
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import needs_of, similarity_of

if TYPE_CHECKING:
    from boxscore.data.column_names import ColumnMap

EXPECTED = {
    "coco": (".json",),
    "csv": (".csv", ".tsv"),
    "openimages": (".csv",),
    "parquet": (".parquet", ".pq", ""),
    "jsonl": (".jsonl", ".ndjson"),
    "columns": (".npz",),
    "yolo": (".yaml", ".yml", ""),
    "voc": ("",),
}
"""Usual file name endings of formats ("" for folders), for which no note is printed."""

PIXEL_OFFSETS = {"continuous": 0.0, "inclusive": 1.0}
"""Value added to widths: corners are points in the plane, or the first and last pixel of a box."""


class Inputs(NamedTuple):
    """The checked inputs of a command."""

    ground_truth: GroundTruth
    detections: Detections
    protocol: Protocol
    images: list[Id] | None
    classes: list[Id] | None
    workers: int


def read_inputs(arguments: argparse.Namespace, *others: Protocol) -> Inputs:
    """Read the input files, for the protocol in the arguments or for others."""
    protocol = chosen_protocol(arguments)
    processes = readers(arguments)
    common: dict[str, Any] = {**needs_of(*(others or (protocol,))), "processes": processes}
    opened = []
    for side, path in zip(SIDES, (arguments.ground_truth, arguments.detections), strict=True):
        opened.append(open_at(path_of(path), side=side))  # detect even if the user names the format
        detected = opened[-1].format.name
        if arguments.format == "auto" and _is_surprising(path, detected) and stderr_is_terminal():
            _note(f"{side}: {path} is {opened[-1].reason}; reading it as {detected}")
    stage("reading ground truth and detections")
    ground_truth, detections = load_both(
        opened[0],
        opened[1],
        read_options(**ground_truth_arguments(arguments), **common),
        read_options(**detection_arguments(arguments), **common),
    )
    if getattr(arguments, "scoreless", False):
        detections = detections.without_scores()
    return Inputs(
        ground_truth,
        detections,
        protocol if detections.scored else protocol_without_scores(arguments),
        chosen(arguments.images, ground_truth.images),
        chosen_classes(arguments.classes, ground_truth.categories, arguments.exclude_classes),
        arguments.workers or (1 if similarity_of(protocol).forks_from is None else idle_processors()),
    )


def _is_surprising(path: Path, name: str) -> bool:
    """Whether a format is unexpected for the name of the file or folder."""
    return ("" if path.is_dir() else path.suffix.lower()) not in EXPECTED.get(name, ())


def ground_truth_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options for ground-truth files, by the parameter names of loaders."""
    return {
        "format": arguments.format,
        "image_set": arguments.image_set,
        "classes": arguments.gt_classes,
        **_sizes_for(arguments, of_detections=False),
        "box_format": arguments.gt_box_format,
        "columns": _columns(arguments, of_detections=False),
        "unlisted_images": arguments.unlisted_images,
        **{name: getattr(arguments, name) for name in names_at("ground truth")},
        **{name: getattr(arguments, name, None) for name in names_at("evaluation")},
        "note": _note,
    }


def detection_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options for detection files, by the parameter names of loaders."""
    return {
        "format": arguments.dt_format,
        "classes": arguments.dt_classes,
        **_sizes_for(arguments, of_detections=True),
        "box_format": arguments.dt_box_format,
        "columns": _columns(arguments, of_detections=True),
        "unlisted_images": arguments.unlisted_images,
        **{name: getattr(arguments, name) for name in names_at("detections")},
    }


def _columns(arguments: argparse.Namespace, *, of_detections: bool) -> ColumnMap | None:
    """Return the column mapping for the ground truth or the detections.

    ``--columns`` applies to both if they are tables; each column must be in at least one of them. If neither
    is a table, reading the first one raises an error.
    """
    resolve_columns(arguments)
    sides = [
        (arguments.ground_truth, arguments.format, getattr(arguments, "gt_columns", None)),
        (arguments.detections, arguments.dt_format, arguments.dt_columns),
    ]
    path, _, texts = sides[of_detections]
    if arguments.columns is None or texts is not None:
        name = "--dt-columns" if of_detections else "--gt-columns"
        return None if texts is None else column_map(texts, name=name)
    are_tables = [_is_table(path, name, side) for (path, name, _), side in zip(sides, SIDES, strict=True)]
    if all(are_tables):
        return arguments.columns  # type: ignore[no-any-return]
    refuses = path is not None and not any(are_tables) and (not of_detections or sides[0][0] is None)
    return arguments.columns._replace(tables=None) if are_tables[of_detections] or refuses else None


def _is_table(path: Path | Sequence[Path] | None, name: str, side: Side) -> bool:
    """Whether a path is a table, or several files, which may be tables."""
    if path is None:
        return False
    return not isinstance(path, Path) or "columns" in open_at(path, name, side=side).format.takes


def resolve_columns(arguments: argparse.Namespace) -> None:
    """Parse ``--columns`` once for all tables of a command."""
    if isinstance(arguments.columns, list):
        arguments.columns = column_map(arguments.columns, shared=True, name="--columns")


def _note(text: str) -> None:
    say(f"note: {text}", name="boxscore")


def _sizes_for(arguments: argparse.Namespace, *, of_detections: bool) -> dict[str, Path | None]:
    """Return the options for image sizes if the files need them; they apply to both inputs."""
    path, name, box_format = (
        (arguments.detections, arguments.dt_format, arguments.dt_box_format)
        if of_detections
        else (arguments.ground_truth, arguments.format, arguments.gt_box_format)
    )
    sources = {"image_sizes": arguments.image_sizes, "image_folder": arguments.image_folder}
    if sources["image_folder"] is not None:
        existing_folder(sources["image_folder"], name="--image-folder")
    if (
        not any(sources.values())
        or not isinstance(path, Path)
        or takes_sizes(path, SIDES[of_detections], name, box_format)
    ):
        return sources
    return dict.fromkeys(sources)


def _class_weights(text: str) -> Any:
    return extension("class_weights_of")(text)


def protocol_without_scores(arguments: argparse.Namespace) -> Protocol:
    """Return the protocol for detections without scores: the given one, or ``scoreless``."""
    if arguments.protocol is not None:
        from boxscore.protocols import without_scores

        return without_scores(chosen_protocol(arguments))
    return chosen_protocol(argparse.Namespace(**{**vars(arguments), "protocol": "scoreless"}))


def chosen_protocol(arguments: argparse.Namespace) -> Protocol:
    """Return the protocol in the arguments, with their changes."""
    # The named protocol, for the IoU type.
    protocol = load_protocol(arguments.protocol or DEFAULT_PROTOCOL)
    if arguments.iou_type is not None:
        from boxscore.protocols import protocol_of_type

        protocol = protocol_of_type(protocol, arguments.iou_type)
    # Options that change a single field.
    if arguments.detection_area is not None:
        ignore = protocol.ignore.replaced(detection_area=arguments.detection_area)
        protocol = protocol.replaced(ignore=ignore)
    if arguments.annotation_id_zero is not None:
        matching = protocol.matching.replaced(annotation_id_zero=arguments.annotation_id_zero)
        protocol = protocol.replaced(matching=matching)
    if (pixels := getattr(arguments, "pixels", None)) is not None:
        boxes = protocol.boxes.replaced(pixel_offset=PIXEL_OFFSETS[pixels])
        protocol = protocol.replaced(boxes=boxes)
    # Options that also change the summary.
    changes = {
        "max_detections": getattr(arguments, "caps", None),
        "iou_thresholds": arguments.iou_thresholds,
        "area_ranges": arguments.area_ranges,
        "score_threshold": getattr(arguments, "least_score", None),
        "class_weights": getattr(arguments, "class_weights", None),
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    protocol = _apply_changes(protocol, changes) if changes else protocol
    for option in given(further("evaluation"), arguments):
        protocol = loaded(option.changes)(protocol) if option.changes else protocol
    return protocol


def _apply_changes(protocol: Protocol, changes: dict[str, Any]) -> Protocol:
    """Apply changes to a protocol, given as parameters of ``changed_protocol``."""
    from boxscore.protocols.changing import area_ranges_of_text, changed_protocol, iou_thresholds_of_text

    read = {
        "iou_thresholds": iou_thresholds_of_text,
        "area_ranges": area_ranges_of_text,
        "class_weights": _class_weights,
    }
    return changed_protocol(
        protocol, **{name: read[name](value) if name in read else value for name, value in changes.items()}
    )


def evaluate_inputs(inputs: Inputs) -> Evaluation:
    """Evaluate the inputs."""
    return evaluate(
        inputs.ground_truth,
        inputs.detections,
        protocol=inputs.protocol,
        images=inputs.images,
        classes=inputs.classes,
        workers=inputs.workers,
        digest=False,  # commands that show it compute it later
    )
