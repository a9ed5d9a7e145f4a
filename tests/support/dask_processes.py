"""A Dask scheduler and workers as processes of their own, as ``dask scheduler`` and ``dask worker`` start them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SOURCES = [str(Path(__file__).parents[2] / "src"), str(Path(__file__).parents[1])]


class DaskProcesses:
    """A scheduler, and workers that are started one by one; everything ends with the context."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as port:
            port.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{port.getsockname()[1]}"
        self.folder, self.started = folder, list[subprocess.Popen[bytes]]()
        self.scheduler = self._start(
            ["scheduler", "--host", "127.0.0.1", "--port", self.address.rpartition(":")[2]]
        )

    def worker(
        self,
        *options: str,
        before: Sequence[str] = (),
        sources: Sequence[str] = SOURCES,
        nanny: bool = False,
        **environment: str,
    ) -> subprocess.Popen[bytes]:
        """Start a worker, by a command that stands before it if one is given; a nanny would start it again."""
        own = ["worker", self.address, "--nthreads", "1", "--local-directory", str(self.folder)]
        own += [] if nanny else ["--no-nanny"]  # a process less to start
        return self._start([*own, *options], before, sources, environment)

    def _start(
        self,
        arguments: Sequence[str],
        before: Sequence[str] = (),
        sources: Sequence[str] = SOURCES,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sources), **(environment or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Kill everything, with the children."""
        for process in reversed(self.started):
            kill_group(process)


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process that leads a group, and its children, stopped or not."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def dask_processes(folder: Path, workers: int = 1) -> Iterator[tuple[DaskProcesses, Any]]:
    """Start a scheduler and workers; give them with a client."""
    import distributed

    processes = DaskProcesses(folder)
    try:
        for _ in range(workers):
            processes.worker()
        with distributed.Client(processes.address, timeout=30, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(workers, timeout=30)
            yield processes, client
    finally:
        processes.end()


def until(condition: Any, seconds: float = 120.0) -> None:
    """Wait for a condition; fail where it does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def descendants(process: int) -> list[int]:
    """Return the children of a process, and theirs."""
    found, waiting = [], [process]
    while waiting:
        one = waiting.pop()
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                own = [int(text) for text in task.read_text().split()]
                found += own
                waiting += own
    return found


def lives(process: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
