"""One rule, one file: its fields, checks, words, steps, scope, and what it refuses."""

__all__: list[str] = []
