"""Optional packages are looked for before anything is read, not after minutes of work."""

from __future__ import annotations

import argparse


def look_for_packages(arguments: argparse.Namespace) -> None:
    """Look for the packages that the options need, or say how to install the first that is not there."""
    given = vars(arguments)
    report = given.get("report") is not None
    if given.get("plot") is not None or (report and given.get("plots") is not None):
        from boxscore.reports.plots._style import pyplot

        pyplot()
    if report and given.get("tables") == "parquet":
        from boxscore.reports.folder import arrow_for_tables

        arrow_for_tables()
    if report and given.get("image_folder") is not None:
        from boxscore.reports.pictures import require_pillow

        require_pillow()
    if given.get("verify"):
        from boxscore.compat.verification import require_pycocotools

        require_pycocotools()
