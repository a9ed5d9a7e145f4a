"""Figures of speed, and counts of formats and protocols, are those of benchmarks/figures.toml and of the code."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest
from test_docs_examples import ROOT

from boxscore.formats.registry import format_names

UNITS = r"(?:s|ms|seconds?|minutes|times|MB|GB|formats|protocols|tools)\b"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "benchmarks" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_have_the_figures_of_the_table(script: ModuleType) -> None:
    stale = [
        page.relative_to(ROOT)
        for page in script.pages()
        if script.written(page) != page.read_text(encoding="utf-8")
    ]
    assert stale == [], "python benchmarks/figures.py"


def test_the_readme_quotes_no_figure_of_its_own(script: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", script.FIGURE.sub("", text), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(rf"\d[\d.,]* {UNITS}", text) == []


def test_a_figure_is_written_between_its_marks(script: ModuleType) -> None:
    values = {"boxes.ratio": (0.931, ".2f"), "boxes.ours": (0.108, "g")}
    text = "takes <!--=boxes.ours:.1g-->9<!--=--> s, <!--=boxes.ratio-->?<!--=--> times"
    once = script.filled(text, values)
    assert once == "takes <!--=boxes.ours:.1g-->0.1<!--=--> s, <!--=boxes.ratio-->0.93<!--=--> times"
    assert script.filled(once, values) == once
    machines, rows = script.known()
    assert {row["machine"] for row in rows} == set(machines)
    assert len({row["key"] for row in rows}) == len(rows)
    assert script.figures(rows)["count.formats"] == (len(format_names(auto=False)), "d")
