"""Say whether a confidence of .8 means that four in five are right.

Examples
--------
  boxscore calibration --gt instances.json --dt results.json
  boxscore calibration --gt instances.json --dt results.json --bins 15 --minimum-score 0.05
  boxscore calibration --gt instances.json --dt results.json --reliability --output csv
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
    parser.add_argument("--bins", type=int, default=10, metavar="N", help="of confidence (default: 10)")
    parser.add_argument(
        "--binning",
        default="width",
        choices=["width", "count"],
        help="bins of equal width, or of equally many detections (default: width)",
    )
    parser.add_argument(
        "--minimum-score",
        "--min-score",
        type=float,
        default=0.0,
        metavar="S",
        help="detections below take no part (default: 0.0)",
    )
    parser.add_argument("--reliability", action="store_true", help="print every bin instead")


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import calibration_error, reliability

    evaluation = evaluate_inputs(read_inputs(arguments))
    function = reliability if arguments.reliability else calibration_error
    result = function(
        evaluation,
        bins=arguments.bins,
        binning=arguments.binning,
        score_threshold=arguments.minimum_score,
        iou_threshold=arguments.iou,
        area=arguments.area,
    )
    print_table(result.printed_frame(), evaluation, arguments.output, title="Calibration")
    return 0
