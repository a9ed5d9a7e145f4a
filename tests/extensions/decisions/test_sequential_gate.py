"""``check --sequential``: a level that is spent over the looks of a history. ``compare --sequential``."""

from __future__ import annotations

import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore.diagnostics import compare_sequentially
from boxscore.errors import InputError
from boxscore.extensions.decisions.gate import check_drop
from boxscore.extensions.decisions.history import (
    History,
    append_after,
    append_record,
    next_look,
    read_history,
)
from boxscore.extensions.decisions.sequential import BatchReading, DropSoFar, drop_in_batches
from support.running import Run
from support.samples import DT, GT

ASKED = ["--sequential", "--batch", "4", "--resamples", "50"]


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """Detections of every second image alone: a large drop."""
    rows = json.loads(Path(DT).read_text())
    images = sorted({row["image_id"] for row in rows})[::2]
    path = tmp_path / "half.json"
    path.write_text(json.dumps([row for row in rows if row["image_id"] in images]))
    return path


def part(tmp_path: Path, number: int) -> Path:
    """All detections but one."""
    rows = json.loads(Path(DT).read_text())
    del rows[number]
    path = tmp_path / f"{number}.json"
    path.write_text(json.dumps(rows))
    return path


def looks(path: Path) -> list[int]:
    return [record.whole["sequential"]["look"] for record in read_history(path).records]


@pytest.mark.long
def test_every_look_spends_its_share(tmp_path: Path, half: Path, run: Run) -> None:
    path = tmp_path / "h.jsonl"
    call = ["check", "--gt", GT, "--baseline-detections", DT, *ASKED, "--history", path, "--output", "json"]
    allowed = ["--allow", "image-without-detections"]
    append_record(path, {**read_plain(), "name": "a check without looks"})
    for look in (1, 2):
        printed = json.loads(run(*call, "--dt", part(tmp_path, look)).out)
        assert printed["sequential"]["level"] == pytest.approx(0.05 / (look * (look + 1)))
    sides = [boxscore.evaluate(GT, table) for table in (DT, half)]
    expected = drop_in_batches(
        sides[0], sides[1], metric="AP", batch=4, resamples=50, confidence=0.95, seed=0, group=None
    )
    assert 0.05 / 12 < expected.p_value < 0.025  # enough for a first look, and not for a third
    run("check", "--gt", GT, "--dt", half, *call[3:-3], tmp_path / "new.jsonl", *allowed, status=1)
    third = json.loads(run(*call, "--dt", half, *allowed).out)
    assert third["checks"][0]["p_value"] == pytest.approx(expected.p_value, rel=1e-12)
    assert third["checks"][0]["passed"]
    assert third["sequential"]["look"] == 3
    assert third == {
        key: value for key, value in read_history(path).records[-1].whole.items() if key != "schema"
    }


def read_plain() -> dict[str, Any]:
    record: dict[str, Any] = {"time": "2026-01-02T03:04:05Z", "name": None, "passed": True}
    return {**record, "metrics": {"AP": 0.5}, "signature": "boxscore|coco|v:1", "inputs": {}}


@pytest.mark.long
def test_the_same_run_again_is_the_same_look(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "h.jsonl"
    call = ["check", "--gt", GT, "--baseline-detections", DT, *ASKED, "--history", path]
    one, other = part(tmp_path, 1), part(tmp_path, 2)
    text = run(*call, "--dt", one).out
    assert "p_value <= 0.025 = 0.05 / (1 x 2) at run 1; over all runs" in " ".join(text.split())
    run(*call, "--dt", other)
    again = run(*call, "--dt", one, "--name", "again").out
    assert "0.05 / (1 x 2) at run 1 (same data as before); over all runs" in " ".join(again.split())
    run(*call, "--dt", one, "--seed", "1")
    run(*call, "--dt", one, "--metrics", "AP50")
    assert looks(path) == [1, 2, 1, 3, 4]


def test_lines_that_are_no_records_count_as_looks() -> None:
    record = {**read_plain(), "sequential": {"metric": "AP", "p_value": 1.0}}
    assert next_look(History([], []), record) == (1, False)
    assert next_look(History([], [1, 2, 3]), record) == (4, False)


HOSTILE = [3, {}, *({"look": look} for look in ("1", -1, 0, True, None, 1.5, 10**7, 10**400, 1e300, [1]))]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_a_look_out_of_range_is_damaged_and_counts(tmp_path: Path, hostile: Any) -> None:
    path = tmp_path / "h.jsonl"
    append_record(path, read_plain())
    append_record(path, {**read_plain(), "sequential": hostile})
    record = {**read_plain(), "sequential": {"metric": "AP", "p_value": 1.0}}
    assert read_history(path).damaged == [2]
    assert next_look(read_history(path), record) == (2, False)


def test_looks_written_as_floats_and_checks_without_looks(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    for sequential in (None, {"look": 1.0}, {"look": 2.0}, None):
        append_record(path, {**read_plain(), "sequential": sequential})
    record = {**read_plain(), "sequential": {"metric": "AP", "p_value": 1.0}}
    assert next_look(read_history(path), record) == (3, False)


@pytest.mark.parametrize("look", ["1" + "0" * 400, "1e400", "NaN", "-Infinity", "999999999999"])
def test_no_line_of_a_history_opens_the_gate(tmp_path: Path, run: Run, look: str) -> None:
    rows = json.loads(Path(DT).read_text())
    for row in rows:
        row["bbox"][0] += 12
        row["score"] = 1 - row["score"]
    (tmp_path / "moved.json").write_text(json.dumps(rows))
    path = tmp_path / "h.jsonl"
    line = json.dumps({"schema": 1, **read_plain(), "sequential": {"look": 77}})
    path.write_text(line.replace("77", look) + "\n")
    call = [
        "check",
        "--gt",
        GT,
        "--dt",
        tmp_path / "moved.json",
        "--baseline-detections",
        DT,
        "--metrics",
        "AP",
    ]
    call += ["--sequential", "--batch", "2", "--resamples", "200", "--history", path, "--output", "json"]
    printed = json.loads(run(*call, status=1).out)
    assert printed["sequential"]["look"] == 2
    assert not printed["passed"]


def test_a_level_of_0_is_an_error() -> None:
    drop = DropSoFar("AP", 0.5, 0.1, 0.001, BatchReading(20, 0.95, 0, 2))
    with pytest.raises(InputError, match=r"the level of a look must be above 0\. Got 0\.0"):
        check_drop(drop, look=1, level=0.0)


@pytest.mark.parametrize("inputs", [3, None, {}, {"detections": 3}, {"detections": {"sha256": None}}])
def test_inputs_without_hashes_are_never_the_same(tmp_path: Path, inputs: Any) -> None:
    path = tmp_path / "h.jsonl"
    asked = {"metric": "AP", "p_value": 1.0}
    append_record(path, {**read_plain(), "inputs": inputs, "sequential": {**asked, "look": 1}})
    record = {**read_plain(), "inputs": inputs if isinstance(inputs, dict) else {}, "sequential": asked}
    if inputs == {"detections": 3}:
        record["inputs"] = {"detections": {"sha256": "a"}}
    assert next_look(read_history(path), record) == (2, False)


def _look(path: Path, process: int) -> None:
    for number in range(10):
        record = {**read_plain(), "name": f"{process} {number}", "sequential": {"p_value": 1.0}}

        def made(earlier: History, record: dict[str, Any] = record) -> dict[str, Any]:
            look = next_look(earlier, record).number
            return {**record, "sequential": {"p_value": 1.0, "look": look}}

        append_after(path, made)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_runs_at_the_same_time_have_different_looks(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=_look, args=(path, process)) for process in range(3)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert looks(path) == list(range(1, 31))


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"

    def fails(_: History) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        append_after(path, fails)
    assert not path.exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--sequential", "--history", "h.jsonl"],
            "--sequential must be used together with --baseline-detections and --history. Got no "
            "--baseline-detections; the history records the previous runs.",
        ),
        (
            ["--sequential", "--baseline-detections", DT],
            "--sequential must be used together with --baseline-detections and --history. Got no "
            "--history; the history records the previous runs.",
        ),
        (["--min", "AP=.1", "--batch", "3"], "--batch must be used together with --sequential. Got 3."),
        (
            ["--sequential", "--baseline-detections", DT, "--history", "h.jsonl", "--tolerance", ".1"],
            "--sequential must not be combined with --tolerance. Got --tolerance 0.1; a permutation test "
            "cannot test a margin.",
        ),
        (
            [
                "--sequential",
                "--baseline-detections",
                DT,
                "--history",
                "h.jsonl",
                "--metrics",
                "AP",
                "AP50",
            ],
            "--sequential must be used with one metric. Got --metrics AP AP50; pass one with --metrics; "
            "bound others with --min.",
        ),
    ],
)
def test_what_a_check_refuses(
    more: list[str], message: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in " ".join(run.error("check", "--gt", GT, "--dt", DT, *more).split())
    assert not (tmp_path / "h.jsonl").exists()


def test_too_few_images_for_a_batch_leave_no_line(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "h.jsonl"
    error = run.error(
        "check", "--gt", GT, "--dt", DT, "--baseline-detections", DT, "--sequential", "--history", path
    )
    assert "must have at least 50 images. Got 24; use smaller batches: --batch N" in " ".join(error.split())
    assert not path.exists()


# ---------------------------------------------------------------- compare --sequential


@pytest.mark.long
def test_compare_prints_the_batches(half: Path, run: Run) -> None:
    result = compare_sequentially(
        {"detections": boxscore.evaluate(GT, DT), "half": boxscore.evaluate(GT, half)},
        batch=4,
        resamples=50,
    )
    assert result.verdict == "worse"
    call = ["compare", "--gt", GT, "--dt", DT, half, *ASKED]
    rows = json.loads(run(*call, "--output", "json").out)["rows"]
    for column in ("images", "delta", "better", "worse", "p_value"):
        assert [row[column] for row in rows] == pytest.approx(result.to_frame()[column].tolist(), rel=1e-12)
    assert [row["verdict"] for row in rows] == list(result.verdicts)
    text = " ".join(run(*call).out.split())
    assert f"worse: stopped after {result.images_read} of 24 images. AP of the images read" in text


@pytest.mark.long
def test_compare_reads_in_the_order_of_a_file(tmp_path: Path, half: Path, run: Run) -> None:
    ids = boxscore.evaluate(GT, DT).images.ids.tolist()[::-1]
    order = tmp_path / "ids.txt"
    order.write_text("\n".join(map(str, ids)))
    sides = {"detections": boxscore.evaluate(GT, DT), "half": boxscore.evaluate(GT, half)}
    result = compare_sequentially(sides, batch=4, resamples=50, order=ids)
    call = ["compare", "--gt", GT, "--dt", DT, half, *ASKED, "--output", "json", "--order"]
    rows = json.loads(run(*call, order).out)["rows"]
    assert [row["p_value"] for row in rows] == pytest.approx(result.p_value.tolist(), rel=1e-12)
    shuffled = json.loads(run(*call, "random").out)["rows"]
    assert [row["value_first"] for row in shuffled] != [row["value_first"] for row in rows]


@pytest.mark.parametrize(
    ("files", "more", "message"),
    [
        (2, ["--batch", "3"], "--batch must be used together with --sequential. Got 3."),
        (2, ["--order", "random"], "--order must be used together with --sequential. Got random."),
        (3, ["--sequential"], "--sequential must have two files. Got 3."),
        (2, ["--sequential", "--per-class"], "--sequential must not be combined with --per-class. Got both."),
        (2, ["--sequential", "--report", "r"], "--sequential must not be combined with --report. Got both."),
        (
            2,
            ["--sequential", "--memory-limit", "1GB"],
            "--sequential must not be combined with --memory-limit. Got both.",
        ),
        (
            2,
            ["--sequential", "--metrics", "AP", "AP50"],
            "must be used with one metric. Got --metrics AP AP50.",
        ),
        (2, ["--sequential", "--batch", "3", "--order", "nowhere"], "nowhere"),
    ],
)
def test_what_compare_refuses(files: int, more: list[str], message: str, run: Run) -> None:
    assert message in " ".join(run.error("compare", "--gt", GT, "--dt", *[DT] * files, *more).split())
