"""Known answers: hand-computed, or from the papers' own code."""

import math

import numpy as np
import pytest

from boxscore.extensions.oriented.rotated import rotated_box_iou
from boxscore.similarity.box import box_iou
from boxscore.suppression import (
    batched_nms,
    cluster_nms,
    diou_nms,
    fast_nms,
    greedy_nmm,
    matrix_nms,
    nmm,
    nms,
    nmw,
    rotated_nms,
    soft_nms,
    suppress_boxes,
    weighted_boxes_fusion,
)
from boxscore.suppression.methods import METHODS

V1 = [[6, 3, 8, 7], [3, 6, 9, 11], [3, 7, 10, 12], [1, 4, 13, 7]]
V1_SCORES = [0.6, 0.9, 0.7, 0.2]
V2 = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]]
V2_SCORES = [0.9, 0.8, 0.7]
TF = [[0, 0, 1, 1], [0.1, 0, 1.1, 1], [-0.1, 0, 0.9, 1], [10, 0, 11, 1], [10.1, 0, 11.1, 1], [100, 0, 101, 1]]
TF_SCORES = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]
ENSEMBLE = ([[[0, 0, 0.5, 0.5], [0, 0, 0.48, 0.52]], [[0.02, 0, 0.5, 0.5]]], [[0.9, 0.6], [0.8]])


def by_row(result):
    indices, scores = result
    return indices.tolist(), [float(scores[indices.tolist().index(i)]) for i in range(len(indices))]


def test_hard():
    assert nms(V1, V1_SCORES, iou_threshold=0.3).tolist() == [1, 0, 3]
    assert nms(V2, V2_SCORES, iou_threshold=0.5).tolist() == [0, 2]
    assert nms(TF, TF_SCORES, iou_threshold=0.5).tolist() == [3, 0, 5]


def test_indices_are_int64():
    assert nms(V1, V1_SCORES, iou_threshold=0.3).dtype == np.int64
    assert nms([], [], iou_threshold=0.3).dtype == np.int64


def test_overlap_equal_to_the_threshold_stays():
    boxes = [[0, 0, 1, 1], [0, 0, 1, 5]]  # an overlap of exactly 0.2
    assert nms(boxes, [0.9, 0.8], iou_threshold=0.2).tolist() == [0, 1]
    assert nms(np.array(boxes, dtype=np.float32), [0.9, 0.8], iou_threshold=0.2).tolist() == [0, 1]
    assert nms(boxes, [0.9, 0.8], iou_threshold=math.nextafter(0.2, 0)).tolist() == [0]


def test_equal_scores_go_to_the_lowest_index():
    assert nms([[0, 0, 10, 10]] * 3, [0.5] * 3, iou_threshold=0.5).tolist() == [0]
    boxes = [[0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]]
    assert nms(boxes, [0.5, 0.7, 0.5], iou_threshold=0.5).tolist() == [1, 0, 2]


def test_groups_with_negative_coordinates_never_meet():
    boxes = [[0, 0, 10, 10], [-11, -11, -1, -1]]  # an offset of class times largest coordinate joins these
    assert batched_nms(boxes, [0.9, 0.8], [0, 1], iou_threshold=0.5).tolist() == [0, 1]


def test_order_over_groups_is_by_score():
    boxes = [[0, 0, 10, 10]] * 4
    assert batched_nms(boxes, [0.2, 0.4, 0.3, 0.4], [5, 5, 9, -3], iou_threshold=0.5).tolist() == [1, 3, 2]


def test_boxes_without_area_are_inert():
    boxes = [[5, 5, 5, 9], [5, 5, 5, 9], [0, 0, 10, 10], [5, 5, 5, 5]]
    assert nms(boxes, [0.9, 0.8, 0.7, 0.6], iou_threshold=0).tolist() == [0, 1, 2, 3]
    assert nms(boxes, [0.9, 0.8, 0.7, 0.6], iou_threshold=0, overlap="ios").tolist() == [0, 1, 2, 3]
    # Inclusive pixels give a point the area of one pixel.
    assert nms(boxes, [0.9, 0.8, 0.7, 0.6], iou_threshold=0, pixel_offset=1).tolist() == [0]


def test_thresholds_zero_and_one():
    assert nms([[0, 0, 2, 2], [1.999, 1.999, 9, 9], [2, 0, 3, 1]], [3, 2, 1], iou_threshold=0).tolist() == [
        0,
        2,
    ]
    assert nms([[0.1, 0.1, 0.2, 0.2]] * 2, [1, 1], iou_threshold=1, box_format="xywh").tolist() == [0, 1]


def test_suppressed_by():
    left = suppress_boxes(V1, V1_SCORES, 0.3)
    assert (left.indices.tolist(), left.suppressed_by.tolist()) == ([1, 0, 3], [-1, -1, 1, -1])
    assert left.scores.tolist() == [V1_SCORES[row] for row in (1, 0, 3)]
    assert left.boxes.tolist() == [V1[row] for row in (1, 0, 3)]
    assert repr(left) == "Suppression(3 of 4 kept, changes='nothing')"


def test_suppressed_by_is_the_best_that_could():
    boxes = [[0, 0, 10, 10], [4, 0, 14, 10], [2, 0, 12, 10]]
    assert suppress_boxes(boxes, [0.8, 0.9, 0.7], 0.5).suppressed_by.tolist() == [-1, -1, 1]


def test_the_order_of_arguments_is_torchvisions():
    assert nms(V1, V1_SCORES, 0.3).tolist() == [1, 0, 3]
    assert batched_nms(V1, V1_SCORES, [0, 0, 1, 1], 0.3).tolist() == [1, 2, 0, 3]
    assert batched_nms(boxes=V1, scores=V1_SCORES, idxs=[0] * 4, iou_threshold=0.3).tolist() == [1, 0, 3]
    for function in (diou_nms, fast_nms, cluster_nms):
        assert function(V1, V1_SCORES, 0.3).tolist() == function(V1, V1_SCORES, iou_threshold=0.3).tolist()
    assert rotated_nms([[0, 0, 2, 2, 0]] * 2, [1, 2], 0.5).tolist() == [1]
    assert len(soft_nms(V1, V1_SCORES, 0.3, method="linear")[0]) == 4


@pytest.mark.parametrize("method", METHODS)
def test_any_method_over_arrays(method):
    """By name what the function of that name gives, and who dropped whom where one does."""
    kind = method.partition("-")[2]
    options = {"iou_threshold": 0.3} if "iou_threshold" in METHODS[method].reads else {}
    left = suppress_boxes(V1, V1_SCORES, method=method, groups=[0, 0, 0, 1], **options)
    functions = {
        "hard": lambda: batched_nms(V1, V1_SCORES, [0, 0, 0, 1], 0.3),
        "diou": lambda: diou_nms(V1, V1_SCORES, 0.3, groups=[0, 0, 0, 1]),
        "fast": lambda: fast_nms(V1, V1_SCORES, 0.3, groups=[0, 0, 0, 1]),
        "cluster": lambda: cluster_nms(V1, V1_SCORES, 0.3, groups=[0, 0, 0, 1]),
        "soft": lambda: soft_nms(V1, V1_SCORES, groups=[0, 0, 0, 1], method=kind, **options),
        "matrix": lambda: matrix_nms(V1, V1_SCORES, groups=[0, 0, 0, 1], method=kind),
        "greedy-nmm": lambda: greedy_nmm(V1, V1_SCORES, 0.3, groups=[0, 0, 0, 1]),
        "nmm": lambda: nmm(V1, V1_SCORES, 0.3, groups=[0, 0, 0, 1]),
    }
    expected = functions[method if method in functions else method.partition("-")[0]]()
    if METHODS[method].changes == "nothing":
        assert left.indices.tolist() == expected.tolist()
    elif METHODS[method].changes == "scores":
        assert [left.indices.tolist(), left.scores.tolist()] == [part.tolist() for part in expected]
    else:
        assert left.boxes.tolist() == expected.boxes.tolist()
        assert left.suppressed_by.tolist() == expected.suppressed_by.tolist()
    none = METHODS[method].changes == "scores" or method == "fast"
    assert (left.suppressed_by is None) == none
    if not none:
        dropped = np.setdiff1d(np.arange(4), left.indices)
        assert sorted(np.flatnonzero(left.suppressed_by >= 0)) == dropped.tolist()
    few = suppress_boxes(
        V1, V1_SCORES, method=method, groups=[0, 0, 0, 1], images=[3] * 4, max_per_image=1, **options
    )
    assert few.indices.tolist() == left.indices[:1].tolist()
    assert len(suppress_boxes(V1, V1_SCORES, method=method, max_per_group=2, **options)) <= 2


def test_caps_and_score_threshold():
    boxes = [[10 * i, 0, 10 * i + 5, 5] for i in range(6)]
    scores = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert nms(boxes, scores, iou_threshold=0.5, score_threshold=0.3).tolist() == [0, 1, 2, 3]
    assert nms(boxes, scores, iou_threshold=0.5, max_per_group=2).tolist() == [0, 1]
    groups, images = [0, 0, 1, 1, 2, 2], [7, 7, 7, 7, 8, 8]
    assert batched_nms(boxes, scores, groups, iou_threshold=0.5, max_per_group=1).tolist() == [0, 2, 4]
    some = batched_nms(boxes, scores, groups, iou_threshold=0.5, images=images, max_per_image=1)
    assert some.tolist() == [0, 4]


def test_pre_top_k_comes_before_suppression():
    boxes = [[0, 0, 10, 10], [0, 0, 10, 9], [20, 0, 30, 10]]
    assert nms(boxes, [0.9, 0.8, 0.7], iou_threshold=0.5, pre_top_k=2).tolist() == [0]
    assert nms(boxes, [0.9, 0.8, 0.7], iou_threshold=0.5, max_per_group=2).tolist() == [0, 2]


def test_ios_drops_a_small_box_inside_a_large_one():
    boxes = [[0, 0, 10, 10], [2, 2, 5, 5]]
    assert box_iou(boxes[:1], boxes[1:])[0, 0] == pytest.approx(0.09)
    assert nms(boxes, [0.9, 0.8], iou_threshold=0.5).tolist() == [0, 1]
    assert nms(boxes, [0.9, 0.8], iou_threshold=0.5, overlap="ios").tolist() == [0]


def test_diou():
    boxes = [[0, 0, 10, 10], [0, 3.2, 10, 13.2]]  # IoU .5151515, DIoU .4778120
    assert nms(boxes, [0.9, 0.8], iou_threshold=0.5).tolist() == [0]
    assert diou_nms(boxes, [0.9, 0.8], iou_threshold=0.5).tolist() == [0, 1]
    # DIoU of neighbors in V2: .5050043
    assert diou_nms(V2, V2_SCORES, iou_threshold=0.505004).tolist() == [0, 2]
    assert diou_nms(V2, V2_SCORES, iou_threshold=0.505005).tolist() == [0, 1, 2]


def test_soft_linear():
    order, scores = by_row(soft_nms(V1, V1_SCORES, method="linear", iou_threshold=0.3))
    assert order == [1, 0, 2, 3]
    assert scores == pytest.approx([0.6, 0.9, 0.2902439, 0.2], abs=5e-8)


def test_soft_gaussian():
    order, scores = by_row(soft_nms(V1, V1_SCORES, sigma=0.5))
    assert order == [1, 0, 2, 3]
    assert scores == pytest.approx([0.5963077, 0.9, 0.3527551, 0.1865046], abs=5e-8)


def test_soft_gaussian_of_tensorflow():
    # Their exp(-0.5 iou^2 / sigma) with sigma 0.5 is the paper's form with sigma 1.
    indices, scores = soft_nms(TF, TF_SCORES, sigma=1, score_threshold=0)
    assert indices.tolist() == [3, 0, 1, 5, 4, 2]
    assert scores == pytest.approx([0.95, 0.9, 0.384, 0.3, 0.256, 0.197], abs=5e-4)


def test_matrix():
    order, scores = by_row(matrix_nms(V1, V1_SCORES, sigma=2))
    assert order == [1, 0, 2, 3]
    assert scores == pytest.approx([0.596308, 0.9, 0.352755, 0.191450], abs=5e-7)
    _, scores = by_row(matrix_nms(V1, V1_SCORES, method="linear"))
    assert scores == pytest.approx([0.566667, 0.9, 0.290244, 0.178328], abs=5e-7)


def test_fast_and_cluster():
    assert fast_nms(V2, V2_SCORES, iou_threshold=0.5).tolist() == [0]
    assert cluster_nms(V2, V2_SCORES, iou_threshold=0.5).tolist() == [0, 2]
    assert cluster_nms(V2, V2_SCORES, iou_threshold=0.5, max_rounds=2).tolist() == [0, 2]


def test_merging():
    greedy = greedy_nmm(V2, V2_SCORES, iou_threshold=0.5)
    assert greedy.suppressed_by.tolist() == [-1, 0, -1]
    assert greedy.boxes.tolist() == [[0, 0, 13, 10], [6, 0, 16, 10]]
    assert greedy.scores.tolist() == [0.9, 0.7]
    transitive = nmm(V2, V2_SCORES, iou_threshold=0.5)
    assert transitive.suppressed_by.tolist() == [-1, 0, 0]
    assert transitive.boxes.tolist() == [[0, 0, 16, 10]]


@pytest.mark.parametrize("box_format", ["xywh", "cxcywh"])
def test_merging_keeps_the_box_format(box_format):
    from boxscore.data.boxes import box_convert

    merged = nmm(box_convert(V2, "xyxy", box_format), V2_SCORES, iou_threshold=0.5, box_format=box_format)
    assert merged.boxes.tolist() == box_convert([[0, 0, 16, 10]], "xyxy", box_format).tolist()


@pytest.mark.parametrize(
    ("options", "score"),
    [({}, 0.7666667), ({"confidence": "max"}, 0.9), ({"weights": [2, 1]}, 0.8444444)],
)
def test_weighted_boxes_fusion(options, score):
    fused = weighted_boxes_fusion(*ENSEMBLE, iou_threshold=0.55, **options)
    assert fused.scores == pytest.approx([score], abs=5e-8)
    if "weights" not in options:
        assert fused.boxes[0] == pytest.approx([0.0069565, 0, 0.4947826, 0.5052174], abs=5e-8)
    assert fused.fused_into.tolist() == [0, 0, 0]
    assert fused.groups.tolist() == [0]


def test_non_maximum_weighted():
    fused = nmw(*ENSEMBLE, iou_threshold=0.55)
    assert fused.boxes[0] == pytest.approx([0.0069105, 0, 0.4950088, 0.5049912], abs=5e-8)
    assert fused.scores.tolist() == [0.9]


def test_fusion_in_pixels_is_not_clipped():
    fused = weighted_boxes_fusion(
        [[[-40, 0, 500, 500]], [[-40, 0, 500, 500]]], [[0.5], [0.5]], [["cat"], ["cat"]]
    )
    assert fused.boxes.tolist() == [[-40, 0, 500, 500]]
    assert fused.groups.tolist() == ["cat"]


def test_rotated():
    boxes = [[6, 3, 8, 7, 0.5], [3, 6, 9, 11, 0.6], [3, 7, 10, 12, 0.3], [1, 4, 13, 7, 0.6]]
    scores = [0.7, 0.8, 0.5, 0.9]
    assert rotated_nms(boxes, scores, iou_threshold=0.5).tolist() == [3, 1, 0]
    degrees = np.array(boxes)
    degrees[:, 4] = np.rad2deg(degrees[:, 4])
    assert rotated_nms(degrees, scores, iou_threshold=0.5, angle_unit="degrees").tolist() == [3, 1, 0]


def test_rotated_iou_by_hand():
    square = [[0, 0, 2, 2, 0]]
    # A square and itself turned by 45 degrees share an octagon of area 8 (sqrt 2 - 1).
    octagon = 8 * (math.sqrt(2) - 1)
    assert rotated_box_iou(square, [[0, 0, 2, 2, math.pi / 4]])[0, 0] == pytest.approx(
        octagon / (8 - octagon)
    )
    assert rotated_box_iou(square, [[0, 0, 2, 2, math.pi / 2]])[0, 0] == pytest.approx(1)
    assert rotated_box_iou(
        square, [[1, 0, 2, 2, 0], [2, 0, 2, 2, 0], [9, 0, 2, 2, 1], [0, 0, 0, 2, 0]]
    ).tolist() == [pytest.approx([1 / 3, 0, 0, 0])]
    assert rotated_box_iou(square * 2, [[0, 0, 2, 2, 0], [1, 0, 2, 2, 0]], paired=True).shape == (2,)
