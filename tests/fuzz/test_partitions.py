"""A short run of the fuzzer of partitions, and that it notices what is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from boxscore.distributed import merging
from fuzz import partitions

pytestmark = pytest.mark.long


def test_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert partitions.main(["--cases", "6", "--seed", "3"]) == 0
    assert "6 cases, 0 differences" in capsys.readouterr().out


def test_a_lost_detection_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of all scores is left out when parts are merged."""
    real = merging.MergedParts.matches

    def wrong(self: merging.MergedParts, low: int = 0, high: int | None = None) -> object:
        merged = real(self, low, high)
        return merged.take_detections(merged.score > merged.score.min()) if len(merged) else merged

    monkeypatch.setattr(merging.MergedParts, "matches", wrong)
    texts = []
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts.append(partitions.run(number, folder, Counter()))
        if texts[-1] is not None:
            break
    assert texts[-1] is not None
