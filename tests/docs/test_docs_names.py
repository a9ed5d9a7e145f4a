"""The pages name only what is there: modules, functions, files of the project, and each thing by one word."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import boxscore
from support.each import each
from support.imports import MODULES

ROOT = Path(__file__).parents[2]
PAGES = [
    *(
        ROOT / name
        for name in (
            "README.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "benchmarks/README.md",
            "datasets/README.md",
        )
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PACKAGES = "|".join(
    path.name for path in (ROOT / "src" / "boxscore").iterdir() if (path / "__init__.py").exists()
)
DOTTED = re.compile(r"(?<![\w./-])boxscore(?:\.[A-Za-z_]\w*)+")
OWN_FILE = re.compile(r"(?<![\w./-])(?:src|tests|docs|configs|datasets|benchmarks)/[\w./-]*\w")
MODULE = re.compile(rf"`((?:{PACKAGES})/[\w/]+\.py)`")
REPORT_FILE = re.compile(r"(?<![\w./-])report/[\w./-]+\.\w+")
ELSEWHERE = {
    "benchmarks/.venv",
    "benchmarks/.venv-suppression",
    "docs/how-to/PAGE.md",
    "configs/_base_/models/faster-rcnn_r50_fpn.py",
}
"""What a command makes, what stands for any page, and another project's file."""

GENERATED = {"benchmarks.md"}
HISTORY = {"decisions.md", "decisions-nms.md", "decisions-reports.md", "architecture.md"}

OTHER_WORDS = {
    r"headline": "summary metric",
    r"[Tt]he kit\b|VOC kit": "VOC devkit",
    r"run-length codes?\b": "RLE",
    r"put right": "corrected",
    r"score floor|confidence threshold": "score threshold",
    r"(?<![{`])\b[Cc]aps?\b(?![}`:])|\bcapped\b": "max detections",
    r"\b(?:one|rows?|lines?|files?|columns?|entry) an? (?:class|image|row|method|line|column)\b": "per",
    r"\bfound = |\btruth, found\b": "detections",
}
"""What the glossary has another word for."""


def prose_of(page: Path) -> str:
    """Return a page without what programs print."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```(?:console|text).*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


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
            except ModuleNotFoundError:  # an adapter whose framework is not here is there
                return ".".join(parts[:end]) in MODULES
    return True


@each(PAGES)
def test_every_dotted_name_is_there(page: Path) -> None:
    names = sorted(set(DOTTED.findall(page.read_text(encoding="utf-8"))))
    assert [name for name in names if not exists(name)] == []


@each(PAGES)
def test_every_file_of_the_project_is_there(page: Path) -> None:
    text = prose_of(page)
    paths = set(OWN_FILE.findall(text)) - ELSEWHERE | {
        f"src/boxscore/{path}" for path in MODULE.findall(text)
    }
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_every_file_of_a_report_that_a_page_names_is_written(tmp_path: Path) -> None:
    layouts = ROOT / "datasets" / "layouts" / "coco"
    result = boxscore.evaluate(layouts / "instances.json", layouts / "results.json")
    result.report(tmp_path / "report", resamples=0)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    named = {
        (page.name, path) for page in PAGES for path in REPORT_FILE.findall(page.read_text(encoding="utf-8"))
    }
    assert ("notebook.md", "report/report.html") in named
    assert sorted(pair for pair in named if pair[1] not in written) == []


@each([page for page in PAGES if page.name not in GENERATED | HISTORY])
def test_one_word_for_one_thing(page: Path) -> None:
    text = prose_of(page)
    used = {word: re.findall(pattern, text) for pattern, word in OTHER_WORDS.items()}
    assert {word: others for word, others in used.items() if others} == {}


def test_a_name_that_is_gone_is_noticed() -> None:
    assert exists("boxscore.suppression.hard.nms")
    assert not exists("boxscore.nms.hard")
    assert not exists("boxscore.average_precision")
