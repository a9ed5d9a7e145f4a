"""What is refused, with which words; what is only warned about; and what is legal though empty."""

import warnings

import numpy as np
import pytest

from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.oriented.rotated import rotated_box_iou
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
from support.each import each

BOX = [[0.0, 0.0, 1.0, 1.0]]
NAN = float("nan")
THRESHOLD = {"iou_threshold": 0.5}
UPRIGHT = [
    (nms, THRESHOLD),
    (diou_nms, THRESHOLD),
    (fast_nms, THRESHOLD),
    (cluster_nms, THRESHOLD),
    (greedy_nmm, THRESHOLD),
    (nmm, THRESHOLD),
    (soft_nms, {}),
    (matrix_nms, {}),
]


@each(
    [
        (function, options, boxes, scores, words)
        for function, options in UPRIGHT
        for boxes, scores, words in [
            ([[0, 0, NAN, 1]], [0.5], "boxes must be finite"),
            ([[0, 0, np.inf, 1]], [0.5], "boxes must be finite"),
            (BOX, [NAN], r"scores must be numbers. Got nan in row 0; a diverged model\?"),
            (
                [[5, 0, 4, 1]],
                [0.5],
                r"boxes must have width >= 0. Got width -1.0 in row 0; are these x,y,w,h\?",
            ),
            ([*BOX, [0, 3, 1, 1]], [0.5, 0.5], "height >= 0. Got height -2.0 in row 1"),
            (BOX, [0.5, 0.4], r"scores must be as long as boxes \(1\). Got length 2"),
            ([[0, 0, 1]], [0.5], r"boxes must have shape \[N, 4\]. Got shape \[1, 3\]"),
            (BOX, [[0.5]], r"scores must have shape \[N\]"),
            ([["a", 0, 1, 1]], [0.5], "boxes must be numbers"),
        ]
    ]
)
def test_bad_boxes_and_scores(function, options, boxes, scores, words):
    with pytest.raises(InputError, match=words):
        function(boxes, scores, **options)


@each(
    [
        (function, options, threshold)
        for threshold in [-0.1, 1.1, NAN, "high", None]
        for function, options in UPRIGHT[:7]
    ]
)
def test_bad_iou_threshold(function, options, threshold):
    with pytest.raises(InputError, match=r"iou_threshold must be a number in \[0, 1\]"):
        function(BOX, [0.5], **{**options, "iou_threshold": threshold})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"box_format": "xyhw"}, r"box_format must be one of 'xyxy', .* Got 'xyhw'; did you mean 'xy.*'\?"),
        ({"overlap": "iuo"}, r"overlap must be one of 'iou', 'ios'. Got 'iuo'; did you mean 'iou'\?"),
        ({"pixel_offset": 2}, "pixel_offset must be a number in"),
        ({"score_threshold": NAN}, "score_threshold must be a number"),
        ({"score_threshold": "x"}, "score_threshold must be a number"),
        ({"pre_top_k": 0}, "pre_top_k must be a whole number >= 1"),
        ({"pre_top_k": 2.5}, "pre_top_k must be a whole number >= 1"),
        ({"max_per_group": 0}, "max_per_group must be a whole number >= 1"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InputError, match=words):
        nms(BOX, [0.5], iou_threshold=0.5, **options)


@pytest.mark.parametrize("function", [soft_nms, matrix_nms])
def test_bad_soft_options(function):
    with pytest.raises(
        InputError, match=r"method must be one of .* Got 'gausian'; did you mean 'gaussian'\?"
    ):
        function(BOX, [0.5], method="gausian")
    with pytest.raises(InputError, match="sigma must be a number in"):
        function(BOX, [0.5], sigma=0)
    with pytest.raises(InputError, match=r"scores must be >= 0. Got -2.0 in row 1; are these logits\?"):
        function(BOX * 2, [0.5, -2])


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([1, 2], r"must be as long as boxes \(1\)"),
        ([[1]], r"must have shape \[N\]"),
        ([0.5], "must be whole numbers or names"),
    ],
)
def test_bad_groups(groups, words):
    with pytest.raises(InputError, match=f"^idxs {words}"):
        batched_nms(BOX, [0.5], groups, 0.5)
    with pytest.raises(InputError, match=f"^groups {words}"):
        suppress_boxes(BOX, [0.5], 0.5, groups=groups)


def test_max_per_image_needs_images():
    with pytest.raises(InputError, match="images must be given with max_per_image"):
        batched_nms(BOX, [0.5], [0], iou_threshold=0.5, max_per_image=1)
    with pytest.raises(InputError, match="images must be as long as boxes"):
        batched_nms(BOX, [0.5], [0], iou_threshold=0.5, images=[1, 2], max_per_image=1)
    with pytest.raises(InputError, match="images must be given with max_per_image"):
        suppress_boxes(BOX, [0.5], 0.5, max_per_image=1)


@pytest.mark.parametrize("function", [weighted_boxes_fusion, nmw])
@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([BOX], [[0.5], [0.4]]), {}, r"scores must be as long as boxes \(one entry per model\) \(1\)"),
        (([BOX], [[0.5, 0.4]]), {}, r"scores must be as long as boxes \(1\)"),
        (([BOX], [[0.5]], [[0], [1]]), {}, "groups must be as long as boxes"),
        (([BOX], [[-0.5]]), {}, "scores must be >= 0"),
        (([BOX], [[0.5]]), {"weights": [0]}, "weights must be positive and finite"),
        (([BOX], [[0.5]]), {"weights": [1, 1]}, "weights must be as long as boxes"),
        (([BOX], [[0.5]]), {"iou_threshold": 2}, "iou_threshold must be a number"),
        (([[[1, 0, 0, 0]]], [[0.5]]), {}, "boxes must have width >= 0"),
    ],
)
def test_bad_ensembles(function, arguments, options, words):
    with pytest.raises(InputError, match=words):
        function(*arguments, **options)


def test_bad_confidence():
    with pytest.raises(InputError, match=r"confidence must be one of .*; did you mean 'average'\?"):
        weighted_boxes_fusion([BOX], [[0.5]], confidence="averge")


def test_scores_above_one_in_fusion_are_warned_about():
    with pytest.warns(BoxscoreWarning, match="scores reach 87"):
        weighted_boxes_fusion([BOX], [[87]])


def test_fused_scores_above_one_are_warned_about():
    boxes, scores = [[BOX[0], BOX[0]], []], [[1.0, 1.0], []]
    with pytest.warns(
        BoxscoreWarning, match=r"fused scores reach 1\.33333.*--confidence box_and_model_average"
    ):
        weighted_boxes_fusion(boxes, scores, weights=[2, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weighted_boxes_fusion([BOX, BOX, []], [[1.0], [1.0], []], weights=[1, 1, 1])
        for confidence in ("max", "box_and_model_average", "absent_model_aware_average"):
            weighted_boxes_fusion(boxes, scores, weights=[2, 1], confidence=confidence)


def test_bad_rotated():
    with pytest.raises(InputError, match=r"boxes must have shape \[N, 5\]"):
        rotated_nms(BOX, [0.5], iou_threshold=0.5)
    with pytest.raises(InputError, match=r"width >= 0.*are these cx,cy,w,h,angle\?"):
        rotated_nms([[0, 0, -1, 1, 0]], [0.5], iou_threshold=0.5)
    with pytest.raises(InputError, match=r"angle_unit must be one of 'radians', 'degrees'"):
        rotated_nms([[0, 0, 1, 1, 0]], [0.5], iou_threshold=0.5, angle_unit="deg")
    with pytest.raises(InputError, match="boxes2 must be as long as boxes1"):
        rotated_box_iou([[0, 0, 1, 1, 0]], np.empty((0, 5)), paired=True)


@each(
    [
        (function, options, empty)
        for empty in [[], np.empty((0, 4)), np.empty((0, 4), np.float32), np.empty(0)]
        for function, options in UPRIGHT
    ]
)
def test_no_boxes_are_legal(function, options, empty):
    for groups in (None, []) if function is not nms else (None,):
        result = function(empty, [], **options, **({} if groups is None else {"groups": groups}))
        for part in result if isinstance(result, tuple) else (result,):
            assert len(part) == 0
    if function is nms:
        assert len(batched_nms(empty, [], [], 0.5, images=[], max_per_image=3)) == 0
        left = suppress_boxes(empty, [], 0.5, groups=[], images=[], max_per_image=3, max_per_group=1)
        assert (len(left), len(left.suppressed_by), left.boxes.shape) == (0, 0, (0, 4))


def test_nothing_above_the_score_threshold_is_legal():
    assert (
        nms(BOX, [0.5], iou_threshold=0.5, score_threshold=0.6, max_per_group=1, pre_top_k=1).tolist() == []
    )
    left = suppress_boxes(BOX, [0.5], 0.5, score_threshold=0.6)
    assert (left.indices.tolist(), left.suppressed_by.tolist()) == ([], [-1])


def test_empty_ensembles_are_legal():
    for function in (weighted_boxes_fusion, nmw):
        for arguments in (([], []), ([[]], [[]]), ([[], []], [[], []], [[], []]), ([[]], [[]], [[]])):
            fused = function(*arguments)
            assert fused.boxes.shape == (0, 4)
            assert len(fused.scores) == len(fused.groups) == len(fused.fused_into) == 0
        fused = function([BOX, []], [[0.5], []], [["cat"], []])
        assert fused.groups.tolist() == ["cat"]
        assert function([BOX], [[0.5]], score_threshold=0.6).fused_into.tolist() == [-1]


def test_no_rotated_boxes_are_legal():
    assert rotated_nms([], [], iou_threshold=0.5).tolist() == []
    assert rotated_box_iou([], [[0, 0, 1, 1, 0]]).shape == (0, 1)
    assert rotated_box_iou([[0, 0, 1, 1, 0]], []).shape == (1, 0)


def test_corners_given_as_sizes_are_warned_about():
    random = np.random.default_rng(0)
    corner, size = random.random((30, 2)) * 500, random.random((30, 2)) * 100
    corners = np.concatenate([corner, corner + size], axis=1)
    with pytest.warns(BoxscoreWarning, match="given as xywh.*are these x1,y1,x2,y2") as caught:
        nms(corners, random.random(30), iou_threshold=0.5, box_format="xywh")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nms(corners, random.random(30), iou_threshold=0.5)
        nms(np.concatenate([corner, size], axis=1), random.random(30), iou_threshold=0.5, box_format="xywh")
        nms(corners[:5], random.random(5), iou_threshold=0.5, box_format="xywh")  # too few to tell


def test_sizes_given_as_corners_are_refused():
    with pytest.raises(InputError, match=r"are these x,y,w,h\?"):
        nms([[100, 100, 20, 30]], [0.5], iou_threshold=0.5)


def test_infinite_scores_are_legal():
    assert nms([[0, 0, 1, 1]] * 3, [-np.inf, 0, np.inf], iou_threshold=0.5).tolist() == [2]


@pytest.mark.parametrize(
    "groups", [["b", "a", "b"], [2**62, -(2**62), 2**62], [True, False, True], [-5, 7, -5]]
)
def test_groups_of_all_kinds(groups):
    assert batched_nms([[0, 0, 1, 1]] * 3, [1, 2, 3], np.array(groups), iou_threshold=0.5).tolist() == [2, 1]
    assert batched_nms([[0, 0, 1, 1]] * 3, [1, 2, 3], groups, iou_threshold=0.5).tolist() == [2, 1]


@pytest.mark.parametrize(
    "ids", [(-(2**63), 0), (-(2**63), -1), (-(2**63), 2**63 - 1), (-(2**62) - 1, 2**62 - 1), (-1, 2**63 - 1)]
)
def test_groups_far_apart(ids):
    groups = np.resize(ids, 700)  # more than the 512 that are sorted by comparisons
    boxes, scores = BOX * 700, np.linspace(1, 0, 700)
    assert batched_nms(boxes, scores, groups, iou_threshold=0.5).tolist() == [0, 1]
    capped = batched_nms(boxes, scores, np.arange(700), 0.5, images=groups, max_per_image=1)
    assert capped.tolist() == [0, 1]


def test_input_is_not_changed():
    boxes, scores, groups = np.array(BOX * 3), np.array([0.5, 0.4, 0.3]), np.array([0, 0, 1])
    before = boxes.copy(), scores.copy(), groups.copy()
    for array in (boxes, scores, groups):
        array.flags.writeable = False
    batched_nms(boxes, scores, groups, iou_threshold=0.5)
    for function, options in UPRIGHT[1:]:
        function(boxes, scores, groups=groups, **options)
    weighted_boxes_fusion([boxes], [scores], [groups])
    for array, copy in zip((boxes, scores, groups), before, strict=True):
        assert (array == copy).all()
