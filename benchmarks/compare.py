"""Speed and memory of boxscore and its peers, side by side.

Goal
----
One command that makes the data, checks that all contenders give the same bits, times them fairly and prints
tables: ``python benchmarks/compare.py``.

Conventions
-----------
- Fair: fresh processes, contenders interleaved and their order turned every round, the same processors and
  thread limits for all, files in the page cache for all (the checking round has read them).
- A contender whose checking round took longer than ``--slow`` seconds gets two timed rounds, not all.
- Peers live in an environment of their own (``benchmarks/.venv`` or ``--python``), never in the project's.
- Tables go to stdout, progress to stderr. Exit status 1 when boxscore's answer differs or it failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import report
from cases import BENCHMARKS, CASES, CONVERTED, PROJECT, Case, Files, real_files, real_folder
from contenders import CONTENDERS
from measure import Run, Setting, pin, run
from verify import REFERENCES, differences

SLOW_ROUNDS = 2


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time boxscore and its peers side by side.")
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help=f"one of {', '.join(CASES)}; none: the small set and the real data",
    )
    parser.add_argument("--large", action="store_true", help="the large set instead of the small one")
    parser.add_argument("--contenders", metavar="A,B", help=f"some of {', '.join(CONTENDERS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--slow", type=float, default=4.0, metavar="SECONDS", help="two rounds above this")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("--python", help="interpreter with the peers; default: make benchmarks/.venv")
    parser.add_argument(
        "--source", type=Path, default=PROJECT / "src", help="folder of the boxscore to measure"
    )
    parser.add_argument("--data", type=Path, default=BENCHMARKS / "data", metavar="DIR")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results", metavar="DIR")
    parser.add_argument(
        "--plot",
        action="store_true",
        help="the time against the detections, as a picture in the results folder",
    )
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"CASE must be one of {', '.join(CASES)}. Got {', '.join(sorted(unknown))}")
    chosen = arguments.contenders.split(",") if arguments.contenders else list(CONTENDERS)
    unknown = set(chosen) - set(CONTENDERS)
    if unknown:
        parser.error(f"A contender must be one of {', '.join(CONTENDERS)}. Got {', '.join(sorted(unknown))}")
    arguments.contenders = [name for name in CONTENDERS if name in chosen]
    if not arguments.cases:
        groups = ("large",) if arguments.large else ("small", "real")
        arguments.cases = [name for name, case in CASES.items() if case.group in groups]
    return arguments


def make_environment(of: str = "") -> str:
    """Make ``benchmarks/.venv`` with the peers and boxscore's dependencies; its interpreter.

    ``of`` is the ending of another list of requirements, which has an environment of its own.
    """
    folder = BENCHMARKS / f".venv{of}"
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    requirements = BENCHMARKS / f"requirements{of}.txt"
    wanted = requirements.read_text()
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making benchmarks/{folder.name} ...", file=sys.stderr)
        venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "-r", str(requirements), "-e", str(PROJECT)], check=True)
        stamp.write_text(wanted)
    return python


def find_files(case: Case, python: str, data: Path, scratch: Path) -> Files | None:
    """Return the case's two files, made if need be; None for real data that is not here."""
    if case.kind != "bbox":
        wanted = Files(*(data / f"{case.kind}_{side}.json" for side in ("ground_truth", "detections")))
        if not wanted.ground_truth.is_file():  # the one that is written last
            function = "make_keypoints" if case.kind == "keypoints" else "make_masks"
            make = f"import masks, pathlib; masks.{function}(pathlib.Path({str(data)!r}))"
            subprocess.run([python, "-c", make], check=True, cwd=BENCHMARKS)
        return wanted
    if case.name in CONVERTED:
        folder = scratch / case.name
        folder.mkdir(exist_ok=True)
        environment = os.environ | {"PYTHONPATH": str(PROJECT / "src")}
        make = [python, str(BENCHMARKS / "real_data.py"), case.name, str(real_folder()), str(folder)]
        if subprocess.run(make, env=environment, check=False).returncode:
            return None
        return Files(folder / "ground_truth.json", folder / "detections.json")
    if case.spec is None:
        return real_files(case, scratch)
    subprocess.run([python, str(BENCHMARKS / "make_data.py"), case.name, "--output", str(data)], check=True)
    return Files(data / f"{case.name}_ground_truth.json", data / f"{case.name}_detections.json")


def check(
    setting: Setting, case: Case, files: Files, names: list[str]
) -> tuple[str, dict[str, Run], dict[str, list[str]]]:
    """Run everyone once, untimed, and compare the answers.

    Returns
    -------
    reference : str
        Empty when nobody ran.
    runs : dict of Run
    unequal : dict of list of str
        What differs, by contender.
    """
    with tempfile.TemporaryDirectory(prefix="boxscore-bench-") as folder:
        arrays = Path(folder)
        runs = {}
        for name in names:
            print(f"  checking {name}", file=sys.stderr)
            runs[name] = run(
                setting, name, files, case.caps, kind=case.kind, arrays=arrays / name, watch=True
            )
        good = [name for name in REFERENCES if name in runs and not runs[name].error]
        if not good:
            return "", runs, {name: [] for name in names}
        reference = runs[good[0]]
        unequal = {
            name: [] if result.error else differences(case, reference, result, arrays)
            for name, result in runs.items()
        }
    return good[0], runs, unequal


def measure(
    setting: Setting, case: Case, files: Files, checked: dict[str, Run], rounds: int, slow: float
) -> dict[str, list[Run]]:
    """Run the timed rounds, interleaved; each round starts with another contender."""
    names = [name for name, result in checked.items() if not result.error]
    timed: dict[str, list[Run]] = {name: [] for name in checked}
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            if number >= SLOW_ROUNDS and checked[name].whole > slow:
                continue
            result = run(setting, name, files, case.caps, kind=case.kind)
            if result.error:
                checked[name].error = f"round {number + 1}: {result.error}"
            else:
                timed[name].append(result)
    return timed


def compare(case: Case, arguments: argparse.Namespace, setting: Setting, versions: dict[str, str]) -> Any:
    """Check and measure one case; a result for ``report``, or None when its data is not here."""
    with tempfile.TemporaryDirectory(prefix="boxscore-bench-") as scratch:
        files = find_files(case, setting.python, arguments.data, Path(scratch))
        if files is None:
            print(
                f"{case.name}: no real data at ../shared/data or $BOXSCORE_REAL_DATA, skipped",
                file=sys.stderr,
            )
            return None
        print(case.name, file=sys.stderr)
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        if load > 0.5:
            print(f"  the machine is busy (load {load:.2f}): times will scatter", file=sys.stderr)
        names = [name for name in arguments.contenders if name not in case.left_out]
        reference, checked, unequal = check(setting, case, files, names)
        for name, sentences in unequal.items():
            for sentence in sentences:
                print(f"  DIFFERENT: {name}: {sentence}", file=sys.stderr)
        timed = measure(setting, case, files, checked, arguments.rounds, arguments.slow) if reference else {}
        load_after = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        sizes = files.ground_truth.stat().st_size, files.detections.stat().st_size
    rows = [
        {
            "name": name,
            "rounds": [result.seconds | {"whole": result.whole} for result in timed.get(name, [])],
            "memory": max(
                size for one in [result, *timed.get(name, [])] for size in (one.peak, one.tree_peak)
            ),
            "largest_process": max(one.peak for one in [result, *timed.get(name, [])]),
            "numbers": result.numbers,
            "arrays": sorted(result.arrays),
            "differences": unequal[name],
            "error": result.error,
        }
        for name, result in checked.items()
    ]
    rows += [
        {"name": name, "rounds": [], "memory": 0, "differences": [], "error": case.left_out[name]}
        for name in arguments.contenders
        if name in case.left_out
    ]
    return {
        "case": case.name,
        "title": case.title,
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "threads": arguments.threads,
        "load": load,
        "load_after": load_after,
        "versions": versions,
        "reference": reference,
        "ground_truth_bytes": sizes[0],
        "detections_bytes": sizes[1],
        "contenders": rows,
    }


def machine() -> str:
    """Processor, processors, memory and system in one line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model}, {os.cpu_count()} processors, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def find_versions(python: str, source: Path) -> dict[str, str]:
    """Versions of the packages, and boxscore's commit."""
    packages = ["numpy", *sorted({kind.package for kind in CONTENDERS.values()} - {"boxscore"})]
    code = (
        "import importlib.metadata as m, json, platform, sys\n"
        "print(json.dumps({n: m.version(n) for n in sys.argv[1:]} | {'python': platform.python_version()}))"
    )
    answer = subprocess.run([python, "-c", code, *packages], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(answer.stdout)
    git = ["git", "-C", str(source), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False)
    versions["boxscore"] = commit.stdout.strip() or "unknown"
    return versions


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw files-to-numbers time against detections, both logarithmic, as SVG."""
    try:
        import matplotlib.figure
    except ImportError:
        print("no plot: it needs matplotlib, pip install matplotlib", file=sys.stderr)
        return
    matplotlib.rcParams["svg.hashsalt"] = "boxscore"
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for contender, points in report.linear_points(results).items():
        style = {"linewidth": 1.2, "linestyle": "--"} if CONTENDERS[contender].peer else {"linewidth": 2.2}
        axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, label=contender, **style)
    axes.set(xlabel="detections", ylabel="files to numbers, seconds")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    arguments = parse_arguments()
    for name in ("source", "data", "results"):
        setattr(arguments, name, getattr(arguments, name).resolve())
    python = arguments.python or make_environment()
    versions = find_versions(python, arguments.source)
    pin(arguments.threads)
    setting = Setting(python, arguments.source, arguments.threads, arguments.timeout)
    sound = True
    for name in arguments.cases:
        result = compare(CASES[name], arguments, setting, versions)
        if result is None:
            continue
        report.save_result(arguments.results, result)
        print(report.section(result), flush=True)
        ours = [row for row in result["contenders"] if not CONTENDERS[row["name"]].peer]
        sound &= not any(row["differences"] or row["error"] for row in ours)
    results = report.load_results(arguments.results)
    if results:
        print(report.linearity(results))
        if arguments.plot:
            plot(results, arguments.results / report.PICTURE)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
