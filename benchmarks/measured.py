"""Rows of the table of the page of benchmarks from what the scripts of this folder stored.

Conventions
-----------
- A row is that of ``figures.toml`` with its key: ``ours`` and ``theirs`` in seconds, the middle of all
  rounds; ``ratio`` to the fastest peer; ``memory`` in MB of all processes, ours and the lightest peer's.
- Numbers have three digits, as the machine that they are of has at best.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]

STAGES = ("read_ground_truth", "read_detections", "evaluate", "accumulate")

CASES: Mapping[str, Sequence[tuple[str, str, tuple[str, ...]] | tuple[str, str, tuple[str, ...], str]]] = {
    "coco_500k": [
        ("boxes-500k", "boxscore command", ("whole",)),
        ("boxes-500k-api", "boxscore paths", ("whole",)),
        ("boxes-500k-read", "boxscore paths", STAGES),
        ("vernier-500k", "boxscore paths", STAGES, "vernier"),
    ],
    "objects365_2m": [
        ("boxes-2m", "boxscore command", ("whole",)),
        ("boxes-2m-api", "boxscore paths", ("whole",)),
        ("boxes-2m-read", "boxscore paths", STAGES),
    ],
    "masks": [
        ("masks", "boxscore command", ("whole",)),
        ("masks-api", "boxscore paths", ("whole",)),
    ],
    "real_yolov2_608": [
        ("yolov2", "boxscore command", ("whole",)),
        ("yolov2-api", "boxscore paths", ("whole",)),
    ],
    "keypoints": [
        ("keypoints", "boxscore paths", STAGES),
        ("keypoints-command", "boxscore command", ("whole",)),
    ],
    "coco_36k": [
        ("boxes-36k", "boxscore command", ("whole",)),
        ("boxes-36k-api", "boxscore paths", ("whole",)),
        ("pycocotools-36k", "boxscore paths", STAGES, "pycocotools"),
        ("faster-36k", "boxscore paths", STAGES, "faster-coco-eval"),
    ],
    "real_yolact_base": [
        ("small", "boxscore command", ("whole",)),
        ("small-api", "boxscore paths", ("whole",)),
    ],
    "real_voc2007": [("voc-json", "boxscore command", ("whole",))],
    "real_widerface": [("wider-face", "boxscore command", ("whole",))],
}
"""By case of ``compare.py`` the rows: key, contender, what is added up, and the peer if only one counts."""


def rows_of(folder: Path) -> list[Row]:
    """Return the rows that the files of a folder of results have."""
    rows = [row for case in CASES for row in _of_case(folder / f"{case}.json", case)]
    for path in sorted(folder.glob("rows_*.json")):
        rows += json.loads(path.read_text(encoding="utf-8"))
    return rows


def row(key: str, ours: float, peers: Mapping[str, float], **more: Any) -> Row:
    """Make a row; ``peers`` are the seconds of each."""
    made = {"key": key, "ours": _digits(ours), **more}
    if peers:
        peer = min(peers, key=lambda name: peers[name])
        made |= {"peer": peer, "theirs": _digits(peers[peer]), "ratio": _digits(ours / peers[peer])}
    return made


def store(path: Path, rows: Sequence[Row]) -> None:
    """Write rows for :func:`rows_of`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _of_case(path: Path, case: str) -> Iterator[Row]:
    if not path.exists():
        return
    contenders = json.loads(path.read_text(encoding="utf-8"))["contenders"]
    timed = {one["name"]: one for one in contenders if one["rounds"]}
    for key, ours, stages, *only in CASES[case]:
        names = [name for name in only or timed if name in timed and not name.startswith("boxscore")]
        if ours not in timed or not _fair(timed[ours], stages) or (only and not names):
            continue
        peers = [timed[name] for name in names]
        seconds = {one["name"]: _middle(one, stages) for one in peers if _fair(one, stages)}
        lightest = min((one["memory"] for one in peers), default=0)
        megabytes = [round(value / 1e6) for value in (timed[ours]["memory"], lightest)]
        yield row(key, _middle(timed[ours], stages), seconds, memory=megabytes)


def _fair(contender: Row, stages: tuple[str, ...]) -> bool:
    return all(set(stages) <= times.keys() for times in contender["rounds"])


def _middle(contender: Row, stages: tuple[str, ...]) -> float:
    return statistics.median(sum(times[stage] for stage in stages) for times in contender["rounds"])


def _digits(value: float) -> float:
    return float(f"{value:.3g}")
