"""What is drawn of an object: mask outlines as paths, keypoints with their visibility, boxes where that is all."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.shapes import joints_of, limbs_of, path_text, rings_of
from boxscore.formats import save_as

NUMBER = re.compile(r"-?\d*\.?\d+")


def corners_of(path: str) -> list[np.ndarray]:
    """Read a path back: absolute corners of each ring."""
    assert re.fullmatch(r"(M[-\d .]+l[-\d .]+z)+", path), path
    rings = []
    for text in path.split("z")[:-1]:
        steps = np.array([float(number) for number in NUMBER.findall(text)]).reshape(-1, 2)
        rings.append(np.cumsum(steps, axis=0))
    return rings


@pytest.mark.parametrize("decimals", [0, 1])
def test_paths_hold_the_corners(decimals: int) -> None:
    random = np.random.default_rng(0)
    rings = [random.uniform(-50, 900, (n, 2)) for n in (3, 4, 40)]
    read = corners_of(path_text(rings, decimals))
    for ring, again in zip(rings, read, strict=True):
        assert again == pytest.approx(np.round(ring, decimals), abs=10.0**-decimals / 2 + 1e-6)


def masked(size: int = 400) -> boxscore.Evaluation:
    y, x = np.mgrid[:size, :size] + 0.5
    disc, ring = (np.hypot(x - 150, y - 150) < 90), np.zeros((size, size), dtype=bool)
    ring[200:390, 210:380] = True
    ring[250:300, 250:300] = False
    images = Images.build([1, 2], sizes=[[size, size]] * 2)
    truth = boxscore.GroundTruth.from_arrays(
        [1, 1], ["disc", "ring"], None, masks=np.stack([disc, ring]), images=images
    )
    found = boxscore.Detections.from_arrays(
        [1, 2],
        ["disc", "disc"],
        None,
        [0.9, 0.8],
        masks=np.stack([disc, ring]),
        images=images,
        categories=truth.categories,
    )
    return boxscore.evaluate(truth, found, protocol="coco-segm")


def test_masks_are_drawn_as_outlines() -> None:
    gallery = Gallery(masked())
    record = gallery.records[gallery.add(0)]
    assert [box[5] for box in record["boxes"]] == [0, 3]
    disc, ring = map(corners_of, record["paths"])
    assert len(disc) == 1
    assert 12 <= len(disc[0]) <= 40
    assert np.hypot(*(disc[0] - 150).T) == pytest.approx(90, abs=1.5)
    assert sorted(map(len, ring)) == [4, 4]
    assert {tuple(corner) for part in ring for corner in part.tolist()} == {
        *((x, y) for x in (210, 380) for y in (200, 390)),
        *((x, y) for x in (250, 300) for y in (250, 300)),
    }
    assert "joints" not in record


def test_under_boxes_no_mask_is_drawn() -> None:
    result = masked()
    boxes = boxscore.evaluate(result.ground_truth, result.detections)
    gallery = Gallery(boxes)
    assert "paths" not in gallery.records[gallery.add(0)]


def test_rotated_boxes_are_quadrilaterals() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], None, rotated=[[300, 200, 100, 50, 0.5]])
    found = boxscore.Detections.from_arrays([1], ["a"], None, [0.5], rotated=[[300, 200, 100, 50, 0.5]])
    gallery = Gallery(boxscore.evaluate(truth, found, protocol="coco-rotated"))
    (path,) = gallery.records[gallery.add(0)]["paths"]
    (corners,) = corners_of(path)
    sides = np.hypot(*(corners - np.roll(corners, -1, axis=0)).T)
    assert sorted(sides) == pytest.approx([50, 50, 100, 100], abs=1)
    assert corners.mean(axis=0) == pytest.approx([300, 200], abs=0.5)


PROTOCOL = {
    "extends": "coco-keypoints",
    "name": "three",
    "keypoints": {"sigmas": [0.05] * 3, "names": ["a", "b", "c"], "skeleton": [[1, 2], [3, 1]]},
}


def posed(truths: Any, founds: Any) -> boxscore.Evaluation:
    images = Images.build([1], sizes=[[640, 480]])
    truth = boxscore.GroundTruth.from_arrays(
        [1] * len(truths),
        ["person"] * len(truths),
        [[0, 0, 90, 90]] * len(truths),
        keypoints=truths,
        area=[2000] * len(truths),
        images=images,
    )
    found = boxscore.Detections.from_arrays(
        [1] * len(founds),
        ["person"] * len(founds),
        None,
        np.linspace(0.9, 0.5, len(founds)),
        keypoints=founds,
        images=images,
        categories=truth.categories,
    )
    return boxscore.evaluate(truth, found, protocol=PROTOCOL)


def test_keypoints_are_drawn_with_their_visibility() -> None:
    truths = [[[10, 20, 2], [30.6, 40, 1], [0, 0, 0]], [[300, 300, 0]] * 3]
    founds = [
        [[500, 100, 0.4], [520, 130, 0.01], [0, 0, 0]],
        [[400, 100, 0], [420, 130, 0], [440, 90, 0]],
    ]
    gallery = Gallery(posed(truths, founds))
    assert gallery.limbs == [(0, 1), (2, 0)]
    record = gallery.records[gallery.add(0)]
    assert record["joints"] == [
        [500, 100, 2, 520, 130, 2, 0, 0, 0],
        [400, 100, 2, 420, 130, 2, 440, 90, 2],  # no point has a third number: all are drawn
        [10, 20, 2, 31, 40, 1, 0, 0, 0],
        None,  # nothing is labeled: its box is drawn
    ]
    # A box made from keypoints is drawn around those that are there.
    assert [box[:4] for box in record["boxes"]][:2] == [[500, 100, 20, 30], [400, 90, 40, 40]]
    assert [box[:4] for box in record["boxes"]][2:] == [[0, 0, 90, 90]] * 2


def test_seventeen_keypoints_without_a_skeleton_are_those_of_coco() -> None:
    def limbs(**keypoints: Any) -> list[tuple[int, int]]:
        rules = {"extends": "coco", "name": "own", "similarity": "keypoints", "keypoints": keypoints}
        return limbs_of(boxscore.load_protocol(rules))

    of_coco = limbs_of(boxscore.load_protocol("coco-keypoints"))
    assert (15, 13) in of_coco
    assert limbs(sigmas=[0.05] * 17) == of_coco
    assert limbs(sigmas=[0.05] * 17, names=[f"point {j}" for j in range(17)]) == []
    assert limbs(sigmas=[0.05] * 14) == []
    assert limbs(sigmas=[0.05] * 17, skeleton=[[1, 2]]) == [(0, 1)]


def test_the_skeleton_of_the_data_set(tmp_path: Path) -> None:
    """It is read from COCO JSON, kept, written, and drawn where the rules have none; nonsense is not drawn."""
    rules = {
        "extends": "coco-keypoints",
        "name": "own",
        "keypoints": {"sigmas": [0.1] * 4, "names": [], "skeleton": []},
    }
    protocol = boxscore.load_protocol(rules)
    row = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
    content = {
        "images": [{"id": 1}],
        "annotations": [{**row, "keypoints": [1, 1, 2] * 4, "num_keypoints": 4}],
    }
    for given, limbs in (
        ([[1, 2], [2, 4], [9, 1]], [(0, 1), (1, 3)]),
        ([[1, 2, 3]], []),
        ([[0, 1]], []),
        ("1-2", []),
        ([["1", 2]], []),
    ):
        path = tmp_path / "poses.json"
        path.write_text(json.dumps({**content, "categories": [{"id": 1, "name": "fly", "skeleton": given}]}))
        truth = boxscore.load_ground_truth(path)
        assert limbs_of(protocol, truth.categories) == limbs
        assert limbs_of(protocol) == []
        assert "skeleton" not in truth.categories.shown_columns
        save_as(truth, tmp_path / "again.json", format="coco")
        again = json.loads((tmp_path / "again.json").read_text())["categories"][0]
        assert again.get("skeleton") == (given if limbs else None)


def test_only_keypoints_have_limbs() -> None:
    result = masked()
    rows = np.arange(2)
    assert limbs_of(result.protocol) == []
    assert joints_of(result.ground_truth, rows, result.protocol) is None
    keypoints = posed([[[10, 20, 2]] * 3], [[[10, 20, 1]] * 3])
    assert rings_of(keypoints.ground_truth, np.arange(1), keypoints.protocol) == [[]]


def signed_area(closed: np.ndarray) -> float:
    (x1, y1), (x2, y2) = closed[:-1].T, closed[1:].T
    return float((x1 * y2 - x2 * y1).sum() / 2)


@pytest.mark.long
def test_figures_draw_masks_and_keypoints() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from boxscore.extensions.pages.plots import boxes as plots

    result = masked()
    figure = plots.draw_evaluated(None, result, 1)
    middles = np.stack(np.meshgrid(np.arange(400) + 0.5, np.arange(400) + 0.5), axis=-1).reshape(-1, 2)
    filled = [patch for patch in figure.axes[0].patches if patch.get_alpha()]
    inside = []
    for patch in filled:
        rings = [matplotlib.path.Path(ring) for ring in patch.get_path().to_polygons()]
        area = [signed_area(ring.vertices) for ring in rings]
        assert np.sign(area).tolist() == [1, -1][: len(rings)]  # a hole goes the other way round: not filled
        odd = np.sum([ring.contains_points(middles) for ring in rings], axis=0) % 2 == 1
        inside.append(odd.reshape(400, 400))
    masks = result.ground_truth.masks
    assert masks is not None
    assert [(each == mask).all() for each, mask in zip(inside, masks.arrays(), strict=True)] == [True, True]

    people = posed([[[10, 20, 2], [30, 40, 1], [0, 0, 0]]], [[[500, 100, 1], [520, 130, 1], [530, 90, 1]]])
    panel = plots.draw_evaluated(None, people, 1).axes[0]
    assert len(panel.lines) == 3  # two limbs of the detection, one of the object
    seen = [dots.get_offsets().tolist() for dots in panel.collections]
    assert seen == [[[500, 100], [520, 130], [530, 90]], [], [[10, 20]], [[30, 40]]]
    panel.figure.savefig(io.BytesIO(), format="png")
    pyplot.close("all")
