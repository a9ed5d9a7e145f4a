"""Compute panoptic quality (PQ) from JSON tables of segments and PNG maps of their ids.

Reads the files of COCO and Cityscapes. Needs Pillow: pip install 'boxscore[label-maps]'.

Examples
--------
  boxscore panoptic panoptic_val2017.json predictions.json
  ... --gt-folder panoptic_val2017 --dt-folder predictions
  boxscore panoptic gt.json dt.json --gt-folder gt --dt-folder dt --per-image 20
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore.cli.arguments import DETECTIONS, GROUND_TRUTH, OUTPUT, PER_CLASS, READERS, ROWS, SHOW, Option
from boxscore.cli.choices import readers
from boxscore.cli.output import remembered_warnings
from boxscore.extensions.label_maps import options
from boxscore.extensions.label_maps.command_line import print_result
from boxscore.extensions.label_maps.folders import panoptic_quality_of_files
from boxscore.extensions.label_maps.rules import load_panoptic_rules

OPTIONS = (
    GROUND_TRUTH.but(help="panoptic JSON file of the ground truth", key="", metavar="FILE"),
    Option(
        "gt-folder", "folder of the PNG maps of the ground truth", kind=Path, metavar="DIR", required=True
    ),
    DETECTIONS.but(help="panoptic JSON file of the predictions", key="", metavar="FILE"),
    Option("dt-folder", "folder of the PNG maps of the predictions", kind=Path, metavar="DIR", required=True),
    Option(
        "rules",
        "panopticapi (COCO and Cityscapes), counted (pixels only), or a file",
        default="panopticapi",
        metavar="NAME|FILE.toml",
    ),
    OUTPUT.but(key=""),
    PER_CLASS.but(help="also print the per-class table", key=""),
    *(option.but(key="") for option in (*ROWS, SHOW)),
    *options.OPTIONS,
    READERS.but(help="processes that read and compare maps (default: one per CPU core)", key=""),
)

WITHOUT = options.WITHOUT


def run(arguments: argparse.Namespace) -> int:
    """Read, compare, print; return the exit status."""
    # Read, match and count.
    rules = load_panoptic_rules(arguments.rules)
    with remembered_warnings() as messages:
        result = panoptic_quality_of_files(
            arguments.ground_truth,
            arguments.gt_folder,
            arguments.detections,
            arguments.dt_folder,
            rules=rules,
            workers=readers(arguments),
            progress=True,
        )
    # Print columns for all classes, things and stuff.
    metrics = result.metrics
    groups = {"all": "", "things": "_things", "stuff": "_stuff"}
    summary: dict[str, list[object]] = {"classes": list(groups)}
    for name in ("PQ", "SQ", "RQ"):
        summary[name] = [metrics[f"{name}{ending}"] for ending in groups.values()]
    counts = result.counts
    note = (
        f"images: {counts['images']:,}, classes: {len(result.classes.ids):,}; segments matched: "
        f"{counts['TP']:,}, false: {counts['FP']:,}, missed: {counts['FN']:,}"
    )
    print_result(
        result, arguments, title=rules.title, note=note, summary=summary, counts=counts, warnings=messages
    )
    return 0
