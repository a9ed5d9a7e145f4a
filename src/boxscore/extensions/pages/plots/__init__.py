"""Draw plots for papers, and boxes over images; :mod:`boxscore.reports.plots` lists their names."""
