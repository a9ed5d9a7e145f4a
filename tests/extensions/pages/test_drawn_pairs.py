"""Pairs drawn over an image: both boxes of each, and the IoU as other programs print it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from support.running import Run
from support.samples import DATASETS, DT, GT, SHAPES

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plots = pytest.importorskip("boxscore.reports.plots")

GREEN, RED = (matplotlib.colors.to_rgba(color) for color in ("#0a8f3c", "#d81b1b"))


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    import matplotlib.pyplot

    yield
    matplotlib.pyplot.close("all")


def texts(figure: Any) -> list[str]:
    figure.savefig(io.BytesIO(), format="png")  # it can be drawn
    return [text.get_text() for text in figure.axes[0].texts]


def outlines(figure: Any, color: tuple[float, ...]) -> list[list[float]]:
    """Left, top, right and bottom of each box of a color."""
    shapes = [patch for patch in figure.axes[0].patches if patch.get_edgecolor() == color]
    return [[*shape.get_path().get_extents().extents] for shape in shapes]


def test_boxes_without_any_file() -> None:
    figure = plots.draw_pairs(None, [[39, 63, 203, 112]], [[54, 66, 198, 114]], protocol="voc2012")
    assert texts(figure) == ["IoU: 0.7980"]
    assert outlines(figure, GREEN) == [[39, 63, 203, 112]]
    assert outlines(figure, RED) == [[54, 66, 198, 114]]
    keys = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert keys == ["ground truth", "detection"]


@pytest.mark.long
def test_a_tutorial_of_five_cars() -> None:
    truth = boxscore.load_ground_truth(DATASETS / "iou_tutorial" / "instances.json")
    found = boxscore.load_detections(DATASETS / "iou_tutorial" / "detections.json", truth)
    printed = {2: "0.7980", 16: "0.7899", 75: "0.6125", 90: "0.9472", 120: "0.7310"}
    protocol = {"extends": "coco", "boxes": {"pixel_offset": 1}}
    for image_id, iou in printed.items():
        figure = plots.draw_pairs(
            np.zeros((200, 300, 3)), truth, found, image_id=image_id, protocol=protocol, labels=False
        )
        assert texts(figure) == [f"IoU: {iou}"]


def test_every_ground_truth_is_drawn_and_each_detection_has_its_iou() -> None:
    truth = boxscore.load_ground_truth(GT)
    found = boxscore.load_detections(DT, truth)
    picture = SHAPES / "images" / "000000000248.png"
    figure = plots.draw_pairs(picture, truth, found, image_id=248, score_threshold=0.5)
    row = int(truth.images.rows([248])[0])
    shown = (found.image == row) & (found.scores >= 0.5)
    assert sorted(outlines(figure, GREEN)) == sorted(truth.boxes[truth.image == row].tolist())
    assert sorted(outlines(figure, RED)) == sorted(found.boxes[shown].tolist())
    matches = boxscore.evaluate(truth, found, digest=False).matches[shown]
    matched = matches[matches["outcome"] == "true positive"]
    written = texts(figure)
    for name, score, iou in zip(matched["class"], matched["score"], matched["iou"], strict=True):
        assert f"{name} {score:.2f}  IoU: {iou:.4f}" in written
    assert "hexagon, missed" in written
    assert sum("IoU" in text and "(no match)" not in text for text in written) == len(matched)


def test_a_detection_without_match_shows_its_best_iou() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["a", "a"], [[0, 0, 10, 10], [0, 0, 10, 20]])
    boxes = [[0, 5, 10, 20], [0, 0, 10, 4], [40, 40, 50, 50]]
    found = boxscore.Detections.from_arrays([1] * 3, ["a"] * 3, boxes, [0.9, 0.8, 0.7])
    written = texts(plots.draw_pairs(None, truth, found))
    assert written == ["a, missed", "a", "a 0.70", "a 0.80  IoU: 0.4000 (no match)", "a 0.90  IoU: 0.7500"]


def test_masks() -> None:
    masks = np.zeros((2, 30, 40), dtype=bool)
    masks[0, 5:15, 5:15] = True
    masks[0, 5:8, 5:8] = False
    masks[1, 8:20, 0:15] = True
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], None, masks=masks[:1])
    found = boxscore.Detections.from_arrays([1], ["a"], None, [0.9], masks=masks[1:])
    figure = plots.draw_pairs(None, truth, found, protocol="coco-segm", labels=False)
    iou = (masks[0] & masks[1]).sum() / (masks[0] | masks[1]).sum()
    assert texts(figure) == [f"IoU: {iou:.4f} (no match)"]
    middles = np.stack(np.meshgrid(np.arange(40) + 0.5, np.arange(30) + 0.5), axis=-1).reshape(-1, 2)
    for color, mask in ((GREEN, masks[0]), (RED, masks[1])):
        tinted = [patch for patch in figure.axes[0].patches if patch.get_facecolor() == (*color[:3], 0.25)]
        assert len(tinted) == 1
        inside = tinted[0].get_path().contains_points(middles).reshape(30, 40)
        assert (inside == mask).all()
    assert outlines(figure, RED) == [[0, 8, 15, 20]]


def test_arrays_beside_a_table() -> None:
    truth = boxscore.GroundTruth.from_arrays(["x"], ["car"], [[0, 0, 10, 10]])
    assert texts(plots.draw_pairs(None, truth, [[5, 5, 15, 15]])) == ["IoU: 0.1429 (no match)"]
    assert texts(plots.draw_pairs(None, np.empty((0, 4)), np.empty((0, 4)))) == []


def test_given_axes_are_drawn_on() -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    assert plots.draw_pairs(None, [[0, 0, 4, 4]], [[0, 0, 4, 4]], ax=axes, legend=False) is figure
    assert axes.get_legend() is None


@pytest.mark.parametrize("draw", ["draw_pairs", "draw_boxes"])
def test_a_notebook_shows_the_figure_once(draw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[1, 1, 9, 9]])
    found = boxscore.Detections.from_arrays([1], ["a"], [[1, 1, 9, 9]], [0.5])
    getattr(plots, draw)(None, truth, found)
    assert pyplot.get_fignums() == []


def test_what_is_refused() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["a", "a"], [[1, 1, 9, 9]] * 2)
    with pytest.raises(boxscore.InputError, match="image_id must be given for 2 images"):
        plots.draw_pairs(None, truth, [[1, 1, 2, 2]])
    with pytest.raises(boxscore.InputError, match="ground_truth must have shape"):
        plots.draw_pairs(None, [[1, 2, 3]], [[1, 1, 2, 2]])


@pytest.mark.long
def test_the_command(tmp_path: Path, run: Run) -> None:
    named = ["--gt", GT, "--dt", DT, "--image-folder", SHAPES / "images", "--images", 248, 101, "--pairs"]
    out = run("draw", *named, "--form", "svg", "--output", tmp_path / "pictures").out
    paths = out.splitlines()
    assert [Path(path).name for path in paths] == ["001_000000000101.svg", "002_000000000248.svg"]
    for path in paths:
        assert b"IoU: 0." in Path(path).read_bytes()
