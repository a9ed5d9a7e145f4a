"""Show the runs that boxscore check --history recorded, as a table and as a picture.

Examples
--------
  boxscore history scores.jsonl
  boxscore history scores.jsonl --metrics AP AP50 --plot scores.svg
  boxscore history scores.jsonl --output csv
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

from boxscore._utils.files import write_atomically
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.cli.arguments import OUTPUT, Option
from boxscore.cli.output import Section, written
from boxscore.cli.streams import show
from boxscore.extensions.decisions.gate import same_rules
from boxscore.extensions.decisions.history import Record, read_history
from boxscore.extensions.pages.options import PLOT
from boxscore.extensions.pages.report_output import form_of_picture, picture
from boxscore.extensions.shell.parameters import METRICS
from boxscore.protocols.metric_names import metric_named

SHOWN = 3
"""Default number of metrics in the table and the plot."""

OPTIONS = (
    Option(
        "history",
        "file that boxscore check --history wrote",
        kind=Path,
        positional=True,
        required=True,
        metavar="FILE.jsonl",
    ),
    OUTPUT,
    METRICS.but(help="metrics to show, e.g. AP AP50 (default: the first three of the last run)"),
    PLOT,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, print and plot; return the exit status."""
    # Reject an invalid plot path before reading anything.
    if arguments.plot is not None:
        form = form_of_picture(arguments.plot, name="--plot")
    # A damaged line loses its run, not the history.
    records, damaged = read_history(arguments.history)
    if damaged:
        lines = f"{len(damaged)} damaged line{'s are' if len(damaged) > 1 else ' is'}"
        warn_user(f"{arguments.history}: {lines} skipped (first: line {damaged[0]}).")
    # Show the metrics of the last run by default; names may come from any run.
    shown = list(records[-1].metrics)[:SHOWN]
    known = list(dict.fromkeys(name for record in reversed(records) for name in record.metrics))
    chosen = [metric_named(name, known, option="--metrics") for name in arguments.metrics or shown]
    # Plot, then print every run.
    if arguments.plot is not None:
        from boxscore.reports import plots

        write_atomically(arguments.plot, picture(plots.history(records, metrics=chosen), form))
    columns: dict[str, Any] = {
        "time": [record.whole["time"] for record in records],
        "name": [record.name for record in records],
        **{name: [record.metrics.get(name) for record in records] for name in chosen},
        "checks": ["passed" if record.passed else "FAILED" for record in records],
    }
    section = Section(counted(len(records), "run"), columns, _note(records))
    value = {"runs": [record.whole for record in records], "damaged_lines": damaged}
    show(written(arguments.output, [section], value=value, footer=records[-1].signature))
    return 0


def _note(records: list[Record]) -> str:
    """Report changes of the protocol: scores before and after are not comparable."""
    changed = [
        after.whole["time"]
        for before, after in itertools.pairwise(records)
        if not same_rules(before.signature, after.signature)
    ]
    return f"protocol changed at {', '.join(changed)}: earlier numbers are not comparable" if changed else ""
