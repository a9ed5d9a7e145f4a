"""Score parts of the data: by size, shape, crowdedness, or a column of images or annotations.

Examples
--------
  boxscore slices --gt instances.json --dt results.json --by size
  boxscore slices --gt instances.json --dt results.json --by camera
  boxscore slices --gt instances.json --dt results.json --by relative_size --bins 0 0.01 0.1 1
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
        "--by",
        required=True,
        metavar="WHAT",
        help="size, relative_size, aspect_ratio, crowdedness, or a column of images or annotations",
    )
    parser.add_argument(
        "--bins",
        nargs="+",
        type=float,
        metavar="EDGE",
        help="ascending edges; a single whole number makes as many slices of equal counts",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import slice_scores

    evaluation = evaluate_inputs(read_inputs(arguments))
    bins: int | list[float] | None = arguments.bins
    if arguments.bins and len(arguments.bins) == 1 and arguments.bins[0].is_integer():
        bins = int(arguments.bins[0])
    frame = slice_scores(evaluation, by=arguments.by, bins=bins).printed_frame()
    print_table(frame, evaluation, arguments.output, title=f"Slices by {arguments.by}")
    return 0
