"""List confident detections that contradict the ground truth: labels to look at, those first that cost most.

cost is the exact change of a metric if the label alone were as the detector says.

Examples
--------
  boxscore suspects instances.json results.json --top 20
  boxscore suspects instances.json results.json --order suspicion --score-threshold 0.7 --output csv
  boxscore suspects instances.json results.json --against other.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore._utils.progress import stage
from boxscore.cli.arguments import OUTPUT, Option, inputs_beside
from boxscore.cli.inputs import evaluate_each
from boxscore.cli.output import digest_of, print_frame, refuse_errors, remembered_warnings
from boxscore.cli.parameters import options_of
from boxscore.cli.streams import say
from boxscore.diagnostics import label_suspects

_OPTIONS = options_of(
    label_suspects,
    (
        Option("top", "list the first N", kind=int, default=100, metavar="N", variable="limit"),
        Option("per-class", "list so many of each class", kind=bool, default=False, variable="each_class"),
        Option("metric", "the summary metric of which costs are (default: the first)", metavar="METRIC"),
        Option(
            "against",
            "results of another detector: costs are of the difference between the two, and the largest, up "
            "or down, come first",
            kind=Path,
            metavar="PATH",
        ),
    ),
)
OPTIONS = (*inputs_beside(_OPTIONS), OUTPUT, *_OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, list; return the exit status."""
    paths = [path for path in (arguments.detections, arguments.against) if path is not None]
    with remembered_warnings(hold_box_forms=not arguments.strict) as messages:
        evaluation, *others = evaluate_each(paths, arguments)
        digest = digest_of(evaluation, warned=messages)
    if arguments.strict:
        refuse_errors(digest)
    stage("computing: what labels cost")
    options = {option.dest: getattr(arguments, option.dest) for option in _OPTIONS}
    options["against"] = others[0] if others else None
    suspects = label_suspects(evaluation, **options)
    frame = suspects.to_frame()
    print_frame(
        frame,
        evaluation,
        arguments.output,
        title="Likely label errors",
        first_out=[("x1", "y1", "x2", "y2"), "annotation_id", "image_id", "suspicion"],
        note=suspects.note,
    )
    for line in digest.lines:
        say(line)
    return 0
