"""Tiles of large images: their names and grids, the merging of SAHI and supervision, cutting, and AP of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxscore import Detections, GroundTruth, InputError, evaluate, save_as
from boxscore.data.vocabulary import Images
from boxscore.tiles import (
    cut_tiles,
    locate_tiles,
    merge_as,
    merge_tiles,
    shift_tiles,
    tile_grid,
    tile_scores,
    tiles_of_grid,
)
from support.running import Run

CHAIN = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]]
CHAIN_SCORES = [0.9, 0.8, 0.7]


# ---------------------------------------------------------------- names and grids


@pytest.mark.parametrize(
    ("name", "corner", "size", "scale"),
    [
        ("a_488_0_1000_512.png", [488, 0], [512, 512], 1),
        ("a_7_488_0_1000_512.png", [488, 0], [512, 512], 1),  # slice_coco: position of the image
        ("a_0_4_488_0_1000_512", [488, 0], [512, 512], 1),  # row and column
        ("a__0.5__824___0.png", [824, 0], [np.nan, np.nan], 0.5),
        ("a__1024__824___0.png", [824, 0], [1024, 1024], 1),  # a width, not a scale
        ("a.png", [0, 0], [1000, 800], 1),  # the whole image is a tile
    ],
)
def test_names_of_tiles(name: str, corner: list[float], size: list[float], scale: float) -> None:
    whole = Images.build([3], file_names=["a.png"], sizes=[[1000, 800]])
    both = Images.build([1, 2], file_names=["a_0_0_512_512.png", name])
    tiles = locate_tiles(both, whole)
    assert tiles.image.tolist() == [0, 0]
    assert tiles.corners[1].tolist() == corner
    np.testing.assert_array_equal(tiles.sizes[1], size)
    assert tiles.scale[1] == scale


def test_a_number_that_belongs_to_the_name_of_the_image_stays() -> None:
    whole = Images.build([1, 2], file_names=["a_1.png", "a.png"])
    tiles = locate_tiles(Images.build([1], file_names=["a_1_0_0_5_5.png"]), whole)
    assert tiles.image.tolist() == [0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("17", "names contain the position"),
        ("b_0_0_512_512", "its images are called a.png"),
        ("a__0__1___2", "scale of a tile must be above 0"),
    ],
)
def test_names_that_lead_nowhere(name: str, message: str) -> None:
    whole = Images.build([1], file_names=["a.png"])
    with pytest.raises(InputError, match=message):
        locate_tiles(Images.build([1], file_names=[name]), whole)


def test_grid_of_sahi_and_of_supervision() -> None:
    assert tile_grid(1000, 512).tolist() == [[0, 0, 512, 512], [410, 0, 922, 512], [488, 0, 1000, 512]]
    assert tile_grid(600, 100, overlap=0)[:, [0, 2]].tolist() == [[0, 512], [88, 600]]
    assert tile_grid(600, 100, overlap=0, short_last=True)[:, [0, 2]].tolist() == [[0, 512], [512, 600]]
    assert tile_grid(300, 200).tolist() == [[0, 0, 300, 200]]
    with pytest.raises(InputError, match="below 1"):
        tile_grid(10, 10, overlap=1)


# ---------------------------------------------------------------- merging


def test_sahi_drops_members_that_the_joined_box_does_not_reach() -> None:
    """The third box is in the chain, but its IoU with the joined box is 7 / 16."""
    merged = merge_as(CHAIN, CHAIN_SCORES, [1, 1, 1], method="nmm")
    assert merged.boxes.tolist() == [[0, 0, 13, 10]]
    assert merge_as(CHAIN, CHAIN_SCORES, [1, 1, 1], method="nmm", overlap="ios").boxes.tolist() == [
        [0, 0, 16, 10]
    ]
    greedy = merge_as(CHAIN, CHAIN_SCORES, [1, 1, 1], method="greedy-nmm")
    assert greedy.boxes.tolist() == [[0, 0, 13, 10], [6, 0, 16, 10]]


def test_supervision_weights_scores_by_area() -> None:
    merged = merge_as(CHAIN, CHAIN_SCORES, [1, 1, 1], method="nmm", tool="supervision")
    assert merged.boxes.tolist() == [[0, 0, 13, 10], [6, 0, 16, 10]]
    assert merged.scores.tolist() == [np.float32(0.85), 0.7]


def test_an_overlap_on_the_threshold() -> None:
    """NMS of supervision needs more than the threshold; the others do not."""
    boxes, scores = [[0, 0, 10, 10], [5, 0, 15, 10]], [0.9, 0.8]
    for tool, method, left in (("sahi", "nms", 1), ("supervision", "nms", 2), ("supervision", "nmm", 1)):
        merged = merge_as(boxes, scores, [1, 1], method=method, tool=tool, overlap="ios")  # type: ignore[arg-type]
        assert len(merged.scores) == left


def test_the_class_of_equal_scores_is_that_of_the_member() -> None:
    boxes = [[0, 0, 10, 10], [1, 0, 11, 10]]
    assert merge_as(boxes, [0.9, 0.9], [1, 2], method="greedy-nmm", class_agnostic=True).classes.tolist() == [
        2
    ]
    assert merge_as(boxes, [0.9, 0.9], [1, 2], method="nms", class_agnostic=True).classes.tolist() == [1]
    assert len(merge_as(boxes, [0.9, 0.9], [1, 2]).scores) == 2


def test_merging_nothing_and_boxes_without_area() -> None:
    assert merge_as(np.empty((0, 4)), [], [], method="nmm").boxes.shape == (0, 4)
    for tool in ("sahi", "supervision"):
        merged = merge_as([[3, 3, 3, 9]] * 2, [0.9, 0.8], [1, 1], tool=tool, method="nmm")  # type: ignore[arg-type]
        assert merged.scores.tolist() == [0.9, 0.8]


def test_a_method_that_a_tool_does_not_have() -> None:
    with pytest.raises(InputError, match="a method of supervision"):
        merge_as(CHAIN, CHAIN_SCORES, [1, 1, 1], method="greedy-nmm", tool="supervision")


def _overlap(first: Any, second: Any, kind: str, dtype: Any) -> Any:
    """Overlap of two boxes, one number at a time, in a type."""
    a, b = [dtype(n) for n in first], [dtype(n) for n in second]
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, dtype(0)) * max(height, dtype(0))
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    whole = areas[0] + areas[1] - shared if kind == "iou" else min(areas)
    return shared / whole if whole > 0 else dtype(0)


def _slow_sahi(
    boxes: Any, scores: Any, threshold: float, method: str, kind: str
) -> list[tuple[list[float], float]]:
    """Follow the rules of SAHI with lists: groups first, then each member joins or is dropped."""
    f, limit = np.float32, np.float32(threshold)
    rank = sorted(range(len(boxes)), key=lambda i: (-f(scores[i]), *map(f, boxes[i])))

    def may_claim(i: int, j: int) -> bool:
        if i == j or _overlap(boxes[i], boxes[j], kind, f) < limit:
            return False
        return bool(f(scores[j]) < f(scores[i])) or (
            f(scores[j]) == f(scores[i]) and list(map(f, boxes[j])) <= list(map(f, boxes[i]))
        )

    owner: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for place, i in enumerate(rank):
        if i in owner and method != "nmm":
            continue
        keeper = owner.setdefault(i, i)
        group = groups.setdefault(keeper, [])
        if method == "nmm":
            found = [j for j in range(len(boxes)) if j not in owner and may_claim(i, j)]
        else:
            found = [
                j
                for j in rank[place + 1 :]
                if j not in owner and _overlap(boxes[i], boxes[j], kind, f) >= limit
            ]
        owner.update(dict.fromkeys(found, keeper))
        group += found
    results = []
    for keeper, group in groups.items():
        box, score = list(boxes[keeper]), scores[keeper]
        for j in group if method != "nms" else []:
            if _overlap(box, boxes[j], kind, np.float64) >= threshold:
                other = boxes[j]
                box = [
                    min(box[0], other[0]),
                    min(box[1], other[1]),
                    max(box[2], other[2]),
                    max(box[3], other[3]),
                ]
                score = max(score, scores[j])
        results.append((box, score))
    return results


@given(
    st.lists(
        st.tuples(*[st.integers(0, 12)] * 2, *[st.integers(0, 9)] * 2, st.sampled_from([0.1, 0.2, 0.3, 0.9])),
        max_size=12,
    ),
    st.sampled_from([0.2, 0.3, 0.5, 0.7]),
    st.sampled_from(["nms", "nmm", "greedy-nmm"]),
    st.sampled_from(["iou", "ios"]),
)
def test_sahi_against_a_slow_one(rows: Any, threshold: float, method: Any, kind: Any) -> None:
    boxes = [[float(x), float(y), float(x + w), float(y + h)] for x, y, w, h, _ in rows]
    scores = [score for *_, score in rows]
    merged = merge_as(
        np.array(boxes).reshape(-1, 4), scores, [1] * len(rows), threshold, method=method, overlap=kind
    )
    slow = _slow_sahi(boxes, scores, threshold, method, kind)
    assert list(zip(merged.boxes.tolist(), merged.scores.tolist(), strict=True)) == slow


# ---------------------------------------------------------------- cutting and shifting


def _scene() -> tuple[GroundTruth, Images]:
    whole = Images.build([1, 2], file_names=["a.png", "b.png"], sizes=[[900, 500], [400, 300]])
    boxes = [[450, 0, 550, 10], [10, 10, 20, 20], [395, 100, 405, 110], [5, 5, 6, 6]]
    truth = GroundTruth.from_arrays(
        [1, 1, 1, 2], ["car", "car", "cat", "cat"], boxes, crowd=[True, False, False, False], images=whole
    )
    return truth, whole


def test_objects_are_cut_and_keep_their_flags() -> None:
    truth, whole = _scene()
    names, tiles = tiles_of_grid(whole, (500, 500), 0.2)
    assert names.names == ["a_0_0_500_500.png", "a_400_0_900_500.png", "b_0_0_400_300.png"]
    cut = cut_tiles(truth, tiles, names)
    assert cut.boxes.tolist() == [
        *([450, 0, 500, 10], [10, 10, 20, 20], [395, 100, 405, 110]),
        *([50, 0, 150, 10], [0, 100, 5, 110]),
        [5, 5, 6, 6],
    ]
    assert cut.image.tolist() == [0, 0, 0, 1, 1, 2]
    assert cut.crowd.tolist() == [True, False, False, True, False, False]
    # the left half of the first object is half of it, as is the right half of the third
    assert len(cut_tiles(truth, tiles, names, min_area_ratio=0.6)) == 4


def test_detections_move_to_their_images() -> None:
    _, whole = _scene()
    table = Detections.from_arrays(
        ["a__0.5__100___0", "b__1__0___10"], [1, 1], [[0, 0, 10, 10]] * 2, [0.5, 0.6]
    )
    tiles = locate_tiles(table.images, whole)
    moved = shift_tiles(table, tiles, whole)
    assert moved.boxes.tolist() == [[200, 0, 220, 20], [0, 10, 10, 20]]
    assert moved.sizes.tolist() == [[20, 20], [10, 10]]
    assert moved.images.ids[moved.image].tolist() == [1, 2]


def test_images_merge_apart() -> None:
    box = [[0, 0, 10, 10]] * 4
    table = Detections.from_arrays([2, 1, 2, 1], [1, 1, 1, 2], box, [0.1, 0.2, 0.3, 0.4])
    left = merge_tiles(table)
    assert sorted(zip(left.image.tolist(), left.scores.tolist(), strict=True)) == [
        (0, 0.2),
        (0, 0.4),
        (1, 0.3),
    ]


def test_a_tile_without_a_size_cannot_be_cut() -> None:
    truth, whole = _scene()
    names = Images.build(["a__1__0___0"])
    with pytest.raises(InputError, match="--tile-size"):
        cut_tiles(truth, locate_tiles(names, whole), names)
    assert len(cut_tiles(truth, locate_tiles(names, whole, tile_size=(500, 500)), names)) == 3


# ---------------------------------------------------------------- scores


def _files(folder: Path) -> tuple[GroundTruth, Detections, GroundTruth]:
    """Perfect detections in every tile; one object lies in the overlap."""
    truth, whole = _scene()
    names, tiles = tiles_of_grid(whole, (500, 500), 0.2)
    cut = cut_tiles(truth, tiles, names)
    found = Detections.from_arrays(
        cut.images.ids[cut.image],
        cut.categories.ids[cut.category],
        cut.boxes,
        np.linspace(0.9, 0.5, len(cut)),
    )
    for table, name in ((truth, "gt.json"), (found, "dt.json"), (cut, "tiles.json")):
        save_as(table, folder / name)
    return truth, found, cut


def test_scores_equal_evaluations_of_the_parts(tmp_path: Path) -> None:
    truth, found, cut = _files(tmp_path)
    scores = tile_scores(truth, found, tiles=cut)
    on_tiles = evaluate(cut, found)
    np.testing.assert_equal(dict(scores.evaluations["tiles"].metrics), dict(on_tiles.metrics))
    assert scores.evaluations["tiles"].metrics["AP"] == 1.0
    assert scores.reasons["objects in several tiles, counted in each"] == (2, 4)
    assert scores.reasons["objects that no tile holds as a whole"] == (0, 4)
    # two objects are whole in one tile and half in another: IoU 0.5, IoS 1
    assert scores.reasons["detections that merging removed"] == (2, 6)
    apart = tile_scores(truth, found, tiles=cut, iou_threshold=0.6)
    assert apart.reasons["detections that merging removed"] == (0, 6)
    assert apart.reasons["pairs left that look like pieces of one object"] == (2, 6)
    ios = tile_scores(truth, found, tiles=cut, iou_threshold=0.6, overlap="ios")
    assert list(ios.to_frame()["detections"]) == [6, 6, 4]


def test_areas_of_masks_and_chosen_classes() -> None:
    """An annotation's own area is divided like its box; chosen classes are all that is counted."""
    truth, whole = _scene()
    truth = truth.replaced(area=truth.area * 0.5)
    names, tiles = tiles_of_grid(whole, (500, 500), 0.2)
    cut = cut_tiles(truth, tiles, names)
    assert cut.area.tolist() == [250, 50, 50, 500, 25, 0.5]
    table = Detections.from_arrays(
        names.ids[cut.image],
        cut.categories.ids[cut.category],
        cut.boxes,
        np.linspace(0.9, 0.5, len(cut)),
        images=names,
    )
    scores = tile_scores(truth, table, classes=["cat"])
    assert scores.reasons["objects in several tiles, counted in each"] == (1, 2)
    assert scores.reasons["detections that merging removed"] == (1, 3)


def test_the_command(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _files(tmp_path)
    paths = [tmp_path / name for name in ("gt.json", "dt.json")]
    listed = ["--tiles", tmp_path / "tiles.json"]
    printed = run("tiles", *paths, *listed, "--save", tmp_path / "merged.json")
    assert "images, merged" in printed.out
    assert "AP is" in printed.out
    assert "4 merged detections written" in printed.err
    again = run.json("evaluate", tmp_path / "gt.json", tmp_path / "merged.json")
    rows = run.json("tiles", *paths, *listed)["results"]
    assert rows[2]["AP"] == again["metrics"]["AP"]
    assert "--tiles" in run.error("tiles", *paths)
    monkeypatch.setenv("COLUMNS", "80")
    printed = run("tiles", *paths, *listed)
    lines = [line for line in printed.out.splitlines() if not line.startswith("boxscore|")]
    assert max(map(len, lines)) <= 80
    assert "tabular" in run("tiles", *paths, *listed, "--output", "latex").out
    assert "--save must end in" in run.error("tiles", *paths, *listed, "--save", tmp_path / "x")
    assert "--save must be in a folder" in run.error(
        "tiles", *paths, *listed, "--save", tmp_path / "x" / "y.json"
    )
    assert "--tile-size must be" in run.error("tiles", *paths, *listed, "--tile-size", 0)


def test_tiles_that_are_not_listed_are_those_with_detections(tmp_path: Path, run: Run) -> None:
    _files(tmp_path)
    table = tmp_path / "dt.csv"
    table.write_text("image,class,x1,y1,x2,y2,score\na_0_0_500_500.png,car,10,10,20,20,.9\n")
    said = run("tiles", tmp_path / "gt.json", table).err
    assert "no tile with detections contains 1 object of 4" in " ".join(said.split())


@pytest.mark.parametrize("named", [True, False])
def test_yolo_labels_of_tiles_have_the_sizes_of_their_names(tmp_path: Path, run: Run, named: bool) -> None:
    truth, found, cut = _files(tmp_path)
    folder = tmp_path / "labels"
    folder.mkdir()
    for image, name in enumerate(cut.images.names):
        stem, x1, y1, x2, y2 = name.removesuffix(".png").split("_")
        width, height = (int(x2) - int(x1), int(y2) - int(y1)) if named else (500, 500)
        stem = name.removesuffix(".png") if named else f"{stem}__1__{x1}___{y1}"
        lines = [
            f"{category} {(x + w / 2) / width} {(y + h / 2) / height} {w / width} {h / height} {score}\n"
            for category, (x, y, _, _), (w, h), score in zip(
                found.category[found.image == image].tolist(),
                found.boxes[found.image == image].tolist(),
                found.sizes[found.image == image].tolist(),
                found.scores[found.image == image].tolist(),
                strict=True,
            )
        ]
        (folder / f"{stem}.txt").write_text("".join(lines))
    (tmp_path / "classes.txt").write_text("\n".join(truth.categories.names.tolist()))
    classes = ["--dt-classes", tmp_path / "classes.txt"]
    size = [] if named else ["--tile-size", 500]
    rows = run.json("tiles", tmp_path / "gt.json", folder, *classes, *size)["results"]
    assert [row["AP"] for row in rows][:1] == [1.0]
    assert [row["detections"] for row in rows] == [6, 6, 4]


def test_rotated_ground_truth_is_sent_to_nms(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "labelTxt"
    folder.mkdir()
    (folder / "a.txt").write_text("0 0 9 0 9 9 0 9 car 0\n")
    (tmp_path / "dt.csv").write_text("image,class,x1,y1,x2,y2,score\na_0_0_500_500.png,car,10,10,20,20,.9\n")
    assert "boxscore nms DT --merge-patches scaled" in run.error("tiles", folder, tmp_path / "dt.csv")
