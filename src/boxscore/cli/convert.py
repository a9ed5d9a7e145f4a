"""Save ground truth or detections as columns (.npz), which read in no time.

for example:
  boxscore convert --gt instances_val2017.json --output gt.npz
  boxscore convert --gt gt.npz --dt results.json --output dt.npz
  boxscore evaluate --gt gt.npz --dt dt.npz
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from boxscore.data.tables import Detections, GroundTruth
from boxscore.formats import format_names, load_detections, load_ground_truth, save_columns

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    parser.add_argument(
        "--ground-truth",
        "--gt",
        required=True,
        type=Path,
        metavar="PATH",
        help="COCO file, VOC folder or .npz",
    )
    parser.add_argument(
        "--detections",
        "--dt",
        type=Path,
        metavar="PATH",
        help="convert these instead, against the ground truth",
    )
    parser.add_argument(
        "--format", default="auto", choices=format_names(), help="of the ground truth (default: auto)"
    )
    parser.add_argument("--image-set", metavar="NAME|FILE", help="VOC: the image set, e.g. test")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE.npz", help="what to write")


def run(arguments: argparse.Namespace) -> int:
    """Read, save; return the exit status."""
    ground_truth = load_ground_truth(
        arguments.ground_truth, format=arguments.format, image_set=arguments.image_set
    )
    table: GroundTruth | Detections = ground_truth
    if arguments.detections is not None:
        table = load_detections(arguments.detections, ground_truth)
    save_columns(table, arguments.output)
    size = arguments.output.stat().st_size
    text = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    print(f"{len(table):,} rows written to {arguments.output} ({text})", file=sys.stderr)
    return 0
