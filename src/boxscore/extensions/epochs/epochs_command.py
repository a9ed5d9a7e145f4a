"""Evaluate the epochs of a training run: the curve, the best epoch, and which others may be as good.

DT is a folder, a pattern in quotes, or several files. The number that varies in the names is the epoch, as in
epoch_12.bbox.json or epoch12/predictions.json; files without one, such as latest.json, are left out.

The best of many epochs looks better than it is, because the same images choose and score it. The table marks
the epochs that may be the best, and the text says by how much the choice raises the score.

Examples
--------
  boxscore epochs instances.json results
  boxscore epochs instances.json 'runs/*/predictions.json' --metric AP50 --plot curve.svg
  boxscore epochs instances.json results --number 'epoch_([0-9]+)' --output csv
"""

from __future__ import annotations

import argparse
import shlex
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from boxscore._utils.files import write_atomically
from boxscore._utils.progress import progress, without_progress
from boxscore._utils.text import Columns, counted, short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.cli.arguments import DETECTIONS, INPUTS, OUTPUT, SHOW, Option
from boxscore.cli.choices import readers
from boxscore.cli.inputs import Inputs, evaluate_inputs, read_inputs, resolve_columns
from boxscore.cli.output import Section, written
from boxscore.cli.streams import say, show
from boxscore.errors import BoxscoreError, BoxscoreWarning, FindingWarning, InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.swapping import level_of
from boxscore.extensions.decisions.wording import p_text
from boxscore.extensions.epochs.curve import EpochCurve, epoch_curve
from boxscore.extensions.epochs.files import EpochFiles, find_epochs
from boxscore.extensions.pages.options import PLOT
from boxscore.extensions.pages.report_output import form_of_picture, picture
from boxscore.extensions.shell.detectors import read_others, with_detections
from boxscore.extensions.shell.frames import table_columns
from boxscore.extensions.shell.parameters import options_of
from boxscore.extensions.weights.resampling import LEAST_GROUPS, LEAST_UNITS

LONGEST_BAR = 14

MOST_ROWS = 60
"""Maximum epochs in the table of a terminal; of more, evenly spaced ones are shown."""

OPTIONS = (
    *(
        option.but(many=True, help="a folder of results, a pattern in quotes, or several files")
        if option is DETECTIONS
        else option
        for option in INPUTS
    ),
    OUTPUT,
    Option(
        "number",
        "regular expression whose first group is the epoch in a path, if several numbers vary",
        metavar="REGEX",
    ),
    *options_of(epoch_curve),
    PLOT.but(help="plot the curve: a .png, .svg or .pdf file"),
    SHOW.but(
        help="print only these columns, in this order, e.g. epoch AP behind may_be_best",
        brief="print only these columns, e.g. epoch AP behind",
    ),
)

WITHOUT = {"--memory-limit": "needs the matches of each epoch in memory"}


def run(arguments: argparse.Namespace) -> int:
    """Find, read, evaluate, print and plot; return the exit status."""
    if arguments.plot is not None:
        form = form_of_picture(arguments.plot, name="--plot")
    if arguments.unlisted_images == "background":
        cause = "every epoch would add other images; list all images in the ground truth"
        raise InputError("--unlisted-images", "be error or drop", got="background", cause=cause)
    found = find_epochs(arguments.detections, number=arguments.number)
    same = found.same()
    _say_files(found, same, arguments.number)
    failed: dict[int, str] = {}
    curve = epoch_curve(
        _evaluations(found, arguments, failed),
        metric=arguments.metric,
        confidence=arguments.confidence,
        group=arguments.group,
        seed=arguments.seed,
        workers=readers(arguments),
    )
    _say_failed(failed, found)
    unfinished = _warn_of_unfinished(curve, found)
    if arguments.plot is not None:
        from boxscore.reports import plots

        write_atomically(arguments.plot, picture(plots.epochs(curve), form))
    frame = curve.to_frame()
    paths = [str(found.paths[epoch]) for epoch in curve.epochs]
    value = curve.as_dict()
    for row, path in zip(value["epochs"], paths, strict=True):
        row["file"] = path
    value |= {
        "failed": [{"epoch": epoch, "reason": reason} for epoch, reason in failed.items()],
        "left_out": [str(path) for path in found.left_out],
    }
    table = table_columns(frame) | {"file": paths}
    numbers = {path: epoch for epoch, path in found.paths.items()}
    copies: dict[int, int] = {}
    for paths_of_same in same:
        first, *others = sorted(numbers[path] for path in paths_of_same if path in numbers) or [0]
        copies |= dict.fromkeys(others, first)
    title, *note = _sentences(curve, found, arguments, copies, unfinished)
    section = Section(title, _printed(curve), "\n".join(note), first_out=("estimate", "behind", "bar"))
    show(written(arguments.output, [section], value=value, table=table, footer=curve.signature))
    return 0


def _evaluations(
    found: EpochFiles, arguments: argparse.Namespace, failed: dict[int, str]
) -> Iterator[tuple[int, Evaluation]]:
    """Read the ground truth once, and evaluate one epoch after the other; collect those that fail."""
    resolve_columns(arguments)
    inputs: Inputs | None = None
    heard: dict[str, list[int]] = {}
    first_error: BoxscoreError | None = None
    items = found.paths.items()
    for epoch, path in progress(items, total=len(items), desc="epochs", unit="file"):
        with warnings.catch_warnings(record=True) as caught, without_progress():
            warnings.simplefilter("always", BoxscoreWarning)
            try:
                if inputs is None:
                    inputs = read_inputs(with_detections(path, arguments))
                    table = inputs.detections
                else:
                    table = read_others(path, inputs, arguments)
                    if arguments.scoreless:
                        table = table.without_scores()
                result = evaluate_inputs(inputs._replace(detections=table))
            except BoxscoreError as error:
                failed[epoch], first_error = " ".join(str(error).split()), first_error or error
                continue
        for one in caught:
            heard.setdefault(str(one.message).removeprefix(f"{table.source}: "), []).append(epoch)
        yield epoch, result
    # Warnings that many epochs share are printed once.
    for text, epochs in heard.items():
        warn_user(f"epoch{'s' * (len(epochs) > 1)} {short_list(epochs)}: {text}")
    if first_error is not None and len(failed) > len(found.paths) - 2:
        raise first_error


def _say_files(found: EpochFiles, same: Sequence[Sequence[Path]], number: str | None) -> None:
    """Print what the names of the files tell: those left out, missing epochs, and equal files.

    ``number`` is the expression of ``--number``, if given.
    """
    if found.left_out:
        names = short_list([path.name for path in found.left_out], 5)
        reason = "their names have no epoch" if number is None else "--number finds no epoch in their names"
        say(f"note: skipped, because {reason}: {names}", name="boxscore")
    missing = found.missing()
    if missing:
        say(f"note: no results for epoch{'s' * (len(missing) > 1)} {short_list(missing)}", name="boxscore")
    for paths in same:
        say(
            f"note: these files are identical: {short_list([str(path) for path in paths], 5)}",
            name="boxscore",
        )


def _say_failed(failed: Mapping[int, str], found: EpochFiles) -> None:
    if failed:
        texts = [f"{epoch} ({reason})" for epoch, reason in failed.items()]
        of = f"{len(failed)} of {len(found.paths)} epochs are left out, because they cannot be read"
        warn_user(FindingWarning(f"{of}: {short_list(texts, 3)}", code="epochs-failed"))


def _warn_of_unfinished(curve: EpochCurve, found: EpochFiles) -> set[int]:
    """Warn of epochs that may be unfinished, with detections in far fewer images than others; return them."""
    images = curve.seen
    usual = float(np.median(images))
    few = np.flatnonzero(2 * images < usual)
    # Early epochs may find nothing yet; only those after a usual one are suspicious.
    usual_from = int(np.argmax(2 * images >= usual))
    unfinished = few[few > usual_from].tolist()
    for at in unfinished:
        path, count = found.paths[curve.epochs[at]], counted(int(images[at]), "image")
        text = (
            f"{path}: has detections in {count}, others in about {usual:.0f}. It may be unfinished: objects "
            "of images without detections count as missed."
        )
        warn_user(FindingWarning(text, code="epochs-unfinished"))
    return {curve.epochs[at] for at in unfinished}


def _note_on_intervals(curve: EpochCurve, unit: str) -> list[str]:
    """Say why no epoch has an interval; nothing if one has."""
    if np.isfinite(curve.low).any():
        return []
    if not curve.least_images:
        return ["No interval: none of this metric that was tried holds in simulations."]
    if curve.images >= curve.least_images:
        return []
    few = f"too few {unit}s with objects ({curve.images}; at least {curve.least_images} are needed)"
    return [f"No interval: {few}."]


def _sentences(
    curve: EpochCurve,
    found: EpochFiles,
    arguments: argparse.Namespace,
    copies: Mapping[int, int],
    unfinished: Collection[int],
) -> list[str]:
    """Say which epoch to take, whether it is better than the last, and the next step.

    ``copies`` are epochs whose file is that of an earlier one. They count once.
    """
    best, last = curve.epochs[curve.best], curve.epochs[-1]
    unit = "group" if curve.grouped else "image"
    intervals = _note_on_intervals(curve, unit)
    if np.isnan(curve.p_values).all():
        least = LEAST_GROUPS if curve.grouped else LEAST_UNITS
        few = f"too few {unit}s with objects ({curve.images}; at least {least} are needed)"
        score = f"the best {curve.metric}, {curve.values[curve.best]:.4f}"
        return [f"Epoch {best} has {score}: {few} to say which are worse.", *intervals]
    title = _best_and_last(curve, copies)
    if last in unfinished:
        title += f" But epoch {last} may be unfinished: see the warning."
    step = _next_step(curve, found, arguments.ground_truth, copies, unit)
    count = sum(epoch not in copies for epoch in curve.epochs)
    if count == 1:
        return [title, *intervals, step]
    how = (
        f"p_value: tests whether the epoch is at least as good as every other one; may_be_best: above "
        f"{1 - curve.confidence:.4g}. In {_share(curve)} of samples the truly best epoch is among them."
    )
    return [title, _which_may_be_best(curve, copies, count), *intervals, _on_choice(curve, count), step, how]


def _share(curve: EpochCurve) -> str:
    return f"{100 * curve.confidence:g}%"


def _best_and_last(curve: EpochCurve, copies: Mapping[int, int]) -> str:
    """Say which epoch is the best, and compare the last one with it."""
    best, last, value = curve.epochs[curve.best], curve.epochs[-1], float(curve.values[-1])
    score = f"{curve.metric} {curve.values[curve.best]:.4f}"
    low, high = curve.low[curve.best], curve.high[curve.best]
    if np.isfinite(low):
        score += f" ({_share(curve)} interval on very many images: {low:.3f} to {high:.3f})"
    p = f"p = {p_text(float(curve.p_values[-1]), level_of(curve.confidence))}"
    if not curve.behind.any():
        return f"All {len(curve.epochs)} epochs have the same {curve.metric}: {score}."
    if best == last:
        return f"The last epoch, {last}, is the best: {score}."
    if copies.get(last) == best:
        return f"Epoch {best} is the best: {score}. The last, {last}, is a copy of its file."
    if curve.may_be_best[-1]:
        return f"Epoch {best} is the best: {score}. The last, {last}, may be as good: {value:.4f} ({p})."
    return f"Take epoch {best}: {score}. It is better than the last, {last}, by {curve.behind[-1]:.4f} ({p})."


def _next_step(
    curve: EpochCurve, found: EpochFiles, ground_truth: Path, copies: Mapping[int, int], unit: str
) -> str:
    """Say what to do, or to type, after :func:`_best_and_last`."""
    best, last = curve.epochs[curve.best], curve.epochs[-1]
    files = " ".join(shlex.quote(str(path)) for path in (ground_truth, found.paths[last], found.paths[best]))
    if not curve.behind.any():
        return "Check whether the files hold the results of one and the same epoch."
    if best == last:
        return "More epochs may raise it."
    if copies.get(last) == best:
        return "Check whether the last epoch was saved twice, or its own results are missing."
    if curve.may_be_best[-1]:
        compare = f"boxscore compare {files} --metrics {curve.metric} --plan"
        return f"To see how many {unit}s would settle it: {compare}"
    return f"Where it is better: boxscore compare {files} --per-class"


def _which_may_be_best(curve: EpochCurve, copies: Mapping[int, int], count: int) -> str:
    """Name the epochs that may be the best, of ``count`` without copies."""
    may_be_best = [epoch for epoch, may in zip(curve.epochs, curve.may_be_best.tolist(), strict=True) if may]
    kept = [epoch for epoch in may_be_best if epoch not in copies]
    others = f"{len(kept)} of {count} epochs may be the best: {short_list(kept, 12)}."
    if len(kept) == 1:
        others = f"No other of the {count} epochs may be the best."
    return others + " Copies count once." * (len(kept) < len(may_be_best))


def _on_choice(curve: EpochCurve, count: int) -> str:
    """Say by how much the choice of the best of several epochs changes its score."""
    amount = f"about {curve.excess:.4f}" if curve.excess >= 0.0001 else "less than 0.0001"
    changes = "lowers" if curve.lower_is_better else "raises"
    return (
        f"The best of {count} looks better than it is: choosing it on these images {changes} {curve.metric} "
        f"by {amount}. Report {curve.metric} on other images, such as a test set."
    )


def _printed(curve: EpochCurve) -> Columns:
    """Return the table of a terminal, with a bar from the worst to the best score."""
    low, high = float(curve.values.min()), float(curve.values.max())
    lengths = (curve.values - low) / ((high - low) or 1.0) * (LONGEST_BAR - 1) + 1
    columns = table_columns(curve.to_frame())
    columns["may_be_best"] = ["yes" if may else "" for may in curve.may_be_best.tolist()]
    columns["bar"] = ["#" * round(length) for length in lengths.tolist()]
    # If there are many, show evenly spaced ones, the best and the last.
    count = len(curve.epochs)
    step = -(-count // MOST_ROWS)
    shown = sorted({*range(0, count, step), curve.best, count - 1})
    return {name: [values[at] for at in shown] for name, values in columns.items()}
