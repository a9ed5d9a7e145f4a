"""Fusing and merging of masks and oriented boxes against loops that do what the rules say."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask

import boxscore
from boxscore import BoxscoreWarning, Detections, InputError, fuse, rotated_box_iou
from boxscore.formats.results import load_results
from oracles.suppression import best_first, chained, hard
from oracles.suppression import fuse as fused_boxes
from support.running import Run

HEIGHT, WIDTH = 24, 30
Array = np.ndarray[Any, Any]


def blobs(random: np.random.Generator, count: int) -> Array:
    """Ellipses around a few centers, some with holes; [N, H, W] bool, none empty."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    center = random.uniform(5, 20, (max(1, count // 3), 2))
    masks = []
    while len(masks) < count:
        of = center[random.integers(len(center))] + random.normal(0, 1, 2)
        mask = ((x - of[0]) / random.uniform(2, 6)) ** 2 + ((y - of[1]) / random.uniform(2, 6)) ** 2 < 1
        if random.random() < 0.3:
            mask &= random.random(mask.shape) < 0.8
        if mask.any():
            masks.append(mask)
    return np.array(masks).reshape(-1, HEIGHT, WIDTH)


def turned(random: np.random.Generator, count: int) -> Array:
    """Rotated boxes around a few others, in any of their descriptions; [N, 5]."""
    of = random.integers(0, max(1, count // 4), count)
    center, sides = random.uniform(0, 60, (count, 2))[of], random.uniform(4, 30, (count, 2))[of]
    boxes = np.column_stack(
        [
            center + random.normal(0, 1, (count, 2)),
            sides * random.uniform(0.85, 1.15, (count, 2)),
            random.uniform(-2, 2, count)[of] + random.normal(0, 0.1, count),
        ]
    )
    for box in boxes:
        turns = int(random.integers(-2, 3))
        box[4] += turns * np.pi / 2
        if turns % 2:
            box[2:4] = box[[3, 2]]
    return boxes


def case(seed: int) -> tuple[np.random.Generator, int, Array, Array, list[int], list[float], float]:
    random = np.random.default_rng(seed)
    count = int(random.choice([1, 2, 5, 14]))
    scores = random.integers(0, 5, count) / 4 if seed % 3 == 0 else random.random(count)
    groups, models = random.integers(0, 2, count), np.sort(random.integers(0, 3, count))
    weights = [1.0, 1.0, 1.0] if seed % 2 else random.uniform(0.5, 2, 3).tolist()
    return random, count, scores, groups, models.tolist(), weights, float(random.choice([0.2, 0.4, 0.6]))


def tables(models: list[int], groups: Array, scores: Array, **shapes: Array | None) -> list[Detections]:
    """One table per model; each group is an image."""
    made = []
    for model in range(3):
        rows = np.flatnonzero(np.array(models) == model)
        some = {name: None if column is None else column[rows] for name, column in shapes.items()}
        boxes = some.pop("boxes", None)
        masks = some.pop("masks", None)
        more = {} if masks is None else {"masks": list(masks)}
        made.append(
            Detections.from_arrays(
                groups[rows].tolist(), [1] * len(rows), boxes, scores[rows], **some, **more, images=[0, 1]
            )
        )
    return made


def order_of(scores: list[float], clusters: list[list[int]]) -> list[int]:
    """Clusters best first, ties by the row of their first member."""
    return sorted(range(len(clusters)), key=lambda k: (-scores[k], clusters[k][0]))


# ---------------------------------------------------------------- masks


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("seed", range(40))
def test_fused_masks_are_means_above_the_threshold(seed: int) -> None:
    random, count, scores, groups, models, weights, threshold = case(seed)
    masks, level = blobs(random, count), float(random.choice([0, 0.1, 0.5, 0.7]))
    boxes = boxscore.mask_to_box(masks)
    found, values, _, clusters = fused_boxes(boxes, scores, groups, models, weights, threshold)
    given = tables(models, groups, scores, boxes=boxes, masks=masks)
    got = fuse(given, similarity="mask", weights=weights, iou_threshold=threshold, mask_threshold=level)
    order = order_of(values, clusters)
    np.testing.assert_allclose(got.scores, [values[k] for k in order], rtol=1e-12)
    np.testing.assert_allclose(got.boxes, [found[k] for k in order], rtol=1e-12, atol=1e-12)
    assert got.image.tolist() == [groups[clusters[k][0]] for k in order]
    for mask, number in zip(got.masks.arrays(), order, strict=True):
        weight = [scores[k] * weights[models[k]] for k in clusters[number]]
        expected = masks[clusters[number][0]]
        if len(weight) > 1 and sum(weight) > 0:
            total = np.zeros((HEIGHT, WIDTH))
            for w, k in zip(weight, clusters[number], strict=True):
                total += w * masks[k]
            expected = total / sum(weight) > level
        assert np.array_equal(mask, expected)


@pytest.mark.parametrize("overlap", ["iou", "ios"])
@pytest.mark.parametrize("method", ["nmm", "greedy-nmm"])
@pytest.mark.parametrize("seed", range(10))
def test_merged_masks_are_unions(seed: int, method: Any, overlap: Any) -> None:
    random, count, scores, groups, models, _, threshold = case(seed)
    masks = blobs(random, count)
    codes = [coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8)) for mask in masks]
    matrix = coco_mask.iou(codes, codes, [int(overlap == "ios")] * count)
    members = members_of(method, np.maximum(matrix, matrix.T), scores, groups, threshold)
    boxes = boxscore.mask_to_box(masks) + random.uniform(-1, 1, (count, 4))
    given = tables(models, groups, scores, boxes=boxes, masks=masks)
    got = fuse(given, method=method, similarity="mask", iou_threshold=threshold, overlap=overlap)
    assert got.scores.tolist() == [scores[rows[0]] for rows in members]
    for mask, box, rows in zip(got.masks.arrays(), got.boxes, members, strict=True):
        assert np.array_equal(mask, masks[rows].any(axis=0))
        assert box.tolist() == [*boxes[rows, :2].min(axis=0), *boxes[rows, 2:].max(axis=0)]


def members_of(method: str, matrix: Array, scores: Array, groups: Array, threshold: float) -> list[list[int]]:
    """Rows of each merged detection, best first; by score, ties by row."""
    if method == "nmm":
        owner = chained(matrix, scores, groups, threshold)
    else:
        by = hard(matrix, scores, groups, threshold)[1]
        owner = [row if of < 0 else int(of) for row, of in enumerate(by)]
    order = best_first(scores)
    return [[head, *(k for k in order if owner[k] == head != k)] for head in order if owner[head] == head]


def test_masks_alone_have_the_boxes_of_their_pixels() -> None:
    left, right = np.zeros((2, HEIGHT, WIDTH), dtype=bool)
    left[2:8, 3:10] = right[2:8, 5:14] = True
    single = [Detections.from_arrays([1], [1], None, [s], masks=[m]) for s, m in ((0.9, left), (0.8, right))]
    got = fuse(single, similarity="mask", iou_threshold=0.2)
    # Of two masks, the one with more weight has more than half of it everywhere.
    assert np.array_equal(got.masks.arrays()[0], left)
    assert got.boxes.tolist() == [[3, 2, 10, 8]]
    assert not got.boxes_given
    merged = fuse(single, method="nmm", similarity="mask", iou_threshold=0.2)
    assert merged.boxes.tolist() == [[3, 2, 14, 8]]
    assert merged.scores.tolist() == [0.9]


def test_masks_that_share_no_pixel_of_most_weight() -> None:
    strips = np.zeros((3, HEIGHT, WIDTH), dtype=bool)
    for number, strip in enumerate(strips):
        strip[2 * number : 2 * number + 2, 3:10] = True
    boxes = [[3, 0, 10, 6]] * 3
    found = Detections.from_arrays([1] * 3, [1] * 3, boxes, [0.5] * 3, masks=list(strips))
    with pytest.warns(BoxscoreWarning, match="1 fused mask is empty"):
        got = fuse([found], similarity="mask")
    assert got.masks.area.tolist() == [0]


@pytest.mark.parametrize("seed", range(6))
def test_many_spans_are_combined_in_batches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from boxscore.extensions.masks import combining

    random, count, scores, groups, models, _, threshold = case(3 * seed + 1)
    masks = blobs(random, count)
    given = tables(models, groups, scores, boxes=boxscore.mask_to_box(masks), masks=masks)
    one = fuse(given, method="nmm", similarity="mask", iou_threshold=threshold)
    monkeypatch.setattr(combining, "SPANS_TOGETHER", 3)
    other = fuse(given, method="nmm", similarity="mask", iou_threshold=threshold)
    assert one.masks.codes() == other.masks.codes()


def test_masks_that_reach_the_edges_of_their_images() -> None:
    """Runs of one image do not go on in the next one."""
    full, end, start = np.zeros((3, HEIGHT, WIDTH), dtype=bool)
    full[:] = end[:, 20:] = start[:, :20] = True
    masks = [full, end, start, full, full, start]
    boxes = [[0, 0, WIDTH, HEIGHT]] * 6
    found = Detections.from_arrays([1, 1, 2, 2, 3, 3], [1] * 6, boxes, [0.9] * 6, masks=masks)
    for method, expected in (("nmm", [full, full, full]), ("wbf", [end, start, start])):
        got = fuse([found], method=method, similarity="mask", iou_threshold=0.1)
        order = np.argsort(got.image)
        assert [got.masks.arrays()[row].tolist() for row in order] == [mask.tolist() for mask in expected]


# ---------------------------------------------------------------- oriented boxes


def corners(box: Array) -> Array:
    along = np.array([np.cos(box[4]), np.sin(box[4])]) * box[2] / 2
    across = np.array([-np.sin(box[4]), np.cos(box[4])]) * box[3] / 2
    return np.array([box[:2] - along - across, box[:2] + along - across, box[:2] + along + across,
                     box[:2] - along + across])  # fmt: skip


def like(box: Array, other: Array) -> Array:
    """The description whose corners are closest, among many."""
    every = [
        np.array([*box[:2], *(box[2:4] if turn % 2 == 0 else box[[3, 2]]), box[4] + turn * np.pi / 2])
        for turn in range(-9, 10)
    ]
    near = [each for each in every if abs(each[4] - other[4]) <= np.pi + 1e-9]
    return min(near, key=lambda each: float(np.square(corners(each) - corners(other)).sum()))


def fused_rotated(
    boxes: Array, scores: Array, groups: Array, models: list[int], weights: list[float], threshold: float
) -> tuple[list[Array], list[list[int]]]:
    """Weighted boxes fusion of rotated boxes, one at a time."""
    weighted = [score * weights[model] for score, model in zip(scores, models, strict=True)]
    fused: list[Array] = []
    clusters: list[list[int]] = []
    for i in best_first(weighted):
        best, into = threshold, None
        for number, cluster in enumerate(clusters):
            if groups[cluster[0]] == groups[i]:
                iou = float(rotated_box_iou([fused[number]], [boxes[i]])[0, 0])
                if iou > best:
                    best, into = iou, number
        if into is None:
            clusters.append([i])
            fused.append(boxes[i])
            continue
        clusters[into].append(i)
        rows = clusters[into]
        total = sum(weighted[k] for k in rows)
        if total > 0:
            fused[into] = sum(weighted[k] * like(boxes[k], boxes[rows[0]]) for k in rows) / total
    return fused, clusters


def assert_same_rectangles(got: Array, expected: Array) -> None:
    for one, other in itertools.zip_longest(got, expected):
        np.testing.assert_allclose(
            corners(like(one, other)), corners(np.asarray(other)), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("seed", range(40))
def test_rotated_boxes_are_averaged_in_one_description(seed: int) -> None:
    random, count, scores, groups, models, weights, threshold = case(seed)
    boxes = turned(random, count)
    found, clusters = fused_rotated(boxes, scores, groups, models, weights, threshold)
    maxima = [max(scores[k] * weights[models[k]] for k in rows) / max(weights) for rows in clusters]
    order = order_of(maxima, clusters)
    got = fuse(
        tables(models, groups, scores, rotated=boxes),
        similarity="rotated",
        weights=weights,
        iou_threshold=threshold,
        confidence="max",
    )
    assert got.scores.tolist() == [maxima[k] for k in order]
    assert_same_rectangles(got.rotated, np.array([found[k] for k in order]))
    for k, rotated in zip(order, got.rotated, strict=True):
        if len(clusters[k]) == 1:
            assert rotated.tolist() == boxes[clusters[k][0]].tolist()


@pytest.mark.parametrize("seed", range(20))
def test_non_maximum_weighted_of_rotated_boxes(seed: int) -> None:
    random, count, scores, groups, models, weights, threshold = case(seed)
    boxes = turned(random, count)
    weighted = np.array([score * weights[model] for score, model in zip(scores, models, strict=True)])
    iou = np.minimum(rotated_box_iou(boxes, boxes), 1)
    clusters: list[list[int]] = []
    for i in best_first(weighted):
        heads = [rows[0] for rows in clusters if groups[rows[0]] == groups[i]]
        best = max(heads, key=lambda head: iou[head, i], default=None)  # the first of equal ones
        if best is None or iou[best, i] <= threshold:
            clusters.append([i])
        else:
            next(rows for rows in clusters if rows[0] == best).append(i)
    expected = []
    for rows in clusters:
        weight = [weighted[k] * (1 if k == rows[0] else iou[rows[0], k]) for k in rows]
        mean = sum(w * like(boxes[k], boxes[rows[0]]) for w, k in zip(weight, rows, strict=True))
        expected.append(mean / sum(weight) if sum(weight) > 0 else boxes[rows[0]])
    values = [weighted[rows[0]] / max(weights) for rows in clusters]
    order = order_of(values, clusters)
    got = fuse(
        tables(models, groups, scores, rotated=boxes),
        method="nmw",
        similarity="rotated",
        weights=weights,
        iou_threshold=threshold,
    )
    assert got.scores.tolist() == [values[k] for k in order]
    assert_same_rectangles(got.rotated, np.array([expected[k] for k in order]))


def test_angles_on_both_sides_of_their_range() -> None:
    """Two narrow boxes, 89 and -89 degrees: the mean of the numbers would lie across them."""
    boxes = np.array([[20, 20, 30, 4, np.deg2rad(89)], [20, 20, 30, 4, np.deg2rad(-89)]])
    given = [Detections.from_arrays([1], [1], None, [0.5], rotated=box[None]) for box in boxes]
    got = fuse(given, similarity="rotated")
    assert np.rad2deg(got.rotated[0, 4]) == pytest.approx(90)
    assert rotated_box_iou(got.rotated, boxes).min() > 0.7
    assert rotated_box_iou([boxes.mean(axis=0)], boxes).max() < 0.2


def fused_by_hand(boxes: list[list[float]], scores: list[float], threshold: float) -> list[list[float]]:
    found = Detections.from_arrays([1] * len(boxes), [1] * len(boxes), None, scores, rotated=boxes)
    rotated: list[list[float]] = fuse([found], similarity="rotated", iou_threshold=threshold).rotated.tolist()
    return rotated


def test_edges_of_the_rule() -> None:
    """An IoU of the threshold does not join; equal ones join the first; scores of 0 weigh nothing."""
    whole, half = [10.0, 10.0, 4.0, 4.0, 0.0], [10.0, 9.0, 4.0, 2.0, 0.0]
    assert fused_by_hand([whole, half], [0.9, 0.8], 0.5) == [whole, half]
    assert len(fused_by_hand([whole, half], [0.9, 0.8], 0.49)) == 1
    left, right, middle = ([at, 10.0, 4.0, 4.0, 0.0] for at in (8.0, 12.0, 10.0))
    assert fused_by_hand([left, right, middle], [0.5, 0.5, 0.5], 0.2) == [[9.0, *left[1:]], right]
    assert fused_by_hand([whole, [11.0, *whole[1:]], [10.5, *whole[1:]]], [0.0, 0.0, 0.0], 0.2) == [whole]


@pytest.mark.parametrize("similarity", ["rotated", "quadrilateral"])
@pytest.mark.parametrize("method", ["nmm", "greedy-nmm"])
@pytest.mark.parametrize("seed", range(8))
def test_merged_oriented_boxes_cover_their_members(seed: int, method: Any, similarity: Any) -> None:
    random, count, scores, groups, models, _, threshold = case(seed)
    boxes = turned(random, count)
    points = np.array([corners(box).ravel() for box in boxes])
    members = members_of(method, rotated_box_iou(boxes, boxes), scores, groups, threshold)
    shapes = {"rotated": boxes} if similarity == "rotated" else {"quadrilaterals": points}
    got = fuse(
        tables(models, groups, scores, **shapes),
        method=method,
        similarity=similarity,
        iou_threshold=threshold,
    )
    assert got.scores.tolist() == [scores[rows[0]] for rows in members]
    column = got.rotated if similarity == "rotated" else got.quadrilaterals
    for shape, rows in zip(column, members, strict=True):
        if len(rows) == 1:
            assert shape.tolist() == shapes[next(iter(shapes))][rows[0]].tolist()
            continue
        # In the frame of the best box, the corners of the result are the extremes of all members.
        angle = boxes[rows[0], 4]
        frame = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        inside = points[rows].reshape(-1, 2) @ frame
        (left, top), (right, bottom) = inside.min(axis=0), inside.max(axis=0)
        result = (corners(shape) if similarity == "rotated" else shape.reshape(4, 2)) @ frame
        expected = [[left, top], [right, top], [right, bottom], [left, bottom]]
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


def test_corners_are_averaged_in_one_order() -> None:
    """The same quadrilateral from another corner, and in the other direction, is no other."""
    first = np.array([[0, 0, 10, 1, 9, 6, 0, 5]], dtype=float)
    for shift, direction in itertools.product(range(4), (1, -1)):
        listed = first.reshape(4, 2)[(shift + direction * np.arange(4)) % 4].reshape(1, 8)
        given = [
            Detections.from_arrays([1], [1], None, [score], quadrilaterals=shape)
            for score, shape in ((0.75, first), (0.25, listed + 1))
        ]
        got = fuse(given, similarity="quadrilateral", iou_threshold=0.3)
        np.testing.assert_allclose(got.quadrilaterals, first + 0.25, rtol=1e-12)


# ---------------------------------------------------------------- boxes


@pytest.mark.parametrize("method", ["nmm", "greedy-nmm"])
def test_boxes_are_merged_as_by_nms(method: Any) -> None:
    random, count, scores, groups, models, _, threshold = case(12)
    corner = random.uniform(0, 20, (count, 2))
    boxes = np.hstack([corner, corner + random.uniform(5, 15, (count, 2))])
    given = tables(models, groups, scores, boxes=boxes)
    got = fuse(given, method=method, iou_threshold=threshold, overlap="ios", score_threshold=0.2)
    expected = boxscore.suppress_boxes(
        boxes, scores, threshold, groups=groups, method=method, overlap="ios", score_threshold=0.2
    )
    assert got.boxes.tolist() == expected.boxes.tolist()
    assert got.scores.tolist() == expected.scores.tolist()


# ---------------------------------------------------------------- the command


def record(score: float, **shape: Any) -> dict[str, Any]:
    return {"image_id": 7, "category_id": 1, "score": score, **shape}


def square(left: float) -> dict[str, Any]:
    mask = np.zeros((40, 50), dtype=np.uint8, order="F")
    mask[5:25, int(left) : int(left) + 20] = 1
    code = coco_mask.encode(mask)
    return {"size": code["size"], "counts": code["counts"].decode()}


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text(json.dumps(records))
    return path


def test_masks_in_the_shell(tmp_path: Path, run: Run) -> None:
    alone = {"size": [40, 50], "counts": [1800, 10, 190]}
    first = write(
        tmp_path / "first.json",
        record(0.9, bbox=[5, 5, 20, 20], segmentation=square(5)),
        record(0.3, bbox=[45, 0, 1, 10], segmentation=alone),
    )
    other = write(tmp_path / "other.json", record(0.8, bbox=[9, 5, 20, 20], segmentation=square(9)))
    output = tmp_path / "fused.json"
    said = run("fuse", first, other, "--iou-type", "segm", "--output", output).err
    assert said == f"2 boxes from 3 detections of 2 models, written to {output}\n"
    fused, single = json.loads(output.read_text())
    assert fused["segmentation"] == square(5)  # of two masks, the one with more weight
    assert fused["bbox"] == pytest.approx([5 * 0.9 / 1.7 + 9 * 0.8 / 1.7, 5, 20, 20])
    assert fused["score"] == pytest.approx(0.85)
    assert single["segmentation"] == alone
    run("fuse", first, other, "--iou-type", "segm", "--mask-threshold", "0.2", "--output", output)
    assert coco_mask.area(json.loads(output.read_text())[0]["segmentation"]) == 24 * 20
    # One file may be merged.
    both = write(tmp_path / "both.json", *json.loads(first.read_text()), *json.loads(other.read_text()))
    run("fuse", both, "--iou-type", "segm", "--method", "greedy-nmm", "--output", output)
    merged = json.loads(output.read_text())[0]
    assert coco_mask.area(merged["segmentation"]) == 24 * 20
    assert (merged["bbox"], merged["score"]) == ([5, 5, 24, 20], 0.9)
    # Boxes are fused without the masks, which is said.
    said = run("fuse", first, other, "--output", output).err
    assert (
        f"{first}: masks; they are left out, and boxes are fused. To fuse masks, pass --iou-type segm" in said
    )
    assert "segmentation" not in json.loads(output.read_text())[0]


def test_rotated_boxes_in_the_shell(tmp_path: Path, run: Run) -> None:
    first = write(tmp_path / "first.json", record(0.75, bbox=[30, 25, 40, 10, 30]))
    other = write(tmp_path / "other.json", record(0.25, bbox=[30, 25, 10, 40, 124]))
    output = tmp_path / "fused.json"
    run("fuse", first, other, "--iou-type", "rotated", "--output", output)
    (fused,) = json.loads(output.read_text())
    assert fused["bbox"] == pytest.approx([30, 25, 40, 10, 31])
    assert (
        "the upright boxes around them are suppressed or fused" in run("fuse", first, other, "-o", output).err
    )
    # Results in the files of DOTA stay corners.
    for name, shape in (("a", "10 10 50 12 48 40 8 38"), ("b", "48 40 8 38 10 10 50 12")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Task1_ship.txt").write_text(f"img 0.5 {shape}\n")
    for kind in ("quadrilateral", "rotated"):
        run("fuse", tmp_path / "a", tmp_path / "b", "--iou-type", kind, "-o", tmp_path / kind)
        table = load_results(tmp_path / kind, oriented=True).table
        assert len(table) == 1
        assert table.quadrilaterals.shape == (1, 8)
    assert (tmp_path / "quadrilateral" / "Task1_ship.txt").read_text() == (
        "img 0.5 10.0 10.0 50.0 12.0 48.0 40.0 8.0 38.0\n"
    )


def test_what_is_refused(tmp_path: Path, run: Run) -> None:
    masks = write(tmp_path / "masks.json", record(0.9, segmentation=square(5)))
    other = write(tmp_path / "other.json", record(0.9, segmentation={"size": [20, 50], "counts": [0, 1000]}))
    boxes = write(tmp_path / "boxes.json", record(0.9, bbox=[5, 5, 20, 20]))
    turned = write(tmp_path / "turned.json", record(0.9, bbox=[5, 5, 20, 20, 3]))
    polygon = write(
        tmp_path / "polygon.json", record(0.9, bbox=[0, 0, 9, 9], segmentation=[[0, 0, 9, 0, 9, 9]])
    )

    def said(*arguments: object) -> str:
        return run.error("fuse", *arguments, "--output", tmp_path / "out.json").removeprefix(
            "boxscore: error: "
        )

    segm = ["--iou-type", "segm"]
    assert said(masks, "--method", "nmw", *segm) == (
        "--method must be wbf, greedy-nmm or nmm where masks are fused. Got 'nmw'; non-maximum weighted has no "
        "published rule for masks.\n"
    )
    assert said(masks, "--method", "nms", *segm).startswith(
        "--method must be one of 'wbf', 'nmw', 'greedy-nmm'"
    )
    assert "--weights must not be used with method 'nmm'" in said(masks, "--method", "nmm", "--weights", 1)
    assert "--overlap must be 'iou' with method 'wbf'" in said(masks, "--overlap", "ios")
    merge = ["--method", "nmm", "--overlap", "ios", "--iou-type", "rotated"]
    assert "--overlap must be 'iou' where oriented boxes are compared" in said(turned, *merge)
    assert "--mask-threshold must be used with method 'wbf' where masks are fused" in said(
        masks, "--mask-threshold", 0.5
    )
    assert "--mask-threshold must be a number in [0, 1]. Got 2" in said(masks, "--mask-threshold", 2, *segm)
    assert "--confidence must not be used with method 'nmm'" in said(
        masks, "--method", "nmm", "--confidence", "max"
    )
    assert f"Got none in row 0 of {boxes}" in said(masks, boxes, *segm)
    assert f"40 high and 50 wide. Got [20, 50] in detection 0 of {other}" in said(masks, other, *segm)
    assert "known width and height" in said(polygon, *segm)
    assert f"Got none in detection 0 of {polygon}" in said(polygon, *segm)
    assert said(turned, boxes, "--iou-type", "rotated") == (
        f"a detection must be a rotated box where these are fused. Got an upright one in {boxes}; to fuse upright "
        "boxes, leave out --iou-type.\n"
    )
    assert f"Got a rotated box in {turned}; pass --iou-type rotated" in said(
        turned, "--iou-type", "quadrilateral"
    )
    with pytest.raises(InputError, match="tables must have one entry per model"):
        fuse([])


@pytest.mark.parametrize("kind", ["mask", "rotated"])
@pytest.mark.parametrize("method", ["wbf", "nmm"])
def test_partitions_give_what_a_run_in_memory_gives(
    kind: str, method: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxscore.formats.parquet import FORMAT
    from support import limits

    limits.small_partitions(monkeypatch, 20)
    random = np.random.default_rng(3)
    shapes: dict[str, Any] = {"rotated": turned(random, 80)}
    if kind == "mask":
        masks = blobs(random, 80)
        shapes = {"masks": list(masks), "boxes": boxscore.mask_to_box(masks)}
    shapes = {"boxes": None, **shapes}
    image = random.integers(0, 9, 80)
    files = []
    for half in (slice(0, 40), slice(40, 80)):
        some = {name: None if column is None else column[half] for name, column in shapes.items()}
        table = Detections.from_arrays(
            image[half].tolist(), [1] * 40, some.pop("boxes"), random.random(40), **some
        )
        files.append(tmp_path / f"{half.start}.parquet")
        FORMAT.save(table, files[-1])
    call = ["fuse", *files, "--iou-type", "segm" if kind == "mask" else kind, "--method", method]
    run(*call, "--output", tmp_path / "whole.parquet")
    run(*call, "--output", tmp_path / "parts.parquet", "--memory-limit", "2GB")
    whole, parts = (
        load_results(tmp_path / f"{name}.parquet", oriented=True).table for name in ("whole", "parts")
    )
    order = np.lexsort((np.arange(len(whole)), whole.image))
    assert len(whole) < 80
    for name in ("image", "scores", "boxes", "rotated"):
        one, other = getattr(whole, name), getattr(parts, name)
        assert (one is None and other is None) or np.array_equal(one[order], other)
    if kind == "mask":
        assert [whole.masks.codes()[row] for row in order] == parts.masks.codes()
