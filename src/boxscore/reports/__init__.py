"""Writing results for people and for the next tool. Adds nothing to the numbers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boxscore.reports.folder import write_comparison, write_report
    from boxscore.reports.trackers import flat_metrics
    from boxscore.reports.view import ReportOptions

__all__ = ["ReportOptions", "flat_metrics", "write_comparison", "write_report"]

_PLACES = {
    "ReportOptions": "view",
    "flat_metrics": "trackers",
    "write_comparison": "folder",
    "write_report": "folder",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: twelve numbers on a terminal need none of it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
