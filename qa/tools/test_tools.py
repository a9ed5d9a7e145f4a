"""What ``make tools`` stands on: no protocol of a tool is left out, and data sets are what they were."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore.protocols import protocol_names
from tools import benchmarks, made_up, run
from tools.data_sets import DATA_SETS

PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "tools.md"
NO_TOOLS = (
    *("coco", "voc2007", "voc2007-numpy", "voc2012"),
    *("lvis", "lvis-fixed", "lvis-pooled", "openimages-challenge", "openimages-v2"),
    "dota-task2",
    *("bdd100k", "caltech", "citypersons", "crowdhuman", "kitti", "visdrone", "widerface"),
    *("xview", "xview-by-score", "xview-every-object", "xview-july2018"),
    *("aitod", "sodad", "tinyperson"),
    *("scoreless", "referring", "referring-any", "rex-omni", "rex-omni-coco"),
    *("cgf1", "odinw13-lmms", "omnilabel"),
)
"""Compared with the reference itself, or with its rules in plain loops, cell by cell."""


def test_every_protocol_of_a_tool_is_compared_with_it() -> None:
    compared = {protocol for tool in run.TOOLS for protocol in tool.protocols.values()}
    of_boxes = {name for name in protocol_names() if boxscore.load_protocol(name).similarity == "box"}
    assert compared == of_boxes - set(NO_TOOLS)


def test_the_page_has_every_tool_and_protocol() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for tool in run.TOOLS:
        for protocol in tool.protocols.values():
            rows = re.findall(rf"^\| {re.escape(tool.label)} \| `{protocol}` \| (\w+) \|", page, re.MULTILINE)
            assert len(set(rows)) == 3 - len(tool.skipped), (tool.label, protocol)


@pytest.mark.parametrize(("name", "protocol", "number"), [("shapes_coco", "coco", 0.33988327448177075), ("shapes_voc", "voc2012", 0.5794595783301666)])  # fmt: skip
def test_data_sets_are_written_as_they_were_read(
    name: str, protocol: str, number: float, tmp_path: Path
) -> None:
    """The one decimal coordinate of the VOC shapes becomes whole, which changes no match."""
    data = DATA_SETS[name][1]()
    data.write(tmp_path / "data")
    result = run.evaluation(tmp_path / "data", protocol)
    assert result.metrics["mAP" if "mAP" in result.metrics else "AP"] == pytest.approx(number, abs=1e-15)
    assert len(result.detections) == len(data.detections)


@pytest.mark.parametrize("name", ["shapes_coco", "shapes_voc"])
def test_parted_scores_keep_the_order(name: str, tmp_path: Path) -> None:
    """Nothing changes for a tool whose sort is stable."""
    data = DATA_SETS[name][1]()
    parted = data.with_parted_ties()
    scores = [found["score"] for found in parted.detections]
    assert len(set(scores)) == len(scores)
    assert min(scores) > 0.001  # ultralytics takes no others
    protocol = "coco" if data.form == "coco" else "py-faster-rcnn-voc2012"
    data.write(tmp_path / "as it is")
    parted.write(tmp_path / "parted")
    one, other = (run.evaluation(tmp_path / place, protocol).metrics for place in ("as it is", "parted"))
    assert dict(one) == pytest.approx(dict(other), nan_ok=True, abs=1e-15)


def test_a_tool_that_cannot_be_had_gives_its_reason(tmp_path: Path) -> None:
    tool = dataclasses.replace(run.TOOLS[0], repository="nobody/nothing")
    workshop = run.Workshop(tmp_path, "python", tmp_path / "no sources")
    with pytest.raises(run.NotHereError, match=r"no sources/nobody/nothing|cannot change to"):
        workshop.files(tool)


def test_the_table_is_put_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{run.START}\nold\n{run.END}\nafter\n", encoding="utf-8")
    row = run.Row(run.TOOLS[0], "shapes_voc", "mAP", 0.25, 0.5, 0.0, ())
    run.write_page(page, run.table([row]))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{run.START}\n\n| tool |")
    assert text.endswith(f" |\n\n{run.END}\nafter\n")
    assert "| mAP, area | 0.250000000 | 0.500000000 | 2e-1 | 0 |" in text


def name_of(benchmark: benchmarks.Benchmark) -> str:
    return f"{benchmark.tool.adapter}, {benchmark.tool.protocols['']}"


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("benchmark", benchmarks.BENCHMARKS, ids=name_of)
def test_a_case_is_the_same_every_time_and_has_numbers(
    benchmark: benchmarks.Benchmark, tmp_path: Path
) -> None:
    if benchmark.made is made_up.streets:
        pytest.importorskip("PIL", reason="Pillow writes the pictures")
    both = [made_up.write_cases(benchmark.made, tmp_path / place, 4) for place in ("one", "again")]
    files = [
        {path.relative_to(cases[0].parent): path.read_bytes() for case in cases for path in case.rglob("*.*")}
        for cases in both
    ]
    assert files[0] == files[1]
    ours = [benchmark.ours(case) for case in both[0]]
    for one in ours:
        defined = {key: value for key, value in one.items() if value == value}  # others are not printed
        assert benchmarks.differing(defined, one, benchmark) == []
    assert any(benchmarks.differing(ours[0], other, benchmark) for other in ours[1:])


def test_every_difference_is_named() -> None:
    strict, kitti = benchmarks.BENCHMARKS[0], benchmarks.BENCHMARKS[-1]
    theirs: dict[str, Any] = {"AP": 0.5, "stats": [0.1, -1.0], "precision": "ab", "absent": math.nan}
    assert benchmarks.differing(theirs, {**theirs, "more": 1.0}, strict) == []
    for key, other in {
        "AP": math.nextafter(0.5, 1),
        "stats": [0.1],
        "precision": "ac",
        "absent": 0.0,
    }.items():
        changed = {**theirs, key: other}
        assert benchmarks.differing(theirs, changed, strict) == [key]
    assert benchmarks.differing({"AP": 0.0}, {"AP": math.nan}, strict) == ["AP"]
    assert benchmarks.differing({"AP": 0.0}, {"AP": math.nan}, kitti) == []
    assert benchmarks.differing({"AP": 0.5}, {"AP": 0.5 + 1e-15}, kitti) == []
