"""Many sets of weights counted at once have the bits of one at a time."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import compare_detectors, compare_sequentially, plan_comparison
from boxscore.extensions.weights.resampling import Draws, Swaps
from support import limits
from support.scenes import CROWDS
from support.shipped import box_protocols

BOX_PROTOCOLS = box_protocols(*CROWDS)  # crowds ask for more than boxes


@pytest.mark.parametrize(
    "rules", [*BOX_PROTOCOLS, "F1", "by_images", "nanmean", "pooled", "weights", "chosen"]
)
def test_the_bits_of_one_set_at_a_time(scene, monkeypatch, rules):
    changed = {
        "F1": {"summary": [{"key": "F1", "metric": "F1"}]},
        "by_images": {"ap": {"class_mean": "by_images"}},
        "nanmean": {"ap": {"class_mean": "nanmean"}},
        "pooled": {"ap": {"pool": "classes"}},
        "weights": {"ap": {"class_weights": {"1": 2.5, "*": 0.75}}},
        "chosen": {"ap": {"class_weights": {"1": 0, "*": 3}}},
    }
    protocol = {"extends": "coco", "name": "changed", **changed[rules]} if rules in changed else rules
    evaluation = boxscore.evaluate(*scene(3, images=12), protocol=protocol)
    draws = Draws.of_seed(12, 11, 0)
    rows = evaluation.protocol.rows
    together = evaluation._weighted_metrics(rows, draws)
    limits.few_sets_together(monkeypatch, 1)
    alone = evaluation._weighted_metrics(rows, draws)
    limits.few_sets_together(monkeypatch, 4)  # the last batch is not full
    by_fours = evaluation._weighted_metrics(rows, draws)
    for each in (alone, by_fours):
        for mine, yours in zip(together, each, strict=True):
            np.testing.assert_array_equal(mine, yours)


def test_no_metrics_are_no_columns(scene):
    evaluation = boxscore.evaluate(*scene(3, images=12))
    metrics = evaluation._weighted_metrics([], Draws.of_seed(12, 5, 0))
    assert metrics.values.shape == (5, 0, len(evaluation.labels) + 1)
    assert metrics.detections.shape == (5,)


@pytest.mark.long
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("sets", [Draws.of_seed(12, 41, 2), Swaps.of_seed(6, 40, 2), Swaps.of_seed(6, 20, 2)])
def test_processes_share_the_sets_in_their_order(scene, monkeypatch, sets, workers):
    limits.little_worth_forking(monkeypatch)
    evaluation = boxscore.evaluate(*scene(3, images=12))
    rows = evaluation.protocol.rows
    alone = evaluation._weighted_metrics(rows, sets)
    shared = evaluation._weighted_metrics(rows, sets, workers=workers)
    for mine, yours in zip(alone, shared, strict=True):
        assert mine.tobytes() == yours.tobytes()


@pytest.mark.parametrize("sets", [Draws.of_seed(12, 41, 2), Swaps.of_seed(6, 40, 2), Swaps.of_seed(6, 20, 2)])
@pytest.mark.parametrize("runs", [1, 2, 3, 4, 7])
def test_sets_are_cut_into_as_many_runs_as_asked_for(sets, runs):
    batches = list(sets.batches(-(-len(sets) // runs)))
    assert len(batches) <= runs
    cut = [weights for batch in batches for weights in batch]
    assert sum(map(len, batches)) == len(cut)
    np.testing.assert_array_equal(list(sets), cut)


@pytest.fixture
def forked(monkeypatch):
    """How many tasks were forked each time, however little the work."""
    return limits.tasks_forked(monkeypatch)


def two(scene):
    """Make two evaluations of which nothing is cached."""
    truth, detections = scene(3, images=20)
    worse = dataclasses.replace(detections, boxes=detections.boxes + 5)
    return {name: boxscore.evaluate(truth, table) for name, table in (("a", detections), ("b", worse))}


@pytest.mark.long
def test_a_comparison_is_the_same_in_processes(scene, forked):
    alone, parallel = (compare_detectors(two(scene), resamples=60, workers=workers) for workers in (1, 2))
    assert alone.to_frame().equals(parallel.to_frame())
    for mine, yours in zip(alone.intervals, parallel.intervals, strict=True):
        np.testing.assert_array_equal(mine, yours)
    assert forked == [1] * 5  # draws of two detectors, the exchanges, and groups left out of the two


@pytest.mark.long
def test_batches_are_the_same_in_processes(scene, forked):
    alone, parallel = (
        compare_sequentially(two(scene), batch=4, resamples=61, workers=workers) for workers in (1, 2)
    )
    assert alone.to_frame().equals(parallel.to_frame())
    assert alone.verdict_text() == parallel.verdict_text()
    assert forked == [1] * len(alone.images)


@pytest.mark.long
@pytest.mark.parametrize("group", [None, np.repeat(range(10), 2).tolist()])
def test_a_plan_is_the_same_in_processes(scene, forked, group):
    alone, parallel = (
        plan_comparison(*two(scene).values(), resamples=61, workers=workers, group=group)
        for workers in (1, 2)
    )
    for mine, yours in zip((*alone.total, *alone.curve), (*parallel.total, *parallel.curve), strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(yours).tobytes()
    assert alone.to_frame().equals(parallel.to_frame())
    assert forked == [1] * 5  # draws and images left out of two detectors, and the exchanges
