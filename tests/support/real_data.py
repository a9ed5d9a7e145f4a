"""Where the real data lies: ``../shared/data`` from the project's root, or ``$BOXSCORE_REAL_DATA``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def real(*parts: str) -> Path:
    """Return the path of a real file or folder; skips the test where it is not there."""
    given = os.environ.get("BOXSCORE_REAL_DATA")
    root = Path(given) if given else PROJECT.parent / "shared" / "data"
    path = root.joinpath(*parts)
    if not path.exists():
        how = "from $BOXSCORE_REAL_DATA" if given else "set BOXSCORE_REAL_DATA to the folder that has it"
        pytest.skip(f"real data is absent: {path} ({how})")
    return path
