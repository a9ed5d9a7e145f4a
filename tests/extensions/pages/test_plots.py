"""Every plot draws, in every form, whatever the names; displays hold what the evaluation says."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from support.evaluations import PROJECT, empty_evaluation, evaluation, hostile_evaluation, shapes
from support.examples import first_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plots = pytest.importorskip("boxscore.reports.plots")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    import matplotlib.pyplot

    yield
    matplotlib.pyplot.close("all")


def bytes_of(figure: Any, form: str = "svg") -> bytes:
    output = io.BytesIO()
    figure.savefig(output, format=form)
    return output.getvalue()


PLOTS = [
    *("pr_curve", "f1_curve", "froc", "confusion_matrix", "per_class", "errors", "error_curves"),
    "reliability",
]


@pytest.mark.long
@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("make", first_of(1, [hostile_evaluation, shapes, empty_evaluation]))
def test_every_plot_draws(name: str, make: Callable[[], boxscore.Evaluation]) -> None:
    figure = getattr(plots, name)(make())
    assert len(bytes_of(figure)) > 1000


@pytest.mark.long
@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_every_form(form: str) -> None:
    assert len(bytes_of(plots.pr_curve(shapes(), iou_threshold=0.75, classes=["star"]), form)) > 1000


def test_given_axes_are_drawn_on() -> None:
    figure, axes = matplotlib.pyplot.subplots()
    assert plots.per_class(shapes(), ax=axes) is figure
    assert axes.patches


def test_displays_hold_what_the_evaluation_says() -> None:
    result = shapes()
    display = plots.PrecisionRecallDisplay.from_evaluation(result, iou_threshold=0.5)
    assert display.precision.mean() == pytest.approx(result.metrics["AP50"], abs=1e-12)
    bars = plots.PerClassDisplay.from_evaluation(result)
    assert dict(zip(bars.labels, bars.values, strict=True))["star"] == result.class_values["AP"][3]
    assert (np.diff(bars.values) <= 0).all()
    matrix = plots.ConfusionDisplay.from_evaluation(result, score_threshold=0.5)
    assert matrix.labels[-1] == "(background)"


def test_the_steps_of_coco_s_analysis_are_drawn_one_upon_the_other() -> None:
    result = shapes()
    display = plots.ErrorCurvesDisplay.from_evaluation(result, name="hexagon").plot()
    curves = diagnostics.error_curves(result)
    np.testing.assert_array_equal(display.precision, curves.precision[curves.classes.index("hexagon")])
    areas = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    values = diagnostics.error_areas(result).per_class
    k = curves.classes.index("hexagon")
    expected = [f"{name} {getattr(values, name)[k]:.3f}" for name in values._fields]
    assert areas == expected
    assert display.ax_.get_title() == "hexagon"
    assert len(display.ax_.lines) == len(display.ax_.collections) == 7
    with pytest.raises(boxscore.InputError, match="name must be one of"):
        plots.error_curves(result, name="hexagn")


@pytest.mark.long
def test_compare_draws_intervals() -> None:
    both = {"a": evaluation(), "$b_^{\N{DOG FACE}": evaluation(noise=2.0)}
    assert len(bytes_of(plots.compare(both, resamples=20))) > 1000


@pytest.mark.long
def test_a_sweep_holds_what_the_table_says() -> None:
    result = shapes()
    swept = diagnostics.sweep(
        result.ground_truth,
        result.detections,
        methods=["hard", "soft-gaussian", "diou"],
        iou_thresholds=[0.6, 0.3],
        sigmas=[0.2, 0.5],
        score_thresholds=[0, 0.3],
    )
    display = plots.SweepDisplay.from_sweep(swept, metric="AP50", class_name="star")
    assert [line.name for line in display.lines[:3]] == [
        "hard, scores >= 0",
        "hard, scores >= 0.3",
        "soft-gaussian, sigma 0.2, scores >= 0",
    ]
    assert len(display.lines) == 8
    table = swept.to_frame()
    rows = table[(table["class"] == "star") & (table["method"] == "hard") & (table["score_threshold"] == 0.3)]
    assert display.lines[1].iou_thresholds.tolist() == [0.3, 0.6]
    assert display.lines[1].values.tolist() == rows.sort_values("iou_threshold")["AP50"].tolist()
    assert display.lines[2].iou_thresholds.tolist() == []
    assert len(bytes_of(display.plot().figure_)) > 1000
    nothing = diagnostics.sweep(result.ground_truth, result.detections, classes=["hexagon"])
    assert len(bytes_of(plots.sweep(nothing, class_name="hexagon"))) > 1000
    with pytest.raises(boxscore.InputError, match="metric must be one of"):
        plots.sweep(swept, metric="AP51")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"iou_threshold": 0.52},
            "iou_threshold must be a threshold of the protocol "
            r"\(0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95\). Got 0.52; --iou-thresholds 0.52 evaluates at that one\.$",
        ),
        ({"classes": ["stra"]}, "did you mean 'star'"),
    ],
)
@pytest.mark.parametrize("plot", [plots.pr_curve, plots.froc])
def test_what_is_not_there_is_refused(plot: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(boxscore.InputError, match=message):
        plot(shapes(), **arguments)


@pytest.mark.long
def test_boxes_over_an_image() -> None:
    folder = PROJECT / "datasets" / "shapes_coco"
    truth = boxscore.load_ground_truth(folder / "instances.json")
    detections = boxscore.load_detections(folder / "detections.json", truth)
    picture = folder / "images" / "000000000248.png"
    figure = plots.draw_boxes(picture, truth, detections, image_id=248, score_threshold=0.5)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert any(text.startswith("square") and "IoU" in text for text in texts)
    assert "hexagon" in texts  # missed
    keys = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert keys == ["true positive", "false positive", "missed"]
    assert len(bytes_of(figure, "png")) > 10_000


@pytest.mark.long
def test_boxes_take_arrays_and_blank_frames() -> None:
    truth = boxscore.GroundTruth.from_arrays(["a"], ["<b>$x$"], [[1, 1, 9, 9]])
    for image in (None, np.zeros((20, 30)), np.zeros((20, 30, 3), dtype=np.uint8)):
        figure = plots.draw_boxes(image, truth)
        assert len(figure.axes[0].patches) == 1
        bytes_of(figure)


def test_boxes_refuse_what_they_cannot_draw(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["a", "a"], [[1, 1, 9, 9]] * 2)
    with pytest.raises(boxscore.InputError, match="image_id must be given"):
        plots.draw_boxes(None, truth)
    with pytest.raises(boxscore.InputError, match="shape"):
        plots.draw_boxes(np.zeros((3, 3, 3, 3)), truth, image_id=1)
    (tmp_path / "broken.png").write_bytes(b"nothing")
    with pytest.raises(boxscore.InputError, match="cannot be read as an image"):
        plots.draw_boxes(tmp_path / "broken.png", truth, image_id=1)


@pytest.mark.long
def test_importing_plots_does_not_import_matplotlib() -> None:
    import subprocess

    code = "import sys, boxscore; boxscore.plots.pr_curve, boxscore.reports; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
