"""Write the report folders and pictures of commands."""

from __future__ import annotations

import argparse
import io
import itertools
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxscore._utils import checks
from boxscore._utils.text import text_table
from boxscore.cli.choices import existing_folder, readers
from boxscore.cli.output import Remembered
from boxscore.cli.streams import say, table_width
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.compare import DetectorComparison
from boxscore.extensions.diagnostics.class_groups import class_group_scores, groups_of_text
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.pages.folder import write_comparison, write_report
from boxscore.extensions.pages.options import PLOT_FORMS
from boxscore.extensions.pages.plots._style import pyplot
from boxscore.extensions.pages.view import ReportOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHOLE_TABLES, WHOLE_PLOTS = ("matches", "confidence_curve"), ("f1_curve",)
"""Tables and plots that need all matches, or all scores, in one place."""


def save_report(evaluation: Evaluation, arguments: argparse.Namespace, messages: Remembered) -> None:
    """Write the report folder given by ``--report``."""
    choose_folder(arguments)
    paths = write_report(evaluation, arguments.report, **_content(arguments, messages))
    if not source_of(evaluation).is_here:
        _report_left_out(arguments, {(path.parent.name, path.stem) for path in paths})


def choose_folder(arguments: argparse.Namespace) -> None:
    """Replace the folder by the first numbered one without a report, unless a report may be replaced."""
    folder: Path = arguments.report
    if arguments.overwrite or not (folder / "report.html").is_file():
        return
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    arguments.report = next(one for one in numbered if not one.exists())
    say(f"note: {folder} has a report already; --overwrite replaces it", name="boxscore")


def _report_left_out(arguments: argparse.Namespace, written: Collection[tuple[str, str]]) -> None:
    """Report which tables and plots partitions cannot have."""
    asked = {"tables": (arguments.tables, WHOLE_TABLES), "plots": (arguments.plots, WHOLE_PLOTS)}
    left_out = [
        f"{kind}/{name}"
        for kind, (form, names) in asked.items()
        for name in names
        if form is not None and (kind, name) not in written
    ]
    if left_out:
        say(f"note: not written with --memory-limit: {', '.join(left_out)}", name="boxscore")


def reported(evaluation: Evaluation, arguments: argparse.Namespace, messages: Remembered) -> list[str]:
    """Write the report, and return the lines about it below the result."""
    save_report(evaluation, arguments, messages)
    return [written_line(arguments.report)]


def groups_printed(evaluation: Evaluation, arguments: argparse.Namespace, messages: Remembered) -> list[str]:
    """Return the table of ``--class-groups`` below the result."""
    scores = class_group_scores(evaluation, groups_of_text(arguments.class_groups))
    columns = {str(name): values.tolist() for name, values in scores.printed_frame().items()}
    return ["", f"{scores.title}:", "", *text_table(columns, width=table_width()).split("\n")]


def report_written(folder: Path) -> None:
    """Print which file of a report's folder to open."""
    say(written_line(folder))


def written_line(folder: Path) -> str:
    """Return which file of a report's folder to open."""
    return f"report written to {folder / 'report.html'}"


def save_comparison(
    comparison: DetectorComparison, arguments: argparse.Namespace, messages: Remembered
) -> None:
    """Write the comparison's report folder."""
    choose_folder(arguments)
    write_comparison(comparison, arguments.report, **_content(arguments, messages))


def _content(arguments: argparse.Namespace, messages: Remembered) -> dict[str, Any]:
    groups = getattr(arguments, "class_groups", None)
    options = ReportOptions(
        title=arguments.title,
        warnings=messages.each,
        image_folder=existing_folder(arguments.image_folder, name="--image-folder"),
        gallery=arguments.gallery,
        resamples=arguments.resamples,
        seed=getattr(arguments, "seed", 0),
        workers=readers(arguments),
        class_groups=None if groups is None else groups_of_text(groups),
        progress=True,
    )
    return {"options": options, "tables": arguments.tables, "plots": arguments.plots}


def form_of_picture(path: Path, *, name: str) -> str:
    """Return the form of a picture by its ending; raise if it, or the folder, does not exist."""
    form = checks.one_of(path.suffix.removeprefix(".").lower(), PLOT_FORMS, name=f"the ending of {name}")
    if not path.parent.is_dir():
        raise InputError(name, "be in a folder that exists", got=repr(str(path)))
    return form


def picture(figure: Figure, form: str) -> bytes:
    """Return a figure as the bytes of a file, and close it."""
    output = io.BytesIO()
    # Matplotlib warns about extremely narrow pictures.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "constrained_layout not applied", UserWarning)
        figure.savefig(output, format=form, dpi=150)
    pyplot().close(figure)
    return output.getvalue()
