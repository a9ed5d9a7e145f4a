"""Matching in blocks of detections: the same bits, in bounded memory."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import tie_bounds
from boxscore.protocols import load_protocol
from boxscore.similarity.box import BoxSimilarity
from support import limits
from support.examples import first_of
from support.matches import assert_same_matches, match_tables
from support.searches import searches

MANY: dict[str, Any] = {"extends": "coco", "matching": {"max_detections": []}, "summary": [{"key": "AP"}]}
FILE_ORDER: dict[str, Any] = {
    "extends": "coco",
    "matching": {"per_class": False, "equal_scores": "file_order"},
}
POOLED: dict[str, Any] = {"extends": "coco", "matching": {"per_class": False}}
LAST: dict[str, Any] = {"extends": "voc2012", "matching": {"equal_iou": "last"}}
GROUPS: dict[str, Any] = {
    "extends": "openimages-v2",
    "group": {"weight": 0.25},
    "labels": {"unlisted": "count"},
    "ignore": {"area_ranges": {"all": [0, 1e9], "small": [0, 3000]}},
}
BY_RANGE: dict[str, Any] = {"extends": "coco", "ignore": {"outside": "iof"}}
RULES = ["coco", "voc2007", "voc2012", MANY, POOLED, FILE_ORDER, LAST, GROUPS, BY_RANGE]


def crowd(
    seed: int, *, images: int = 3, objects: int = 30, detections: int = 60
) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Draw boxes of whole numbers that nearly all overlap, some equal, with equal scores."""
    rng = np.random.default_rng(seed)
    base = np.array([0, 0, 60, 60])
    truth = boxscore.GroundTruth.from_arrays(
        rng.integers(0, images, objects),
        rng.integers(0, 3, objects),
        base + rng.integers(0, 9, (objects, 4)),
        crowd=rng.random(objects) < 0.1,
        difficult=rng.random(objects) < 0.1,
        group=np.arange(objects) % 5 == 0,
        images=range(images),
        categories=range(3),
    )
    found = boxscore.Detections.from_arrays(
        rng.integers(0, images, detections),
        rng.integers(0, 3, detections),
        base + rng.integers(0, 9, (detections, 4)),
        rng.integers(0, 12, detections) / 12,
        images=truth.images,
        categories=truth.categories,
    )
    return truth, found


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("most", first_of(1, [7, 0, 40]))
def test_blocks_match_the_same(rules: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = load_protocol(rules)
    for seed in range(3):
        truth, found = crowd(seed)
        whole = match_tables(truth, found, protocol)
        with monkeypatch.context() as patch:
            limits.few_pairs_at_a_time(patch, most)
            found_again = searches(patch, BoxSimilarity)
            for workers in (1, 2):
                assert_same_matches(match_tables(truth, found, protocol, workers=workers), whole)
            assert len(found_again) > 2


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("workers", first_of(1, [3, 2, 9]))
def test_processes_match_the_same(rules: Any, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = load_protocol(rules)
    monkeypatch.setattr(BoxSimilarity, "forks_from", 0)
    started: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: started.append(detections) or fork())
    for seed, detections in enumerate((60, 7, 1, 0)):
        truth, found = crowd(seed, detections=detections)
        whole = match_tables(truth, found, protocol)
        assert_same_matches(match_tables(truth, found, protocol, workers=workers), whole)
    assert started == [] if rules is BY_RANGE else 1 <= started.count(60) < workers
    with monkeypatch.context() as patch:  # too many for a share: found again, block by block
        limits.few_pairs_at_a_time(patch, 7)
        truth, found = crowd(0)
        shared = match_tables(truth, found, protocol, workers=workers)
        assert_same_matches(shared, match_tables(truth, found, protocol))


def test_an_image_without_objects_and_one_without_detections(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = crowd(0, images=8, objects=12, detections=14)
    protocol = load_protocol("coco")
    whole = match_tables(truth, found, protocol)
    limits.few_pairs_at_a_time(monkeypatch, 1)
    assert_same_matches(match_tables(truth, found, protocol), whole)


@pytest.mark.parametrize("rules", ["coco", "voc2012"])
def test_of_very_many_pairs_only_matches_are_kept(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number stays; what asks for the other pairs says that they are gone."""
    truth, found = crowd(1)
    whole = boxscore.evaluate(truth, found, protocol=rules)
    limits.few_pairs_at_a_time(monkeypatch, 20)
    limits.few_pairs_held(monkeypatch, 10)
    part = boxscore.evaluate(truth, found, protocol=rules)
    for name, values in whole.arrays().items():
        assert part.arrays()[name].tobytes() == values.tobytes()
    assert part.matches.equals(whole.matches)
    with pytest.raises(boxscore.InputError, match=r"overlapping pairs must be at most .* max_detections"):
        tie_bounds(part)


@pytest.mark.long
@pytest.mark.parametrize("rules", ["voc2012", MANY], ids=str)
def test_memory_is_that_of_a_block(rules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """300,000 pairs take some 50 MB together."""
    truth, found = crowd(2, images=1, objects=900, detections=1000)
    protocol = load_protocol(rules)
    limits.few_pairs_at_a_time(monkeypatch, 1 << 12)
    limits.few_pairs_held(monkeypatch, 1 << 12)
    monkeypatch.setattr("boxscore.similarity.pairs.CHUNK_PAIRS", 1 << 11)
    tracemalloc.start()
    match_tables(truth, found, protocol)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000
