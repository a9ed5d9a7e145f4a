"""Nothing is said twice: no heading or paragraph in one page, no paragraph in two pages; and no page is too long."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from support.each import each
from support.running import Run

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("*/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SHORT, LONG = 8, 20
"""Words that a paragraph may have to stand twice in a page, and in two pages."""

BEFORE_INSTALLED = (
    r"uvx boxscore|pipx run boxscore|pip install (?:--\S+ )*['\"]?boxscore['\"]?(?! @)(?=\s|`|$)"
)
"""Commands that fetch boxscore from PyPI, where it is not."""


def headings_of(text: str) -> list[str]:
    """Return the headings, each below those that it belongs to."""
    path: list[str] = []
    found = []
    for marks, heading in re.findall(r"^(#+) +(.+?) *$", FENCE.sub("", text), flags=re.MULTILINE):
        path = [*path[: len(marks) - 1], *[""] * (len(marks) - 1 - len(path)), heading]
        found.append(" / ".join(path))
    return found


def paragraphs_of(text: str) -> list[str]:
    """Return paragraphs, items of lists and whole tables, without what is code."""
    text = re.sub(r"<!--.*?-->", "", FENCE.sub("\n\n", text), flags=re.DOTALL)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    return [block for block in (" ".join(each.split()).strip("-* ") for each in blocks) if block]


def repeated(texts: list[str], words: int) -> list[str]:
    counts = Counter(text for text in texts if len(text.split()) > words and not text.startswith("#"))
    return sorted(text for text, count in counts.items() if count > 1)


@each(PAGES)
def test_no_page_says_a_heading_or_a_paragraph_twice(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    counts = Counter(headings_of(text))
    assert [heading for heading, count in counts.items() if count > 1] == []
    assert repeated(paragraphs_of(text), SHORT) == []


def test_no_paragraph_stands_in_two_pages() -> None:
    texts = [text for page in PAGES for text in sorted(set(paragraphs_of(page.read_text(encoding="utf-8"))))]
    assert repeated(texts, LONG) == []


def test_the_readme_is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


@each(PAGES)
def test_no_page_fetches_what_is_not_on_pypi(page: Path) -> None:
    assert re.findall(BEFORE_INSTALLED, page.read_text(encoding="utf-8")) == []


def test_help_does_not_fetch_what_is_not_on_pypi(run: Run) -> None:
    text = " ".join(run("--help").out.split())
    assert "python -m boxscore" in text
    assert re.findall(BEFORE_INSTALLED, text) == []


def test_a_second_copy_is_noticed() -> None:
    page = "# A\n\n## B\n\nOne two three four five six seven eight nine.\n\n- j i h g f e d c b a\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    copied = page + page.split("# A\n")[1]
    assert headings_of(copied) == ["A", "A / B", "A / B"]
    assert repeated(paragraphs_of(page), SHORT) == []
    assert repeated(paragraphs_of(copied), SHORT) == [
        "One two three four five six seven eight nine.",
        "j i h g f e d c b a",
        "| a | b | |---|---| | 1 | 2 |",
    ]
    assert re.findall(BEFORE_INSTALLED, "`pip install boxscore`")
    assert not re.findall(BEFORE_INSTALLED, "pip install 'boxscore[tables]'")
