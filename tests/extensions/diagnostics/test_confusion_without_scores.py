"""Confusions, images and pairs of detections without scores: none is left out, and no order decides."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, diagnostics
from support.each import each


def scene(seed: int) -> tuple[GroundTruth, Detections]:
    """Boxes on a grid, so that many overlaps are equal, of three classes."""
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 4, (60, 2)) * 4.0
    boxes = np.hstack([corners, corners + rng.integers(2, 4, (60, 2)) * 4.0])
    image, kind = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    shared = {"images": range(4), "categories": ["a", "b", "c"]}
    names = np.array(["a", "b", "c"], dtype=object)[kind]
    return (
        GroundTruth.from_arrays(image[:30], names[:30], boxes[:30], crowd=rng.random(30) < 0.1, **shared),
        Detections.from_arrays(image[30:], names[30:], boxes[30:], **shared),
    )


def in_order(table, rows):
    """Give a table's rows in another order."""
    labels = np.array(table.categories.labels, dtype=object)
    columns = table.images.ids[table.image][rows], labels[table.category][rows], table.boxes[rows]
    flags = {"crowd": table.crowd[rows]} if isinstance(table, GroundTruth) else {}
    return type(table).from_arrays(*columns, **flags, images=range(4), categories=["a", "b", "c"])


def by_hand(truth: GroundTruth, detections: Detections) -> np.ndarray:
    """Take pairs by falling overlap, one by one, those of one class before others."""
    overlaps = boxscore.box_iou(truth.boxes, detections.boxes)
    pairs = [
        (overlaps[g, d], truth.category[g] == detections.category[d], -truth.category[g], g, d)
        for g in range(len(truth))
        for d in range(len(detections))
        if truth.image[g] == detections.image[d] and overlaps[g, d] >= 0.5 and not truth.crowd[g]
    ]
    matrix = np.zeros((4, 4), dtype=int)
    objects = {g for g in range(len(truth)) if not truth.crowd[g]}
    found = set(range(len(detections)))
    for _, _, _, g, d in sorted(pairs, key=lambda pair: pair[:3], reverse=True):
        if g in objects and d in found:
            objects.remove(g)
            found.remove(d)
            matrix[truth.category[g], detections.category[d]] += 1
    for g in objects:
        matrix[truth.category[g], 3] += 1
    for d in found:
        in_crowd = [
            g
            for g in np.flatnonzero(truth.crowd & (truth.image == detections.image[d])).tolist()
            if truth.category[g] == detections.category[d]
            and inside(detections.boxes[d], truth.boxes[g]) >= 0.5
        ]
        matrix[3, detections.category[d]] += not in_crowd
    return matrix


def inside(box: np.ndarray, region: np.ndarray) -> float:
    sides = np.minimum(box[2:], region[2:]) - np.maximum(box[:2], region[:2])
    return float(np.prod(np.maximum(sides, 0)) / np.prod(box[2:] - box[:2]))


@each(range(20))
def test_no_order_changes_a_count(seed):
    truth, detections = scene(seed)
    first = diagnostics.confusion_matrix(boxscore.evaluate(truth, detections, digest=False)).counts
    rng = np.random.default_rng(seed)
    for _ in range(3):
        other = in_order(truth, rng.permutation(30)), in_order(detections, rng.permutation(30))
        again = diagnostics.confusion_matrix(boxscore.evaluate(*other, digest=False)).counts
        np.testing.assert_array_equal(first, again)


@each(range(20))
def test_pairs_are_taken_by_overlap(seed):
    """Of boxes that are somewhat apart from each other: no two overlaps are equal."""
    truth, detections = scene(seed)
    rng = np.random.default_rng(seed)
    moved = Detections.from_arrays(
        detections.images.ids[detections.image],
        np.array(["a", "b", "c"], dtype=object)[detections.category],
        detections.boxes + rng.uniform(-0.5, 0.5, detections.boxes.shape),
        images=range(4),
        categories=["a", "b", "c"],
    )
    ours = diagnostics.confusion_matrix(boxscore.evaluate(truth, moved, digest=False)).counts
    np.testing.assert_array_equal(ours, by_hand(truth, moved))


def test_every_detection_takes_part_unless_asked_otherwise():
    result = boxscore.evaluate(*scene(0), digest=False)
    matrix = diagnostics.confusion_matrix(result).counts
    counted = np.count_nonzero(~result.ground_truth.crowd)
    assert matrix[:3].sum() == counted
    assert matrix[:, :3].sum() > 0
    assert len(diagnostics.top_confusions(result).count)
    with pytest.raises(boxscore.InputError, match="score_threshold must be 0 or less"):
        diagnostics.confusion_matrix(result, score_threshold=0.25)
    with pytest.raises(boxscore.InputError, match="assign must be 'iou'"):
        diagnostics.top_confusions(result, assign="score")


def test_scores_keep_their_threshold_of_a_quarter(sample):
    result = boxscore.evaluate(*sample)
    default = diagnostics.confusion_matrix(result).counts
    given = diagnostics.confusion_matrix(result, score_threshold=0.25, assign="score").counts
    np.testing.assert_array_equal(default, given)


def test_images_have_no_column_of_ap(sample):
    truth, detections = sample
    frame = diagnostics.image_scores(boxscore.evaluate(truth, detections.without_scores())).to_frame()
    assert "AP" not in frame
    assert "F1" in frame
    assert "AP" in diagnostics.image_scores(boxscore.evaluate(truth, detections)).to_frame()


def test_overlaps_of_pairs_without_scores(sample):
    truth, detections = sample
    with_scores = diagnostics.pair_overlaps(boxscore.evaluate(truth, detections)).to_frame()
    without = diagnostics.pair_overlaps(boxscore.evaluate(truth, detections.without_scores())).to_frame()
    assert without["score"].isna().all()
    assert not with_scores["score"].isna().any()
    pairs = ["image_id", "annotation_id", "detection"]
    assert sorted(without[pairs].to_numpy().tolist()) == sorted(with_scores[pairs].to_numpy().tolist())
