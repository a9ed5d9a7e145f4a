"""TIDE's numbers: tidecv beside ours where it is installed, and what it gave on the shared data."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import error_list, error_types
from oracles import tide as slow

TOLERANCE = 1e-12
KINDS = ["classification", "localization", "both", "duplicate", "background", "missed"]


def run_tidecv(truth, detections, iou=0.5):
    """Count and cost of each kind, as tidecv 1.0.1 gives them; ignored objects are ignore regions."""
    pytest.importorskip("tidecv", reason="tidecv is not installed")
    from tidecv import TIDE
    from tidecv.data import Data

    objects, found = Data("truth"), Data("detections")
    for image in range(len(truth.images)):
        objects.add_image(image, str(image))
    for category, name in enumerate(truth.categories.labels):
        objects.add_class(category, name)
    for g in range(len(truth)):
        add = objects.add_ignore_region if truth.crowd[g] or truth.difficult[g] else objects.add_ground_truth
        add(int(truth.image[g]), int(truth.category[g]), xywh(truth, g))
    for d in range(len(detections)):
        place = int(detections.image[d]), int(detections.category[d])
        found.add_detection(*place, float(detections.scores[d]), xywh(detections, d))
    run = TIDE(pos_threshold=iou).evaluate(objects, found)
    costs = [*run.fix_main_errors().values(), *run.fix_special_errors().values()]
    return run.ap / 100, np.array(costs) / 100, list(run.count_errors().values())


def xywh(table, row):
    return [*table.boxes[row, :2].tolist(), *table.sizes[row].tolist()]


def assert_equal_to_tidecv(evaluation, iou=0.5):
    ap, costs, counts = run_tidecv(evaluation.ground_truth, evaluation.detections, iou)
    ours = error_types(evaluation, iou_threshold=iou, absent_classes="zero").total
    assert ours.value[0] == pytest.approx(ap, abs=TOLERANCE)
    np.testing.assert_allclose(ours.cost, costs, atol=TOLERANCE, rtol=0)
    assert ours.counts.tolist()[:6] == counts


@pytest.mark.parametrize("iou", [0.5, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_made_up_scenes(scene, seed, iou, quiet_peers):
    assert_equal_to_tidecv(boxscore.evaluate(*scene(seed, images=30, decimals=1 if seed % 2 else None)), iou)


def test_sample(sample, quiet_peers):
    assert_equal_to_tidecv(boxscore.evaluate(*sample))


@pytest.mark.real
def test_fake100(fake100, quiet_peers):
    assert_equal_to_tidecv(boxscore.evaluate(*fake100))


WITH_DIFFICULT = {"extends": "coco", "name": "difficult ignored", "ignore": {"difficult": "ignore"}}


@pytest.mark.real
@pytest.mark.slow
def test_voc_run(voc, quiet_peers):
    assert_equal_to_tidecv(boxscore.evaluate(*voc, protocol=WITH_DIFFICULT))


@pytest.mark.real
def test_recorded_numbers_of_tidecv(fake100):
    """What tidecv 1.0.1 gave (AP points of 100), for runs without it."""
    ours = error_types(boxscore.evaluate(*fake100), absent_classes="zero").total
    recorded = [22.246, 0.2279, 0.0, 0.019, 0.0, 8.5236, 6.8216, 17.685]
    np.testing.assert_allclose(100 * ours.cost, recorded, atol=5e-4)


@pytest.mark.real
def test_recorded_numbers_of_tidecv_on_voc(voc):
    ours = error_types(boxscore.evaluate(*voc, protocol=WITH_DIFFICULT), absent_classes="zero").total
    recorded = [2.3409, 7.6281, 0.7749, 0.1070, 2.7832, 2.7627, 11.5121, 11.4987]
    np.testing.assert_allclose(100 * ours.cost, recorded, atol=5e-4)


def crowded_scene(seed: int) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Draw near misses, wrong classes, duplicates and noise, with scores of one decimal."""
    rng = np.random.default_rng(seed)
    images, objects = 30, 120
    image = rng.integers(0, images, objects)
    corner = rng.integers(0, 60, (objects, 2)).astype(float)
    boxes = np.hstack([corner, corner + rng.integers(10, 30, (objects, 2))])
    names = np.array(["a", "b", "c", "A never seen"], dtype=object)
    label = rng.integers(0, 3, objects)
    truth = boxscore.GroundTruth.from_arrays(
        image.tolist(),
        names[label].tolist(),
        boxes,
        crowd=(rng.random(objects) < 0.1).tolist(),
        images=list(range(images)),
        categories=["A never seen", "a", "b", "c", "only detected"],
    )
    chosen = rng.integers(0, objects, 500)
    found = boxes[chosen] + rng.integers(-6, 7, (500, 4))
    found[:, 2:] = np.maximum(found[:, 2:], found[:, :2])
    wrong = rng.random(500) < 0.3
    kind = np.where(wrong, rng.integers(0, 3, 500), label[chosen])
    names = np.array(["a", "b", "c", "only detected"], dtype=object)
    kind[rng.random(500) < 0.03] = 3
    scores = rng.integers(0, 11, 500) / 10
    return truth, boxscore.Detections.from_arrays(image[chosen].tolist(), names[kind].tolist(), found, scores)


def boxes_of(table, crowd=None, scores=None):
    columns = table.image.tolist(), table.category.tolist(), map(tuple, table.boxes.tolist())
    marks = crowd if crowd is not None else [False] * len(table)
    scores = scores if scores is not None else [0.0] * len(table)
    return [slow.Box(row, *one) for row, one in enumerate(zip(*columns, marks, scores, strict=True))]


@pytest.mark.parametrize("options", [{}, {"iou": 0.75, "least": 0.3}, {"most": 4}])
@pytest.mark.parametrize("seed", [0, 1])
def test_slow_lists_and_loops_say_the_same(seed, options):
    """Crowds, classes that are only detected or never seen, and many equal scores."""
    evaluation = boxscore.evaluate(*crowded_scene(seed))
    truth, found = evaluation.ground_truth, evaluation.detections
    names = {"iou": "iou_threshold", "least": "background_iou", "most": "max_detections"}
    result = error_types(evaluation, **{names[name]: value for name, value in options.items()})
    objects = boxes_of(truth, truth.crowd.tolist())
    answer = slow.costs(
        objects, boxes_of(found, scores=found.scores.tolist()), len(result.classes), **options
    )
    _, plain = answer.pop("")
    np.testing.assert_allclose(result.per_class.value[:, 0], plain, rtol=TOLERANCE)
    for number, name in enumerate(result.errors):
        count, values = answer[name]
        assert result.total.counts[number] == count, name
        np.testing.assert_allclose(result.per_class.value_without[:, number], values, rtol=TOLERANCE)
        assert result.total.value_without[number] == pytest.approx(np.nanmean(values), rel=TOLERANCE)


def test_absent_classes_only_change_the_mean(scene):
    evaluation = boxscore.evaluate(*scene(1, images=30))  # the last class has no object
    skip = error_types(evaluation)
    zero = error_types(evaluation, absent_classes="zero")
    np.testing.assert_array_equal(skip.per_class.value, zero.per_class.value)
    assert skip.total.value[0] > zero.total.value[0]
    np.testing.assert_array_equal(skip.per_class.counts.sum(axis=0), skip.total.counts)
    totals = skip.to_frame().groupby("error")["count"].sum()
    overall = skip.total_frame().set_index("error")["count"]
    assert (totals.loc[overall.index] == overall).all()


def test_error_list_has_every_error(scene):
    evaluation = boxscore.evaluate(*scene(6, images=30))
    listed = error_list(evaluation).to_frame()["error"].value_counts()
    counted = error_types(evaluation).total_frame().set_index("error")["count"]
    for kind in KINDS:
        assert listed.get(kind, 0) == counted[kind]


def test_one_of_each_by_hand():
    truth = boxscore.GroundTruth.from_arrays(
        [1] * 4, ["cat", "cat", "dog", "dog"], [[i * 100, 0, i * 100 + 10, 10] for i in range(4)]
    )
    boxes = [
        [0, 0, 10, 10],
        [0, 0, 10, 10],
        [100, 0, 110, 3],
        [200, 0, 210, 10],
        [300, 0, 310, 3],
        [500, 0, 9e2, 9],
    ]
    names = ["cat", "cat", "cat", "cat", "cat", "dog"]
    found = boxscore.Detections.from_arrays([1] * 6, names, boxes, [0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    result = error_types(boxscore.evaluate(truth, found))
    assert result.errors[:6] == tuple(KINDS)
    assert result.total.counts[:6].tolist() == [1, 1, 1, 1, 1, 1]


def test_refusals(scene):
    evaluation = boxscore.evaluate(*scene(0))
    with pytest.raises(boxscore.InputError, match="background_iou must be <= iou_threshold"):
        error_types(evaluation, background_iou=0.6)
    with pytest.raises(boxscore.InputError, match="absent_classes must be one of"):
        error_types(evaluation, absent_classes="maybe")
