"""A package that is not installed is missed before anything is read, however long the work would be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.running import Run

PLOTS = "Plots need matplotlib: pip install 'boxscore[plots]'."
IMAGES = "Reading images needs Pillow: pip install 'boxscore[plots]', or run without an image folder."
TABLES = "Parquet tables need pyarrow: pip install 'boxscore[tables]', or use json or csv."
PARQUET = "Parquet needs pyarrow: pip install 'boxscore[tables]'."
BOTH = ["missing.json", "missing.json"]


@pytest.mark.parametrize(
    ("package", "call", "message"),
    [
        ("matplotlib", ["report", *BOTH, "--plots", "pdf"], PLOTS),
        ("matplotlib", ["evaluate", *BOTH, "--report", "r", "--plots", "png"], PLOTS),
        ("matplotlib", ["compare", *BOTH, "other.json", "--report", "r", "--plots", "svg"], PLOTS),
        ("matplotlib", ["history", "missing.jsonl", "--plot", "h.png"], PLOTS),
        ("matplotlib", ["sweep", *BOTH, "--plot", "s.png"], PLOTS),
        ("matplotlib", ["draw", *BOTH, "--output", "d"], PLOTS),
        ("PIL", ["report", *BOTH, "--image-folder", "."], IMAGES),
        ("pyarrow", ["report", *BOTH, "--tables", "parquet"], TABLES),
        ("pyarrow", ["convert", "missing.json", "--output", "a.parquet"], PARQUET),
        ("pyarrow", ["convert", "missing.json", "--output", "a", "--to", "parquet"], PARQUET),
        (
            "pycocotools",
            ["evaluate", *BOTH, "--verify"],
            "--verify needs pycocotools: pip install pycocotools.",
        ),
    ],
)
def test_it_is_missed_first(
    package: str,
    call: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    assert run.error(*call) == f"boxscore: error: {message}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_run_configuration(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        '[ground_truth]\npath = "missing.json"\n[detections]\npath = "missing.json"\n'
        '[output]\nreport = "r"\nplots = "png"\n'
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run.error("run", config) == f"boxscore: error: {PLOTS}\n"


def test_nothing_is_looked_for_without_need(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for package in ("matplotlib", "PIL", "pyarrow", "pycocotools"):
        monkeypatch.setitem(sys.modules, package, None)
    assert "missing.json" in run.error("evaluate", *BOTH, "--plots", "png", "--image-folder", ".")
