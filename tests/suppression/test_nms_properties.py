"""What holds for any input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from boxscore.extensions.oriented.rotated import rotated_box_iou
from boxscore.similarity.box import box_iou
from boxscore.suppression import (
    batched_nms,
    cluster_nms,
    fast_nms,
    nmm,
    nms,
    rotated_nms,
    soft_nms,
    suppress_boxes,
)

coordinates = st.floats(-1e3, 1e3, width=32) | st.integers(-8, 8).map(float)


@st.composite
def boxes_and_scores(draw):
    count = draw(st.integers(0, 25))
    corner = draw(arrays(float, (count, 2), elements=coordinates))
    size = draw(
        arrays(float, (count, 2), elements=st.floats(0, 100, width=32) | st.integers(0, 8).map(float))
    )
    scores = draw(arrays(float, count, elements=st.integers(0, 5).map(float) | st.floats(0, 1)))
    return np.concatenate([corner, corner + size], axis=1), scores


thresholds = st.floats(0, 1)


@pytest.mark.long
@given(boxes_and_scores(), thresholds)
def test_kept_boxes_do_not_overlap_and_dropped_ones_do(case, threshold):
    boxes, scores = case
    left = suppress_boxes(boxes, scores, threshold)
    kept, by = left.indices, left.suppressed_by
    assert kept.tolist() == nms(boxes, scores, threshold).tolist()
    among = box_iou(boxes[kept], boxes[kept])
    np.fill_diagonal(among, 0)
    assert (among <= threshold).all()
    dropped = np.setdiff1d(np.arange(len(boxes)), kept)
    assert (by[kept] == -1).all()
    assert set(by[dropped].tolist()) <= set(kept.tolist())
    if len(dropped):
        assert (box_iou(boxes[dropped], boxes[by[dropped]], paired=True) > threshold).all()
        assert (scores[by[dropped]] >= scores[dropped]).all()


@pytest.mark.long
@given(boxes_and_scores(), thresholds)
def test_twice_is_once(case, threshold):
    boxes, scores = case
    kept = nms(boxes, scores, iou_threshold=threshold)
    again = nms(boxes[kept], scores[kept], iou_threshold=threshold)
    assert again.tolist() == list(range(len(kept)))


@pytest.mark.long
@given(boxes_and_scores(), thresholds, st.randoms())
def test_order_of_input_does_not_matter_but_for_ties(case, threshold, random):
    boxes, scores = case
    scores = np.argsort(np.argsort(scores, kind="stable")).astype(float)  # no ties
    shuffled = list(range(len(boxes)))
    random.shuffle(shuffled)
    kept = nms(boxes, scores, iou_threshold=threshold)
    other = nms(boxes[shuffled], scores[shuffled], iou_threshold=threshold)
    assert [shuffled[i] for i in other] == kept.tolist()


@pytest.mark.long
@given(boxes_and_scores(), thresholds, st.integers(1, 4))
def test_groups_are_as_if_alone(case, threshold, number):
    boxes, scores = case
    groups = np.arange(len(boxes)) % number
    together = batched_nms(boxes, scores, groups, iou_threshold=threshold)
    alone = []
    for group in range(number):
        rows = np.flatnonzero(groups == group)
        alone += rows[nms(boxes[rows], scores[rows], iou_threshold=threshold)].tolist()
    assert sorted(together.tolist()) == sorted(alone)


@pytest.mark.long
@given(boxes_and_scores(), thresholds)
def test_family_relations(case, threshold):
    boxes, scores = case
    hard = set(nms(boxes, scores, iou_threshold=threshold).tolist())
    assert set(fast_nms(boxes, scores, iou_threshold=threshold).tolist()) <= hard
    assert set(cluster_nms(boxes, scores, iou_threshold=threshold, max_rounds=99).tolist()) == hard
    assert set(nmm(boxes, scores, iou_threshold=threshold).indices.tolist()) <= hard


@pytest.mark.long
@given(boxes_and_scores(), st.sampled_from(["linear", "gaussian"]))
def test_soft_scores_only_fall(case, method):
    boxes, scores = case
    indices, lowered = soft_nms(boxes, scores, method=method, score_threshold=0)
    assert sorted(indices.tolist()) == list(range(len(boxes)))
    assert (lowered <= scores[indices]).all()
    assert (np.diff(lowered) <= 0).all()


@st.composite
def rotated(draw):
    count = draw(st.integers(1, 6))
    center = draw(arrays(float, (count, 2), elements=st.floats(-5, 5)))
    size = draw(arrays(float, (count, 2), elements=st.just(0.0) | st.floats(0.1, 8)))
    angle = draw(
        arrays(float, (count, 1), elements=st.floats(-6, 6) | st.sampled_from([0, np.pi / 4, np.pi / 2]))
    )
    return np.concatenate([center, size, angle], axis=1)


@pytest.mark.long
@given(rotated(), st.floats(-4, 4))
def test_rotated_iou_is_symmetric_and_turns_along(boxes, turn):
    iou = rotated_box_iou(boxes, boxes)
    assert ((iou >= 0) & (iou <= 1)).all()
    assert np.allclose(iou, iou.T, atol=1e-9)
    area = boxes[:, 2] * boxes[:, 3]
    assert np.allclose(np.diag(iou), np.where(area > 0, 1, 0), atol=1e-9)
    cosine, sine = np.cos(turn), np.sin(turn)
    turned = boxes.copy()
    turned[:, :2] = boxes[:, :2] @ np.array([[cosine, sine], [-sine, cosine]])
    turned[:, 4] = np.remainder(boxes[:, 4] + turn, 2 * np.pi)  # beyond a turn they could be degrees
    assert np.allclose(rotated_box_iou(turned, turned), iou, atol=1e-7)


@pytest.mark.long
@given(boxes_and_scores())
def test_rotated_boxes_that_are_upright_equal_upright_boxes(case):
    boxes, scores = case
    center, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    upright = np.concatenate([center, size, np.zeros((len(boxes), 1))], axis=1)
    iou = box_iou(boxes, boxes)
    assert np.allclose(rotated_box_iou(upright, upright), iou, atol=1e-6)
    if not (np.abs(iou - 0.4) < 1e-5).any():
        assert (
            rotated_nms(upright, scores, iou_threshold=0.4).tolist()
            == nms(boxes, scores, iou_threshold=0.4).tolist()
        )
