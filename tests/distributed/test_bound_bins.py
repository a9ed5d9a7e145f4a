"""Bins add up to the same bits in any order and any groups, are of bounded number, and lose no count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import limits
from support.examples import examples
from support.insides import BoundBins, score_keys

SCORES = {
    "drawn": lambda random, count: random.random(count),
    "three decimals": lambda random, count: random.random(count).round(3),
    "one": lambda random, count: np.full(count, 0.5),
    "two": lambda random, count: random.choice([0.25, 0.75], count),
    "denormals": lambda random, count: random.integers(0, 1 << 20, count) * 5e-324,
    "signed": lambda random, count: random.choice([-0.0, 0.0, -1e300, 1e300, -1e-300], count),
    "near one": lambda random, count: 1 - random.random(count) ** 8 * 1e-9,
}


def detections(seed: int, count: int, kind: str, classes: int) -> tuple[Any, ...]:
    """Draw detections in class order: class, score, key, place, outcome."""
    random = np.random.default_rng(seed)
    category = random.integers(0, classes, count) * random.integers(0, 2, count)
    score = SCORES[kind](random, count)
    place = random.permutation(np.repeat(np.arange(count), 1 + (seed % 2)))[:count].astype(np.uint64) << 16
    outcome = random.choice([0b00_11, 0b01_11, 0b11_11, 0b00_01, 0], count)
    order = np.lexsort((place, -score, category))
    outcomes = np.stack([outcome[order] >> 2, outcome[order] & 3], axis=1).astype(np.uint8)
    return category[order], score[order], score_keys(score[order]), place[order], outcomes


def cells_of(drawn: tuple[Any, ...], chosen: Any, classes: int) -> BoundBins:
    category, _, score, place, outcomes = (column[chosen] for column in drawn)
    return BoundBins.of(category, score, place, outcomes, classes)


def assert_equal(one: BoundBins, other: BoundBins) -> None:
    for mine, yours in zip(one, other, strict=True):
        assert mine.dtype == yours.dtype
        np.testing.assert_array_equal(mine, yours)


@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(list(SCORES)),
    count=st.integers(0, 300),
    most=st.integers(1, 400),
    classes=st.integers(1, 4),
    data=st.data(),
)
@settings(max_examples=examples(150))
def test_any_order_and_grouping_gives_the_same_bits(
    seed: int, kind: str, count: int, most: int, classes: int, data: st.DataObject
) -> None:
    drawn = detections(seed, count, kind, classes)
    with pytest.MonkeyPatch.context() as patch:
        limits.few_bins_of_bounds(patch, most)
        together = cells_of(drawn, np.arange(count), classes)
        part = np.random.default_rng(seed).integers(0, data.draw(st.integers(1, 9)), count)
        waiting = [cells_of(drawn, np.flatnonzero(part == one), classes) for one in range(9)]
        while len(waiting) > 1:
            chosen = data.draw(st.lists(st.sampled_from(range(len(waiting))), min_size=2, unique=True))
            joined = BoundBins.added([waiting[one] for one in chosen])
            waiting = [one for number, one in enumerate(waiting) if number not in chosen] + [joined]
        assert_equal(waiting[0], together)
        assert len(together.depth) <= most + classes
        assert_holds(together, drawn, exact=count <= most)


def assert_holds(bins: BoundBins, drawn: tuple[Any, ...], *, exact: bool) -> None:
    """Check that every detection is in one bin of its class, in order, with its outcome."""
    category, _, score, place, outcomes = drawn
    keys = [(int(s) << 64) | int(p) for s, p in zip(score, place, strict=True)]
    firsts = [(int(s) << 64) | int(p) for s, p in zip(bins.score, bins.place, strict=True)]
    ends = np.cumsum(bins.sizes, dtype=np.int64)
    for k in range(len(bins.starts) - 1):
        own = np.flatnonzero((category == k) & outcomes.any(axis=1))
        done = 0
        for each in range(bins.starts[k], bins.starts[k + 1]):
            free = 128 - int(bins.depth[each])
            inside = [one for one in own if keys[one] >> free == firsts[each] >> free]
            assert inside == own[done : done + len(inside)].tolist()
            done += len(inside)
            entries = slice(int(ends[each]) - int(bins.sizes[each]), int(ends[each]))
            assert (bins.counts[entries] > 0).all()
            held = np.repeat(bins.outcomes[bins.outcome[entries]], bins.counts[entries], axis=0)
            assert sorted(held.tolist()) == sorted(outcomes[inside].tolist())
            assert not exact or len({keys[one] for one in inside}) == 1
        assert done == len(own)


def test_few_share_no_cell_with_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large class, and many equal scores, take nothing from those that need little.

    An eighth of its share is for the first detections of a class; a bin of many costs as much as four of one.
    """
    limits.few_bins_of_bounds(monkeypatch, 1_000)
    score = np.concatenate([np.ones(3_000), np.linspace(0.9, 0.5, 200), np.linspace(0.9, 0.1, 400)])
    category = np.repeat([0, 1], [3_200, 400])
    bins = BoundBins.of(
        category,
        score_keys(score),
        np.arange(3_600, dtype=np.uint64) << np.uint64(16),
        np.ones((3_600, 2), dtype=np.uint8),
        2,
    )
    assert np.diff(bins.starts)[1] == 400
    ones = int((bins.score[: bins.starts[1]] == score_keys(np.ones(1))[0]).sum())
    free = (1_000 - 400) // 8
    left = 1_000 - 400 - free - 200
    assert free + left // 4 // 2 <= ones <= free + left // 4
    assert (bins.depth[: free // 2] == 128).all()
    assert bins.starts[1] - ones == 200


def test_pooled_classes_share_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    limits.few_bins_of_bounds(monkeypatch, 60)
    drawn = detections(3, 300, "drawn", 3)
    zeros = np.zeros(300, dtype=np.uint64)
    pooled = BoundBins.of(drawn[0], drawn[2], zeros, drawn[4], 3).pooled(np.array([True, True, False]))
    assert pooled.starts.tolist() == [0, len(pooled.depth)]
    kept = np.flatnonzero(drawn[0] < 2)
    order = kept[np.argsort(drawn[2][kept], kind="stable")]
    assert_holds(
        pooled, (np.zeros(len(order)), None, drawn[2][order], zeros[order], drawn[4][order]), exact=False
    )


@pytest.mark.parametrize("kind", list(SCORES))
def test_keys_ascend_where_scores_descend(kind: str) -> None:
    score = np.sort(SCORES[kind](np.random.default_rng(1), 500))[::-1]
    keys = score_keys(score)
    np.testing.assert_array_equal(keys[1:] > keys[:-1], score[1:] < score[:-1])
    np.testing.assert_array_equal(keys[1:] == keys[:-1], score[1:] == score[:-1])
