"""What knows nothing of detection: checks, orders, files, text, processes."""
