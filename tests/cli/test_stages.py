"""A long command says what it does; a library's caller and ``--quiet`` hear nothing."""

from __future__ import annotations

import io
import signal
import sys
import threading
import time
from typing import Any

import pytest

import boxscore
from boxscore._utils import progress
from boxscore.cli import main
from support.running import Run
from support.samples import DT, GT


class Terminal(io.StringIO):
    """A terminal in place of stderr."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matching takes until its timer has named it; no other stage is long, however slow the machine."""
    begin = progress._Stages.begin

    def slowly(self: Any, name: str) -> None:
        is_long = name == "matching"
        monkeypatch.setattr(progress, "SILENT", 0.0 if is_long else 1e6)
        begin(self, name)
        while is_long and self._timed and self._printed != name:
            time.sleep(0.01)

    monkeypatch.setattr(progress._Stages, "begin", slowly)
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
def test_a_pipe_is_told_line_by_line_and_a_library_hears_nothing(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    assert run("evaluate", GT, DT, "--no-digest").err == "boxscore: matching ...\n"
    assert run("evaluate", GT, DT, "--no-digest", "--quiet").err == ""
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
        assert "boxscore: matching ..." in said(monkeypatch)
        assert signal.getsignal(signal.SIGALRM) is handler
        assert rung == []
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("slow", "capsys")
def test_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[list[str]] = []
    worker = threading.Thread(target=lambda: messages.append(said(monkeypatch)))
    worker.start()
    worker.join()
    assert len(messages) == 1


READ, CHECKED, LEFT_OUT = (
    "reading ground truth and detections",
    "checking the input",
    "intervals over images",
)


@pytest.mark.parametrize(
    ("call", "stages"),
    [
        (
            ["bootstrap", GT, DT],
            [READ, "matching", "scoring", CHECKED, "computing: Confidence intervals over images", LEFT_OUT],
        ),
        (
            ["slices", GT, DT, "--by", "size"],
            [READ, "matching", "scoring", CHECKED, "computing: Slices by size"],
        ),
        (
            ["compare", GT, DT, DT, "--names", "a", "b"],
            [READ, "matching", "scoring", CHECKED, "comparing", "orders of equal scores"],
        ),
        (
            ["sweep", GT, DT, "--iou-threshold", ".5"],
            [READ, "matching", "scoring", "evaluating with 1 setting"],
        ),
        (["evaluate", GT, DT], [READ, "matching", "scoring", CHECKED]),
    ],
)
def test_the_stages_of_a_command_are_said_in_a_pipe(
    call: list[str],
    stages: list[str],
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
) -> None:
    """As if each took long; a stage that follows itself is said once."""
    begin = progress._Stages.begin

    def told(self: Any, name: str) -> None:
        begin(self, name)
        self._print_name()

    monkeypatch.setattr(progress._Stages, "begin", told)
    more = ["--resamples", "5"] if call[0] == "compare" else []
    said = [line for line in run(*call, *more).err.splitlines() if line.endswith(" ...")]
    assert list(dict.fromkeys(said)) == [f"boxscore: {name} ..." for name in stages]


@pytest.mark.usefixtures("capsys")
def test_a_bar_speaks_for_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    lines: list[str] = []
    with progress.named_stages(lines.append):
        progress.stage("drawing")
        for _ in progress.progress(range(2), desc="bar"):
            assert progress._stages is not None
            progress._stages._print_name()  # as if the timer rang
    assert lines == []
    assert "bar: 100%" in stream.getvalue()
