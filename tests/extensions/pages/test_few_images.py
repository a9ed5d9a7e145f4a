"""Intervals of many classes in few images say so once, wherever a detector's own intervals are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxscore import Evaluation
from boxscore.diagnostics import bootstrap_intervals, compare_detectors
from boxscore.extensions.decisions.compare import DetectorComparison
from boxscore.extensions.pages.comparison_view import comparison_view
from boxscore.reports import ReportOptions
from support.evaluations import evaluation

NOTE = "Half of the 28 classes are in at most 3 images: metrics of so few images are too high on average, and intervals over all classes hold for samples of this size."
FAST = ReportOptions(date="", resamples=5, gallery=0)


def results(count: int = 2, *, classes: int = 30) -> dict[str, Evaluation]:
    return {
        f"d{number}": evaluation(images=25, boxes=3, classes=classes, noise=1.0 + number)
        for number in range(count)
    }


@pytest.fixture(scope="module")
def few() -> DetectorComparison:
    return compare_detectors(results(), resamples=10, metrics=["AP"])


def test_the_bootstrap_and_a_comparison_agree(few: DetectorComparison) -> None:
    assert few.note == NOTE
    first = next(iter(few.evaluations.values()))
    assert bootstrap_intervals(first).note == NOTE
    groups = [image // 5 for image in range(25)]
    assert bootstrap_intervals(first, group=groups).note == NOTE  # of images, not of groups


def test_the_caption_of_a_paper(few: DetectorComparison) -> None:
    for text in (few.to_markdown(), few.to_latex()):
        assert text.count(NOTE) == 1
    assert NOTE not in few.to_latex(intervals=False)


@pytest.mark.long
def test_the_pages(few: DetectorComparison, tmp_path: Path) -> None:
    """The page of a detector, of two, and of three with theirs; made of one metric."""
    next(iter(few.evaluations.values())).report(tmp_path / "one", resamples=5, gallery=0)
    few.report(tmp_path / "two", gallery=0)
    compare_detectors(results(3), resamples=10, metrics=["AP"]).report(
        tmp_path / "three", resamples=5, gallery=0
    )
    pages = sorted(tmp_path.glob("*/*.html"))
    assert len(pages) > 4
    for page in pages:
        text = page.read_text(encoding="utf-8").partition('<script type="application/json"')[0]
        assert text.count(NOTE) == 1, page.name


def test_enough_images_take_no_note() -> None:
    enough = compare_detectors(results(classes=3), resamples=10, metrics=["AP"])
    assert enough.note == ""
    assert bootstrap_intervals(next(iter(enough.evaluations.values())), resamples=5).note == ""
    assert "too high on average" not in enough.to_markdown()
    assert comparison_view(enough, options=FAST)["interval"].endswith("(max-T).")
