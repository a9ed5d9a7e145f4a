"""Apply accepted label suspects, and write the corrected ground truth.

Use the same options as for boxscore suspects --write. In COCO, YOLO, VOC and CVAT files, everything else
stays byte for byte; other formats are written again, unless that would lose content. The output is read back
and compared before it gets its name. The original is never overwritten.

Examples
--------
  boxscore fix instances.json results.json --top 50 --vetted export.json --output fixed.json
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from boxscore._utils.progress import stage
from boxscore._utils.text import counted
from boxscore.cli.arguments import Option
from boxscore.cli.inputs import read_inputs
from boxscore.cli.streams import say, show
from boxscore.data.tables import GroundTruth
from boxscore.extensions.formats.correcting import corrections_of, write_corrected
from boxscore.extensions.labels import suspects_command as suspects

OPTIONS = (
    *(option for option in suspects.OPTIONS if option.name not in ("output", "write", "tool", "vetted")),
    next(option for option in suspects.OPTIONS if option.name == "vetted").but(
        help="the reviewed file", required=True
    ),
    Option(
        "output",
        "output path of the corrected ground truth: a file, or a new folder if the ground truth is a folder",
        short="-o",
        kind=Path,
        metavar="PATH",
        required=True,
        writes=(".",),
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, apply and write; return the exit status."""
    # Find the suspects as the listing does, and apply the accepted ones.
    evaluation, found, _ = suspects.listed(arguments)
    done = suspects.vetted_of(evaluation, found, arguments)
    stage("writing")

    # Read the original and the written file with the same options.
    def read(path: Path) -> GroundTruth:
        given = {"ground_truth": path, "detections": arguments.detections}
        with warnings.catch_warnings():
            # Warnings were printed at the first read.
            warnings.simplefilter("ignore")
            return read_inputs(argparse.Namespace(**{**vars(arguments), **given})).ground_truth

    # Edit by annotation id, because the order of labels can differ in the file.
    before = read(arguments.ground_truth)
    edits = done.edits.on(before)
    of_before, labels = edits.removed, edits.labels
    # Collect replaced labels, and new ones.
    changed = {
        row: labels.take(np.array([added]))
        for row, added in zip(of_before.tolist(), edits.added.tolist(), strict=True)
        if row >= 0
    }
    new = labels.take(edits.added[of_before < 0])
    write_corrected(
        arguments.ground_truth,
        arguments.output,
        before,
        edits.applied_to(before),
        corrections_of(before, changed, new),
        read=read,
        format=arguments.format,
        image_set=arguments.image_set,
    )
    show("\n".join(done.sentences))
    say(f"{counted(len(done.edits), 'correction')} written to {arguments.output}")
    return 0
