"""Compare the labels of two annotators or more of the same images: who misses what, and what AP they allow.

Labels are paired so that the most match, and of these matchings the one with the greatest sum of IoU. ceiling
is the AP of a detector that finds what the annotator finds, against the other's labels.

Examples
--------
  boxscore agreement --gt anna.json ben.json
  boxscore agreement --gt anna.json ben.json cleo.json --names anna ben cleo --protocol coco-segm
  boxscore agreement --gt anna.json ben.json --by images --top 20
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore._utils import checks
from boxscore.cli.arguments import GROUND_TRUTH, OUTPUT, READERS, Option
from boxscore.cli.inputs import detector_names, readers
from boxscore.cli.output import Section, table_columns, table_rows, written
from boxscore.cli.streams import show
from boxscore.diagnostics import annotator_agreement
from boxscore.errors import InputError
from boxscore.formats import load_ground_truth

BY = ("pairs", "classes", "images")

OPTIONS = (
    GROUND_TRUTH.but(help="the labels of each annotator, two files or more", many=True, key=""),
    Option("names", "names of the annotators (default: the file names)", many=True, metavar="NAME"),
    Option("protocol", "what is compared: boxes, masks, keypoints, ...", default="coco", metavar="NAME"),
    Option(
        "iou-threshold",
        "from this IoU on two labels are of one object",
        kind=float,
        default=0.5,
        metavar="T",
    ),
    Option(
        "by",
        "a row for each two annotators, each class, or each image, the worst first",
        default="pairs",
        choices=BY,
    ),
    Option("top", "print only the first N rows", kind=int, metavar="N"),
    OUTPUT,
    READERS,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, compare, print; return the exit status."""
    paths: list[Path] = arguments.ground_truth
    if len(paths) < 2:
        raise InputError("--ground-truth", "name two files or more to compare", got=len(paths))
    checks.one_of(arguments.by, BY, name="--by")
    if arguments.top is not None:
        checks.whole_number(arguments.top, 1, name="--top")
    names = detector_names(paths, arguments.names)
    tables = [load_ground_truth(path, workers=readers(arguments)) for path in paths]
    result = annotator_agreement(
        dict(zip(names, tables, strict=True)),
        protocol=arguments.protocol,
        iou_threshold=arguments.iou_threshold,
    )
    frames = {"pairs": result.to_frame, "classes": result.class_frame, "images": result.image_frame}
    frame = frames[arguments.by]().head(arguments.top)
    note = (
        f"{result.units.shape[1]:,} objects in {len(result.image_ids):,} images; Krippendorff's alpha "
        f"{result.alpha:.4f} over classes and nothing; pairs from IoU {arguments.iou_threshold:g} on"
    )
    section = Section(f"Agreement of {len(names)} annotators", table_columns(frame), note)
    value = {"table": "Agreement", "alpha": result.alpha, "rows": table_rows(frame)}
    show(written(arguments.output, [section], value=value))
    return 0
