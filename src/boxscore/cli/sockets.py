"""Import what options of the core's commands need from extensions, when an option asks for it."""

from __future__ import annotations

from typing import Any

from boxscore._utils.lazy import loaded

FUNCTIONS = {
    "COORDINATES": "boxscore.extensions.scoreless.coordinates:COORDINATES",
    "class_weights_of": "boxscore.extensions.weights.class_weight_files:class_weights_of",
    "completion_script": "boxscore.extensions.shell.completion:completion_script",
    "digest_of": "boxscore.extensions.validation.digest_command:digest_of",
    "evaluated_elsewhere": "boxscore.extensions.large.command_line:evaluated_elsewhere",
    "merge_patches": "boxscore.extensions.oriented.patches:merge_patches",
    "report_written": "boxscore.extensions.pages.report_output:report_written",
    "require_arrow": "boxscore.extensions.pages.folder:arrow_for_tables",
    "require_matplotlib": "boxscore.extensions.pages.plots._style:pyplot",
    "require_pillow": "boxscore.extensions.pages.pictures:require_pillow",
    "rewritten_in_parts": "boxscore.extensions.large.rewriting_command:rewritten_in_parts",
    "save_report": "boxscore.extensions.pages.report_output:save_report",
}
"""Functions of extensions by name, as ``module:function``; an extension adds a line."""


def extension(name: str) -> Any:
    """Import one of :data:`FUNCTIONS`."""
    return loaded(FUNCTIONS[name])
