"""Tasks that kill the process they run in, or wait in it. Workers import this module."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from pathlib import Path
from typing import Any

from boxscore.distributed import Part
from support.insides import StreamTask, score_classes


@dataclasses.dataclass(frozen=True)
class _Around:
    """A task that stands in for another."""

    task: Any
    marks: str

    @property
    def number(self) -> int:
        return self.task.number

    @property
    def detections(self) -> Any:
        return self.task.detections


@dataclasses.dataclass(frozen=True)
class DyingTask(_Around):
    """Kills its process as often as a file does not say that it did."""

    deaths: int

    def run(self) -> Part:
        """Die, or return the part."""
        mark = Path(self.marks)
        done = len(mark.read_bytes()) if mark.exists() else 0
        if done < self.deaths:
            with mark.open("ab") as file:
                file.write(b"x")
            os.kill(os.getpid(), signal.SIGKILL)
        return self.task.run()


@dataclasses.dataclass(frozen=True)
class WaitingTask(_Around):
    """Says that it runs, by a file, and waits until there is a second one."""

    def run(self) -> Part:
        """Return the part when told to."""
        wait_for(self.marks)
        return self.task.run()


def wait_for(marks: str) -> None:
    """Say that this runs, and wait until it may go on; not for ever, should nobody come."""
    Path(marks).touch()
    end = time.monotonic() + 60
    while not Path(f"{marks}.go").exists() and time.monotonic() < end:
        time.sleep(0.01)


def waiting_draw(pieces: Any, *arguments: Any, **options: Any) -> Any:
    """Draw classes when told to; the mark is where the environment of the worker says."""
    wait_for(os.environ["BOXSCORE_TEST_MARK"])
    return score_classes(pieces, *arguments, **options)


def make_partitions_wait(marks: str) -> None:
    """Make every partition of Parquet that this process matches from now on wait."""
    run = StreamTask.run

    def waiting(self: StreamTask) -> Part:
        wait_for(marks)
        return run(self)

    StreamTask.run = waiting  # type: ignore[method-assign]
