"""What the page has before its script runs: its order, its menu, its table."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import bootstrap_intervals, class_group_scores, operating_points
from boxscore.extensions.pages.class_table import number_or_none, stops_over
from boxscore.extensions.pages.html import render_page
from boxscore.extensions.pages.view import file_names, report_view
from boxscore.reports import ReportOptions
from support.evaluations import empty_evaluation, evaluation, hostile_evaluation, shapes
from support.running import Run
from support.samples import DT, GT, SHAPES

COUNTS = ("true_positives", "false_positives", "false_negatives")
FAST = ReportOptions(date="", resamples=0, gallery=2)


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="(\w+)"', page)


def menu(page: str) -> list[str]:
    return re.findall(r'href="#(\w+)"', page.partition('<nav class="bar-nav"')[2].partition("</nav>")[0])


@pytest.mark.long
@pytest.mark.parametrize("make", [shapes, empty_evaluation, hostile_evaluation])
def test_the_menu_has_the_sections_in_the_order_of_the_page(make) -> None:  # type: ignore[no-untyped-def]
    page = render_page(report_view(make(), options=FAST))
    assert menu(page) == sections(page)
    assert menu(page)[0] == "summary"


@pytest.mark.long
def test_the_lowest_classes_stand_first() -> None:
    result = shapes()
    table = report_view(result, options=ReportOptions(resamples=5, gallery=2))["table"]
    ap = result.class_values["AP"].tolist()
    objects = result.class_counts["ground_truths"].tolist()
    found = result.class_counts["detections"].tolist()
    there = [k for k in range(len(ap)) if objects[k] or found[k]]
    assert len(there) == len(ap) - 1
    slow = sorted(there, key=lambda k: (ap[k] != ap[k], ap[k] if ap[k] == ap[k] else 0, -objects[k]))
    assert [row[0] for row in table["rows"]] == slow
    kinds = [column["kind"] for column in table["columns"]]
    assert kinds[:6] == ["bar", "count", "count", "ratio", "interval", "spark"]
    assert table["columns"][3]["label"] == "estimate"
    own = bootstrap_intervals(result).per_class
    for row in table["rows"]:
        k = row[0]
        estimate, *ends = (float(column[k, 0]) for column in (own.estimate, own.low, own.high))
        assert row[4] == number_or_none(estimate)
        assert row[5] == table["ends"][k] == [number_or_none(end) for end in ends]
    assert sum(end is not None for end, _ in table["ends"]) > 3


def test_rates_and_counts_are_at_the_score_threshold_of_the_page() -> None:
    result = shapes()
    table = report_view(result, options=FAST)["table"]
    at = {column["label"]: place for place, column in enumerate(table["columns"], start=1)}
    truth = result.ground_truth
    kept = result.matches.query("score >= @result.operating_score")
    for row in table["rows"]:
        k = row[0]
        outcomes = kept.loc[kept["class"] == result.labels[k], "outcome"].tolist()
        true, false = outcomes.count("true positive"), outcomes.count("false positive")
        objects = int((truth.category[~truth.crowd] == k).sum())
        assert [row[at[name]] for name in ("TP", "FP", "FN")] == [true, false, objects - true]
        precision = true / (true + false) if true + false else None
        recall = true / objects if objects else None
        assert [row[at["precision"]], row[at["recall"]]] == [precision, recall]


@pytest.mark.parametrize(
    "result",
    [shapes(), evaluation(classes=12, images=40, seed=3), evaluation(classes=3, images=9, seed=5)],
    ids=["shapes", "12 classes", "3 classes"],
)
def test_the_numbers_at_every_stop_are_those_of_operating_points(result: boxscore.Evaluation) -> None:
    view = report_view(result, options=FAST)["stops"]
    scores, stated = view["scores"], view["stated"]
    assert scores == sorted({*scores})
    assert scores[stated] == result.operating_score
    lowest, highest = result.detections.scores.min(), result.detections.scores.max()
    assert scores[0] <= lowest
    assert highest - scores[-1] <= max(np.diff(scores))
    assert 11 <= len(scores) <= 104
    for position, score in enumerate(scores):
        points = operating_points(result, at_score=score).per_class
        for k, (objects, *gains) in view["classes"].items():
            true, false = (sum(side[: len(scores) - position]) for side in gains)
            counts = (getattr(points, name)[int(k)] for name in COUNTS)
            assert (true, false, objects - true) == tuple(counts)


@pytest.mark.parametrize(
    ("lowest", "highest", "stated", "first", "count"),
    [
        (0.001, 0.999, 0.4237, [0.0, 0.01, 0.02], 101),
        (0.6, 0.9993, 0.6, [0.6, 0.605, 0.61], 80),
        (-7.5, 12.25, 1.1, [-7.6, -7.4, -7.2], 101),
        (3e-5, 8e-5, 5e-5, [3e-5, 3.1e-5, 3.2e-5], 51),
        (0.0, 1e6, 17.0, [0.0, 17.0, 1e4], 102),
        (0.5, 0.5, 0.5, [0.5], 1),
    ],
)
def test_stops_are_round_scores(
    lowest: float, highest: float, stated: float, first: list[float], count: int
) -> None:
    found = stops_over(lowest, highest, stated).tolist()
    assert (found[:3], len(found)) == (first, count)


def test_many_classes_have_fewer_stops() -> None:
    assert len(stops_over(0.001, 0.999, 0.4237, 17)) == 11
    many, few = (report_view(evaluation(classes=K, images=40), options=FAST)["stops"] for K in (2_000, 3))
    assert len(many["scores"]) <= 13 < len(few["scores"])


def test_without_scores_nothing_moves() -> None:
    truth, found = shapes().ground_truth, shapes().detections.without_scores()
    assert report_view(boxscore.evaluate(truth, found, protocol="scoreless"), options=FAST)["stops"] is None


def test_of_equal_classes_the_one_with_more_objects_stands_first() -> None:
    result = evaluation(classes=12, images=40)
    equal = result.class_values["AP"]
    equal.setflags(write=True)  # which nobody does by accident
    equal[:] = 0.0
    rows = report_view(result, options=FAST)["table"]["rows"]
    assert [row[2] for row in rows] == sorted((row[2] for row in rows), reverse=True)


def test_classes_without_objects_and_detections_are_only_counted() -> None:
    result = evaluation(classes=30, images=40)
    truth, detections = result.ground_truth, result.detections
    rows = np.flatnonzero(truth.image == 3), np.flatnonzero(detections.image == 3)
    one = boxscore.evaluate(truth.take(rows[0]), detections.take(rows[1]))
    there = {*truth.category[rows[0]].tolist(), *detections.category[rows[1]].tolist()}
    view = report_view(one, options=FAST)
    assert {row[0] for row in view["table"]["rows"]} == there
    assert view["table"]["absent"] == 30 - len(there)
    assert {*view["confusion"]["shown"]} <= {*there, 30}
    assert view["confusion"]["present"] == len(view["confusion"]["shown"]) - 1
    page = render_page(view)
    assert page.count("<tr data-k=") == len(there)
    assert f"Not listed: {30 - len(there)} classes without objects and detections." in page
    values = {tile["area"]: tile["value"] for tile in view["summary"] if tile["metric"] == "AP"}
    assert {row["name"] for row in view["sizes"] or []} == {
        area for area, value in values.items() if value is not None or area == "all"
    }


@pytest.mark.long
def test_a_page_says_no_absolute_path(tmp_path: Path) -> None:
    for name in ("instances.json", "detections.json"):
        shutil.copy(SHAPES / name, tmp_path)
    truth = boxscore.load_ground_truth(tmp_path / "instances.json")
    detections = boxscore.load_detections(tmp_path / "detections.json", truth)
    page = render_page(report_view(boxscore.evaluate(truth, detections), options=FAST))
    assert str(tmp_path) not in page
    footer = page.partition("<footer")[2].partition("</footer>")[0]
    assert ">instances.json</span>" in footer
    assert ">detections.json</span>" in footer


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (("/a/b/gt.json", "/c/dt.json"), ["gt.json", "dt.json"]),
        (("/a/gt/labels", "/a/dt/labels"), ["gt/labels", "dt/labels"]),
        (("arrays", "arrays"), ["arrays", "arrays"]),
        (("", "/"), ["", "/"]),
    ],
)
def test_names_of_files(sources: tuple[str, str], names: list[str]) -> None:
    assert [name.replace("\\", "/") for name in file_names(*sources)] == names


def test_nothing_is_shown_empty() -> None:
    page = render_page(report_view(empty_evaluation(), options=FAST))
    assert sections(page) == ["summary", "classes", "curves", "gallery"]


GROUPS = {"round": ["circle", "hexagon"], "none": ["moon"], "others": ["*"]}


def test_groups_of_classes_stand_below_the_summary() -> None:
    result = shapes()
    view = report_view(result, options=ReportOptions(date="", resamples=0, gallery=2, class_groups=GROUPS))
    scores = class_group_scores(result, GROUPS)
    assert view["groups"]["group"] == ["round", "none", "others", "(all)"]
    for column, key in enumerate(scores.metrics):
        values = [*scores.values[:, column].tolist(), result.metrics[key]]
        assert view["groups"][key] == [number_or_none(value) for value in values]
    assert view["groups"]["AP"][1] is None
    page = render_page(view)
    table = page.partition('<table id="group-table"')[2].partition("</table>")[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    assert [row[1:4] for row in rows] == [
        ["2", "50", "144"],
        ["0", "0", "0"],
        ["3", "58", "105"],
        ["5", "108", "249"],
    ]
    assert rows[1][0] == "\N{EN DASH}"
    assert rows[0][0] == f"{scores.values[0, 0]:.3f}"
    assert "group-table" not in render_page(report_view(result, options=FAST))


def test_groups_of_classes_are_printed_and_reported(tmp_path: Path, run: Run) -> None:
    (tmp_path / "groups.txt").write_text("round=circle,hexagon\nothers=*\n")
    groups = ("--class-groups", tmp_path / "groups.txt", "--resamples", "0")
    printed = run("evaluate", GT, DT, *groups, "--report", tmp_path / "one")
    assert re.search(r"Groups of classes:\n\n.*\nround  .*\nothers .*\n\(all\) ", printed.err)
    run("report", GT, DT, *groups, "--report", tmp_path / "two")
    texts = [(tmp_path / folder / "report.md").read_text() for folder in ("one", "two")]
    assert (
        texts[0].partition("### Groups of classes")[2] == texts[1].partition("### Groups of classes")[2] != ""
    )
    assert "a class of a group must be one of" in run.error(
        "report", GT, DT, "--class-groups", "a=nothing", "--report", tmp_path / "three"
    )
    assert not (tmp_path / "three").exists()
