"""Parquet larger than memory: time, peak memory of every process, and growth, on made-up detections.

    python benchmarks/beyond_memory.py 1000000 10000000 100000000 --results beyond.jsonl
    python benchmarks/beyond_memory.py --results beyond.jsonl --docs docs/contributing

Ten detections and four objects an image, 80 classes, one with 60% of all. The data set is written to a
folder in part files of 2.5 million rows, image by image, float32. Then ``boxscore evaluate`` runs in each of
the ways of :data:`WAYS`; the resident memory of it and of its workers is read every 50 ms, with the processor
time of all of them. The numbers of all ways must be equal in every digit. At once it is left out where it
would need more than ``--memory``, by the sizes that were measured before.

With ``--docs`` nothing runs: the table and the picture of the results are written.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

AT_ONCE = (
    "-c",
    "import sys, boxscore.extensions.large.command_line as larger; larger.MANY = 1 << 62; "
    "from boxscore.cli import main; sys.exit(main(sys.argv[1:]))",
)
"""The command line, that never evaluates in partitions unless asked."""

BOXSCORE = ("-m", "boxscore")

WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "at once": (AT_ONCE, ("--no-digest",)),
    "partitions, 1 process": (BOXSCORE, ("--memory-limit", "20GB", "--workers", "1")),
    "partitions, 2 processes": (BOXSCORE, ("--memory-limit", "20GB", "--workers", "2")),
    "cluster of 2 workers": (BOXSCORE, ("--scheduler", "local", "--workers", "2")),
}
"""Arguments of Python and of the command, by what they are called."""

COLORS = ("#8a8a8a", "#7fb3ff", "#1f6feb", "#d2691e")

PER_IMAGE, OBJECTS, CLASSES, LARGEST = 10, 4, 80, 0.6
IMAGES_PER_FILE = 250_000
ROW_GROUP = 500_000


def labels(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw classes; the first has 60%."""
    return np.where(rng.random(count) < LARGEST, 0, rng.integers(1, CLASSES, count)).astype(np.int32)


def chunk(first: int, images: int) -> tuple[pa.Table, pa.Table]:
    """Make the objects and detections of some images."""
    rng = np.random.default_rng(first)
    count = images * OBJECTS
    corner = rng.random((count, 2), dtype=np.float32) * 500
    truth = np.hstack([corner, corner + 8 + rng.random((count, 2), dtype=np.float32) * 150])
    label = labels(rng, count)
    image = np.repeat(np.arange(first, first + images), OBJECTS)
    total = images * PER_IMAGE
    owner = np.repeat(np.arange(images), PER_IMAGE)
    copied = owner * OBJECTS + rng.integers(0, OBJECTS, total)
    hit = rng.random(total) < 0.55
    box = truth[copied] + rng.normal(0, 6, (total, 4)).astype(np.float32)
    corner = rng.random((total, 2), dtype=np.float32) * 500
    away = np.hstack([corner, corner + 8 + rng.random((total, 2), dtype=np.float32) * 150])
    box = np.where(hit[:, None], box, away)
    box[:, 2:] = np.maximum(box[:, 2:], box[:, :2])
    score = np.clip(rng.normal(np.where(hit, 0.6, 0.35), 0.2), 0, 1).astype(np.float32)
    found_label = np.where(hit, label[copied], labels(rng, total)).astype(np.int32)

    def table(image: np.ndarray, label: np.ndarray, box: np.ndarray, **more: np.ndarray) -> pa.Table:
        corners = {name: box[:, at] for at, name in enumerate(("x1", "y1", "x2", "y2"))}
        return pa.table({"image_id": image, "category_id": label, **corners, **more})

    return table(image, label, truth), table(owner + first, found_label, box, score=score)


def make(folder: Path, detections: int) -> None:
    """Write a data set."""
    images = detections // PER_IMAGE
    for side in ("truth", "found"):
        (folder / side).mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, images, IMAGES_PER_FILE)):
        pair = chunk(first, min(IMAGES_PER_FILE, images - first))
        for side, table in zip(("truth", "found"), pair, strict=True):
            path = folder / side / f"{number:05d}.parquet"
            pq.write_table(table, path, row_group_size=ROW_GROUP, compression="zstd")


class Usage(NamedTuple):
    """What a command took."""

    seconds: float
    processor: float
    first: int
    """Peak resident bytes of its first process."""
    other: int
    """That of any other."""
    together: int
    """That of all at once."""


def observed(process: int) -> dict[int, tuple[int, float]]:
    """Return the resident bytes and processor seconds of a process and of its children, by process."""
    ticks = os.sysconf("SC_CLK_TCK")
    found, waiting = {}, [process]
    while waiting:
        one = waiting.pop()
        try:
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            found[one] = pages * 4096, (int(fields[11]) + int(fields[12])) / ticks
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError, IndexError):
            continue
    return found


def run(arguments: Sequence[str], program: Sequence[str]) -> tuple[str, Usage]:
    """Run a command; return its output and what it took."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:  # a pipe would be full before the end
        process = subprocess.Popen([sys.executable, *program, *arguments], stdout=printed)
        first = other = together = 0
        processor: dict[int, float] = {}
        while process.poll() is None:
            now = observed(process.pid)
            processor |= {number: seconds for number, (_, seconds) in now.items()}
            memory = {number: size for number, (size, _) in now.items()}
            together = max(together, sum(memory.values()))
            first = max(first, memory.pop(process.pid, 0))
            other = max([other, *memory.values()])
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        printed.seek(0)
        output = printed.read()
    if process.returncode:
        raise SystemExit(f"boxscore {' '.join(arguments)} ended with {process.returncode}")
    return output, Usage(seconds, sum(processor.values()), first, other, together)


def measure(detections: int, folder: Path, ways: Sequence[str], results: Path, memory: int) -> None:
    """Measure one size in each way, and add a line to the results for each."""
    where = folder / f"{detections}"
    if not where.exists():
        make(where, detections)
    size = sum(file.stat().st_size for file in (where / "found").iterdir())
    paths = ["evaluate", "--gt", str(where / "truth"), "--dt", str(where / "found"), "--output", "json"]
    expected: Any = None
    for way in ways:
        before = [row for row in stored(results) if row["way"] == way and row["detections"] < detections]
        needed = before[-1]["together"] * detections / before[-1]["detections"] if before else 0.0
        if way == "at once" and needed > memory:
            print(f"{detections:>12,}  {way}: left out, about {needed / 1e9:.0f} GB", flush=True)
            continue
        program, options = WAYS[way]
        text, usage = run([*paths, *options], program)
        numbers = json.loads(text)
        metrics = numbers["metrics"], numbers["per_class"]
        if expected is not None and metrics != expected:
            raise SystemExit(f"{way}: other numbers than before")
        expected = metrics
        row = {"detections": detections, "way": way, "bytes": size / detections, **usage._asdict()}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{detections:>12,}  {way:<24} {usage.seconds:8.1f} s  {usage.processor:8.1f} s of processors  "
            f"{usage.first / 1e6:8,.0f} MB  {usage.other / 1e6:8,.0f} MB  {usage.together / 1e6:8,.0f} MB",
            flush=True,
        )


def stored(results: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of results, the newest of each size and way."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    newest = {}
    for row in map(json.loads, lines):
        newest[row["detections"], row["way"]] = row
    return [newest[key] for key in sorted(newest, key=lambda key: (key[0], list(WAYS).index(key[1])))]


# ---------------------------------------------------------------- what the docs show

BEGIN, END = "<!-- growth: begin -->", "<!-- growth: end -->"
PAGE, PICTURE = "beyond-one-machine.md", "beyond-one-machine-growth.svg"


def write_docs(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write the table into the page, and the picture beside it."""
    lines = [
        "| detections | how | clock | processors | each detection | first process | any other | together |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        other = f"{row['other'] / 1e9:.2f} GB" if row["other"] else ""
        lines.append(
            f"| {row['detections']:,} | {row['way']} | {row['seconds']:.1f} s | {row['processor']:.1f} s | "
            f"{row['processor'] / row['detections'] * 1e6:.2f} µs | {row['first'] / 1e9:.2f} GB | "
            f"{other} | {row['together'] / 1e9:.2f} GB |"
        )
    picture = f"![Seconds and peak memory against detections, both logarithmic]({PICTURE})"
    page = folder / PAGE
    before, rest = page.read_text(encoding="utf-8").split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    content = "\n".join([BEGIN, "", picture, "", *lines, "", END])
    page.write_text(f"{before}{content}{after}", encoding="utf-8")
    draw(rows, folder / PICTURE)


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw seconds and memory against detections."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "boxscore"
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axes, column, scale, title in (
        (both[0], "seconds", 1, "seconds, from files to numbers"),
        (both[1], "together", 1e9, "peak memory of all processes, GB"),
    ):
        for color, way in zip(COLORS, WAYS, strict=True):
            own = [row for row in rows if row["way"] == way]
            if own:
                counts = [row["detections"] for row in own]
                axes.loglog(counts, [row[column] / scale for row in own], marker="o", color=color, label=way)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("detections")
        axes.grid(which="major", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    both[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure each size, or write the docs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("detections", type=int, nargs="*")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--memory", type=float, default=20e9, help="bytes that a way may need")
    parser.add_argument("--folder", type=Path, help="where the data is kept (default: temporary)")
    parser.add_argument("--results", type=Path, default=Path("beyond.jsonl"), help="a line for each run")
    parser.add_argument("--docs", type=Path, help="write the table and the picture to this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for detections in arguments.detections:
            folder = arguments.folder or Path(temporary)
            measure(detections, folder, arguments.ways, arguments.results, int(arguments.memory))
    if arguments.docs:
        write_docs(stored(arguments.results), arguments.docs)


if __name__ == "__main__":
    main()
