"""A short run of the differential fuzzer, its corpus, and that it notices and shrinks what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fuzz.differential import CORPUS, Record, difference, fuzz, main, save, shrink
from support.examples import examples

pytestmark = pytest.mark.long

SAVED = sorted(CORPUS.glob("*.json"))


@pytest.mark.parametrize(
    ("kind", "count"),
    [("coco", 200), ("ties", 200), ("voc", 200), ("segm", 30), ("keypoints", 30), ("faster", 200)],
)
def test_no_difference(kind: str, count: int, tmp_path: Path) -> None:
    if kind == "faster":
        pytest.importorskip("faster_coco_eval")
    count = max(count // 2, examples(count))
    tally = fuzz(kind, count, 20_260, tmp_path)
    assert tally.cases[kind] >= 0.9 * count
    assert tally.refused[kind] == 0
    assert tally.differences == []


@pytest.mark.parametrize("path", SAVED, ids=[path.stem for path in SAVED])
def test_corpus(path: Path, tmp_path: Path) -> None:
    assert difference(json.loads(path.read_text(encoding="utf-8")), tmp_path) is None


MUTANTS: list[tuple[str, dict[str, Any], int]] = [
    ("ties", {"matching": {"equal_iou": "first"}}, 5),
    ("coco", {"matching": {"threshold_closed": False}}, 2),
    ("coco", {"ignore": {"crowd": "count"}}, 3),
    ("coco", {"matching": {"equal_scores": "file_order"}}, 5),
    ("voc", {"matching": {"candidate": "best_available"}}, 4),
    ("voc", {"boxes": {"pixel_offset": 0}}, 2),
    ("voc", {"ignore": {"difficult": "count"}}, 2),
    ("faster", {"matching": {"threshold_closed": False}}, 2),
]


@pytest.mark.parametrize(("kind", "changes", "rows"), MUTANTS)
def test_a_wrong_rule_is_noticed_and_the_case_shrunk(
    kind: str, changes: dict[str, Any], rows: int, tmp_path: Path
) -> None:
    if kind == "faster":
        pytest.importorskip("faster_coco_eval")
    tally = fuzz(kind, 100, 1, tmp_path, changes=changes, most=1)
    (record, text) = tally.differences[0]
    small = shrink(record, tmp_path, changes)
    assert difference(small, tmp_path, changes) is not None
    assert difference(small, tmp_path) is None
    assert number_of_rows(small) <= rows
    assert json.loads(save(small, text, tmp_path / "corpus").read_text())["note"] == text


def number_of_rows(record: Record) -> int:
    if record["kind"] == "voc":
        return len(record["objects"]) + len(record["found"])
    return len(record["truth"]["annotations"]) + len(record["results"])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cases", "40", "--corpus", str(tmp_path)]) == 0
    assert "0 not taken by the other program, 0 differences" in capsys.readouterr().out
    spoilt = ["--kinds", "voc", "--change", "boxes.pixel_offset=0", "--most", "1"]
    assert main(["--cases", "200", "--corpus", str(tmp_path), *spoilt]) == 1
    assert len(list(tmp_path.glob("voc-*.json"))) == 1
