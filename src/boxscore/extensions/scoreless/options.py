"""Define the options of detections in the answers of language models."""

from __future__ import annotations

from boxscore.cli.arguments import NOT_IN_FILES, Option
from boxscore.extensions.scoreless.coordinates import COORDINATES

ANSWERS = "answers of language models"

OPTIONS = (
    Option(
        "coordinates",
        "what the numbers of boxes in a language model's answers are, where neither tags nor the numbers of "
        "the whole file decide it",
        choices=tuple(COORDINATES),
        metavar="NAME",
        key="detections.coordinates",
        group=NOT_IN_FILES,
        topic=ANSWERS,
    ),
    Option(
        "repeated",
        "what to do with boxes that an answer repeats exactly: keep them, which are false positives, or take "
        "each once; if not given, keep",
        choices=("keep", "once"),
        key="detections.repeated",
        group=NOT_IN_FILES,
        topic=ANSWERS,
    ),
    Option(
        "loose",
        "take the first four numbers in brackets for a box where an answer has only prose",
        kind=bool,
        default=False,
        key="detections.loose",
        group=NOT_IN_FILES,
        topic=ANSWERS,
    ),
)
