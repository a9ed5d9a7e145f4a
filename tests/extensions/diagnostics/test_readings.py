"""Readings: every protocol that fits the files, each number its own evaluation's."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError
from boxscore._utils.text import html_table, latex_table, markdown_table, text_table
from boxscore.diagnostics import compare_protocols, explain, tie_bounds
from boxscore.protocols import load_protocol, protocol_names
from support.running import Run
from support.scenes import CROWDS

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
TURNED = {
    *(
        "coco-rotated",
        "dior-r",
        "dota",
        "dota-v1.5",
        "hrsc",
        "mmrotate",
        "mmrotate-probiou",
        "ultralytics-obb",
    ),
}


def oriented() -> tuple[GroundTruth, Detections]:
    rng = np.random.default_rng(4)
    boxes = np.column_stack(
        [rng.uniform(50, 400, (30, 2)), rng.uniform(8, 60, (30, 2)), rng.uniform(-1, 1, 30)]
    )
    corners = boxscore.rotated_convert(boxes, "rotated", "corners")
    image = np.arange(30) % 3
    names = {0: "ship", 1: "plane"}
    truth = GroundTruth.from_arrays(
        image, image % 2, None, quadrilaterals=corners, difficult=np.arange(30) % 5 == 0, categories=names
    )
    near = boxscore.rotated_convert(
        boxes + rng.normal(0, 1, boxes.shape) * [4, 4, 1, 1, 0.05], "rotated", "corners"
    )
    scores = rng.random(30).round(1)
    return truth, Detections.from_arrays(
        image, image % 2, None, scores, quadrilaterals=near, categories=names
    )


@pytest.mark.long
def test_every_number_is_that_of_its_own_evaluation() -> None:
    tables = oriented()
    result = compare_protocols(*tables)
    assert {one.protocol for one in result.readings} == TURNED
    assert result.readings[0].protocol == "dota"
    for one in result.readings:
        evaluation = boxscore.evaluate(*tables, protocol=one.protocol)
        assert one.value == evaluation.metrics[one.metric]
        assert one.difference == one.value - result.readings[0].value
        bounds = tie_bounds(evaluation, metrics=[one.metric]).total
        assert (one.lowest, one.highest) == (bounds.lowest[0], bounds.highest[0])
        assert one.lowest <= one.value <= one.highest
    assert [len(one.choices) > 0 for one in result.readings] == [False] + [True] * 7


@pytest.mark.long
def test_upright_boxes_have_the_readings_of_boxes() -> None:
    truth = GroundTruth.from_arrays([1, 2], [1, 1], [[0, 0, 9, 9], [5, 5, 20, 20]])
    found = Detections.from_arrays([1, 2], [1, 1], [[0, 0, 9, 8], [6, 6, 20, 20]], [0.5, 0.6])
    result = compare_protocols(truth, found)
    names = {one.protocol for one in result.readings}
    assert result.readings[0].protocol == "coco"
    boxes = {name for name in protocol_names() if load_protocol(name).similarity == "box"}
    assert names < boxes
    assert boxes - names == {
        name
        for name in boxes
        if load_protocol(name).labels.unlisted == "drop"
        or load_protocol(name).group.treatment == "merge"
        or load_protocol(name).matching.scores != "given"
    } | (boxes & {*CROWDS} - {"aitod"})  # which is COCO with other areas and max detections
    assert compare_protocols(truth, found, "voc2007").readings[0].protocol == "voc2007"
    with pytest.raises(InputError, match="the first protocol must match the content of the files"):
        compare_protocols(truth, found, "dota")


def test_steps_lead_from_corners_to_rotated_boxes() -> None:
    tables = oriented()
    way = explain(*tables, "dota", "mmrotate")
    assert way.last_value == boxscore.evaluate(*tables, protocol="mmrotate").metrics["mAP"]
    assert any(change == "similarity: quadrilateral -> rotated" for change, _, _ in way.steps)
    with pytest.raises(InputError, match="compare the same kind of objects"):
        explain(*tables, "dota", "coco")


@pytest.mark.long
def test_the_command(tmp_path: Path, run: Run) -> None:
    truth, found = oriented()
    boxscore.save_as(truth, tmp_path / "labels", format="dota")
    boxscore.save_as(found, tmp_path / "task1", format="dota")
    arguments = ["compare-protocols", "--gt", str(tmp_path / "labels"), "--dt", str(tmp_path / "task1")]
    rows = json.loads(run(*arguments, "--output", "json").out)["readings"]
    expected = compare_protocols(truth, found).as_dict()["readings"]
    assert [(row["protocol"], row["value"]) for row in rows] == [
        (row["protocol"], row["value"]) for row in expected
    ]
    assert "lowest" in run(*arguments, "--wide").out


def test_a_difference_of_nothing_has_no_sign() -> None:
    own = compare_protocols(*oriented())
    tiny = dataclasses.replace(own.readings[1], difference=-2e-17)
    table = boxscore.diagnostics.Readings((own.readings[0], tiny)).table
    columns = {str(name): column.tolist() for name, column in table.items()}
    for written in (text_table, markdown_table, latex_table, html_table):
        text = written(columns)
        assert "0.0000" in text
        assert "-0.0000" not in text
