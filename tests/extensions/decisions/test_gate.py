"""``boxscore check`` and ``history``: bounds per class, significant drops, records, JUnit XML."""

from __future__ import annotations

import datetime
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import InputError, plots
from boxscore.cli import main
from boxscore.diagnostics import compare_detectors
from boxscore.extensions.decisions import gate, history
from boxscore.extensions.decisions.history import append_record, fingerprint, read_history
from boxscore.extensions.decisions.junit import as_junit
from support.running import Run
from support.samples import DT, GT

INPUTS = ["--gt", GT, "--dt", DT]
HOSTILE = ["traffic light", 'a "b" c', "'quoted'", "AP", "dog AP", "a=b", "x  y", "<b>&amp;\u202e", "AP50 "]


def result(*names: str, **metrics: float | None) -> gate.Result:
    values = {"AP": 0.4, "AP50": 0.6, "APs": None, **metrics}
    rows = {name: {"AP": number / 10, "AP50": None} for number, name in enumerate(names, start=1)}
    return gate.Result(values, "boxscore|coco|v:1", lambda: rows)


# ---------------------------------------------------------------- bounds


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_bounds_of_classes_with_any_name(quote: str) -> None:
    known = result(*HOSTILE)
    for number, name in enumerate(HOSTILE, start=1):
        if name == "AP50 " and not quote:
            continue  # blanks at an end need quotes
        bound = gate.parse_bound(f"{quote}{name}{quote} AP={number / 10}", known, name="--min")
        assert bound == ("AP", number / 10, name)
        (check,) = gate.check_bounds(known, minimum=[bound])
        assert check.passed
        assert check.value == number / 10
        assert not gate.check_bounds(known, minimum=[bound._replace(number=number / 10 + 1e-9)])[0].passed
    assert gate.parse_bound("AP=.3", known, name="--min") == ("AP", 0.3, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("traffic ligt AP=0.1", "--min, the class must be in the result. Got 'traffic ligt'; did you mean"),
        ("traffic light APP=0.1", "--min, the metric of a class must be one of 'AP', 'AP50'. Got 'APP'; did"),
        ("traffic light AP=x", "--min must end in a number. Got 'traffic light AP=x'"),
        ("traffic light AP", "--min must have the form METRIC=NUMBER, or CLASS METRIC=NUMBER"),
        (
            "traffic light AP=2e999",
            "--min traffic light AP must be a number from 0 to 1 for AP. Got 2e999",
        ),
    ],
)
def test_bounds_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        gate.parse_bound(text, result(*HOSTILE), name="--min")


def test_a_bound_on_a_name_of_two_classes_names_both() -> None:
    known = result("cat (1)", "cat (2)", "dog")
    assert gate.parse_bound("cat (2) AP=.3", known, name="--min") == ("AP", 0.3, "cat (2)")
    with pytest.raises(InputError) as error:
        gate.parse_bound("cat AP=.3", known, name="--min")
    assert str(error.value) == (
        "--min, the class must stand for one class. Got 'cat', the name or id of 2; give 'cat (1)', 'cat (2)'."
    )


def test_an_undefined_metric_of_a_class_meets_no_bound() -> None:
    known = result("cat")
    for sign in ("minimum", "maximum"):
        (check,) = gate.check_bounds(known, **{sign: [gate.Bound("AP50", 0.5, "cat")]})
        assert (check.value, check.passed) == (None, False)


def test_classes_of_a_file_and_of_an_evaluation_are_the_same(tmp_path: Path, run: Run) -> None:
    for protocol, metric in (("coco", "APs"), ("voc2012", "AP")):
        evaluation = boxscore.evaluate(GT, DT, protocol=protocol)
        path = tmp_path / "result.json"
        path.write_text(evaluation.to_json(), encoding="utf-8")
        stored, computed = gate.read_result(path).read_classes(), gate.result_of(evaluation).read_classes()
        assert list(stored) == list(computed) == evaluation.labels
        for label, row in zip(evaluation.labels, evaluation.per_class.to_dict("records"), strict=True):
            expected = None if row[metric] != row[metric] else row[metric]
            value = computed[label][metric]
            assert stored[label][metric] == expected == (None if value != value else value)
        bound = f"circle {metric}={computed['circle'][metric]!r}"
        for source in (["--result", str(path)], [*INPUTS, "--protocol", protocol]):
            run("check", *source, "--min", bound, "--max", bound)


@pytest.mark.parametrize(
    "rows", [None, [3], [{"class": 1}], [{"class": "circle", "AP": "x"}], [{"class": "circle"}] * 2]
)
def test_classes_of_a_spoilt_file(tmp_path: Path, rows: Any, run: Run) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"metrics": {"AP": 0.5}, "signature": "s", "per_class": rows}))
    run("check", "--result", path, "--min", "AP=.4")
    assert "not a valid result: per_class must have one row per class" in run.error(
        "check", "--result", path, "--min", "circle AP=.4"
    )


# ---------------------------------------------------------------- a significant drop


@pytest.fixture(scope="module")
def fewer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Detections that lack every seventh."""
    path = tmp_path_factory.mktemp("fewer") / "fewer.json"
    rows = json.loads(Path(DT).read_text())
    path.write_text(json.dumps([row for number, row in enumerate(rows) if number % 7]))
    return path


@pytest.mark.long
@pytest.mark.parametrize(("tolerance", "confidence"), [(0.0036, 0.95), (0.02, 0.5)])
def test_a_drop_fails_where_its_whole_interval_lies_beyond_the_tolerance(
    fewer: Path, tolerance: float, confidence: float, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {"old": boxscore.evaluate(GT, DT), "new": boxscore.evaluate(GT, fewer)}
    expected = compare_detectors(sides, resamples=30, confidence=confidence, seed=3).total_frame()
    arguments = ["check", "--gt", GT, "--dt", str(fewer), "--baseline-detections", DT, "--output", "json"]
    arguments += ["--resamples", "30", "--seed", "3", "--confidence", str(confidence)]
    status = main([*arguments, "--tolerance", str(tolerance)])
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["metric"] for check in checks] == expected["metric"].tolist()
    assert [check["passed"] for check in checks] == (~(expected["high"] < -tolerance)).tolist()
    lows = [None if np.isnan(low) else low for low in expected["low"].tolist()]
    assert [check["low"] for check in checks] == lows
    assert status == int((expected["high"] < -tolerance).any())


@pytest.mark.long
def test_a_drop_without_a_tolerance_is_tested_by_exchanges(fewer: Path, run: Run) -> None:
    """One-sided and adjusted for all metrics that are checked, in both directions."""
    rows = json.loads(Path(DT).read_text())
    fewer = fewer.with_name("half.json")
    fewer.write_text(json.dumps(rows[::2]))
    sides = {"old": boxscore.evaluate(GT, DT), "new": boxscore.evaluate(GT, fewer)}
    expected = compare_detectors(sides, resamples=99, seed=3)
    chosen = ["--resamples", "99", "--seed", "3", "--output", "json"]
    printed = run("check", "--gt", GT, "--dt", fewer, "--baseline-detections", DT, *chosen, status=1).out
    checks = json.loads(printed)["checks"]
    assert [check["p_value"] for check in checks] == expected.drops[0].tolist()
    assert [check["passed"] for check in checks] == (expected.drops[0] > 0.05).tolist()
    assert not all(check["passed"] for check in checks)
    run("check", "--gt", GT, "--dt", DT, "--baseline-detections", fewer, *chosen)  # which is better


def test_too_few_images_to_tell_are_no_failure(tmp_path: Path, run: Run) -> None:
    boxes = [[10.0, 10.0, 50.0, 50.0]] * 5
    truth = boxscore.GroundTruth.from_arrays(range(5), ["cat"] * 5, boxes)
    old = boxscore.Detections.from_arrays(range(5), ["cat"] * 5, boxes, [0.9, 0.8, 0.7, 0.6, 0.5])
    new = boxscore.Detections.from_arrays(range(5), ["cat"] * 5, [[70, 70, 90, 90]] * 5, [0.9] * 5)
    paths = [tmp_path / f"{name}.npz" for name in ("truth", "old", "new")]
    for table, path in zip((truth, old, new), paths, strict=True):
        boxscore.save_columns(table, path)
    call = [
        "check",
        "--gt",
        paths[0],
        "--dt",
        paths[2],
        "--baseline-detections",
        paths[1],
        "--metrics",
        "AP50",
    ]
    text = run(*call, "--wide").out
    assert "too few images\n" in text
    assert "1 of 1 undecided: too few images; none failed" in text


def test_chance_is_no_drop(fewer: Path, run: Run) -> None:
    """AP50 is lower, and within chance: the plain comparison fails, the test does not."""
    chosen = ["--metrics", "AP50", "--resamples", "200"]
    baseline = fewer.with_name("baseline.json")
    baseline.write_text(boxscore.evaluate(GT, DT).to_json())
    run("check", "--gt", GT, "--dt", fewer, "--no-regression", baseline, *chosen, status=1)
    text = run("check", "--gt", GT, "--dt", fewer, "--baseline-detections", DT, *chosen).out
    assert "no significant drop from 0.5936" in text
    assert "significant: p_value <= 0.05 in a paired permutation test over images" in text


def test_a_baseline_without_images_is_refused(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "r.json"
    path.write_text(boxscore.evaluate(GT, DT).to_json())
    assert "to compare with the numbers of a result use --no-regression" in run.error(
        "check", "--result", path, "--baseline-detections", DT
    )


# ---------------------------------------------------------------- the record


def test_the_record(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "h.jsonl"
    before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    call = ["check", *INPUTS, "--history", str(path), "--name", "n\u202e\n", "--output", "json"]
    printed = json.loads(run(*call, "--min", "AP=.9", status=1).out)
    (record,) = read_history(path).records
    assert record.whole == {"schema": 1, **printed}
    assert before <= record.time <= datetime.datetime.now(datetime.timezone.utc)
    assert (record.passed, record.name) == (False, "n\u202e\n")
    evaluation = boxscore.evaluate(GT, DT)
    assert (record.metrics, record.signature) == (evaluation.metrics, evaluation.signature)
    assert printed["inputs"] == {
        side: {"path": path_of, "sha256": hashlib.sha256(Path(path_of).read_bytes()).hexdigest()}
        for side, path_of in (("ground_truth", GT), ("detections", DT))
    }
    run(*call)  # nothing to check: the run is recorded all the same
    assert [one.passed for one in read_history(path).records] == [False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="sha256sum")
def test_the_hash_of_a_folder_is_that_of_sha256sum(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a b.txt", "a/image.JPG", "a.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    line = (
        "find . -type f ! -iname '*.jpg' -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
    )
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert fingerprint(tmp_path) == done.stdout.split()[0]
    assert fingerprint(Path("/dev/null")) is None


def _add(path: Path, process: int) -> None:
    for number in range(40):
        append_record(path, record_of(name=f"{process}-{number}" + "x" * 3000))


def record_of(**changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"time": "2026-01-02T03:04:05Z", "name": None, "passed": True}
    return {**record, "metrics": {"AP": 0.5, "APs": None}, "signature": "boxscore|coco|v:1", **changes}


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_runs_add_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=_add, args=(path, process)) for process in range(4)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    records, damaged = read_history(path)
    assert not damaged
    assert {record.name.rstrip("x") for record in records if record.name} == {
        f"{process}-{number}" for process in range(4) for number in range(40)
    }


BAD_LINES = [
    b"<<<<<<< HEAD",
    b"{}",
    b"[1]",
    b"\xff\xfe",
    b"[" * 100_000,
    *(
        json.dumps({"schema": 1, **record_of(**changes)}).encode()
        for changes in (
            {"time": "yesterday"},
            {"time": 3},
            {"metrics": {"AP": 5}},
            {"metrics": {"AP": True}},
            {"metrics": [0.5]},
            {"passed": 1},
            {"name": 3},
            {"signature": None},
            {"schema": 2},
        )
    ),
    b'{"schema": 1, "schema": 1}',
    json.dumps({"schema": 1, **record_of()}).encode()[:-9],
]


def test_damaged_lines_are_skipped_and_counted(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "h.jsonl"
    append_record(path, record_of(name="first"))
    with path.open("ab") as file:
        file.write(b"\r\n\n" + b"\n".join(BAD_LINES))  # the last is cut, without an end of line
    before = path.read_bytes()
    append_record(path, record_of(name="last"))
    assert path.read_bytes().startswith(before)
    records, damaged = read_history(path)
    assert [record.name for record in records] == ["first", "last"]
    assert damaged == list(range(4, 4 + len(BAD_LINES)))
    output = run("history", path)
    message = f"{path}: {len(BAD_LINES)} damaged lines are skipped (first: line 4)."
    assert output.err == f"boxscore: warning: {message}\n"
    assert output.out.startswith("2 runs\n\ntime")
    run("history", path, "--strict", status=2)
    assert len(json.loads(run("history", path, "--output", "json").out)["runs"]) == 2


def test_histories_that_cannot_be_read_or_written(tmp_path: Path, run: Run) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for path, message in (
        (tmp_path / "none", "cannot be read: No such file"),
        (tmp_path, "cannot be read: "),
        (tmp_path / "a\0b", "cannot be read: embedded null byte"),
        (empty, "a history must have a record. Got an empty file"),
    ):
        assert message in run.error("history", path)
    for path in (tmp_path, tmp_path / "no" / "folder.jsonl"):
        output = run("check", *INPUTS, "--min", "AP=0", "--history", path, status=2)
        assert output.out == ""  # no verdict without its record
        assert "cannot be written" in output.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full")
def test_a_full_disk_is_an_error(run: Run) -> None:
    assert "No space left on device" in run.error("check", *INPUTS, "--min", "AP=0", "--history", "/dev/full")


@pytest.mark.parametrize("before", [None, b"", b'{"cut'])
@pytest.mark.parametrize("link", [False, True])
def test_a_write_that_fails_leaves_what_was_there(
    before: bytes | None, link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "h.jsonl"
    path = tmp_path / "link.jsonl" if link else target
    if link:
        path.symlink_to(target)
    if before is not None:
        target.write_bytes(before)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:7]))  # as of a disk that is full
    with pytest.raises(InputError) as error:
        append_record(path, record_of(name="first"))
    assert str(error.value) == f"{path}: cannot be written: No space left on device."
    assert (target.read_bytes() if target.exists() else None) == before
    monkeypatch.undo()
    append_record(path, record_of(name="second"))
    assert [record.name for record in read_history(path).records] == ["second"]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed")
def test_a_history_that_another_run_took_away_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.jsonl"
    lock, waits = history._lock, []

    def taken(file: int) -> None:
        lock(file)
        if not waits:
            waits.append(file)
            path.unlink()

    monkeypatch.setattr(history, "_lock", taken)
    append_record(path, record_of(name="whole"))
    assert waits
    assert [record.name for record in read_history(path).records] == ["whole"]


def test_the_plot_breaks_where_the_protocol_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "h.jsonl"
    for number, (signature, passed) in enumerate(
        [("b|coco|v:1", True), ("b|coco|v:2", False), ("b|voc|v:2", True), ("b|voc|v:2", True)]
    ):
        time = f"2026-01-0{number + 1}T00:00:00Z"
        append_record(path, record_of(time=time, name=f"$m_{number}", signature=signature, passed=passed))
    display = plots.HistoryDisplay.from_records(read_history(path).records)
    assert (display.breaks, display.failed.tolist()) == ([2], [False, True, False, False])
    axes = display.plot().ax_
    lines = [line.get_xdata().tolist() for line in axes.get_lines() if line.get_marker() == "o"]
    assert lines == [[0, 1], [2, 3]]
    target = tmp_path / "h.svg"
    assert main(["history", str(path), "--plot", str(target), "--metrics", "AP"]) == 0
    assert target.read_text().startswith("<?xml")
    text = capsys.readouterr().out
    assert "protocol changed at 2026-01-03T00:00:00Z: earlier numbers are not comparable" in text
    assert main(["history", str(path), "--metrics", "XX"]) == 2
    assert main(["history", str(path), "--plot", "a.xyz"]) == 2


# ---------------------------------------------------------------- JUnit XML, GitHub


def test_junit_keeps_to_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rules of the common JUnit.xsd for what is written: attributes, types, order, counts."""
    path = tmp_path / "check.xml"
    call = [
        "check",
        *INPUTS,
        "--min",
        "AP=.9",
        "AP50=.1",
        "circle AP=.1",
        "--junit",
        str(path),
        "--name",
        "m",
    ]
    assert main(call) == 1
    root = ET.fromstring(path.read_bytes())
    assert root.tag == "testsuites"
    (suite,) = root
    properties, *cases = suite
    assert (suite.tag, properties.tag) == ("testsuite", "properties")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    for each in (root, suite):
        assert [each.attrib[key] for key in ("tests", "failures", "errors")] == ["3", "1", "0"]
    assert {child.tag for child in properties} == {"property"}
    assert {child.attrib["name"]: child.attrib["value"] for child in properties} == {
        "signature": boxscore.evaluate(GT, DT).signature,
        "boxscore": boxscore.__version__,
        "name": "m",
    }
    assert [case.attrib["name"] for case in cases] == ["AP >= 0.9", "AP50 >= 0.1", "circle AP >= 0.1"]
    assert [[child.tag for child in case] for case in cases] == [["failure"], [], []]
    assert all({"classname", "name", "time"} == case.attrib.keys() for case in cases)
    (failure,) = cases[0]
    assert failure.attrib == {"message": "AP is 0.3399, must be >= 0.9", "type": "boxscore.check"}
    assert "FAILED" in capsys.readouterr().out  # the log has the table


def test_junit_holds_any_name() -> None:
    for name in [*HOSTILE, "\0\x1b[2J\ud800\ufffe\n\t]]>", "😀"]:
        check = gate.Check("AP", None, ">= 0.5", False, name)
        text = as_junit([check], time="2026-01-02T03:04:05Z", properties={"name": name})
        (case,) = ET.fromstring(text.encode()).iter("testcase")
        assert case.attrib["name"].endswith(" AP >= 0.5")
        if name.isprintable():
            assert case.attrib["name"] == f"{name} AP >= 0.5"


def test_github_shows_what_failed(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert run("check", *INPUTS, "--min", "AP=.9", "AP50=.1", "hexagon AP=.5", status=1).err.splitlines() == [
        "::error title=boxscore check::AP is 0.3399, must be >= 0.9",
        "::error title=boxscore check::hexagon AP is 0.0000, must be >= 0.5",
    ]


# ---------------------------------------------------------------- a baseline that does not compare


def baseline_of(path: Path, change: Any = None, **options: Any) -> list[str]:
    """Write a baseline of the shapes, changed, and return the options of a check against it."""
    value = json.loads(boxscore.evaluate(GT, DT, digest=False, **options).to_json())
    if change is not None:
        change(value)
    path.write_text(json.dumps(value))
    return ["check", *INPUTS, "--no-regression", str(path), "--output", "csv"]


def failed_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.endswith("FAILED")]


def test_an_equal_baseline_passes(tmp_path: Path, run: Run) -> None:
    assert failed_lines(run(*baseline_of(tmp_path / "b.json")).out) == []


@pytest.mark.parametrize("value", ["absent", None])
def test_a_baseline_that_lacks_a_metric_fails(tmp_path: Path, run: Run, value: str | None) -> None:
    def without(result: Any) -> None:
        del result["metrics"]["AP"]
        if value is None:
            result["metrics"]["AP"] = None

    arguments = baseline_of(tmp_path / "b.json", without)
    ap = boxscore.evaluate(GT, DT)["AP"]
    assert failed_lines(run(*arguments, status=1).out) == [
        f"AP,{ap!r},in the baseline (missing there),FAILED"
    ]
    run(*arguments, "--metrics", "AP50")


def test_a_new_result_that_lacks_a_metric_fails(tmp_path: Path, run: Run) -> None:
    baseline_of(tmp_path / "old.json")
    baseline_of(tmp_path / "new.json", lambda result: result["metrics"].pop("AP"))
    old, new = (str(tmp_path / name) for name in ("old.json", "new.json"))
    assert failed_lines(
        run("check", "--result", new, "--no-regression", old, "--output", "csv", status=1).out
    ) == ["AP,,>= 0.3399 (baseline),FAILED"]
    run("check", "--result", new, "--no-regression", old, "--metrics", "AP", status=1)


@pytest.mark.long
def test_half_the_images_fail(tmp_path: Path, run: Run) -> None:
    images = boxscore.load_ground_truth(GT).images.ids.tolist()[:12]
    arguments = baseline_of(tmp_path / "b.json", images=images)
    assert failed_lines(run(*arguments, status=1).out)[0] == "images,24,12 (baseline),FAILED"

    def older(result: Any) -> None:
        result["images_sha256"] = result.pop("images_digest")

    arguments = baseline_of(tmp_path / "b.json", older, images=images)
    assert failed_lines(run(*arguments, status=1).out)[0] == "images,24,12 (baseline),FAILED"
    arguments = baseline_of(tmp_path / "b.json", older)
    # as many images, and nobody knows which
    assert run(*arguments).err == (
        "boxscore: warning: the baseline records the number of images but not their ids, so the images may differ. Write it "
        "with boxscore evaluate --output json of this version.\n"
    )
    run(*baseline_of(tmp_path / "b.json", lambda result: result.pop("counts")))


def test_other_images_of_the_same_number_fail(tmp_path: Path, run: Run) -> None:
    truth = json.loads(Path(GT).read_text())
    detections = json.loads(Path(DT).read_text())
    for row in truth["images"]:
        row["id"] += 1000
    for row in [*truth["annotations"], *detections]:
        row["image_id"] += 1000
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps(detections))
    baseline_of(tmp_path / "b.json")
    inputs = [str(tmp_path / "gt.json"), str(tmp_path / "dt.json")]
    assert failed_lines(
        run("check", *inputs, "--no-regression", tmp_path / "b.json", "--output", "csv", status=1).out
    ) == ['images,24,"as many as in the baseline, but different ones",FAILED']


def test_other_classes_fail(tmp_path: Path, run: Run) -> None:
    arguments = baseline_of(tmp_path / "b.json", classes=["circle", "star"])
    line = failed_lines(run(*arguments, status=1).out)[0]
    assert line == 'classes,7,"the 2 of the baseline: without square, triangle, hexagon, ...",FAILED'


def test_the_order_of_images_and_their_type_do_not_matter() -> None:
    one, other = (
        boxscore.GroundTruth.from_arrays([ids[0]], ["a"], [[0, 0, 1, 1]], images=ids).images
        for ids in ([1, 2, 10], ["10", "2", "1"])
    )
    total = sum(int(hashlib.sha256(name).hexdigest(), 16) for name in (b"1", b"2", b"10"))
    assert one.fingerprint() == other.fingerprint() == f"{total % 2**256:064x}"


# ---------------------------------------------------------------- errors in the input


@pytest.fixture
def half(tmp_path: Path) -> list[str]:
    """Detections of 6 of 22 annotated images."""
    rows = json.loads(Path(DT).read_text())[:89]
    (tmp_path / "half.json").write_text(json.dumps(rows))
    return [GT, str(tmp_path / "half.json")]


def test_an_error_in_the_input_fails(half: list[str], run: Run) -> None:
    captured = run("check", *half, "--min", "AP=0.01", "--output", "csv", status=1)
    assert captured.out.splitlines()[-1] == ("image-without-detections,,absent from the input,FAILED")
    assert captured.err.startswith("boxscore: error in the input: 16 images with annotations (73%) without")
    allowed = ["--allow", "image-without-detections"]
    run("check", *half, "--min", "AP=0.01", *allowed)
    run("check", *half, "--min", "AP=0.9", *allowed, status=1)


@pytest.mark.parametrize("command", ["evaluate", "check", "report", "compare"])
def test_strict_exits_2(command: str, half: list[str], tmp_path: Path, run: Run) -> None:
    more = {
        "evaluate": [],
        "check": ["--min", "AP=0.01"],
        "report": ["--report", str(tmp_path / "report")],
        "compare": ["--resamples", "2"],
    }[command]
    inputs = ["--gt", GT, "--dt", *half[1:], DT] if command == "compare" else half
    captured = run(command, *inputs, *more, "--strict", status=2)
    assert captured.out == ""
    assert "error in the input: 16 images with annotations (73%) without detections." in captured.err
    assert not (tmp_path / "report").exists()
    run(command, *inputs, *more, status=command == "check")
    if command in ("evaluate", "check"):
        run(command, *inputs, *more, "--strict", "--allow", "image-without-detections")


def test_an_error_in_the_baseline_fails_too(half: list[str], run: Run) -> None:
    """A baseline that lacks images is low, and everything passes beside it."""
    arguments = ["check", GT, DT, "--baseline-detections", half[1], "--metrics", "AP", "--resamples", "9"]
    captured = run(*arguments, "--output", "csv", status=1)
    lines = [line for line in captured.out.splitlines() if line.endswith("FAILED")]
    assert lines == ["image-without-detections (baseline),,absent from the input,,,FAILED"]
    assert captured.err.startswith(
        "boxscore: baseline: error in the input: 16 images with annotations (73%) without"
    )
    run(*arguments, "--allow", "image-without-detections")
    assert "baseline: error in the input: 16 images" in run.error(*arguments, "--strict")


def test_boxes_of_a_baseline_in_another_order_fail(tmp_path: Path, run: Run) -> None:
    rows = json.loads(Path(DT).read_text())
    for row in rows:
        x, y, w, h = row["bbox"]
        row["bbox"] = [x, y, x + w, y + h]
    (tmp_path / "corners.json").write_text(json.dumps(rows))
    baseline = ["--baseline-detections", str(tmp_path / "corners.json"), "--resamples", "9"]
    assert failed_lines(
        run("check", GT, DT, *baseline, "--metrics", "AP", "--output", "csv", status=1).out
    ) == ["detection-box-order (baseline),,absent from the input,,,FAILED"]


@pytest.mark.parametrize(
    ("bound", "cause"), [("20", "did you mean 0.2? Percentages are not accepted."), ("-1", "")]
)
def test_a_bound_that_no_metric_reaches(bound: str, cause: str, run: Run) -> None:
    end = f"; {cause}" if cause else "."
    expected = f"boxscore: error: --min AP must be a number from 0 to 1 for AP. Got {bound}{end}\n"
    assert " ".join(run.error("check", GT, DT, "--min", f"AP={bound}").split()) == expected.strip()


def test_a_run_configuration_may_allow(half: list[str], tmp_path: Path, run: Run) -> None:
    text = f'[ground_truth]\npath = "{GT}"\n[detections]\npath = "{half[1]}"\n[output]\n'
    (tmp_path / "run.toml").write_text(text)
    run("run", tmp_path / "run.toml", "--strict", status=2)
    (tmp_path / "run.toml").write_text(f'{text}allow = ["image-without-detections"]\n')
    run("run", tmp_path / "run.toml", "--strict")


def test_what_loaders_warn_of_fails_too(tmp_path: Path, run: Run) -> None:
    """Boxes in another form, repeated ids, another numbering: warnings of their own, by the same names."""
    rows = json.loads(Path(DT).read_text())
    for row in rows:
        x, y, w, h = row["bbox"]
        row["bbox"] = [x, y, x + w, y + h]
    path = tmp_path / "corners.json"
    path.write_text(json.dumps(rows))
    arguments = ["check", GT, str(path), "--min", "AP=0", "--output", "csv"]
    assert failed_lines(run(*arguments, status=1).out) == [
        "detection-box-order,,absent from the input,FAILED"
    ]
    run(*arguments, "--allow", "detection-box-order")
    run("evaluate", GT, path, "--strict", status=2)
    run("evaluate", GT, path, "--strict", "--allow", "detection-box-order")
    truth = json.loads(Path(GT).read_text())
    truth["annotations"][1]["id"] = truth["annotations"][0]["id"]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    assert failed_lines(
        run("check", tmp_path / "gt.json", DT, "--min", "AP=0", "--output", "csv", status=1).out
    ) == ["repeated-annotation-id,,absent from the input,FAILED"]


def test_a_result_without_its_option(tmp_path: Path, run: Run) -> None:
    assert "to check a result that boxscore wrote, use --result FILE.json" in run.error(
        "check", tmp_path / "base.json", "--min", "AP=0.3"
    )


def test_allow_knows_the_names(half: list[str], run: Run) -> None:
    assert "did you mean 'image-without-detections'?" in run.error(
        "check", *half, "--min", "AP=0", "--allow", "image-without-detection"
    )
