"""List confident detections that contradict the ground truth, to review possible label errors.

cost is the exact change of a metric if only this label were corrected as the detector suggests. The list is
sorted by detector confidence and AP cost to the class; --order cost sorts by cost to the metric.

Examples
--------
  boxscore suspects instances.json results.json --top 20
  boxscore suspects instances.json results.json --order suspicion --score-threshold 0.7 --output csv
  boxscore suspects instances.json results.json --against other.json
  boxscore suspects instances.json results.json --top 50 --write tasks.json --tool labelstudio
  boxscore suspects instances.json results.json --top 50 --vetted export.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from boxscore._utils.progress import stage
from boxscore._utils.text import counted, decimals_of
from boxscore.cli.arguments import OUTPUT, SHOW, Option, inputs_beside
from boxscore.cli.choices import readers
from boxscore.cli.output import remembered_warnings
from boxscore.cli.streams import say
from boxscore.diagnostics import label_suspects, vetted_suspects
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.formats.proposals import Tool, write_proposals
from boxscore.extensions.labels.label_edits import labels_of
from boxscore.extensions.labels.suspects import LabelSuspects, reasons
from boxscore.extensions.labels.vetting import VettedSuspects
from boxscore.extensions.shell.detectors import evaluate_each
from boxscore.extensions.shell.frames import print_frame
from boxscore.extensions.shell.parameters import options_of
from boxscore.extensions.validation.digest_command import Digest, digest_of
from boxscore.formats.reading import read_ground_truth, read_options

_OPTIONS = options_of(
    label_suspects,
    (
        Option("top", "list the first N", kind=int, default=100, metavar="N", variable="limit"),
        Option(
            "per-class", "list the first N of each class", kind=bool, default=False, variable="each_class"
        ),
        Option("metric", "summary metric for the cost column (default: the first)", metavar="METRIC"),
        Option(
            "against",
            "results of another detector: cost is the change in the difference between the two, largest "
            "first in either direction",
            kind=Path,
            metavar="PATH",
        ),
    ),
)
_VETTING = (
    Option(
        "write",
        "write the listed suspects as proposals for review in an annotation tool: delete wrong ones, "
        "correct the rest",
        kind=Path,
        metavar="FILE",
        writes=(".",),
    ),
    Option(
        "tool",
        "annotation tool for --write (default: cvat for .xml, else labelstudio)",
        choices=get_args(Tool),
    ),
    Option(
        "vetted",
        "the reviewed file, with the same options: print the metric before and after, and how many of "
        "the next fifty are worth reviewing",
        kind=Path,
        metavar="FILE",
    ),
)
WITHOUT = {
    "--memory-limit": "needs all detections in memory, because the cost of a label depends on all scores "
    "and the boxes around it"
}
OPTIONS = (*inputs_beside(_OPTIONS), OUTPUT, *_OPTIONS, *_VETTING, SHOW)


def listed(arguments: argparse.Namespace) -> tuple[Evaluation, LabelSuspects, Digest]:
    """Read, evaluate, and list the suspects that the options select."""
    paths = [path for path in (arguments.detections, arguments.against) if path is not None]
    with remembered_warnings(hold_box_forms=not arguments.strict) as messages:
        evaluation, *others = evaluate_each(paths, arguments)
        digest = digest_of(evaluation, warned=messages)
    if arguments.strict:
        digest.refuse()
    stage("computing the cost of each label")
    options = {option.dest: getattr(arguments, option.dest) for option in _OPTIONS}
    options["against"] = others[0] if others else None
    return evaluation, label_suspects(evaluation, **options), digest


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate and list; return the exit status."""
    # Reject contradictory options, then find the suspects.
    if arguments.tool is not None and arguments.write is None:
        raise InputError("--tool", "be used together with --write", got=arguments.tool)
    if arguments.write is not None and arguments.vetted is not None:
        raise InputError("--write", "not be combined with --vetted", got="both")
    evaluation, suspects, digest = listed(arguments)
    note, frame = suspects.note, suspects.to_frame()
    # Write proposals for a labeling tool, or apply the reviewed ones.
    if arguments.write is not None:
        tool: Tool = arguments.tool or ("cvat" if arguments.write.suffix.lower() == ".xml" else "labelstudio")
        write_proposals(
            labels_of(evaluation, suspects.detection), reasons(suspects), arguments.write, tool=tool
        )
        say(f"{counted(len(suspects), 'suspect')} written to {arguments.write} for {tool}")
    if arguments.vetted is not None:
        done = vetted_of(evaluation, suspects, arguments)
        note, frame = "\n".join(done.sentences), done.to_frame()
    # Print the suspects, or the accepted ones.
    print_frame(
        frame,
        evaluation,
        arguments.output,
        title="Likely label errors",
        digits={"cost": decimals_of(suspects.cost.tolist())},
        first_out=[("x1", "y1", "x2", "y2"), "annotation_id", "image_id", "suspicion"],
        note=note,
    )
    digest.say()
    return 0


def vetted_of(
    evaluation: Evaluation, suspects: LabelSuspects, arguments: argparse.Namespace
) -> VettedSuspects:
    """Read the vetted file, and apply it."""
    options = read_options(processes=readers(arguments), needs_areas=False)
    vetted = read_ground_truth(arguments.vetted, options)
    stage("the metric before and after")
    return vetted_suspects(evaluation, suspects, vetted)
