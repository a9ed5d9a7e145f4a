"""The pages name only what is there: modules, functions, files of the project, and each thing by one word."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "datasets/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
DOTTED = re.compile(r"(?<![\w./-])boxscore(?:\.[A-Za-z_]\w*)+")
OWN_FILE = re.compile(r"(?<![\w./-])(?:src|tests|docs|configs|datasets|benchmarks)/[\w./-]*\w")
MADE = {"benchmarks/.venv", "datasets/make_samples.py", "benchmarks/data"}
"""What is made by a command that the page names."""

OTHER_WORDS = {
    r"headline": "summary metric",
    r"\b[Tt]he kit\b|\bVOC kit\b": "the VOC devkit",
    r"run-length code": "RLE",
    r"put right": "corrected",
    r"score floor": "score threshold",
    r"\b(?:one|row|rows|line|lines|columns?|file|box|boxes|AP) a class\b": "per class",
    r"\bby class\b": "per class",
    r"^found = |\bfound,? protocol|\(truth, found\)": "detections",
}
"""What the glossary has another word for."""


def exists(dotted: str) -> bool:
    """Whether a dotted name is a module or an attribute, as ``import boxscore`` and its user see it."""
    value = importlib.import_module("boxscore")
    parts = dotted.split(".")
    for end in range(2, len(parts) + 1):
        try:
            value = getattr(value, parts[end - 1])
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:end]))
            except ModuleNotFoundError:
                return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_dotted_name_is_there(page: Path) -> None:
    names = sorted(set(DOTTED.findall(page.read_text(encoding="utf-8"))))
    assert [name for name in names if not exists(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_of_the_project_is_there(page: Path) -> None:
    paths = sorted(set(OWN_FILE.findall(page.read_text(encoding="utf-8"))) - MADE)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_name_that_is_gone_is_noticed() -> None:
    assert exists("boxscore.suppression.hard.nms")
    assert not exists("boxscore.nms.hard")
    assert not exists("boxscore.average_precision")
