"""Every row of the table of goals, on one processor and on two, in one command.

Goal
----
Runs the other scripts of this folder with the cases that goals are set for: boxes and keypoints
(``compare.py``), masks and boundaries (``masks.py``), questions behind the score and training loops
(``diagnostics.py``), LVIS (``lvis.py``), a VOC folder (``voc.py``) and suppression (``nms.py``). At the end
the rows of the page of benchmarks, which ``figures.py --results`` writes there.
Boxes, keypoints and small files: arrays are compared before any time is taken; memory beside the times.
Masks: the largest difference of the summary is printed. VOC and NMS: mAP and the number of kept boxes.

Usage
-----
    python benchmarks/table.py                                # benchmarks/.venv, made if need be
    python benchmarks/table.py --python VENV/bin/python       # an environment that has the peers
    python benchmarks/table.py --only masks --threads 2
    python benchmarks/table.py --quick --threads 2            # does every row work? one round each

Conventions
-----------
- Only the fastest peers run, and those that a row is about: a quarter of an hour on a quiet machine, after
  the data was made once.
- Everyone is pinned to the same processors. Tables go to stdout, progress to stderr.
- Exit status 1 when a script failed; the others run all the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import measured
from cases import BENCHMARKS, PROJECT
from compare import make_environment
from measure import pin, thread_limits

PEERS = "hotcoco,ultrafast-pycocotools"
OURS = "boxscore paths,boxscore command"
SMALL = ("real_yolov2_608", "real_yolact_base", "real_voc2007", "real_widerface")
SUPPRESSION = (
    *("batched, 100 images x 8400", "batched, 400 images x 1000", "one class, dense, 8400"),
    *("one class, dense, 300", "one class, sparse, 300", "one class, crowd, 300"),
    *("one class, sparse, 100000", "fusion of 3 models, 100 images"),
)
MASK_CONTENDERS = "hotcoco,ultrafast_pycocotools,vernier,boxscore,boxscore workers"


def commands(threads: int, data: Path, results: Path, *, quick: bool = False) -> dict[str, list[list[str]]]:
    """Return the scripts and their arguments, by row group; ``quick`` is one round of each."""
    stored = results / f"threads_{threads}"
    folders = ["--threads", str(threads), "--data", str(data), "--results", str(stored)]

    def compare(case: str, rounds: int, *more_peers: str) -> list[str]:
        contenders = ",".join((PEERS, *more_peers, OURS))
        return ["compare.py", *folders, "--contenders", contenders, *repeated("--rounds", rounds), case]

    def repeated(option: str, count: int) -> list[str]:
        return [option, "1" if quick else str(count)]

    def store(name: str) -> list[str]:
        return ["--store", str(stored / f"rows_{name}.json")]

    masks = ["--folder", str(data), "--contenders", MASK_CONTENDERS, *repeated("--repeats", 3)]
    asked = ["diagnostics.py", "--threads", str(threads), "--data", str(data), *repeated("--rounds", 3)]
    lvis = ["lvis.py", "run", str(data / "lvis"), "--tool", "boxscore command", "hotcoco"]
    return {
        "small": [
            compare("coco_36k", 5, "pycocotools", "faster-coco-eval"),
            *(compare(one, 5) for one in SMALL),
        ],
        "boxes": [compare("coco_500k", 5, "vernier"), compare("objects365_2m", 2)],
        "keypoints": [compare("keypoints", 5)],
        "masks": [
            compare("masks", 5),
            *(["masks.py", kind, *masks, *store(kind)] for kind in ("segm", "boundary")),
        ],
        "diagnostics": [[*asked, *store("diagnostics")]],
        "lvis": [[*lvis, *repeated("--rounds", 3), *store("lvis")]],
        "voc": [["voc.py", *repeated("--repeats", 3), *store("voc")]],
        "nms": [
            ["nms.py", "--only", only, "--seconds", "0" if quick else "1", *store(f"nms_{number}")]
            for number, only in enumerate(SUPPRESSION)
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--only", nargs="+", metavar="GROUP", help="some of small, boxes, keypoints, ...")
    parser.add_argument("--quick", action="store_true", help="one round of each: for a look that all works")
    parser.add_argument("--python", help="interpreter with the peers; default: make benchmarks/.venv")
    parser.add_argument("--data", type=Path, default=BENCHMARKS / "data", metavar="DIR")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results", metavar="DIR")
    arguments = parser.parse_args()
    python = arguments.python or make_environment()
    of_nms = arguments.python or make_environment("-suppression")
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    data, results = arguments.data.resolve(), arguments.results.resolve()
    failed = 0
    here = len(allowed or ()) or os.cpu_count() or 1
    arguments.threads = [threads for threads in arguments.threads if threads <= here]
    for threads in arguments.threads:
        if allowed is not None:
            os.sched_setaffinity(0, allowed)
        pin(threads)
        environment = os.environ | thread_limits(threads) | {"PYTHONPATH": str(PROJECT / "src")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for group, scripts in commands(threads, data, results, quick=arguments.quick).items():
            if arguments.only and group not in arguments.only:
                continue
            print(f"\n## {group}, processors: {threads}\n", flush=True)
            start = time.perf_counter()
            for script, *rest in scripts:
                command = [of_nms if script == "nms.py" else python, str(BENCHMARKS / script), *rest]
                command += ["--python", python] if script in ("compare.py", "diagnostics.py") else []
                failed += bool(subprocess.run(command, env=environment, cwd=PROJECT, check=False).returncode)
            print(f"{group}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    for threads in arguments.threads:
        print(
            f"\n## rows of the page of benchmarks, processors: {threads}\n\n{rows(results, threads)}",
            flush=True,
        )
    return 1 if failed else 0


def rows(results: Path, threads: int) -> str:
    """Return the rows of the table of the page of benchmarks that were measured."""
    lines = ["| row | boxscore, s | fastest peer, s | ratio |", "|---|---:|---:|---:|"]
    for row in measured.rows_of(results / f"threads_{threads}"):
        peer = f"{row['theirs']:.3g} ({row['peer']})" if "peer" in row else ""
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        lines.append(f"| {row['key']} | {row['ours']:.3g} | {peer} | {ratio} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
