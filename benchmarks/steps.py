"""Time of every step of ``evaluate`` with 1, 2, 4, ... processes, in one command.

    python benchmarks/steps.py                    # 500k, 2M and masks, on 1 to 16 processors if they are here
    python benchmarks/steps.py coco_500k --workers 1 2 4 --rounds 5

Each run is a fresh process, pinned to as many processors as it may use. A cell is the processor time in
milliseconds of all processes, without the steps inside a step; in brackets the time from start to end of the
process that took longest for it. ``wait`` is what the first process waits for others and copies from them.
The metrics of all runs must be equal in every digit.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import mmap
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import BENCHMARKS, CASES, PROJECT
from compare import find_files
from measure import pin

STEPS = (
    *("start and imports", "decode annotations", "decode results", "tables", "rows of a share", "rank"),
    *("pairs", "match", "curves and metrics", "join", "digest and checks", "forks", "copy out", "wait"),
)
PROTOCOLS = {"segm": "coco-segm", "bbox": "coco", "keypoints": "coco-keypoints"}
MOST_PROCESSES = 256


class Clock:
    """Time of each step in each process, without the steps inside it, in memory that forks share."""

    def __init__(self) -> None:
        shared = mmap.mmap(-1, MOST_PROCESSES * len(STEPS) * 16)
        self.spent = np.frombuffer(shared, dtype=np.float64).reshape(MOST_PROCESSES, len(STEPS), 2)
        self._process, self._forks = 0, 0
        self._inside: list[Any] = []
        os.register_at_fork(before=self._before, after_in_child=self._in_child)

    def _before(self) -> None:
        self._forks += 1

    def _in_child(self) -> None:
        self._process, self._inside = self._forks, []

    def timed(self, step: Callable[..., str], function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function; ``step`` names its step from the arguments."""

        @functools.wraps(function)
        def wrapped(*given: Any, **options: Any) -> Any:
            row = STEPS.index(step(*given))
            self._inside.append(np.zeros(2))
            before = _now()
            try:
                return function(*given, **options)
            finally:
                took, inside = _now() - before, self._inside.pop()
                self.spent[self._process, row] += took - inside
                if self._inside:
                    self._inside[-1] += took

        return wrapped


def _now() -> Any:
    return np.array([time.process_time(), time.perf_counter()])


def work(kind: str, truth: str, found: str, workers: int) -> None:
    """Evaluate two files in this process, and print the time of each step and the metrics."""
    started = np.array([0.0, time.perf_counter() - time.process_time()])  # of the interpreter, about
    clock = Clock()
    from boxscore import evaluation
    from boxscore._utils import processes
    from boxscore.evaluation import by_class, result
    from boxscore.formats import _coco_records, reading
    from boxscore.matching import matcher

    def wrap(owner: Any, name: str, step: str | Callable[..., str]) -> None:
        chosen = (lambda *_: step) if isinstance(step, str) else step
        setattr(owner, name, clock.timed(chosen, getattr(owner, name)))

    def decoded(reading: Any, *_: Any) -> str:
        return "decode annotations" if reading._kind.name == "annotation" else "decode results"

    wrap(_coco_records.Reading, "_decoded", decoded)
    wrap(matcher, "rank_detections", "rank")
    wrap(matcher, "candidate_pairs", "pairs")
    wrap(matcher.Matcher, "match", "match")
    wrap(by_class, "select_rows", "rows of a share")
    wrap(by_class, "_share", "curves and metrics")
    wrap(by_class, "evaluated_by_class", "join")
    wrap(result.Curves, "of", "curves and metrics")
    wrap(processes.Forked, "__init__", "forks")
    wrap(processes.Forked, "results", "wait")
    wrap(processes, "write_pickle", "copy out")
    clock.spent[0, 0] = _now() - started
    options = dataclasses.replace(reading.PLAIN, processes=workers)
    tables = clock.timed(lambda *_: "tables", reading.load_both)(truth, found, options, options)
    evaluate = clock.timed(lambda *_: "digest and checks", evaluation.evaluate)
    evaluated = evaluate(*tables, protocol=PROTOCOLS[kind], workers=workers)
    metrics = clock.timed(lambda *_: "curves and metrics", lambda: dict(evaluated.metrics))()
    used, longest = clock.spent[..., 0].sum(axis=0), clock.spent[..., 1].max(axis=0)
    print(json.dumps([used.tolist(), longest.tolist(), repr(metrics)]))


def runs_of(kind: str, files: list[str], workers: int, rounds: int) -> list[Any]:
    """Return the processor time and the longest time of each step, and the metrics, of each run."""
    runs = []
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for _ in range(rounds):
        command = [sys.executable, __file__, "--work", kind, *files, str(workers)]
        started = time.perf_counter()
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        runs.append([*json.loads(done.stdout), time.perf_counter() - started])
    return runs


def table(title: str, runs: dict[int, list[Any]]) -> str:
    """Return the table of a case: medians of the runs, a column for each number of processes."""
    middle = {count: np.median([run[:2] for run in some], axis=0) * 1000 for count, some in runs.items()}
    lines = [f"| {title} | {' | '.join(map(str, runs))} |", "|---|" + "---:|" * len(runs)]
    for row, step in enumerate(STEPS):
        cells = [f"{used[row]:.0f} ({longest[row]:.0f})" for used, longest in middle.values()]
        lines.append(f"| {step} | {' | '.join(cells)} |")
    cells = [
        f"{used.sum():.0f} ({statistics.median(run[3] for run in runs[n]) * 1000:.0f})"
        for n, (used, _) in middle.items()
    ]
    return "\n".join([*lines, f"| all | {' | '.join(cells)} |"])


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        kind, truth, found, workers = sys.argv[2:]
        work(kind, truth, found, int(workers))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["coco_500k", "objects365_2m", "masks"], metavar="CASE")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16], metavar="N")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=BENCHMARKS / "data", metavar="DIR")
    arguments = parser.parse_args()
    allowed = os.sched_getaffinity(0)
    failed = False
    for name in arguments.cases:
        case, runs = CASES[name], {}
        files = find_files(case, sys.executable, arguments.data.resolve(), arguments.data.resolve())
        if files is None:
            print(f"{name}: no data", file=sys.stderr)
            continue
        # Everything runs as often as there are rounds, on as many processors as processes.
        for workers in [count for count in arguments.workers if count <= len(allowed)]:
            os.sched_setaffinity(0, allowed)
            pin(workers)
            both = [str(files.ground_truth), str(files.detections)]
            runs[workers] = runs_of(case.kind, both, workers, arguments.rounds)
        print(f"{table(case.title, runs)}\n", flush=True)
        different = {run[2] for some in runs.values() for run in some}
        failed |= len(different) != 1
    print("metrics differ" if failed else "all metrics equal", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
