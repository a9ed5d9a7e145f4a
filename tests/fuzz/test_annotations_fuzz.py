"""A few structured mutants of every annotation format in each run; ``annotations.py`` reads thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import annotations
from support.annotations import FORMATS


@pytest.mark.parametrize("kind", [*FORMATS, "gzip", "zip"])
@pytest.mark.filterwarnings("ignore::boxscore.errors.BoxscoreWarning")
def test_mutants_are_read_or_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations, "TRUTH", tmp_path / "gt.json")
    annotations.write_truth()
    assert annotations.run(kind, 8) == 0
