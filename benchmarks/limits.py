"""Time and peak memory of every command at 10^5 to 10^7 detections: the table in docs/contributing/speed.md.

    python benchmarks/limits.py                          # 100,000 and 1,000,000 detections, half an hour
    python benchmarks/limits.py evaluate nms fuse --rows 10000000
    python benchmarks/limits.py --write-docs             # all stored results to the page, nothing is run

Each command runs in a process of its own with one worker, under a limit of address space and of time. Time is
that of the processor (user and system), so that a busy machine changes it little. The made-up files are
written once, from a seed: 100 detections an image, of 80 classes, on 7 objects an image.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

PAGE = Path(__file__).resolve().parent.parent / "docs" / "contributing" / "speed.md"
SOURCE = Path(__file__).resolve().parent.parent / "src"
START, END = "<!-- limits: made by benchmarks/limits.py -->", "<!-- /limits -->"

AN_IMAGE, OBJECTS, CLASSES = 100, 7, 80
INPUTS = "--gt {gt} --dt {dt}"
ALONE = f"{INPUTS} --workers 1"
COMMANDS = {
    "evaluate": f"evaluate {ALONE} --no-digest",
    "evaluate, digest": f"evaluate {ALONE}",
    "evaluate, VOC 2012": f"evaluate {ALONE} --no-digest --protocol voc2012",
    "evaluate, columns": "evaluate --gt {gt_columns} --dt {dt_columns} --workers 1 --no-digest",
    "validate": f"validate {INPUTS}",
    "convert": "convert --gt {gt} --dt {dt} --output {out}.npz",
    "nms": "nms --dt {dt} --output {out}.json --iou-threshold 0.5 --workers 1",
    "nms, soft": "nms --dt {dt} --output {out}.json --method soft-gaussian --workers 1",
    "nms, nmm": "nms --dt {dt} --output {out}.json --method nmm --iou-threshold 0.5 --workers 1",
    "fuse": "fuse {dt} {dt} --output {out}.json --workers 1",
    "sweep": f"sweep {ALONE} --iou-threshold .4,.5,.6",
    "check": f"check {ALONE} --min AP=0",
    "compare": "compare --gt {gt} --dt {dt} {dt} --workers 1 --resamples 100",
    "bootstrap": f"bootstrap {ALONE}",
    "report": f"report {ALONE} --report {{out}} --resamples 0",
    "draw": f"draw {ALONE} --to {{out}} --worst 1",
    "explain": f"explain {ALONE} --from voc2012 --to coco",
    "errors": f"errors {ALONE}",
    "confusion": f"confusion {ALONE} --top 20",
    "operating-points": f"operating-points {ALONE}",
    "calibration": f"calibration {ALONE}",
    "lrp": f"lrp {ALONE}",
    "slices": f"slices {ALONE} --by size",
    "ties": f"ties {ALONE}",
    "suspects": f"suspects {ALONE}",
}


def write_rows(path: Path, head: str, form: str, columns: Iterable[np.ndarray], tail: str) -> None:
    """Write one record per row of the columns, a million at a time."""
    columns = [np.asarray(column) for column in columns]
    partial = path.with_suffix(".part")
    with partial.open("w") as file:
        file.write(head)
        for low in range(0, len(columns[0]), 1_000_000):
            rows = zip(*(column[low : low + 1_000_000].tolist() for column in columns), strict=True)
            file.write("," if low else "")
            file.write(",".join([form % row for row in rows]))
        file.write(tail)
    partial.rename(path)


def make_data(folder: Path, rows: int) -> dict[str, str]:
    """Write ground truth and results once; return their paths by name."""
    names = {"gt": f"{rows}_gt.json", "dt": f"{rows}_dt.json"}
    names |= {f"{name}_columns": file.replace(".json", ".npz") for name, file in names.items()}
    paths = {name: str(folder / file) for name, file in names.items()}
    if all(Path(path).exists() for path in paths.values()):
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(rows)
    images = rows // AN_IMAGE
    objects = images * OBJECTS
    image = np.repeat(np.arange(1, images + 1), OBJECTS)
    corner, size = rng.uniform(0, 400, (objects, 2)).round(2), rng.uniform(8, 200, (objects, 2)).round(2)
    label = rng.integers(1, CLASSES + 1, objects)
    listed = ",".join(f'{{"id":{i},"width":640,"height":640}}' for i in range(1, images + 1))
    named = ",".join(f'{{"id":{k},"name":"class {k}"}}' for k in range(1, CLASSES + 1))
    write_rows(
        Path(paths["gt"]),
        f'{{"images":[{listed}],"categories":[{named}],"annotations":[',
        '{"id":%d,"image_id":%d,"category_id":%d,"bbox":[%.2f,%.2f,%.2f,%.2f],"area":%.2f,"iscrowd":0}',
        (np.arange(1, objects + 1), image, label, *corner.T, *size.T, (size[:, 0] * size[:, 1])),
        "]}",
    )
    # Every other detection lies near an object, a quarter of those with another class; the rest anywhere.
    of = np.repeat(np.arange(images) * OBJECTS, AN_IMAGE) + rng.integers(0, OBJECTS, rows)
    near = rng.random(rows) < 0.5
    corner = np.where(near[:, None], corner[of] + rng.normal(0, 6, (rows, 2)), rng.uniform(0, 400, (rows, 2)))
    size = np.where(
        near[:, None], size[of] * rng.uniform(0.8, 1.25, (rows, 2)), rng.uniform(8, 200, (rows, 2))
    )
    other = ~near | (rng.random(rows) < 0.25)
    label = np.where(other, rng.integers(1, CLASSES + 1, rows), label[of])
    score = np.where(other, rng.beta(1, 5, rows), rng.beta(3, 2, rows))
    write_rows(
        Path(paths["dt"]),
        "[",
        '{"image_id":%d,"category_id":%d,"bbox":[%.2f,%.2f,%.2f,%.2f],"score":%.6f}',
        (np.repeat(np.arange(1, images + 1), AN_IMAGE), label, *corner.T, *size.T, score),
        "]",
    )
    for name, arguments in (
        ("gt", ["--gt", paths["gt"]]),
        ("dt", ["--gt", paths["gt"], "--dt", paths["dt"]]),
    ):
        command = [sys.executable, "-m", "boxscore", "convert", *arguments]
        subprocess.run([*command, "--output", paths[f"{name}_columns"]], env=environment(), check=True)
    return paths


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}


def run(command: str, paths: dict[str, str], memory: int, seconds: float) -> dict[str, object]:
    """Run a command; return processor time, peak memory, and what went wrong."""
    with tempfile.TemporaryDirectory(prefix="boxscore-limits-") as folder:
        arguments = command.format(**paths, out=str(Path(folder) / "out")).split()
        start = time.monotonic()
        with (Path(folder) / "errors").open("wb") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "boxscore", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment(),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
            )
            stopped = False
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    break
                if not stopped and time.monotonic() - start > seconds:
                    child.kill()
                    stopped = True
                time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        said = (Path(folder) / "errors").read_text(errors="replace").strip().splitlines()
    failed = "" if child.returncode in (0, 1) and not any("Traceback" in line for line in said) else said[-1:]
    return {
        "seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1024,
        "failed": f"more than {seconds:.0f} s" if stopped else " ".join(failed),
    }


def table(results: dict[str, dict[str, dict[str, object]]]) -> str:
    """Lay out the stored results: a row per command, a column per number of detections."""
    sizes = sorted({int(rows) for some in results.values() for rows in some})
    lines = [
        "| command | " + " | ".join(f"{rows:,}" for rows in sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for name in COMMANDS:
        cells = []
        for rows in sizes:
            got = results.get(name, {}).get(str(rows))
            if got is None:
                cells.append("")
            elif got["failed"]:
                cells.append(str(got["failed"]))
            else:
                seconds, megabytes = float(str(got["seconds"])), float(str(got["megabytes"]))
                size = f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes:.0f} MB"
                cells.append(f"{seconds:.1f} s, {size}")
        lines.append(
            f"| `{name.split(',')[0]}`{name.partition(',')[1]}{name.partition(',')[2]} | "
            + " | ".join(cells)
            + " |"
        )
    return "\n".join(lines)


def write_page(results: dict[str, dict[str, dict[str, object]]], setting: str) -> None:
    """Put the table between the marks of the page."""
    text = PAGE.read_text()
    before, rest = text.split(START)
    PAGE.write_text(f"{before}{START}\n\n{setting}\n\n{table(results)}\n\n{END}{rest.split(END)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commands", nargs="*", help=f"of {', '.join(COMMANDS)} (default: all)")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "boxscore-limits")
    parser.add_argument("--memory", type=float, default=12, help="GB of address space (default: 12)")
    parser.add_argument("--seconds", type=float, default=600, help="before a run is stopped (default: 600)")
    parser.add_argument("--write-docs", action="store_true", help="write stored results to the page")
    arguments = parser.parse_args()
    stored = arguments.data / "results.json"
    known = json.loads(stored.read_text()) if stored.exists() else {"results": {}, "load": []}
    results, load = known["results"], known["load"]
    if arguments.write_docs:
        setting = (
            f"Python {platform.python_version()}, NumPy {np.__version__}; processor time and the largest "
            f"resident size, one worker, on a machine with {os.cpu_count()} processors and a load of "
            f"{min(load):.0f} to {max(load):.0f}. "
            f"{AN_IMAGE} detections an image, {CLASSES} classes, {OBJECTS} objects an image."
        )
        write_page(results, setting)
        return
    for rows in arguments.rows:
        paths = make_data(arguments.data, rows)
        for name in arguments.commands or COMMANDS:
            got = run(COMMANDS[name], paths, int(arguments.memory * 2**30), arguments.seconds)
            load.append(os.getloadavg()[0])
            results.setdefault(name, {})[str(rows)] = got
            print(
                f"{rows:>10,} {name:<20} {got['seconds']:8.1f} s {got['megabytes']:8.0f} MB  {got['failed']}",
                flush=True,
            )
            stored.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    main()
