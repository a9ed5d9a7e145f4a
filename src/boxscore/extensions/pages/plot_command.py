"""Draw one plot of a result, such as a precision-recall curve, and write it to a file.

Examples
--------
  boxscore plot pr instances.json results.json
  boxscore plot pr instances.json results.json --iou-threshold 0.75 --highlight cat dog --output pr.pdf
  boxscore plot confusion instances.json results.json --at-score 0.5 --output confusion.svg
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxscore._utils.files import write_atomically
from boxscore.cli.arguments import INPUTS, RESULTS_OUTPUT, Option
from boxscore.cli.inputs import evaluate_inputs, read_inputs
from boxscore.cli.output import remembered_warnings
from boxscore.cli.streams import show
from boxscore.errors import InputError
from boxscore.extensions.pages.options import look_for_matplotlib
from boxscore.extensions.pages.report_output import form_of_picture, picture
from boxscore.extensions.validation.digest_command import digest_of

KINDS = {
    "pr": "pr_curve",
    "f1": "f1_curve",
    "confusion": "confusion_matrix",
    "reliability": "reliability",
    "per-class": "per_class",
    "errors": "errors",
    "error-curves": "error_curves",
    "froc": "froc",
    "miss-rate": "miss_rate",
}
"""Function of :mod:`boxscore.plots` for each kind of plot."""

OPTIONS = (
    Option(
        "kind",
        f"plot to draw: {', '.join(KINDS)}",
        choices=tuple(KINDS),
        positional=True,
        required=True,
        metavar="KIND",
    ),
    *INPUTS,
    RESULTS_OUTPUT.but(
        help="picture to write: a .png, .svg or .pdf file (default: KIND.png)", metavar="FILE", required=False
    ),
    Option("iou-threshold", "IoU threshold of pr and froc (default: the first)", kind=float, metavar="T"),
    Option(
        "highlight",
        "classes to draw in color in pr and froc, or at all in miss-rate (default: the five with the highest "
        "AP; miss-rate draws up to ten)",
        many=True,
        metavar="CLASS",
    ),
    Option(
        "at-score",
        "drop detections that score below this in confusion (default: the score with the best F1)",
        kind=float,
        metavar="S",
    ),
    Option(
        "order",
        "order of classes in confusion: file, AP (lowest first), objects (most first) or confusion (classes "
        "that are confused are neighbors); default: file",
        choices=("file", "AP", "objects", "confusion"),
    ),
    Option("metric", "metric of per-class (default: the first of the protocol)", metavar="NAME"),
    Option("most", "maximum number of classes in confusion and per-class", kind=int, metavar="N"),
)

MOST_LINES = 10
"""Maximum number of classes that miss-rate draws unless classes are chosen."""

PARAMETERS = {
    "iou_threshold": "iou_threshold",
    "highlight": "classes",
    "at_score": "score_threshold",
    "order": "order",
    "metric": "metric",
    "most": "most",
}
"""Parameter of the functions for each option."""

WITHOUT = {
    "--memory-limit": "needs all detections in memory; boxscore report GT DT --memory-limit 2GB --plots png "
    "draws from partitions"
}


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate and draw; return the exit status."""
    from boxscore.extensions.pages.plots.bars import best_classes
    from boxscore.reports import plots

    # Reject what cannot work before reading anything.
    look_for_matplotlib(arguments)
    path = Path(f"{arguments.kind}.png") if arguments.output is None else arguments.output
    form = form_of_picture(path, name="--output")
    draw = getattr(plots, KINDS[arguments.kind])
    options = _options(arguments, draw)
    with remembered_warnings(hold_box_forms=not arguments.strict) as messages:
        evaluation = evaluate_inputs(read_inputs(arguments))
        digest = digest_of(evaluation, warned=messages)
    if arguments.strict:
        digest.refuse()
    few = arguments.kind == "miss-rate" and len(evaluation.labels) <= MOST_LINES
    if "classes" in inspect.signature(draw).parameters and not few:
        options.setdefault("classes", best_classes(evaluation))
    write_atomically(path, picture(draw(evaluation, **options), form))
    show(str(path))
    digest.say()
    return 0


def _options(arguments: argparse.Namespace, draw: Callable[..., Any]) -> dict[str, Any]:
    """Return the given options as arguments of a plot; reject those that it does not have."""
    given = {name: getattr(arguments, name) for name in PARAMETERS}
    options = {PARAMETERS[name]: value for name, value in given.items() if value is not None}
    known = inspect.signature(draw).parameters
    for name, value in given.items():
        if value is not None and PARAMETERS[name] not in known:
            rule = f"not be used with the plot {arguments.kind}"
            raise InputError(f"--{name.replace('_', '-')}", rule, got=value)
    return options
