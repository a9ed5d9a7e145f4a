"""Draw ground truth and detections over images: the worst ones, or those given by --images.

All drawings are written at the end, or none. A missing or unreadable image is replaced by a blank frame, with
a warning.

Examples
--------
  boxscore draw instances.json results.json
  boxscore draw instances.json results.json --image-folder val2017 --output pictures
  boxscore draw instances.json results.json --images 139 285 --at-score 0.5 --output pictures --form svg
  boxscore draw instances.json results.json --only fn fp --class person --output mistakes
  boxscore draw instances.json results.json --pairs --images 139 --image-folder val2017 --output pictures
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import re
from collections.abc import Iterator, Sequence
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
from boxscore.extensions.diagnostics.naming_errors import ERROR_TYPES
from boxscore.extensions.large.options import MEMORY_LIMIT
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.pages.options import PLOT_FORMS
from boxscore.extensions.pages.plots.boxes import Chosen
from boxscore.extensions.pages.report_output import picture
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE
from boxscore.matching.ranking import ranked_by

OUTCOMES = {"tp": TRUE_POSITIVE, "fp": FALSE_POSITIVE, "fn": MISSED}
ONLY = (*OUTCOMES, *ERROR_TYPES)
"""Kinds of boxes that can be drawn alone."""

OPTIONS = (
    *INPUTS,
    RESULTS_OUTPUT.but(
        help="output folder for the pictures",
        metavar="DIR",
        writes=(".", "[0-9][0-9][0-9]_*", "*/[0-9][0-9][0-9]_*"),
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
    Option(
        "only",
        "draw only these boxes, in a folder for each, the images with most of them first: tp, fp, fn (missed "
        "at this score), or a kind of error: classification, localization, both, duplicate, background, "
        "missed (at every score)",
        choices=tuple(ONLY),
        many=True,
        metavar="KIND",
        brief="draw only tp, fp, fn or kinds of error, in a folder for each",
    ),
    Option("class", "with --only: boxes of these classes", variable="of_class", many=True, metavar="CLASS"),
    Option("size", "with --only: boxes of this area range, e.g. small", metavar="RANGE"),
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
    _check_only(arguments)
    with _evaluate(arguments) as (evaluation, every):
        # Choose the images: the given ones, or those with the most mistakes.
        score = arguments.at_score if arguments.at_score is not None else evaluation.operating_score
        if arguments.only is not None:
            return _draw_only(evaluation, score, arguments)
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


def _check_only(arguments: argparse.Namespace) -> None:
    """Reject options that --only does not allow, or that need it."""
    if arguments.only is None:
        for name, given in (("--class", arguments.of_class), ("--size", arguments.size)):
            if given is not None:
                raise InputError(
                    name, f"be used together with --only, e.g. --only {' '.join(OUTCOMES)}", got="none"
                )
    for name, given in (("--pairs", arguments.pairs), ("--memory-limit", arguments.memory_limit)):
        if given and arguments.only is not None:
            raise InputError("--only", f"not be combined with {name}", got=" ".join(arguments.only))


def _draw_only(evaluation: Evaluation, score: float, arguments: argparse.Namespace) -> int:
    """Draw the images with the most boxes of each kind, in a folder for each kind; return the exit status."""
    ids, file_names = evaluation.ground_truth.images.ids, evaluation.ground_truth.images.file_names
    kinds = {
        kind: chosen_boxes(evaluation, kind, score, classes=arguments.of_class, size=arguments.size)
        for kind in dict.fromkeys(arguments.only)
    }
    drawings = {}
    for kind, chosen in kinds.items():
        # Count the boxes of each image; draw those with the most first.
        tables = (
            evaluation.detections.image[chosen.detections],
            evaluation.ground_truth.image[chosen.truths],
        )
        counts = np.bincount(np.concatenate(tables), minlength=evaluation._image_count)
        order = np.argsort(-counts, kind="stable")
        images = order[counts[order] > 0]
        if not len(images):
            say(f"{kind}: no such boxes")
        elif len(images) > arguments.worst:
            say(f"{kind}: {arguments.worst} of {len(images):,} images; --worst {len(images)} draws all")
        for number, row in enumerate(images[: arguments.worst].tolist(), start=1):
            stem = plain_file_name(str(file_names[row] or ids[row]))
            drawings[f"{kind}/{number:03d}_{stem}.{arguments.form}"] = row, chosen
    if not drawings:
        return 0
    drawn = (_draw_image(evaluation, row, score, arguments, only=chosen) for row, chosen in drawings.values())
    write_folder(arguments.output, zip(drawings, drawn, strict=True))
    show("\n".join(str(arguments.output / name) for name in drawings))
    return 0


def chosen_boxes(
    evaluation: Evaluation,
    kind: str,
    score_threshold: float,
    *,
    classes: Sequence[str] | None = None,
    size: str | None = None,
) -> Chosen:
    """Choose the boxes of a kind of :data:`ONLY` at a score, of some classes, or of an area range."""
    from boxscore.extensions.pages.mistakes import KINDS, Mistakes

    def mistakes() -> Mistakes:  # once for all kinds
        key = "mistakes to draw", score_threshold
        made: Mistakes = evaluation._once(key, lambda: Mistakes(evaluation, score_threshold=score_threshold))
        return made

    outcomes, tables = evaluation.outcomes, (evaluation.detections, evaluation.ground_truth)
    nothing = [np.zeros(len(table), dtype=bool) for table in tables]
    # A missed object is in the ground truth; all other kinds are detections.
    if kind in ("fn", "missed"):
        rows = outcomes.truth(score_threshold) == MISSED
        if kind == "missed":
            rows &= mistakes().truths.kind == KINDS.index("missed")
        chosen = Chosen(nothing[0], rows)
    else:
        rows = outcomes.detection == OUTCOMES.get(kind, FALSE_POSITIVE)
        rows &= ranked_by(evaluation.detections) >= score_threshold
        if kind not in OUTCOMES:
            rows &= mistakes().detections.kind == KINDS.index(kind)
        chosen = Chosen(rows, nothing[1])
    # Keep the boxes of the given classes and area range.
    areas = evaluation._matcher.areas, evaluation.ground_truth.area
    for rows, table, area in zip(chosen, tables, areas, strict=True):
        if classes is not None:
            labels = evaluation.ground_truth.categories.labels
            wanted = [labels.index(checks.one_of(name, labels, name="--class")) for name in classes]
            rows &= np.isin(table.category, wanted)
        if size is not None:
            ranges = evaluation.protocol.ignore.area_ranges
            low, high = ranges[checks.one_of(size, list(ranges), name="--size")]
            rows &= (area >= low) & (area <= high)
    return chosen


def _draw_image(
    evaluation: Evaluation,
    row: int,
    score: float,
    arguments: argparse.Namespace,
    *,
    only: Chosen | None = None,
) -> bytes:
    """Draw one image."""
    from boxscore.extensions.pages.plots.boxes import draw_evaluated
    from boxscore.extensions.pages.plots.pairs import draw_evaluated_pairs

    draw = draw_evaluated_pairs if arguments.pairs else functools.partial(draw_evaluated, only=only)
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
