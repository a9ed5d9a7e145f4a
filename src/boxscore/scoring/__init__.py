"""Compute metrics from matches."""

__all__: list[str] = []
