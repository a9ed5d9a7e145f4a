"""The swap test against detections that change hands, and its adjustments against loops."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore.diagnostics import compare_detectors
from boxscore.distributed import merge
from boxscore.extensions.decisions.compare import TOO_FEW
from boxscore.extensions.decisions.swapping import SwappedDifferences, holm, swapped_differences
from boxscore.extensions.diagnostics.bootstrap import chosen_rows
from boxscore.extensions.weights.resampling import Swaps
from support.examples import first_of
from support.parted import parts_of, whole
from support.parted import scene as scene_in_parts
from support.scenes import CROWDS
from support.shipped import box_protocols

pytestmark = pytest.mark.usefixtures("no_findings")

# Crowds ask for more than boxes. rex-omni-coco goes by the order of one file; that of two files mixed is not defined.
BOX_PROTOCOLS = box_protocols(*CROWDS, "rex-omni-coco")


def two_tables(scene, images, seed=0):
    """Ground truth, a detector and one that differs in boxes and scores; no equal scores."""
    truth, detections = scene(seed, images=images)
    random = np.random.default_rng(seed)
    scores = random.permutation(len(detections)) / len(detections)
    one = dataclasses.replace(detections, scores=scores)
    moved = detections.boxes + random.normal(0, 3, (len(detections), 1))
    other = dataclasses.replace(detections, boxes=moved, scores=random.permutation(scores) + 1e-7)
    return truth, one, other


def exchanged_by_hand(truth, one, other, exchanged):
    """Detections of two tables, those of some images in the other's place."""
    tables = []
    for mine, yours in ((one, other), (other, one)):
        parts = [mine[~exchanged[mine.image]], yours[exchanged[yours.image]]]
        tables.append(
            boxscore.Detections.from_arrays(
                np.concatenate([truth.images.ids[part.image] for part in parts]),
                np.concatenate([truth.categories.ids[part.category] for part in parts]),
                np.concatenate([np.column_stack([part.boxes[:, :2], part.sizes]) for part in parts]),
                np.concatenate([part.scores for part in parts]),
                box_format="xywh",
            )
        )
    return tables


@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore:.*fully annotated", "ignore:.*IL_MCC is", "ignore:.*no image says which classes"
)
@pytest.mark.parametrize("protocol", BOX_PROTOCOLS)
@pytest.mark.parametrize("seed", first_of(1, range(3)))
def test_every_exchange_is_an_evaluation_of_its_own(scene, protocol, seed):
    truth, one, other = two_tables(scene, 4, seed)
    groups = np.resize(np.array(["none", "short", "medium", "long"], dtype=object), len(truth.categories))
    categories = dataclasses.replace(truth.categories, columns={"description": groups})
    truth = truth.replaced(categories=categories)
    first, second = (boxscore.evaluate(truth, each, protocol=protocol) for each in (one, other))
    rows = chosen_rows(first, None)
    values = swapped_differences(first, second, rows, resamples=100, seed=0).values
    assert len(values) == 2**3
    for number, difference in enumerate(values):
        exchanged = np.array([number >> image & 1 for image in range(4)], dtype=bool)
        tables = exchanged_by_hand(truth, one, other, exchanged)
        scores = [boxscore.evaluate(truth, table, protocol=protocol) for table in tables]
        expected = np.array([scores[1].metrics[row.key] - scores[0].metrics[row.key] for row in rows])
        np.testing.assert_allclose(difference[:, -1], expected, atol=1e-12, rtol=0)


def test_the_first_exchange_is_none_to_the_last_bit(scene):
    truth, one, other = two_tables(scene, 30)
    first, second = (boxscore.evaluate(truth, each) for each in (one, other))
    rows = chosen_rows(first, None)
    observed = swapped_differences(first, second, rows, resamples=3, seed=0).observed
    expected = [second.metrics[row.key] - first.metrics[row.key] for row in rows]
    np.testing.assert_array_equal(observed[:, -1], expected)


def test_groups_change_hands_as_a_whole():
    units = np.array([0, 1, 0, 2, 1, 2], dtype=np.int32)
    swaps = Swaps.of_seed(6, 50, 3, units)
    assert swaps.every
    assert len(swaps) == 2 * 2**2
    for weights in swaps:
        first, other = weights[::2], weights[1::2]
        np.testing.assert_array_equal(first, 1 - other)
        for unit in range(3):
            assert len(set(first[units == unit].tolist())) == 1


def test_few_units_are_exchanged_in_every_way_and_many_at_random():
    few = Swaps.of_seed(6, 32, 0)
    assert few.every
    assert len({tuple(weights) for weights in few}) == 2**6
    many = Swaps.of_seed(6, 31, 0)
    assert not many.every
    first, *rest = list(many)[::2]
    assert first[::2].tolist() == [1.0] * 6
    assert len(rest) == 31
    share = np.mean([weights[::2] for weights in Swaps.of_seed(40, 2000, 1)][::2])
    assert abs(share - 0.5) < 0.01


def test_p_values_by_loops():
    random = np.random.default_rng(0)
    values = random.normal(size=(40, 3, 5)) * np.array([1.0, 10.0, 0.1, 0.0, 2.0])
    values[:, 1, 2] = np.nan
    swapped = SwappedDifferences(values)
    spread = {}
    for row, column in itertools.product(range(3), range(5)):
        series = values[:, row, column].tolist()
        if np.isnan(series[0]):
            assert np.isnan(swapped.p_values()[row, column])
            continue
        spread[row, column] = np.sqrt(np.mean(np.square(series)))
        as_far = sum(abs(each) >= abs(series[0]) - 1e-12 for each in series)
        assert swapped.p_values()[row, column] == as_far / 40
    for row in range(3):
        family = [column for column in range(4) if spread.get((row, column), 0) > 0]
        for column in family:
            mine = abs(values[0, row, column]) / spread[row, column]
            largest = [max(abs(each[row, c]) / spread[row, c] for c in family) for each in values[1:]]
            expected = (1 + sum(each >= mine - 1e-12 for each in largest)) / 40
            assert swapped.p_values_of_classes()[row, column] == expected
        assert swapped.p_values_of_classes()[row, 3] == 1.0  # the same in every exchange


def test_p_values_of_drops_by_loops():
    random = np.random.default_rng(1)
    values = random.normal(size=(25, 3, 2))
    rises = np.array([False, True, False])  # worse when it rises
    sign = np.where(rises, 1, -1)
    both = [sign * each[:, -1] * turn for turn in (1, -1) for each in values]
    spread = np.sqrt(np.mean(np.square(both), axis=0))
    for row in range(3):
        mine = both[0][row] / spread[row]
        largest = [np.max(each / spread) for each in both[1:]]
        expected = (1 + sum(each >= mine - 1e-12 for each in largest)) / 50
        assert SwappedDifferences(values).p_values_of_drops(rises)[row] == expected


def test_holm_by_hand():
    """Of .01, .04, .03, .005 the adjusted are .03, .06, .06, .02 (Holm 1979)."""
    p_values = np.array([[0.01, 0.2], [0.04, np.nan], [0.03, 0.9], [0.005, 0.6]])
    expected = [[0.03, 0.6], [0.06, np.nan], [0.06, 1.0], [0.02, 1.0]]
    np.testing.assert_allclose(holm(p_values), expected, atol=1e-15, rtol=0)


def test_a_verdict_takes_six_images():
    for images, expected in ((5, TOO_FEW), (6, "worse")):
        boxes = np.tile([10.0, 10.0, 50.0, 50.0], (images, 1))
        labels, scores = ["cat"] * images, np.linspace(0.5, 0.9, images)
        truth = boxscore.GroundTruth.from_arrays(range(images), labels, boxes)
        detections = boxscore.Detections.from_arrays(range(images), labels, boxes, scores)
        bad = dataclasses.replace(detections, boxes=detections.boxes + 500)
        results = {name: boxscore.evaluate(truth, table) for name, table in (("a", detections), ("b", bad))}
        row = compare_detectors(results, metrics=["AP"], resamples=200).total_frame().iloc[0]
        assert row["verdict"] == expected
        assert row["p_value"] == 1 / 2 ** (images - 1)
        assert np.isnan(row["low"])  # below ten images there is no interval


@pytest.mark.long
@pytest.mark.parametrize("group", [None, "night"])
def test_merged_parts_are_exchanged_as_one_result_is(group):
    tables = scene_in_parts()
    one, merged = whole(tables, "coco"), merge(parts_of(tables, "coco", np.arange(len(tables[0].images)) % 3))
    truth, detections = tables
    worse = truth, dataclasses.replace(detections, boxes=detections.boxes + 6)
    other = whole(worse, "coco")
    other_merged = merge(parts_of(worse, "coco", np.arange(len(truth.images)) % 2))
    plain = compare_detectors({"a": one, "b": other}, resamples=60, group=group)
    parts = compare_detectors({"a": merged, "b": other_merged}, resamples=60, group=group)
    pd.testing.assert_frame_equal(
        parts.total_frame().drop(columns="decided_by_ties"),
        plain.total_frame().drop(columns="decided_by_ties"),
    )
    assert parts.resampling.test == "swap"
