"""Write HTML reports, galleries and plots, and serve pages."""
