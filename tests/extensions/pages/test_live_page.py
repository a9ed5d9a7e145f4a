"""The served page in a real browser: every image, filters, detectors, and nothing asked of anybody else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_server import Client, served

from boxscore.extensions.pages.server import PAGE
from support.browser import Page, open_browser
from support.evaluations import evaluation, hostile_evaluation, shapes
from support.samples import SHAPES

SOON = 10.0


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with open_browser() as opened:
        yield opened


def open_page(page: Page, client: Client, path: str = "") -> None:
    page.driver.get("about:blank")
    page.requests()
    page.console()
    page.driver.get(f"http://127.0.0.1:{client.port}/{client.token}/{path}")
    assert page.run("return document.documentElement.dataset.ready") == "yes"
    until(page, "return document.querySelectorAll('#worst-cards .card, #worst-cards .empty').length > 0")


def until(page: Page, script: str, *arguments: Any) -> None:
    end = time.monotonic() + SOON
    while not page.run(script, *arguments):
        assert time.monotonic() < end, script
        time.sleep(0.02)


def choose(page: Page, selector: str, value: str) -> None:
    before = page.text("#gallery-shown")
    page.run(
        "const n = document.querySelector(arguments[0]); n.value = arguments[1];"
        "for (const kind of ['input', 'change']) n.dispatchEvent(new Event(kind))",
        selector,
        value,
    )
    until(page, "return document.getElementById('gallery-shown').textContent !== arguments[0]", before)


def assert_alone(page: Page, client: Client) -> None:
    """Everything is asked of this server, and the console says nothing."""
    assert page.console() == []
    requests = page.requests()
    assert requests
    assert all(url.startswith(f"http://127.0.0.1:{client.port}/{client.token}/") for url in requests)


def test_every_image_is_browsed_and_filtered(page: Page) -> None:
    result = evaluation(images=60, boxes=6, noise=12.0)
    page.resize(1280)
    with served(result) as client:
        open_page(page, client)
        assert len(page.every("#worst-cards .card")) == PAGE
        mistakes = client.ask("detector-1/images").json["mistakes"]
        assert page.text("#gallery-shown") == f"60 images, {mistakes} mistakes"
        assert page.text("#worst-cards .range") == "1 to 24 of 60"
        lit = "return [...document.querySelectorAll('#worst-cards .card svg')].map(s => s.querySelectorAll('.lit').length)"
        assert set(page.run(lit)) == {1}  # the most confident mistake
        page.click("#worst-cards .pager button:last-of-type")
        until(page, "return document.querySelector('#worst-cards .range').textContent === '25 to 48 of 60'")
        assert page.run("return document.activeElement.textContent") == "Next \N{RIGHTWARDS ARROW}"

        page.click("#worst-cards .card:last-child button")
        assert page.text("#dialog-place") == "48 of 60"
        page.click("#dialog-next")  # on to the next page
        until(page, "return document.getElementById('dialog-place').textContent === '49 of 60'")
        page.click("#dialog-previous")
        until(page, "return document.getElementById('dialog-place').textContent === '48 of 60'")
        page.click("#dialog-close")
        assert page.text("#worst-cards .range") == "25 to 48 of 60"

        choose(page, "#gallery-class", "1")
        asked = client.ask("detector-1/images?class=1").json
        expected = f"{asked['images']} images of 60, {asked['mistakes']} mistakes"
        assert page.text("#gallery-shown") == expected
        choose(page, "#gallery-kind", "localization")
        choose(page, "#gallery-iou-low", "0.3")
        choose(page, "#gallery-size", "large")
        asked = client.ask("detector-1/images?class=1&kind=localization&iou_from=0.3&size=large").json
        assert len(page.every("#worst-cards .card")) == asked["images"] > 0
        assert page.every("#worst-cards .lit")
        assert "IoU 0." in page.text("#worst-cards .card figcaption")

        address = page.run("return location.hash")
        assert "iou_from=0.3" in address
        assert "size=large" in address
        open_page(page, client, address)
        assert len(page.every("#worst-cards .card")) == asked["images"]

        choose(page, "#gallery-image", "no such image")
        assert page.text("#worst-cards") == "No image matches these filters."
        page.click("#gallery-reset")
        until(page, "return document.querySelectorAll('#worst-cards .card').length === arguments[0]", PAGE)
        assert_alone(page, client)


def test_pictures_are_the_server_s(page: Page) -> None:
    pytest.importorskip("PIL")
    page.resize(1280)
    with served(shapes(), folder=SHAPES / "images") as client:
        open_page(page, client)
        small = "return [...document.querySelectorAll('#worst-cards image')].map(n => n.getAttribute('href'))"
        addresses = page.run(small)
        assert len(addresses) == 24
        assert all(address.endswith("?small") for address in addresses)
        page.click("#worst-cards .card button")
        assert page.run("return document.getElementById('image-dialog').open")
        large = page.find("#dialog-picture image").get_attribute("href")
        assert large == addresses[0].removesuffix("?small")
        assert page.text("#dialog-place") == "1 of 24"
        page.click("#dialog-next")
        assert page.text("#dialog-place") == "2 of 24"
        page.click("#dialog-close")
        assert page.every("#surest-cards image")
        assert_alone(page, client)


def test_detectors_switch_and_keep_the_filters(page: Page) -> None:
    page.resize(1280)
    with served(evaluation(seed=1), evaluation(seed=1, noise=25.0), names=("old", "new")) as client:
        open_page(page, client)
        choose(page, "#gallery-class", "2")
        first = page.text("#gallery-shown")
        page.click(".pages li:last-child a")
        until(page, "return document.title.startsWith('new')")
        until(page, "return document.getElementById('gallery-shown').textContent !== ''")
        asked = client.ask("detector-2/images?class=2").json
        expected = f"{asked['images']} images of 30, {asked['mistakes']} mistakes"
        assert page.text("#gallery-shown") == expected != first
        assert page.find("#gallery-class").get_property("value") == "2"
        assert_alone(page, client)


def test_hostile_names_are_shown_as_text(page: Page) -> None:
    page.resize(1280)
    with served(hostile_evaluation()) as client:
        open_page(page, client)
        choose(page, "#gallery-class", "1")
        assert "broken" not in page.run("return document.title")
        page.click("#worst-cards .card button")
        assert page.run("return document.getElementById('image-dialog').open")
        assert_alone(page, client)


def test_a_server_that_has_ended_is_said(page: Page) -> None:
    page.resize(1280)
    with served(shapes()) as client:
        open_page(page, client)
        page.run("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
        page.run("document.getElementById('gallery-kind').dispatchEvent(new Event('change'))")
        until(page, "return document.getElementById('gallery-note').textContent.startsWith('No answer')")
        assert len(page.every("#worst-cards .card")) == 24


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe(page: Page, width: int, dark: bool, tmp_path: Path) -> None:
    page.resize(width, dark=dark)
    with served(shapes(), evaluation(), folder=None) as client:
        open_page(page, client)
        assert page.axe() == []
        assert page.run("return document.documentElement.scrollWidth <= innerWidth"), (
            "the page scrolls sideways"
        )
