"""Parquet larger than memory: time, peak memory of every process, and growth, on made-up detections.

    python benchmarks/beyond_memory.py 1000000 10000000 --workers 2
    python benchmarks/beyond_memory.py 100000000 --folder /data --keep

Ten detections and four objects an image, 80 classes, one with 60 % of all. The data set is written to a
folder in part files of 2.5 million rows, image by image, float32. Then ``boxscore evaluate`` runs in its own
process; the resident memory of it and of its workers is read every 50 ms. Up to ``--whole`` detections the
same files are evaluated at once, for comparison, and the numbers must be equal in every digit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

AT_ONCE = (
    "-c",
    "import sys, boxscore.cli.larger as larger; larger.MANY = 1 << 62; "
    "from boxscore.cli import main; sys.exit(main(sys.argv[1:]))",
)
"""The command line, that never evaluates in partitions unless asked."""

PER_IMAGE, OBJECTS, CLASSES, LARGEST = 10, 4, 80, 0.6
IMAGES_PER_FILE = 250_000
ROW_GROUP = 500_000


def labels(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw classes; the first has 60 %."""
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


def resident(process: int) -> dict[int, int]:
    """Return the resident bytes of a process and of its children, by process."""
    found, waiting = {}, [process]
    while waiting:
        one = waiting.pop()
        try:
            fields = Path(f"/proc/{one}/statm").read_text().split()
            found[one] = int(fields[1]) * 4096
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue
    return found


def run(arguments: Sequence[str], program: Sequence[str] = ("-m", "boxscore")) -> tuple[str, float, int, int]:
    """Run a command; return its output, seconds, the peak of the first process and that of any other."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "boxscore", *arguments], stdout=subprocess.PIPE, text=True
    )
    own = others = 0
    while process.poll() is None:
        memory = resident(process.pid)
        own = max(own, memory.pop(process.pid, 0))
        others = max([others, *memory.values()])
        time.sleep(0.05)
    output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"boxscore {' '.join(arguments)} ended with {process.returncode}")
    return output, time.perf_counter() - start, own, others


def measure(detections: int, folder: Path, workers: int, whole: int, *, cluster: bool) -> None:
    """Print one line of the table."""
    where = folder / f"{detections}"
    if not where.exists():
        make(where, detections)
    size = sum(file.stat().st_size for file in (where / "found").iterdir())
    paths = ["evaluate", "--gt", str(where / "truth"), "--dt", str(where / "found"), "--output", "json"]
    how = ["--scheduler", "local"] if cluster else ["--memory-limit", "20GB"]
    text, seconds, own, others = run([*paths, "--workers", str(workers), *how])
    line = (
        f"{detections:>12,}  {size / detections:5.1f} B  {seconds:8.1f} s  "
        f"{seconds / detections * 1e6:5.2f} us  {own / 1e6:8,.0f} MB  {others / 1e6:8,.0f} MB"
    )
    if detections <= whole:
        other, alone, peak, _ = run([*paths, "--no-digest"], program=AT_ONCE)
        same = json.loads(text) == json.loads(other)
        line += f"  {alone:8.1f} s  {peak / 1e6:8,.0f} MB  {'equal' if same else 'DIFFERENT'}"
    print(line, flush=True)


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("detections", type=int, nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--whole", type=int, default=10_000_000, help="evaluate at once up to this many, too")
    parser.add_argument("--cluster", action="store_true", help="on a Dask cluster of this machine")
    parser.add_argument("--folder", type=Path, help="where the data is kept (default: temporary)")
    arguments = parser.parse_args()
    print("  detections     file   in parts          each  first process  any worker   at once")
    with tempfile.TemporaryDirectory() as temporary:
        for detections in arguments.detections:
            folder = arguments.folder or Path(temporary)
            measure(detections, folder, arguments.workers, arguments.whole, cluster=arguments.cluster)


if __name__ == "__main__":
    main()
