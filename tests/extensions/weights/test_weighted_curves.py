"""Many sets of image weights at once, against the data with each image as often as its weight says."""

from __future__ import annotations

import numpy as np
import pytest
from tests.extensions.weights.test_weighted import variations

import boxscore
from boxscore._utils.array_types import FloatArray
from support.curves import tables
from support.every_cell import summary_of, with_every_cell
from support.limits import few_true_positives_together
from support.weights import evaluated_anew

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

CELLS = with_every_cell(
    {"extends": "coco", "matching": {"iou_thresholds": [0.2, 0.5], "max_detections": [2, 100]}}, "AP", "AR"
)

UNTIED = 10**9
"""So many scores that no two are equal: the order of an image's copies decides nothing."""


def drawn(images: int, count: int, seed: int) -> list[FloatArray]:
    random = np.random.default_rng(seed)
    return [random.choice([0, 0, 1, 1, 2, 5], images).astype(np.float64) for _ in range(count)]


def check_sets(seed: int, protocol: boxscore.Protocol, sets: list[FloatArray]) -> None:
    truth, found = tables(seed, scores=UNTIED)
    evaluation = boxscore.evaluate(truth, found, protocol=protocol)
    together = evaluation._weighted_metrics(evaluation.protocol.rows, sets)  # type: ignore[arg-type]
    for weights, ours in zip(sets, together.values, strict=True):
        anew = evaluated_anew(truth, found, weights, protocol)
        assert ours.tobytes() == summary_of(anew).tobytes()
    assert together.ground_truths.tolist() == [
        int(weights[truth.image[~truth.crowd]].sum()) for weights in sets
    ]
    assert together.detections.tolist() == [int(weights[found.image].sum()) for weights in sets]


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_some_sets(count: int) -> None:
    check_sets(count, CELLS, drawn(6, count, seed=count))


@pytest.mark.long
@pytest.mark.parametrize("exchanges", [1, 2, 3])
def test_the_sides_of_exchanges(exchanges: int) -> None:
    """Their weights add up to 1, and so do their counts."""
    firsts = [np.minimum(one, 1) for one in drawn(6, exchanges, seed=3)]
    sets = [side for one in firsts for side in (one, 1 - one)]
    check_sets(7, CELLS, sets)
    check_sets(7, CELLS, [*sets[1:], sets[0]])


def test_classes_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    few_true_positives_together(monkeypatch, 1)
    check_sets(2, CELLS, drawn(6, 4, seed=1))


@pytest.mark.parametrize("count", [32, 33, 63, 64])
def test_as_many_thresholds_as_there_may_be(count: int) -> None:
    matching = {"iou_thresholds": np.linspace(0.1, 0.9, count).tolist()}
    protocol = boxscore.load_protocol({"extends": "coco", "matching": matching, "summary": [{"key": "AP"}]})
    check_sets(3, protocol, drawn(6, 3, seed=2))


@pytest.mark.parametrize("epsilon", [0.0, 2.0**-52, 2.0**-51, 1e-7, 0.5])
def test_an_epsilon_of_any_size(epsilon: float) -> None:
    """From the third on the last of some true positives need not have the best precision."""
    rules = {"extends": "coco", "ap": {"precision_epsilon": epsilon}}
    check_sets(4, boxscore.load_protocol(rules), drawn(6, 2, seed=8))


@pytest.mark.long
def test_every_rule() -> None:
    for number, protocol in enumerate(variations()[::5]):
        check_sets(number, protocol, drawn(6, 2, seed=number))


@pytest.mark.parametrize("mean", ["of_defined", "nanmean", "by_images"])
@pytest.mark.parametrize("absent", ["skip", "zero", "all_zero"])
def test_means_add_up_in_the_order_of_pycocotools(mean: str, absent: str) -> None:
    """Weights leave precision in another order in memory, and NumPy adds up in that one."""
    rules = {"extends": "coco", "ap": {"class_mean": mean, "absent_classes": absent}}
    check_sets(5, boxscore.load_protocol(rules), [np.ones(6), *drawn(6, 2, seed=4)])
