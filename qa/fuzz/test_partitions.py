"""A short run of the fuzzer of partitions, and that it notices what is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import boxscore
from fuzz import partitions

pytestmark = pytest.mark.long


def test_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert partitions.main(["--cases", "6", "--seed", "3"]) == 0
    assert "6 cases, 0 differences" in capsys.readouterr().out


def test_a_lost_detection_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lowest of all scores is left out where partitions are scanned."""

    def losing(truth: Any, found: Any, *, protocol: str, **_: Any) -> boxscore.Evaluation:
        table = truth if isinstance(truth, boxscore.GroundTruth) else boxscore.load_ground_truth(truth)
        every = boxscore.load_detections(found, table)
        kept = every.take(np.flatnonzero(every.scores > every.scores.min(initial=np.inf)))
        return boxscore.evaluate(table, kept, protocol=protocol)

    monkeypatch.setattr(partitions, "scan", losing)
    texts = []
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts.append(partitions.run(number, folder, Counter()))
        if texts[-1] is not None:
            break
    assert texts[-1] is not None
