"""What a label costs: the bits of evaluating the edited labels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import LabelEdits, label_costs, label_suspects
from boxscore.errors import InputError
from boxscore.extensions.labels.leave_one_out import refusal
from boxscore.extensions.labels.suspects import proposals
from boxscore.protocols import protocol_names
from support.drawn import drawn, each_protocol
from support.real_data import real
from support.shipped import shipped

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

Tables = tuple[boxscore.GroundTruth, boxscore.Detections]


def some_edits(evaluation: boxscore.Evaluation, rng: np.random.Generator, count: int) -> LabelEdits:
    """Remove, relabel, add and redraw, so many of each."""
    truth, found = evaluation.ground_truth, evaluation.detections
    labels, rows = rng.integers(0, len(truth), (2, count)), rng.integers(0, len(found), (2, count))
    beside = [np.flatnonzero(truth.image == found.image[row]) for row in rows[1]]
    taken = [rng.choice(own) if len(own) else -1 for own in beside]
    return LabelEdits.joined(
        [
            LabelEdits.removing(truth, labels[0]),
            LabelEdits.relabeling(truth, labels[1], rng.integers(0, len(truth.categories), count)),
            LabelEdits.from_detections(evaluation, rows[0]),
            LabelEdits.from_detections(evaluation, rows[1], np.array(taken)),
        ]
    )


def by_hand(truth: boxscore.GroundTruth, edits: LabelEdits, n: int) -> boxscore.GroundTruth:
    """Make the edited ground truth from lists, row by row."""
    names = ("boxes", "area", "crowd")
    rows = [
        (truth.image[g], truth.category[g], *(getattr(truth, k)[g] for k in names)) for g in range(len(truth))
    ]
    put: list[Any] = []
    if edits.added[n] >= 0:
        one = edits.labels[[edits.added[n]]]
        put = [(one.image[0], one.category[0], one.boxes[0], one.area[0], one.crowd[0])]
    at = edits.removed[n]
    rows = [*rows, *put] if at < 0 else [*rows[:at], *put, *rows[at + 1 :]]
    image, category, boxes, area, crowd = zip(*rows, strict=True)
    return boxscore.GroundTruth.from_arrays(
        truth.images.ids[list(image)],
        truth.categories.ids[list(category)],
        np.array(boxes),
        area=area,
        crowd=crowd,
        images=truth.images,
        categories=truth.categories,
    )


def check_cases(scene: Any, seeds: range) -> int:
    cases = 0
    for seed in seeds:
        truth, found = scene(seed, images=5, classes=3, decimals=1 if seed % 2 else None)
        if not len(truth) or not len(found):
            continue
        evaluation = boxscore.evaluate(truth, found)
        edits = some_edits(evaluation, np.random.default_rng(seed), 2)
        costs = {name: label_costs(evaluation, edits, metric=name).after for name in ("AP", "APs", "AR10")}
        for n in range(len(edits)):
            again = boxscore.evaluate(by_hand(truth, edits, n), found, digest=False)
            for name, after in costs.items():
                np.testing.assert_array_equal(after[n], again[name], f"{name} of edit {n}, seed {seed}")
            cases += 1
    return cases


@pytest.mark.long
def test_costs_are_those_of_evaluating_again(scene: Any) -> None:
    assert check_cases(scene, range(8)) > 40


@pytest.mark.slow
def test_costs_of_2000_generated_cases(scene: Any) -> None:
    assert check_cases(scene, range(100, 370)) > 2000


NOT_ALONE = [protocol for protocol in protocol_names() if not shipped()[protocol].scope.is_matched_alone]
OF_COLUMNS = ["caltech", "citypersons", "cityscapes", "kitti"]
LONGER = ["bdd100k"]  # its prepared boxes would be made longer again


@pytest.mark.long
def test_what_is_refused() -> None:
    refused = {}
    for protocol in protocol_names():
        reason = refusal(boxscore.evaluate(*drawn(protocol, 0), protocol=protocol, digest=False))
        if reason:
            refused[protocol] = reason.split(" to ")[0]
    assert refused == {
        **dict.fromkeys(NOT_ALONE, "match each image separately"),
        **dict.fromkeys(OF_COLUMNS, "not have ranges over columns, because added labels lack these columns"),
        **dict.fromkeys(LONGER, "not lengthen box sides (boxes.longer_sides)"),
    }
    assert len(NOT_ALONE) == 6


@pytest.mark.long
@pytest.mark.parametrize("protocol", each_protocol())
def test_every_metric_of_every_protocol(protocol: str) -> None:
    evaluation = boxscore.evaluate(*drawn(protocol, 0), protocol=protocol)
    truth, found = evaluation.ground_truth, evaluation.detections
    rng = np.random.default_rng(0)
    edits = some_edits(evaluation, rng, 3)
    to_first = LabelEdits.relabeling(truth, rng.integers(0, len(truth), 2), np.zeros(2, dtype=int))
    edits = LabelEdits.joined([edits, to_first])  # ignored regions, where there are any
    if protocol in (*NOT_ALONE, *OF_COLUMNS, *LONGER):
        with pytest.raises(InputError, match="the protocol must"):
            label_costs(evaluation, edits)
        edits = LabelEdits.removing(truth, rng.integers(0, len(truth), 6))
    if protocol in (*NOT_ALONE, *LONGER):
        return
    singles = [edits.take(slice(n, n + 1)) for n in range(len(edits))]
    again = [
        boxscore.evaluate(one.applied_to(truth), found, protocol=protocol, digest=False) for one in singles
    ]
    changed = False
    for row in evaluation.protocol.rows:
        after = label_costs(evaluation, edits, metric=row.key).after
        np.testing.assert_array_equal(after, [result[row.key] for result in again], row.key)
        changed |= bool((after != evaluation[row.key]).any())
    assert changed


def test_a_region_that_is_added_takes_detections_of_every_class_along() -> None:
    truth, found = drawn("visdrone", 3)
    evaluation = boxscore.evaluate(truth, found, protocol="visdrone")
    truth = evaluation.ground_truth
    boxes = np.array([[0.0, 0.0, 120.0, 90.0]])
    region = truth.take(np.arange(1)).replaced(
        category=np.zeros(1, dtype=np.int32), boxes=boxes, sizes=boxes[:, 2:], area=boxes[:, 2:].prod(axis=1)
    )
    edits = LabelEdits(np.array([-1]), np.array([0]), region, truth)
    again = boxscore.evaluate(edits.applied_to(truth), found, protocol="visdrone", digest=False)
    assert label_costs(evaluation, edits).after.tolist() == [again["AP"]]
    before, after = (result.per_class.set_index("class")["AP"] for result in (evaluation, again))
    assert before["pedestrian"] != after["pedestrian"]
    assert before["car"] != after["car"]


def test_what_each_edit_is(scene: Any) -> None:
    truth, found = scene(1)
    evaluation = boxscore.evaluate(truth, found)
    removed = LabelEdits.removing(truth, np.array([2])).applied_to(truth)
    assert removed.ids.tolist() == [g for g in truth.ids.tolist() if g != truth.ids[2]]
    relabeled = LabelEdits.relabeling(truth, np.array([2]), np.array([3])).applied_to(truth)
    assert np.flatnonzero(relabeled.category != truth.category).tolist() in ([2], [])
    assert relabeled.category[2] == 3
    assert relabeled.ids.tolist() == truth.ids.tolist()
    added = LabelEdits.from_detections(evaluation, np.array([4])).applied_to(truth)
    assert added.boxes[-1].tolist() == found.boxes[4].tolist()
    assert added.ids[-1] not in truth.ids.tolist()
    assert len(added) == len(truth) + 1


def test_several_edits_at_once(scene: Any) -> None:
    truth, found = scene(1)
    evaluation = boxscore.evaluate(truth, found)
    both = LabelEdits.joined(
        [
            LabelEdits.removing(truth, np.array([0, 3])),
            LabelEdits.from_detections(evaluation, np.array([4, 5])),
        ]
    )
    table = both.applied_to(truth)
    assert table.boxes[-2:].tolist() == found.boxes[4:6].tolist()
    assert len(set(table.ids.tolist())) == len(table) == len(truth)


@pytest.mark.long
def test_the_difference_of_two_detectors(scene: Any) -> None:
    truth, found = scene(3)
    first = boxscore.evaluate(truth, found)
    other = boxscore.evaluate(truth, found.take(slice(None, None, 2)))
    edits = LabelEdits.removing(truth, np.arange(len(truth)))
    costs = label_costs(first, edits, against=other)
    assert costs.before == first["AP"] - other["AP"]
    for n in range(len(edits)):
        less = edits.take(slice(n, n + 1)).applied_to(truth)
        pair = [boxscore.evaluate(less, result.detections, digest=False)["AP"] for result in (first, other)]
        assert costs.after[n] == pair[0] - pair[1]


def test_the_table(scene: Any) -> None:
    truth, found = scene(1)
    evaluation = boxscore.evaluate(truth, found)
    edits = LabelEdits.joined(
        [LabelEdits.removing(truth, np.array([0])), LabelEdits.from_detections(evaluation, np.array([4]))]
    )
    table = label_costs(evaluation, edits).to_frame().astype(object)
    table = table.where(table.notna(), None)
    assert table["annotation_id"].tolist() == [truth.ids[0], None]
    assert table["class"].tolist() == [truth.categories.labels[truth.category[0]], None]
    assert table["new_class"].tolist() == [None, truth.categories.labels[found.category[4]]]
    assert table["image_id"].tolist() == [truth.images.ids[truth.image[0]], truth.images.ids[found.image[4]]]


def test_no_edits(scene: Any) -> None:
    truth, found = scene(1)
    evaluation = boxscore.evaluate(truth, found)
    assert not len(label_costs(evaluation, LabelEdits.removing(truth, np.empty(0, dtype=int))).cost)


def test_another_ground_truth_is_refused(scene: Any) -> None:
    first, other = (boxscore.evaluate(*scene(seed)) for seed in (1, 2))
    with pytest.raises(InputError, match="against must be an evaluation of the same ground truth"):
        label_costs(first, LabelEdits.removing(first.ground_truth, np.array([0])), against=other)


@pytest.mark.real
@pytest.mark.long
def test_suspects_of_real_data() -> None:
    folder = real("coco_val2017")
    truth = boxscore.load_ground_truth(folder / "ground_truth_boxes.json")
    found = boxscore.load_detections(folder / "yolact_base_100.bbox.json", truth)
    images = json.loads((folder / "yolact_image_ids.json").read_text())
    evaluation = boxscore.evaluate(truth, found, images=images)
    suspects = label_suspects(evaluation, score_threshold=0.15, limit=200)
    assert len(suspects) == 200
    edits = proposals(evaluation, suspects.detection, suspects.kind, suspects.truth)
    after = label_costs(evaluation, edits).after
    for n in range(200):
        labels = edits.take(slice(n, n + 1)).applied_to(evaluation.ground_truth)
        assert boxscore.evaluate(labels, evaluation.detections, digest=False)["AP"] == after[n]


def one_image_per_class() -> Tables:
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10], [60, 0, 70, 10]]
    truth = boxscore.GroundTruth.from_arrays(
        [1, 2, 2, 2], ["a", "b", "b", "c"], boxes, ids=[11, 12, 13, 14], images=[1, 2]
    )
    found = boxscore.Detections.from_arrays([1, 2, 2, 2], ["a", "b", "b", "c"], boxes, [0.5, 0.6, 0.7, 0.3])
    return truth, found


@pytest.mark.parametrize(
    "chosen", [{}, {"images": [2]}, {"classes": ["b", "c"]}, {"images": [2], "classes": ["c", "b"]}]
)
def test_edits_of_the_file_change_the_same_labels_of_chosen_images_and_classes(chosen: Any) -> None:
    truth, found = one_image_per_class()
    evaluation = boxscore.evaluate(truth, found, **chosen)
    rows = np.array([1, 2, 3])
    several = [
        LabelEdits.removing(truth, rows),
        LabelEdits.relabeling(truth, rows, np.array([2, 2, 1])),  # c, c and b
        LabelEdits.joined(
            [LabelEdits.removing(truth, rows[:1]), LabelEdits.removing(evaluation.ground_truth, [])]
        ),
    ]
    for edits in several:
        costs = label_costs(evaluation, edits, metric="AP50")
        for n, after in enumerate(costs.after.tolist()):
            again = boxscore.evaluate(edits.take([n]).applied_to(truth), found, **chosen)
            assert after == again["AP50"]
        assert costs.to_frame()["annotation_id"].tolist() == truth.ids[rows[: len(edits)]].tolist()


def test_edits_of_an_evaluation_are_applied_to_its_file() -> None:
    truth, found = one_image_per_class()
    evaluation = boxscore.evaluate(truth, found, images=[2], classes=["b"])
    edits = LabelEdits.removing(evaluation.ground_truth, np.array([1]))
    assert edits.applied_to(truth).ids.tolist() == [11, 12, 14]
    edits = LabelEdits.from_detections(evaluation, np.array([0]))
    assert edits.applied_to(truth).image.tolist() == [0, 1, 1, 1, 1]


def test_xview_edits_are_found_by_id() -> None:
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]]
    truth = boxscore.GroundTruth.from_arrays([1, 1, 1], ["a", "b", "b"], boxes, ids=[11, 12, 13])
    found = boxscore.Detections.from_arrays([1], ["b"], boxes[1:2], [0.5], categories=["a", "b"])
    evaluation = boxscore.evaluate(truth, found, protocol="xview")
    edits = LabelEdits.removing(truth, np.array([1]))
    again = boxscore.evaluate(edits.applied_to(truth), found, protocol="xview")
    assert label_costs(evaluation, edits).after.tolist() == [again["mAP"]]
    with pytest.raises(InputError, match=r"Got the annotation id 11; 1 of 1 labels"):
        label_costs(evaluation, LabelEdits.removing(truth, np.array([0])))


def test_edits_of_other_labels_are_refused() -> None:
    truth, found = one_image_per_class()
    evaluation = boxscore.evaluate(truth, found)
    others = [
        truth.replaced(ids=truth.ids[[1, 0, 2, 3]]),  # the ids of other labels
        truth.take([1, 2, 3]).replaced(ids=truth.ids[:3]),  # numbered anew
        truth.replaced(boxes=truth.boxes + 3),
    ]
    for other in others:
        with pytest.raises(InputError, match="which is another label there"):
            label_costs(evaluation, LabelEdits.removing(other, np.array([0])))
    chosen = boxscore.evaluate(truth, found, classes=["b"])
    with pytest.raises(InputError, match=r"the class of an added label must be in the evaluation\. Got 'c'"):
        label_costs(chosen, LabelEdits.relabeling(truth, np.array([1]), np.array([2])))
