"""A bar that nobody sees leaves nothing behind in the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

QUIET = """
import sys, threading
import boxscore
from boxscore.diagnostics import bootstrap_intervals, sweep

truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]])
detections = boxscore.Detections.from_arrays([1], ["cat"], [[0, 0, 9, 9]], [0.9])
bootstrap_intervals(boxscore.evaluate(truth, detections), resamples=3, progress=True)
sweep(truth, detections)
print([thread.name for thread in threading.enumerate()], "tqdm" in sys.modules)
"""


@pytest.mark.long
def test_no_thread_is_left() -> None:
    run = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "['MainThread'] False"
    assert run.stderr == ""
