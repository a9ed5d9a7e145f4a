"""Write ground truth with the corrections that a person accepted among the suspects.

Beside the options with which boxscore suspects --write wrote them. Of a COCO file everything that is not
corrected stays as it stands; another format is written again, and refused where that would lose something.
The original is never overwritten.

Examples
--------
  boxscore fix instances.json results.json --top 50 --vetted export.json --output fixed.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from boxscore._utils.files import read_bytes, write_atomically
from boxscore._utils.text import counted
from boxscore.cli import suspects
from boxscore.cli.arguments import Option
from boxscore.cli.streams import say, show
from boxscore.data.tables import GroundTruth
from boxscore.diagnostics.vetting import VettedSuspects
from boxscore.errors import InputError
from boxscore.formats.converting import save_as
from boxscore.formats.registry import format_at

OPTIONS = (
    *(option for option in suspects.OPTIONS if option.name not in ("output", "write", "tool", "vetted")),
    next(option for option in suspects.OPTIONS if option.name == "vetted").but(
        help="the file that came back", required=True
    ),
    Option(
        "output",
        "where to write the corrected ground truth",
        short="-o",
        kind=Path,
        metavar="FILE",
        required=True,
        writes=(".",),
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, apply, write; return the exit status."""
    evaluation, found, _ = suspects.listed(arguments)
    done = suspects.vetted_of(evaluation, found, arguments)
    format_ = format_at(arguments.ground_truth, arguments.format, side="ground truth").name
    if format_ == "coco" and arguments.ground_truth.is_file():
        write_atomically(arguments.output, _corrected(arguments.ground_truth, evaluation.ground_truth, done))
    else:
        save_as(done.ground_truth, arguments.output, format=format_)
    show("\n".join(done.sentences))
    say(f"{counted(len(done.edits), 'correction')} written to {arguments.output}")
    return 0


def _corrected(path: Path, truth: GroundTruth, done: VettedSuspects) -> str:
    """Return a COCO file with the corrections, and all else as it stands."""
    content: Any = json.loads(read_bytes(path))
    edits, labels = done.edits, done.edits.labels
    place = {annotation["id"]: number for number, annotation in enumerate(content["annotations"])}
    highest = max((key for key in place if isinstance(key, int)), default=0)
    classes, images, ids = (each.tolist() for each in (truth.categories.ids, truth.images.ids, truth.ids))
    for removed, added in zip(edits.removed.tolist(), edits.added.tolist(), strict=True):
        box = [*labels.boxes[added, :2].tolist(), *labels.sizes[added].tolist()]
        category = classes[labels.category[added]]
        if removed < 0:
            highest += 1
            new = {"id": highest, "image_id": images[labels.image[added]], "category_id": category}
            content["annotations"].append({**new, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
            continue
        if ids[removed] not in place:
            rule = "have ids of its own to be corrected"
            raise InputError("an annotation", rule, got=repr(ids[removed]), place=str(path))
        annotation = content["annotations"][place[ids[removed]]]
        annotation["category_id"] = category
        if (labels.boxes[added] != truth.boxes[removed]).any():
            annotation |= {"bbox": box, "area": box[2] * box[3]}
            annotation.pop("segmentation", None)  # of the place where it was
    return json.dumps(content, ensure_ascii=False)
