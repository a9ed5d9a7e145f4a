"""Agreement with other libraries where the contract is the same; skipped where they are not installed."""

import numpy as np
import pytest

from boxscore.extensions.oriented.rotated import rotated_box_iou
from boxscore.suppression import (
    batched_nms,
    nms,
    nmw,
    rotated_nms,
    soft_nms,
    weighted_boxes_fusion,
)


def detections(count, seed, *, side=400.0):
    """Boxes that crowd round objects, scores without ties."""
    random = np.random.default_rng(seed)
    objects = random.random((max(1, count // 8), 2)) * side
    size = random.uniform(20, 120, (len(objects), 2))
    which = random.integers(0, len(objects), count)
    center = objects[which] + random.normal(0, 0.08, (count, 2)) * size[which]
    size = size[which] * np.exp(random.normal(0, 0.12, (count, 2)))
    scores = random.permutation(count) / count * 0.98 + 0.01
    return np.concatenate([center - size / 2, center + size / 2], axis=1), scores


CASES = [(count, threshold) for count in (10, 300, 3000) for threshold in (0.1, 0.5, 0.8)]


@pytest.mark.parametrize(("count", "threshold"), CASES)
def test_powerboxes(count, threshold):
    powerboxes = pytest.importorskip("powerboxes")
    boxes, scores = detections(count, seed=count)
    expected = powerboxes.nms(boxes, scores, threshold, 0.0).astype(int).tolist()
    assert nms(boxes, scores, iou_threshold=threshold).tolist() == expected
    assert powerboxes.rtree_nms(boxes, scores, threshold, 0.0).astype(int).tolist() == expected


@pytest.mark.parametrize(("count", "threshold"), CASES)
def test_lsnms(count, threshold):
    lsnms = pytest.importorskip("lsnms")  # compares with >=, which differs only for exact equality
    boxes, scores = detections(count, seed=count)
    expected = np.asarray(lsnms.nms(boxes, scores, threshold, 0.0)).astype(int).tolist()
    assert nms(boxes, scores, iou_threshold=threshold).tolist() == expected


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_opencv(threshold):
    cv2 = pytest.importorskip("cv2")
    boxes, scores = detections(500, seed=1)
    boxes = boxes.round()  # OpenCV computes float32 overlaps of whole numbers exactly enough
    sizes = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    expected = [int(i) for i in cv2.dnn.NMSBoxes(sizes.tolist(), scores.tolist(), 0.0, threshold)]
    assert nms(sizes, scores, iou_threshold=threshold, box_format="xywh").tolist() == expected


def test_opencv_batched():
    cv2 = pytest.importorskip("cv2")
    boxes, scores = detections(500, seed=2)
    boxes = (boxes - boxes.min()).round()  # its offsets go wrong with negative coordinates
    classes = np.random.default_rng(0).integers(0, 5, 500)
    sizes = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    theirs = cv2.dnn.NMSBoxesBatched(sizes.tolist(), scores.tolist(), classes.tolist(), 0.0, 0.5)
    ours = batched_nms(sizes, scores, classes, iou_threshold=0.5, box_format="xywh")
    assert ours.tolist() == [int(i) for i in theirs]


def test_opencv_soft():
    cv2 = pytest.importorskip("cv2")
    boxes, scores = detections(200, seed=3)
    boxes = boxes.round()
    sizes = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    rectangles = [tuple(int(number) for number in size) for size in sizes]
    lowered, indices = cv2.dnn.softNMSBoxes(rectangles, scores.tolist(), 0.05, 0.3, sigma=0.5, method=2)
    ours, our_scores = soft_nms(sizes, scores, sigma=0.5, score_threshold=0.05, box_format="xywh")
    assert ours.tolist() == np.ravel(indices).tolist()
    assert our_scores == pytest.approx(np.ravel(lowered), abs=1e-5)


@pytest.mark.parametrize(("count", "threshold"), CASES[:6])
def test_ensemble_boxes_nms(count, threshold):
    ensemble_boxes = pytest.importorskip("ensemble_boxes")
    boxes, scores = detections(count, seed=count)
    boxes = (boxes + 200) / 1000
    labels = np.random.default_rng(1).integers(0, 3, count)
    theirs = ensemble_boxes.nms([boxes], [scores], [labels], iou_thr=threshold)[1]
    ours = scores[batched_nms(boxes, scores, labels, iou_threshold=threshold)]
    assert ours.tolist() == sorted(theirs.tolist(), reverse=True)


def ensemble(seed, *, models=3, images=1):
    random = np.random.default_rng(seed)
    boxes, scores, labels = [], [], []
    for _ in range(models):
        some, _ = detections(120, seed=seed)
        some = np.clip((some + random.normal(0, 4, some.shape) + 200) / 1000, 0, 1)
        boxes.append(
            np.concatenate([np.minimum(some[:, :2], some[:, 2:]), np.maximum(some[:, :2], some[:, 2:])], 1)
        )
        scores.append(random.random(120) * 0.9 + 0.05)
        labels.append(random.integers(0, 3, 120))
    return boxes, scores, labels


THEIR_NAMES = {
    "average": "avg",
    "max": "max",
    "box_and_model_average": "box_and_model_avg",
    "absent_model_aware_average": "absent_model_aware_avg",
}


@pytest.mark.parametrize("confidence", THEIR_NAMES)
@pytest.mark.parametrize("weights", [None, [2, 1, 3]])
@pytest.mark.parametrize("seed", range(3))
def test_ensemble_boxes_fusion(confidence, weights, seed):
    ensemble_boxes = pytest.importorskip("ensemble_boxes")
    boxes, scores, labels = ensemble(seed)
    theirs = ensemble_boxes.weighted_boxes_fusion(
        boxes, scores, labels, weights=weights, iou_thr=0.55, conf_type=THEIR_NAMES[confidence]
    )
    ours = weighted_boxes_fusion(
        boxes, scores, labels, weights=weights, iou_threshold=0.55, confidence=confidence
    )
    same(ours, theirs)


@pytest.mark.parametrize("weights", [None, [2, 1, 3]])
@pytest.mark.parametrize("seed", range(3))
def test_ensemble_boxes_non_maximum_weighted(weights, seed):
    ensemble_boxes = pytest.importorskip("ensemble_boxes")
    boxes, scores, labels = ensemble(seed)
    theirs = ensemble_boxes.non_maximum_weighted(boxes, scores, labels, weights=weights, iou_thr=0.55)
    same(nmw(boxes, scores, labels, weights=weights, iou_threshold=0.55), theirs)


def same(ours, theirs):
    """Equal up to their rounding to float32."""
    their_boxes, their_scores, their_labels = theirs
    assert len(ours.boxes) == len(their_boxes)
    order = np.lexsort((their_boxes[:, 0], their_labels, -their_scores.round(5)))
    mine = np.lexsort((ours.boxes[:, 0], ours.groups, -ours.scores.round(5)))
    assert ours.scores[mine] == pytest.approx(their_scores[order], abs=1e-5)
    assert np.allclose(np.sort(ours.boxes.sum(axis=1)), np.sort(their_boxes.sum(axis=1)), atol=1e-4)


def polygons(boxes):
    shapely = pytest.importorskip("shapely")
    affinity = pytest.importorskip("shapely.affinity")
    return [
        affinity.translate(
            affinity.rotate(shapely.box(-w / 2, -h / 2, w / 2, h / 2), a, (0, 0), use_radians=True), x, y
        )
        for x, y, w, h, a in boxes.tolist()
    ]


def rotated(count, seed):
    random = np.random.default_rng(seed)
    center, size = random.random((count, 2)) * 60, random.uniform(1, 40, (count, 2))
    return np.concatenate([center, size, random.uniform(-4, 4, (count, 1))], axis=1)


def test_shapely_rotated_iou():
    boxes = rotated(60, 0)
    boxes[:10, 4] = boxes[0, 4]  # parallel edges
    boxes[10:15] = boxes[5:10]  # copies
    boxes[15:20] = boxes[5:10]
    boxes[15:20, 4] += np.pi / 2
    shapes = polygons(boxes)
    expected = [[a.intersection(b).area / a.union(b).area for b in shapes] for a in shapes]
    assert np.allclose(rotated_box_iou(boxes, boxes), expected, atol=1e-9)


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.7])
def test_shapely_rotated_nms(threshold):
    boxes = rotated(150, 1)
    scores, groups = np.random.default_rng(2).random(150), np.arange(150) % 3
    shapes, kept = polygons(boxes), []
    for i in np.argsort(-scores):
        shape = shapes[i]
        if all(
            groups[j] != groups[i]
            or shapes[j].intersection(shape).area / shapes[j].union(shape).area <= threshold
            for j in kept
        ):
            kept.append(int(i))
    assert rotated_nms(boxes, scores, groups=groups, iou_threshold=threshold).tolist() == kept
