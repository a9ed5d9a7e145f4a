"""``boxscore view``: it says where it serves, and ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from support.program import SOURCES
from support.running import Run
from support.samples import DT, GT

INPUT = ["view", "--gt", GT, "--dt", DT]


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_serves_until_it_is_told_to_end(name: str, tmp_path: Path) -> None:
    environment, number = {**os.environ, "PYTHONPATH": SOURCES}, getattr(signal, name)
    with subprocess.Popen(
        [sys.executable, "-m", "boxscore", *INPUT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # in the background SIGINT is ignored
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with urllib.request.urlopen(url, timeout=30) as reply:
                assert b"served by boxscore view" in reply.read()
            with pytest.raises(urllib.error.HTTPError, match="403") as refused:
                urllib.request.urlopen(url.rsplit("/", 2)[0] + "/", timeout=30)
            refused.value.close()
            process.send_signal(number)
            out, error = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert out == ""
    assert "Traceback" not in error
    assert "press Ctrl-C to stop" in error
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--port", "99999"], "port must be"),
        (["--image-folder", "nowhere"], "nowhere"),
        (["--names", "a", "b"], "--names must name each of the 1 detectors"),
    ],
)
def test_what_cannot_be_served(more: list[str], message: str, run: Run) -> None:
    assert message in run.error(*INPUT, *more)
