"""Show progress bars, and print the stages of a long command.

Conventions
-----------
- Bars are for terminals. Stages are also printed in pipes and CI logs, one line each; a long stage prints a
  line with progress, rate and remaining time every few seconds. Nothing is printed within
  :func:`without_progress`. Stages are only printed within :func:`named_stages`, which the command line uses;
  the library is silent.
- A stage is printed after :data:`SILENT` seconds of work, by a process timer instead of a thread, because
  readers fork. Without such a timer (Windows, or if the host uses it), stages are printed when they start.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeVar

from boxscore._utils.text import counted, counted_of

Item = TypeVar("Item")

_unwanted = 0
"""Number of callers that have disabled progress."""


def _is_wanted() -> bool:
    """Whether stderr exists and progress is enabled."""
    return not _unwanted and sys.stderr is not None


def progress_is_shown() -> bool:
    """Whether stderr is a terminal and progress is enabled."""
    return _is_wanted() and sys.stderr.isatty()


@contextlib.contextmanager
def without_progress() -> Iterator[None]:
    """Disable progress in this context."""
    global _unwanted
    _unwanted += 1
    try:
        yield
    finally:
        _unwanted -= 1


def progress(items: Iterable[Item], **options: Any) -> Iterable[Item]:
    """Iterate with a progress bar on stderr if it is shown; otherwise do not use tqdm, which starts a thread.

    In a pipe or log, a command prints progress every few seconds.
    """
    if not progress_is_shown():
        return items if _stages is None or not _is_wanted() else _log_progress(items, _stages, **options)
    stage("")  # the bar has its own description
    from tqdm import tqdm

    return tqdm(items, file=sys.stderr, **options)


EVERY = 5.0
"""Seconds between two progress lines in a log."""


def _log_progress(
    items: Iterable[Item],
    stages: _Stages,
    *,
    desc: str = "",
    unit: str = "",
    total: int | None = None,
    **_: Any,
) -> Iterator[Item]:
    """Iterate, and periodically print progress, rate and estimated remaining time."""
    count = total if total is not None else len(items) if isinstance(items, Sized) else None
    began = said = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - said >= EVERY:
            said, rate = now, done / (now - began)
            progress = counted(done, unit) if count is None else counted_of(done, count, unit)
            left = "" if count is None else f", {clock_text((count - done) / rate)} left"
            stages.log(f"{desc}: {progress}, {rate:.3g} a second{left}")


def clock_text(seconds: float) -> str:
    """Format a duration as ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


# ---------------------------------------------------------------- stages

SILENT, BRIEF = 2.0, 0.5
"""Seconds of work before the first stage is printed, and minimum duration of a stage to print."""


class _Stages:
    """The stages of a command, and the timer that prints them."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._began, self._owner = say, time.monotonic(), os.getpid()
        self._name, self._printed = "", ""
        self._timed = (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        )
        if self._timed:
            signal.signal(signal.SIGALRM, lambda *_: self._print_name())
            signal.siginterrupt(signal.SIGALRM, False)

    def begin(self, name: str) -> None:
        if os.getpid() != self._owner or threading.current_thread() is not threading.main_thread():
            return
        self._name = name
        wait = max(SILENT - (time.monotonic() - self._began), BRIEF)
        if self._timed:
            signal.setitimer(signal.ITIMER_REAL, wait)
        elif wait == BRIEF:
            self._print_name()

    def log(self, line: str) -> None:
        """Print a progress line."""
        if os.getpid() == self._owner and threading.current_thread() is threading.main_thread():
            self._say(line)

    def _print_name(self) -> None:
        if os.getpid() == self._owner and self._name not in ("", self._printed) and _is_wanted():
            self._printed = self._name
            with contextlib.suppress(RuntimeError):  # the timer fired during a write to stderr
                self._say(f"{self._name} ...")

    def end(self) -> None:
        if self._timed and os.getpid() == self._owner:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


_stages: _Stages | None = None


def stage(name: str) -> None:
    """Start a stage such as ``matching``; it is only printed within :func:`named_stages`."""
    if _stages is not None:
        _stages.begin(name)


@contextlib.contextmanager
def named_stages(say: Callable[[str], None]) -> Iterator[None]:
    """Print the stages of long work with ``say``."""
    global _stages
    before, _stages = _stages, _Stages(say) if _stages is None and _is_wanted() else _stages
    mine = _stages if before is None else None
    try:
        yield
    finally:
        _stages = before
        if mine is not None:
            mine.end()
