"""Bound every AP over the orders of equally scored detections.

Examples
--------
  boxscore ties --gt instances.json --dt results.json
  boxscore ties --gt instances.json --dt results.json --metrics AP --per-class
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
    parser.add_argument("--metrics", nargs="+", metavar="NAME", help="only these, e.g. AP AP50")
    parser.add_argument("--per-class", action="store_true", help="add one row per class")


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import tie_bounds

    evaluation = evaluate_inputs(read_inputs(arguments))
    bounds = tie_bounds(evaluation, metrics=arguments.metrics)
    frame = bounds.printed_frame() if arguments.per_class else bounds.total_frame()
    print_table(frame, evaluation, arguments.output, title="Ties", digits=6)
    return 0
