"""List the file formats, which of them can be written, and the file extensions that select them.

Input formats are detected from the contents; override that with --format and --dt-format.
"""

from __future__ import annotations

import argparse
from typing import Any

from boxscore.cli.arguments import OUTPUT
from boxscore.cli.output import Section, written
from boxscore.cli.streams import show
from boxscore.formats.registry import format_named, format_names, options_of

OPTIONS = (OUTPUT.but(key=""),)


def run(arguments: argparse.Namespace) -> int:
    """Print; return the exit status."""
    formats = [format_named(name) for name in format_names(auto=False)]
    columns: dict[str, list[Any]] = {
        "format": [file_format.name for file_format in formats],
        "writes": [", ".join(file_format.holds) or None for file_format in formats],
        "endings": [" ".join(file_format.endings) or None for file_format in formats],
        "takes": [
            ", ".join(sorted(options_of(file_format, of_detections=True))).replace("_", " ")
            for file_format in formats
        ],
    }
    rows = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
    note = (
        "boxscore reads every format. takes: options for information that the files lack, e.g. "
        "--gt-classes, --image-sizes."
    )
    show(
        written(
            arguments.output,
            [Section("File formats", columns, note)],
            value={"formats": rows},
            longest=100,
        )
    )
    return 0
