"""List the options and functions that extensions add to core commands; they are imported lazily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxscore._utils.lazy import loaded

OPTIONS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "ground truth": {
        "boxscore.extensions.hints.options:OF_TRUTH": ("swap-image-sizes",),
        "boxscore.extensions.federated.options:OPTIONS": ("segments", "image-labels", "hierarchy"),
    },
    "detections": {
        "boxscore.extensions.hints.options:OPTIONS": ("class-map", "image-id-offset", "network-input"),
        "boxscore.extensions.scoreless.options:OPTIONS": ("coordinates", "repeated", "loose"),
    },
    "results": {
        "boxscore.extensions.scoreless.options:OPTIONS": ("coordinates", "repeated", "loose"),
    },
    "result": {
        "boxscore.extensions.pages.options:OPTIONS": ("report",),
    },
    "evaluation": {
        "boxscore.extensions.regions.options:OPTIONS": ("inside", "outside"),
    },
    "elsewhere": {
        "boxscore.extensions.large.options:OPTIONS": (
            *("memory-limit", "shard", "save-part"),
            *("scheduler", "scratch"),
        ),
    },
    "report": {
        "boxscore.extensions.pages.options:OPTIONS": (
            "overwrite",
            "title",
            "gallery",
            "tables",
            "plots",
            "class-groups",
            "resamples",
        ),
    },
    "nms": {
        "boxscore.extensions.oriented.options:OPTIONS": ("merge-patches",),
        "boxscore.extensions.large.options:OF_SUPPRESSION": ("memory-limit",),
    },
}
"""Names of options by place, and by the tuple that declares them.

Options in ``ground truth`` and ``detections`` are passed to the readers, in every command with such files;
those in ``results`` in commands that read detections without ground truth. Those in ``evaluation`` are passed
to the reader of the ground truth in commands that evaluate; they may change the protocol.
``result`` options act on the result of ``evaluate``; ``elsewhere`` options evaluate outside this process.
"""

FUNCTIONS = {
    "class_weights_of": "boxscore.extensions.weights.class_weight_files:class_weights_of",
    "completion_script": "boxscore.extensions.shell.completion:completion_script",
    "digest_of": "boxscore.extensions.validation.digest_command:digest_of",
    "evaluated_elsewhere": "boxscore.extensions.large.command_line:evaluated_elsewhere",
}
"""Functions by name, as ``module:function``."""


def extension(name: str) -> Any:
    """Import one of :data:`FUNCTIONS`."""
    return loaded(FUNCTIONS[name])


def without(place: str, reason: str) -> dict[str, str]:
    """Return why a command lacks the options of a place: what it does instead, for each."""
    return {f"--{name}": reason for names in OPTIONS[place].values() for name in names}


def names_at(place: str) -> list[str]:
    """Return the attributes of the parsed arguments that hold the options of a place."""
    return [name.replace("-", "_") for names in OPTIONS[place].values() for name in names]
