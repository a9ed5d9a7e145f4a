"""List the file formats, which of them can be written, and the extensions of outputs that select them.

Input formats are detected from the contents; override that with --format and --dt-format.
"""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from boxscore.cli.arguments import OUTPUT
from boxscore.cli.output import Section, written
from boxscore.cli.streams import show
from boxscore.formats._format import Format
from boxscore.formats.registry import format_named, format_names, options_of

OPTIONS = (OUTPUT.but(key=""),)


def run(arguments: argparse.Namespace) -> int:
    """Print; return the exit status."""
    formats = [format_named(name) for name in format_names(auto=False)]
    columns: dict[str, list[Any]] = {
        "format": [file_format.name for file_format in formats],
        "files": [_what(file_format) for file_format in formats],
        "writes": [
            "both" if len(file_format.holds) == 2 else "".join(file_format.holds) or None
            for file_format in formats
        ],
        "endings": [" ".join(file_format.endings) or None for file_format in formats],
        "takes": [
            ", ".join(sorted(options_of(file_format, of_detections=True))).replace("_", " ")
            for file_format in formats
        ],
    }
    rows = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
    note = (
        "boxscore reads every format, and detects it. endings: extensions of outputs that select it. "
        "--output csv adds the options that each takes."
    )
    shown = {name: values for name, values in columns.items() if name != "takes"}
    show(
        written(
            arguments.output,
            [Section("File formats", shown, note)],
            value={"formats": rows},
            table=columns,
            longest=100,
        )
    )
    return 0


def _what(file_format: Format) -> str:
    """Return the first sentence that describes a format in the code."""
    lines = (inspect.getdoc(type(file_format)) or "").splitlines()
    return lines[0].rstrip(".").replace("``", "") if lines else ""
