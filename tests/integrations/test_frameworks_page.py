"""The examples of the how-to that need a framework print what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "inside-your-framework.md"
EXAMPLE = re.compile(
    r"<!-- not run: needs (?P<package>\w+); make frameworks runs it -->\n```python\n(?P<code>.*?)```\n\nIt prints\n\n```text\n(?P<output>.*?)```",
    re.DOTALL,
)
EXAMPLES = list(EXAMPLE.finditer(PAGE.read_text(encoding="utf-8")))


def printed(code: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, str(PAGE), "exec"), {"__name__": "__main__"})
    return output.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["package"])
def test_an_example_prints_what_the_page_says(example: re.Match[str]) -> None:
    pytest.importorskip(example["package"])
    assert printed(example["code"]) == example["output"]


def test_there_are_examples() -> None:
    assert {example["package"] for example in EXAMPLES} == {"torchmetrics", "supervision", "fiftyone"}


if __name__ == "__main__":  # writes what the examples print into the page
    text = PAGE.read_text(encoding="utf-8")
    for example in reversed(EXAMPLES):
        start, end = example.span("output")
        text = text[:start] + printed(example["code"]) + text[end:]
    PAGE.write_text(text, encoding="utf-8")
