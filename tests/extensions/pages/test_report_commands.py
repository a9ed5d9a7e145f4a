"""The commands report, draw, check, and --report of compare and evaluate."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from boxscore.cli import main
from boxscore.extensions.pages.draw_command import plain_file_name
from support.running import Run
from support.samples import DT, GT, SHAPES

INPUTS = ["--gt", GT, "--dt", DT]


def result_file(folder: Path, run: Run, **metrics: float | None) -> Path:
    stored = json.loads(run("evaluate", *INPUTS, "--output", "json").out)
    stored["metrics"].update(metrics)
    path = folder / "baseline.json"
    path.write_text(json.dumps(stored))
    return path


@pytest.mark.long
def test_report_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["report", *INPUTS, "--report", str(tmp_path / "out"), "--resamples", "0", "--title", "My run"])
        == 0
    )
    assert "My run" in (tmp_path / "out" / "report.html").read_text()
    assert "report written to" in capsys.readouterr().err


@pytest.mark.long
def test_evaluate_and_compare_write_reports(tmp_path: Path, run: Run) -> None:
    run("evaluate", *INPUTS, "--report", tmp_path / "one", "--resamples", "0")
    assert (tmp_path / "one" / "report.html").is_file()
    other = json.loads((SHAPES / "detections.json").read_text())[::2]
    (tmp_path / "half.json").write_text(json.dumps(other))
    both = [*INPUTS, str(tmp_path / "half.json"), "--resamples", "20", "--report", str(tmp_path / "two")]
    run("compare", *both)
    page = (tmp_path / "two" / "report.html").read_text()
    assert "half compared with detections" in page


def test_a_report_is_not_replaced_in_silence(tmp_path: Path, run: Run) -> None:
    words = [*INPUTS, "--report", tmp_path / "out", "--resamples", "0", "--title"]
    for title, more, folder in (("one", [], "out"), ("two", [], "out-2"), ("three", [], "out-3")):
        errors = run("report", *words, title, *more).err
        assert f"report written to {tmp_path / folder / 'report.html'}" in errors
        assert ("--overwrite replaces it" in errors) == (folder != "out")
        assert f"<title>{title}" in (tmp_path / folder / "report.html").read_text()
    run("report", *words, "four", "--overwrite")
    assert "<title>four" in (tmp_path / "out" / "report.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-2", "out-3"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--image-folder", "nowhere"], "--image-folder must be a folder"),
        (["--gallery", "-1"], "gallery must be a whole number"),
        (["--resamples", "-5"], "resamples must be a whole number"),
    ],
)
def test_bad_options_say_so(tmp_path: Path, run: Run, option: list[str], message: str) -> None:
    assert message in run.error("report", *INPUTS, "--report", tmp_path / "out", *option)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("package", "option"),
    [("matplotlib", ["--plots", "png"]), ("pyarrow.parquet", ["--tables", "parquet"]), ("jinja2", [])],
)
def test_a_missing_package_is_named_and_nothing_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    option: list[str],
) -> None:
    from boxscore.extensions.pages import html

    html._environment.cache_clear()
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    folder = tmp_path / "out"
    assert main(["report", *INPUTS, "--report", str(folder), "--resamples", "0", *option]) == 2
    html._environment.cache_clear()
    assert "pip install" in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.long
@pytest.mark.parametrize("form", ["png", "svg"])
def test_draw_writes_the_worst_images(tmp_path: Path, run: Run, form: str) -> None:
    pytest.importorskip("matplotlib")
    folder = str(SHAPES / "images")
    arguments = [*INPUTS, "--image-folder", folder, "--output", str(tmp_path), "--worst", "2", "--form", form]
    printed = run("draw", *arguments).out.split()
    assert len(printed) == 2
    assert all(Path(name).is_file() and name.endswith(form) for name in printed)


@pytest.mark.long
def test_draw_takes_chosen_images(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("matplotlib")
    assert len(run("draw", *INPUTS, "--images", "101", "109", "--output", tmp_path).out.split()) == 2


@pytest.mark.long
def test_draw_goes_on_without_a_picture_that_cannot_be_read(tmp_path: Path, run: Run) -> None:
    """With a warning and a blank frame, as in a report; with --strict nothing is written."""
    pytest.importorskip("matplotlib")
    images, out = tmp_path / "images", tmp_path / "out"
    images.mkdir()
    (images / "000000000109.png").write_bytes(b"\x89PNG\r\n\x1a\n, and no more")
    (images / "000000000101.png").write_bytes((SHAPES / "images" / "000000000101.png").read_bytes())
    call = [
        "draw",
        *INPUTS,
        "--image-folder",
        str(images),
        "--images",
        "101",
        "109",
        "117",
        "--output",
        str(out),
    ]
    assert run(*call, "--strict", status=2).out == ""
    assert not out.exists()
    output, errors = run(*call)
    assert len(output.split()) == len(list(out.iterdir())) == 3
    unreadable, missing = errors.splitlines()
    assert unreadable.startswith(
        f"boxscore: warning: {images / '000000000109.png'}: cannot be read as an image: "
    )
    assert unreadable.endswith("; drawing on a blank frame.")
    assert missing == f"boxscore: warning: image 117 not found in {images}; drawing on a blank frame."


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/b.jpg", "C:\\x\\y.png", "..", "<script>", "\u202e.png", "x" * 300, ""]
)
def test_drawn_files_have_harmless_names(name: str) -> None:
    plain = plain_file_name(name)
    assert 0 < len(plain) <= 80
    assert not set(plain) & set("/\\<>:\u202e")
    assert not plain.startswith(".")


def test_check_passes_and_fails(tmp_path: Path, run: Run) -> None:
    assert "all checks passed" in run("check", *INPUTS, "--min", "AP=0.3", "AP50=0.5", "--max", "AP=0.9").out
    assert "| AP | 0.3400" in run(
        "check", *INPUTS, "--min", "AP=0.9", "--output", "markdown", status=1
    ).out.replace("0.3399", "0.3400")


def test_bounds_given_one_by_one_all_count(run: Run) -> None:
    bounds = ["--min", "AP=.99", "--min", "circle AP=0", "AP50=0"]
    record = json.loads(
        run("check", *INPUTS, *bounds, "--metrics", "AP", "--metrics", "AP50", "-o", "json", status=1).out
    )
    assert [(check["class"], check["metric"], check["passed"]) for check in record["checks"]] == [
        (None, "AP", False),
        ("circle", "AP", True),
        (None, "AP50", True),
    ]


@pytest.mark.long
def test_a_comparison_keeps_its_verdict_in_80_columns(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    one, kept = SHAPES / "detections.json", tmp_path / "suppressed_by_a_long_name.json"
    run("nms", one, "-o", kept, "--iou-threshold", ".3")
    command = ["compare", GT, str(one), str(kept), "--resamples", "20"]
    shown, remarks = run(*command)
    lines = shown.splitlines()
    said = " ".join(lines)
    assert said.startswith(
        "The data cannot tell which of suppressed_by_a_long_name and detections is better: AP"
    )
    assert "detections (282 detections), suppressed_by_a_long_name (214 detections)" in said
    assert said.count("Verdict: better or worse if the p-value") == 1
    head = lines.index("")
    assert lines[head - 1] == "detections (first) and suppressed_by_a_long_name (other)"
    head += 1
    assert "verdict" in lines[head + 1].split()
    assert max(map(len, lines[:-1])) <= 80
    assert all({"tell", "better", "worse"} & set(line.split()) for line in lines[head + 2 : head + 14])
    assert remarks == ""


@pytest.mark.long
def test_a_comparison_says_what_is_odd_about_each_detector(run: Run, tmp_path: Path) -> None:
    detections = json.loads((SHAPES / "detections.json").read_text())
    few = tmp_path / "few.json"
    few.write_text(json.dumps([one for one in detections if one["image_id"] == detections[0]["image_id"]]))
    command = ["compare", GT, DT, str(few)]
    remarks = " ".join(run(*command, "--resamples", "3").err.split())
    assert "boxscore: few: error in the input: " in remarks
    assert "without detections. Are these results of another split" in remarks


@pytest.mark.long
def test_check_against_a_baseline(tmp_path: Path, run: Run) -> None:
    same = result_file(tmp_path, run)
    run("check", "--result", same, "--no-regression", same)
    better = result_file(tmp_path, run, AP=0.341)
    run("check", *INPUTS, "--no-regression", better, status=1)
    run("check", *INPUTS, "--no-regression", better, "--tolerance", "0.01")
    run("check", *INPUTS, "--no-regression", better, "--metrics", "AP50")
    stored = json.loads(run("check", *INPUTS, "--no-regression", better, "--output", "json", status=1).out)
    assert stored["passed"] is False
    assert [check["metric"] for check in stored["checks"] if not check["passed"]] == ["AP"]


def test_an_undefined_number_reaches_nothing(tmp_path: Path, run: Run) -> None:
    path = result_file(tmp_path, run, AP=None)
    assert "FAILED" in run("check", "--result", path, "--min", "AP=0", status=1).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--min", "AP"], "must have the form METRIC=NUMBER"),
        (["--min", "AP=x"], "must end in a number"),
        (["--min", "AP=nan"], "must be a number"),
        (["--min", "APP=0.1"], "did you mean 'AP'?"),
        ([], "check needs at least one of --min, --max, --no-regression"),
        (["--min", "AP=0", "--tolerance", "-1"], "--tolerance must be"),
        (["--no-regression", "nowhere.json"], "cannot be read"),
    ],
)
def test_check_refuses_what_it_cannot_check(run: Run, arguments: list[str], message: str) -> None:
    assert message in run.error("check", *INPUTS, *arguments)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"metrics": 3}', '{"metrics": {"AP": "x"}, "signature": "s"}']
)
def test_a_result_must_be_a_result(tmp_path: Path, run: Run, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    assert "bad.json: not a valid result: m" in run.error("check", "--result", path, "--min", "AP=0")


def test_a_baseline_of_another_protocol_is_refused(tmp_path: Path, run: Run) -> None:
    path = result_file(tmp_path, run)
    assert "results of different protocols cannot be compared" in run.error(
        "check", *INPUTS, "--protocol", "voc2012", "--no-regression", path
    )


@pytest.mark.long
def test_an_image_folder_beside_several_detectors(tmp_path: Path) -> None:
    """COCO files hold the sizes of images: a folder gives the report its pictures and is not read for sizes."""
    folder = SHAPES / "images"
    other = tmp_path / "other.json"
    other.write_bytes(Path(DT).read_bytes())
    files = ["--image-folder", str(folder), "--resamples", "10", "--quiet"]
    report = tmp_path / "report"
    assert main(["compare", str(GT), str(DT), str(other), "--report", str(report), *files]) == 0
    assert "data:image/jpeg;base64" in (report / "detector-2.html").read_text(encoding="utf-8")
    # 1 where the checks fail, 2 where a file is refused.
    assert main(["check", str(GT), str(DT), "--baseline-detections", str(other), *files]) == 0
