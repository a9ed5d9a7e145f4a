"""The mask functions and the column, against their definitions on binary arrays."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from pycocotools import mask as coco_mask

import boxscore
from boxscore.extensions.masks.boundary import boundary_iou, mask_boundary
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.mask import mask_area, mask_iof, mask_iou, mask_to_box


def random_masks(count: int, seed: int = 0, shape: tuple[int, int] = (17, 23)) -> np.ndarray:
    random = np.random.default_rng(seed)
    masks = random.random((count, *shape)) < random.random((count, 1, 1))
    masks[0] = False
    return masks


def test_overlaps_are_counts_of_pixels() -> None:
    one, other = random_masks(6), random_masks(7, seed=1)
    iou, iof = mask_iou(one, other), mask_iof(one, other)
    for i, j in itertools.product(range(6), range(7)):
        both, either = (one[i] & other[j]).sum(), (one[i] | other[j]).sum()
        assert iou[i, j] == (both / either if both else 0)
        assert iof[i, j] == (both / one[i].sum() if both else 0)
    assert mask_iou(one[:0], other).shape == (0, 7)


def test_area_and_box() -> None:
    masks = random_masks(5)
    assert mask_area(masks).tolist() == masks.sum(axis=(1, 2)).tolist()
    for mask, box in zip(masks, mask_to_box(masks), strict=True):
        y, x = np.nonzero(mask)
        expected = [x.min(), y.min(), x.max() + 1, y.max() + 1] if len(x) else [0, 0, 0, 0]
        assert box.tolist() == expected
    assert mask_area(random_masks(600)).shape == (600,)  # pycocotools' own area fails on more than 255


def test_every_form_of_a_mask_is_the_same_mask() -> None:
    polygon = [[2.0, 3.0, 12.5, 3.0, 12.5, 9.0], [15.0, 10.0, 20.0, 10.0, 20.0, 14.0, 15.0, 14.0]]
    code = coco_mask.merge(coco_mask.frPyObjects(polygon, 17, 23))
    array = coco_mask.decode(code)
    flat = array.ravel(order="F").astype(np.int8)
    runs = np.diff(np.concatenate([[0], np.flatnonzero(np.diff(flat, prepend=0)), [flat.size]]))
    forms = [
        polygon,
        tuple(polygon),
        code,
        {"size": [17, 23], "counts": code["counts"].decode()},
        {"size": (17, 23), "counts": runs.tolist()},
        array,
        array.astype(bool),
        array.astype(float),
    ]
    masks = Masks(forms, image_sizes=[[23, 17]] * len(forms))
    assert [entry["counts"] for entry in masks.codes()] == [code["counts"]] * 3 + [
        code["counts"].decode()
    ] + [code["counts"]] * 4
    assert all((decoded == array).all() for decoded in masks.arrays())
    assert (mask_iou(masks, masks) == 1).all()


def test_selections_share_what_is_computed() -> None:
    masks = Masks(random_masks(6))
    chosen = masks[np.array([4, 2])]
    assert chosen.area.tolist() == masks.area[[4, 2]].tolist()
    assert len(chosen[np.array([True, False])]) == 1
    assert chosen.place(0) == "mask 4"
    again = pickle.loads(pickle.dumps(chosen))
    assert again.area.tolist() == chosen.area.tolist()
    assert again.place(0) == "mask 4"


def test_tables_with_masks_can_be_pickled_and_copied() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 2], [1, 1], None, masks=random_masks(2) | True)
    for again in (pickle.loads(pickle.dumps(truth)), copy.deepcopy(truth)):
        assert again.masks.area.tolist() == truth.masks.area.tolist()


def naive_boundary(mask: np.ndarray, distance: int) -> np.ndarray:
    """Pixels of the mask with a pixel outside it within ``distance`` along x, y or both."""
    padded = np.pad(mask, distance)
    boundary = np.zeros_like(mask)
    for y, x in np.argwhere(mask):
        boundary[y, x] = not padded[y : y + 2 * distance + 1, x : x + 2 * distance + 1].all()
    return boundary


@pytest.mark.parametrize("shape", [(5, 5), (40, 70), (150, 120)])
@pytest.mark.parametrize("ratio", [0.02, 0.05])
def test_boundary_is_its_definition(shape: tuple[int, int], ratio: float) -> None:
    random = np.random.default_rng(7)
    rows, columns = np.indices(shape)
    disc = (rows / shape[0] - 0.5) ** 2 + (columns / shape[1] - 0.4) ** 2 < 0.12
    to_the_edge = columns > shape[1] // 3
    holes = disc & (random.random(shape) > 0.01)
    masks = [disc, to_the_edge, holes, np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)]
    distance = max(1, round(ratio * float(np.hypot(*shape))))
    outlines = [naive_boundary(mask, distance) for mask in masks]
    for mask, outline in zip(masks, outlines, strict=True):
        assert (mask_boundary(mask, dilation_ratio=ratio) == outline).all()
    overlaps = boundary_iou(masks, masks, dilation_ratio=ratio)
    for (i, one), (j, other) in itertools.product(enumerate(outlines), repeat=2):
        both = (one & other).sum()
        assert overlaps[i, j] == (both / (one | other).sum() if both else 0)


def test_boundary_of_a_mask_at_the_edge_of_the_image() -> None:
    assert mask_boundary(np.ones((5, 5))).sum() == 16
    assert mask_boundary(np.ones((2, 2))).sum() == 4


def test_boundary_iou_by_hand() -> None:
    """Two 6 by 6 squares, one pixel apart, in an image with a boundary of one pixel."""
    one, other = np.zeros((2, 12, 12), dtype=bool)
    one[2:8, 2:8] = other[2:8, 3:9] = True
    # outlines of 20 pixels; common: 5 and 5 of the long sides, none of the short ones
    assert boundary_iou([one], [other]).item() == 10 / 30
    assert mask_iou([one], [other]).item() == 30 / 42


def test_a_ring_is_worth_its_mask_iou() -> None:
    """Boundary IoU is 1 for a mask with a hole filled far inside: the smaller overlap decides."""
    disc = np.zeros((200, 200), dtype=bool)
    disc[20:180, 20:180] = True
    ring = disc.copy()
    ring[60:140, 60:140] = False
    truth = boxscore.GroundTruth.from_arrays([1], [1], None, masks=[ring])
    found = boxscore.Detections.from_arrays([1], [1], None, [0.5], masks=[disc])
    pair = boxscore.evaluate(truth, found, protocol="coco-boundary").matches
    assert pair["iou"].item() == min(mask_iou([disc], [ring]), boundary_iou([disc], [ring])).item()


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (
            [[]],
            r"a mask must be polygons, an RLE .*Got \[\] in mask 0; annotated with boxes only\?",
        ),
        (
            [[[1, 2, 3]]],
            r"a mask must be polygons of at least 3 points.*Got \[\[1\.0, 2\.0, 3\.0\]\] in mask 0\.",
        ),
        (["x"], r"a mask must be polygons.*Got 'x' in mask 0\."),
        ([{"counts": "a"}], r"a mask must be polygons.*Got keys \['counts'\], size None in mask 0\."),
        ([{"size": [4, 4], "counts": [3, 4]}], r"Got counts that add up to 7 for size \[4, 4\] in mask 0\."),
        (
            [{"size": [4, 4], "counts": "04l"}],
            r"a mask must be whole\. Got counts that end in '04l'.*cut short",
        ),
        (
            [{"size": [2, 2], "counts": "0X1"}],
            r"a mask must have counts that add up to height times width\. Got counts that add up to 40 for size \[2, 2\]",
        ),
        ([np.full((4, 4), 0.5)], r"a mask array must hold 0 and 1.*probabilities"),
        ([[[1, 1, 5, 1, np.nan, 5]]], r"a polygon must be finite\. Got nan in mask 0\."),
        (
            [[[1, 1, 5, 1, 1e9, 5]]],
            r"a polygon must be at most 1e\+06 in size\. Got 1000000000\.0 in mask 0\.",
        ),
        ([None], r"a row must have a mask\. Got none in mask 0\."),
    ],
)
def test_what_is_refused(masks: list, message: str) -> None:
    with pytest.raises(boxscore.InputError, match=message):
        _ = Masks(masks, image_sizes=[[9, 9]]).area


def test_polygons_need_the_size_of_the_image() -> None:
    with pytest.raises(boxscore.InputError, match=r"have a known width and height.*Images\.build"):
        _ = Masks([[[1, 1, 5, 1, 5, 5]]]).area


def test_masks_of_different_sizes_are_refused() -> None:
    with pytest.raises(boxscore.InputError, match=r"2 high and 3 wide.*Got \[3, 2\].*swapped"):
        mask_iou(np.ones((1, 3, 2)), np.ones((1, 2, 3)))
    truth = boxscore.GroundTruth.from_arrays([1], [1], None, masks=np.ones((1, 8, 8)))
    found = boxscore.Detections.from_arrays(
        [1, 1], [1, 1], None, [0.5, 0.4], masks=[np.ones((8, 8)), np.ones((4, 4))]
    )
    with pytest.raises(boxscore.InputError, match=r"8 high and 8 wide\. Got \[4, 4\] in row 1 of arrays"):
        boxscore.evaluate(truth, found, protocol="coco-segm")


def test_ground_truth_without_masks_is_refused() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 5, 5]])
    found = boxscore.Detections.from_arrays([1], [1], None, [0.5], masks=np.ones((1, 8, 8)))
    with pytest.raises(boxscore.InputError, match=r"ground truth must have a mask in every row"):
        boxscore.evaluate(truth, found, protocol="coco-segm")
    with pytest.raises(boxscore.InputError, match=r"boxes must be given"):
        boxscore.GroundTruth.from_arrays([1], [1], None)
