"""The HTML report in a real browser: it works, asks for nothing, and is harmless and accessible."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import boxscore
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
    use_everything(page)
    assert page.every("#worst-cards image")
    assert_quiet(page)


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
    page.open(written(shapes(), tmp_path))
    heads = page.every("#class-table thead th")
    assert len(heads) == 17
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
    assert page.text("#class-shown") == "7 classes, lowest AP first"
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
    page.click("#class-table thead th:nth-child(5) button")
    assert page.text("#class-shown") == "7 classes, widest interval first"


def test_columns_that_do_not_fit_are_said_and_kept(page: Page, tmp_path: Path) -> None:
    page.resize(390)
    page.open(written(shapes(), tmp_path))
    shown = [head for head in page.every("#class-table thead th") if head.is_displayed()]
    assert page.text("#classes .fits span") == f"{len(shown)} of 17 columns fit here."
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
    shown = {*(line[0] for line in records["gallery"]["worst"]), *records["gallery"]["confident"]}
    mistakes = [(place, box) for place in shown for box in records["images"][place]["boxes"] if len(box) > 8]
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
    assert "No image passes" in page.text("#worst-cards")
    page.click("#gallery-reset")
    choose(page, "#gallery-order", "confident")
    confidences = [
        float(text.split()[-1])
        for text in page.run(
            "return [...document.querySelectorAll('#worst-cards figcaption b')].map((b) => b.textContent)"
        )
    ]
    assert confidences == sorted(confidences, reverse=True)
    assert_quiet(page)


def test_next_and_previous(page: Page, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    def press(key: str) -> None:
        ActionChains(page.driver).send_keys(key).perform()

    page.resize(1280)
    page.open(written(shapes(), tmp_path))
    assert page.text("#worst-cards .pager span").startswith("1 to 12 of")
    page.click("#worst-cards .pager button:last-of-type")
    assert page.text("#worst-cards .pager span").startswith("13 to")
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
    page.click("#dialog-table tbody tr:nth-child(2) button")
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
    before = page.text("#pairs-table tbody")
    choose(page, "#pairs-metric", "1")
    assert page.text("#pairs-table tbody") != before
    assert page.text("#pairs-table thead th") == "AP50"
    page.click("#class-table thead th:nth-child(3) button")
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
def test_axe_finds_nothing_serious(page: Page, tmp_path: Path, width: int, dark: bool) -> None:
    path = written(shapes(), tmp_path)
    page.resize(width, dark=dark)
    page.open(path)
    page.run("document.querySelector('#class-table tbody button').click()")  # a chip
    page.click("#top-confusions button")
    violations = page.axe()
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
        assert len(heads) == 17
        assert page.find("#classes .table-key").is_displayed()
        printed = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        assert len(printed) > 20_000
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
