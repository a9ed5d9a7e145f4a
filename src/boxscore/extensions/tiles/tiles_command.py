"""Merge detections in tiles of large images, and compare AP on tiles with AP on whole images.

The ground truth is of the whole images. Names of tiles contain their positions: <image>_<x1>_<y1>_<x2>_<y2>
(SAHI) or <image>__<scale>__<x>___<y> (DOTA, mmrotate, ultralytics). If the detections only have the ids of
tiles, --tiles names the file that lists the tiles.

AP on tiles measures the network alone: objects are cut, and an object in the overlap of two tiles counts
twice. AP on images measures what users get, and depends on how detections are merged.

Examples
--------
  boxscore tiles instances.json detections.csv
  boxscore tiles instances.json results.json --tiles tiles.json --max-detections 1 10 500
  boxscore tiles instances.json results.json --tiles tiles.json --method greedy-nmm --overlap ios
  boxscore tiles instances.json results.json --tiles tiles.json --save merged.json --save-tiles cut.json
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils.given_paths import path_of
from boxscore._utils.text import Columns, counted
from boxscore.cli.arguments import OUTPUT, SHOW, Option, inputs_beside
from boxscore.cli.choices import chosen_classes, readers
from boxscore.cli.inputs import chosen_protocol, detection_arguments, ground_truth_arguments
from boxscore.cli.output import Section, written
from boxscore.cli.sockets import without
from boxscore.cli.streams import say, show
from boxscore.data.tables import GroundTruth
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.data_tools.converting import save_as, writable
from boxscore.extensions.tiles.merging import METHODS
from boxscore.extensions.tiles.names import sizes_in_names
from boxscore.extensions.tiles.scores import MERGED, SHIFTED, TILES, WITH_WHOLE, TileScores, tile_scores
from boxscore.formats.image_sizes import ImageSizes
from boxscore.formats.reading import (
    FileOptions,
    read_detections,
    read_ground_truth,
    read_listed,
    read_options,
)
from boxscore.formats.registry import open_at, options_of
from boxscore.similarity.registry import needs_of

_OPTIONS = (
    Option(
        "tiles",
        "file that lists the tiles with their names; its objects, if any, are those of the tiles",
        kind=Path,
        metavar="FILE",
    ),
    Option(
        "whole", "detections on the whole images, to merge with those in tiles", kind=Path, metavar="FILE"
    ),
    Option("method", "one of nms, nmm, greedy-nmm", default="nms", choices=METHODS["sahi"], metavar="NAME"),
    Option(
        "tool", "merge as sahi or supervision does", default="sahi", choices=tuple(METHODS), metavar="NAME"
    ),
    Option(
        "overlap",
        "divide the intersection by the union (iou) or by the smaller box (ios)",
        default="iou",
        choices=("iou", "ios"),
        metavar="iou|ios",
    ),
    Option(
        "iou-threshold",
        "merge boxes whose overlap reaches this",
        kind=float,
        default=0.5,
        metavar="T",
        short="--iou",
    ),
    Option("class-agnostic", "merge all classes together", kind=bool, default=False),
    Option(
        "min-area-ratio",
        "smallest part of an object that counts in a tile, where this command cuts the ground truth",
        kind=float,
        default=0.1,
        metavar="R",
    ),
    Option(
        "tile-size",
        "side, or width and height, of tiles whose names do not say it",
        kind=float,
        many=True,
        metavar="PIXELS",
    ),
    Option("save", "write the merged detections to this file", kind=Path, metavar="FILE", writes=(".",)),
    Option(
        "save-tiles", "write the objects of the tiles to this file", kind=Path, metavar="FILE", writes=(".",)
    ),
    SHOW,
)

_OF_WHOLE_RUNS = ("images", "scoreless", "inside", "outside")

OPTIONS = (
    *(option for option in inputs_beside(_OPTIONS) if option.name not in _OF_WHOLE_RUNS),
    OUTPUT,
    *_OPTIONS,
)

WITHOUT = {
    "--memory-limit": "needs all detections in memory, because it merges the tiles of an image",
    **without("evaluation", "also scores tiles; --save merged.json, then boxscore evaluate takes regions"),
}


def run(arguments: argparse.Namespace) -> int:
    """Read, merge, score and print; return the exit status."""
    side = arguments.tile_size
    if side is not None and (len(side) > 2 or not all(0 < length < np.inf for length in side)):
        raise InputError("--tile-size", "be one or two numbers above 0", got=" ".join(f"{n:g}" for n in side))
    for name, path in (("--save", arguments.save), ("--save-tiles", arguments.save_tiles)):
        if path is not None:
            writable(path, name=name)
    protocol = chosen_protocol(arguments)
    needs: dict[str, Any] = {**needs_of(protocol), "processes": readers(arguments)}
    truth = read_ground_truth(
        arguments.ground_truth, read_options(**ground_truth_arguments(arguments), **needs)
    )
    # Detections are read for the tiles that are listed, or else for those that they name.
    how: dict[str, Any] = detection_arguments(arguments)
    if arguments.tiles is not None:
        tiles = read_ground_truth(arguments.tiles, read_options(**needs))
        table = read_detections(arguments.detections, tiles, read_options(**how, **needs))
    else:
        tiles = None
        nothing = GroundTruth.from_arrays([], [], np.empty((0, 4)), images=[], categories=truth.categories)
        listed = read_options(**{**how, "unlisted_images": "background"}, **needs)
        opened = open_at(path_of(arguments.detections), listed.format, side="detections")
        if "image_sizes" in options_of(opened.format, of_detections=True):
            listed = _with_tile_sizes(listed, opened.data, side)
        with warnings.catch_warnings():  # every tile is unlisted
            warnings.simplefilter("ignore", BoxscoreWarning)
            table = read_listed(opened, nothing, listed)[1]
    whole = None
    if arguments.whole is not None:
        whole = read_detections(arguments.whole, truth, read_options(**how, **needs))
    scores = tile_scores(
        truth,
        table,
        tiles=tiles,
        whole_detections=whole,
        protocol=protocol,
        classes=chosen_classes(arguments.classes, truth.categories, arguments.exclude_classes),
        tile_size=None if side is None else (side[0], side[-1]),
        **{
            name: getattr(arguments, name)
            for name in ("iou_threshold", "method", "tool", "overlap", "class_agnostic", "min_area_ratio")
        },
    )
    columns = scores.columns()
    reasons: Columns = {
        "reason": list(scores.reasons),
        "count": [count for count, _ in scores.reasons.values()],
        "of": [of for _, of in scores.reasons.values()],
    }
    classes = "all classes together" if arguments.class_agnostic else "each class alone"
    above = ">" if (arguments.tool, arguments.method) == ("supervision", "nms") else ">="
    merging = (
        f"{arguments.method} of {arguments.tool}, {arguments.overlap} {above} {arguments.iou_threshold:g}"
    )
    sections = [
        Section(
            "AP on tiles and on whole images",
            columns,
            _conclusion(scores) + f"merged: {merging}, {classes}.",
            first_out=tuple(list(columns)[:6:-1]),
        ),
        Section("Why they differ", reasons),
    ]
    signature = next(iter(scores.evaluations.values())).signature
    show(
        written(
            arguments.output, sections, value=scores.as_dict(), table=columns, footer=signature, longest=60
        )
    )
    for path, result, what in (
        (arguments.save, scores.merged, "merged detection"),
        (arguments.save_tiles, scores.cut, "object"),
    ):
        if path is not None:
            save_as(result, path)
            say(f"{counted(len(result), what)} written to {path}")
    return 0


def _with_tile_sizes(options: FileOptions, path: Path, side: Sequence[float] | None) -> FileOptions:
    """Add the sizes of tiles, from the names of their files, for boxes that are fractions of a tile."""
    named = sizes_in_names(file.stem for file in path.rglob("*.txt")) if path.is_dir() else {}
    every = None if side is None else (side[0], side[-1])
    if not named and every is None:
        return options
    given = options.image_sizes or ImageSizes({})
    sizes = ImageSizes({**named, **given.named}, given.every or every, given.source)
    return dataclasses.replace(options, image_sizes=sizes)


def _conclusion(scores: TileScores) -> str:
    """Say how the first metric on tiles relates to that on whole images."""
    name = next(iter(scores.evaluations[TILES].metrics))
    values = {row: result.metrics[name] for row, result in scores.evaluations.items()}
    whole = f" ({values[WITH_WHOLE]:.4f} with whole images)" if WITH_WHOLE in values else ""
    return (
        f"{name} is {values[MERGED]:.4f} on images{whole}, {values[TILES]:.4f} on tiles; merging changes "
        f"{values[SHIFTED]:.4f} by {values[MERGED] - values[SHIFTED]:+.4f}.\n"
    )
