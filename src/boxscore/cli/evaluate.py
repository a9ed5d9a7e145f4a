"""Score detections against ground truth.

Examples
--------
  boxscore evaluate instances_val2017.json results.json
  boxscore evaluate VOC2007 results --image-set test --protocol voc2007
  boxscore evaluate instances.json results.json --report report --per-class
  boxscore evaluate instances.json results.json --output result.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boxscore.cli.arguments import (
    ALLOW,
    CHECKS,
    CLUSTER,
    INPUTS,
    LARGE,
    MEMORY_LIMIT,
    OUTPUT,
    PER_CLASS,
    REPORT,
    REPORT_CONTENT,
    ROWS,
    Option,
)
from boxscore.cli.inputs import chosen_protocol, evaluate_inputs, may_be_elsewhere, read_inputs
from boxscore.cli.output import Digest, evaluation_as, refuse_errors, remembered_warnings, rows_of
from boxscore.cli.sockets import extension
from boxscore.cli.streams import say, show
from boxscore.errors import VerificationError

if TYPE_CHECKING:
    from boxscore.evaluation import Evaluation

OPTIONS = (
    *INPUTS,
    OUTPUT,
    PER_CLASS.but(help="print the per-class table as well"),
    *ROWS,
    REPORT,
    MEMORY_LIMIT,
    Option(
        "shard",
        "evaluate one of N shares of the images alone, 1/N to N/N; of Parquet no more is read",
        metavar="K/N",
        key="evaluation.shard",
        topic=LARGE,
    ),
    Option(
        "save-part",
        "also save the evaluation of these images as a part, an .npz file, which boxscore merge combines "
        "with others",
        kind=Path,
        metavar="FILE.npz",
        key="output.save_part",
        writes=(".",),
        topic=LARGE,
    ),
    *CLUSTER,
    Option(
        "verify",
        "run pycocotools on the same input and compare every value",
        kind=bool,
        default=False,
        key="output.verify",
        brief="compare every value with pycocotools",
    ),
    Option(
        "no-digest",
        "skip the quick check of the input, which prints to stderr",
        kind=bool,
        default=True,
        variable="digest",
        key="output.digest",
        topic=CHECKS,
    ),
    ALLOW.but(help=f"with --strict: {ALLOW.help}"),
    *REPORT_CONTENT,
)
"""Options of the command; those with a ``key`` may also be in a configuration file of boxscore run."""


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    # Refuse impossible requests before anything is read: rows that do not exist, protocols that --verify
    # lacks.
    rows_of(arguments)
    if arguments.scheduler is None and arguments.verify:
        from boxscore.compat.verification import check_protocol, verify

        check_protocol(chosen_protocol(arguments))

    def report(evaluation: Evaluation) -> None:
        if arguments.report:
            extension("save_report")(evaluation, arguments, messages)

    with remembered_warnings(hold_box_forms=arguments.digest and not arguments.strict) as messages:
        # Let an extension evaluate data larger than memory, in partitions; else evaluate here.
        if may_be_elsewhere(arguments):
            elsewhere = extension("evaluated_elsewhere")(arguments, report)
            if elsewhere is not None:
                return _finished(_written(elsewhere, arguments, messages), arguments)
        evaluation, digest = evaluate_inputs(read_inputs(arguments)), Digest([], {})
        # Do everything that can fail before the first number is printed.
        if arguments.digest:
            digest = extension("digest_of")(evaluation, allowed=arguments.allow, warned=messages)
    if arguments.strict:
        refuse_errors(digest)
    verification = verify(evaluation) if arguments.verify else None
    result = _written(evaluation, arguments, messages)
    report(evaluation)
    if arguments.save_part:
        evaluation.save_part(arguments.save_part)
    _finished(result, arguments)
    for line in digest.lines:
        say(line)
    if verification is not None:
        if not verification.equal:
            raise VerificationError(str(verification))
        (show if arguments.output == "text" else say)(str(verification))
    return 0


def _finished(result: str, arguments: argparse.Namespace) -> int:
    """Print the result, and where the report is."""
    show(result)
    if arguments.report:
        extension("report_written")(arguments.report)
    return 0


def _written(evaluation: Evaluation, arguments: argparse.Namespace, messages: Sequence[str]) -> str:
    return evaluation_as(
        arguments.output,
        evaluation,
        per_class=arguments.per_class,
        rows=rows_of(arguments),
        messages=messages,
    )
