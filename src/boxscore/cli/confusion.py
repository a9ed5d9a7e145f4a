"""Show what each class was taken for, with background as a class of its own.

Examples
--------
  boxscore confusion --gt instances.json --dt results.json --minimum-score 0.25
  boxscore confusion --gt instances.json --dt results.json --normalise truth --output csv
  boxscore confusion --gt instances.json --dt results.json --top 20
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
    parser.add_argument("--iou", type=float, default=0.5, metavar="T", help="least overlap (default: 0.5)")
    parser.add_argument(
        "--minimum-score",
        "--min-score",
        type=float,
        default=0.25,
        metavar="S",
        help="detections below take no part (default: 0.25)",
    )
    parser.add_argument(
        "--assign",
        default="score",
        choices=["score", "iou"],
        help="who chooses first: the surest detection, or the pair that overlaps most (default: score)",
    )
    parser.add_argument(
        "--normalise", default="none", choices=["none", "truth", "predicted", "all"], help="shares of what"
    )
    parser.add_argument(
        "--top", type=int, metavar="N", help="list the N largest confusions with their images instead"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import confusion_matrix, top_confusions

    evaluation = evaluate_inputs(read_inputs(arguments))
    options = {
        "iou_threshold": arguments.iou,
        "score_threshold": arguments.minimum_score,
        "assign": arguments.assign,
    }
    if arguments.top is not None:
        frame = top_confusions(evaluation, limit=arguments.top, **options).to_frame()
    else:
        matrix = confusion_matrix(evaluation, normalise=arguments.normalise, **options)
        frame = matrix.to_frame().reset_index()
    print_table(frame, evaluation, arguments.output, title="Confusion (rows: truth)", digits=3)
    return 0
