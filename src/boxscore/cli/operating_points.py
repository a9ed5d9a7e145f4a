"""Find the confidence threshold to use: the best F-score, or a wanted precision or recall.

Examples
--------
  boxscore operating-points --gt instances.json --dt results.json
  boxscore operating-points --gt instances.json --dt results.json --at-score 0.5
  boxscore operating-points --gt instances.json --dt results.json --at-precision 0.9 --output csv
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
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--at-score", type=float, metavar="S", help="what this threshold gives")
    ways.add_argument("--at-precision", type=float, metavar="P", help="lowest threshold of this precision")
    ways.add_argument("--at-recall", type=float, metavar="R", help="highest threshold of this recall")
    ways.add_argument("--curve", action="store_true", help="every threshold that occurs")
    parser.add_argument(
        "--beta", type=float, default=1.0, help="weight of recall in the F-score (default: 1)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import confidence_curve, operating_points

    evaluation = evaluate_inputs(read_inputs(arguments))
    options = {"iou_threshold": arguments.iou, "area": arguments.area, "beta": arguments.beta}
    if arguments.curve:
        frame = confidence_curve(evaluation, **options).printed_frame()
    else:
        frame = operating_points(
            evaluation,
            at_score=arguments.at_score,
            at_precision=arguments.at_precision,
            at_recall=arguments.at_recall,
            **options,
        ).printed_frame()
    print_table(frame, evaluation, arguments.output, title="Operating points")
    return 0
