"""Writing results for people and for the next tool. Adds nothing to the numbers."""

from typing import TYPE_CHECKING

from boxscore._utils.lazy import lazy_names

if TYPE_CHECKING:
    from boxscore.reports import plots
    from boxscore.reports.folder import write_comparison, write_report
    from boxscore.reports.history import read_history
    from boxscore.reports.papers import paper_table
    from boxscore.reports.text import as_json, flat_metrics
    from boxscore.reports.view import ReportOptions

_NAMES = {
    "boxscore.reports.folder": ("write_comparison", "write_report"),
    "boxscore.reports.history": ("read_history",),
    "boxscore.reports.papers": ("paper_table",),
    "boxscore.reports.text": ("as_json", "flat_metrics"),
    "boxscore.reports.view": ("ReportOptions",),
}

__getattr__, __dir__ = lazy_names(__name__, _NAMES, modules=("boxscore.reports.plots",))

__all__ = [
    "ReportOptions",
    "as_json",
    "flat_metrics",
    "paper_table",
    "plots",
    "read_history",
    "write_comparison",
    "write_report",
]
