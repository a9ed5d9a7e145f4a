"""Warn at the user's line, however deep in the package a warning is raised."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from pathlib import Path

from boxscore.errors import BoxscoreWarning

NOT_THE_USERS = (str(Path(__file__).parents[1]) + os.sep, contextlib.__file__, functools.__file__)
"""Files whose lines no warning names: the package, and what calls it in between."""


def warn_user(warning: str | BoxscoreWarning, category: type[Warning] = BoxscoreWarning) -> None:
    """Warn at the nearest line outside the package, which called it."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(NOT_THE_USERS):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(warning, category, stacklevel=depth)
