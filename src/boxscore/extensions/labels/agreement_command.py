"""Compare the labels of two or more annotators on the same images, and compute the best AP that they allow.

Labels are matched to maximize the number of matches, then the total IoU. ceiling is the AP, against the other
annotator's labels, of a detector that reproduces an annotator's labels.

Examples
--------
  boxscore agreement --gt anna.json ben.json
  boxscore agreement --gt anna.json ben.json cleo.json --names anna ben cleo --protocol coco-segm
  boxscore agreement --gt anna.json ben.json --by images --top 20
  boxscore agreement --gt all.csv --annotator-column annotator
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore._utils import checks
from boxscore._utils.text import counted
from boxscore.cli.arguments import GROUND_TRUTH, OUTPUT, READERS, SHOW, Option
from boxscore.cli.choices import readers
from boxscore.cli.output import Section, written
from boxscore.cli.sockets import without
from boxscore.cli.streams import show
from boxscore.diagnostics import annotator_agreement, labels_by_annotator
from boxscore.errors import InputError
from boxscore.extensions.shell.detectors import detector_names
from boxscore.extensions.shell.frames import table_columns, table_rows
from boxscore.formats.reading import read_ground_truth, read_options

BY = ("pairs", "classes", "images")

OPTIONS = (
    GROUND_TRUTH.but(help="the labels of each annotator, two files or more", many=True, key=""),
    Option("names", "names of the annotators (default: file names)", many=True, metavar="NAME"),
    Option(
        "annotator-column",
        "column, or key of COCO annotations, that names the annotator if all labels are in one file",
        metavar="NAME",
    ),
    Option("protocol", "what to compare: boxes, masks, keypoints, ...", default="coco", metavar="NAME"),
    Option(
        "iou-threshold",
        "minimum IoU of two labels of one object",
        kind=float,
        default=0.5,
        metavar="T",
        short="--iou",
    ),
    Option(
        "by",
        "print one row per pair of annotators, per class, or per image, worst first",
        default="pairs",
        choices=BY,
    ),
    Option("top", "print only the first N rows", kind=int, metavar="N"),
    OUTPUT,
    SHOW,
    READERS,
)

WITHOUT = without("evaluation", "compares all labels, whether they count or not")


def run(arguments: argparse.Namespace) -> int:
    """Read, compare and print; return the exit status."""
    # Accept several files with one annotator each, or one file with a column of annotators.
    paths: list[Path] = arguments.ground_truth
    column: str | None = arguments.annotator_column
    if column is None and len(paths) < 2:
        cause = "for one file with several annotators use --annotator-column"
        raise InputError("--ground-truth", "have two or more files", got=len(paths), cause=cause)
    if column is not None and (len(paths) > 1 or arguments.names):
        rule = "be used with one file and without --names"
        raise InputError("--annotator-column", rule, got=counted(len(paths), "file"))
    checks.one_of(arguments.by, BY, name="--by")
    if arguments.top is not None:
        checks.whole_number(arguments.top, 1, name="--top")
    # Read the files, or split one file by its column.
    names = detector_names(paths, arguments.names)
    keys = () if column is None else (column,)
    options = read_options(processes=readers(arguments), text_keys=keys)
    tables = dict(zip(names, [read_ground_truth(path, options) for path in paths], strict=True))
    if column is not None:
        tables = labels_by_annotator(tables[names[0]], column)
    result = annotator_agreement(
        tables,
        protocol=arguments.protocol,
        iou_threshold=arguments.iou_threshold,
    )
    # Print one of three tables, and a line with the numbers over all objects.
    frames = {"pairs": result.to_frame, "classes": result.class_frame, "images": result.image_frame}
    frame = frames[arguments.by]().head(arguments.top)
    note = (
        f"{result.units.shape[1]:,} objects in {len(result.image_ids):,} images; Krippendorff's alpha "
        f"{result.alpha:.4f} (classes, a missing label counts as one); labels match at IoU >= "
        f"{arguments.iou_threshold:g}"
    )
    section = Section(f"Agreement of {len(tables)} annotators", table_columns(frame), note)
    value = {"table": "Agreement", "alpha": result.alpha, "rows": table_rows(frame)}
    show(written(arguments.output, [section], value=value))
    return 0
