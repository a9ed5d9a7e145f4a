"""A bar that nobody sees leaves nothing behind in the process."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from boxscore._utils.progress import clock_text, named_stages, progress

QUIET = """
import sys, threading
import boxscore
from boxscore.diagnostics import bootstrap_intervals, sweep

truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]])
detections = boxscore.Detections.from_arrays([1], ["cat"], [[0, 0, 9, 9]], [0.9])
bootstrap_intervals(boxscore.evaluate(truth, detections), progress=True)
sweep(truth, detections)
print([thread.name for thread in threading.enumerate()], "tqdm" in sys.modules)
"""


@pytest.mark.long
def test_no_thread_is_left() -> None:
    run = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "['MainThread'] False"
    assert run.stderr == ""


def test_a_log_says_how_far_long_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 3))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    said: list[str] = []
    with named_stages(said.append):
        assert list(progress(range(6), desc="matching", unit="partition")) == [*range(6)]
        assert list(progress(iter("abcd"), desc="reading", unit="row group")) == [*"abcd"]
    assert said[:2] == [
        "matching: 2 of 6 partitions, 0.333 a second, 0:00:12 left",
        "matching: 4 of 6 partitions, 0.333 a second, 0:00:06 left",
    ]
    assert "reading: 2 row groups, 0.333 a second" in said
    assert list(progress(range(6), desc="matching", unit="partition")) == [*range(6)]  # no command


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00:00"), (59.6, "0:01:00"), (3723, "1:02:03")])
def test_a_duration(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text
