"""Run one contender once, in this process, and write what it took.

Goal
----
The child that ``measure.py`` starts for every single measurement: a fresh interpreter, so that nobody profits
from somebody else's imports, caches or grown heap.

Conventions
-----------
- Times are seconds of ``time.perf_counter``, one stage after the other, nothing in between.
- Peak memory is ``VmHWM`` of this process when the last stage ends. Unlike ``ru_maxrss`` it starts at zero in
  a new program, whatever its parent held.
- What contenders print goes to /dev/null; the answer goes to ``--answer``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from contenders import CONTENDERS, CommandLine

STAGES = ("import_package", "read_ground_truth", "read_detections", "evaluate", "accumulate")


def peak_memory() -> int:
    """Peak resident size of this process in bytes; 0 where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one contender once.")
    parser.add_argument("contender")
    parser.add_argument("--gt", required=True)
    parser.add_argument("--dt", required=True)
    parser.add_argument("--caps", required=True, help="comma separated")
    parser.add_argument("--kind", default="bbox")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--answer", type=Path, required=True)
    parser.add_argument("--arrays", type=Path, help="folder to write the arrays to")
    arguments = parser.parse_args()
    kind = CONTENDERS[arguments.contender]
    assert not issubclass(kind, CommandLine)
    caps = [int(cap) for cap in arguments.caps.split(",")]
    contender = kind(arguments.gt, arguments.dt, caps, arguments.threads, arguments.kind)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())

    seconds = {}
    for stage in STAGES:
        start = time.perf_counter()
        getattr(contender, stage)()
        seconds[stage] = time.perf_counter() - start
    answer = {"seconds": seconds, "peak": peak_memory(), "ended": time.monotonic()}
    answer["numbers"] = contender.numbers()
    answer["arrays"] = write_arrays(contender.arrays(), arguments.arrays) if arguments.arrays else {}
    arguments.answer.write_text(json.dumps(answer))
    return 0


def write_arrays(arrays: dict, folder: Path) -> dict[str, list[int]]:
    """Write each array as raw little-endian float64, C order; return their shapes."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    shapes = {}
    for name, array in arrays.items():
        whole = np.ascontiguousarray(array, dtype="<f8")
        whole.tofile(folder / f"{name}.f64")
        shapes[name] = list(whole.shape)
    return shapes


if __name__ == "__main__":
    sys.exit(main())
