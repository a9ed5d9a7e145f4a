"""Write, forbid and kill around boxscore: files that grow, writers at one output, folders nobody may write to.

    python qa/attack/races.py [--count 30] [--seed 0]

*growing*: another thread appends to, cuts, replaces or removes the input while it is read; an error, or the
number of one of its states. *writers*: processes write one output at once; it must be whole, and one of
theirs. *read-only*: folders of the output, of temporary files, of the home, or all, may not be written to;
done, or exit status 2 with one line and nothing left. *cluster*: rows in any order, file and partition, one
worker going or not: the bits of one process, or an error. Ten times as many growing files as the others:
these cost a process or more each.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from boxscore import save_as  # noqa: E402
from boxscore.cli import main as boxscore  # noqa: E402

__all__ = ["RACES", "growing", "read_only", "writers"]

SAMPLE = ROOT / "datasets" / "shapes_coco"
TRUTH, FOUND = str(SAMPLE / "instances.json"), str(SAMPLE / "detections.json")
Draw = random.Random
RECORDS = json.loads(Path(FOUND).read_text())
HEAD = "image_id,category_id,x,y,w,h,score\n"


def _lines(records: list[dict[str, object]], kind: str) -> str:
    if kind == "csv":
        rows = [
            ",".join(map(str, (r["image_id"], r["category_id"], *r["bbox"], r["score"])))  # type: ignore[misc]
            for r in records
        ]
        return HEAD + "".join(f"{row}\n" for row in rows)
    if kind == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records)
    return json.dumps(records)


def _counted(records: int) -> int:
    """Detections that are evaluated of the first records: 100 of an image and class at most."""
    found = Counter((record["image_id"], record["category_id"]) for record in RECORDS[:records])
    return sum(min(count, 100) for count in found.values())


def _said(arguments: list[str]) -> tuple[int | str, str, str]:
    output, errors = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status: int | str = boxscore(arguments)
    except BaseException as error:
        status = f"{type(error).__name__}: {error}"
    return status, output.getvalue(), errors.getvalue()


def growing(draw: Draw, folder: Path) -> str:
    """Change a file of detections while it is evaluated."""
    kind, how = (
        draw.choice(["json", "csv", "jsonl"]),
        draw.choice(["grow", "cut", "replace", "remove", "touch"]),
    )
    states = [RECORDS[: draw.randrange(1, len(RECORDS))], RECORDS]
    texts = [_lines(state, kind) for state in states]
    path, counts = folder / f"a.{kind}", [_counted(len(state)) for state in states]
    path.write_text(texts[0] if how in ("grow", "replace") else texts[1])
    pause, ended = draw.random() * draw.choice([0.001, 0.01, 0.05]), threading.Event()

    def change() -> None:
        time.sleep(pause)
        if how == "grow" and kind != "json":
            with path.open("a") as file:
                for line in texts[1][len(texts[0]) :].splitlines(keepends=True):
                    file.write(line)
                    file.flush()
                    if ended.is_set():
                        return
        elif how in ("grow", "cut"):
            path.write_text(texts[0] if how == "cut" else texts[1])
        elif how == "replace":
            (folder / "other").write_text(texts[1])
            (folder / "other").replace(path)
        elif how == "remove":
            path.unlink()
        else:
            path.touch()

    thread = threading.Thread(target=change)
    thread.start()
    status, output, errors = _said(["evaluate", TRUTH, str(path), "--output", "json", "--no-digest"])
    ended.set()
    thread.join()
    if status == 2 and not output and "error: " in errors:
        return ""
    if status != 0:
        return f"{kind}, {how}: {status}, {errors[-300:]}"
    told = sum(one["detections"] for one in json.loads(output)["per_class"])
    low, high = (
        counts if how in ("grow", "cut") and kind != "json" else (0, -1)
    )  # whole lines are a file, too
    return "" if told in counts or low <= told <= high else f"{kind}, {how}: {told} detections of {counts}"


def _program(arguments: list[str], folder: Path, **more: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more.pop("environment", {})}  # type: ignore[dict-item]
    return subprocess.Popen(
        [sys.executable, "-m", "boxscore", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,  # type: ignore[call-overload]
    )


WRITING: dict[str, Callable[[int], list[str]]] = {
    "nms": lambda n: ["nms", "--dt", FOUND, "--output", "out/a.json", "--iou-threshold", f"0.{n}"],
    "convert": lambda n: ["convert", TRUTH, "--classes", str(n), "--output", "out/a.json"],
    "npz": lambda n: ["convert", TRUTH, "--classes", str(n), "--output", "out/a.npz", "--lossy"],
    "report": lambda n: ["evaluate", TRUTH, FOUND, "--classes", str(n), "--report", "out/report"],
    "history": lambda n: ["check", TRUTH, FOUND, "--min", f"AP=0.{n}", "--history", "out/h.jsonl"],
    "part": lambda n: ["evaluate", TRUTH, FOUND, "--save-part", "out/p.npz", "--protocol", "coco"],
}


def _content(folder: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return {name: re.sub(rb'"(time|date)[^,]*,', b"", content) for name, content in found.items()}


def writers(draw: Draw, folder: Path) -> str:
    """Run a command two to four times at once, each with other options, at one output."""
    name = draw.choice(list(WRITING))
    chosen = draw.sample(range(1, 7), draw.randint(2, 4))
    alone = []
    for number in chosen if name not in ("history", "report") else ():
        own = folder / str(number)
        (own / "out").mkdir(parents=True)
        _program(WRITING[name](number), own).communicate()
        alone.append(_content(own / "out"))
    (folder / "out").mkdir()
    running = [_program(WRITING[name](number), folder) for number in chosen]
    errors = [one.communicate(timeout=120)[1] for one in running]
    statuses = [one.returncode for one in running]
    if any("Traceback" in text for text in errors) or not set(statuses) <= {0, 1, 2}:
        return f"{name}: {statuses}, {' '.join(errors)[-400:]}"
    left = _content(folder / "out")
    if any(".part" in file for file in left):
        return f"{name}: left {sorted(left)}"
    if name == "history":
        lines = left.get("h.jsonl", b"").splitlines()
        sound = len(lines) == sum(status in (0, 1) for status in statuses)
        return "" if sound and all(map(json.loads, lines)) else f"history: {len(lines)} lines of {statuses}"
    if name == "report":
        return (
            ""
            if b"</html>" in left.get("report/report.html", b"</html>") and 0 in statuses
            else f"report: {statuses}"
        )
    return "" if left in alone else f"{name}: another content than that of any of {chosen}; {statuses}"


def _without_override() -> None:
    """Give up what lets root write anywhere."""
    library = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        library.prctl(24, capability, 0, 0, 0)


def read_only(draw: Draw, folder: Path) -> str:
    """Run a writing command where some folders may not be written to."""
    name = draw.choice(list(WRITING))
    places = {one: folder / one for one in ("out", "tmp", "home", "cache")}
    for place in places.values():
        place.mkdir()
    command = WRITING[name](draw.randint(1, 6))
    before: dict[str, bytes] = {}
    if draw.random() < 0.5:
        _program(command, folder).communicate()
        before = _content(folder / "out")
    closed = draw.sample(list(places), draw.randint(1, 4))
    files = draw.random() < 0.3
    for one in closed:
        for path in [*places[one].rglob("*"), places[one]] if files else [places[one]]:
            path.chmod(0o555 if path.is_dir() else 0o444)
    environment = {
        "TMPDIR": str(places["tmp"]),
        "HOME": str(places["home"]),
        "XDG_CACHE_HOME": str(places["cache"]),
    }
    running = _program(command, folder, environment=environment, preexec_fn=_without_override)
    _, errors = running.communicate(timeout=120)
    for place in places.values():
        for path in [place, *place.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    after, what = _content(folder / "out"), f"{name}, {closed}: exit status {running.returncode}"
    if "Traceback" in errors or running.returncode not in (0, 1, 2):
        return f"{what}, {errors[-300:]}"
    if any(".part" in file for file in after):
        return f"{what}, left {sorted(after)}"
    if running.returncode == 2 and (after != before or "error: " not in errors):
        return f"{what}, files changed, {errors[-300:]}"
    nothing = (
        running.returncode == 0
        and "out" in closed
        and after == before
        and name not in ("part", "nms", "convert", "npz", "report")
    )
    return f"{what}, but nothing written" if nothing else ""


def cluster(draw: Draw, folder: Path) -> str:
    """Evaluate rows in any order, file and partition on Dask's workers, of which one may go."""
    import dask
    import numpy as np
    from distributed import LocalCluster

    from boxscore import InputError
    from boxscore.distributed import evaluate
    from support.parted import bits, drawn_tables, whole

    truth, found = drawn_tables(draw.randrange(100_000))
    rows = np.random.default_rng(draw.randrange(100_000)).permutation(len(found))
    paths = folder / "truth.parquet", folder / "found"
    save_as(truth, paths[0], lossy=True)
    paths[1].mkdir()
    for number, some in enumerate(np.array_split(rows, draw.randint(1, 3))):
        save_as(found.take(some), paths[1] / f"{number}.parquet")
    expected = bits(whole(paths, "coco"))["metrics"]
    settings = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set({"distributed.logging.distributed": "critical"}), LocalCluster(**settings) as local:
        timer = threading.Timer(draw.random() * 0.3, local.scale, [1])
        if draw.random() < 0.5:
            timer.start()
        try:
            with local.get_client() as client:
                result = evaluate(*paths, client=client, partitions=draw.randint(1, 5))
                told = bits(result)["metrics"]
        except InputError:
            return ""
        finally:
            timer.cancel()
    return "" if told == expected else f"{told}, in one process {expected}"


RACES: dict[str, tuple[Callable[[Draw, Path], str], int]] = {
    "growing": (growing, 10),
    "writers": (writers, 1),
    "read-only": (read_only, 1),
    "cluster": (cluster, 1),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--races", nargs="+", choices=list(RACES), default=list(RACES))
    chosen = parser.parse_args()
    faults = 0
    for name in chosen.races:
        race, times = RACES[name]
        for number in range(chosen.count * times):
            folder = Path(tempfile.mkdtemp())
            try:
                fault = race(Draw(f"{name} {chosen.seed} {number}"), folder)
            finally:
                shutil.rmtree(folder)
            if fault:
                faults += 1
                print(f"{name} {number}: {fault}", flush=True)
        print(f"{name}: {chosen.count * times} tries", flush=True)
    print(f"{faults} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
