"""Write a report: an HTML page that opens offline, the numbers as JSON, CSV and Markdown, tables and plots.

Examples
--------
  boxscore report --gt instances_val2017.json --dt results.json --report report --image-folder val2017
  boxscore report --gt VOC2007 --image-set test --dt results_dir --protocol voc2007 --report out --plots pdf
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore.cli.arguments import INPUTS, REPORT, REPORT_CONTENT
from boxscore.cli.inputs import evaluate_inputs, read_inputs
from boxscore.cli.output import remembered_warnings, save_report
from boxscore.cli.streams import say, show
from boxscore.reports.text import as_text

__all__ = ["OPTIONS", "run"]


OPTIONS = (*INPUTS, REPORT.but(help="where to", short="-o", default=Path("boxscore-report")), *REPORT_CONTENT)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, write; return the exit status."""
    with remembered_warnings() as messages:
        evaluation = evaluate_inputs(read_inputs(arguments))
    save_report(evaluation, arguments, messages)
    show(as_text(evaluation))
    say(f"report written to {arguments.report}")
    return 0
