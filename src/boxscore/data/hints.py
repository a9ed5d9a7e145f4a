"""Call extensions to explain a symptom in the data: its likely cause, and how to fix it.

Conventions
-----------
- The core detects a symptom with a cheap test. A function of an extension, imported on first use, explains
  it: it warns, or returns text or an error.
- Functions that resolve ambiguous ids by comparing boxes are called here too.
"""

from __future__ import annotations

from typing import Any

from boxscore._utils.lazy import loaded

_HINTS = "boxscore.extensions.hints."

SYMPTOMS = {
    "ids that are names": _HINTS + "numbering:match_best",
    "no image, or several": _HINTS + "unknown_images:image_error",
    "images of other names": _HINTS + "renamed_images:rows_of_renamed",
    "one of several images": _HINTS + "unknown_images:candidates_text",
    "images not listed": _HINTS + "unknown_images:refuse_other_cause",
    "numbers without names": _HINTS + "class_maps:read_mapped",
    "unknown classes": _HINTS + "left_out:warn_of_unknown",
    "classes left out": _HINTS + "left_out:warn_of_file",
    "detections left out": _HINTS + "left_out:with_reader",
    "boxes in another form": _HINTS + "box_order:warn_of_box_order",
    "unknown file": _HINTS + "resemblance:unknown_file",
    "file of a tool": _HINTS + "resemblance:refuse_tool",
    "file of another kind": _HINTS + "resemblance:looks_like",
    "folder without data": _HINTS + "data_below:data_below",
    "folders in a folder": _HINTS + "inner_folders:warn_of_unread",
    "files of another format": _HINTS + "other_formats:check_other_formats",
    "annotation 0": _HINTS + "result_warnings:warn_of_id_zero",
    "few matches": _HINTS + "result_warnings:warn_of_numbering",
}
"""The function for each symptom, as ``module:function``."""


FEWEST = 10
"""Minimum number of confident detections on annotations to judge the classes."""

FEWEST_OF_CLASS = 3
"""Minimum number of confident detections on annotations to judge a single class."""

SAID_OF_NUMBERING = "hint about numbering"
"""Key of a result for the hint that its classes may be numbered differently."""


def ask(symptom: str, *arguments: Any, **options: Any) -> Any:
    """Call the function for a symptom."""
    return loaded(SYMPTOMS[symptom])(*arguments, **options)
