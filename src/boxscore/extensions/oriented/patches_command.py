"""Suppress detections in patches of large images, after mapping them back to the images."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from boxscore.cli.nms import results_of, say_kept, suppressed
from boxscore.errors import InputError
from boxscore.extensions.oriented.patches import merge_patches
from boxscore.formats.results import save_table


def suppress_patches(arguments: argparse.Namespace, options: Mapping[str, Any]) -> None:
    """Read, map patches back to images, suppress and write."""
    if arguments.memory_limit is not None:
        cause = "patches of an image are in several partitions"
        raise InputError("--merge-patches", "be left out with --memory-limit", got="both", cause=cause)
    results = results_of(arguments, options)
    table = merge_patches(results.table, arguments.merge_patches)
    left = suppressed(table, arguments, options)
    save_table(left.apply(table), arguments.output, like=results)
    say_kept(len(left.indices), len(table), arguments)
