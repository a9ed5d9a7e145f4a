"""Define the options that evaluate only some regions of the images."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from boxscore._utils.text import counted_of
from boxscore.cli.arguments import IMAGES_TOPIC, INPUT, Option
from boxscore.evaluation import Evaluation

_RULE = "boxscore.extensions.regions.counting:by_center"

OPTIONS = (
    Option(
        "inside",
        "count only objects and unmatched detections with the center of their box in one of these regions: "
        "polygons or boxes in JSON, GeoJSON or CSV, a PNG mask, or ground truth in any format, whose objects "
        "are regions; FILE:CLASS takes those of a class",
        kind=Path,
        metavar="FILE",
        key="evaluation.inside",
        group=INPUT,
        brief="count only in these regions; --outside: not in them",
        changes=_RULE,
        does="boxscore.extensions.regions.options:note_on_detections",
    ),
    Option(
        "outside",
        "do not count objects and unmatched detections with the center of their box in one of these regions; "
        "a file as for --inside",
        kind=Path,
        metavar="FILE",
        key="evaluation.outside",
        group=INPUT,
        topic=IMAGES_TOPIC,
        changes=_RULE,
        does="boxscore.extensions.regions.options:note_of_outside_alone",
    ),
)


def note_on_detections(evaluation: Evaluation, arguments: argparse.Namespace, messages: Any) -> list[str]:
    """Say how many detections count only where they match an object that counts."""
    from boxscore.extensions.regions.counting import center_counts

    detections = evaluation.detections
    count = len(detections)
    out = count - int(center_counts(detections, evaluation.images).sum())
    if not out:
        return []
    return [
        f"note: {counted_of(out, count, 'detection')} "
        f"{'has its' if out == 1 else 'have their'} center where nothing counts; "
        f"{'it counts only if it matches' if out == 1 else 'they count only if they match'} an object that "
        "counts."
    ]


def note_of_outside_alone(evaluation: Evaluation, arguments: argparse.Namespace, messages: Any) -> list[str]:
    """Say the same for ``--outside``, unless ``--inside`` said it for both."""
    return [] if arguments.inside else note_on_detections(evaluation, arguments, messages)
