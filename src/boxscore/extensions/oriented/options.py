"""Define the option for detections in patches of large images."""

from __future__ import annotations

from boxscore.cli.arguments import Option

OPTIONS = (
    Option(
        "merge-patches",
        "first map detections in patches <image>__<scale>__<x>___<y> back to their images: scaled divides by "
        "the scale (DOTA devkit), shifted does not (mmrotate)",
        choices=("scaled", "shifted"),
        topic="patches of large images",
        does="boxscore.extensions.oriented.patches_command:suppress_patches",
    ),
)
