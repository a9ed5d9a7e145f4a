"""Evaluate many models on many data sets: a table of sets and models, means, differences, and failures.

A suite is a TOML file that lists sets and models, or a folder with a subfolder for each set. A missing, empty
or broken result counts as 0 and is listed, with the change of the mean if it were left out.

Examples
--------
  boxscore suite suite.toml
  boxscore suite suite.toml --keep kept --report out
  boxscore suite folder --metric AP50 --output suite.json
  boxscore suite folder --folds 5
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from boxscore._utils.text import counted, short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.cli.arguments import OUTPUT, READERS, SHOW, Option
from boxscore.cli.choices import readers
from boxscore.cli.output import Section, written
from boxscore.cli.sockets import without
from boxscore.cli.streams import say, show
from boxscore.errors import FindingWarning
from boxscore.extensions.pages.options import REPORT
from boxscore.extensions.shell.frames import table_columns
from boxscore.extensions.shell.parameters import options_of
from boxscore.extensions.suite.reading import Suite
from boxscore.extensions.suite.result import SuiteResult
from boxscore.extensions.suite.running import run_suite

_OPTIONS = options_of(
    run_suite,
    (
        Option(
            "keep",
            "cache folder for finished cells, keyed by a hash of their inputs; cached cells are not "
            "evaluated again",
            kind=Path,
            metavar="DIR",
            writes=("*/*.json",),
        ),
        REPORT.but(
            help="write a heat map, suite.html, with a report for each data set",
            key="",
            writes=(".", "suite.html", "suite.json", "suite.csv", "sets/*/*"),
        ),
    ),
)
OPTIONS = (
    Option(
        "suite",
        "a TOML file, or a folder of data sets",
        kind=Path,
        positional=True,
        required=True,
        metavar="SUITE",
    ),
    OUTPUT,
    *_OPTIONS,
    SHOW,
    READERS.but(help="processes that evaluate data sets in parallel (default: one per CPU core)", key=""),
)

WITHOUT = without("evaluation", "evaluates whole images of each set; boxscore evaluate takes regions")


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate and print; return the exit status."""
    suite = Suite.read(arguments.suite)
    options = {option.dest: getattr(arguments, option.dest) for option in _OPTIONS}
    result = run_suite(suite, **options, progress=True, workers=readers(arguments))
    _warn_of_failures(result)
    sections = _sections(result)
    value = result.as_dict()
    show(
        written(
            arguments.output,
            sections,
            value=value,
            table=table_columns(result.to_frame()),
            footer=result.signature,
        )
    )
    if arguments.report is not None:
        say(f"report written to {arguments.report / 'suite.html'}")
    return 0


def _warn_of_failures(result: SuiteResult) -> None:
    """Warn about cells without a result, and repeat the warnings of the others."""
    failed = [f"{name}/{model} ({state})" for name, model, state in result.failed_frame().to_numpy()[:, :3]]
    if failed:
        cells = f"{counted(len(failed), 'cell')} without a result: {short_list(failed)}"
        text = f"{cells}. Each counts as {result.worst:.4g}."
        warn_user(FindingWarning(text, code="suite-cells"))
    of: dict[str, list[str]] = {}
    for where, text in result.warnings:
        of.setdefault(text, []).append(where)
    for text, places in of.items():
        say(f"{short_list(places, 3)}: {text}", name="boxscore")


def _models_note(result: SuiteResult) -> str:
    """Explain the estimate and interval of a mean, or why there is none."""
    share = f"{100 * result.confidence:g}%"
    note = f"estimate: the mean without the bias of few images; low, high: its {share} interval"
    if result.suite.folds:
        note = f"sd: standard deviation over folds; {note}, wider because folds share training images"
    else:
        note += " over images"
    return f"{note}. {result.interval_note}" if result.interval_note else note


def _sections(result: SuiteResult) -> list[Section]:
    # Print one table each for sets, models, differences and failures; skip empty ones.
    sets = Section(f"{result.caption} of {result.suite.name}", table_columns(result.to_frame()))
    # The interval of folds matters more than the worst fold.
    unit = result.suite.unit
    hidden: tuple[str | tuple[str, ...], ...] = (("estimate", "low", "high"), "worst_set", "median")
    if result.suite.folds:
        hidden = ("median", "worst_fold", "worst", "wins")
    models = Section(
        f"Models: {result.caption} over {counted(len(result.sets), unit)}",
        table_columns(result.model_frame()),
        _models_note(result),
        {"wins": 2 if (result.wins % 1).any() else 0},  # sets with several best models are shared
        first_out=("mean_without_failed", *hidden),
    )
    sections = [sets, models]
    # Differences need two models.
    frame = result.difference_frame()
    if len(frame):
        first = result.models[0]
        over = "folds" if result.suite.folds else "data sets"
        note = f"delta: other minus {first} in the mean over {over}. {result.rule}"
        columns: dict[str, Any] = table_columns(frame.drop(columns="first"))
        ends = ((f"low_{unit}s", f"high_{unit}s"), ("low_images", "high_images"))
        sections.append(Section(f"Differences from {first}", columns, note, first_out=ends))
    # List failures with their price.
    failed = result.failed_frame()
    if len(failed):
        note = "price: how much the mean of the model would gain without this cell"
        sections.append(Section("Without a result", table_columns(failed), note, first_out=("reason",)))
    return sections
