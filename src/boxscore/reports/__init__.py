"""Writing results for people and for the next tool. Adds nothing to the numbers."""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.reports import plots as plots
    from boxscore.reports.folder import write_comparison as write_comparison
    from boxscore.reports.folder import write_report as write_report
    from boxscore.reports.history import read_history as read_history
    from boxscore.reports.papers import paper_table as paper_table
    from boxscore.reports.text import as_json as as_json
    from boxscore.reports.text import flat_metrics as flat_metrics
    from boxscore.reports.view import ReportOptions as ReportOptions
