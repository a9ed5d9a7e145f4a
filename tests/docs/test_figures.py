"""Figures of speed, and counts of formats and protocols, are those of benchmarks/figures.toml and of the code."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
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


@pytest.mark.long
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


def test_what_was_measured_is_taken_in(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, results = tmp_path / "figures.toml", tmp_path / "results"
    table.write_bytes(script.TABLE.read_bytes())
    monkeypatch.setattr(script, "TABLE", table)
    _, before = script.known()
    whole = {
        "boxscore command": [2.0, 1.0, 3.0],
        "boxscore paths": [4.0],
        "vernier": [8.0],
        "fast": [4.0, 4.0],
    }
    parts: dict[str, dict[str, float]] = dict.fromkeys(whole, dict.fromkeys(script.measured.STAGES, 0.5))
    parts |= {"boxscore command": {}, "vernier": dict.fromkeys(script.measured.STAGES, 1.0)}
    contenders = [
        {
            "name": name,
            "memory": 5e6,
            "rounds": [{"whole": seconds, **parts[name]} for seconds in rounds],
        }
        for name, rounds in whole.items()
    ]
    results.mkdir()
    (results / "coco_500k.json").write_text(json.dumps({"contenders": contenders}))
    stored = [
        {"key": "tide", "ours": 0.5},
        {"key": "a-new-one", "work": "more", "scope": "arrays", "ours": 0.5},
        {"key": "unknown", "ours": 0.5},
    ]
    (results / "rows_more.json").write_text(json.dumps(stored))
    script.take_in(results, "here", "a machine")
    machines, rows = script.known()
    by_key, former = ({row["key"]: row for row in some} for some in (rows, before))
    assert list(by_key) == [*former, "a-new-one"]
    assert machines["here"] == "a machine"
    taken = by_key["boxes-500k"]
    assert (taken["ours"], taken["theirs"], taken["ratio"], taken["peer"]) == (2.0, 4.0, 0.5, "fast")
    assert taken["work"] == former["boxes-500k"]["work"]
    assert [(by_key[key]["ratio"], by_key[key]["peer"]) for key in ("boxes-500k-read", "vernier-500k")] == [
        (1.0, "fast"),
        (0.5, "vernier"),
    ]
    changed = {"boxes-500k", "boxes-500k-api", "boxes-500k-read", "vernier-500k", "tide", "a-new-one"}
    assert {key for key, row in by_key.items() if row["machine"] == "here"} == changed
    assert all(by_key[key] == row for key, row in former.items() if key not in changed)
    assert {row["machine"] for row in rows} == set(machines)
