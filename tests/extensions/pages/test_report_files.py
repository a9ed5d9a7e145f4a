"""The report folder: what is in it, that it says what the evaluation says, and that names do no harm."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore.diagnostics import bootstrap_intervals, compare_detectors
from boxscore.extensions.pages.html import SCRIPTS, embedded_json, render_page
from boxscore.extensions.pages.view import report_view
from boxscore.reports import ReportOptions, write_comparison, write_report
from support.evaluations import HOSTILE, empty_evaluation, evaluation, hostile_evaluation, shapes
from support.examples import first_of
from support.samples import SHAPES

FAST = ReportOptions(resamples=0, date="")


def data_of(page: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return dict(json.loads(match[1]))


@pytest.mark.long
def test_the_folder_holds_what_the_evaluation_says(tmp_path: Path) -> None:
    result = shapes()
    written = write_report(result, tmp_path / "new" / "report", options=ReportOptions(resamples=50))
    names = {path.name for path in written}
    assert names == {"report.html", "report.md", "result.json", "summary.csv", "per_class.csv"}
    assert all(path.is_file() for path in written)
    stored = json.loads((tmp_path / "new" / "report" / "result.json").read_text())
    assert stored["metrics"]["AP"] == result.metrics["AP"]
    own = stored["intervals"]["AP"]
    assert own["low"] < own["estimate"] < own["high"]
    summary = pd.read_csv(tmp_path / "new" / "report" / "summary.csv", dtype=str)
    assert [float(value) for value in summary["value"]] == list(result.metrics.values())
    assert "| AP |" in (tmp_path / "new" / "report" / "report.md").read_text()


@pytest.mark.long
def test_options_by_name(tmp_path: Path) -> None:
    result = shapes()
    write_report(result, str(tmp_path), options=FAST, title="Mine")
    assert "<title>Mine" in (tmp_path / "report.html").read_text()
    result.report(tmp_path / "again", title="Mine", resamples=0, date="")
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
    for options, message in (
        ({"titel": "Mine"}, "did you mean 'title'"),
        ({"tables": "xls"}, "tables must be one of"),
        ({"plots": "jpg"}, "plots must be one of"),
        ({"gallery": -1}, "gallery must be a whole number"),
    ):
        with pytest.raises(boxscore.InputError, match=message):
            write_report(result, tmp_path / "refused", **options)
    assert not (tmp_path / "refused").exists()


@pytest.mark.long
def test_equal_results_give_equal_files(tmp_path: Path) -> None:
    options = ReportOptions(resamples=20, date="")
    for name in ("a", "b"):
        write_report(shapes(), tmp_path / name, options=options)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("form", first_of(2, ["json", "csv", "parquet"]))
@pytest.mark.parametrize("make", first_of(1, [hostile_evaluation, shapes, empty_evaluation]))
def test_every_table_reads_back(tmp_path: Path, form: str, make: object) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    result = make()  # type: ignore[operator]
    write_report(result, tmp_path, options=FAST, tables=form)  # type: ignore[arg-type]
    read = {"parquet": pd.read_parquet, "json": pd.read_json, "csv": pd.read_csv}[form]
    if form == "json":
        rows = json.loads((tmp_path / "tables" / "matches.json").read_text())
        assert len(rows) == len(result.detections)
        return
    matches = read(tmp_path / "tables" / f"matches.{form}")
    assert len(matches) == len(result.detections)
    np.testing.assert_array_equal(matches["score"], result.detections.scores)


@pytest.mark.long
@pytest.mark.parametrize("make", [shapes, hostile_evaluation, empty_evaluation])
def test_the_json_keeps_its_schema(tmp_path: Path, make: object) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    write_report(make(), tmp_path, options=FAST)  # type: ignore[operator]
    schema = json.loads(resources.files("boxscore.reports").joinpath("assets/result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((tmp_path / "result.json").read_text()), schema)


@pytest.mark.long
def test_no_csv_cell_is_a_formula_and_no_markdown_cell_breaks_out(tmp_path: Path) -> None:
    write_report(hostile_evaluation(), tmp_path, options=FAST, tables="csv")
    for path in tmp_path.rglob("*.csv"):
        for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8"))):
            for cell in row:
                starts = cell[:1] in "=+-@\t\r" if cell else False
                assert not starts or re.fullmatch(r"-?[0-9.e+-]+", cell), f"{path.name}: {cell!r}"
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "<script" not in markdown
    assert "\x1b" not in markdown
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
    assert len(widths) == 2  # of two tables


@pytest.mark.parametrize("name", HOSTILE)
def test_embedded_json_cannot_end_its_element(name: str) -> None:
    text = embedded_json({"name": [name], name: float("nan")})
    assert not set("<>&\u2028\u2029") & set(text)
    stored = json.loads(text)
    assert len(stored["name"][0]) == len(name)


def test_the_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    page = render_page(report_view(hostile_evaluation(), options=FAST))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    rules = policy[1].replace("&#39;", "'")
    assert rules.startswith("default-src 'none';")
    assert "unsafe" not in rules
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert body is not None
        digest = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in rules
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(src|href)=\"?(https?:)?//", outside)
    assert " style=" not in re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)


def test_the_script_never_parses_text_as_html() -> None:
    folder = resources.files("boxscore.extensions.pages").joinpath("assets")
    script = "".join(folder.joinpath(f"{name}.js").read_text() for name in SCRIPTS)
    forbidden = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "fetch(",
    )
    assert [word for word in forbidden if word in script] == []
    assert len(script) < 120_000  # an eighth of the megabyte that a page of 80 classes may have


@pytest.mark.long
def test_a_half_written_report_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(shapes(), tmp_path, options=FAST)
    before = (tmp_path / "report.html").read_bytes()
    (tmp_path / "tables").write_text("a file stands where the folder should be")
    with pytest.raises(boxscore.InputError, match="tables"):
        write_report(evaluation(), tmp_path, options=FAST, tables="csv")
    assert len((tmp_path / "report.html").read_bytes()) in (
        len(before),
        (tmp_path / "report.html").stat().st_size,
    )
    assert not list(tmp_path.glob(".*.part"))


def test_pictures_stay_inside_their_folder(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    inside = tmp_path / "images"
    inside.mkdir()
    image_module.new("RGB", (8, 8), "red").save(tmp_path / "secret.png")
    image_module.new("RGB", (8, 8), "blue").save(inside / "ok.png")
    (inside / "broken.png").write_bytes(b"not an image")
    names = ["../secret.png", str(tmp_path / "secret.png"), "ok.png", "broken.png", "missing.png"]
    result = evaluation(images=5, file_names=names)
    options = ReportOptions(resamples=0, image_folder=inside, date="")
    data = data_of(render_page(report_view(result, options=options)))
    shown = {data["images"][int(record)]["file"] for record in data["pictures"]}  # type: ignore[index, attr-defined]
    assert shown == {"ok.png"}


@pytest.mark.long
def test_a_comparison_has_a_page_of_all_and_of_each(tmp_path: Path) -> None:
    results = {
        name: evaluation(images=12, noise=noise) for name, noise in zip("abc", (6.0, 2.0, 9.0), strict=True)
    }
    options = ReportOptions(resamples=10, date="", gallery=2)
    write_comparison(results, tmp_path / "three", options=options, tables="json")
    pages = {*("report.html", "pair-1-2.html", "pair-1-3.html"), *(f"detector-{n}.html" for n in (1, 2, 3))}
    assert {path.name for path in (tmp_path / "three").iterdir()} == {*pages, "comparison.csv", "tables"}
    table = pd.read_csv(tmp_path / "three" / "comparison.csv")
    assert set(table["other"]) == {"b", "c"}
    linked = {
        page: set(re.findall(r'<a [^>]*href="([^"#]+)"', (tmp_path / "three" / page).read_text()))
        for page in pages
    }
    assert all(links <= pages for links in linked.values())
    own = {"report.html", *(page for page in pages if page.startswith("detector"))}
    assert all(links >= own for links in linked.values())
    assert linked["report.html"] == pages
    write_comparison({"a": results["a"], "b": results["b"]}, tmp_path / "two", options=options)
    assert {path.name for path in (tmp_path / "two").iterdir()} == {
        *("report.html", "detector-1.html", "detector-2.html", "comparison.csv")
    }
    with pytest.raises(boxscore.InputError, match="two results"):
        write_comparison({"a": evaluation()}, tmp_path)


@pytest.mark.long
def test_intervals_unless_they_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = evaluation(images=40, classes=365, boxes=30)
    assert ReportOptions().has_intervals(many)
    assert ReportOptions(resamples=1).has_intervals(many)
    assert not ReportOptions(resamples=0).has_intervals(many)
    write_report(evaluation(), tmp_path / "some", date="")
    own = bootstrap_intervals(evaluation()).total
    rest = f"{own.estimate[0]:.3f} (95% interval {own.low[0]:.3f} to {own.high[0]:.3f})"
    page = (tmp_path / "some" / "report.html").read_text()
    assert f">Without the bias of few images {rest}<" in page
    assert f"AP {own.value[0]:.3f}; without the bias of few images {rest}. " in page
    # The time is that of each set of images, 41 here, and of the corrections.
    monkeypatch.setattr("boxscore.extensions.pages.view._seconds_of_a_set", lambda _: 60 / 41 / 1.3 + 1e-6)
    assert not ReportOptions().has_intervals(many)
    assert ReportOptions().has_intervals(evaluation(images=39))
    assert ReportOptions(resamples=1).has_intervals(many)
    monkeypatch.setattr("boxscore.extensions.pages.view.LONGEST_INTERVALS", 1e-4)
    write_report(evaluation(), tmp_path / "none", date="")
    page = (tmp_path / "none" / "report.html").read_text()
    assert "95% interval" not in page
    assert "they would take longer than a minute (use --resamples 1)" in page
    assert "95% interval" not in (tmp_path / "none" / "report.md").read_text()
    assert json.loads((tmp_path / "none" / "result.json").read_text())["intervals"] == {}


@pytest.mark.long
def test_intervals_in_every_file(tmp_path: Path) -> None:
    """AP of many classes in few images is above its interval; JSON, Markdown and page have the same ends."""
    result = evaluation(images=150, boxes=8, classes=300, noise=3.0)
    every = bootstrap_intervals(result)
    own = every.total
    write_report(result, tmp_path / "a", date="", resamples=1)
    write_report(result, tmp_path / "b", date="", resamples=300)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    stored = json.loads((tmp_path / "a" / "result.json").read_text())
    assert own.value[0] > own.high[0]
    assert stored["intervals"] == {
        key: {"estimate": own.estimate[m], "low": own.low[m], "high": own.high[m]}
        for m, key in enumerate(every.metrics)
        if not np.isnan(own.low[m])
    }
    text = (tmp_path / "a" / "report.md").read_text()
    assert (
        f"\n### 95% intervals\n\nAP {own.value[0]:.3f}; without the bias of few images {own.estimate[0]:.3f} "
        f"(95% interval {own.low[0]:.3f} to {own.high[0]:.3f}).\n\n| metric | value | estimate | low | high |\n"
    ) in text
    line = " | ".join(f"{numbers[0]:.4f}" for numbers in (own.value, own.estimate, own.low, own.high))
    assert f"\n| AP | {line} |\n" in text
    assert every.note.replace("_", "\\_") in text
    tiles = {tile["key"]: tile for tile in report_view(result)["summary"]}
    assert tiles["AP"]["has_estimate"]
    assert not tiles["AR100"]["has_estimate"]
    m = every.metrics.index("AR100")
    ends = f"(95% interval {own.low[m]:.3f} to {own.high[m]:.3f})"
    assert tiles["AR100"]["sentence"] == f"AR100 {own.value[m]:.3f} {ends}"


@pytest.mark.long
def test_every_page_of_a_comparison_has_the_same_numbers(tmp_path: Path) -> None:
    results = {"a": evaluation(), "b": evaluation(noise=2.0), "c": evaluation(noise=9.0)}
    comparison = compare_detectors(results, resamples=30, seed=3)
    comparison.report(tmp_path, date="")
    overview = (tmp_path / "report.html").read_text()
    for number, (name, result) in enumerate(results.items(), start=1):
        own = bootstrap_intervals(result, seed=3).total
        page = (tmp_path / f"detector-{number}.html").read_text()
        assert f"<title>{name} " in page
        low, high = f"{own.low[0]:.3f}", f"{own.high[0]:.3f}"
        assert f"interval {low} to {high}" in page
        assert f"{own.estimate[0]:.3f}<br>{low}\u2013{high}" in overview
    sentence = "30 swaps, seed 3"
    assert sentence in overview
    assert "adjusted for all 3 pairs (Holm)" in overview


def test_the_sample_page_says_what_the_golden_file_says() -> None:
    expected = json.loads((SHAPES / "expected.json").read_text())
    view = report_view(shapes(), options=FAST)
    shown = {tile["key"]: tile["value"] for tile in view["summary"]}
    known = expected.get("metrics", expected)
    for key, value in shown.items():
        if key in known:
            assert value == pytest.approx(known[key], abs=1e-12)
