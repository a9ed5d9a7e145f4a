"""Explain why two tools give two numbers, or find the tool that gave one.

Examples
--------
  boxscore explain --from ultralytics-old --to coco --gt instances.json --dt results.json
  boxscore explain --number 0.595 --gt instances.json --dt results.json
  boxscore explain --from voc2012 --ablation --gt VOC2007 --image-set test --dt results_dir
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from boxscore._utils.text import csv_table, json_text, markdown_table, text_table
from boxscore.cli._inputs import add_input_arguments, add_output_argument, evaluate_inputs, read_inputs
from boxscore.cli._tables import table_columns, table_rows
from boxscore.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_arguments", "run"]

DEFAULT_PROTOCOL = "coco"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser)
    add_output_argument(parser)
    parser.add_argument("--from", dest="first", metavar="TOOL", help="a tool, protocol or FILE.toml")
    parser.add_argument(
        "--to",
        dest="last",
        default="coco",
        metavar="TOOL",
        help="a tool, protocol or FILE.toml (default: coco)",
    )
    parser.add_argument("--number", metavar="X", help="search the known tools for this number")
    parser.add_argument(
        "--ablation", action="store_true", help="change one choice of --from at a time instead"
    )
    parser.add_argument("--iou", type=float, metavar="T", help="compare AP at this one threshold")


def run(arguments: argparse.Namespace) -> int:
    """Read, explain, print; return the exit status."""
    from boxscore.diagnostics import ablation, explain, find_number, tool_names

    if arguments.protocol != DEFAULT_PROTOCOL:
        raise InputError("explain", "be given --from and --to", got=f"--protocol {arguments.protocol}")
    if (arguments.first is None) == (arguments.number is None):
        raise InputError(
            "explain",
            "be given either --from TOOL or --number X",
            got="neither" if arguments.first is None else "both",
            cause=f"known tools: {', '.join(tool_names())}",
        )
    evaluation = evaluate_inputs(read_inputs(arguments))
    if evaluation.protocol.similarity != "box":
        raise InputError("explain", "compare boxes", got=f"--iou-type {arguments.iou_type}")
    tables = (evaluation.ground_truth, evaluation.detections)
    if arguments.number is not None:
        frame = find_number(*tables, arguments.number)
        _print(frame, arguments.output, f"Tools that give {arguments.number}, nearest first")
        return 0
    if arguments.ablation:
        frame = ablation(*tables, arguments.first, iou=arguments.iou)
        _print(frame, arguments.output, f"One choice of {arguments.first} changed at a time")
        return 0
    explanation = explain(*tables, arguments.first, arguments.last, iou=arguments.iou)
    if arguments.output == "json":
        print(json_text(explanation.as_dict()))
    else:
        _print(explanation.table, arguments.output, f"From {explanation.first} to {explanation.last}")
    return 0


def _print(frame: pd.DataFrame, output: str, title: str) -> None:
    if output == "json":
        print(json_text({"table": title, "rows": table_rows(frame)}))
    elif output == "csv":
        print(csv_table(table_columns(frame)), end="")
    elif output == "markdown":
        print(f"## {title}\n\n{markdown_table(table_columns(frame), digits=6)}")
    else:
        print(f"{title}\n\n{text_table(table_columns(frame), digits=6, longest=100)}")
