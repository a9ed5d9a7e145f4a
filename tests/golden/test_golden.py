"""The bundled samples: what they score, and what the program prints of them, letter for letter.

``python tests/golden/test_golden.py`` writes the snapshots again: look at what changed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main

ROOT = Path(__file__).parents[2]
DATASETS = Path("datasets")
SNAPSHOTS = Path(__file__).parent / "snapshots"

COCO = [
    "evaluate",
    "--gt",
    "datasets/shapes_coco/instances.json",
    "--dt",
    "datasets/shapes_coco/detections.json",
]
VOC = [
    *("evaluate", "--format", "voc", "--gt", "datasets/shapes_voc/VOC2007", "--image-set", "test"),
    *("--dt", "datasets/shapes_voc/results", "--protocol"),
]
TUTORIAL = [
    *("evaluate", "--gt", "datasets/iou_tutorial/VOC2007", "--dt", "datasets/iou_tutorial/results"),
    *("--protocol", "voc2007"),
]
COMMANDS = {
    "shapes_coco.txt": [*COCO, "--per-class", "--verify"],
    "shapes_coco.md": [*COCO, "--per-class", "--output", "markdown"],
    "shapes_coco.csv": [*COCO, "--output", "csv"],
    "shapes_coco_per_class.csv": [*COCO, "--per-class", "--output", "csv"],
    "shapes_coco.json": [*COCO, "--output", "json"],
    "shapes_coco_by_voc2012.txt": [*COCO, "--per-class", "--protocol", "voc2012"],
    "shapes_coco_chosen.txt": [*COCO, "--per-class", "--classes", "circle", "star", "--images", "101", "117"],
    "shapes_voc2007.txt": [*VOC, "voc2007", "--per-class"],
    "shapes_voc2007.md": [*VOC, "voc2007", "--per-class", "--output", "markdown"],
    "shapes_voc2007.json": [*VOC, "voc2007", "--output", "json"],
    "shapes_voc2007_numpy.txt": [*VOC, "voc2007-numpy", "--per-class"],
    "shapes_voc2012.csv": [*VOC, "voc2012", "--per-class", "--output", "csv"],
    "shapes_voc_by_coco.txt": [*VOC, "coco", "--per-class"],
    "iou_tutorial.txt": TUTORIAL,
    "run_shapes_coco.txt": ["run", "configs/shapes-coco.toml"],
    "run_shapes_voc.txt": ["run", "configs/shapes-voc.toml"],
    "protocols.txt": ["protocols", "--wide"],
    "protocols_coco.toml": ["protocols", "coco"],
}


def printed(arguments: list[str]) -> str:
    """What a command prints: stdout, then stderr behind ``! ``; the version as V."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = main(arguments)
    assert status == 0
    text = output.getvalue() + "".join(f"! {line}\n" for line in errors.getvalue().splitlines())
    return text.replace(f"|v:{boxscore.__version__}", "|v:V")


@pytest.mark.parametrize("name", COMMANDS)
def test_snapshot(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    if COMMANDS[name][0] == "run":  # its report goes into the project's folder: send it elsewhere
        monkeypatch.setattr("boxscore.extensions.pages.report_output.write_report", lambda *_, **__: [])
    text = printed(COMMANDS[name])
    assert text == (SNAPSHOTS / name).read_text(encoding="utf-8")


def test_every_snapshot_has_its_command() -> None:
    assert {path.name for path in SNAPSHOTS.iterdir()} == set(COMMANDS)


# ---------------------------------------------------------------- expected.json, by other programs


@cache
def expected(sample: str, part: str) -> Any:
    return json.loads((ROOT / DATASETS / sample / "expected.json").read_text(encoding="utf-8"))[part]


def of_coco(sample: str) -> boxscore.Evaluation:
    folder = ROOT / DATASETS / sample
    truth = boxscore.load_ground_truth(folder / "instances.json")
    return boxscore.evaluate(truth, boxscore.load_detections(folder / "detections.json", truth))


def same(ours: Any, theirs: Any) -> bool:
    return np.array_equal(ours, [np.nan if value is None else value for value in theirs], equal_nan=True)


@pytest.mark.parametrize("sample", ["shapes_coco", "iou_tutorial"])
def test_coco_numbers_equal_pycocotools(sample: str) -> None:
    evaluation, values = of_coco(sample), expected(sample, "coco")
    assert list(evaluation.metrics) == list(values["metrics"])
    assert same(list(evaluation.metrics.values()), values["metrics"].values())
    frame = evaluation.per_class
    assert frame["class"].tolist() == [row["class"] for row in values["per_class"]]
    for name in evaluation.metrics:
        assert same(frame[name], [row[name] for row in values["per_class"]]), name
    counts = evaluation.counts
    counts = {**counts, "objects": counts["ground_truths"] + counts["crowds"]}
    assert {key: counts[key] for key in values["counts"]} == values["counts"]


@pytest.mark.parametrize("detections", ["results", "results_coco.json"])
@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        ("voc2007", "AP_11_point"),
        ("voc2007-numpy", "AP_11_point_numpy_grid"),
        ("voc2012", "AP_area"),
    ],
)
def test_voc_numbers_equal_the_kit(protocol: str, key: str, detections: str) -> None:
    folder, values = ROOT / DATASETS / "shapes_voc", expected("shapes_voc", "voc")
    truth = boxscore.load_ground_truth(folder / "VOC2007", image_set="test")
    found = boxscore.load_detections(folder / detections, truth)
    evaluation = boxscore.evaluate(truth, found, protocol=protocol)
    frame = evaluation.per_class
    rows = values["per_class"]
    assert frame["class"].tolist() == [row["class"] for row in rows]
    ulp = 4e-16 if key == "AP_area" else 0.0  # expected.json sums the area with fsum
    np.testing.assert_allclose(
        frame["AP"].to_numpy(), [np.nan if row[key] is None else row[key] for row in rows], rtol=0, atol=ulp
    )
    assert abs(evaluation.metrics["mAP"] - values["metrics"][f"m{key}"]) <= 4e-16  # a mean by fsum
    for ours, theirs in (
        ("ground_truths", "positives"),
        ("ignored", "difficult"),
        ("detections", "detections"),
        ("true_positives", "true_positives"),
    ):
        assert frame[ours].tolist() == [row[theirs] for row in rows], ours
    outcomes = evaluation.matches.groupby("class")["outcome"].value_counts()
    for row in rows:
        counts = {kind: int(outcomes.get((row["class"], kind), 0)) for kind in ("false positive", "ignored")}
        assert counts == {"false positive": row["false_positives"], "ignored": row["ignored"]}


def test_tutorial_overlaps() -> None:
    rows = expected("iou_tutorial", "overlaps")
    evaluation = of_coco("iou_tutorial")
    truth, found = evaluation.ground_truth, evaluation.detections
    assert truth.images.ids[truth.image].tolist() == [row["image_id"] for row in rows]
    inclusive = boxscore.box_iou(truth.boxes, found.boxes, pixel_offset=1, paired=True)
    assert inclusive.tolist() == [row["iou_inclusive"] for row in rows]
    assert inclusive.round(4).tolist() == [0.7980, 0.7899, 0.6125, 0.9472, 0.7310]


def test_configurations_of_the_project_run_as_they_stand() -> None:
    names = sorted(path.name for path in (ROOT / "configs").glob("*.toml"))
    assert names
    for name in names:
        assert re.search(r'^path = "\.\./datasets/', (ROOT / "configs" / name).read_text(), re.MULTILINE)


if __name__ == "__main__":
    os.chdir(ROOT)
    SNAPSHOTS.mkdir(exist_ok=True)
    for snapshot, command in COMMANDS.items():
        (SNAPSHOTS / snapshot).write_text(printed(command), encoding="utf-8")
