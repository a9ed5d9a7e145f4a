"""How many made-up cases: ``$BOXSCORE_EXAMPLES`` times the usual number."""

from __future__ import annotations

import os


def examples(count: int) -> int:
    """Return the number of cases to try where ``count`` is usual."""
    return max(1, round(count * float(os.environ.get("BOXSCORE_EXAMPLES", "1"))))
