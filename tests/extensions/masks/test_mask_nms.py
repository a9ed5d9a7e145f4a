"""Suppression by masks against pycocotools' overlaps and the loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask

import boxscore
from boxscore.extensions.masks import mask as mask_module
from boxscore.extensions.masks.mask import as_masks
from boxscore.suppression import mask_nms, suppress
from boxscore.suppression._ranked import check_scores, rank
from boxscore.suppression.hard import select
from oracles.suppression import fast, hard, matrix_decay, soft
from support.real_data import real
from support.running import Run

HEIGHT, WIDTH = 30, 40


def random_masks(seed: int, count: int) -> np.ndarray[Any, Any]:
    """Blobs, lines, scattered pixels, copies, empty and full masks, [N, H, W] bool."""
    random = np.random.default_rng(seed)
    masks = np.zeros((count, HEIGHT, WIDTH), dtype=bool)
    for mask in masks:
        kind = random.integers(6)
        y, x = random.integers(0, HEIGHT - 4), random.integers(0, WIDTH - 4)
        h, w = random.integers(1, 15, 2)
        if kind < 3:  # a rectangle with a corner missing
            mask[y : y + h, x : x + w] = True
            mask[y : y + h // 2, x : x + w // 2] = False
        elif kind == 3:  # a diagonal: its box says nothing
            np.fill_diagonal(mask[:, random.integers(0, 8) :], True)
        elif kind == 4:
            mask[:] = random.random((HEIGHT, WIDTH)) < 0.02
        elif random.random() < 0.3:
            mask[:] = random.random() < 0.5
    if count > 4:
        masks[-2:] = masks[:2]
    return masks


def overlaps(codes: list[Any], overlap: str = "iou") -> np.ndarray[Any, Any]:
    """Every overlap as pycocotools has it, [N, N]; an empty mask overlaps nothing."""
    count = len(codes)
    if not count:
        return np.zeros((0, 0))
    if overlap == "iou":
        matrix = coco_mask.iou(codes, codes, [0] * count)
    else:
        over_first = coco_mask.iou(codes, codes, [1] * count)
        matrix = np.maximum(over_first, over_first.T)
    empty = np.array([coco_mask.area(code) == 0 for code in codes])
    matrix[empty] = matrix[:, empty] = 0
    return matrix


def case(seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], float]:
    random = np.random.default_rng(1000 + seed)
    count = int(random.choice([0, 1, 2, 9, 40]))
    scores = random.integers(0, 6, count) / 5 if seed % 2 else random.random(count)
    groups = random.integers(0, random.choice([1, 3]), count)
    return random_masks(seed, count), scores, groups, float(random.choice([0, 0.2, 1 / 3, 0.5, 0.9, 1]))


def codes_of(masks: np.ndarray[Any, Any]) -> list[Any]:
    return [coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8)) for mask in masks]


@pytest.mark.long
@pytest.mark.parametrize("overlap", ["iou", "ios"])
def test_equals_the_loop_over_pycocotools(overlap: Any) -> None:
    dropped = 0
    for seed in range(150):
        masks, scores, groups, threshold = case(seed)
        expected, dropped_by = hard(overlaps(codes_of(masks), overlap), scores, groups, threshold)
        kept = mask_nms(masks, scores, groups=groups, iou_threshold=threshold, overlap=overlap)
        assert kept.tolist() == expected
        measure = mask_module.mask_measure(as_masks(masks), groups, overlap=overlap, lowest=threshold)
        ranked = rank(check_scores(scores, length=len(masks)), groups, measure)
        for plan in ("lockstep", "sweep", "grid"):
            again, _, _, by = select(ranked, threshold, owners=True, plan=plan)
            assert again.tolist() == expected
            assert by.tolist() == dropped_by.tolist()
        dropped += len(masks) - len(expected)
    assert dropped > 200


def test_the_boxes_would_say_otherwise() -> None:
    masks = np.zeros((2, 10, 10), dtype=bool)
    np.fill_diagonal(masks[0], True)
    np.fill_diagonal(masks[1][:, ::-1], True)
    assert mask_nms(masks, [0.9, 0.8], iou_threshold=0.1).tolist() == [0, 1]
    boxes = boxscore.mask_to_box(masks)
    assert boxscore.nms(boxes, [0.9, 0.8], iou_threshold=0.9).tolist() == [0]


def test_only_masks_that_may_overlap_enough_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """One hundred squares apart, two of them twice: two pairs, and no table of 102 x 102."""
    masks = np.zeros((102, 100, 100), dtype=bool)
    for number in range(100):
        y, x = divmod(number, 10)
        masks[number, 10 * y : 10 * y + 9, 10 * x : 10 * x + 9] = True
    masks[100:] = masks[:2]
    compared = []
    real_function = mask_module.overlaps_of_pairs

    def count(*arguments: Any) -> Any:
        compared.append(len(arguments[2]))
        return real_function(*arguments)

    monkeypatch.setattr(mask_module, "overlaps_of_pairs", count)
    kept = mask_nms(masks, np.arange(102.0), iou_threshold=0.5)
    assert sorted(kept.tolist()) == list(range(2, 102))
    assert sum(compared) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    "method", ["hard", "soft-linear", "soft-gaussian", "matrix-linear", "fast", "cluster"]
)
def test_every_method_that_compares_masks(method: str) -> None:
    for seed in range(40):
        masks, scores, groups, threshold = case(seed)
        found = boxscore.Detections.from_arrays(groups, ["a"] * len(masks), None, scores, masks=masks)
        matrix = overlaps(codes_of(masks))
        options: dict[str, Any] = {"method": method, "similarity": "mask"}
        if method not in ("soft-gaussian", "matrix-linear"):
            options["iou_threshold"] = threshold
        left = suppress(found, **options, score_threshold=0.0)
        if method.startswith(("soft", "matrix")):
            if method == "matrix-linear":
                lowered = matrix_decay(matrix, scores, groups, lambda iou: 1 - min(iou, 1))
            elif method == "soft-linear":
                lowered = soft(matrix, scores, groups, lambda iou: 1 - iou, threshold, 0)
            else:
                lowered = soft(matrix, scores, groups, lambda iou: np.exp(-(iou**2) / 0.5), 0, 0)
            assert sorted(left.indices.tolist()) == list(range(len(masks)))
            np.testing.assert_allclose(left.scores, lowered[left.indices], rtol=1e-12, atol=1e-15)
        else:
            rounds = 1 if method == "fast" else len(masks) + 1
            expected = fast(matrix, scores, groups, threshold, rounds)
            assert left.indices.tolist() == expected


@pytest.mark.parametrize(
    ("masks", "scores", "options", "message"),
    [
        (
            [{"size": [4, 4], "counts": [16]}, {"size": [4, 5], "counts": [20]}],
            [0.5, 0.5],
            {},
            "a mask must have the size of the mask it is compared with, 4 high and 4 wide. Got [4, 5] in mask 1; "
            "is it of the resized image?",
        ),
        (np.zeros((2, 4, 4), bool), [0.5], {}, "scores must be as long as masks (2). Got length 1."),
        (
            np.zeros((1, 4, 4), bool),
            [0.5],
            {"overlap": "diou"},
            "overlap must be one of 'iou', 'ios'. Got 'diou'; did you mean 'iou'?",
        ),
        ([None], [0.5], {}, "a row must have a mask. Got none in mask 0."),
    ],
)
def test_bad_input(masks: Any, scores: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(boxscore.InputError) as error:
        mask_nms(masks, scores, iou_threshold=0.5, **options)
    assert str(error.value) == message


def test_sizes_may_differ_between_groups() -> None:
    masks = [np.ones((4, 4), bool), np.ones((4, 5), bool)]
    assert mask_nms(masks, [0.5, 0.6], groups=[0, 1], iou_threshold=0.5).tolist() == [1, 0]


# ---------------------------------------------------------------- command line


def records(seed: int = 3) -> list[dict[str, Any]]:
    masks = random_masks(seed, 40)
    random = np.random.default_rng(seed)
    found = []
    for number, code in enumerate(codes_of(masks)):
        text = {"size": code["size"], "counts": code["counts"].decode()}
        found.append(
            {
                "image_id": number % 2,
                "category_id": 1,
                "score": round(float(random.random()), 3),
                "segmentation": text,
                "track": number,
            }
        )
    return found


def test_in_the_shell(tmp_path: Path, run: Run) -> None:
    rows = records()
    raw, output = tmp_path / "raw.json", tmp_path / "kept.json"
    raw.write_text(json.dumps(rows))
    given = ["nms", "--dt", str(raw), "--output", str(output), "--iou-threshold", "0.2"]
    run(*given, "--iou-type", "segm")
    matrix = overlaps([row["segmentation"] for row in rows])
    scores = [row["score"] for row in rows]
    expected, _ = hard(matrix, scores, [row["image_id"] for row in rows], 0.2)
    assert json.loads(output.read_text()) == [rows[row] for row in sorted(expected)]
    assert 0 < len(expected) < 40
    assert run.error(*given, "--iou-type", "segm", "--method", "nmm") == (
        "boxscore: error: --method must be one that compares masks. Got 'nmm'; known: hard, soft-linear, "
        "soft-gaussian, matrix-linear, matrix-gaussian, fast, cluster; boxscore fuse merges masks.\n"
    )
    run(*given)
    raw.write_text(json.dumps([{**rows[0], "bbox": [0, 0, 5, 5]}, {**rows[1], "bbox": [0, 0, 5, 5]}]))
    run(*given, "--iou-type", "segm")
    del rows[1]["segmentation"]
    raw.write_text(json.dumps(rows))
    assert f"in detection 1 of {raw}" in run.error(*given, "--iou-type", "segm")


@pytest.mark.real
def test_real_masks() -> None:
    path = real("coco_val2017_masks206/yolact_base.segm.json")
    rows = json.loads(path.read_text())
    codes = [row["segmentation"] for row in rows]
    images = [row["image_id"] for row in rows]
    scores = [row["score"] for row in rows]
    for threshold in (0.0, 0.01, 0.1):
        matrix = np.zeros((len(rows), len(rows)))
        for image in set(images):
            here = [number for number, of in enumerate(images) if of == image]
            matrix[np.ix_(here, here)] = overlaps([codes[number] for number in here])
        kept = mask_nms(codes, scores, groups=images, iou_threshold=threshold)
        assert kept.tolist() == hard(matrix, scores, images, threshold)[0]
    assert len(kept) < len(rows)
