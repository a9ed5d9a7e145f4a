"""The command plot draws one picture of a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import plots
from boxscore.extensions.pages.plot_command import KINDS
from support.running import Run
from support.samples import DT, GT

pytest.importorskip("matplotlib")
SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "miss-rate"])
def test_each_kind_writes_a_picture(kind: str, tmp_path: Path, run: Run) -> None:
    for ending, start in list(SIGNATURES.items())[: 1 if kind != "pr" else 3]:
        path = tmp_path / f"picture{ending}"
        assert run("plot", kind, GT, DT, "--output", path).out.strip() == str(path)
        assert path.read_bytes().startswith(start)


def test_the_file_is_named_after_the_plot(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    gt, dt = Path(GT).resolve(), Path(DT).resolve()
    monkeypatch.chdir(tmp_path)
    assert run("plot", "f1", gt, dt).out.strip() == "f1.png"
    assert Path("f1.png").is_file()


def test_the_legend_has_the_ap_of_the_table() -> None:
    result = boxscore.evaluate(GT, DT, digest=False)
    display = plots.PrecisionRecallDisplay.from_evaluation(
        result, iou_threshold=0.5, classes=["star", "circle"]
    )
    lines = [text.get_text() for text in display.plot().ax_.get_legend().get_texts()]
    values = dict(zip(result.labels, result.class_values["AP50"], strict=True))
    named = [f"{name}, AP {values[name]:.3f}" for name in ("star", "circle")]
    assert lines == [*named, f"mean over classes, AP {result.metrics['AP50']:.3f}"]
    styles = [line.get_linestyle() for line in display.ax_.lines[-3:-1]]
    assert len(set(styles)) == 2


def test_the_matrix_has_counts_and_its_threshold() -> None:
    result = boxscore.evaluate(GT, DT, digest=False)
    display = plots.ConfusionDisplay.from_evaluation(result, score_threshold=0.5, most=3).plot()
    texts = [int(text.get_text()) for text in display.ax_.texts]
    assert texts == display.counts[display.counts > 0].tolist()
    classes = len(result.labels)
    assert display.ax_.get_title() == f"score \u2265 0.5, the 3 most confused of {classes} classes"
    image, bar = display.ax_.images[0], display.figure_.axes[1]
    assert bar.get_ylabel() == "fraction of the true class"
    total = display.counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(image.get_array(), display.counts / np.maximum(total, 1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pr", "--most", "3"], "--most must not be used with the plot pr"),
        (["conf"], "did you mean 'confusion'"),
        (["pr", "--output", "pr.gif"], "the ending of --output must be one of"),
        (["pr", "--output", "nowhere/pr.png"], "--output must be in a folder that exists"),
        (["pr", "--highlight", "strar"], "did you mean 'star'"),
        (["miss-rate", "--at-score", "0.5"], "--at-score must not be used with the plot miss-rate"),
    ],
)
def test_bad_words_are_refused(
    words: list[str], message: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, dt = Path(GT).resolve(), Path(DT).resolve()
    monkeypatch.chdir(tmp_path)
    assert message in run.error("plot", words[0], gt, dt, *words[1:])
    assert not list(tmp_path.iterdir())


def test_an_incomplete_call_prints_a_complete_one(run: Run) -> None:
    assert "For example: boxscore plot pr GT DT." in run.error("plot")


def test_without_scores_only_plots_that_need_none_are_drawn(tmp_path: Path, run: Run) -> None:
    words = ["--scoreless", "--output", tmp_path / "one.png"]
    assert "must have scores for this" in run.error("plot", "pr", GT, DT, *words)
    assert run("plot", "confusion", GT, DT, *words).out.strip() == str(tmp_path / "one.png")
