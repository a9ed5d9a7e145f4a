"""Adapters for training frameworks, one file each; importing a file imports its framework.

The rest of boxscore does not import these files, and they only use the public API.
"""

from __future__ import annotations

__all__: list[str] = []
