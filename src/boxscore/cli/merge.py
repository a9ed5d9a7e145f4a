"""Combine parts that were saved separately, each of different images, into one result of all images.

A part is what boxscore evaluate --save-part, Evaluation.save_part or Evaluator.save_part writes: on every
rank of a training run, on every machine, for every day of data. The numbers are those of one evaluation, to
the last digit.

Examples
--------
  boxscore merge rank*.npz
  boxscore merge monday.npz tuesday.npz --per-class --output week.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore._utils.progress import progress
from boxscore.cli.arguments import OUTPUT, PER_CLASS, ROWS, Option
from boxscore.cli.output import evaluation_as, remembered_warnings, rows_of
from boxscore.cli.streams import show
from boxscore.distributed import load_part, merge

OPTIONS = (
    Option(
        "parts",
        "the parts, in the order of their detections if the protocol breaks ties by it",
        kind=Path,
        many=True,
        positional=True,
        required=True,
        metavar="PART.npz",
    ),
    OUTPUT,
    PER_CLASS.but(help="print the per-class table as well"),
    *ROWS,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, merge, print; return the exit status."""
    rows = rows_of(arguments)
    with remembered_warnings() as messages:
        result = merge([load_part(path) for path in progress(arguments.parts, desc="parts", unit="part")])
        text = evaluation_as(
            arguments.output, result, per_class=arguments.per_class, rows=rows, messages=messages
        )
    show(text)
    return 0
