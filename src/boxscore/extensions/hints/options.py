"""Define the options of class maps."""

from __future__ import annotations

from boxscore.cli.arguments import NOT_IN_FILES, Option

OPTIONS = (
    Option(
        "class-map",
        "how to map detection class ids to ground-truth classes: auto (inferred from the boxes), "
        "zero-based, one-based, plus-one, minus-one, coco80to91, coco91to80, or a file with lines from,to",
        metavar="NAME|FILE",
        key="detections.class_map",
        ending=".csv",
        group=NOT_IN_FILES,
        brief="how to map detection classes: auto, one-based, FILE",
    ),
)
