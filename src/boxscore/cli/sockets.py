"""What options of the core's commands need of extensions, imported when an option asks for it."""

from __future__ import annotations

import importlib
from typing import Any

FUNCTIONS = {
    "COORDINATES": "boxscore.formats.coordinates:COORDINATES",
    "digest_of": "boxscore.cli.digests:digest_of",
    "evaluated_elsewhere": "boxscore.cli.larger:evaluated_elsewhere",
    "merge_patches": "boxscore.data.patches:merge_patches",
    "report_written": "boxscore.cli.report_output:report_written",
    "require_arrow": "boxscore.reports.folder:arrow_for_tables",
    "require_matplotlib": "boxscore.reports.plots._style:pyplot",
    "require_pillow": "boxscore.reports.pictures:require_pillow",
    "rewritten_in_parts": "boxscore.cli.rewriting:rewritten_in_parts",
    "save_report": "boxscore.cli.report_output:save_report",
}
"""What commands of the core take from extensions where an option asks for it."""


def extension(name: str) -> Any:
    """Import one of :data:`FUNCTIONS`."""
    module, _, function = FUNCTIONS[name].partition(":")
    return getattr(importlib.import_module(module), function)
