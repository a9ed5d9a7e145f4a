"""The HTML report in a real browser: it works, asks for nothing, and is harmless and accessible."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore import diagnostics
from boxscore.reports import ReportOptions, write_comparison, write_report
from support.browser import Page, open_browser
from support.evaluations import empty_evaluation, evaluation, hostile_evaluation, shapes
from support.real_data import real
from support.samples import SHAPES

LARGEST = 5_000_000
"""Bytes of a report without images."""

LARGEST_OF_EIGHTY_CLASSES = 1_000_000


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with open_browser() as opened:
        yield opened


def written(result: boxscore.Evaluation, folder: Path, **options: Any) -> Path:
    write_report(result, folder, options=ReportOptions(date="", **options))
    return folder / "report.html"


def assert_quiet(page: Page) -> None:
    assert page.console() == []
    assert page.requests() == []
    assert page.run("return document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    menu = page.run("return [...document.querySelectorAll('.bar-nav a')].map(a => a.hash.slice(1))")
    assert menu == page.run("return [...document.querySelectorAll('main section')].map(s => s.id)")


def column(page: Page, number: int) -> list[str]:
    rows = "[...document.querySelectorAll('#class-table tbody tr')]"
    return list(page.run(f"const n = arguments[0]; return {rows}.map(r => r.cells[n].dataset.v)", number))


def use_everything(page: Page) -> None:
    """Sort, filter, hover, pick, click a cell, open an image; as a user would."""
    values = [float(value) for value in column(page, 1) if value]
    assert values == sorted(values)
    assert page.find("#class-table thead th:nth-child(2)").get_attribute("aria-sort") == "ascending"
    page.click("#class-table thead th:nth-child(2) button")
    values = [float(value) for value in column(page, 1) if value]
    assert values == sorted(values, reverse=True)
    page.click("#class-table thead th:nth-child(2) button")
    values = [float(value) for value in column(page, 1) if value]
    assert values == sorted(values)
    assert page.find("#class-table thead th:nth-child(2)").get_attribute("aria-sort") == "ascending"

    first = column(page, 0)[-1]
    page.find("#class-filter").send_keys(first)
    shown = [row for row in page.every("#class-table tbody tr") if row.is_displayed()]
    assert first in [row.find_element("css selector", "th").get_attribute("data-v") for row in shown]
    page.find("#class-filter").clear()
    page.run("document.getElementById('class-filter').dispatchEvent(new Event('input'))")

    chart = page.find("#pr-chart svg")
    page.scroll_to(chart)
    page.run(
        "const s = document.querySelector('#pr-chart svg'), b = s.getBoundingClientRect(),"
        " p = document.querySelector('#pr-chart .curve.main'),"
        " m = p.getPointAtLength(p.getTotalLength() * 0.2),"
        " k = b.width / s.viewBox.baseVal.width;"
        "window.target = [Math.round(m.x * k - b.width / 2), Math.round(m.y * k - b.height / 2)]"
    )
    page.hover(chart, *page.run("return window.target"))
    tip = page.text(".tip")
    assert "mean over classes" in tip
    assert "recall" in tip
    assert "precision" in tip

    select = page.find("#pr-class")
    page.run(
        "arguments[0].value = arguments[0].options[1].value; arguments[0].dispatchEvent(new Event('change'))",
        select,
    )
    assert len(page.every("#pr-chips .chip")) == 1
    assert len(page.every("#pr-chart .curve.picked")) == 1
    page.find("#pr-chart [role=application]").send_keys("\ue012\ue012\ue015")  # left, left, down
    assert "recall" in page.text("#pr-chart [aria-live]")

    matrix = page.find("#matrix")
    page.scroll_to(matrix)
    x, y = page.run(
        "return [...document.querySelectorAll('#matrix .cell:not(.right)')]"
        ".map(c => c.getBoundingClientRect()).map(b => [b.x + b.width / 2, b.y + b.height / 2])"
        ".find(([x, y]) => document.elementFromPoint(x, y)?.classList.contains('hit'))"
    )
    page.mouse("mouseMoved", x, y)
    assert "of the row" in page.text(".tip")
    page.mouse("mousePressed", x, y)
    page.mouse("mouseReleased", x, y)
    assert len(page.every("#cell-panel .card, #cell-panel .about")) >= 1

    page.click("#worst-cards .card button")
    assert page.run("return document.getElementById('image-dialog').open")
    assert len(page.every("#dialog-table tbody tr")) >= 1
    page.click("#dialog-close")
    page.click("[data-outcome='3']")
    assert page.every("#worst-cards .o3") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_bundled_sample(page: Page, tmp_path: Path, width: int) -> None:
    pytest.importorskip("PIL")
    folder = SHAPES / "images"
    path = written(shapes(), tmp_path, image_folder=folder)
    page.resize(width)
    page.open(path)
    page.unfold()
    use_everything(page)
    assert page.every("#worst-cards image")
    assert_quiet(page)


def test_the_steps_of_coco_s_analysis_follow_the_class(page: Page, tmp_path: Path) -> None:
    result = shapes()
    page.resize(1280)
    page.open(written(result, tmp_path))
    frame = diagnostics.error_areas(result).printed_frame().set_index("class")
    shown = "return [...document.querySelectorAll('#step-areas td:last-child')].map(c => c.textContent)"
    assert page.run(shown) == [f"{value:.3f}" for value in frame.loc["(mean)"]]
    assert len(page.every("#step-chart .area")) == 7
    k = result.labels.index("triangle")
    page.run(
        "const s = document.getElementById('step-class');"
        "s.value = arguments[0]; s.dispatchEvent(new Event('change'))",
        str(k),
    )
    assert page.run(shown) == [f"{value:.3f}" for value in frame.loc["triangle"]]
    label = page.find("#step-chart svg").get_attribute("aria-label")
    assert label.startswith("triangle: C75 0.455, C50 0.874")
    page.hover(page.find("#step-chart svg"), -100, 0)
    assert "FN 1.000BG " in page.text(".tip")


@pytest.mark.slow
@pytest.mark.real
def test_yolov2_on_coco(page: Page, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(real("coco_val2017", "ground_truth_boxes.json"))
    detections = boxscore.load_detections(real("coco_val2017", "yolov2_608.json"), truth)
    result = boxscore.evaluate(truth, detections)
    start = time.perf_counter()
    path = written(result, tmp_path)
    assert time.perf_counter() - start < 90  # about 8 s on an idle core
    assert path.stat().st_size < LARGEST_OF_EIGHTY_CLASSES
    page.resize(1280)
    page.open(path)
    assert page.text(".lead-number .value") == "0.194"
    use_everything(page)
    assert_quiet(page)


@pytest.mark.slow
@pytest.mark.real
def test_yolov2_on_voc(page: Page, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(real("voc2007", "VOC2007"), image_set="test")
    detections = boxscore.load_detections(real("voc2007", "results", "yolov2"), truth)
    path = written(boxscore.evaluate(truth, detections, protocol="voc2007"), tmp_path)
    assert path.stat().st_size < LARGEST
    page.resize(1280)
    page.open(path)
    assert page.text(".lead-number .value") == "0.722"
    use_everything(page)
    assert_quiet(page)


INSIDE = "const box = e => e.getBoundingClientRect();"


def test_the_class_table_is_whole_where_there_is_room(page: Page, tmp_path: Path) -> None:
    page.resize(1440)
    result = shapes()
    few = boxscore.evaluate(result.ground_truth, result.detections, protocol="voc2012", digest=False)
    page.open(written(few, tmp_path))
    heads = page.every("#class-table thead th")
    assert len(heads) == 12
    assert all(head.is_displayed() for head in heads)
    assert not page.find("#classes .fits").is_displayed()
    assert page.run(
        f"{INSIDE} const t = box(document.querySelector('#class-table'));"
        "const s = box(document.querySelector('#classes'));"
        "return t.left >= s.left && t.right <= s.right"
    )
    assert (
        page.run("return getComputedStyle(document.querySelector('#classes .scroll')).overflow") == "visible"
    )
    assert page.text("#class-shown") == "6 classes, lowest AP first"
    ticks = [float(tick.text) for tick in page.every("#classes .meter-axis span")]
    top = ticks[-1]
    assert ticks == pytest.approx([top * i / (len(ticks) - 1) for i in range(len(ticks))])
    bars = page.run(
        f"{INSIDE} return [...document.querySelectorAll('#class-table tbody .meter[data-v]')]"
        ".map(m => [+m.dataset.v, box(m.querySelector('i')).width / box(m).width])"
    )
    assert len(bars) == 5
    for value, width in bars:
        assert width == pytest.approx(value / top, abs=0.02)
    page.click("#class-table thead th:nth-child(6) button")
    assert page.text("#class-shown") == "6 classes, widest interval first"


def test_columns_that_do_not_fit_are_said_and_kept(page: Page, tmp_path: Path) -> None:
    page.resize(390)
    page.open(written(shapes(), tmp_path))
    shown = [head for head in page.every("#class-table thead th") if head.is_displayed()]
    assert page.text("#classes .fits span") == f"{len(shown)} of 24 columns fit here."
    page.click("#classes .fits button")
    assert all(head.is_displayed() for head in page.every("#class-table thead th"))
    assert_quiet(page)


def test_rows_beyond_the_limit_are_said_and_found(page: Page, tmp_path: Path) -> None:
    page.resize(1280)
    page.open(written(evaluation(classes=120, images=150), tmp_path, resamples=0))
    rows = page.every("#class-table tbody tr")
    assert sum(row.is_displayed() for row in rows) == 100
    assert page.text("#class-shown") == "100 of 120 classes listed, lowest AP first"
    last = rows[-1].find_element("css selector", "th").get_attribute("data-v")
    page.find("#class-filter").send_keys(last)
    assert rows[-1].is_displayed()
    page.run(
        "const f = document.getElementById('class-filter'); f.value = ''; f.dispatchEvent(new Event('input'))"
    )
    assert page.text(".more-rows") == "Show 20 more classes"
    page.click(".more-rows")
    assert all(row.is_displayed() for row in rows)
    assert not page.find(".more-rows").is_displayed()
    assert page.text("#class-shown") == "120 classes, lowest AP first"


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("classes", [3, 40])
def test_charts_name_their_best_and_worst_classes(
    page: Page, tmp_path: Path, width: int, classes: int
) -> None:
    page.resize(width)
    page.open(written(evaluation(classes=classes, images=120), tmp_path, resamples=0))
    page.unfold()
    for chart in ("#pr-chart", "#f1-chart"):
        for rank in ("best", "worst"):
            named = page.every(f"{chart} .curve-label.{rank}")
            assert len(named) == min(3, classes // 2)
            assert {label.text for label in named} <= {f"class {k}" for k in range(classes)}
            assert len(page.every(f"{chart} .curve.{rank}")) == len(named)
        boxes = page.run(
            f"{INSIDE} return [...document.querySelectorAll(arguments[0])].map(box)"
            ".map(b => [b.left, b.right, b.top + 1, b.bottom - 1])",
            f"{chart} .curve-label",
        )
        for i, (left, right, top, bottom) in enumerate(boxes):
            assert left >= 0
            assert right <= width
            for other in boxes[:i]:
                assert right <= other[0] or left >= other[1] or bottom <= other[2] or top >= other[3]


def test_the_confusion_matrix_by_keyboard(page: Page, tmp_path: Path) -> None:
    page.resize(1440)
    page.open(written(shapes(), tmp_path))
    assert [node.text for node in page.every("#matrix .axis-title")] == ["predicted class →", "← true class"]
    inner = "const m = document.querySelector('#matrix'); return [m.scrollHeight, m.scrollWidth]"
    outer = "const m = document.querySelector('#matrix'); return [m.clientHeight, m.clientWidth]"
    assert page.run(inner) == page.run(outer)
    matrix = page.find("#matrix")
    matrix.send_keys("\ue010")  # end of the row: what was missed
    assert page.text("#matrix-live").startswith("circle → (background), 10 ")
    matrix.send_keys("\ue00f")  # page down: the last row
    assert page.text("#matrix-live").startswith("(background) → (background)")
    matrix.send_keys("\ue011")  # home
    assert page.text("#matrix-live").startswith("(background) → circle, 2 ")
    lit = [node.text for node in page.every("#matrix text.lit")]
    assert sorted(lit) == ["(background)", "circle"]
    matrix.send_keys("\ue007")  # enter
    assert page.text("#cell-panel h3").startswith("circle on the background: 2")
    assert page.every("#cell-panel .card")


def test_the_confusion_matrix_of_many_classes_keeps_every_count(page: Page, tmp_path: Path) -> None:
    page.resize(1440)
    page.open(written(evaluation(classes=60, images=200), tmp_path, resamples=0))
    total = (
        "[...document.querySelectorAll('#matrix text.inside')].reduce((sum, t) => sum + +t.textContent, 0)"
    )
    assert "24 classes most often confused, of 60" in page.text("#matrix-note")
    few = page.run(f"return {total}")
    cells = page.run("return JSON.parse(document.getElementById('report-data').textContent).confusion.cells")
    assert few == sum(count for _, _, count in cells)
    page.run(
        "const s = document.getElementById('matrix-most'); s.value = '60'; s.dispatchEvent(new Event('change'))"
    )
    assert len(page.every("#matrix .cell")) == len(cells)
    assert not page.find("#matrix-note").is_displayed()


def test_the_menu_goes_on_and_follows(page: Page, tmp_path: Path) -> None:
    page.resize(390)
    page.open(written(shapes(), tmp_path))
    menu = page.find(".bar-nav ul")
    assert menu.get_attribute("class") == "more-after"
    assert page.text(".bar-nav a[aria-current]") == "Summary"
    page.run("document.getElementById('gallery').scrollIntoView()")
    page.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert page.text(".bar-nav a[aria-current]") == "Images"
    assert menu.get_attribute("class") == "more-before"


def test_a_narrow_page_is_short_and_leads_everywhere(page: Page, tmp_path: Path) -> None:
    page.resize(390, 844)
    page.open(written(evaluation(classes=80, images=300), tmp_path, resamples=0))
    assert page.run("return document.documentElement.scrollHeight") <= 6_000
    # No legend before its table; the matrix keeps its counts, and its box scrolls with the rows' names in view.
    top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    assert page.run(top, "#classes .table-key") > page.run(top, "#class-table tbody tr:nth-child(10)")
    assert page.every("#matrix text.inside")
    sizes = page.run("const m = document.querySelector('#matrix'); return [m.clientWidth, m.scrollWidth]")
    assert sizes[0] < sizes[1]
    page.run("document.querySelector('#matrix').scrollLeft = 9999")
    page.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    left = "return document.querySelector('#matrix .pinned').getBoundingClientRect().left"
    assert page.run(left) >= page.run("return document.querySelector('#matrix').getBoundingClientRect().left")
    # One button shows the whole menu, and every entry opens its section.
    links = page.run("return [...document.querySelectorAll('.bar-nav a')].map(a => a.getAttribute('href'))")
    for link in links:
        button = page.find(".all-sections")
        button.click()
        assert button.get_attribute("aria-expanded") == "true"
        boxes = page.run(f"{INSIDE} return [...document.querySelectorAll('.bar-nav a')].map(box)")
        assert all(box["left"] >= 0 and box["right"] <= 390 for box in boxes)
        page.find(f".bar-nav a[href='{link}']").click()
        assert button.get_attribute("aria-expanded") == "false"
        assert not page.every(f"{link}.folded")
        assert -2 <= page.run(top, link) < 844
    assert page.every("#pr-chart svg")
    assert page.every("#step-chart svg")
    assert page.axe() == []
    assert_quiet(page)
    # A wide page has no folds.
    page.resize(1280)
    assert page.every(".fold, .folded") == []
    assert all(section.is_displayed() for section in page.every("main section > .chart"))


def test_every_table_is_sorted_by_its_headers(page: Page, tmp_path: Path) -> None:
    page.resize(1280)
    page.open(written(evaluation(classes=12, images=80), tmp_path, resamples=0))
    tables = page.every("main table")
    assert len(tables) >= 3
    for table in tables:
        heads = table.find_elements("css selector", "thead th")
        assert len(heads) == len(table.find_elements("css selector", "thead .sort"))
    column = "return [...document.querySelectorAll('#top-confusions tr')].map(row => row.cells[arguments[0]].textContent)"
    by_count = [int(text) for text in page.run(column, 1)]
    assert len(by_count) > 3
    assert by_count == sorted(by_count, reverse=True)
    head = "#confusion .plain-table thead th:nth-child({})"
    assert page.find(head.format(2)).get_attribute("aria-sort") == "descending"
    page.find(head.format(2) + " button").send_keys("\ue007")  # enter
    assert [int(text) for text in page.run(column, 1)] == sorted(by_count)
    page.click(head.format(3) + " button")
    shares = [float(text.rstrip(" %")) for text in page.run(column, 2)]
    assert shares == sorted(shares, reverse=True)
    page.click(head.format(1) + " button")
    assert page.find(head.format(1)).get_attribute("aria-sort") == "ascending"
    assert page.find(head.format(3)).get_attribute("aria-sort") == "none"
    page.click("#analysis thead th:nth-child(3) button")
    areas = [float(text) for text in page.run(column.replace("#top-confusions tr", "#step-areas tr"), 2)]
    assert areas == sorted(areas, reverse=True)
    assert_quiet(page)


CHOSEN = (
    "const s = document.getElementById('gallery-class');"
    "return s.value === '' ? null : JSON.parse(document.getElementById('report-data').textContent).names[s.value]"
)


def follow(page: Page, path: Path, fragment: str) -> None:
    page.driver.get("about:blank")
    page.driver.get(path.resolve().as_uri() + fragment)
    assert page.run("return document.documentElement.dataset.ready") == "yes"


def test_the_first_screen(page: Page, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    page.resize(1440)
    path = written(shapes(), tmp_path)
    page.open(path)
    assert page.run(f"{INSIDE} return box(document.getElementById('summary')).bottom <= innerHeight"), (
        "the summary is higher than a screen"
    )
    assert page.find(".worst-classes .of").text.split() == ["hexagon", "0.000"]
    bars = page.find("#class-bars .hit")
    width = bars.size["width"]
    page.hover(bars, int(width / 2) - 5)
    assert page.text(".tip").startswith("hexagon")
    page.hover(bars, 5 - int(width / 2))
    assert page.text(".tip").startswith("square")
    page.find("#class-bars .plot").send_keys(Keys.END, Keys.ARROW_LEFT, Keys.ENTER)
    assert page.text("#class-bars [aria-live]").startswith("circle, AP 0.2")
    assert page.run(CHOSEN) == "circle"
    assert page.run("return location.hash") == "#gallery?class=circle"
    assert len(page.every(".surest button svg")) == 3
    page.click(".surest button")
    place = page.text("#dialog-place")
    assert place == "1 of 3"
    title = page.text("#dialog-title")
    address = page.run("return location.href")
    assert "#image?" in address
    ActionChains(page.driver).send_keys(Keys.ESCAPE).perform()
    assert page.run("return location.hash") == "#gallery?class=circle"
    follow(page, path, address.partition("#")[1] + address.partition("#")[2])
    assert page.run("return document.getElementById('image-dialog').open")
    assert page.text("#dialog-title") == title
    assert len(page.every("#dialog-picture .box.lit")) == 1
    assert_quiet(page)


def test_every_choice_is_in_the_address(page: Page, tmp_path: Path) -> None:
    page.resize(1280)
    path = written(shapes(), tmp_path)
    page.open(path)
    page.click(".worst-classes li .why a")
    assert page.text("#cell-panel h3").startswith("hexagon predicted as circle: 5")
    page.click("#class-table tbody tr:nth-child(2) a")
    assert page.run(CHOSEN) == "circle"
    choose(page, "#gallery-kind", "background")
    choose(page, "#gallery-low", "0.6")
    choose(page, "#gallery-order", "worst")
    page.click("[data-outcome='3']")
    page.click("#class-table thead th:nth-child(3) button")
    choose(page, "#class-filter", "r")
    choose(page, "#pr-iou", "2")
    choose(page, "#pr-class", "1")
    choose(page, "#f1-rate", "0")
    page.click("#pr-ends")
    seen = (
        "return [...document.querySelectorAll('select:not(#pr-class, #f1-class), input')].map((n) => [n.id,"
        "n.type === 'checkbox' ? n.checked : n.value])"
    )
    before, order = page.run(seen), column(page, 0)
    shown = [page.text(f"#{name}") for name in ("gallery-shown", "class-shown", "pr-chips", "cell-panel")]
    address = page.run("return location.hash")
    follow(page, path, address)
    assert page.run(seen) == before
    assert column(page, 0) == order
    texts = [page.text(f"#{name}") for name in ("gallery-shown", "class-shown", "pr-chips", "cell-panel")]
    assert texts == shown
    assert page.run("return location.hash") == address
    assert_quiet(page)


def test_the_gallery_knows_every_class(page: Page, tmp_path: Path) -> None:
    page.resize(1280)
    path = written(evaluation(classes=12, images=200, boxes=6), tmp_path, gallery=2, resamples=0)
    page.open(path)
    assert len(page.every("#gallery-class option")) == 13
    data = page.run("return JSON.parse(document.getElementById('report-data').textContent)")
    for k, name in enumerate(data["names"]):
        page.run("location.hash = arguments[0]", f"gallery?class={name.replace(' ', '%20')}")
        page.driver.execute_async_script("setTimeout(arguments[0], 0)")
        assert page.run(CHOSEN) == name
        here = sum(any(len(box) > 8 and box[4] == k for box in record["boxes"]) for record in data["images"])
        every = data["gallery"]["of_class"][k]
        assert here < every
        assert page.text("#gallery-note") == (
            f"{here} of the {every} images with a mistake of class {name} "
            f"{'is' if here == 1 else 'are'} on this page."
        )
    assert_quiet(page)


def copied(page: Page, button: str) -> list[list[str]]:
    """Press a button, and read what it copies as CSV."""
    page.run(
        "Object.defineProperty(navigator.clipboard, 'writeText', {configurable: true, value: async (text) =>"
        " { window.copied = text; }})"
    )
    page.run("document.querySelector(arguments[0]).click()", button)
    return list(csv.reader(io.StringIO(page.run("return window.copied"))))


def test_tables_are_copied_with_every_digit(page: Page, tmp_path: Path) -> None:
    result = shapes()
    page.resize(390)  # where not all columns fit
    page.open(written(result, tmp_path))
    head, *rows = copied(page, "#classes .copy-csv")
    metrics = [name for name in result.class_values if name in head]
    assert metrics == list(result.class_values)
    ends = ["95% interval low", "95% interval high"]
    assert head[:7] == ["class", "AP", "objects", "detections", "estimate", *ends]
    for row in rows:
        k = result.labels.index(row[0])
        for name in metrics:
            value, text = result.class_values[name][k], row[head.index(name)]
            assert text == "" if value != value else float(text) == pytest.approx(value, rel=1e-5)
        assert int(row[2]) == result.class_counts["ground_truths"][k]
    page.run(
        "const f = document.getElementById('class-filter'); f.value = 'hex'; f.dispatchEvent(new Event('input'))"
    )
    assert [row[0] for row in copied(page, "#classes .copy-csv")] == ["class", "hexagon"]
    head, *rows = copied(page, "#confusion .said .copy-csv")
    assert [row[0] for row in rows] == head[1:]
    cells = page.run("return JSON.parse(document.getElementById('report-data').textContent).confusion.cells")
    names = [*result.labels, "(background)"]
    assert {
        (row[0], name): int(number)
        for row in rows
        for name, number in zip(head[1:], row[1:], strict=True)
        if number != "0"
    } == {(names[truth], names[predicted]): number for truth, predicted, number in cells}
    assert_quiet(page)


def test_copied_names_are_no_formulas(page: Page, tmp_path: Path) -> None:
    page.resize(1280)
    page.open(written(hostile_evaluation(), tmp_path, resamples=0))
    names = page.run("return JSON.parse(document.getElementById('report-data').textContent).names")
    _, *rows = copied(page, "#classes .copy-csv")
    assert {row[0] for row in rows} == {f"'{name}" if name[0] in "=+-@\t" else name for name in names}


def test_the_score_threshold_of_the_class_table_moves(page: Page, tmp_path: Path) -> None:
    """At every stop the numbers are those of operating_points, in the chosen order; a link keeps the stop."""
    result = evaluation(classes=12, images=40, seed=3)
    path = written(result, tmp_path, resamples=0)
    page.resize(1440)
    page.open(path)
    stated = page.text("#class-score")
    assert stated == f"{result.operating_score:.3g}"
    scores = page.run("return JSON.parse(document.getElementById('report-data').textContent).stops.scores")
    page.click("#class-table thead th[data-rate=FP] button")
    move = (
        "const input = document.querySelector('.moved-score input'); input.value = arguments[0];"
        "input.dispatchEvent(new Event('input'));"
        "const heads = [...document.querySelectorAll('#class-table th[data-rate]')];"
        "return [...document.querySelectorAll('#class-table tbody tr')].map((row) => [Number(row.dataset.k),"
        " ...heads.map((head) => row.cells[head.cellIndex].dataset.v)])"
    )
    names = ("precision", "recall", "f_score", "true_positives", "false_positives", "false_negatives")
    for position in (*range(0, len(scores), 9), len(scores) - 1):
        points = diagnostics.operating_points(result, at_score=scores[position]).per_class
        rows = page.run(move, position)
        assert len(rows) == len(result.labels)
        for k, *texts in rows:
            numbers = [float(text) if text else None for text in texts]
            assert numbers[1:] == [getattr(points, name)[k] for name in names[1:]]
            # Precision without a detection has no number here.
            found = points.true_positives[k] + points.false_positives[k]
            assert numbers[0] == (points.precision[k] if found else None)
        false = [float(row[5]) for row in rows]
        assert false == sorted(false, reverse=True)
    page.run(move, 7)
    assert page.text("#class-score") == f"{scores[7]:g}"
    assert not page.find("#class-score-best").is_displayed()
    follow(page, path, page.run("return location.hash"))
    assert page.text("#class-score") == f"{scores[7]:g}"
    page.click(".controls .back")
    assert page.text("#class-score") == stated
    assert page.find("#class-score-best").is_displayed()
    assert_quiet(page)


def test_the_confusion_matrix_has_the_chosen_order(page: Page, tmp_path: Path) -> None:
    """Rows and columns move together, and a link keeps the order."""
    path = written(shapes(), tmp_path, resamples=0)
    page.resize(1440)
    page.open(path)
    choose = (
        "const order = document.querySelector('#matrix-order'); order.value = arguments[0];"
        "order.dispatchEvent(new Event('change'))"
    )
    texts = "return [...document.querySelectorAll('#matrix svg text:not([class])')].map((text) => text.textContent)"
    found = {}
    for order in ("file", "AP", "objects", "confusion"):
        page.run(choose, order)
        names = page.run(texts)  # of the rows, then of the columns
        half = len(names) // 2
        assert names[:half] == names[half:]
        assert names[-1] == "(background)"
        found[order] = names[: half - 1]
    assert found["file"] == [name for name in shapes().labels if name != "moon"]
    assert found["AP"][0] == "hexagon"
    assert found["objects"][0] == "circle"
    assert abs(found["confusion"].index("hexagon") - found["confusion"].index("circle")) == 1
    follow(page, path, page.run("return location.hash"))
    assert page.run(texts)[: len(found["confusion"])] == found["confusion"]
    assert_quiet(page)


def test_cells_of_a_copied_row_stay_apart(page: Page, tmp_path: Path) -> None:
    page.resize(1440)
    page.open(written(shapes(), tmp_path))
    page.click("#classes .fits button")  # all columns
    text = page.run(
        "const rows = document.querySelectorAll('#class-table tbody tr'), range = document.createRange();"
        "range.setStartBefore(rows[0].cells[0]); range.setEndAfter(rows[1].cells[22]);"
        "getSelection().removeAllRanges(); getSelection().addRange(range);"
        "const data = new DataTransfer();"
        "document.dispatchEvent(new ClipboardEvent('copy', {clipboardData: data, cancelable: true}));"
        "return data.getData('text/plain')"
    )
    first, second = (line.split("\t") for line in text.split("\n"))
    assert len(first) == len(second) == 24
    assert first[:4] == ["hexagon", "0.000", "11", "0"]
    assert second[4] == page.text("#class-table tbody tr:nth-child(2) td:nth-child(5)")


def test_hostile_names_in_the_address(page: Page, tmp_path: Path) -> None:
    """Each link leads to its class, and an address that is made up does nothing."""
    path = written(hostile_evaluation(), tmp_path, resamples=0)
    page.resize(1280)
    page.open(path)
    names = page.run("return JSON.parse(document.getElementById('report-data').textContent).names")
    links = page.run(
        "return [...document.querySelectorAll('#class-table tbody tr')].map((row) =>"
        " [Number(row.dataset.k), row.querySelector('a').getAttribute('href')])"
    )
    assert len(links) == len(names)
    for k, href in links:
        page.run("location.hash = arguments[0]", href)
        page.driver.execute_async_script("setTimeout(arguments[0], 0)")
        assert page.run(CHOSEN) == names[k]
        follow(page, path, page.run("return location.hash"))
        assert page.run(CHOSEN) == names[k]
    for fragment in (
        "#gallery?class=%3Cimg%20src=x%20onerror=%22document.title='broken'%22%3E&kind=%zz&from=x",
        "#javascript:document.title='broken'",
        "#image?id=__proto__&box=-1",
        "#confusion?truth=constructor&predicted=%00&most=1e9",
        "#classes?sort=%3Cscript%3E&sense=up&find=%22%3E",
        "#curves?iou=NaN&curve=nobody&without=all",
    ):
        follow(page, path, fragment)
    assert "broken" not in page.run("return document.title").replace("document.title='broken'", "")
    assert page.run("return document.scripts.length") == 2
    assert page.run("return document.querySelectorAll('img, iframe, b.x, [onerror]').length") == 0
    assert_quiet(page)


def test_hostile_names_are_text(page: Page, tmp_path: Path) -> None:
    path = written(hostile_evaluation(), tmp_path, title="</title><script>document.title='broken'</script>")
    page.resize(1280)
    page.open(path)
    use_everything(page)
    assert "broken" not in page.run("return document.title").replace("document.title='broken'", "")
    assert page.run("return document.scripts.length") == 2
    assert page.run("return document.querySelectorAll('img, iframe, b.x, [onerror]').length") == 0
    assert "\u202e" not in page.run("return document.body.innerText")
    assert_quiet(page)


def test_nothing_at_all(page: Page, tmp_path: Path) -> None:
    page.resize(1280)
    page.open(written(empty_evaluation(), tmp_path))
    assert "No class was evaluated" in page.text("#classes")
    assert_quiet(page)


@pytest.mark.parametrize("detections", [True, False])
def test_one_class(page: Page, tmp_path: Path, detections: bool) -> None:
    result = evaluation(classes=["only"], images=5)
    if not detections:
        none = boxscore.Detections.from_arrays([], [], [], [])
        result = boxscore.evaluate(result.ground_truth, none)
    page.resize(1280)
    page.open(written(result, tmp_path))
    if detections:
        use_everything(page)
    assert_quiet(page)


@pytest.mark.slow
def test_many_classes_and_images(page: Page, tmp_path: Path) -> None:
    result = evaluation(classes=1203, images=20_000, boxes=4)
    path = written(result, tmp_path)
    assert path.stat().st_size < LARGEST
    page.resize(1280)
    start = time.perf_counter()
    page.open(path)
    use_everything(page)
    assert time.perf_counter() - start < 120
    assert_quiet(page)


def test_comparison(page: Page, tmp_path: Path) -> None:
    first, second = evaluation(), evaluation(noise=2.0)
    hostile = "</script><script>document.title='broken'</script>"
    write_comparison(
        {hostile: first, "other": second}, tmp_path, options=ReportOptions(resamples=50, date="")
    )
    page.resize(1280)
    page.open(tmp_path / "report.html")
    page.click("#class-table tbody tr button")
    assert len(page.every("#pair-pr-chart .curve")) == 4
    page.click("#won-cards button")
    assert page.run("return document.getElementById('image-dialog').open")
    page.click("#dialog-close")
    assert "broken" not in page.run("return document.title").replace("document.title='broken'", "")
    assert_quiet(page)
    assert page.axe() == []


def choose(page: Page, selector: str, value: str) -> None:
    page.run(
        "const n = document.querySelector(arguments[0]); n.value = arguments[1];"
        "n.dispatchEvent(new Event(n.tagName === 'SELECT' ? 'change' : 'input'))",
        selector,
        value,
    )


def test_the_gallery_filters(page: Page, tmp_path: Path) -> None:
    page.resize(1280)
    page.open(written(shapes(), tmp_path))
    records = page.run("return JSON.parse(document.getElementById('report-data').textContent)")
    mistakes = [
        (place, box)
        for place, record in enumerate(records["images"])
        for box in record["boxes"]
        if len(box) > 8
    ]
    for kind, name in enumerate(records["kinds"]):
        wanted = [place for place, box in mistakes if box[8] == kind]
        if not wanted:
            continue
        choose(page, "#gallery-kind", name)
        number, of = len(set(wanted)), len(wanted)
        text = page.text("#gallery-shown")
        assert text.startswith(f"{number} image"), name
        assert f", {of} mistake" in text, name
        assert page.every("#worst-cards .box.lit")
    choose(page, "#gallery-kind", "")
    choose(page, "#gallery-low", "0.7")
    sure = [place for place, box in mistakes if box[6] is not None and box[6] >= 0.7]
    assert page.text("#gallery-shown").startswith(f"{len(set(sure))} image")
    k = mistakes[0][1][4]
    choose(page, "#gallery-low", "")
    choose(page, "#gallery-class", str(k))
    of_class = [place for place, box in mistakes if k in (box[4], box[9])]
    assert page.text("#gallery-shown").startswith(f"{len(set(of_class))} image")
    page.click("#gallery-reset")
    choose(page, "#gallery-image", "109")
    assert len(page.every("#worst-cards .card")) == 1
    choose(page, "#gallery-image", "no such image")
    assert "No image matches these filters." in page.text("#worst-cards")
    page.click("#gallery-reset")
    confidences = [
        float(text.split()[-1])
        for text in page.run(
            "return [...document.querySelectorAll('#worst-cards figcaption b')].map((b) => b.textContent)"
        )
    ]
    assert confidences == sorted(confidences, reverse=True)
    assert_quiet(page)


def test_masks_are_outlines(page: Page, tmp_path: Path) -> None:
    from extensions.pages.test_shapes import masked

    page.resize(1280)
    page.open(written(masked(), tmp_path))
    assert len(page.every("#worst-cards .card:first-child path.outline")) == 2
    page.click("#worst-cards .card button")
    assert len(page.every("#dialog-picture path.outline.o3")) == 1
    x, y = page.run(
        "const m = document.querySelector('#dialog-picture path.outline.o0'), b = m.getBoundingClientRect();"
        "return [b.x + b.width * 0.1, b.y + b.height * 0.5]"
    )
    page.mouse("mouseMoved", x, y)
    assert page.text(".tip").startswith("disc")
    page.mouse("mousePressed", x, y)
    page.mouse("mouseReleased", x, y)
    assert len(page.every("#dialog-picture path.outline.o0.lit")) == 1
    assert page.find("#dialog-table tr.lit").text.startswith("disc")
    assert_quiet(page)


def test_keypoints_are_skeletons(page: Page, tmp_path: Path) -> None:
    from extensions.pages.test_shapes import posed

    truths = [[[100, 200, 2], [300, 240, 1], [200, 300, 2]], [[50, 60, 2], [70, 60, 2], [0, 0, 0]]]
    founds = [[[400, 100, 1], [420, 230, 1], [300, 90, 1]], [[101, 201, 1], [299, 241, 1], [201, 301, 1]]]
    page.resize(1280)
    page.open(written(posed([*truths, [[500, 400, 1]] * 3], founds), tmp_path))
    page.click("#worst-cards .card button")
    picture = "#dialog-picture"
    assert len(page.every(f"{picture} .limbs")) == 4  # two detections, two missed
    dots = [node.get_attribute("d") for node in page.every(f"{picture} .dots.o3")]
    assert dots == ["M50 60h0M70 60h0", "M500 400h0M500 400h0M500 400h0"]
    assert [node.get_attribute("d") for node in page.every(f"{picture} .dots.hollow")] == dots[1:]
    assert "Hollow keypoints are labeled but not visible." in page.text("#dialog-note")
    page.click("#dialog-table tbody tr:last-child button")
    assert len(page.every(f"{picture} .limbs.lit")) == 1
    page.click("#dialog-close")
    page.click("[data-outcome='1']")
    page.click("#worst-cards .card button")
    assert len(page.every(f"{picture} .limbs")) == 3
    assert_quiet(page)


def test_next_and_previous(page: Page, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    def press(key: str) -> None:
        ActionChains(page.driver).send_keys(key).perform()

    page.resize(1280)
    page.open(written(shapes(), tmp_path))
    assert page.text("#worst-cards .pager span").startswith("1 to 10 of")
    page.click("#worst-cards .pager button:last-of-type")
    assert page.text("#worst-cards .pager span").startswith("11 to")
    page.click("#worst-cards .pager button:first-of-type")
    page.click("#worst-cards .card button")
    first = page.text("#dialog-title")
    press(Keys.ARROW_LEFT)
    assert page.text("#dialog-title") == first
    press(Keys.ARROW_RIGHT)
    assert page.text("#dialog-place").startswith("2 of")
    assert page.text("#dialog-title") != first
    page.click("#dialog-previous")
    assert page.text("#dialog-title") == first
    assert page.find("#dialog-previous").get_attribute("aria-disabled") == "true"
    page.click("#dialog-table tbody tr:not(.lit) button")
    assert len(page.every("#dialog-picture .box.lit")) == 1
    press(Keys.ESCAPE)
    assert not page.run("return document.getElementById('image-dialog').open")
    press(Keys.ARROW_RIGHT)  # from card to card
    assert (
        page.run("return [...document.querySelectorAll('.card button')].indexOf(document.activeElement)") == 1
    )
    assert_quiet(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_no_label_covers_another(page: Page, tmp_path: Path, width: int) -> None:
    page.resize(width)
    page.open(written(evaluation(boxes=20), tmp_path))
    page.click("#worst-cards .card button")
    for _ in range(5):
        boxes = page.run(
            "return [...document.querySelectorAll('#dialog-picture .label-back')].map((b) =>"
            " ['x', 'y', 'width', 'height'].map((name) => Number(b.getAttribute(name))))"
        )
        assert len(boxes) > 3
        for i, (x, y, wide, tall) in enumerate(boxes):
            for other_x, other_y, other_wide, other_tall in boxes[:i]:
                apart = x + wide <= other_x or other_x + other_wide <= x
                assert apart or y + tall <= other_y or other_y + other_tall <= y
        page.click("#dialog-next")


def test_the_overview(page: Page, tmp_path: Path) -> None:
    names = ["</script><script>document.title='broken'</script>", "\u202egnp.exe", "x" * 300]
    results = {name: evaluation(noise=1.0 + 6 * i) for i, name in enumerate(names)}
    write_comparison(results, tmp_path, options=ReportOptions(resamples=50, date=""))
    page.resize(1280)
    page.open(tmp_path / "report.html")
    assert len(page.every(".detectors tbody tr")) == 3
    assert len(page.every("#overview-pr-chart .curve")) == 3
    assert len(page.every("#overview-f1-chart .curve")) == 3
    assert page.text(".verdict")
    data = page.run("return JSON.parse(document.getElementById('report-data').textContent)")
    assert len(page.every("#differing-cards .card")) == len(data["differing"])
    first = page.every("#differing-cards .card:first-child svg")
    assert [view.get_dom_attribute("viewBox") for view in first] == [
        " ".join(f"{number:g}" for number in data["differing"][0]["part"])
    ] * 3
    page.click("#differing-cards .side-by-side > div:nth-child(2) button")
    assert page.run("return document.getElementById('image-dialog').open")
    assert page.text("#dialog-title").endswith(data["models"][1])
    shown = data["images"][data["differing"][0]["at"] + data["together"]]
    assert len(page.every("#dialog-table tbody tr")) == len(shown["boxes"])
    page.click("#dialog-close")
    before = page.text("#pairs-table tbody")
    choose(page, "#pairs-metric", "1")
    assert page.text("#pairs-table tbody") != before
    assert page.text("#pairs-table thead th") == "AP50"
    page.click("#class-table thead th:nth-child(3) button")
    choose(page, "#pr-iou", "3")
    address = page.run("return location.hash")
    assert address.startswith("#curves?")
    follow(page, tmp_path / "report.html", address)
    assert page.text("#pairs-table thead th") == "AP50"
    assert page.find("#pr-iou").get_attribute("value") == "3"
    assert page.find("#class-table thead th:nth-child(3)").get_attribute("aria-sort") == "descending"
    assert "broken" not in page.run("return document.title").replace("document.title='broken'", "")
    assert page.axe() == []
    assert_quiet(page)
    for target in ("detector-2.html", "pair-1-3.html"):
        page.click(f".detectors a[href='{target}']")
        assert page.run("return document.documentElement.dataset.ready") == "yes"
        assert page.run("return location.pathname").endswith(target)
        assert_quiet(page)
        page.click(".pages a")
        assert page.run("return location.pathname").endswith("report.html")
    page.resize(390, dark=True)
    assert page.axe() == []
    assert_quiet(page)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing(page: Page, tmp_path: Path, width: int, dark: bool) -> None:
    path = written(shapes(), tmp_path)
    page.resize(width, dark=dark)
    page.open(path)
    choose(page, "#pr-class", "1")  # a chip
    page.click("#top-confusions button")
    page.click(".more-numbers summary")
    violations = page.axe()
    page.unfold()
    violations += page.axe()
    page.click("#worst-cards .card button")
    violations += page.axe()
    assert [(item["id"], [node["target"] for node in item["nodes"]]) for item in violations] == []


def test_the_page_is_useful_without_its_script(page: Page, tmp_path: Path) -> None:
    path = written(shapes(), tmp_path)
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.driver.get(path.resolve().as_uri())
        text = page.find("body").text
        assert "0.340" in text
        assert "hexagon" in text
        assert "need JavaScript" in text
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_it_prints(page: Page, tmp_path: Path) -> None:
    page.resize(1280, dark=True)
    page.open(written(shapes(), tmp_path))
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not page.find(".bar-nav").is_displayed()
        assert not page.find("#class-table .sort").is_displayed()
        heads = page.every("#class-table thead th .printed")
        assert [head.text for head in heads][:3] == ["class", "AP", "objects"]
        assert len(heads) == 24
        assert page.find("#classes .table-key").is_displayed()
        printed = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        assert len(printed) > 20_000
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
