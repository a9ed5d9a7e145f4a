"""Define the options of detections in the answers of language models."""

from __future__ import annotations

from boxscore.cli.arguments import NOT_IN_FILES, Option
from boxscore.extensions.scoreless.coordinates import COORDINATES

ANSWERS = "answers of language models"

OPTIONS = (
    Option(
        "coordinates",
        "meaning of the box coordinates in a language model's answers, if tags and values do not "
        "determine it",
        choices=tuple(COORDINATES),
        metavar="NAME",
        key="detections.coordinates",
        group=NOT_IN_FILES,
        topic=ANSWERS,
    ),
    Option(
        "repeated",
        "boxes that an answer repeats exactly: keep them as false positives, or count each once "
        "(default: keep)",
        choices=("keep", "once"),
        key="detections.repeated",
        group=NOT_IN_FILES,
        topic=ANSWERS,
    ),
    Option(
        "loose",
        "read the first four bracketed numbers as a box if an answer is only prose",
        kind=bool,
        default=False,
        key="detections.loose",
        group=NOT_IN_FILES,
        topic=ANSWERS,
    ),
)
