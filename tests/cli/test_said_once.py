"""What is true of two results, or found twice while a file is read, is said once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.running import Run
from support.samples import DT, SHAPES

YOLO = SHAPES.parent / "layouts" / "yolo"
PERCENT = "warning: 258 scores outside [0, 1] (0.04 to 98); AP depends"


def written(path: Path, **changes: Any) -> Path:
    rows = json.loads((SHAPES / "detections.json").read_text())
    path.write_text(json.dumps([{**row, "score": 100 * row["score"], **changes} for row in rows]))
    return path


def test_compare_says_a_finding_of_both_once(tmp_path: Path, run: Run) -> None:
    files = [str(written(tmp_path / name)) for name in ("a.json", "b.json")]
    rest = ["--resamples", "20"]
    assert run("compare", SHAPES / "instances.json", *files, *rest).err.splitlines() == [
        f"boxscore: a, b: {PERCENT} only",
        "  on their order. Are they percentages?",
    ]
    plain = [files[0], DT]
    assert run("compare", SHAPES / "instances.json", *plain, *rest).err.splitlines() == [
        f"boxscore: a: {PERCENT} only on",
        "  their order. Are they percentages?",
    ]


def test_a_note_is_in_the_result_once(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "runs" / "val"
    folder.mkdir(parents=True)
    (folder / "predictions.json").write_bytes((YOLO / "runs" / "val" / "predictions.json").read_bytes())
    truth, given = str(YOLO / "data.yaml"), str(tmp_path / "runs")
    output, errors = run(
        "evaluate", "--gt", truth, "--dt", given, "--image-sizes", "640x640", "--output", "json"
    )
    note = f"{given}: reading {folder / 'predictions.json'}, the only detections in this folder."
    assert json.loads(output)["warnings"].count(note) == 1
    assert errors.count(note) == 1
