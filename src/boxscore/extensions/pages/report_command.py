"""Write a report: an HTML page that opens offline, the numbers as JSON, CSV and Markdown, tables and plots.

Examples
--------
  boxscore report instances_val2017.json results.json --report report --image-folder val2017
  boxscore report VOC2007 results_dir --image-set test --protocol voc2007 --report out --plots pdf
  boxscore report truth.parquet detections --memory-limit 2GB
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore.cli.arguments import INPUTS, OUTPUT
from boxscore.cli.inputs import evaluate_inputs, read_inputs
from boxscore.cli.output import evaluation_as, remembered_warnings
from boxscore.cli.streams import show
from boxscore.extensions.large.options import MEMORY_LIMIT
from boxscore.extensions.pages.options import REPORT, REPORT_CONTENT
from boxscore.extensions.pages.report_output import report_written, save_report
from boxscore.extensions.validation.digest_command import digest_of

OPTIONS = (
    *INPUTS,
    OUTPUT.but(key=""),
    REPORT.but(help="output folder", default=Path("boxscore-report"), group=""),
    MEMORY_LIMIT,
    *REPORT_CONTENT,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate and write; return the exit status."""
    if arguments.memory_limit is not None:
        return _run_in_parts(arguments)
    with remembered_warnings(hold_box_forms=not arguments.strict) as messages:
        evaluation = evaluate_inputs(read_inputs(arguments))
        digest = digest_of(evaluation, warned=messages)
    if arguments.strict:
        digest.refuse()
    save_report(evaluation, arguments, messages)
    show(evaluation_as(arguments.output, evaluation, messages=messages))
    report_written(arguments.report)
    digest.say()
    return 0


def _run_in_parts(arguments: argparse.Namespace) -> int:
    """Evaluate in partitions, and write while they are available."""
    from boxscore.extensions.large.command_line import DRAWN, evaluation_in_parts

    with remembered_warnings() as messages, evaluation_in_parts(arguments, drawn=DRAWN) as evaluation:
        save_report(evaluation, arguments, messages)
        text = evaluation_as(arguments.output, evaluation, messages=messages)
    show(text)
    report_written(arguments.report)
    return 0
