"""Adapters for training frameworks, one file each; a framework is imported with its file, never before.

Nothing in boxscore imports these files, and they use of boxscore only what users do.
"""

from __future__ import annotations

__all__: list[str] = []
