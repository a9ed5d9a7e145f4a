"""How many made-up cases: ``$BOXSCORE_EXAMPLES`` times the usual number, and which values only CI tries."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest


def examples(count: int) -> int:
    """Return the number of cases to try where ``count`` is usual."""
    return max(1, round(count * float(os.environ.get("BOXSCORE_EXAMPLES", "1"))))


def first_of(count: int, values: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test: the first ``count`` are always tried, the rest are left to CI."""
    values = list(values)
    assert 0 < count < len(values)
    return [*values[:count], *(pytest.param(value, marks=pytest.mark.long) for value in values[count:])]
