"""Define the options of reports."""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore.cli.arguments import OUTPUT_GROUP, Option

REPORT_TOPIC = "reports"
PLOT_FORMS = ("png", "svg", "pdf")
TABLE_FORMS = ("parquet", "json", "csv")
REPORT = Option(
    "report",
    "write a report folder",
    kind=Path,
    metavar="DIR",
    key="output.report",
    group=OUTPUT_GROUP,
    needs="boxscore.extensions.pages.options:look_for_packages",
    does="boxscore.extensions.pages.report_output:reported",
    writes=(
        *(".", "report.html", "report.md", "result.json", "detector-*.html", "pair-*.html"),
        *("summary.csv", "per_class.csv", "per_image.csv", "segments.csv", "comparison.csv"),
        *("tables/*", "plots/*"),
    ),
)
COMPARISON_REPORT = (
    Option(
        "overwrite",
        "replace a report that is in the folder already (default: write to a new folder with a number)",
        kind=bool,
        default=False,
        key="output.overwrite",
        topic=REPORT_TOPIC,
    ),
    Option("title", "title of the page", default="", key="output.title", topic=REPORT_TOPIC),
    Option(
        "gallery",
        "number of worst images to show",
        kind=int,
        default=48,
        metavar="N",
        key="output.gallery",
        topic=REPORT_TOPIC,
    ),
    Option(
        "tables",
        "also write every table, in this format",
        choices=TABLE_FORMS,
        key="output.tables",
        topic=REPORT_TOPIC,
    ),
    Option(
        "plots",
        "also write plots, in this format",
        choices=PLOT_FORMS,
        key="output.plots",
        topic=REPORT_TOPIC,
    ),
)
"""Options for the contents of a comparison report."""
REPORT_CONTENT = (
    *COMPARISON_REPORT,
    Option(
        "class-groups",
        "also metrics of groups of classes, e.g. 'novel=cat,dog;base=*', or a file of such lines",
        metavar="GROUPS|FILE",
        key="output.class_groups",
        topic=REPORT_TOPIC,
        does="boxscore.extensions.pages.report_output:groups_printed",
    ),
    Option(
        "resamples",
        "0 leaves out the intervals, any other number includes them (default: included unless they take over "
        "a minute)",
        kind=int,
        metavar="N",
        key="output.resamples",
        topic=REPORT_TOPIC,
    ),
)
"""Options for the contents of a report."""


PLOT = Option(
    "plot",
    "also plot them: a .png, .svg or .pdf file",
    kind=Path,
    metavar="FILE",
    writes=(".",),
    needs="boxscore.extensions.pages.options:look_for_matplotlib",
)

OPTIONS = (REPORT, *REPORT_CONTENT)
"""Report options of ``boxscore evaluate``."""


def look_for_packages(arguments: argparse.Namespace) -> None:
    """Check that the packages for a report are installed."""
    if getattr(arguments, "plots", None) is not None:
        look_for_matplotlib(arguments)
    if getattr(arguments, "tables", None) == "parquet":
        from boxscore.extensions.pages.folder import arrow_for_tables

        arrow_for_tables()
    if getattr(arguments, "image_folder", None) is not None:
        from boxscore.extensions.pages.pictures import require_pillow

        require_pillow()


def look_for_matplotlib(arguments: argparse.Namespace) -> None:
    """Check that matplotlib is installed."""
    from boxscore.extensions.pages.plots._style import pyplot

    pyplot()
