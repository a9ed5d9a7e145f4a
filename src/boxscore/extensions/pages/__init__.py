"""HTML reports, galleries, plots and the pages that are served."""
