"""Print and write the results of the label map commands: metrics, classes and worst images."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from boxscore._utils import checks
from boxscore._utils.files import write_folder
from boxscore._utils.text import counted_of, csv_table, json_text
from boxscore.cli.output import Section, rows_of, written
from boxscore.cli.streams import say, show
from boxscore.extensions.label_maps.panoptic import PanopticQuality
from boxscore.extensions.label_maps.semantic import SemanticIoU
from boxscore.extensions.shell.frames import chosen_rows, table_columns, table_rows
from boxscore.reports.rows import ALL_ROWS

WORST_IMAGES = 48
"""Maximum number of images in the report; the CSV file has all."""


def print_result(
    result: PanopticQuality | SemanticIoU,
    arguments: argparse.Namespace,
    *,
    title: str,
    note: str,
    summary: Mapping[str, Sequence[Any]],
    counts: Mapping[str, int],
    warnings: Sequence[str] = (),
) -> None:
    """Print a result in the requested format; CSV prints only the most detailed table."""
    # Every format has the summary.
    sections = [Section(title, summary, note)]
    value: dict[str, Any] = {
        "schema": 1,
        "rules": result.rules.name,
        "signature": result.signature,
        "metrics": result.metrics,
        "counts": counts,
        "warnings": list(warnings),
    }
    # Add the classes, sorted by the metric if only the worst are requested.
    rows = rows_of(arguments)
    per_class = arguments.per_class or rows != ALL_ROWS
    if per_class or arguments.output == "json":
        if rows.top is not None and not rows.sort:
            rows = rows._replace(sort="PQ" if isinstance(result, PanopticQuality) else "IoU")
        frame, words = chosen_rows(result.to_frame(), rows)
        value["per_class"] = table_rows(frame)
        if per_class:
            sections.append(Section(f"Per class, {words}" if words else "Per class", table_columns(frame)))
    # Add intervals and images if requested.
    if arguments.resamples:
        frame = result.bootstrap_intervals(resamples=arguments.resamples, progress=True).to_frame()
        value["intervals"] = table_rows(frame)
        sections.append(Section("95% intervals over resampled images", table_columns(frame)))
    # The frame is sorted, worst image first.
    if arguments.per_image is not None:
        worst = checks.whole_number(arguments.per_image, 0, name="--per-image")
        frame = result.per_image_frame()
        frame = frame.head(worst) if worst else frame
        value["per_image"] = table_rows(frame)
        sections.append(Section("Worst images", table_columns(frame)))
    # CSV prints the last, most detailed table.
    table = sections[-1].columns
    if arguments.report:
        _write_report(result, arguments, Section(title, summary, note), value)
    show(written(arguments.output, sections, value=value, table=table, footer=result.signature))
    if arguments.report:
        say(f"report written to {arguments.report / 'report.md'}")


def _write_report(
    result: PanopticQuality | SemanticIoU,
    arguments: argparse.Namespace,
    head: Section,
    value: Mapping[str, Any],
) -> None:
    """Write ``report.md``, with the worst images, ``result.json`` and the whole tables as CSV."""
    # Write a page with the worst images, and complete tables for programs.
    classes, images = result.to_frame(), result.per_image_frame()
    worst = images.head(WORST_IMAGES)
    sections = [
        head,
        Section("Per class", table_columns(classes)),
        Section("Worst images", table_columns(worst), f"{counted_of(len(worst), len(images), 'image')}"),
    ]
    whole = {**value, "per_class": table_rows(classes), "per_image": table_rows(images)}
    # Only panoptic quality has segments.
    files = {
        "report.md": written("markdown", sections, value={}, footer=result.signature, shown=()) + "\n",
        "result.json": json_text(whole) + "\n",
        "per_class.csv": csv_table(table_columns(classes)),
        "per_image.csv": csv_table(table_columns(images)),
    }
    if isinstance(result, PanopticQuality):
        files["segments.csv"] = csv_table(table_columns(result.segments_frame()))
    write_folder(arguments.report, files)
