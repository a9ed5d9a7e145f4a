"""The table of a paper: what stands in it, what is bold, and that names do no harm."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import compare_detectors
from boxscore.extensions.decisions.compare import DetectorComparison
from support.evaluations import HOSTILE, evaluation
from support.running import Run
from support.samples import DT, GT


@pytest.fixture(scope="module")
def comparison() -> DetectorComparison:
    results = {
        "close_1": evaluation(noise=1.0),
        "near": evaluation(noise=1.2),
        "far & away": evaluation(noise=25.0),
    }
    metrics = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR100"]
    return compare_detectors(results, resamples=40, metrics=metrics)


def cells(latex: str) -> list[list[str]]:
    """Rows of the tabular, without its rules."""
    body = latex.partition("\\midrule\n")[2].partition("\\bottomrule")[0]
    return [line.removesuffix(" \\\\").split(" & ") for line in body.splitlines() if line != "\\addlinespace"]


def test_numbers_and_intervals(comparison: DetectorComparison) -> None:
    rows = cells(comparison.to_latex())
    assert [row[0] for row in rows] == ["close\\_1", "", "near", "", "far \\& away", ""]
    own = comparison.intervals
    keys = ["AP", "AP50", "AP75", "APs", "APm", "APl"]
    for i in range(3):
        for column, key in enumerate(keys, start=1):
            m = comparison.metrics.index(key)
            value = rows[2 * i][column]
            assert value.replace("\\textbf{", "").replace("}", "") == f"{100 * own.value[i, m]:.1f}"
            ends = f"[{100 * own.low[i, m]:.1f}, {100 * own.high[i, m]:.1f}]"
            ends = f"{{\\scriptsize {100 * own.estimate[i, m]:.1f} {ends}}}"
            assert rows[2 * i + 1][column] == ("" if np.isnan(own.low[i, m]) else ends)
            assert value.startswith("\\textbf") == (comparison.clear_best(m) == i)


def test_the_caption_says_what_the_intervals_are(comparison: DetectorComparison) -> None:
    """AP has an estimate before its interval, recall has none, and a table without intervals explains none."""
    what = (
        "In brackets: 95% interval of the metric on very many images like these, from leaving out groups of"
    )
    estimate = "images; before it, AP without the bias of few images, which raises AP. No best value"
    assert f"{what} {estimate}" in comparison.to_markdown()
    m, own = comparison.metrics.index("AR100"), comparison.intervals
    recall = comparison.to_markdown(metrics=["AR100"], scale=1)
    ends = f"{own.low[0, m]:.3f}, {own.high[0, m]:.3f}"
    assert f"{own.value[0, m]:.3f} \\[{ends}\\] |" in recall.replace("**", "")
    assert f"{what} images. " in recall
    for text in (comparison.to_markdown(), recall, comparison.to_markdown(intervals=False)):
        assert text.count("40 resamples, seed 0") == 1
    assert "n brackets" not in comparison.to_markdown(intervals=False)


def test_only_a_clear_best_is_bold(comparison: DetectorComparison) -> None:
    clear = compare_detectors(
        {name: comparison.evaluations[name] for name in ("close_1", "far & away")},
        resamples=60,
        metrics=["AP"],
    )
    assert clear.to_latex().count("\\textbf") == 1
    assert "Bold: best, if significantly different from the second best" in clear.to_latex()
    same = comparison.evaluations["near"]
    equal = compare_detectors({"x": same, "y": same}, resamples=20, metrics=["AP"])
    assert "\\textbf" not in equal.to_latex()
    assert "No best value differs significantly from the second best" in equal.to_latex()


def test_markdown_has_the_same_content(comparison: DetectorComparison) -> None:
    markdown, latex = comparison.to_markdown(), comparison.to_latex()
    lines = [line.strip("| ").split(" | ") for line in markdown.splitlines() if line.startswith("|")]
    rows = cells(latex)
    for i, line in enumerate(lines[2:]):
        for shown, value, interval in zip(line[1:], rows[2 * i][1:], rows[2 * i + 1][1:], strict=True):
            value = re.sub(r"\\textbf\{(.*)\}", r"**\1**", value)
            interval = interval.removeprefix("{\\scriptsize ").removesuffix("}")
            after = f"; {interval}" if interval else ""
            assert shown.replace("\\", "") == f"{value}{after}"
    caption = re.search(r"\\caption\{(.*) \\texttt", latex)
    assert caption
    assert caption[1].replace("\\%", "%") in markdown
    assert comparison.evaluations["near"].signature in markdown


def test_options(comparison: DetectorComparison) -> None:
    text = comparison.to_latex(metrics=["AR100"], scale=1, intervals=False, label="tab:mine")
    assert "\\label{tab:mine}" in text
    m = comparison.metrics.index("AR100")
    value = cells(text)[0][1].replace("\\textbf{", "").replace("}", "")
    assert value == f"{comparison.intervals.value[0, m]:.3f}"
    assert len(cells(text)) == 3
    assert "times 100" not in text
    assert re.search(r"\d\.\d{4}\b", comparison.to_markdown(scale=1, decimals=4))
    for options, message in (
        ({"scale": 10}, "scale must be 100 or 1"),
        ({"decimals": -1}, "decimals must be a whole number >= 0"),
        ({"metrics": ["APx"]}, "metrics must be one of"),
        ({"label": "}\\input{x}"}, "label must contain only letters"),
    ):
        with pytest.raises(boxscore.InputError, match=message):
            comparison.to_latex(**options)


@pytest.mark.long
def test_hostile_names_stay_names() -> None:
    same = evaluation()
    latex = compare_detectors(dict.fromkeys(HOSTILE, same), resamples=2, metrics=["AP"]).to_latex()
    rows = cells(latex)
    assert len(rows) == 2 * len(HOSTILE)
    assert all(len(row) == 2 for row in rows)
    allowed = {
        *(
            "begin",
            "end",
            "centering",
            "caption",
            "label",
            "toprule",
            "midrule",
            "bottomrule",
            "addlinespace",
        ),
        *("texttt", "scriptsize", "allowbreak", "textbar"),
        *("textless", "textgreater", "textbackslash", "textasciitilde", "textasciicircum", "textasciigrave"),
    }
    assert set(re.findall(r"\\([a-zA-Z]+)", latex)) <= allowed
    plain = re.sub(r"\\[{}]", "", latex)
    assert plain.count("{") == plain.count("}")
    assert "\x1b" not in latex
    assert latex.startswith("% A name has characters that pdflatex does not support")


@pytest.mark.long
def test_the_command(tmp_path: Path, run: Run) -> None:
    truth, detections = GT, DT
    call = [
        "compare",
        "--gt",
        truth,
        "--dt",
        detections,
        detections,
        "--names",
        "ours",
        "theirs",
        "--resamples",
        "5",
    ]
    shown = run(*call, "--output", "latex", "--label", "tab:x", "--fractions", "--decimals", "2").out
    assert "ours & 0.34 & 0.59 &" in shown
    assert "\\label{tab:x}" in shown
    assert (
        "| theirs | 59.4 |" in run(*call, "--output", "markdown", "--metrics", "AP50", "--no-intervals").out
    )
