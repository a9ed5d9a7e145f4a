"""Provide general helpers, independent of detection: checks, sorting, files, text, processes."""
