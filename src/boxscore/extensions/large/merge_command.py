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
import contextlib
from pathlib import Path

from boxscore._utils.files import temporary_folder
from boxscore._utils.progress import progress
from boxscore.cli.arguments import OUTPUT, PER_CLASS, ROWS, SHOW, WORKERS, Option
from boxscore.cli.choices import existing_folder, readers
from boxscore.cli.output import evaluation_as, remembered_warnings, rows_of
from boxscore.cli.streams import show
from boxscore.distributed import merge
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.engine import Call
from boxscore.extensions.large.headers import headers_of
from boxscore.extensions.large.local import (
    LocalEngine,
    bytes_of_text,
    check_part_files,
    check_scoring,
    merging_within,
)
from boxscore.extensions.large.merging import check_shares
from boxscore.extensions.large.options import MEMORY_LIMIT, SCRATCH
from boxscore.extensions.large.parts import load_one_of, parts_in
from boxscore.extensions.large.plan import asked_keys
from boxscore.extensions.large.result import evaluation_of, warn_of_parts

OPTIONS = (
    Option(
        "parts",
        "part files; in the order of their detections if the protocol breaks ties by file order",
        kind=Path,
        many=True,
        positional=True,
        required=True,
        metavar="PART.npz",
    ),
    OUTPUT,
    PER_CLASS.but(help="also print the per-class table"),
    *ROWS,
    SHOW,
    MEMORY_LIMIT.but(
        help="merge class by class within this much memory, e.g. 8GB, with the parts on disk; fails "
        "immediately if they do not fit",
        key="",
    ),
    WORKERS.but(help="processes that score classes, with --memory-limit (default: 1)", key=""),
    SCRATCH.but(help="with --memory-limit: folder for temporary files (default: the system's)", key=""),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, merge, print; return the exit status."""
    rows = rows_of(arguments)
    with remembered_warnings() as messages, contextlib.ExitStack() as stack:
        if arguments.memory_limit is None:
            result: Evaluation = merge(progress(arguments.parts, desc="parts", unit="part"))
        else:
            result = _merged_on_disk(arguments, stack)
        text = evaluation_as(
            arguments.output, result, per_class=arguments.per_class, rows=rows, messages=messages
        )
    show(text)
    return 0


def _merged_on_disk(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> Evaluation:
    """Merge within a limit: load one part at a time, and no more classes than fit."""
    # Check all files before merging.
    scratch = existing_folder(arguments.scratch, name="--scratch")
    workers = 1 if arguments.workers is None else readers(arguments)
    counts = {path: parts_in(path) for path in dict.fromkeys(arguments.parts)}
    plan = merging_within(bytes_of_text(arguments.memory_limit), workers)
    check_part_files(counts, plan)
    # Load each part in a task of its own, even if a file has several.
    folder = stack.enter_context(temporary_folder(scratch))
    engine = stack.enter_context(LocalEngine(folder, workers))
    loading = [
        Call(f"part {number + 1} of {path}", load_one_of, (path, number))
        for path in arguments.parts
        for number in range(counts[path])
    ]
    parts = engine.held(loading, shown="parts")
    # Check the small headers; the parts stay on disk.
    headers = headers_of(engine, parts)
    check_shares(headers)
    warn_of_parts(headers)
    check_scoring(headers, plan)
    keys = asked_keys(headers[0].protocol)
    return evaluation_of(engine, parts, headers, most=plan.most, keys=keys, room=plan.room)
