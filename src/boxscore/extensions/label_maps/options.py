"""Define the options that the label map commands share."""

from __future__ import annotations

from boxscore.cli.arguments import Option
from boxscore.cli.sockets import without
from boxscore.extensions.pages.options import REPORT

OPTIONS = (
    REPORT.but(
        help="write a report folder: report.md with the worst images, result.json, tables as CSV", key=""
    ),
    Option("per-image", "also list the N worst images, 0 for all", kind=int, metavar="N"),
    Option(
        "resamples", "bootstrap resamples for intervals over images (default: none)", kind=int, metavar="N"
    ),
)

WITHOUT = without(
    "evaluation", "counts pixels of label maps; boxscore evaluate takes regions for boxes and masks"
)
