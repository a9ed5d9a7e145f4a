"""What the commands of label maps print: the metrics, the classes and the worst images."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from boxscore._utils import checks
from boxscore.cli.output import Section, table_columns, table_rows, written
from boxscore.cli.streams import show
from boxscore.label_maps.panoptic import PanopticQuality
from boxscore.label_maps.semantic import SemanticIoU

__all__ = ["print_result"]


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
    """Print a result in the form that is asked for; CSV is one table, the most detailed one."""
    sections = [Section(title, summary, note)]
    value: dict[str, Any] = {
        "schema": 1,
        "rules": result.rules.name,
        "signature": result.signature,
        "metrics": result.metrics,
        "counts": counts,
        "warnings": list(warnings),
    }
    if arguments.per_class or arguments.output == "json":
        frame = result.to_frame()
        value["per_class"] = table_rows(frame)
        if arguments.per_class:
            sections.append(Section("Per class", table_columns(frame)))
    if arguments.resamples:
        frame = result.bootstrap_intervals(resamples=arguments.resamples, progress=True).to_frame()
        value["intervals"] = table_rows(frame)
        sections.append(Section("95 % intervals over resampled images", table_columns(frame)))
    if arguments.per_image is not None:
        worst = checks.whole_number(arguments.per_image, 0, name="--per-image")
        frame = result.per_image_frame()
        frame = frame.head(worst) if worst else frame
        value["per_image"] = table_rows(frame)
        sections.append(Section("Worst images", table_columns(frame)))
    table = sections[-1].columns
    show(written(arguments.output, sections, value=value, table=table, footer=result.signature))
