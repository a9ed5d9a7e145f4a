"""Score the same files by the rules of every tool that fits them, in one table.

The first row is the reference for the others: --protocol; by default coco if it fits, otherwise the protocol
that uses most of the ground truth. If detections have equal scores, the table adds the lowest and the highest
value over all orders of these.

Examples
--------
  boxscore compare-protocols labelTxt Task1_results
  boxscore compare-protocols instances.json results.json
  boxscore compare-protocols VOC2007 results_dir --image-set test --protocol voc2007 --output json
"""

from __future__ import annotations

import argparse

from boxscore._utils.text import Columns
from boxscore.cli.arguments import DEFAULT_PROTOCOL, INPUTS, OUTPUT, SHOW
from boxscore.cli.inputs import read_inputs
from boxscore.cli.output import Section, written
from boxscore.cli.streams import show
from boxscore.data.alignment import align, select
from boxscore.extensions.shell.frames import table_columns
from boxscore.protocols import load_protocol

_OF_REGIONS = ("inside", "outside")

OPTIONS = (*(option for option in INPUTS if option.name not in _OF_REGIONS), OUTPUT, SHOW)

WITHOUT = {
    f"--{name}": "compares tools that score whole images; see boxscore evaluate --help"
    for name in _OF_REGIONS
}


def run(arguments: argparse.Namespace) -> int:
    """Read, score under every protocol that fits, and print; return the exit status."""
    from boxscore.diagnostics import compare_protocols

    # Choose images and classes first, the same for every protocol.
    inputs = read_inputs(arguments)
    truth, detections = inputs.ground_truth, align(inputs.detections, inputs.ground_truth)
    if inputs.images is not None or inputs.classes is not None:
        truth, detections = select(truth, detections, images=inputs.images, classes=inputs.classes)
    # Compare the others with the given protocol.
    changed = inputs.protocol != load_protocol(DEFAULT_PROTOCOL)
    result = compare_protocols(truth, detections, inputs.protocol if changed else None)
    # Show bounds over the order of equal scores only if they differ anywhere.
    columns: Columns = table_columns(result.table)
    if (result.table["lowest"] == result.table["highest"]).all():
        columns = {name: column for name, column in columns.items() if name not in ("lowest", "highest")}
    first = result.readings[0]
    note = f"difference, choices: relative to {first.protocol}."
    if "lowest" in columns:
        note += " lowest, highest: over all orders of tied scores."
    show(
        written(
            arguments.output,
            [
                Section(
                    "Results under each protocol that fits the files",
                    columns,
                    note,
                    first_out=("title", "choices"),
                )
            ],
            value=result.as_dict(),
            longest=400,
        )
    )
    return 0
