"""Children that judge mutants, each with a limit of time and memory; one that dies is replaced.

They are forked from a process that has imported everything, so that a child costs milliseconds. Child k of n
has every nth mutant; a page of shared memory says which it is at, so that the parent knows what killed it.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from attack.engine.judging import Verdict

__all__ = ["SECONDS", "Work", "run"]

SECONDS = 10.0
"""A mutant may take this long on a processor, and some times as long where it waits or the machine is busy."""

PATIENCE = 6

ADDRESS_SPACE, ROOM = 4_000_000_000, 3_000_000_000
"""A child may take the first in all, and the second in addition to what its parent has at the fork."""

FILE_SIZE = 200_000_000

_STATE = struct.Struct(
    "qqdd"
)  # number of the mutant, 1 while an oracle is asked, since when, processor time then
_IDLE = -1

Judge = Callable[[int, Path, Callable[[str], None]], tuple[str, Verdict, float]]


class Work(NamedTuple):
    """The verdict on one mutant."""

    number: int
    reader: str
    verdict: Verdict
    seconds: float


class _Child:
    def __init__(self, lane: int, lanes: int, count: int, start: int, judge: Judge, folder: Path) -> None:
        self.lane, self.folder = lane, folder
        self.state = mmap.mmap(-1, _STATE.size)
        self.state[:] = _STATE.pack(_IDLE, 0, time.monotonic(), 0.0)
        self.stack = folder.with_suffix(".stack")
        self.buffer = b""
        reading, writing = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            self._work(writing, range(start, count, lanes), judge)
        os.close(writing)
        self.pipe = reading

    def _work(self, pipe: int, numbers: range, judge: Judge) -> None:
        """Judge, and never return."""
        status = 1
        try:
            most = max(ADDRESS_SPACE, _taken() + ROOM)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            stack = self.stack.open("w")
            faulthandler.enable(stack)
            faulthandler.register(signal.SIGUSR1, stack)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            for number in numbers:
                begin = time.monotonic()
                self.state[:] = _STATE.pack(number, 0, begin, time.process_time())
                reader, verdict, seconds = judge(
                    number, self.folder, lambda _: self.state.__setitem__(slice(8, 16), struct.pack("q", 1))
                )
                line = json.dumps([number, reader, *verdict, seconds]).encode()
                os.write(pipe, line + b"\n")
                if verdict.kind == "memory":  # the peak says nothing more from now on
                    status = 3
                    break
            else:
                status = 0
        except BaseException:
            import traceback

            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)

    def lines(self) -> Iterator[Work]:
        """What the child has written; call when there is something to read."""
        data = os.read(self.pipe, 1 << 20)
        if not data:
            raise EOFError
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            number, reader, kind, sign, detail, seconds = json.loads(line)
            yield Work(number, reader, Verdict(kind, sign, detail), seconds)

    def at(self) -> tuple[int, bool, float]:
        """Number of the mutant, whether an oracle is asked, and the seconds that count."""
        number, oracle, since, before = _STATE.unpack(self.state[:])
        waited = time.monotonic() - since
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return number, bool(oracle), waited
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") - before
        return number, bool(oracle), max(used, waited / PATIENCE)

    def place(self) -> str:
        """Where the child was, by the innermost line of its own code in the stack that it dumped."""
        text = self.stack.read_text(errors="replace") if self.stack.exists() else ""
        for line in text.split("most recent call first")[-1].splitlines():
            if "/boxscore/" in line or "/attack/" in line:
                name, _, function = line.split("/")[-1].partition('", line ')
                return f"{name}:{function.split(' in ')[-1]}"
        return "unknown place"


def run(
    judge: Judge,
    count: int,
    *,
    start: int = 0,
    lanes: int | None = None,
    until: float = float("inf"),
    name: Callable[[int], str] = str,
    most_seconds: float = SECONDS,
) -> Iterator[Work]:
    """Judge mutants ``start`` to ``count``; yields verdicts as they come, in no order.

    Parameters
    ----------
    judge : callable
        Number, folder, and what to call when the oracle begins; returns the reader's name, the verdict and
        the seconds.
    until : float
        ``time.monotonic()`` at which to stop.
    name : callable
        The reader of a mutant, for those whose child died.
    """
    lanes = lanes or len(os.sched_getaffinity(0))
    lanes = max(1, min(lanes, count - start))
    top = Path(tempfile.mkdtemp(prefix="attack-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    children: dict[int, _Child] = {}

    def begin(lane: int, first: int) -> None:
        folder = top / str(lane)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        children[lane] = _Child(lane, lanes, count, first, judge, folder)

    try:
        for lane in range(lanes):
            begin(lane, start + lane)
        while children:
            ready, _, _ = select.select([child.pipe for child in children.values()], [], [], 0.1)
            for child in list(children.values()):
                number, oracle, seconds = child.at()
                ended = False
                if child.pipe in ready:
                    try:
                        yield from child.lines()
                    except EOFError:
                        ended = True
                if not ended and number != _IDLE and seconds > most_seconds:
                    os.kill(child.pid, signal.SIGUSR1)
                    time.sleep(0.1)
                    os.kill(child.pid, signal.SIGKILL)
                elif not ended:
                    if time.monotonic() > until:
                        os.kill(child.pid, signal.SIGKILL)
                        os.waitpid(child.pid, 0)
                        os.close(child.pipe)
                        del children[child.lane]
                    continue
                if not ended:  # what it wrote before it was killed
                    try:
                        while True:
                            yield from child.lines()
                    except EOFError:
                        pass
                _, status = os.waitpid(child.pid, 0)
                os.close(child.pipe)
                del children[child.lane]
                code = os.waitstatus_to_exitcode(status)
                number, oracle, _ = child.at()
                if code == 0:
                    continue
                if code != 3:
                    yield Work(number, name(number), _death(child, code, oracle, seconds), seconds)
                if number + lanes < count:
                    begin(child.lane, number + lanes)
    finally:
        for child in children.values():
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            os.close(child.pipe)
        shutil.rmtree(top, ignore_errors=True)


def _death(child: _Child, code: int, oracle: bool, seconds: float) -> Verdict:
    place = child.place()
    if seconds > SECONDS or code == -signal.SIGKILL:
        kind, text = "hang", f"over {SECONDS:g} s"
    else:
        kind, text = "crash", f"signal {-code}" if code < 0 else f"exit {code}"
    if oracle:
        return Verdict("unknown", f"the oracle: {kind} {text}", place)
    return Verdict(kind, f"{text} at {place}", child.stack.read_text(errors="replace")[:1500])


def _taken() -> int:
    """Return the address space of this process in bytes; 0 where the system does not say it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()
