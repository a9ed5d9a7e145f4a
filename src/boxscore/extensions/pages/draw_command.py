"""Draw ground truth and detections over images: the worst ones, or those given by --images.

All drawings are written at the end, or none. A missing or unreadable image is replaced by a blank frame, with
a warning.

Examples
--------
  boxscore draw instances.json results.json
  boxscore draw instances.json results.json --image-folder val2017 --output pictures
  boxscore draw instances.json results.json --images 139 285 --at-score 0.5 --output pictures --form svg
  boxscore draw instances.json results.json --pairs --images 139 --image-folder val2017 --output pictures
"""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import write_folder
from boxscore._utils.user_warnings import warn_user
from boxscore.cli.arguments import INPUTS, RESULTS_OUTPUT, Option
from boxscore.cli.choices import existing_folder
from boxscore.cli.inputs import evaluate_inputs, read_inputs
from boxscore.cli.streams import say, show
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.options import MEMORY_LIMIT
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.pages.options import PLOT_FORMS
from boxscore.extensions.pages.report_output import picture

OPTIONS = (
    *INPUTS,
    RESULTS_OUTPUT.but(
        help="output folder for the pictures",
        metavar="DIR",
        writes=(".", "[0-9][0-9][0-9]_*"),
        required=False,
        default=Path("drawn"),
    ),
    Option(
        "worst", "number of worst images to draw if --images is not used", kind=int, default=12, metavar="N"
    ),
    Option(
        "at-score",
        "drop detections that score below this (default: the score with the best F1)",
        kind=float,
        metavar="S",
    ),
    Option(
        "pairs",
        "draw ground truth in green and detections in red, with the IoU of each matched pair, or of the "
        "most overlapping pair of the same class",
        kind=bool,
        default=False,
    ),
    MEMORY_LIMIT,
    Option("form", "format of the pictures", default="png", choices=PLOT_FORMS),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate and draw; return the exit status."""
    from boxscore.extensions.pages.choices import worst_images
    from boxscore.extensions.pages.plots._style import pyplot

    # Reject what cannot work before reading anything.
    pyplot()
    checks.whole_number(arguments.worst, 1, name="--worst")
    if arguments.at_score is not None:
        checks.number_between(arguments.at_score, -math.inf, math.inf, name="--at-score")
    existing_folder(arguments.image_folder, name="--image-folder")
    with _evaluate(arguments) as (evaluation, every):
        # Choose the images: the given ones, or those with the most mistakes.
        score = arguments.at_score if arguments.at_score is not None else evaluation.operating_score
        if every:
            chosen = list(range(evaluation._image_count))
        else:
            chosen = worst_images(evaluation, score_threshold=score, most=arguments.worst)
        if not chosen:
            say("no image has mistakes to draw")
            return 0
        # Load only the chosen images as tables, also from partitions.
        evaluation, among = source_of(evaluation).tables_of(np.array(chosen))
        rows = chosen if among is None else np.searchsorted(among, chosen).tolist()
        images = evaluation.ground_truth.images
        # Number the files in the order of the list.
        stems = [plain_file_name(str(images.file_names[row] or images.ids[row])) for row in rows]
        names = [f"{number:03d}_{stem}.{arguments.form}" for number, stem in enumerate(stems, start=1)]
        # Draw one picture at a time while writing.
        drawn = (_draw_image(evaluation, row, score, arguments) for row in rows)
        write_folder(arguments.output, zip(names, drawn, strict=True))
    show("\n".join(str(arguments.output / name) for name in names))
    return 0


@contextlib.contextmanager
def _evaluate(arguments: argparse.Namespace) -> Iterator[tuple[Evaluation, bool]]:
    """Evaluate, in partitions if memory is limited; return whether to draw all chosen images."""
    if arguments.memory_limit is None:
        inputs = read_inputs(arguments)
        yield evaluate_inputs(inputs), inputs.images is not None
        return
    from boxscore.extensions.large.command_line import DRAWN, evaluation_in_parts

    with evaluation_in_parts(arguments, drawn=DRAWN) as evaluation:
        yield evaluation, False


def _draw_image(evaluation: Evaluation, row: int, score: float, arguments: argparse.Namespace) -> bytes:
    """Draw one image."""
    from boxscore.extensions.pages.plots.boxes import draw_evaluated
    from boxscore.extensions.pages.plots.pairs import draw_evaluated_pairs

    draw = draw_evaluated_pairs if arguments.pairs else draw_evaluated
    identifier = evaluation.ground_truth.images.ids[row : row + 1].tolist()[0]
    image = None if arguments.image_folder is None else _picture(evaluation, row, arguments.image_folder)
    try:
        figure = draw(image, evaluation, identifier, score_threshold=score)
    # The image is at fault: everything else was checked.
    except InputError as error:
        _warn_of_blank_frame(str(error))
        figure = draw(None, evaluation, identifier, score_threshold=score)
    return picture(figure, arguments.form)


def _picture(evaluation: Evaluation, row: int, folder: Path) -> Path | None:
    """Return the file of an image; None, with a warning, if it does not exist."""
    from boxscore.extensions.pages.pictures import find_picture

    path = find_picture(evaluation, row, folder)
    if path is None:
        _warn_of_blank_frame(f"image {evaluation.ground_truth.images.ids[row]} not found in {folder}.")
    return path


def _warn_of_blank_frame(text: str) -> None:
    warn_user(f"{text.rstrip('.')}; drawing on a blank frame.")


def plain_file_name(text: str) -> str:
    """Return a safe file name from an image's name: its stem with only letters, digits and ``._-``."""
    stem = re.split(r"[/\\]", text)[-1].rsplit(".", 1)[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._")[:80] or "image"
