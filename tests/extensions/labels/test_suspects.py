"""Label suspects: planted mistakes are found first."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import label_suspects
from boxscore.extensions.labels import suspects as suspects_module


def planted():
    """A hundred right cats; then one annotated as dog, one not annotated, one badly drawn, one in a crowd."""
    count = 100
    boxes = [[0, 0, 50, 50]] * count
    truth = boxscore.GroundTruth.from_arrays(
        [*range(count), 200, 202, 203],
        [*["cat"] * count, "dog", "cat", "cat"],
        [*boxes, [0, 0, 50, 50], [0, 0, 50, 15], [0, 0, 300, 300]],
        crowd=[*[False] * (count + 2), True],
        images=[*range(count), 200, 201, 202, 203],
        categories=["cat", "dog"],
    )
    found = boxscore.Detections.from_arrays(
        [*range(count), 200, 201, 201, 202, 203],
        ["cat"] * (count + 5),
        [*boxes, [0, 0, 50, 50], [0, 0, 50, 50], [0, 0, 50, 51], [0, 0, 50, 50], [5, 5, 55, 55]],
        [*np.linspace(0.6, 0.99, count), 0.95, 0.9, 0.85, 0.8, 0.9],
    )
    return boxscore.evaluate(truth, found)


def test_planted_mistakes():
    table = label_suspects(planted(), order="suspicion").to_frame()
    assert table["kind"].tolist() == ["wrong class", "missing annotation", "poor box"]
    assert table["image_id"].tolist() == [200, 201, 202]
    assert table["true_class"].dropna().tolist() == ["dog", "cat"]
    assert table["true_class"].isna().tolist() == [False, True, False]
    assert table["suspicion"].is_monotonic_decreasing
    assert np.isnan(table["iou"].iloc[1])
    assert table["annotation_id"].iloc[0] == 101


def test_what_costs_most_comes_first():
    """Each is alone of its kind: one label of dog, one of 103 cats too many or too few, or badly drawn."""
    evaluation = planted()
    suspects = label_suspects(evaluation, order="cost")
    assert suspects.to_frame()["cost"].is_monotonic_decreasing
    assert set(suspects.to_frame()["kind"]) == {"wrong class", "missing annotation", "poor box"}
    assert suspects.note == (
        "cost: gain in AP if the label were what the detector predicts\nsorted by AP cost"
    )
    truth, found = evaluation.ground_truth, evaluation.detections
    relabeled = truth.replaced(category=np.where(truth.ids == 101, 0, truth.category).astype(np.int32))
    wrong = suspects.kind.tolist().index(0)
    assert evaluation["AP"] + suspects.cost[wrong] == boxscore.evaluate(relabeled, found)["AP"]


def places(values):
    """Place of each value, the largest first; equal ones as they come."""
    order = sorted(range(len(values)), key=lambda n: -values[n])
    return [order.index(n) for n in range(len(values))]


def test_orders_follow_from_costs_suspicion_and_the_objects_of_classes(scene):
    evaluation = boxscore.evaluate(*scene(0, images=60))
    lists = {
        order: label_suspects(evaluation, score_threshold=0.0, limit=None, order=order)
        for order in ("suspicion", "cost", "class_cost", "both")
    }
    listed = lists["suspicion"]
    truth = evaluation.ground_truth
    objects = [int(((truth.category == k) & ~truth.crowd).sum()) for k in range(len(truth.categories))]
    category = evaluation.detections.category[listed.detection].tolist()
    cost = listed.cost.tolist()
    of_class = places([c * max(objects[k], 1) for c, k in zip(cost, category, strict=True)])
    sums = [first + second for first, second in zip(of_class, range(len(listed)), strict=True)]
    keys = {"cost": places(cost), "class_cost": of_class, "both": places([-value for value in sums])}
    for order, place in keys.items():
        expected = listed.detection[np.argsort(place)].tolist()
        assert lists[order].detection.tolist() == expected, order
    assert len({tuple(one.detection.tolist()) for one in lists.values()}) == 4
    assert [one.note.split("sorted by ")[1] for one in lists.values()] == [
        "detector confidence",
        "AP cost",
        "AP cost to the class",
        "detector confidence and AP cost to the class",
    ]


def test_the_first_of_each_class(scene):
    evaluation = boxscore.evaluate(*scene(0, images=60))
    every = label_suspects(evaluation, score_threshold=0.0, limit=None)
    some = label_suspects(evaluation, score_threshold=0.0, limit=3, each_class=True).to_frame()
    table = every.to_frame()
    expected = [table[table["class"] == name].head(3) for name in evaluation.labels]
    assert some["cost"].tolist() == [cost for part in expected for cost in part["cost"]]
    assert some["class"].tolist() == [name for part in expected for name in part["class"]]


@pytest.mark.long
def test_of_the_difference_the_largest_comes_first(scene):
    truth, found = scene(0, images=60)
    evaluation = boxscore.evaluate(truth, found)
    assert not label_suspects(evaluation, against=evaluation).cost.any()
    other = boxscore.evaluate(truth, found.replaced(scores=found.scores[::-1].copy()))
    suspects = label_suspects(evaluation, against=other, score_threshold=0.0, order="cost")
    assert (np.diff(np.abs(suspects.cost)) <= 0).all()
    assert (suspects.cost < 0).any()


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_without_costs_the_most_suspicious_come_first(scene):
    truth, found = scene(0, images=60)
    scaled = boxscore.load_protocol("widerface")
    assert not scaled.scope.is_matched_alone
    columns = dict.fromkeys(("easy", "medium", "hard"), np.ones(len(truth)))
    truth = truth.replaced(columns=columns)
    found = found.take(np.argsort(-found.scores))
    suspects = label_suspects(boxscore.evaluate(truth, found, protocol=scaled), score_threshold=0.0)
    assert np.isnan(suspects.cost).all()
    assert (np.diff(suspects.suspicion) <= 0).all()
    assert suspects.note.startswith(
        "sorted by detector confidence; cost is empty: it needs a protocol that would match"
    )


def test_the_most_suspicious_have_costs(scene, monkeypatch):
    monkeypatch.setattr(suspects_module, "MOST_COSTED", 4)
    evaluation = boxscore.evaluate(*scene(0, images=60))
    suspects = label_suspects(evaluation, score_threshold=0.0, limit=None, order="cost")
    assert np.isnan(suspects.cost).tolist() == [False] * 4 + [True] * (len(suspects) - 4)
    assert suspects.suspicion[:4].min() >= suspects.suspicion[4:].max()
    assert "what the detector predicts (only for the 4 most suspicious)\n" in suspects.note


def test_a_poor_box_stands_for_an_annotation_of_its_class():
    """A dog overlaps the cat's detection more than the cat does: the cat is to be drawn again."""
    truth = boxscore.GroundTruth.from_arrays(
        [1, 1], ["cat", "dog"], [[0, 0, 100, 25], [0, 60, 100, 100]], ids=[7, 8]
    )
    found = boxscore.Detections.from_arrays([1], ["cat"], [[0, 0, 100, 100]], [0.9])
    (row,) = label_suspects(boxscore.evaluate(truth, found)).to_frame().to_dict("records")
    assert (row["kind"], row["annotation_id"], row["true_class"], row["iou"]) == ("poor box", 7, "cat", 0.25)


def test_unsure_detections_take_no_part():
    assert label_suspects(planted(), score_threshold=0.92).to_frame()["image_id"].tolist() == [200]


def test_limit_and_scene(scene):
    evaluation = boxscore.evaluate(*scene(0, images=60))
    every = label_suspects(evaluation, score_threshold=0.0, limit=None).to_frame()
    first = label_suspects(evaluation, score_threshold=0.0, limit=5)
    assert first.to_frame().equals(every.head(5))
    assert set(every["kind"]) <= {"wrong class", "missing annotation", "poor box"}
    right = evaluation.matches.query("outcome == 'true positive'")
    keys = set(zip(right["image_id"], right["score"], strict=True))
    assert not keys & set(zip(every["image_id"], every["score"], strict=True))


def test_nothing_to_list():
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 9, 9]])
    found = boxscore.Detections.from_arrays([1], [1], [[0, 0, 9, 9]], [0.9])
    suspects = label_suspects(boxscore.evaluate(truth, found))
    assert len(suspects.detection) == len(suspects.to_frame()) == 0
