"""Write a report: an HTML page that opens offline, the numbers as JSON, CSV and Markdown, tables and plots.

Examples
--------
  boxscore report --gt instances_val2017.json --dt results.json --report report --image-folder val2017
  boxscore report --gt VOC2007 --image-set test --dt results_dir --protocol voc2007 --report out --plots pdf
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from boxscore.cli._inputs import add_input_arguments, evaluate_inputs, read_inputs
from boxscore.cli._report import add_report_arguments, remembered_warnings, save_report
from boxscore.reports import text

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser)
    parser.add_argument(
        "--report",
        "-o",
        type=Path,
        default=Path("boxscore-report"),
        metavar="DIR",
        help="where to",
    )
    add_report_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, write; return the exit status."""
    with remembered_warnings() as messages:
        evaluation = evaluate_inputs(read_inputs(arguments))
    save_report(evaluation, arguments, messages)
    print(text.as_text(evaluation))
    print(f"report written to {arguments.report}", file=sys.stderr)
    return 0
