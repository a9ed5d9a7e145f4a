"""NMS of oriented boxes, and patches put back into their images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import boxscore
from boxscore import Detections, InputError, merge_patches, quadrilateral_nms, rotated_nms
from boxscore.cli import main
from boxscore.extensions.oriented.quadrilaterals import corners_of_rotated
from oracles.devkit_polygons import polyiou as slow_polyiou

FloatArray = NDArray[np.float64]


def drawn(count: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    boxes = np.column_stack(
        [rng.uniform(0, 150, (count, 2)), rng.uniform(3, 60, (count, 2)), rng.uniform(-4, 4, count)]
    )
    return boxes, rng.permutation(count) / count


def greedy(overlap: Callable[[int, int], float], scores: FloatArray, threshold: float) -> list[int]:
    kept: list[int] = []
    for row in np.argsort(-scores, kind="stable").tolist():
        if all(overlap(better, row) <= threshold for better in kept):
            kept.append(row)
    return kept


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.7])
def test_by_probiou(threshold: float) -> None:
    boxes, scores = drawn(120)
    values = boxscore.probiou(boxes, boxes)
    expected = greedy(lambda a, b: values[a, b], scores, threshold)
    assert rotated_nms(boxes, scores, threshold, measure="probiou").tolist() == expected


@pytest.mark.parametrize("small", [1e-3, 0.1])
def test_by_probiou_of_specks(small: float) -> None:
    """Tiny boxes agree at distances at which others do not, because of ``eps``."""
    boxes, scores = drawn(80, seed=2)
    boxes[:40, 2:4] *= small
    values = boxscore.probiou(boxes, boxes)
    for threshold in (0.1, 0.5):
        expected = greedy(lambda a, b: values[a, b], scores, threshold)
        assert rotated_nms(boxes, scores, threshold, measure="probiou").tolist() == expected


@pytest.mark.long
@pytest.mark.parametrize("whole", [False, True])
def test_of_corners_by_the_devkits_iou(whole: bool) -> None:
    boxes, scores = drawn(80, seed=1)
    corners = corners_of_rotated(boxes)
    if whole:  # exact overlaps of one third
        x, y = np.random.default_rng(3).integers(0, 20, (2, 80)).astype(float)
        corners = np.column_stack([x, y, x + 8, y, x + 8, y + 4, x, y + 4])
    rows = corners.tolist()
    for threshold in (0.1, 0.3, 1 / 3, 0.5):
        expected = greedy(lambda a, b: slow_polyiou(rows[a], rows[b]), scores, threshold)
        assert quadrilateral_nms(corners, scores, threshold).tolist() == expected


@pytest.mark.parametrize("similarity", ["rotated", "quadrilateral", "probiou"])
@pytest.mark.parametrize("method", ["hard", "soft-linear", "matrix-linear", "fast", "cluster"])
def test_a_table(similarity: str, method: str) -> None:
    boxes, scores = drawn(60)
    table = Detections.from_arrays(np.zeros(60, int), np.zeros(60, int), None, scores, rotated=boxes)
    threshold = None if method.startswith("matrix") else 0.3
    left = boxscore.suppress(table, method=method, iou_threshold=threshold, similarity=similarity)  # type: ignore[arg-type]
    assert len(left.apply(table)) == len(left.indices)
    if method == "hard" and similarity != "quadrilateral":
        measure = "iou" if similarity == "rotated" else "probiou"
        assert left.indices.tolist() == rotated_nms(boxes, scores, 0.3, measure=measure).tolist()  # type: ignore[arg-type]


def test_methods_that_need_upright_boxes() -> None:
    table = Detections.from_arrays([1], [1], None, [0.5], rotated=[[0, 0, 1, 1, 0]])
    with pytest.raises(InputError, match="be one that compares rotated boxes"):
        boxscore.suppress(table, method="nmm", iou_threshold=0.5, similarity="rotated")
    with pytest.raises(InputError, match="'iou' where oriented boxes are compared"):
        boxscore.suppress(table, iou_threshold=0.5, overlap="ios", similarity="rotated")


# ---------------------------------------------------------------- patches


def patches() -> dict[str, str]:
    return {
        "Task1_ship.txt": "P1__1__0___0 0.9 90 0 110 0 110 10 90 10\n"
        "P1__1__100___0 0.8 -9 0 11 0 11 10 -9 10\n"
        "P1__0.5__0___0 0.7 100 100 105 100 105 105 100 105\n",
        "Task1_plane.txt": "",
    }


def written(folder: Path) -> Path:
    folder.mkdir()
    for name, text in patches().items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("form", "last"), [("scaled", 200.0), ("shifted", 100.0)])
def test_patches_are_merged_as_the_devkit_and_mmrotate_do(tmp_path: Path, form: str, last: float) -> None:
    folder = written(tmp_path / "patches")
    arguments = ["nms", str(folder), "--output", str(tmp_path / "whole"), "--merge-patches", form]
    assert main([*arguments, "--iou-type", "quadrilateral", "--iou-threshold", "0.3"]) == 0
    lines = (tmp_path / "whole" / "Task1_ship.txt").read_text().splitlines()
    assert lines[0] == "P1 0.9 90.0 0.0 110.0 0.0 110.0 10.0 90.0 10.0"
    assert lines[1].startswith(f"P1 0.7 {last} {last} ")
    assert len(lines) == 2
    assert (tmp_path / "whole" / "Task1_plane.txt").read_text() == ""


def test_rotated_boxes_of_patches() -> None:
    table = Detections.from_arrays(
        ["a__2__10___20", "b"], [1, 1], None, [0.5, 0.4], rotated=[[4, 6, 2, 8, 0.5], [1, 1, 1, 1, 0]]
    )
    moved = merge_patches(table)
    assert moved.rotated is not None
    assert moved.rotated.tolist() == [[7, 13, 1, 4, 0.5], [1, 1, 1, 1, 0]]
    assert moved.images.ids.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("P1", "be called <image>__<scale>__<x>___<y>"), ("P1__0__1___1", "scale of a patch must be above 0")],
)
def test_names_that_are_no_patches(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        merge_patches(Detections.from_arrays([name], [1], [[0, 0, 1, 1]], [0.5]))


@pytest.mark.parametrize("width", ["1024", "512", "682", "16", "600.0"])
def test_a_width_in_the_name_of_a_patch_is_not_a_scale(width: str) -> None:
    names = ["P1__1__0___0", f"P0003__{width}__0___824"]
    table = Detections.from_arrays(names, ["ship"] * 2, [[0, 0, 10, 10]] * 2, [0.9, 0.8])
    with pytest.raises(InputError, match=rf"Got {float(width):g} in 'P0003__{width}__0___824'.* shifted"):
        merge_patches(table)
    assert merge_patches(table, "shifted").boxes.tolist() == [[0, 0, 10, 10], [0, 824, 10, 834]]


@pytest.mark.parametrize("scale", [0.25, 0.5, 1, 1.5, 2, 4])
def test_scales_of_the_devkit_divide(scale: float) -> None:
    table = Detections.from_arrays([f"P1__{scale}__6___12"], ["ship"], [[0, 0, 12, 24]], [0.9])
    assert merge_patches(table).boxes.tolist() == [[6 / scale, 12 / scale, 18 / scale, 36 / scale]]
