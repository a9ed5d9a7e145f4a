"""Start a contender in a fresh process, time it and watch its memory.

Goal
----
One function, :func:`run`, that treats every contender alike, and one untimed variant that also samples the
memory of the whole process tree, for contenders that fork.

Conventions
-----------
- This process imports nothing but the standard library: a child starts as a copy of it.
- "Whole process" is from ``Popen`` to the end of the child: interpreter, imports, work and exit.
- Children inherit the processors this process is pinned to (:func:`pin`) and :func:`thread_limits`.
- Two measures of memory: ``peak``, the highest resident size of the largest process (exact), and
  ``tree_peak``, the highest sum over the process and its children of their proportional set sizes (sampled;
  pages shared between them count once).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cases import BENCHMARKS, Files
from contenders import CONTENDERS, CommandLine

__all__ = ["Run", "Setting", "pin", "run"]

SAMPLE_SECONDS = 0.01
MEMORY_SHARE = 0.75  # of the machine; a contender that wants more is stopped


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs of one benchmark share.

    Attributes
    ----------
    python : str
        Interpreter of the environment with the peers.
    source : Path
        Folder that holds the ``boxscore`` package to measure.
    threads : int
    timeout : float
        Seconds after which a run is given up.
    """

    python: str
    source: Path
    threads: int
    timeout: float


@dataclass(slots=True)
class Run:
    """What one run of one contender gave; ``error`` is empty when it went well."""

    contender: str
    whole: float = 0.0
    peak: int = 0
    tree_peak: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    numbers: list[float] = field(default_factory=list)
    arrays: dict[str, list[int]] = field(default_factory=dict)
    error: str = ""


def pin(threads: int) -> list[int]:
    """Pin this process, and so its children, to the first ``threads`` processors it may use."""
    if not hasattr(os, "sched_setaffinity"):
        print("This system cannot pin processes; only the thread limits hold.", file=sys.stderr)
        return []
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < threads:
        print(f"Only {len(allowed)} processors for {threads} threads.", file=sys.stderr)
    os.sched_setaffinity(0, allowed[:threads])
    return allowed[:threads]


def thread_limits(threads: int) -> dict[str, str]:
    """Environment variables that thread pools of Rust, OpenMP and BLAS read."""
    names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def run(
    setting: Setting,
    contender: str,
    files: Files,
    caps: Sequence[int],
    *,
    kind: str = "bbox",
    arrays: Path | None = None,
    watch: bool = False,
) -> Run:
    """Run a contender once in a fresh process.

    Parameters
    ----------
    setting : Setting
    contender : str
        A key of ``CONTENDERS``.
    files : Files
    caps : sequence of int
    kind : {"bbox", "segm", "keypoints"}
    arrays : Path, optional
        Folder for the arrays behind the numbers.
    watch : bool, default False
        Sample the process tree's memory. It costs the child time: not for timed runs.
    """
    made_by = CONTENDERS[contender]
    result = Run(contender)
    # Packages install into the environment; the boxscore measured is the source tree's.
    environment = os.environ | thread_limits(setting.threads) | {"PYTHONPATH": str(setting.source)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or the source tree is compiled again in every process
    with tempfile.TemporaryDirectory(prefix="boxscore-bench-") as folder:
        answer, output, errors = (Path(folder) / name for name in ("answer.json", "output", "errors"))
        command = [setting.python]
        if issubclass(made_by, CommandLine):
            command += made_by.arguments(str(files.ground_truth), str(files.detections), caps, kind)
        else:
            command += [str(BENCHMARKS / "worker.py"), contender]
            command += ["--gt", str(files.ground_truth), "--dt", str(files.detections)]
            command += ["--caps", ",".join(map(str, caps)), "--threads", str(setting.threads)]
            command += ["--answer", str(answer), "--kind", kind]
            command += ["--arrays", str(arrays)] if arrays else []
        with output.open("wb") as out, errors.open("wb") as err:
            start = time.perf_counter()
            child = subprocess.Popen(command, stdout=out, stderr=err, env=environment, cwd=folder)
            guard = _Guard(child, setting.timeout, watch=watch)
            status, usage = _wait(child)
            result.whole = time.perf_counter() - start
            guard.stop()
        if guard.stopped_for:
            result.error = guard.stopped_for
        elif status != 0:
            lines = errors.read_text(errors="replace").strip().splitlines()
            result.error = lines[-1] if lines else f"exit status {status}"
        elif issubclass(made_by, CommandLine):
            result.numbers = made_by.numbers(output.read_text(), caps, kind)
            result.peak = usage
            result.tree_peak = guard.tree_peak(before=float("inf"))
        else:
            told = json.loads(answer.read_text())
            result.seconds, result.numbers, result.arrays = told["seconds"], told["numbers"], told["arrays"]
            result.peak = told["peak"]
            result.tree_peak = guard.tree_peak(before=told["ended"])
    return result


def _wait(child: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Wait for a child; its exit status and the highest resident size of it or of a child of its own."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class _Guard:
    """A thread that stops a child that takes too long or too much memory, and samples its memory if asked."""

    def __init__(self, child: subprocess.Popen[bytes], timeout: float, *, watch: bool) -> None:
        self.stopped_for = ""
        self._child = child
        self._deadline = time.monotonic() + timeout
        self._timeout = timeout
        self._watch = watch
        self._samples: list[tuple[float, int]] = []
        self._limit = MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def tree_peak(self, *, before: float) -> int:
        """Highest sample until a moment of ``time.monotonic``, in bytes; 0 without samples."""
        return max((size for moment, size in self._samples if moment <= before), default=0)

    def _look(self) -> None:
        # A timed run is looked at twice a second, at its resident size only: one small file in /proc.
        while not self._over.wait(SAMPLE_SECONDS if self._watch else 0.5):
            if self._watch:
                size = sum(map(_proportional_size, _tree(self._child.pid)))
                self._samples.append((time.monotonic(), size))
            else:
                size = _resident_size(self._child.pid)
            if size > self._limit:
                self._kill(f"stopped: more than {MEMORY_SHARE:.0%} of the machine's memory")
            elif time.monotonic() > self._deadline:
                self._kill(f"stopped after {self._timeout:.0f} s")

    def _kill(self, reason: str) -> None:
        if not self.stopped_for and not self._over.is_set():
            self.stopped_for = reason
            os.kill(self._child.pid, 9)


def _tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    processes = [pid]
    for parent in processes:  # grows while it is walked
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        except OSError:
            continue
        processes += map(int, children.split())
    return processes


def _proportional_size(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # gone, or not Linux
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _resident_size(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
