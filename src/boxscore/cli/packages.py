"""Optional packages are looked for before anything is read, not after minutes of work."""

from __future__ import annotations

import argparse

from boxscore.cli.sockets import extension


def look_for_packages(arguments: argparse.Namespace) -> None:
    """Look for the packages that the options need, or say how to install the first that is not there."""
    given = vars(arguments)
    report = given.get("report") is not None
    if given.get("plot") is not None or (report and given.get("plots") is not None):
        extension("require_matplotlib")()
    if report and given.get("tables") == "parquet":
        extension("require_arrow")()
    if report and given.get("image_folder") is not None:
        extension("require_pillow")()
    if given.get("verify"):
        from boxscore.compat.verification import require_pycocotools

        require_pycocotools()
