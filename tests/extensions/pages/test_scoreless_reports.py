"""Reports, pages, plots and tables of detections without scores: sections that need them are left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics, reports
from boxscore.extensions.pages.view import report_view
from boxscore.reports import ReportOptions
from support.evaluations import evaluation

NEED_SCORES = ("curves", "confidence", "calibration", "analysis")


def scoreless(**options) -> boxscore.Evaluation:
    scored = evaluation(**options)
    detections = scored.detections.without_scores()
    return boxscore.evaluate(scored.ground_truth, detections, digest=False)


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="([a-z_]+)"', page)


def payload(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("report")
    scoreless().report(made, resamples=20, tables="csv", plots="svg")
    return made


def test_the_page_leaves_out_what_needs_scores_and_says_so(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not set(sections(page)) & set(NEED_SCORES)
    assert {"summary", "errors", "sizes", "classes", "confusion", "gallery"} <= set(sections(page))
    assert page.count("omitted because they need scores") == 1
    assert "Detections lack scores" in page
    assert "confident" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)


def test_costs_and_thresholds_are_of_f1(folder):
    result = scoreless()
    data = payload((folder / "report.html").read_text(encoding="utf-8"))
    assert data["errors"]["unit"] == data["by_iou"]["metric"] == "F1"
    assert data["errors"]["value"] == pytest.approx(result["F1_50"], abs=5e-5)
    assert data["by_iou"]["mean"][0] == pytest.approx(result["F1_50"], abs=5e-5)
    assert np.mean(data["by_iou"]["mean"]) == pytest.approx(result["F1"], abs=5e-5)
    of_class = [None if line is None else line[0] / 1000 for line in data["by_iou"]["classes"]]
    assert of_class == pytest.approx(result.class_values["F1_50"].tolist(), abs=5e-4)


def test_boxes_are_drawn_without_a_score(folder):
    data = payload((folder / "report.html").read_text(encoding="utf-8"))
    boxes = [box for image in data["images"] for box in image["boxes"]]
    assert {box[5] for box in boxes} >= {0, 1, 3}
    assert all(box[6] is None for box in boxes)
    assert data["gallery"]["worst"]
    assert not data["gallery"]["confident"]
    assert not data["surest"]
    assert data["gallery"]["score"] is None


def test_tables_and_plots_are_those_that_there_are(folder):
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"error_types.csv", "top_confusions.csv", "matches.csv", "errors.svg", "per_class.svg"} <= names
    assert not {name for name in names if name.startswith(("pr_curve", "f1_curve", "froc", "reliability"))}
    head = (folder / "tables" / "error_types.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head == "class,error,count,f1,f1_without,cost"
    assert "remark" in json.loads((folder / "result.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("count", [2, 3])
def test_pages_of_several_detectors(count, tmp_path):
    first = scoreless()
    few = {
        f"detector {n}": boxscore.evaluate(
            first.ground_truth, first.detections[: len(first.detections) - 9 * n]
        )
        for n in range(count)
    }
    reports.write_comparison(few, tmp_path, resamples=20)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not set(sections(page)) & set(NEED_SCORES)
    assert page.count("omitted because they need scores") == 1
    assert "F1 at IoU 0.50" in page
    table = reports.paper_table(diagnostics.compare_detectors(few, resamples=20))
    assert r"Detector & F1\_50 & F1\_75 & F1\_95 & F1 \\" in table


def test_a_report_without_a_detection_or_an_object(tmp_path):
    truth = scoreless().ground_truth
    none = boxscore.Detections.from_arrays([], [], np.empty((0, 4)), [])
    boxscore.evaluate(truth, none, protocol="scoreless", digest=False).report(tmp_path / "a", resamples=0)
    nothing = boxscore.GroundTruth.from_arrays(
        [], [], np.empty((0, 4)), images=truth.images, categories=["a"]
    )
    found = boxscore.Detections.from_arrays([0], ["a"], [[0, 0, 9, 9]])
    boxscore.evaluate(nothing, found, digest=False).report(tmp_path / "b", resamples=0)
    assert (tmp_path / "a" / "report.html").exists()
    assert (tmp_path / "b" / "report.html").exists()


@pytest.mark.parametrize("kind", ["pr_curve", "f1_curve", "froc", "error_curves", "reliability"])
def test_a_plot_that_needs_scores_is_refused_in_one_line(kind):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    with pytest.raises(boxscore.InputError, match="the detections must have scores") as error:
        scoreless().plot(kind)
    assert "\n" not in str(error.value)


def test_boxes_and_pairs_over_an_image():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = scoreless()
    truth, detections = result.ground_truth, result.detections
    name = truth.images.ids.tolist()[0]
    for draw in (boxscore.plots.draw_boxes, boxscore.plots.draw_pairs):
        texts = [text.get_text() for text in draw(None, truth, detections, image_id=name).axes[0].texts]
        assert any("class" in text for text in texts)
        assert not any(re.search(r"class \d+ 0\.\d\d$", text) for text in texts)


def test_conclusions_speak_of_f1():
    view = report_view(scoreless(), options=ReportOptions(resamples=0, date=""))
    texts = " ".join(each.text for each in view["conclusions"])
    assert " F1: " in texts
    assert "AP" not in texts
    assert "threshold" not in texts


def test_tiles_name_metrics_as_they_are_written():
    kinds = [tile["kind"] for tile in report_view(scoreless(), options=ReportOptions(resamples=0))["summary"]]
    assert {"F1, all together", "precision", "mean IoU of matches", "AP, lowest of all orders"} <= set(kinds)
