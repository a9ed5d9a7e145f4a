"""Crowds of boxes that nearly all overlap: other ways to the same bits, which stay near-linear."""

import time

import numpy as np
import pytest

from boxscore.extensions.fusion import fusion
from boxscore.suppression import _grid as grid_module
from boxscore.suppression import _plans as plans
from boxscore.suppression import fast_nms, nmm, nmw, weighted_boxes_fusion
from oracles.suppression import chained, fast, overlaps, random_case
from support.examples import first_of

pytestmark = pytest.mark.filterwarnings("ignore:boxes are given as:boxscore.errors.BoxscoreWarning")


@pytest.fixture
def stages(monkeypatch):
    monkeypatch.setattr(plans, "VERY_CROWDED", -1.0)
    monkeypatch.setattr(plans, "FIRST_BEST", 1)
    monkeypatch.setattr(plans, "STAGE_GROWTH", 2)
    monkeypatch.setattr(plans, "FEW", 0)
    monkeypatch.setattr(grid_module, "QUERIES", 16)


@pytest.mark.long
@pytest.mark.usefixtures("stages")
@pytest.mark.parametrize("overlap", ["iou", "ios"])
def test_best_boxes_first(overlap):
    for seed in range(80):
        boxes, scores, groups, threshold, options = random_case(seed)
        matrix = overlaps(boxes, overlap=overlap, **options)
        merged = nmm(boxes, scores, threshold, groups=groups, overlap=overlap, **options)
        owner = np.array(chained(matrix, scores, groups, threshold), dtype=int)
        everyone = np.arange(len(boxes))
        assert np.where(merged.suppressed_by < 0, everyone, merged.suppressed_by).tolist() == owner.tolist()
        if overlap == "iou" and len(boxes) <= 60:
            kept = fast_nms(boxes, scores, threshold, groups=groups, **options)
            assert kept.tolist() == fast(matrix, scores, groups, threshold, 1)


@pytest.mark.long
@pytest.mark.usefixtures("stages")
def test_averages_query_only_survivors(monkeypatch):
    for seed in range(60):
        boxes, scores, groups = ensemble(seed)
        ours = nmw([boxes], [scores], [groups], iou_threshold=0.3)
        with monkeypatch.context() as patch:
            patch.setattr(plans, "VERY_CROWDED", np.inf)
            theirs = nmw([boxes], [scores], [groups], iou_threshold=0.3)
        for one, other in zip(ours, theirs, strict=True):
            assert one.tobytes() == other.tobytes()


def ensemble(seed):
    """Clusters that grow and shift, boxes given twice, scores of 0, several groups."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 120))
    places = random.integers(0, 3, count) * random.choice([4.0, 30.0])
    corner = places[:, None] + random.integers(0, 6, (count, 2)) * random.choice([0.0, 0.7, 1.0])
    boxes = np.concatenate([corner, corner + random.integers(0, 12, (count, 2))], axis=1)
    scores = random.integers(0, 5, count) / 5 if seed % 2 else random.random(count)
    return boxes, scores * (seed % 11 > 0), random.integers(0, random.choice([1, 3]), count)


@pytest.mark.long
@pytest.mark.parametrize("pairs", first_of(1, [1, 40]))
@pytest.mark.parametrize("threshold", first_of(1, [0.55, 0.0]))
def test_fusing_many_boxes_at_a_time(pairs, threshold, monkeypatch):
    for seed in range(40):
        boxes, scores, groups = ensemble(seed)
        expected = weighted_boxes_fusion([boxes], [scores], [groups], iou_threshold=threshold)
        with monkeypatch.context() as patch:
            patch.setattr(fusion, "LONG", seed % 40)
            patch.setattr(fusion, "PAIRS_TOGETHER", pairs)
            fused = weighted_boxes_fusion([boxes], [scores], [groups], iou_threshold=threshold)
        for ours, theirs in zip(fused, expected, strict=True):
            assert ours.tobytes() == theirs.tobytes()


CROWDS = {
    "identical": lambda random, count: np.tile([[100.0, 100, 200, 200]], (count, 1)),
    "jittered": lambda random, count: np.array([100, 100, 200, 200]) + random.normal(0, 2, (count, 4)),
    "places": lambda random, count: (
        np.array([100, 100, 200, 200])
        + random.integers(0, 9, (count, 1)) * 300.0
        + random.normal(0, 2, (count, 4))
    ),
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_crowd_stays_near_linear(crowd):
    """40,000 boxes; all pairs of them took half a minute."""
    random = np.random.default_rng(0)
    boxes = CROWDS[crowd](random, 40_000)
    scores = random.random(len(boxes))
    start = time.process_time()
    kept = fast_nms(boxes, scores, 0.5)
    merged = nmm(boxes, scores, 0.5)
    fused = weighted_boxes_fusion([boxes], [scores])
    averaged = nmw([boxes], [scores])
    assert time.process_time() - start < 5  # a third of a second on a quiet machine
    assert kept.tolist() == merged.indices.tolist()
    assert len(kept) == len(fused.boxes) == len(averaged.boxes) == (9 if crowd == "places" else 1)
