"""Define the options of ground truth with image labels, as in Open Images and LVIS."""

from __future__ import annotations

from pathlib import Path

from boxscore.cli.arguments import NOT_IN_FILES, Option

FEDERATED = "Open Images and LVIS"

OPTIONS = (
    Option(
        "segments",
        "Open Images: masks of the ground truth, a CSV file of the challenge",
        kind=Path,
        metavar="FILE.csv",
        key="ground_truth.segments",
        group=NOT_IN_FILES,
        topic=FEDERATED,
    ),
    Option(
        "image-labels",
        "image-level labels of the ground truth, as in Open Images: a CSV file ImageID,LabelName,Confidence",
        kind=Path,
        metavar="FILE.csv",
        key="ground_truth.image_labels",
        group=NOT_IN_FILES,
        topic=FEDERATED,
    ),
    Option(
        "hierarchy",
        "expand the ground truth and its image-level labels along this class hierarchy, as Open Images does",
        kind=Path,
        metavar="FILE.json",
        key="ground_truth.hierarchy",
        group=NOT_IN_FILES,
        topic=FEDERATED,
    ),
)
