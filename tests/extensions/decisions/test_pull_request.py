"""The summary of a gate for a pull request: what it says, how long it may be, and names that mean something to GitHub."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.cli import main
from boxscore.diagnostics import compare_detectors
from boxscore.extensions.decisions import gate
from boxscore.extensions.decisions.pull_request import MARKER, MOST_CLASSES, pull_request_summary
from support.samples import DT, GT

LONGEST_COMMENT = 65_536


def summary_of(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    path = tmp_path / "comment.md"
    status = main(["check", str(GT), str(DT), "--summary", str(path), "--resamples", "50", *arguments])
    return status, path.read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """Detections whose boxes lie four pixels too far right."""
    table = boxscore.load_detections(DT, boxscore.load_ground_truth(GT))
    path = tmp_path / "moved.json"
    boxscore.save_as(table.replaced(boxes=table.boxes + np.array([4.0, 0, 4, 0])), path)
    return path


@pytest.mark.long
def test_differences_first_and_classes_folded(tmp_path: Path, moved: Path) -> None:
    status, text = summary_of(
        tmp_path, "--baseline-detections", str(moved), "--metrics", "AP", "--name", "run 7"
    )
    assert status == 0
    assert text.splitlines()[0] == MARKER
    assert "### :white_check_mark: boxscore, `run 7`: all checks passed" in text
    truth = boxscore.load_ground_truth(GT)
    results = {
        name: boxscore.evaluate(truth, boxscore.load_detections(path, truth), digest=False)
        for name, path in (("old", moved), ("new", DT))
    }
    old, new = results["old"]["AP"], results["new"]["AP"]
    first = rows(text)[2]
    assert first[:4] == ["AP", f"{old:.4f}", f"{new:.4f}", f"{new - old:+.4f}"]
    comparison = compare_detectors(results, metrics=["AP"], resamples=50)
    low, high = comparison.total.low[0, 0], comparison.total.high[0, 0]
    assert first[4] == f"{low:+.4f} to {high:+.4f}"
    folded = text.split("<details>")[1]
    better = (comparison.per_class.verdict[0, 0] == "better").sum()
    assert re.search(rf"<summary>7 classes, AP: {better} better</summary>", folded)
    assert {row[0] for row in rows(folded)[2:]} == set(truth.categories.labels)


def test_a_failure_is_bold(tmp_path: Path, moved: Path) -> None:
    status, text = summary_of(tmp_path, "--min", "AP=0.9", "AP50=0.1")
    assert status == 1
    assert "### :x: boxscore: 1 of 2 failed" in text
    assert [row[-1] for row in rows(text)[2:4]] == ["**failed**", "passed"]
    assert "<summary>7 classes</summary>" in text


def test_a_result_without_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(GT), str(DT), "--output", "json"]) == 0
    result = tmp_path / "result.json"
    result.write_text(capsys.readouterr().out)
    path = tmp_path / "comment.md"
    assert main(["check", "--result", str(result), "--min", "AP=0.1", "--summary", str(path)]) == 0
    assert "<details>" not in path.read_text()


def world(labels: dict[int, str], *, shift: float = 0.0) -> boxscore.Evaluation:
    count = len(labels)
    image = np.arange(count) % 30
    boxes = np.column_stack(
        [np.arange(count) * 50.0, np.zeros(count), np.arange(count) * 50.0 + 40, np.full(count, 40)]
    )
    truth = GroundTruth.from_arrays(image, list(labels), boxes, categories=labels)
    found = Detections.from_arrays(image, list(labels), boxes + shift, np.full(count, 0.5), categories=labels)
    return boxscore.evaluate(truth, found, digest=False)


def written(labels: dict[int, str], **about: Any) -> str:
    evaluation = world(labels)
    done = [gate.Check("AP", 0.5, ">= 0.1", True)]
    return pull_request_summary(
        done, note="all checks passed", signature=evaluation.signature, evaluation=evaluation, **about
    )


@pytest.mark.long
def test_very_many_classes_fit_in_a_comment() -> None:
    labels = {number: f"class {number} " + "&<>|*" * 300 for number in range(1, 1501)}
    comparison = compare_detectors(
        {"old": world(labels, shift=3), "new": world(labels)}, metrics=["AP"], resamples=20
    )
    for text in (written(labels), written(labels, comparison=comparison)):
        assert len(text) < LONGEST_COMMENT
        assert len(rows(text)) == 4 + MOST_CLASSES + 1
        assert "... and 1,400 more classes" in text


@pytest.mark.parametrize(
    "name", ["@everyone", "</details><script>", "a|b", "`code`", "[x](http://y)", "\u202eleft", "*b*"]
)
def test_names_mean_nothing_to_github(name: str) -> None:
    text = written({1: name, 2: "plain"}, name=name)
    assert "@everyone" not in re.sub(r"`[^`\n]*`", "", text)
    assert "<script>" not in text.replace("`</details><script>`", "")
    assert "\u202e" not in text
    of_class = [line for line in text.splitlines() if line.startswith("| ") and " plain |" not in line][-1]
    cells = re.split(r"(?<!\\)\|", of_class.strip("| "))
    plain = html.unescape(re.sub(r"\\(.)", r"\1", cells[0].replace("@<!-- -->", "@"))).strip()
    assert plain in (name, name.replace("\u202e", "\N{REPLACEMENT CHARACTER}"))
