"""Arrays that NumPy would make numbers of, and that are none: every public function refuses them by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluator, GroundTruth, InputError, Masks
from boxscore.data.vocabulary import Images
from support.each import each

BOXES = np.array([[0.0, 0.0, 3.0, 3.0], [1.0, 1.0, 4.0, 4.0]])
SCORES = np.array([0.9, 0.8])
ROTATED = np.array([[2.0, 2.0, 3.0, 3.0, 0.5]] * 2)
POINTS = np.ones((2, 3, 3))
MASKS = np.ones((2, 4, 4), dtype=bool)
TRUTH = GroundTruth.from_arrays([1, 1], [1, 1], BOXES)


def _objects(array: np.ndarray, item: object) -> np.ndarray:
    objects = array.astype(object)
    objects.flat[-1] = item
    return objects


KINDS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "masked": (lambda a: np.ma.array(a, mask=np.zeros(a.shape, bool)), "not be masked. Got a masked array; select"),
    "masked rows in a list": (lambda a: [np.ma.array(row) for row in a], "not be masked. Got a masked array; select"),
    "complex": (lambda a: a.astype(complex), "Got complex numbers."),
    "dates": (lambda a: a.astype("M8[s]"), "Got dates."),
    "spans of time": (lambda a: a.astype("m8[s]"), "Got spans of time."),
    "bytes": (lambda a: a.astype("S9"), "Got bytes, such as b'"),
    "text": (lambda a: a.astype("U9"), "Got text, such as '"),
    "an object that is text": (lambda a: _objects(a, "1.0"), "Got '1.0'."),
    "an object that is a date": (lambda a: _objects(a, np.datetime64("2024")), "Got "),
    "an object that is complex": (lambda a: _objects(a, np.complex128(1)), "Got "),
    "an object too large": (lambda a: _objects(a, 10**400), "Got int too large to convert to float"),
}  # fmt: skip
CALLS: dict[str, tuple[str, np.ndarray, Callable[[Any], Any]]] = {
    "GroundTruth boxes": ("boxes", BOXES, lambda a: GroundTruth.from_arrays([1, 1], [1, 1], a)),
    "area": ("area", SCORES, lambda a: GroundTruth.from_arrays([1, 1], [1, 1], BOXES, area=a)),
    "Detections boxes": ("boxes", BOXES, lambda a: Detections.from_arrays([1, 1], [1, 1], a, SCORES)),
    "scores": ("scores", SCORES, lambda a: Detections.from_arrays([1, 1], [1, 1], BOXES, a)),
    "rotated": ("rotated", ROTATED, lambda a: GroundTruth.from_arrays([1, 1], [1, 1], None, rotated=a)),
    "keypoints": ("keypoints", POINTS, lambda a: GroundTruth.from_arrays([1, 1], [1, 1], None, keypoints=a)),
    "crowd": ("crowd", SCORES, lambda a: GroundTruth.from_arrays([1, 1], [1, 1], BOXES, crowd=a)),
    "keypoint_count": (
        "keypoint_count",
        np.ones(2),
        lambda a: GroundTruth.from_arrays([1, 1], [1, 1], None, keypoints=POINTS, keypoint_count=a),
    ),
    "image sizes": ("image sizes", BOXES[:, :2], lambda a: Images.build([1, 2], sizes=a)),
    "Masks image sizes": ("image sizes", BOXES[:, :2], lambda a: Masks(MASKS, image_sizes=a)),
    "box_area": ("boxes", BOXES, boxscore.box_area),
    "box_iou": ("boxes2", BOXES, lambda a: boxscore.box_iou(BOXES, a)),
    "box_convert": ("boxes", BOXES, lambda a: boxscore.box_convert(a, "xyxy", "xywh")),
    "rotated_box_iou": ("boxes1", ROTATED, lambda a: boxscore.rotated_box_iou(a, ROTATED)),
    "oks": (
        "keypoints1",
        POINTS,
        lambda a: boxscore.object_keypoint_similarity(a, POINTS, area=[1, 1], sigmas=[1, 1, 1]),
    ),
    "oks area": (
        "area",
        SCORES,
        lambda a: boxscore.object_keypoint_similarity(POINTS, POINTS, area=a, sigmas=[1, 1, 1]),
    ),
    "nms": ("boxes", BOXES, lambda a: boxscore.nms(a, SCORES, 0.5)),
    "nms scores": ("scores", SCORES, lambda a: boxscore.nms(BOXES, a, 0.5)),
    "batched_nms": ("boxes", BOXES, lambda a: boxscore.batched_nms(a, SCORES, [1, 1], 0.5)),
    "soft_nms": ("scores", SCORES, lambda a: boxscore.soft_nms(BOXES, a)),
    "matrix_nms": ("boxes", BOXES, lambda a: boxscore.matrix_nms(a, SCORES)),
    "rotated_nms": ("boxes", ROTATED, lambda a: boxscore.rotated_nms(a, SCORES, 0.5)),
    "mask_nms": ("scores", SCORES, lambda a: boxscore.mask_nms(MASKS, a, 0.5)),
    "nmm": ("boxes", BOXES, lambda a: boxscore.nmm(a, SCORES, 0.5)),
    "suppress_boxes": ("boxes", BOXES, lambda a: boxscore.suppress_boxes(a, SCORES, 0.5)),
    "fusion": ("boxes", BOXES, lambda a: boxscore.weighted_boxes_fusion([a], [SCORES])),
    "fusion weights": ("weights", SCORES, lambda a: boxscore.nmw([BOXES] * 2, [SCORES] * 2, weights=a)),
    "Evaluator boxes": ("prediction boxes", BOXES, lambda a: update({"boxes": a}, {})),
    "Evaluator scores": ("prediction scores", SCORES, lambda a: update({"scores": a}, {})),
    "Evaluator area": ("target area", SCORES, lambda a: update({}, {"area": a})),
    "Evaluator iscrowd": ("target iscrowd", SCORES, lambda a: update({}, {"iscrowd": a})),
    "Evaluator keypoints": ("target keypoints", POINTS, lambda a: update({}, {"keypoints": a})),
}


def update(prediction: dict[str, Any], target: dict[str, Any]) -> None:
    Evaluator().update(
        [{"boxes": BOXES, "scores": SCORES, "labels": [1, 1], **prediction}],
        [{"boxes": BOXES, "labels": [1, 1], **target}],
    )


@each([(call, kind) for kind in KINDS for call in CALLS])
def test_what_is_no_number_is_refused(call: str, kind: str) -> None:
    name, array, function = CALLS[call]
    function(array)
    change, text = KINDS[kind]
    with pytest.raises(InputError) as caught:
        function(change(array))
    message = str(caught.value)
    assert message.startswith(f"{name} must ")
    assert text in message
    assert "\n" not in message


def test_the_whole_message() -> None:
    with pytest.raises(InputError) as caught:
        boxscore.nms(np.ma.array(BOXES), SCORES, 0.5)
    assert str(caught.value) == (
        "boxes must not be masked. Got a masked array; select the rows that count, and pass their .data."
    )
    with pytest.raises(InputError) as caught:
        Detections.from_arrays([1], [1], BOXES[:1], np.array([b"0.5"]))
    assert str(caught.value) == "scores must be numbers and have shape [N]. Got bytes, such as b'0.5'."
    with pytest.raises(InputError) as caught:
        GroundTruth.from_arrays([1, 1], [1, 1], BOXES, crowd=[0.0, np.nan])
    assert str(caught.value) == "crowd must be true or false, or numbers. Got nan."
    with pytest.raises(InputError) as caught:
        GroundTruth.from_arrays([1, 1], [1, 1], None, keypoints=POINTS, keypoint_count=[1, 2.5])
    assert str(caught.value) == "keypoint_count must be whole numbers. Got 2.5."
    with pytest.raises(InputError) as caught:
        GroundTruth.from_arrays(
            [1, 1], [1, 1], None, keypoints=POINTS, keypoint_count=np.array([1, 2**63], "u8")
        )
    assert str(caught.value) == "keypoint_count must be at most 9223372036854775807. Got 9223372036854775808."


@pytest.mark.parametrize("ids", [np.ma.array([1, 1]), np.array([1, 1], "M8[ns]"), np.array([1, 1], "m8[ns]")])
def test_ids_that_are_none(ids: Any) -> None:
    rule = "not be masked" if isinstance(ids, np.ma.MaskedArray) else "be integers or strings"
    for call in (
        lambda: GroundTruth.from_arrays(ids, [1, 1], BOXES),
        lambda: GroundTruth.from_arrays([1, 1], ids, BOXES),
        lambda: GroundTruth.from_arrays([1, 1], [1, 1], BOXES, ids=ids),
        lambda: Detections.from_arrays(ids, [1, 1], BOXES, SCORES),
        lambda: Images.build(ids),
        lambda: update({"labels": ids}, {}),
    ):
        with pytest.raises(InputError, match=rule):
            call()


@pytest.mark.parametrize(
    ("groups", "rule"),
    [
        (np.ma.array([1, 1]), "groups must not be masked"),
        (np.array([b"a", b"b"]), "groups must be whole numbers or names"),
        (np.array([1, "a"], dtype=object), "groups must be whole numbers or names. Got both."),
        (np.array([1, 1], "M8[D]"), "groups must be whole numbers or names"),
    ],
)
def test_groups_that_are_none(groups: Any, rule: str) -> None:
    with pytest.raises(InputError, match=re.escape(rule)):
        boxscore.suppress_boxes(BOXES, SCORES, 0.5, groups=groups)


def test_masks_and_rows_and_columns_that_are_masked() -> None:
    for call in (
        lambda: Masks(np.ma.array(MASKS)),
        lambda: boxscore.mask_boundary(np.ma.array(MASKS[0])),
        lambda: TRUTH[np.ma.array([True, False])],
        lambda: GroundTruth.from_arrays([1, 1], [1, 1], BOXES, columns={"x": np.ma.array([1, 2])}),
        lambda: update({"masks": np.ma.array(MASKS)}, {}),
    ):
        with pytest.raises(InputError, match="not be masked"):
            call()


@pytest.mark.parametrize("kind", ["complex", "dates", "bytes", "text", "an object that is text"])
@pytest.mark.parametrize("column", ["x1", "w", "score"])
def test_frames(kind: str, column: str) -> None:
    frame = Detections.from_arrays([1, 1], [1, 1], BOXES, SCORES).to_pandas()
    Detections.from_pandas(frame)
    values = KINDS[kind][0](frame[column].to_numpy())
    frame[column] = list(values) if kind in ("bytes", "text") else values
    with pytest.raises(InputError, match=f"^(column )?{column}s? must be numbers"):
        Detections.from_pandas(frame)


def test_numbers_in_any_form_are_taken_to_the_bit() -> None:
    from decimal import Decimal
    from fractions import Fraction

    for given in (
        [0.1, 2**53 + 1, 3],
        np.array([Decimal("0.1"), 2**53 + 1, Fraction(3)], dtype=object),
        (0.1, np.float64(2**53 + 1), True + 2),
    ):
        scores = Detections.from_arrays([1] * 3, [1] * 3, [[0, 0, 1, 1]] * 3, given).scores
        assert scores.tolist() == [0.1, float(2**53 + 1), 3.0]
    for kind in ("f2", "f4", "i1", "u8", "?", ">f8", "longdouble"):
        array = np.array([0, 1, 1]).astype(kind)
        assert Detections.from_arrays([1] * 3, [1] * 3, [[0, 0, 1, 1]] * 3, array).scores.tolist() == [
            0,
            1,
            1,
        ]
    flags = [[True, False], [1, 0], [1.0, 0.0], np.array([True, 0], dtype=object), np.array([2, 0], "u1")]
    for given in flags:
        assert GroundTruth.from_arrays([1, 1], [1, 1], BOXES, crowd=given).crowd.tolist() == [True, False]
