"""Numbers reduced class by class, and by ranges of scores, have the bits of one evaluation. Needs no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.distributed import Part, merge, part_of
from boxscore.extensions.weights.resampling import Groups
from boxscore.protocols.summary import LEVEL_METRICS, OF_IMAGES, SUMMARY_KINDS
from support import crowd_cases, every_kind, limits
from support.cases import Case, coco_cases
from support.every_kind import every
from support.examples import examples
from support.insides import Here, distributed_evaluation, headers_of, most_of, partition_of
from support.parted import Tables, bits, columns_of, drawn_parts, drawn_tables, parts_of, whole
from support.samples import DT, GT


def check(tables: Tables, protocol: Any, data: st.DataObject) -> None:
    parts = drawn_parts(tables, protocol, data)
    if parts:
        most = data.draw(st.sampled_from([1, 2, 5, 10**6]), label="most")
        check_pieces(parts, most, whole(tables, protocol))


def check_pieces(parts: list[Part], most: int, expected: boxscore.Evaluation) -> None:
    """Check what stays where it is matched, and what is merged here, with so many detections at a time."""
    with pytest.MonkeyPatch.context() as patch:
        limits.few_detections_at_a_time(patch, most)
        assert bits(distributed_evaluation(parts)) == bits(merge(parts)) == bits(expected)


test_coco = every(every_kind.coco, check, 40)
test_voc = every(every_kind.voc, check, 20)
test_masks_and_keypoints = every(every_kind.masks_and_keypoints, check, 4)
test_federated = every(every_kind.federated, check, 40)
test_groups_that_count_in_part = every(every_kind.groups_in_part, check, 10)
test_rotated_boxes = every(every_kind.rotated_boxes, check, 15)


@given(
    case=coco_cases(),
    name=st.sampled_from(["voc2012", "ultralytics-old", "ultralytics-april2026", "every point"]),
    ties=st.sampled_from(["as_ranked", "true_positives_first", "true_positives_last"]),
    data=st.data(),
)
@settings(max_examples=examples(40))
def test_areas(case: Case, folder: Path, name: str, ties: str, data: st.DataObject) -> None:
    rules: dict[str, Any] = {"extends": name, "name": "case", "ap": {"tie_order": ties}}
    if name == "every point":
        rules["extends"] = "voc2012"
        rules["ap"]["interpolation"] = "every_point"
    check(case.load(folder), rules, data)


@pytest.mark.long
@given(
    case=coco_cases(),
    ties=st.sampled_from(["as_ranked", "true_positives_first", "true_positives_last"]),
    reading=st.sampled_from(["last_at_most", "last_at_most_or_end", "first_at_least"]),
    step=st.booleans(),
    rules=st.sampled_from([{}, {"class_mean": "by_images"}, {"interpolation": "area", "score_steps": 7}]),
    data=st.data(),
)
@settings(max_examples=examples(40))
def test_every_kind(
    case: Case, folder: Path, ties: str, reading: str, step: bool, rules: dict[str, Any], data: st.DataObject
) -> None:
    """What each kind says of ranges of scores folds to what it says of all."""
    protocol = {
        "extends": "coco",
        "name": "case",
        "ap": {"tie_order": ties, **rules},
        "froc": {
            "false_positives_per_image": [0, 0.2, 0.5, 1, 3],
            "interpolation": "step" if step else "linear",
        },
        "miss_rate": {"false_positives_per_image": [0.1, 0.5, 1, 3], "reading": reading},
        "summary": [
            {"key": kind, "metric": kind}
            for kind in SUMMARY_KINDS
            if kind not in ("JI", *LEVEL_METRICS, *OF_IMAGES)
        ],
    }
    check(case.load(folder), protocol, data)


@pytest.mark.long
@pytest.mark.parametrize("name", crowd_cases.PROTOCOLS)
@given(seed=st.integers(0, 10_000), data=st.data())
@settings(max_examples=examples(12))
def test_crowds_faces_and_drones(name: str, seed: int, data: st.DataObject) -> None:
    check(crowd_cases.crowd_case(seed, name), crowd_cases.crowd_protocol(name), data)


@pytest.mark.long
def test_scores_of_a_class_by_ranges_under_a_cap_of_the_image() -> None:
    """The smaller caps leave detections out: a position among what is left is none among all."""
    rules = crowd_cases.crowd_protocol("recall over all at points")
    tables = crowd_cases.crowd_case(6, "recall over all at points")
    parts = parts_of(tables, rules, [0] * len(tables[0].images))
    check_pieces(parts, 1, whole(tables, rules))


@pytest.mark.long
def test_scores_of_single_and_double_precision_are_cut_alike() -> None:
    """One part holds its scores in 4 bytes: its 0.5 is below the edge, though not once the edge is rounded."""
    box, other = [1.0, 1.0, 9.0, 9.0], [50.0, 50.0, 60.0, 60.0]
    truth = boxscore.GroundTruth.from_arrays([1, 2, 3], ["cat"] * 3, [box] * 3)
    scores = [0.5, 0.5, 0.5 + 2.0**-50]
    found = boxscore.Detections.from_arrays([1, 2, 3], ["cat"] * 3, [other, box, box], scores)
    parts = parts_of((truth, found), "coco", [0, 1, 0])
    assert [columns_of(part)["score"].dtype for part in parts] == [np.float64, np.float32]
    check_pieces(parts, 1, whole((truth, found), "coco"))


def test_scores_that_are_equal_once_stretched_are_in_one_range() -> None:
    """The false one is the higher as given; stretched they are equal, and the first image's comes first."""
    box, other = [1.0, 1.0, 9.0, 9.0], [50.0, 50.0, 60.0, 60.0]
    truth = boxscore.GroundTruth.from_arrays([1, 2, 3], ["cat"] * 3, [box] * 3)
    scores = [0.5, 0.5 + 2.0**-50, -1000.0]
    found = boxscore.Detections.from_arrays([1, 2, 3], ["cat"] * 3, [box, other, other], scores)
    rules = crowd_cases.crowd_protocol("stretched at points")
    check_pieces(parts_of((truth, found), rules, [0, 1, 2]), 1, whole((truth, found), rules))


class Counting(Here):
    """Counts what is run."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, name: str, function: Any, *arguments: Any) -> Any:
        self.calls += 1
        return super().submit(name, function, *arguments)


@pytest.mark.long
def test_fewer_detections_at_a_time_are_more_pieces() -> None:
    """All at once, by classes, and each class by scores."""
    calls = []
    for most in (10**6, 20, 3):
        with pytest.MonkeyPatch.context() as patch:
            limits.few_detections_at_a_time(patch, most)
            parts, engine = parts_of(drawn_tables(5), "coco", [0, 1] * 3 + [0]), Counting()
            assert distributed_evaluation(parts, engine).metrics
            weights = Groups(np.zeros(7, dtype=np.uint8), 0, 1)
            result = distributed_evaluation(parts, engine)
            assert len(result._weighted_metrics(result.protocol.rows, weights).values) == 1
        calls.append(engine.calls)
    assert calls[0] < calls[1] < calls[2]


def test_an_image_in_two_parts_is_refused() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 2, 3], ["cat"] * 3, [[1, 1, 9, 9]] * 3)
    found = boxscore.Detections.from_arrays([1, 2, 3], ["cat"] * 3, [[1, 1, 9, 9]] * 3, [0.5] * 3)
    parts = parts_of((truth, found), "coco", [0, 1, 0])
    with pytest.raises(boxscore.InputError, match=r"be in one of the parts to merge\. Got 1 in"):
        distributed_evaluation([*parts, parts[0]])


@pytest.mark.long
@given(seed=st.integers(0, 10_000), data=st.data())
@settings(max_examples=examples(20))
def test_a_cap_of_each_image(seed: int, data: st.DataObject) -> None:
    rules = {"cap_scope": "image_each", "iou_thresholds": [0.3, 0.5], "max_detections": [1, 2, 4]}
    check(drawn_tables(seed), {"extends": "coco", "name": "case", "matching": rules}, data)


def test_a_range_without_true_positives_at_one_threshold_reads_nothing_of_the_next() -> None:
    """At 0.5 the first and third are true, at 0.75 in a crowd, and the second and fourth are true."""
    sides = {"object": [0, 100], "crowd": [40, 200], "near": [40, 100], "nearer": [0, 76]}
    object_, crowd, near, nearer = ([low, 0.0, high, 10.0] for low, high in sides.values())
    tables = (
        boxscore.GroundTruth.from_arrays(
            [1, 1, 2, 2], [0] * 4, [object_, crowd] * 2, crowd=[False, True, False, True]
        ),
        boxscore.Detections.from_arrays([1, 1, 2, 2], [0] * 4, [near, nearer] * 2, [0.9, 0.8, 0.7, 0.6]),
    )
    protocol = {"extends": "coco", "matching": {"iou_thresholds": [0.5, 0.75]}}
    parts, expected = parts_of(tables, protocol, 2), whole(tables, protocol)
    assert expected["AP50"] == pytest.approx((51 + 50 * 2 / 3) / 101, abs=1e-15)
    assert expected["AP75"] == 1.0
    assert bits(distributed_evaluation(parts, most=2)) == bits(expected)


@pytest.mark.parametrize(
    ("boxes", "memory", "partition", "most"),
    [
        (10**8, 2 * 10**9, 1 << 20, 1 << 22),
        (10**9, 2 * 10**9, 1_381_067, 4_194_304),
        (10**10, None, 1 << 20, 1 << 22),
        (10**10, 2 * 10**9, 4_000_000, 13_333_333),
        (10**10, 16 * 10**9, 13_810_679, 33_187_866),
    ],
)
def test_sizes_follow_from_the_data(boxes: int, memory: int | None, partition: int, most: int) -> None:
    """Of one class with 60%; beyond a number of tasks they grow, as far as workers have memory."""
    usual = partition_of(boxes, 1 << 20, memory)
    parts = -(-boxes // usual)
    (header,) = headers_of(Here(), [part_of(boxscore.evaluate(GT, DT))])
    counts = np.zeros_like(header.detections)
    counts[0] = boxes * 6 // 10 // parts
    merged = most_of([header._replace(detections=counts)] * parts, 1 << 22, memory)
    assert (usual, merged) == (partition, most)
    tasks = parts * 2 * int(counts[0]) * parts / merged
    assert tasks <= 1.01 * 2**18 or memory is None or merged == memory // 150


@pytest.mark.long
def test_more_at_a_time_is_fewer_tasks_and_the_same_bits() -> None:
    """With few tasks allowed, ranges are as large as memory allows."""
    expected = boxscore.evaluate(GT, DT)
    parts = [part_of(expected)]
    headers = headers_of(Here(), parts)
    with pytest.MonkeyPatch.context() as patch:
        limits.few_tasks(patch, 4)
        assert [most_of(headers, 10, memory) for memory in (None, 150 * 20, 10**9)] == [10, 20, 72]
        limits.few_detections_at_a_time(patch, most_of(headers, 10, 150 * 20))
        assert bits(distributed_evaluation(parts)) == bits(expected)
