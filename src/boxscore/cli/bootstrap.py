"""Say how sure every number is: intervals over resampled images.

Examples
--------
  boxscore bootstrap --gt instances.json --dt results.json --resamples 1000
  boxscore bootstrap --gt instances.json --dt results.json --metrics AP AP50 --per-class
"""

from __future__ import annotations

import argparse

from boxscore.cli._inputs import add_input_arguments, add_output_argument, evaluate_inputs, read_inputs
from boxscore.cli._tables import add_resampling_arguments, print_table

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser)
    add_output_argument(parser)
    add_resampling_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    from boxscore.diagnostics import bootstrap_intervals

    evaluation = evaluate_inputs(read_inputs(arguments))
    result = bootstrap_intervals(
        evaluation,
        resamples=arguments.resamples,
        confidence=arguments.confidence,
        method=arguments.method,
        seed=arguments.seed,
        metrics=arguments.metrics,
        progress=True,
    )
    frame = result.printed_frame() if arguments.per_class else result.total_frame()
    print_table(frame, evaluation, arguments.output, title="Bootstrap over images")
    return 0
