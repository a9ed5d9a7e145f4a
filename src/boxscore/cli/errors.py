"""Say what each kind of mistake costs in AP, after TIDE.

Examples
--------
  boxscore errors --gt instances.json --dt results.json
  boxscore errors --gt instances.json --dt results.json --per-class --output csv
  boxscore errors --gt instances.json --dt results.json --list --output csv
"""

from __future__ import annotations

import argparse

from boxscore.cli._inputs import add_input_arguments, add_output_argument, evaluate_inputs, read_inputs
from boxscore.cli._tables import print_table

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser)
    add_output_argument(parser)
    parser.add_argument("--iou", type=float, default=0.5, metavar="T", help="overlap of a hit (default: 0.5)")
    parser.add_argument(
        "--background-iou",
        type=float,
        default=0.1,
        metavar="T",
        help="overlap up to which a detection is of nothing (default: 0.1)",
    )
    parser.add_argument(
        "--absent-classes",
        default="skip",
        choices=["skip", "zero"],
        help="classes that are only detected: left out of the mean, or AP 0 as tidecv has it",
    )
    parser.add_argument("--per-class", action="store_true", help="add one row per class and kind")
    parser.add_argument("--list", action="store_true", help="list every error instead")


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import error_list, error_types

    evaluation = evaluate_inputs(read_inputs(arguments))
    iou, background_iou = arguments.iou, arguments.background_iou
    if arguments.list:
        listed = error_list(evaluation, iou_threshold=iou, background_iou=background_iou)
        frame = listed.printed_frame()
    else:
        costs = error_types(
            evaluation,
            iou_threshold=iou,
            background_iou=background_iou,
            absent_classes=arguments.absent_classes,
        )
        frame = costs.printed_frame() if arguments.per_class else costs.total_frame()
    print_table(frame, evaluation, arguments.output, title="Error types (TIDE)")
    return 0
