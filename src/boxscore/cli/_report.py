"""Arguments and steps that every subcommand that writes a report shares."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore.errors import BoxscoreWarning, InputError
from boxscore.evaluation import Evaluation

__all__ = ["add_report_arguments", "remembered_warnings", "save_comparison", "save_report"]


def add_report_arguments(parser: argparse.ArgumentParser, *, resamples: bool = True) -> None:
    """Add what a report is to hold."""
    group = parser.add_argument_group("the report")
    group.add_argument("--image-folder", type=Path, metavar="DIR", help="show these images under the boxes")
    group.add_argument("--title", default="", help="stands above the page")
    group.add_argument("--gallery", type=int, default=48, metavar="N", help="worst images (default: 48)")
    group.add_argument(
        "--tables", choices=["parquet", "json", "csv"], help="also write every table, in this form"
    )
    group.add_argument("--plots", choices=["png", "svg", "pdf"], help="also write plots, in this form")
    if resamples:
        group.add_argument(
            "--resamples",
            type=int,
            metavar="N",
            help="bootstrap resamples for intervals, 0 for none (default: as many as take seconds)",
        )


def save_report(evaluation: Evaluation, arguments: argparse.Namespace, messages: Sequence[str]) -> None:
    """Write the report folder that ``arguments.report`` names."""
    from boxscore.reports.folder import write_report

    write_report(evaluation, arguments.report, **_options(arguments, messages))


def save_comparison(
    evaluations: Mapping[str, Evaluation], arguments: argparse.Namespace, messages: Sequence[str]
) -> None:
    """Write the comparison's report folder."""
    from boxscore.reports.folder import write_comparison

    write_comparison(evaluations, arguments.report, **_options(arguments, messages))


def _options(arguments: argparse.Namespace, messages: Sequence[str]) -> dict[str, Any]:
    from boxscore.reports.view import ReportOptions

    os.environ.setdefault("MPLBACKEND", "Agg")  # nothing is shown, only written
    folder = arguments.image_folder
    if folder is not None and not folder.is_dir():
        raise InputError(f"--image-folder must be a folder. Got {str(folder)!r}.")
    options = ReportOptions(
        title=arguments.title,
        warnings=tuple(messages),
        image_folder=folder,
        gallery=arguments.gallery,
        resamples=arguments.resamples,
        seed=getattr(arguments, "seed", 0),
    )
    return {"options": options, "tables": arguments.tables, "plots": arguments.plots}


class remembered_warnings:  # noqa: N801 - used like a function
    """Collect boxscore's warnings for the report, and show them as before."""

    def __enter__(self) -> list[str]:
        self._shown = warnings.showwarning
        messages: list[str] = []

        def remember(warning: Warning | str, category: type[Warning], *rest: object) -> None:
            if issubclass(category, BoxscoreWarning):
                messages.append(str(warning))
            self._shown(warning, category, *rest)  # type: ignore[arg-type]

        warnings.showwarning = remember  # type: ignore[assignment]
        return messages

    def __exit__(self, *_: object) -> None:
        warnings.showwarning = self._shown
