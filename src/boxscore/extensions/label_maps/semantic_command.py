"""Compute mean IoU and accuracies of two folders of label maps, by the rules of a tool.

A map is a gray or palette PNG file whose pixel values are labels. Maps of the same name are compared. Needs
Pillow: pip install 'boxscore[label-maps]'.

Examples
--------
  boxscore semantic truth predictions --rules mmseg --classes 19
  boxscore semantic truth predictions --rules plain --classes names.txt --per-class
  boxscore semantic gtFine/val results --rules cityscapes
  ... --gt-ending _gtFine_labelIds.png --dt-ending _pred.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.files import read_text
from boxscore.cli.arguments import (
    CLASSES,
    DETECTIONS,
    GROUND_TRUTH,
    OUTPUT,
    PER_CLASS,
    READERS,
    ROWS,
    SHOW,
    Option,
)
from boxscore.cli.choices import readers
from boxscore.errors import InputError
from boxscore.extensions.label_maps import options
from boxscore.extensions.label_maps.command_line import print_result
from boxscore.extensions.label_maps.folders import semantic_iou_of_folders
from boxscore.extensions.label_maps.rules import load_semantic_rules

OPTIONS = (
    GROUND_TRUTH.but(help="label maps of the ground truth: a folder, or one PNG file", key=""),
    DETECTIONS.but(help="predicted label maps: a folder, or one PNG file", key=""),
    Option(
        "rules",
        "plain, mmseg, detectron2, coco-stuff, cityscapes, or a file",
        default="plain",
        metavar="NAME|FILE.toml",
    ),
    CLASSES.but(
        help="number of classes, or a file with their names, one per line (default: the classes of the "
        "rules, or every label that occurs)",
        metavar="N|FILE",
        many=False,
        key="",
    ),
    Option("gt-ending", "file name ending of the ground truth maps", default=".png", metavar="TEXT"),
    Option("dt-ending", "file name ending of the predicted maps", default=".png", metavar="TEXT"),
    OUTPUT.but(key=""),
    PER_CLASS.but(help="also print the per-class table", key=""),
    *(option.but(key="") for option in (*ROWS, SHOW)),
    *options.OPTIONS,
    READERS.but(help="processes that read and compare maps (default: one per CPU core)", key=""),
)

WITHOUT = options.WITHOUT

LARGEST_NAMES = 1 << 24
"""Maximum size in bytes of a file of names."""


def run(arguments: argparse.Namespace) -> int:
    """Read, compare, print; return the exit status."""
    rules = load_semantic_rules(arguments.rules)
    result = semantic_iou_of_folders(
        arguments.ground_truth,
        arguments.detections,
        truth_ending=arguments.gt_ending,
        prediction_ending=arguments.dt_ending,
        classes=_classes(arguments.classes),
        rules=rules,
        workers=readers(arguments),
        progress=True,
    )
    right, truth = (int(part.sum()) for part in (result.areas.right, result.areas.truth))
    counts = {"images": len(result.images), "classes": len(result.classes.labels)}
    counts |= {"pixels": truth, "right": right}
    note = f"images: {counts['images']:,}, classes: {counts['classes']:,}, pixels that count: {truth:,}"
    summary: dict[str, list[Any]] = {"metric": list(result.metrics), "value": list(result.metrics.values())}
    print_result(result, arguments, title=rules.title, note=note, summary=summary, counts=counts)
    return 0


def _classes(given: str | None) -> Any:
    if given is None:
        return None
    if given.isdecimal() and given.isascii():
        return checks.whole_number(int(given[:40]), 1, name="--classes", high=65535)
    path = Path(given)
    if not path.is_file():
        raise InputError("--classes", "be a number or a file with names", got=repr(given))
    text = read_text(path, "a file with names", largest=LARGEST_NAMES)
    names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise InputError("a file with names", "hold names", got="none", place=given)
    return names
