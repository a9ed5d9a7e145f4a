"""What is said of data read at once is said of data read in parts: where something stands in for something else."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

IMAGES = [1, 2, 3, 4]
BOXES = [[0.0, 0.0, 10.0, 10.0]] * 4
TRUTH = boxscore.GroundTruth.from_arrays(
    IMAGES,
    ["ship"] * 4,
    BOXES,
    quadrilaterals=[[0.0, 5.0, 5.0, 0.0, 10.0, 5.0, 5.0, 10.0]] * 4,
)


@pytest.fixture
def found(tmp_path: Path) -> Path:
    folder = tmp_path / "found"
    detections = boxscore.Detections.from_arrays(IMAGES, ["ship"] * 4, BOXES, [0.9, 0.8, 0.7, 0.6])
    boxscore.save_columns(TRUTH, tmp_path / "truth.npz")
    boxscore.save_columns(detections, tmp_path / "found.npz")
    call = ["convert", "--gt", tmp_path / "truth.npz", "--dt", tmp_path / "found.npz", "--output", folder]
    assert main([*map(str, call), "--to", "parquet", "--partitions", "4"]) == 0
    return folder


def messages(evaluate: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate()
    return [str(one.message) for one in caught if issubclass(one.category, boxscore.BoxscoreWarning)]


def test_upright_boxes_stand_in_for_corners(found: Path) -> None:
    whole = messages(lambda: boxscore.evaluate(TRUTH, found, protocol="dota"))
    assert whole == [f"{found}: no corners; those of the upright boxes are compared."]
    parts = messages(lambda: boxscore.scan(TRUTH, found, protocol="dota", partitions=4))
    assert parts == [f"partition 0 of {whole[0]} So in 3 more partitions."]


def test_upright_boxes_stand_in_for_corners_in_tables(found: Path) -> None:
    detections = boxscore.load_detections(found, TRUTH)
    text = f"{found}: no corners; those of the upright boxes are compared."
    assert messages(lambda: boxscore.scan(TRUTH, detections, protocol="dota", partitions=3)) == [text]


def test_labels_that_a_federated_protocol_needs(tmp_path: Path, found: Path) -> None:
    truth = tmp_path / "truth.parquet"
    call = ["convert", "--gt", str(tmp_path / "truth.npz"), "--output", str(truth), "--lossy"]
    assert main(call) == 0
    whole = messages(lambda: boxscore.evaluate(truth, found, protocol="lvis", digest=False))
    assert [text.partition(": ")[2][:18] for text in whole] == ["no class has frequ", "no image says whic"]
    assert messages(lambda: boxscore.scan(truth, found, protocol="lvis", partitions=2)) == whole


def test_strict(tmp_path: Path, found: Path, run: Run) -> None:
    call = [
        "evaluate",
        str(tmp_path / "truth.npz"),
        str(found),
        "--protocol",
        "dota",
        "--memory-limit",
        "1GB",
    ]
    output = run(*call, "--strict", status=2)
    assert output.out == ""
    assert "no corners; those of the upright boxes are compared" in output.err


def test_partitions_say_what_they_leave_out(tmp_path: Path, run: Run) -> None:
    images = dataclasses.replace(
        TRUTH.images, columns={"camera": np.array(["left"] * len(TRUTH.images), object)}
    )
    boxscore.save_columns(TRUTH.replaced(images=images), tmp_path / "truth.npz")
    call = ["convert", str(tmp_path / "truth.npz"), "--output", str(tmp_path / "out"), "--to", "parquet"]
    assert (
        "out: written except for column camera of images, which parquet files cannot store"
        in run(*call, "--partitions", "2", "--lossy").err
    )


def test_a_part_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "part.npz"
    detections = boxscore.Detections.from_arrays(IMAGES, ["ship"] * 4, BOXES, [0.9, 0.8, 0.7, 0.6])
    boxscore.evaluate(boxscore.GroundTruth.from_arrays(IMAGES, ["ship"] * 4, BOXES), detections).save_part(
        path
    )
    assert main(["bootstrap", str(path), str(path)]) == 2
    text = f"a file of columns must hold boxes. Got a part, {path}; boxscore merge reads parts."
    assert text in " ".join(capsys.readouterr().err.split())


def test_the_former_name_of_fallbacks_warns() -> None:
    detections = boxscore.Detections.from_arrays(IMAGES, ["ship"] * 4, BOXES, [0.9, 0.8, 0.7, 0.6])
    part = boxscore.distributed.part_of(boxscore.evaluate(TRUTH, detections, protocol="voc2012"))
    with pytest.warns(DeprecationWarning, match=r"Part\.stand_ins is deprecated: it is called fallbacks"):
        assert part.stand_ins == part.fallbacks
