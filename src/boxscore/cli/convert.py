"""Save ground truth or detections as columns (.npz), which read in no time.

Examples
--------
  boxscore convert --gt instances_val2017.json --output gt.npz
  boxscore convert --gt gt.npz --dt results.json --output dt.npz
  boxscore evaluate --gt gt.npz --dt dt.npz
"""

from __future__ import annotations

import argparse

from boxscore.cli.arguments import (
    DETECTION_FILES,
    DETECTIONS,
    FORMAT,
    GROUND_TRUTH,
    GROUND_TRUTH_FILES,
    IMAGE_SET,
    RESULTS_OUTPUT,
)
from boxscore.cli.inputs import detection_arguments, ground_truth_arguments
from boxscore.cli.streams import say
from boxscore.data.tables import Detections, GroundTruth
from boxscore.formats import save_columns
from boxscore.formats.reading import read_detections, read_ground_truth, read_options

__all__ = ["OPTIONS", "run"]


OPTIONS = (
    GROUND_TRUTH.but(help="COCO file, VOC folder or .npz"),
    DETECTIONS.but(help="convert these instead, against the ground truth", required=False),
    FORMAT,
    IMAGE_SET,
    *(*GROUND_TRUTH_FILES, *DETECTION_FILES),
    RESULTS_OUTPUT.but(help="what to write", metavar="FILE.npz"),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, save; return the exit status."""
    ground_truth = read_ground_truth(
        arguments.ground_truth, read_options(**ground_truth_arguments(arguments))
    )
    table: GroundTruth | Detections = ground_truth
    if arguments.detections is not None:
        table = read_detections(
            arguments.detections, ground_truth, read_options(**detection_arguments(arguments))
        )
    save_columns(table, arguments.output)
    size = arguments.output.stat().st_size if arguments.output.is_file() else 0
    text = f" ({size / 1e6:.1f} MB)" if size >= 1e6 else f" ({size / 1e3:.0f} kB)" if size else ""
    say(f"{len(table):,} rows written to {arguments.output}{text}")
    return 0
