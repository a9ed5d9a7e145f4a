"""A real headless Chromium, its console, its requests, and axe-core."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE = 20.0
"""Maximum number of seconds to wait for a page."""

STILL = {"name": "prefers-reduced-motion", "value": "reduce"}


class Page:
    """A report opened in the browser, with what the tests ask of it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path) -> None:
        self.driver.get(path.resolve().as_uri())
        # A browser that starts on a busy machine may answer before the page has run.
        until = time.monotonic() + PATIENCE
        while self.run("return document.documentElement.dataset.ready") != "yes":
            assert time.monotonic() < until, self.console()
            time.sleep(0.05)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def every(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def console(self) -> list[str]:
        """Everything the console has said since it was last asked."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses asked for since it was last asked, apart from files and data."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.startswith(("file:", "data:"))]

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, STILL]})

    def hover(self, element: Any, x: int = 0, y: int = 0) -> None:
        """Move the pointer to a place relative to the middle of an element."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).move_to_element_with_offset(element, x, y).perform()

    def mouse(self, kind: str, x: float, y: float) -> None:
        event = {"type": kind, "x": x, "y": y, "clickCount": int(kind != "mouseMoved")}
        event["button"] = "none" if kind == "mouseMoved" else "left"
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def scroll_to(self, element: Any) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)

    def click(self, selector: str) -> None:
        element = self.find(selector)
        self.scroll_to(element)
        element.click()

    def unfold(self) -> None:
        """Open the sections that a narrow page begins with folded, and the filters of its images."""
        self.run(
            "document.querySelectorAll('.fold[aria-expanded=false]').forEach((button) => button.click());"
            "document.querySelectorAll('.filter-fold').forEach((part) => { part.open = true; })"
        )
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def axe(self) -> list[dict[str, Any]]:
        """Findings of axe-core."""
        source = AXE
        if not source.is_file():
            pytest.skip("axe-core is absent: npm install --prefix tests")
        # The page's own policy forbids foreign scripts, so axe is brought in by the debugger.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": source.read_text(encoding="utf-8")})
        result = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document).then(done, (error) => done({error: `${error}`}));"
        )
        assert "error" not in result, result
        return list(result["violations"])


@contextlib.contextmanager
def open_browser() -> Iterator[Page]:
    """Start Chromium; skips the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is absent: pip install selenium")
    binary = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver_path = shutil.which("chromedriver")
    if binary is None or driver_path is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    except Exception as error:
        pytest.skip(f"the browser does not start: {str(error).splitlines()[0]}")
    try:
        driver.set_script_timeout(120)
        page = Page(driver)
        page.resize(1280)
        yield page
    finally:
        driver.quit()
