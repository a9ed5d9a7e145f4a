"""Save ground truth or detections as columns (.npz), which read in no time.

for example:
  boxscore convert --gt instances_val2017.json --output gt.npz
  boxscore convert --gt gt.npz --dt results.json --output dt.npz
  boxscore evaluate --gt gt.npz --dt dt.npz
  boxscore convert --gt instances_val2017.json --iou-type segm --output gt.npz
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from boxscore.formats import load_detections, load_ground_truth, save_columns
from boxscore.protocols import IOU_TYPES, load_protocol

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
    parser.add_argument("--image-set", metavar="NAME|FILE", help="VOC: the image set, e.g. test")
    parser.add_argument(
        "--iou-type",
        default="bbox",
        choices=list(IOU_TYPES),
        help="keep masks or keypoints as well, for evaluations of this type (default: bbox)",
    )
    parser.add_argument("--output", required=True, type=Path, metavar="FILE.npz", help="what to write")


def run(arguments: argparse.Namespace) -> int:
    """Read, save; return the exit status."""
    similarity = load_protocol(IOU_TYPES[arguments.iou_type]).similarity
    table = ground_truth = load_ground_truth(
        arguments.ground_truth, image_set=arguments.image_set, similarity=similarity
    )
    if arguments.detections is None:
        save_columns(ground_truth, arguments.output)
    else:
        table = load_detections(arguments.detections, ground_truth, similarity=similarity)  # type: ignore[assignment]
        save_columns(table, arguments.output)
    size = arguments.output.stat().st_size
    text = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    print(f"{len(table):,} rows written to {arguments.output} ({text})", file=sys.stderr)
    return 0
