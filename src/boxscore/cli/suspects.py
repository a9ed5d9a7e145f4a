"""List confident detections that contradict the ground truth: labels to look at.

Examples
--------
  boxscore suspects --gt instances.json --dt results.json
  boxscore suspects --gt instances.json --dt results.json --minimum-score 0.7 --limit 50 --output csv
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
    parser.add_argument(
        "--minimum-score",
        "--min-score",
        type=float,
        default=0.5,
        metavar="S",
        help="detections below take no part (default: 0.5)",
    )
    parser.add_argument("--iou", type=float, default=0.5, metavar="T", help="overlap of a hit (default: 0.5)")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="rows (default: 100)")


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import label_suspects

    evaluation = evaluate_inputs(read_inputs(arguments))
    result = label_suspects(
        evaluation,
        score_threshold=arguments.minimum_score,
        iou_threshold=arguments.iou,
        limit=arguments.limit,
    )
    print_table(result.to_frame(), evaluation, arguments.output, title="Label suspects", digits=3)
    return 0
