"""Tie bounds against every order."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import tie_bounds

pytestmark = pytest.mark.usefixtures("no_findings")


def every_order(truth, detections, protocol):
    """AP of every order of the equally scored detections of a small table."""
    scores = detections.scores
    groups = [np.flatnonzero(scores == value) for value in np.unique(scores)[::-1]]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        rows = np.concatenate([np.array(order) for order in orders])
        # Scores that descend along the order give the order without a tie.
        table = dataclasses.replace(detections.take(rows), scores=np.linspace(1, 0.5, len(rows)))
        yield next(iter(boxscore.evaluate(truth, table, protocol=protocol).metrics.values()))


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_reached_and_kept(seed, protocol):
    random = np.random.default_rng(seed)
    truth = boxscore.GroundTruth.from_arrays([1, 2, 3, 4], [1] * 4, [[0, 0, 10, 10]] * 4)
    hit = random.random(7) < 0.5
    boxes = [[0, 0, 10, 10] if h else [50, 50, 60, 60 + i] for i, h in enumerate(hit)]
    images = np.where(hit, (np.cumsum(hit) - 1) % 4 + 1, random.integers(1, 5, 7)).tolist()
    detections = boxscore.Detections.from_arrays(
        images, [1] * 7, boxes, random.choice([0.9, 0.6], 7), images=truth.images
    )
    row = tie_bounds(boxscore.evaluate(truth, detections, protocol=protocol)).total_frame().iloc[0]
    values = list(every_order(truth, detections, protocol))
    assert row["lowest"] == pytest.approx(min(values), abs=1e-12)
    assert row["highest"] == pytest.approx(max(values), abs=1e-12)
    assert row["lowest"] <= row["value"] <= row["highest"]


def test_no_ties_no_room(scene):
    table = tie_bounds(boxscore.evaluate(*scene(0))).printed_frame()
    np.testing.assert_array_equal(table["lowest"], table["value"])
    np.testing.assert_array_equal(table["highest"], table["value"])
    assert (table["tied"] == 0).all()


def test_many_ties(scene):
    table = tie_bounds(boxscore.evaluate(*scene(0, images=40, decimals=1))).printed_frame()
    assert (table["lowest"] <= table["value"] + 1e-12).all() or table["value"].isna().any()
    overall = table[table["class"] == "(all)"].iloc[0]
    assert overall["lowest"] < overall["highest"]
    assert overall["tied"] > 0
