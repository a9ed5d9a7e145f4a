"""Read and evaluate the detections of several detectors, for commands that compare them."""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore._utils.text import short_list
from boxscore.cli.choices import readers
from boxscore.cli.inputs import (
    Inputs,
    chosen_protocol,
    detection_arguments,
    evaluate_inputs,
    protocol_without_scores,
    read_inputs,
    resolve_columns,
)
from boxscore.data.tables import Detections
from boxscore.data.unlisted import listing
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.formats.reading import read_detections, read_options
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import needs_of


def with_detections(path: Path, arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments with one file of detections."""
    return argparse.Namespace(**{**vars(arguments), "detections": path})


def evaluate_each(paths: list[Path], arguments: argparse.Namespace) -> list[Evaluation]:
    """Read the ground truth once, and evaluate each."""
    resolve_columns(arguments)
    first = read_inputs(with_detections(paths[0], arguments))
    tables = [first.detections, *(read_others(path, first, arguments) for path in paths[1:])]
    truth = listing(first.ground_truth, tables)
    return [
        evaluate_inputs(
            first._replace(
                ground_truth=truth, detections=table, protocol=_protocol_for(table, first, arguments)
            )
        )
        for table in tables
    ]


def _protocol_for(table: Detections, first: Inputs, arguments: argparse.Namespace) -> Protocol:
    """Return the protocol of one of several files, which may have scores although the first lacks them."""
    if table.scored == first.detections.scored or getattr(arguments, "scoreless", False):
        return first.protocol
    return chosen_protocol(arguments) if table.scored else protocol_without_scores(arguments)


def read_others(path: Path, inputs: Inputs, arguments: argparse.Namespace) -> Detections:
    """Read the detections of another detector, for the images that were read."""
    # These depend on the file's format.
    said = detection_arguments(with_detections(path, arguments))
    options = read_options(**said, **needs_of(inputs.protocol), processes=readers(arguments))
    return read_detections(path, inputs.ground_truth, options)


def detector_names(paths: list[Path], given: list[str] | None) -> list[str]:
    """Return the given names; else unique file names without extension, else paths, else numbers."""
    if given is not None:
        if len(given) != len(paths):
            raise InputError("--names", f"name each of the {len(paths)} detectors", got=len(given))
        if not all(name.strip() for name in given):
            raise InputError("--names", "not be empty", got=short_list(map(repr, given)))
        if len(set(given)) != len(given):
            raise InputError("--names", "differ", got=short_list(given))
        return given
    for names in ([path.stem for path in paths], [str(path) for path in paths]):
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, start=1)]
