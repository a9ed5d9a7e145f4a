"""A long command says on a terminal what it does; a pipe, a library's caller and ``--quiet`` hear nothing."""

from __future__ import annotations

import io
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore._utils import progress
from boxscore.cli import main

DATASETS = Path(__file__).parents[2] / "datasets"
GT, DT = (str(DATASETS / "shapes_coco" / f"{name}.json") for name in ("instances", "detections"))


class Terminal(io.StringIO):
    """A terminal in place of stderr."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matching takes a fifth of a second, and what takes a tenth is long."""
    begin = progress._Stages.begin

    def slowly(self: Any, name: str) -> None:
        begin(self, name)
        end = time.monotonic() + 0.2 * (name == "matching")
        while time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(progress._Stages, "begin", slowly)
    monkeypatch.setattr(progress, "SILENT", 0.1)
    monkeypatch.setattr(progress, "BRIEF", 0.05)


def said(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["evaluate", GT, DT, *arguments]) == 0
    return [line for line in stream.getvalue().splitlines() if line.endswith(" ...")]


@pytest.mark.usefixtures("slow", "capsys")
def test_a_long_stage_is_named_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "boxscore: matching ..." in said(monkeypatch)
    assert said(monkeypatch, "--quiet") == []
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.usefixtures("capsys")
def test_a_short_command_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch) == []


@pytest.mark.usefixtures("slow")
def test_a_pipe_and_a_library_hear_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", GT, DT, "--no-digest"]) == 0
    assert capsys.readouterr().err == ""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    boxscore.evaluate(GT, DT)
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("slow", "capsys")
def test_a_host_keeps_its_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the timer is the host's, stages are named when they begin."""
    rung: list[int] = []
    handler = lambda number, _: rung.append(number)  # noqa: E731
    before = signal.signal(signal.SIGALRM, handler)
    try:
        monkeypatch.setattr(progress, "SILENT", 0.0)
        assert "boxscore: matching ..." in said(monkeypatch)
        assert signal.getsignal(signal.SIGALRM) is handler
        assert rung == []
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("slow", "capsys")
def test_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[str]] = []
    worker = threading.Thread(target=lambda: found.append(said(monkeypatch)))
    worker.start()
    worker.join()
    assert len(found) == 1
