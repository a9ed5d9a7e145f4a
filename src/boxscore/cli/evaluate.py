"""Score detections against ground truth.

Examples
--------
  boxscore evaluate instances_val2017.json results.json
  boxscore evaluate VOC2007 results --image-set test --protocol voc2007
  boxscore evaluate instances.json results.json --report report --per-class
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boxscore._utils.lazy import loaded
from boxscore.cli.arguments import (
    ALLOW,
    CHECKS,
    INPUTS,
    OUTPUT,
    PER_CLASS,
    ROWS,
    SHOW,
    Option,
    further,
    given,
)
from boxscore.cli.inputs import chosen_protocol, evaluate_inputs, read_inputs
from boxscore.cli.output import evaluation_as, remembered_warnings, rows_of
from boxscore.cli.sockets import extension, names_at
from boxscore.cli.streams import say, show
from boxscore.errors import VerificationError
from boxscore.formats.registry import is_parquet

if TYPE_CHECKING:
    from boxscore.evaluation import Evaluation

OPTIONS = (
    *INPUTS,
    OUTPUT,
    PER_CLASS.but(help="also print the per-class table"),
    *ROWS,
    SHOW,
    *further("result"),
    *further("elsewhere"),
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
        "skip the quick input check, which prints to stderr",
        kind=bool,
        default=True,
        variable="digest",
        key="output.digest",
        topic=CHECKS,
    ),
    ALLOW.but(help=f"with --strict: {ALLOW.help}"),
    *further("report"),
)
"""Options of the command; those with a ``key`` are also valid in a run configuration."""


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print; return the exit status."""
    # Reject invalid requests before reading: unknown rows, missing pycocotools.
    if arguments.verify:
        from boxscore.compat.verification import check_protocol, require_pycocotools, verify

        require_pycocotools()
    rows_of(arguments)
    notes: list[str] = []

    def then(evaluation: Evaluation) -> None:
        """Run the actions of extension options on the result."""
        for option in given(OPTIONS, arguments):
            if option.does:
                notes.extend(loaded(option.does)(evaluation, arguments, messages))

    with remembered_warnings(hold_box_forms=arguments.digest and not arguments.strict) as messages:
        # Let an extension evaluate data larger than memory in partitions; otherwise evaluate here.
        if _may_be_external(arguments):
            elsewhere = extension("evaluated_elsewhere")(arguments, then)
            if elsewhere is not None:
                _show(_format_result(elsewhere, arguments, messages), notes)
                return 0
        if arguments.verify:
            check_protocol(chosen_protocol(arguments))
        evaluation, digest = evaluate_inputs(read_inputs(arguments)), None
        # Run everything that may fail before the first number is printed.
        if arguments.digest:
            digest = extension("digest_of")(evaluation, allowed=arguments.allow, warned=messages)
    if digest is not None and arguments.strict:
        digest.refuse()
    verification = verify(evaluation) if arguments.verify else None
    # Print last, after other outputs are written.
    result = _format_result(evaluation, arguments, messages)
    then(evaluation)
    # Print the result to stdout, then notes and findings to stderr.
    _show(result, notes)
    if digest is not None:
        digest.say()
    # Report a difference from pycocotools after the numbers, with its own status.
    if verification is not None:
        if not verification.equal:
            raise VerificationError(str(verification))
        (show if arguments.output == "text" else say)(str(verification))
    return 0


def _may_be_external(arguments: argparse.Namespace) -> bool:
    """Whether an extension may evaluate the data without loading them into this process.

    This is the case if an option requests it, or if detections are in Parquet; the extension decides. The
    check does not read files or import modules.
    """
    if any(getattr(arguments, name) is not None for name in names_at("elsewhere")):
        return True
    path: Path = arguments.detections
    if path.is_dir():
        return arguments.dt_format in ("auto", "parquet") and is_parquet(path)
    return path.suffix.lower() in (".parquet", ".pq")


def _show(result: str, lines: Sequence[str]) -> None:
    show(result)
    for line in lines:
        say(line)


def _format_result(evaluation: Evaluation, arguments: argparse.Namespace, messages: Sequence[str]) -> str:
    return evaluation_as(
        arguments.output,
        evaluation,
        per_class=arguments.per_class,
        rows=rows_of(arguments),
        messages=messages,
    )
