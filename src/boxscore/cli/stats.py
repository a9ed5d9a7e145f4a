"""Count images, objects, classes and sizes of a data set.

Examples
--------
  boxscore stats instances.json
  boxscore stats VOC2007 --image-set test --output csv
  boxscore stats instances.json --output stats.json
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any, cast

from boxscore.cli.arguments import (
    DETECTION_FILES,
    DETECTIONS,
    FORMAT,
    GROUND_TRUTH,
    GROUND_TRUTH_FILES,
    IMAGE_SET,
    OUTPUT,
    ROWS,
)
from boxscore.cli.inputs import detection_arguments, ground_truth_arguments
from boxscore.cli.output import Section, rows_of, written
from boxscore.cli.streams import show
from boxscore.data.statistics import table_statistics
from boxscore.data.tables import Detections, GroundTruth
from boxscore.formats.reading import read_detections, read_ground_truth, read_options
from boxscore.reports.rows import with_rows

OPTIONS = (
    GROUND_TRUTH,
    DETECTIONS.but(help="count these instead, of the images and classes of the ground truth", required=False),
    FORMAT,
    IMAGE_SET,
    *(*GROUND_TRUTH_FILES, *DETECTION_FILES),
    OUTPUT,
    *ROWS,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, count, print; return the exit status."""
    rows = rows_of(arguments)
    options = read_options(**ground_truth_arguments(arguments))
    table: GroundTruth | Detections = read_ground_truth(arguments.ground_truth, options)
    if arguments.detections is not None:
        options = read_options(**detection_arguments(arguments))
        table = read_detections(arguments.detections, cast(GroundTruth, table), options)
    statistics = table_statistics(table)
    chosen, words = rows.of(statistics.per_class)
    classes = with_rows(statistics.per_class, chosen)
    counts: dict[str, list[Any]] = {
        "quantity": [name.replace("_", " ") for name in statistics.counts],
        "count": list(statistics.counts.values()),
    }
    sections = [
        Section(statistics.source, counts),
        Section(f"Classes, {words}" if words else "Classes", classes),
        Section(
            f"Quantiles of sizes in {statistics.units}",
            statistics.sizes,
            digits=2,
            first_out=("5%", "95%", "25%", "75%"),
        ),
    ]
    show(
        written(
            arguments.output,
            sections,
            value=dataclasses.replace(statistics, per_class=classes).to_dict(),
            table=classes,
            longest=60,
        )
    )
    return 0
