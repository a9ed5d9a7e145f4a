"""Provide helpers that know nothing of detection: checks, sorting, files, text, processes."""
