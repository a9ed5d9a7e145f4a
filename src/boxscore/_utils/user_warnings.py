"""Attribute warnings to the user's line, however deep in the package they are raised."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from pathlib import Path

from boxscore.errors import BoxscoreWarning

NOT_THE_USERS = (str(Path(__file__).parents[1]) + os.sep, contextlib.__file__, functools.__file__)
"""Files to skip when locating the user's line: the package, and helpers of the standard library."""


def warn_user(warning: str | BoxscoreWarning, category: type[Warning] = BoxscoreWarning) -> None:
    """Issue a warning at the nearest calling line outside the package."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(NOT_THE_USERS):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(warning, category, stacklevel=depth)
