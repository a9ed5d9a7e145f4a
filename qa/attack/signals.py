"""Interrupt, terminate and kill every writing command at random moments: nothing may be broken, nothing left.

    python qa/attack/signals.py --times 100 --seed 0

An undisturbed run gives the new content and the time it takes. Then each run starts in a folder with the old
content, or with none, and gets a signal at a random moment, half of them near the end, where files are written.
Afterwards the outputs must be all old or all new, whatever was not there before must be gone unless all is new,
no child may live, stderr may have no traceback, and the exit status must be that of the signal. Only a kill may
leave hidden ``.part`` files, or some files new and others old, each of them whole.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
COCO, VOC = ROOT / "datasets" / "shapes_coco", ROOT / "datasets" / "shapes_voc"
GT, DT = str(COCO / "instances.json"), str(COCO / "detections.json")
INPUT = ("--gt", GT, "--dt", DT)
PROGRAM = "import sys; from boxscore.__main__ import program; sys.exit(program())"
"""What the installed script runs."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "nms": ("nms", "--dt", DT, "--output", "out/a.json", "--iou-threshold", "0.5"),
    "nms-large": (
        "nms",
        "--dt",
        "large.json",
        "--output",
        "out/a.json",
        "--iou-threshold",
        "0.5",
        "--workers",
        "3",
    ),
    "nms-voc": ("nms", "--dt", str(VOC / "results"), "--output", "out/voc", "--iou-threshold", "0.5"),
    "fuse": ("fuse", DT, DT, "--output", "out/a.json"),
    "convert": ("convert", "--gt", GT, "--output", "out/gt.npz"),
    "evaluate": ("evaluate", *INPUT, "--report", "out/report"),
    "report": (
        "report",
        *INPUT,
        "--report",
        "out/report",
        "--tables",
        "csv",
        "--plots",
        "png",
        "--resamples",
        "0",
    ),
    "compare": ("compare", "--gt", GT, "--dt", DT, DT, "--resamples", "50", "--report", "out/report"),
    "draw": ("draw", *INPUT, "--image-folder", str(COCO / "images"), "--worst", "3", "--output", "out/drawn"),
    "sweep": ("sweep", *INPUT, "--iou-threshold", "0.4,0.6", "--plot", "out/plot.png"),
}
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}
Content = dict[str, bytes]


class Outcome(NamedTuple):
    """How one run ended."""

    kind: str
    """One of ``done``, ``ended`` by the signal, ``early``: before the program began, in Python's own start."""
    faults: tuple[str, ...]
    parts: int
    """Hidden files that were left."""
    mixed: bool
    """Whether some files were new and others old."""


def content_of(folder: Path) -> Content:
    """Every file, and every folder as empty content."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"a folder"
        for path in sorted(folder.rglob("*"))
    }


def start(arguments: tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "MPLCONFIGDIR": str(folder.parent / "matplotlib"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def undisturbed(arguments: tuple[str, ...], folder: Path) -> tuple[Content, float]:
    """Run the command twice; return what it writes, and the time of the second run."""
    seconds = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        process = start(arguments, folder)
        _, errors = process.communicate(timeout=120)
        seconds = time.perf_counter() - begun
        if process.returncode:
            raise SystemExit(f"{' '.join(arguments)}: exit status {process.returncode}\n{errors}")
    return content_of(folder / "out"), seconds


def attack(
    arguments: tuple[str, ...], scratch: Path, new: Content, number: int, after: float, old: bool
) -> Outcome:
    """Run the command and send it a signal."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    (folder / "out").mkdir()
    if (scratch / "large.json").exists():
        (folder / "large.json").symlink_to(scratch / "large.json")
    before: Content = {}
    if old:
        for name, content in new.items():
            path = folder / "out" / name
            if content == b"a folder":
                path.mkdir(parents=True)
            else:
                path.write_bytes(b"old " + name.encode())
        before = content_of(folder / "out")
    process = start(arguments, folder)
    time.sleep(after)
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Outcome("ended", ("it did not end within 60 s",), 0, False)
    outcome = judge(process, errors, before, content_of(folder / "out"), new, number)
    shutil.rmtree(folder)
    return outcome


def judge(
    process: subprocess.Popen[str], errors: str, before: Content, after: Content, new: Content, number: int
) -> Outcome:
    faults = []
    status, killed = process.returncode, number == signal.SIGKILL
    in_python = "<frozen site>" in errors and "boxscore" not in errors  # it then ends with status 1
    early = (status == -number and not killed) or in_python
    if "Traceback" in errors and not early:
        faults.append(f"a traceback: {errors[-300:]}")
    elif "Exception ignored" in errors:
        faults.append(f"an exception on the way: {errors[:300]}")
    kind = "done" if status == 0 else "early" if early else "ended"
    if status not in (0, -number, 128 + number) and not in_python:
        faults.append(f"exit status {status}: {errors[-300:]}")
    parts = [name for name in after if name.endswith(".part")]
    files = {name: content for name, content in after.items() if name not in parts}
    mixed = False
    if parts and not killed:
        faults.append(f"left behind: {parts}")
    if files not in (before, new):
        whole = all(files[name] in (before.get(name), new.get(name)) for name in files)
        mixed = any(content != b"a folder" for content in files.values())  # not only a folder that was made
        if not killed or not whole:
            faults.append(f"neither old nor new: {sorted(files)}")
    if kind == "done" and files != new:
        faults.append("done, and not all is new")
    deadline = time.monotonic() + (
        20 if killed else 2
    )  # a kill cannot be answered: children end by themselves
    while members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    if members(process.pid):
        faults.append("a child lives")
    return Outcome(kind, tuple(faults), len(parts), mixed)


def members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=99, help="runs of each command (default: 99)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--parallel", type=int, default=2)
    chosen = parser.parse_args()
    draw = random.Random(chosen.seed)
    failed, total, begun = 0, Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for command in chosen.commands:
            scratch = Path(name) / command
            (scratch / "first" / "out").mkdir(parents=True)
            if "large.json" in COMMANDS[command]:
                text = Path(DT).read_text().strip()
                (scratch / "large.json").write_text("[" + ",".join([text[1:-1]] * 330) + "]")
                (scratch / "first" / "large.json").symlink_to(scratch / "large.json")
            new, seconds = undisturbed(COMMANDS[command], scratch / "first")
            jobs = []
            for turn in range(chosen.times):
                low = draw.choice([0.0, 0.7])
                moment = seconds * draw.uniform(low, 1.15)
                jobs.append((list(SIGNALS)[turn % len(SIGNALS)], moment, draw.random() < 0.5))

            def run(
                job: tuple[str, float, bool],
                scratch: Path = scratch,
                new: Content = new,
                command: str = command,
            ):  # type: ignore[no-untyped-def]
                return job, attack(COMMANDS[command], scratch, new, SIGNALS[job[0]], job[1], job[2])

            counts: Counter[str] = Counter()
            with ThreadPoolExecutor(chosen.parallel) as pool:
                for (sent, moment, old), outcome in pool.map(run, jobs):
                    counts[outcome.kind] += 1
                    if sent == "SIGKILL":
                        counts["parts after a kill"] += outcome.parts
                        counts["mixed after a kill"] += outcome.mixed
                    for fault in outcome.faults:
                        failed += 1
                        print(
                            f"{command}: {sent} after {moment:.3f} s, {'old' if old else 'no'} files: {fault}"
                        )
            total += counts
            told = ", ".join(f"{counts[key]} {key}" for key in sorted(counts))
            print(f"{command}: {chosen.times} signals ({seconds:.2f} s): {told}", flush=True)
    runs = chosen.times * len(chosen.commands)
    told = ", ".join(f"{total[key]} {key}" for key in sorted(total))
    print(f"{runs} signals in {time.monotonic() - begun:.0f} s: {told}; {failed} faults")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
