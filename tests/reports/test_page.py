"""What the page has before its script runs: its order, its menu, its table."""

from __future__ import annotations

import re

import pytest

from boxscore.reports import ReportOptions
from boxscore.reports.html import render_page
from boxscore.reports.view import report_view
from support.evaluations import empty_evaluation, evaluation, hostile_evaluation, shapes

FAST = ReportOptions(date="", resamples=0, gallery=2)


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="(\w+)"', page)


def menu(page: str) -> list[str]:
    return re.findall(r'href="#(\w+)"', page.partition('<nav class="bar-nav"')[2].partition("</nav>")[0])


@pytest.mark.parametrize("make", [shapes, empty_evaluation, hostile_evaluation])
def test_the_menu_has_the_sections_in_the_order_of_the_page(make) -> None:  # type: ignore[no-untyped-def]
    page = render_page(report_view(make(), options=FAST))
    assert menu(page) == sections(page)
    assert menu(page)[0] == "summary"


def test_the_lowest_classes_stand_first() -> None:
    result = shapes()
    table = report_view(result, options=ReportOptions(resamples=5, gallery=2))["table"]
    ap = result.class_values["AP"].tolist()
    objects = result.class_counts["ground_truths"].tolist()
    slow = sorted(range(len(ap)), key=lambda k: (ap[k] != ap[k], ap[k] if ap[k] == ap[k] else 0, -objects[k]))
    assert [row[0] for row in table["rows"]] == slow
    kinds = [column["kind"] for column in table["columns"]]
    assert kinds[:5] == ["bar", "count", "count", "interval", "spark"]
    for row in table["rows"]:
        assert row[4] == table["ends"][row[0]]


def test_of_equal_classes_the_one_with_more_objects_stands_first() -> None:
    result = evaluation(classes=12, images=40)
    equal = result.class_values["AP"]
    equal.setflags(write=True)  # which nobody does by accident
    equal[:] = 0.0
    rows = report_view(result, options=FAST)["table"]["rows"]
    assert [row[2] for row in rows] == sorted((row[2] for row in rows), reverse=True)
