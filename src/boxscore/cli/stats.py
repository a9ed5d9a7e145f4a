"""Count what a data set holds: images, objects, classes, sizes.

Examples
--------
  boxscore stats --gt instances.json
  boxscore stats --gt VOC2007 --image-set test --output csv
  boxscore stats --gt instances.json --output json
"""

from __future__ import annotations

import argparse
from typing import Any

from boxscore.cli.arguments import FORMAT, GROUND_TRUTH, GROUND_TRUTH_FILES, IMAGE_SET, IMAGE_SIZES, OUTPUT
from boxscore.cli.inputs import ground_truth_arguments
from boxscore.cli.output import Section, written
from boxscore.cli.streams import show
from boxscore.data.statistics import table_statistics
from boxscore.formats.reading import read_ground_truth, read_options

__all__ = ["OPTIONS", "run"]


OPTIONS = (GROUND_TRUTH, FORMAT, IMAGE_SET, *GROUND_TRUTH_FILES, IMAGE_SIZES, OUTPUT)


def run(arguments: argparse.Namespace) -> int:
    """Read, count, print; return the exit status."""
    options = read_options(**ground_truth_arguments(arguments))
    statistics = table_statistics(read_ground_truth(arguments.ground_truth, options))
    counts: dict[str, list[Any]] = {
        "what": [name.replace("_", " ") for name in statistics.counts],
        "number": list(statistics.counts.values()),
    }
    sections = [
        Section(statistics.source, counts),
        Section("Classes", statistics.per_class),
        Section(f"Sizes in {statistics.units}, at quantiles", statistics.sizes, digits=2),
    ]
    show(
        written(
            arguments.output, sections, value=statistics.to_dict(), table=statistics.per_class, longest=60
        )
    )
    return 0
