"""Draw ground truth and detections over images: the worst ones, or those named with --images.

Examples
--------
  boxscore draw --gt instances.json --dt results.json --image-folder val2017 --to pictures
  boxscore draw --gt instances.json --dt results.json --images 139 285 --at-score 0.5 --to pictures --form svg
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from boxscore._utils import checks
from boxscore.cli._inputs import add_input_arguments, evaluate_inputs, read_inputs
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

__all__ = ["add_arguments", "plain_file_name", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser)
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="where to write the pictures")
    parser.add_argument("--image-folder", type=Path, metavar="DIR", help="of the pictures; else blank frames")
    parser.add_argument(
        "--worst", type=int, default=12, metavar="N", help="how many without --images (default: 12)"
    )
    parser.add_argument(
        "--at-score",
        type=float,
        metavar="S",
        help="leave out detections below (default: the score of the best F1)",
    )
    parser.add_argument("--form", default="png", choices=["png", "svg", "pdf"], help="default: png")


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, draw; return the exit status."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    from boxscore.reports.diagnosis import operating_score
    from boxscore.reports.gallery import worst_images
    from boxscore.reports.plots._style import pyplot

    pyplot()
    checks.whole_number(arguments.worst, 1, name="--worst")
    if arguments.image_folder is not None and not arguments.image_folder.is_dir():
        raise InputError(f"--image-folder must be a folder. Got {str(arguments.image_folder)!r}.")
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
    import io

    from boxscore._utils.files import write_folder
    from boxscore.reports.pictures import find_picture
    from boxscore.reports.plots._style import pyplot
    from boxscore.reports.plots.boxes import draw_evaluated

    images = evaluation.ground_truth.images
    folder: Path | None = arguments.image_folder
    picture = find_picture(evaluation, row, folder) if folder is not None else None
    if folder is not None and picture is None:
        print(f"image {images.ids[row]}: not found in {folder}; drawn on a blank frame", file=sys.stderr)
    identifier = images.ids[row : row + 1].tolist()[0]
    figure = draw_evaluated(picture, evaluation, identifier, score_threshold=score)
    output = io.BytesIO()
    figure.savefig(output, format=arguments.form, dpi=150)
    pyplot().close(figure)
    name = f"{number:03d}_{plain_file_name(str(images.file_names[row] or identifier))}.{arguments.form}"
    write_folder(arguments.to, {name: output.getvalue()})
    return Path(arguments.to) / name


def plain_file_name(text: str) -> str:
    """Return a harmless file name from an image's name: its stem with letters, digits and ``._-`` only."""
    stem = re.split(r"[/\\]", text)[-1].rsplit(".", 1)[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._")[:80] or "image"
