"""Tables of what was measured: Markdown for people, JSON for later.

Goal
----
One section a case: times of each stage, ratios to the best peer, peak memory, and whether the answer is the
reference's to the last bit. Losses are printed like wins.

Conventions
-----------
- A time is ``median / minimum`` of its rounds, in seconds. Ratios are of medians: above 1 is slower (or
  larger) than the best peer.
- "Files to numbers" is reading, evaluating and accumulating, without imports.
- Memory is in MB (10**6 bytes), the larger of the largest process's peak and the sampled peak of its tree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from cases import CASES
from contenders import CONTENDERS

__all__ = [
    "PICTURE",
    "linear_points",
    "linearity",
    "load_results",
    "save_result",
    "section",
]

PICTURE = "benchmarks-linearity.svg"

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], Sequence[float]]]


def _stage(*names: str) -> Callable[[Row], Sequence[float]]:
    """Return a reader of the sum of some stages, round by round; empty for contenders without stages."""
    return lambda row: [
        sum(times[name] for name in names) for times in row["rounds"] if set(names) <= times.keys()
    ]


READ_GROUND_TRUTH: Column = ("read ground truth", _stage("read_ground_truth"))
READ_DETECTIONS: Column = ("read detections", _stage("read_detections"))
READ: Column = ("read both", _stage("read_ground_truth", "read_detections"))
BOTH: Column = ("evaluate + accumulate", _stage("evaluate", "accumulate"))
FILES: Column = (
    "files to numbers",
    _stage("read_ground_truth", "read_detections", "evaluate", "accumulate"),
)
WHOLE: Column = ("whole process", _stage("whole"))
IMPORT: Column = ("import", _stage("import_package"))
TIMES: tuple[Column, ...] = (
    IMPORT,
    READ_GROUND_TRUTH,
    READ_DETECTIONS,
    READ,
    ("evaluate", _stage("evaluate")),
    ("accumulate + summarize", _stage("accumulate")),
    BOTH,
    FILES,
    WHOLE,
)
RATIOS: tuple[Column, ...] = (IMPORT, READ_GROUND_TRUTH, READ_DETECTIONS, READ, BOTH, FILES, WHOLE)
LINEAR = ("coco_36k", "coco_200k", "coco_500k", "objects365_2m")


def section(result: Row) -> str:
    """Write one case as Markdown.

    Parameters
    ----------
    result : dict
        As ``compare.py`` builds and :func:`save_result` stores it.
    """
    rows: list[Row] = result["contenders"]
    ran = [row for row in rows if row["rounds"]]
    lines = [f"### {result['title']}", ""]
    lines += [
        f"`{result['case']}`: {result['detections_bytes'] / 1e6:.0f} MB of results, "
        f"{result['ground_truth_bytes'] / 1e6:.0f} MB of ground truth; {result['date']}, "
        f"boxscore {result['versions'].get('boxscore', 'absent')}, "
        f"load {result['load']:.2f} before the run, {result['load_after']:.2f} after it.",
        "",
    ]
    lines += _table(
        ["seconds, median / minimum", *(name for name, _ in TIMES), "MB", "rounds", "bits"],
        [
            [
                row["name"],
                *("" if column in unfair(row) else _time(column[1](row)) for column in TIMES),
                f"{row['memory'] / 1e6:,.0f}",
                str(len(row["rounds"])),
                "reference" if row["name"] == result["reference"] else _bits(row),
            ]
            for row in ran
        ],
    )
    lines += ["", *_ratios(ran), ""]
    notes = [f"- {row['name']}: {difference}." for row in ran for difference in row["differences"]]
    notes += [f"- {row['name']} did not run: {row['error']}." for row in rows if row["error"]]
    return "\n".join([*lines, *notes, ""] if notes else lines)


def _bits(row: Row) -> str:
    if row["differences"]:
        return "**differ**"
    return "equal" if row["arrays"] else "equal (12 numbers)"


def _time(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.3f} / {min(seconds):.3f}" if seconds else ""


def _ratios(rows: list[Row]) -> list[str]:
    """Table of ratios to the best peer; nothing without peers."""
    peers = [row for row in rows if CONTENDERS[row["name"]].peer]
    if not peers:
        return []
    best = []
    for column in RATIOS:
        rivals = [row for row in peers if column not in unfair(row)]
        best.append(min((median(column[1](row)) for row in rivals), default=None))
    lightest = min(row["memory"] for row in peers)
    return _table(
        ["times the best peer", *(name for name, _ in RATIOS), "MB"],
        [
            [
                row["name"],
                *(
                    "" if column in unfair(row) else _ratio(column[1](row), least)
                    for column, least in zip(RATIOS, best, strict=True)
                ),
                f"{row['memory'] / lightest:.2f}",
            ]
            for row in rows
        ],
    )


def unfair(row: Row) -> tuple[Column, ...]:
    """Columns in which a contender cannot be compared, because it does that work in another stage."""
    contender = CONTENDERS[row["name"]]
    if contender.reads_together:
        return (READ_GROUND_TRUTH, READ_DETECTIONS, READ, BOTH)
    return (READ_DETECTIONS, READ, BOTH) if contender.parses_late else ()


def _ratio(seconds: Sequence[float], best: float | None) -> str:
    return f"{median(seconds) / best:.2f}" if seconds and best else ""


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: list[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [line(head), f"| {' | '.join(rule)} |", *map(line, rows)]


def linear_points(results: dict[str, Row]) -> dict[str, list[tuple[int, float]]]:
    """Collect each contender's (detections, median seconds) over the growing sizes that were measured."""
    points: dict[str, list[tuple[int, float]]] = {name: [] for name in CONTENDERS}
    for name in LINEAR:
        spec = CASES[name].spec
        if name not in results or spec is None:
            continue
        for row in results[name]["contenders"]:
            seconds = FILES[1](row) or WHOLE[1](row)
            if seconds:
                points[row["name"]].append((spec.detections, median(seconds)))
    return {name: measured for name, measured in points.items() if measured}


def linearity(results: dict[str, Row]) -> str:
    """Write the cost per detection as the data grows; empty with fewer than two sizes."""
    points = linear_points(results)
    counts = sorted({count for measured in points.values() for count, _ in measured})
    if len(counts) < 2:
        return ""
    rows = []
    for contender, measured in points.items():
        cells = {count: f"{seconds:.3f} s, {seconds / count * 1e6:.2f} µs" for count, seconds in measured}
        rows.append([contender, *(cells.get(count, "") for count in counts)])
    table = _table(["files to numbers, and per detection", *(f"{count:,}" for count in counts)], rows)
    note = (
        "The command line's time is its whole process. Objects365's 2,000,000 detections come with 1,200,000 "
        "ground truths."
    )
    picture = f"![Seconds from files to numbers against detections, both logarithmic]({PICTURE})"
    return "\n".join(["### Does the cost grow linearly?", "", picture, "", *table, "", note, ""])


def save_result(folder: Path, result: Row) -> Path:
    """Store a case's result; the newest of a case replaces the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['case']}.json"
    path.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return path


def load_results(folder: Path) -> dict[str, Row]:
    """Return the stored results by case."""
    paths = (folder / f"{name}.json" for name in CASES)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()}
