"""Reports: rows, tables, plots, the HTML page."""
