"""Completion, run configurations, lists of formats and protocols, and what several commands share."""
