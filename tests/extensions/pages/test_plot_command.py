"""The command plot draws one picture of a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics, plots
from boxscore.extensions.diagnostics.confusion import ConfusionMatrix
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


@pytest.mark.parametrize("order", ["file", "AP", "objects", "confusion"])
def test_the_matrix_has_the_classes_in_the_order_asked_for(order: str, tmp_path: Path, run: Run) -> None:
    result = boxscore.evaluate(GT, DT, digest=False)
    display = plots.ConfusionDisplay.from_evaluation(result, score_threshold=0.5, order=order)  # type: ignore[arg-type]
    names = result.labels
    ap, objects = result.class_values["AP"], result.class_counts["ground_truths"]
    expected = {
        "file": names,
        "AP": sorted(names, key=lambda name: (np.isnan(ap[names.index(name)]), ap[names.index(name)])),
        "objects": sorted(names, key=lambda name: -objects[names.index(name)]),
        # hexagon and circle 7, circle and square 5, square and triangle 2 and 0, star and cross 2.
        "confusion": ["hexagon", "circle", "square", "triangle", "star", "cross", "moon"],
    }[order]
    assert display.labels == [*expected, "(background)"]
    # Each cell keeps its count.
    frame = diagnostics.confusion_matrix(result, score_threshold=0.5).to_frame()
    assert display.counts.tolist() == frame.loc[display.labels, display.labels].to_numpy().tolist()
    run("plot", "confusion", GT, DT, "--order", order, "--output", tmp_path / "matrix.png")
    assert "not be used with the plot pr" in run.error("plot", "pr", GT, DT, "--order", order)


def matrix_of(counts: dict[tuple[int, int], int], classes: int) -> ConfusionMatrix:
    truth, predicted = (np.array(side, dtype=np.intp) for side in zip(*sorted(counts), strict=True))
    labels = [*(f"class {k}" for k in range(classes)), "(background)"]
    return ConfusionMatrix(labels, truth, predicted, np.array([counts[key] for key in sorted(counts)]))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({(0, 0): 5}, [0, 1, 2, 3, 4, 5]),
        # A chain: both ends turn.
        ({(0, 5): 9, (5, 0): 1, (2, 5): 4, (0, 3): 3}, [2, 5, 0, 3, 1, 4]),
        # Two groups, the more confused first; the middle of a group stays where it is.
        ({(1, 4): 2, (0, 2): 3, (2, 3): 2, (2, 5): 1}, [0, 2, 3, 5, 1, 4]),
        # The background and the diagonal do not count.
        ({(0, 6): 90, (6, 4): 80, (3, 3): 70, (4, 1): 1}, [1, 4, 0, 2, 3, 5]),
    ],
)
def test_confused_classes_stand_together(counts: dict[tuple[int, int], int], expected: list[int]) -> None:
    matrix = matrix_of(counts, 6)
    result = boxscore.evaluate(GT, DT, digest=False)
    assert matrix.ordered(np.arange(6)[::-1].astype(np.intp), "confusion", result).tolist() == expected


def test_lines_of_many_classes_differ_without_color() -> None:
    result = boxscore.evaluate(GT, DT, digest=False)
    names = ["star", "circle", "square", "triangle", "hexagon"]
    display = plots.PrecisionRecallDisplay.from_evaluation(result, classes=[*names, *names[:2]]).plot()
    lines = display.ax_.lines[-8:-1]
    assert len({(line.get_linestyle(), line.get_dash_capstyle(), line.get_marker(), str(line._dash_pattern)) for line in lines}) == 7  # fmt: skip


def test_steps_of_the_analysis_differ_without_color() -> None:
    result = boxscore.evaluate(GT, DT, digest=False)
    figure = plots.error_curves(result)
    _, patches = figure.axes[0].get_legend_handles_labels()
    hatches = [area.get_hatch() for area in figure.axes[0].collections]
    assert len(patches) == len(hatches) == 7
    assert len({*hatches[2:6]}) == 4


def test_the_miss_rate_of_many_classes_is_drawn_of_five(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[str]] = []

    def keep(result: boxscore.Evaluation, *, classes: tuple[str, ...] = (), ax: object = None) -> object:
        drawn.append(list(classes))
        return plots.pr_curve(result)

    monkeypatch.setattr(plots, "miss_rate", keep)
    run("plot", "miss-rate", GT, DT, "--output", tmp_path / "all.png")
    monkeypatch.setattr("boxscore.extensions.pages.plot_command.MOST_LINES", 6)
    run("plot", "miss-rate", GT, DT, "--output", tmp_path / "five.png")
    ap = boxscore.evaluate(GT, DT, digest=False).per_class.set_index("class")["AP"]
    assert drawn == [[], ap.dropna().sort_values(ascending=False).index.tolist()[:5]]
