"""Run every command with closed and full streams, little memory, a small disk, and two writers at once.

    python qa/attack/streams.py --seed 0

No traceback, no status but those of the page on exit statuses, no half-written or hidden file, and a failed gate
that fails whatever becomes of its words. The small disk needs the right to mount; without it that part is left
out, and said to be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from signals import COMMANDS, DT, INPUT, ROOT, content_of  # noqa: E402

READING: dict[str, tuple[str, ...]] = {
    "text": ("evaluate", *INPUT),
    "json": ("evaluate", *INPUT, "--output", "json", "--per-class"),
    "validate": ("validate", *INPUT),
    "errors": ("errors", *INPUT, "--list", "--output", "csv"),
    "check": ("check", *INPUT, "--min", "AP=0.3"),
    "check that fails": ("check", *INPUT, "--min", "AP=0.99"),
    "strict that fails": ("validate", *INPUT, "--strict"),
    "protocols": ("protocols",),
    "help": ("--help",),
    "bad input": ("evaluate", "--gt", "nowhere.json", "--dt", DT),
}
STREAMS = {
    "plain": '"$@"',
    "stdin closed": '"$@" <&-',
    "stdout closed": '"$@" >&-',
    "stderr closed": '"$@" 2>&-',
    "all closed": '"$@" <&- >&- 2>&-',
    "stdout full": '"$@" >/dev/full',
    "stderr full": '"$@" 2>/dev/full',
    "both full": '"$@" >/dev/full 2>&1',
    "no reader": 'set -o pipefail; "$@" | true',
    "no reader of both": 'set -o pipefail; "$@" 2>&1 | true',
    "one line read": 'set -o pipefail; "$@" | head -n 1 >/dev/null',
    "stdout for reading": '"$@" 1</dev/null',
}
LOST = ("stdout closed", "all closed", "stdout full", "both full", "stdout for reading")
"""Streams without room for a result."""
STATUSES = (0, 1, 2, 3)


class Attack:
    """Runs, and what was wrong with them."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.faults, self.counts = scratch, list[str](), Counter[str]()

    def run(self, what: str, line: str, arguments: tuple[str, ...], folder: Path) -> tuple[int, str]:
        """Run a shell's line; ``"$@"`` in it is the program."""
        self.counts[what.split(":")[0]] += 1
        try:
            done = subprocess.run(
                ["bash", "-c", line, "bash", sys.executable, "-m", "boxscore", *arguments],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT / "src"),
                    "MPLCONFIGDIR": str(self.scratch / "mpl"),
                },
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
        except subprocess.TimeoutExpired:
            self.fault(what, arguments, "more than 120 s")
            return -1, ""
        errors = done.stderr
        if "Traceback" in errors or "Exception ignored" in errors:
            self.fault(what, arguments, errors[-400:])
        elif done.returncode not in STATUSES:
            self.fault(what, arguments, f"exit status {done.returncode}: {errors[-200:]}")
        return done.returncode, errors

    def fault(self, what: str, arguments: tuple[str, ...], text: str) -> None:
        self.faults.append(f"{what}: boxscore {' '.join(arguments)}: {text}")
        print(self.faults[-1], flush=True)

    def folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        (folder / "out").mkdir()
        return folder


def streams(attack: Attack) -> None:
    """Exit statuses may not depend on who listens, but for a result that cannot be written."""
    for name, arguments in {**READING, **writing()}.items():
        expected = attack.run(f"streams: plain, {name}", STREAMS["plain"], arguments, attack.folder())[0]
        new: dict[str, bytes] | None = None
        for stream, line in STREAMS.items():
            folder = attack.folder()
            status, _ = attack.run(f"streams: {stream}, {name}", line, arguments, folder)
            lost = stream in LOST and status == 2
            if status != expected and not lost:
                attack.fault(f"streams: {stream}", arguments, f"exit status {status}, else {expected}")
            written = content_of(folder / "out")
            new = written if new is None else new
            if written != new:
                attack.fault(f"streams: {stream}", arguments, "writes something else")
            shutil.rmtree(folder)


def memory(attack: Attack, draw: random.Random) -> None:
    """From too little for Python to enough; never status 1, which is a failed check."""
    for name in ("text", "validate", "nms", "report"):
        arguments = {**READING, **writing()}[name]
        for limit in sorted(draw.sample(range(30_000, 400_000), 16)):
            folder = attack.folder()
            line = f'ulimit -v {limit}; exec "$@"'
            status, errors = attack.run(f"memory: {limit} kB", line, arguments, folder)
            if status == 1:
                attack.fault(f"memory: {limit} kB", arguments, f"exit status 1: {errors[-200:]}")
            attack.counts[f"memory, status {status}"] += 1
            if list(folder.rglob("*.part")):
                attack.fault(f"memory: {limit} kB", arguments, "a hidden file is left")
            shutil.rmtree(folder)


def disks(attack: Attack, draw: random.Random) -> None:
    """A disk that is full at any point: all new, or all old."""
    for name, arguments in writing().items():
        for _ in range(4):
            folder = attack.folder()
            size = draw.choice([4, 8, 16, 32, 64, 128, 256, 1024])
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "boxscore-attack", str(folder / "out")]
            if subprocess.run(mount, capture_output=True, check=False).returncode:
                print("no right to mount: the small disk is left out")
                return
            try:
                status, _ = attack.run(f"disk: {size} kB, {name}", '"$@"', arguments, folder)
                left = content_of(folder / "out")
                attack.counts[f"disk, status {status}"] += 1
                if (status == 0) != bool(left) or any(file.endswith(".part") for file in left):
                    attack.fault(f"disk: {size} kB", arguments, f"exit status {status}, left {sorted(left)}")
            finally:
                subprocess.run(["umount", str(folder / "out")], check=True)


def races(attack: Attack, draw: random.Random) -> None:
    """Two writers of one output, and an input that is replaced: what stands there is one run's, whole."""
    folder = attack.folder()
    rows = json.loads(Path(DT).read_text())
    versions = [
        json.dumps([{**row, "score": round(row["score"] * f, 6)} for row in rows * 30]) for f in (1, 0.5)
    ]
    keep = ("--iou-threshold", "0.5", "--workers", "1")
    whole = []
    for number, text in enumerate(versions):
        (folder / f"{number}.json").write_text(text)
        attack.run(
            "races: alone", '"$@"', ("nms", "--dt", f"{number}.json", "--output", "out/w.json", *keep), folder
        )
        whole.append((folder / "out" / "w.json").read_bytes())
    line = '"$@" --dt 0.json & "$@" --dt 1.json & wait'
    for _ in range(6):
        attack.run("races: two writers", line, ("nms", "--output", "out/w.json", *keep), folder)
        if (folder / "out" / "w.json").read_bytes() not in whole or len(content_of(folder / "out")) > 1:
            attack.fault("races: two writers", (), "the output is of neither")
    for turn in range(24):
        (folder / "in.json").write_text(versions[0])
        (folder / "out" / "w.json").unlink(missing_ok=True)
        replaced = "cp 1.json in.json" if turn % 2 else "cp 1.json next.json; mv next.json in.json"
        line = f'(sleep {draw.uniform(0.1, 0.8):.3f}; {replaced}) & "$@"; status=$?; wait; exit $status'
        call = ("nms", "--dt", "in.json", "--output", "out/w.json", *keep)
        status, _ = attack.run("races: an input that changes", line, call, folder)
        attack.counts[f"races, status {status}"] += 1
        if status == 0 and (folder / "out" / "w.json").read_bytes() not in whole:
            attack.fault("races: an input that changes", call, "the output is of no input")
        if status != 0 and content_of(folder / "out"):
            attack.fault("races: an input that changes", call, "an error, and an output")


def writing() -> dict[str, tuple[str, ...]]:
    return {name: arguments for name, arguments in COMMANDS.items() if "large" not in name}


PARTS = ("streams", "memory", "disks", "races")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    chosen = parser.parse_args()
    draw, begun = random.Random(chosen.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        attack = Attack(Path(name))
        for part in chosen.parts:
            if part == "streams":
                streams(attack)
            else:
                {"memory": memory, "disks": disks, "races": races}[part](attack, draw)
            print(f"{part}: {len(attack.faults)} faults so far, {time.monotonic() - begun:.0f} s", flush=True)
    runs = sum(attack.counts[key] for key in ("streams", "memory", "disk", "races"))
    print(f"{runs} runs in {time.monotonic() - begun:.0f} s: {dict(sorted(attack.counts.items()))}")
    print(f"{len(attack.faults)} faults")
    return int(bool(attack.faults))


if __name__ == "__main__":
    sys.exit(main())
