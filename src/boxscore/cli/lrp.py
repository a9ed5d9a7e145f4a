"""Print localisation-recall-precision errors: one number for how many and how well placed.

Examples
--------
  boxscore lrp --gt instances.json --dt results.json
  boxscore lrp --gt instances.json --dt results.json --at-score 0.5
"""

from __future__ import annotations

import argparse

from boxscore.cli._inputs import add_input_arguments, add_output_argument, evaluate_inputs, read_inputs
from boxscore.cli._tables import add_area_arguments, print_table

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser)
    add_output_argument(parser)
    add_area_arguments(parser)
    parser.add_argument(
        "--at-score", type=float, metavar="S", help="at this threshold, not at each class's best"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import localisation_recall_precision

    evaluation = evaluate_inputs(read_inputs(arguments))
    result = localisation_recall_precision(
        evaluation, iou_threshold=arguments.iou, area=arguments.area, at_score=arguments.at_score
    )
    print_table(result.printed_frame(), evaluation, arguments.output, title="Localisation-recall-precision")
    return 0
