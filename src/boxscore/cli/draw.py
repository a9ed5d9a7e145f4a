"""Draw ground truth and detections over images: the worst ones, or those named with --images.

Examples
--------
  boxscore draw --gt instances.json --dt results.json --image-folder val2017 --to pictures
  boxscore draw --gt instances.json --dt results.json --images 139 285 --at-score 0.5 --to pictures --form svg
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from boxscore._utils import checks
from boxscore.cli.arguments import AT_SCORE, IMAGE_FOLDER, INPUTS, PLOT_FORMS, Option
from boxscore.cli.inputs import evaluate_inputs, existing_folder, read_inputs
from boxscore.cli.output import picture
from boxscore.evaluation import Evaluation

__all__ = ["OPTIONS", "plain_file_name", "run"]


OPTIONS = (
    *INPUTS,
    Option("to", "where to write the pictures", kind=Path, required=True, metavar="DIR"),
    IMAGE_FOLDER.but(help="of the pictures; else blank frames", group=""),
    Option("worst", "how many without --images (default: 12)", kind=int, default=12, metavar="N"),
    AT_SCORE.but(help="leave out detections below (default: the score of the best F1)"),
    Option("form", "default: png", default="png", choices=PLOT_FORMS),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, draw; return the exit status."""
    from boxscore.reports.diagnosis import operating_score
    from boxscore.reports.gallery import worst_images
    from boxscore.reports.plots._style import pyplot

    pyplot()
    checks.whole_number(arguments.worst, 1, name="--worst")
    existing_folder(arguments.image_folder, name="--image-folder")
    inputs = read_inputs(arguments)
    evaluation = evaluate_inputs(inputs)
    score = arguments.at_score if arguments.at_score is not None else operating_score(evaluation)
    if inputs.images is not None:
        rows = list(range(len(evaluation.ground_truth.images)))
    else:
        rows = worst_images(evaluation, score_threshold=score, most=arguments.worst)
    for number, row in enumerate(rows, start=1):
        print(_draw(evaluation, row, score, number, arguments))
    if not rows:
        print("no image has a mistake to draw", file=sys.stderr)
    return 0


def _draw(evaluation: Evaluation, row: int, score: float, number: int, arguments: argparse.Namespace) -> Path:
    """Write one picture and return its path."""
    from boxscore._utils.files import write_folder
    from boxscore.reports.pictures import find_picture
    from boxscore.reports.plots.boxes import draw_evaluated

    images = evaluation.ground_truth.images
    folder: Path | None = arguments.image_folder
    image = find_picture(evaluation, row, folder) if folder is not None else None
    if folder is not None and image is None:
        print(f"image {images.ids[row]}: not found in {folder}; drawn on a blank frame", file=sys.stderr)
    identifier = images.ids[row : row + 1].tolist()[0]
    figure = draw_evaluated(image, evaluation, identifier, score_threshold=score)
    name = f"{number:03d}_{plain_file_name(str(images.file_names[row] or identifier))}.{arguments.form}"
    write_folder(arguments.to, {name: picture(figure, arguments.form)})
    return Path(arguments.to) / name


def plain_file_name(text: str) -> str:
    """Return a harmless file name from an image's name: its stem with letters, digits and ``._-`` only."""
    stem = re.split(r"[/\\]", text)[-1].rsplit(".", 1)[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._")[:80] or "image"
