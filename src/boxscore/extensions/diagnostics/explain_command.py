"""Explain why two tools give different numbers, or find the tool that produced a number.

Without options, print the numbers of all known tools for these files.

Examples
--------
  boxscore explain instances.json results.json
  boxscore explain instances.json results.json --from ultralytics-old --to coco
  boxscore explain instances.json results.json --number 0.595
  boxscore explain VOC2007 results_dir --image-set test --from voc2012 --ablation
  boxscore explain boxes.csv predictions.csv --image-labels labels.csv --hierarchy hierarchy.json
  ... --from openimages-challenge --expansions
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from boxscore.cli.arguments import OUTPUT, SHOW, Option, inputs_beside
from boxscore.cli.inputs import evaluate_inputs, ground_truth_arguments, read_inputs
from boxscore.cli.output import Section, written
from boxscore.cli.streams import say, show
from boxscore.data.unlisted import listing
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.diagnostics._tools import tool_of
from boxscore.extensions.federated.image_label_files import read_hierarchy
from boxscore.extensions.shell.frames import table_columns, table_rows
from boxscore.formats.reading import read_ground_truth, read_options
from boxscore.similarity.registry import needs_of

if TYPE_CHECKING:
    import pandas as pd

_OPTIONS = (
    Option("from", "tool, protocol or FILE.toml", variable="first", metavar="TOOL"),
    Option("to", "tool, protocol or FILE.toml", default="coco", variable="last", metavar="TOOL"),
    Option("number", "find the tools that give this number", metavar="X"),
    Option("ablation", "change one rule of --from at a time instead", kind=bool, default=False),
    Option(
        "expansions",
        "evaluate with --from, with and without expanding classes along --hierarchy",
        kind=bool,
        default=False,
    ),
    Option("iou-threshold", "compare AP at this IoU threshold only", kind=float, metavar="T", short="--iou"),
    SHOW,
)

_OF_REGIONS = ("inside", "outside")

OPTIONS = (
    *(option for option in inputs_beside(_OPTIONS) if option.name not in _OF_REGIONS),
    OUTPUT,
    *_OPTIONS,
)

WITHOUT = {
    "--memory-limit": "needs all detections in memory, because each step between two tools matches the "
    "boxes again",
    **{
        f"--{name}": "compares tools that score whole images; see boxscore evaluate --help"
        for name in _OF_REGIONS
    },
}


def run(arguments: argparse.Namespace) -> int:
    """Read, explain and print; return the exit status."""
    from boxscore.diagnostics import ablation, explain, find_number, tool_names
    from boxscore.extensions.diagnostics._tools import tool_of

    # Explain the difference between two tools, find the tools that give a number, or list what each gives.
    if arguments.protocol is not None:
        raise InputError("explain does not take --protocol. Name two tools or protocols: --from A --to B.")
    if arguments.first is not None and arguments.number is not None:
        raise InputError(
            "explain needs either --from TOOL or --number X, for example --from voc2007 --to coco. boxscore "
            "protocols lists the tools."
        )
    if arguments.first is None and arguments.ablation:
        cause = f"known tools: {', '.join(tool_names())}"
        raise InputError("--ablation", "be given with --from TOOL", got="no --from", cause=cause)
    if arguments.expansions:
        return _expansions(arguments)
    # The tools decide which data are read, such as masks.
    named = [arguments.first] if arguments.ablation else [arguments.first, arguments.last]
    tools = [] if arguments.first is None else [tool_of(name, None).protocol for name in named]
    evaluation = evaluate_inputs(read_inputs(arguments, *tools))
    if evaluation.protocol.similarity != "box":
        raise InputError(
            "explain",
            "compare tools of that similarity, such as --from lvis-segm --to lvis-boundary",
            got=f"--iou-type {arguments.iou_type}",
        )
    # Each mode prints one table.
    tables = (evaluation.ground_truth, evaluation.detections)
    if arguments.number is None and arguments.first is None:
        _print_every_tool(evaluation, arguments)
        return 0
    if arguments.number is not None:
        frame = find_number(*tables, arguments.number)
        _print(frame, arguments.output, f"Tools that give {arguments.number}, nearest first")
        return 0
    # Change one choice at a time, or go from one tool to the other.
    if arguments.ablation:
        frame = ablation(*tables, arguments.first, iou=arguments.iou_threshold)
        _print(frame, arguments.output, f"{arguments.first} with one rule changed at a time")
        return 0
    explanation = explain(*tables, arguments.first, arguments.last, iou=arguments.iou_threshold)
    title = f"From {explanation.first} to {explanation.last}"
    _print(explanation.table, arguments.output, title, value=explanation.as_dict())
    return 0


def _print_every_tool(evaluation: Evaluation, arguments: argparse.Namespace) -> None:
    """Print the AP of every known tool, nearest to the last tool's AP first, and suggest a command."""
    from boxscore.diagnostics import find_number

    tables = (evaluation.ground_truth, evaluation.detections)
    last = tool_of(arguments.last, None).protocol
    number = next(iter(evaluate(*tables, protocol=last, digest=False).metrics.values()))
    frame = find_number(*tables, 0.0 if number != number else number)
    # Tools with several metrics are compared by AP over all their IoU thresholds.
    frame = frame[(frame["metric"] == "AP") | ~frame["tool"].isin(frame[frame["metric"] == "AP"]["tool"])]
    frame = frame.drop_duplicates("tool").drop(columns="found").reset_index(drop=True)
    _print(
        frame,
        arguments.output,
        f"AP of every known tool on these files, nearest to {arguments.last} first",
    )
    far = frame["tool"].iloc[-1]
    say(f"Why two tools differ: boxscore explain GT DT --from {far} --to {arguments.last}")


def _expansions(arguments: argparse.Namespace) -> int:
    """Score the data as given and expanded."""
    from boxscore.diagnostics import expansions

    if arguments.first is None or arguments.hierarchy is None:
        raise InputError(
            "--expansions",
            "be used together with --from PROTOCOL and --hierarchy FILE.json",
            got="no --from" if arguments.first is None else "no --hierarchy",
        )
    # Read the data expanded along the hierarchy, and the ground truth also unexpanded.
    protocol = tool_of(arguments.first, None).protocol
    wide = read_inputs(arguments, protocol)
    path, arguments.hierarchy = arguments.hierarchy, None
    given = {**ground_truth_arguments(arguments), **needs_of(protocol)}
    given |= {"note": _skip_note, "needs_areas": False}
    # Both have the same classes, so that only the expansion differs.
    narrow = read_ground_truth(arguments.ground_truth, read_options(**given))
    narrow = listing(narrow, [wide.detections])
    frame = expansions(narrow, wide.detections, read_hierarchy(path), protocol)
    _print(frame, arguments.output, f"{arguments.first} with and without the hierarchy")
    return 0


def _skip_note(text: str) -> None:
    """Skip a note on the ground truth: it was printed when it was first read."""


def _print(frame: pd.DataFrame, form: str, title: str, *, value: dict[str, Any] | None = None) -> None:
    value = value or {"table": title, "rows": table_rows(frame)}
    show(written(form, [Section(title, table_columns(frame), digits=6)], value=value, longest=100))
