"""Define options that several commands of this extension share."""

from __future__ import annotations

from boxscore.cli.arguments import Option

BATCH = Option(
    "batch",
    "with --sequential: images (or groups) per batch (default: 50 images, 5 groups)",
    kind=int,
    metavar="N",
)
