"""A file of typical use is right under ``mypy --strict``, and wrong use is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[2]

WRONG = """
import boxscore

truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 1, 1]])
boxscore.evaluate(truth)
boxscore.evaluate(truth, truth)
text: str = boxscore.evaluate(truth, boxscore.Detections.from_arrays([], [], [], [])).metrics["AP"]
boxscore.box_iou([[0, 0, 1, 1]], [[0, 0, 1, 1]], box_format="yxyx")
boxscore.nms([[0, 0, 1, 1]], [0.5], 0.5, pre_topk=3)
boxscore.evalute
boxscore.diagnostics.error_typos(boxscore.reports.as_jsom, boxscore.protocols.Protocoll)
"""


def mypy(*files: Path) -> list[str]:
    """What mypy says of a user's files, one line each; nothing where all is well.

    By the rules of this project, which are those of ``--strict`` and more: so what ``make check`` has read is read once.
    """
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, files)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if ": note:" not in line]


def test_typical_and_wrong_use(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    lines = mypy(HERE / "typical_use.py", wrong)
    assert [line for line in lines if "wrong.py" not in line] == []
    found = [int(line.split("wrong.py:")[1].split(":")[0]) for line in lines]
    assert found == [5, 6, 7, 8, 9, 10, 11, 11, 11], lines
