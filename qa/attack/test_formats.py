"""A few mutants of every format that has no oracle of its own in each run; ``make attack`` judges thousands."""

from __future__ import annotations

import pytest

from attack import mutants
from attack.readers import READERS, annotations, archives, choices, conversions, tables, yolo

pytestmark = pytest.mark.long


@pytest.mark.parametrize("module", [tables, annotations, yolo, archives, choices, conversions])
def test_mutants_are_read_or_refused(module: object) -> None:
    """One child for all readers of a module."""
    if module is tables:
        pytest.importorskip("pyarrow")
    names = list(module.READERS)  # type: ignore[attr-defined]
    count = 60 // len(names)
    cases = [(name, mutants.mutant(name, 5, number)) for name in names for number in range(count)]
    verdicts = mutants.judged(cases)
    assert set(names) <= set(READERS)
    assert len(verdicts) == len(cases)
    assert not [(cases[row][0], one) for row, one in verdicts.items() if one.kind in mutants.FAULTS]
