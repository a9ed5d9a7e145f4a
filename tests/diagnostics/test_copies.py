"""Many sets of weights counted at once have the bits of one at a time."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore._utils.resampling import Draws
from boxscore.protocols import load_protocol, protocol_names
from boxscore.scoring import summary
from boxscore.scoring.blocks import HeldValues
from support.scenes import CROWDS

BOX_PROTOCOLS = [
    name
    for name in protocol_names()
    if load_protocol(name).similarity == "box" and name not in CROWDS  # which ask for more than boxes
]


@pytest.mark.parametrize("rules", [*BOX_PROTOCOLS, "F1", "by_images", "nanmean", "pooled"])
def test_the_bits_of_one_set_at_a_time(scene, monkeypatch, rules):
    changed = {
        "F1": {"summary": [{"key": "F1", "metric": "F1"}]},
        "by_images": {"ap": {"class_mean": "by_images"}},
        "nanmean": {"ap": {"class_mean": "nanmean"}},
        "pooled": {"ap": {"pool": "classes"}},
    }
    protocol = {"extends": "coco", "name": "changed", **changed[rules]} if rules in changed else rules
    evaluation = boxscore.evaluate(*scene(3, images=12), protocol=protocol)
    draws = Draws.of_seed(12, 11, 0)
    rows = evaluation.protocol.rows
    together = evaluation.weighted_metrics(rows, draws)
    monkeypatch.setattr(summary, "LARGEST_BATCH", 1)
    alone = evaluation.weighted_metrics(rows, draws)
    monkeypatch.setattr(summary, "LARGEST_BATCH", 4)  # the last batch is not full
    by_fours = evaluation.weighted_metrics(rows, draws)
    for each in (alone, by_fours):
        for mine, yours in zip(together, each, strict=True):
            np.testing.assert_array_equal(mine, yours)


def test_how_many_sets_are_counted_together_follows_the_size(scene):
    small = boxscore.evaluate(*scene(0, images=5))
    large = boxscore.evaluate(*scene(0, images=400))
    copies = [
        summary._copies(result.matched, result.protocol, result.protocol.rows) for result in (small, large)
    ]
    assert 1 < copies[1] < copies[0] <= summary.LARGEST_BATCH
    lamr = boxscore.evaluate(
        *scene(0, images=5),
        protocol={"extends": "coco", "name": "x", "summary": [{"key": "MR", "metric": "MR"}]},
    )
    assert summary._copies(lamr.matched, lamr.protocol, lamr.protocol.rows) == 1  # counts images


def test_means_of_copies_by_loops():
    random = np.random.default_rng(0)
    values = random.random((3, 7, 4 * 5))
    for absent in ([], [0, 6], [0, 1, 2, 3, 4], range(20)):
        values[:, :, list(absent)] = np.nan
        for some_points in (False, True):
            one = values.copy()
            if some_points:
                one[0, 2, 11] = np.nan
            held = HeldValues(one)
            expected = [copy.mean_of_defined() for copy in held.of_copies(4)]
            np.testing.assert_array_equal(held.means_of_copies(4), expected)
