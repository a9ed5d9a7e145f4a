"""Write results for people and for other tools, without computing new numbers."""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.decisions.history import read_history as read_history
    from boxscore.extensions.pages.folder import write_comparison as write_comparison
    from boxscore.extensions.pages.folder import write_report as write_report
    from boxscore.extensions.pages.papers import paper_table as paper_table
    from boxscore.extensions.pages.view import ReportOptions as ReportOptions
    from boxscore.reports import plots as plots
    from boxscore.reports.text import as_json as as_json
    from boxscore.reports.text import flat_metrics as flat_metrics
