"""AP of few images can be above its interval: each place that shows both says so once."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxscore import Evaluation
from boxscore.diagnostics import bootstrap_intervals, compare_detectors
from boxscore.extensions.decisions.compare import DetectorComparison
from boxscore.extensions.pages.comparison_view import comparison_view
from boxscore.reports import ReportOptions
from support.evaluations import evaluation

NOTE = (
    "AP of few images is too high on average; estimate is AP without this bias, so AP is above the interval."
)
FAST = ReportOptions(date="", resamples=5, gallery=0)


def results(count: int = 2, *, classes: int = 80) -> dict[str, Evaluation]:
    return {
        f"d{number}": evaluation(images=60, boxes=2, classes=classes, noise=1.0 + number)
        for number in range(count)
    }


@pytest.fixture(scope="module")
def few() -> DetectorComparison:
    return compare_detectors(results(), resamples=10, metrics=["AP"])


def test_the_bootstrap_and_a_comparison_agree(few: DetectorComparison) -> None:
    assert few.note == NOTE
    first = next(iter(few.evaluations.values()))
    assert bootstrap_intervals(first, metrics=["AP"]).note == NOTE
    own = bootstrap_intervals(first, metrics=["AP"]).total
    assert own.value[0] > own.high[0] > own.estimate[0]
    assert [values[0, 0] for values in few.intervals] == [values[0] for values in own]


def test_the_caption_of_a_paper(few: DetectorComparison) -> None:
    for text in (few.to_markdown(), few.to_latex()):
        assert text.count("before it, AP without the bias of few images, which raises AP.") == 1
    assert "bias" not in few.to_latex(intervals=False)


@pytest.mark.long
def test_the_pages(few: DetectorComparison, tmp_path: Path) -> None:
    """The page of a detector, of two, and of three with theirs."""
    next(iter(few.evaluations.values())).report(tmp_path / "one", resamples=1, gallery=0)
    few.report(tmp_path / "two", gallery=0)
    compare_detectors(results(3), resamples=10, metrics=["AP"]).report(
        tmp_path / "three", resamples=5, gallery=0
    )
    pages = sorted(tmp_path.glob("*/*.html"))
    assert len(pages) > 4
    for page in pages:
        text = page.read_text(encoding="utf-8").partition('<script type="application/json"')[0]
        # The page of a detector has all metrics, and names those above their intervals.
        assert text.count("AP of few images is too high on average") == 1, page.name
        assert text.count("above the interval") == 1, page.name


def test_one_class_is_not_above_its_interval() -> None:
    enough = compare_detectors(results(classes=1), resamples=10, metrics=["AP"])
    inside = NOTE.partition(",")[0] + "."
    assert enough.note == inside
    assert comparison_view(enough, options=FAST)["interval"].endswith(f"groups of images. {inside}")
