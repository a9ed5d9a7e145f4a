"""The examples of the how-tos that need a framework print what the pages say."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("inside-your-framework", "training-loop")]
EXAMPLE = re.compile(
    r"<!-- not run: needs (?P<package>\w+); make frameworks runs it -->\n```python\n(?P<code>.*?)```\n\nIt prints\n\n```text\n(?P<output>.*?)```",
    re.DOTALL,
)
EXAMPLES = [example for page in PAGES for example in EXAMPLE.finditer(page.read_text(encoding="utf-8"))]


def printed(code: str) -> str:
    """Run an example in a folder of its own, where the repository's data sets are."""
    output, before = io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("datasets").symlink_to(ROOT / "datasets")
            with contextlib.redirect_stdout(output):
                exec(compile(code, "an example", "exec"), {"__name__": "__main__"})
        finally:
            os.chdir(before)
    return output.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["package"])
def test_an_example_prints_what_the_page_says(example: re.Match[str]) -> None:
    pytest.importorskip(example["package"])
    assert printed(example["code"]) == example["output"]


def test_there_are_examples() -> None:
    assert {example["package"] for example in EXAMPLES} == {
        *("torchmetrics", "supervision", "fiftyone", "wandb", "lightning"),
    }


if __name__ == "__main__":  # writes what the examples print into the pages
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for example in reversed(list(EXAMPLE.finditer(text))):
            start, end = example.span("output")
            text = text[:start] + printed(example["code"]) + text[end:]
        page.write_text(text, encoding="utf-8")
