"""Run a configuration file: the arguments of ``boxscore evaluate``, kept in TOML.

Paths in the file are relative to the file. See configs/ for examples.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore.cli import evaluate
from boxscore.errors import InputError, ProtocolError
from boxscore.formats import format_names
from boxscore.protocols import IOU_TYPES, load_protocol, read_toml

__all__ = ["add_arguments", "known_keys", "read_config", "run"]

_KEYS: dict[str, tuple[str, ...]] = {
    "ground_truth": ("path", "format", "image_set"),
    "detections": ("path",),
    "evaluation": ("protocol", "iou_type", "detection_area", "classes", "images", "workers"),
    "output": (
        *("form", "per_class", "report", "verify", "digest"),
        *("title", "image_folder", "tables", "plots", "gallery", "resamples"),
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    parser.add_argument("config", type=Path, help="a TOML file, such as configs/shapes-coco.toml")


def run(arguments: argparse.Namespace) -> int:
    """Run the file; return the exit status."""
    return evaluate.run(read_config(arguments.config))


def read_config(path: Path) -> argparse.Namespace:
    """Read a run configuration into the arguments of ``boxscore evaluate``.

    Raises
    ------
    ProtocolError
        When a key is unknown or missing, or has a value of the wrong kind.
    """
    try:
        return _read_config(path)
    except InputError as error:
        text = str(error)
        raise ProtocolError(text if text.startswith(f"{path}: ") else f"{path}: {text}") from None


def _read_config(path: Path) -> argparse.Namespace:
    config = read_toml(path)
    for table, values in config.items():
        if table not in _KEYS:
            raise ProtocolError(checks.unknown_key(table, table, _KEYS))
        if not isinstance(values, dict):
            raise ProtocolError(table, "be a table", got=repr(values))
        for key in values:
            if key not in _KEYS[table]:
                raise ProtocolError(checks.unknown_key(f"{table}.{key}", key, _KEYS[table]))

    def value(table: str, key: str, kind: type, default: Any = None) -> Any:
        found = config.get(table, {}).get(key, default)
        if found is not default and not (
            isinstance(found, kind) and (kind is bool or not isinstance(found, bool))
        ):
            wanted = {str: "a string", bool: "true or false", int: "a whole number", list: "a list"}[kind]
            raise ProtocolError(f"{table}.{key}", f"be {wanted}", got=repr(found))
        return found

    def required(table: str) -> Path:
        found: str | None = value(table, "path", str)
        if found is None:
            raise ProtocolError(f"{table}.path", "be given", got="none")
        return Path(os.path.normpath(path.parent / found))

    def choice(key: str, known: Sequence[str]) -> str | None:
        found: str | None = value("evaluation", key, str)
        return None if found is None else checks.one_of(found, known, name=f"evaluation.{key}")

    protocol = value("evaluation", "protocol", str, "coco")
    if not protocol.endswith(".toml"):
        load_protocol(protocol)
    image_set = value("ground_truth", "image_set", str)
    report, image_folder = value("output", "report", str), value("output", "image_folder", str)
    tables, plots = value("output", "tables", str), value("output", "plots", str)
    return argparse.Namespace(
        ground_truth=required("ground_truth"),
        detections=required("detections"),
        format=checks.one_of(
            value("ground_truth", "format", str, "auto"), format_names(), name="ground_truth.format"
        ),
        image_set=str(path.parent / image_set) if image_set and image_set.endswith(".txt") else image_set,
        protocol=str(path.parent / protocol) if protocol.endswith(".toml") else protocol,
        iou_type=choice("iou_type", tuple(IOU_TYPES)),
        detection_area=choice("detection_area", ("box", "mask", "box_or_mask")),
        classes=_texts(value("evaluation", "classes", list)),
        images=_texts(value("evaluation", "images", list)),
        workers=value("evaluation", "workers", int),
        output=checks.one_of(
            value("output", "form", str, "text"), ("text", "json", "csv", "markdown"), name="output.form"
        ),
        per_class=value("output", "per_class", bool, False),
        report=Path(os.path.normpath(path.parent / report)) if report else None,
        verify=value("output", "verify", bool, False),
        digest=value("output", "digest", bool, True),
        title=value("output", "title", str, ""),
        image_folder=Path(os.path.normpath(path.parent / image_folder)) if image_folder else None,
        tables=tables and checks.one_of(tables, ("parquet", "json", "csv"), name="output.tables"),
        plots=plots and checks.one_of(plots, ("png", "svg", "pdf"), name="output.plots"),
        gallery=value("output", "gallery", int, 48),
        resamples=value("output", "resamples", int),
    )


def _texts(values: list[Any] | None) -> list[str] | None:
    return None if values is None else [str(value) for value in values]


def known_keys() -> Mapping[str, tuple[str, ...]]:
    """Every key that a run configuration may have, by table."""
    return _KEYS
