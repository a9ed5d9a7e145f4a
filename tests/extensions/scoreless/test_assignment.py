"""The most pairs, and of these the greatest sum of IoU: against every matching there is, in any order."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from boxscore import Detections, GroundTruth, evaluate
from boxscore.protocols import load_protocol
from support.each import each
from support.insides import Pairs, components, match_whole_groups, most_and_heaviest

RULES = load_protocol("scoreless").matching


def best_by_trying(edges: list[tuple[int, int, float]]) -> tuple[int, Fraction]:
    """Return the most pairs, and their greatest sum, of all matchings."""
    return _best_by_trying(tuple(edges))


@functools.lru_cache(maxsize=16)  # several thresholds leave the same pairs
def _best_by_trying(edges: tuple[tuple[int, int, float], ...]) -> tuple[int, Fraction]:
    of_row: dict[int, list[tuple[int, float]]] = {}
    for a, b, value in edges:
        of_row.setdefault(a, []).append((b, value))
    best = (0, Fraction(0))
    for choice in itertools.product(*([None, *options] for options in of_row.values())):
        taken = [one for one in choice if one is not None]
        if len(taken) >= best[0] and len({b for b, _ in taken}) == len(taken):
            best = max(best, (len(taken), sum((Fraction(value) for _, value in taken), Fraction(0))))
    return best


def random_edges(rng: np.random.Generator) -> list[tuple[int, int, float]]:
    rows, columns = rng.integers(1, 6, size=2)
    # A few values, so that many sums are equal; and many, so that few are.
    values = rng.choice([0.5, 0.625, 0.75, 1.0], 25) if rng.random() < 0.5 else rng.uniform(0.5, 1, 25)
    values = values.reshape(5, 5)
    there = rng.random((rows, columns)) < rng.choice([0.3, 0.6, 1.0])
    return [(a, b, float(values[a, b])) for a, b in np.argwhere(there).tolist()]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_every_component_against_all_matchings(seed: int) -> None:
    """5,000 cases: the pairs of the search, and those of the whole matching at every threshold."""
    rng = np.random.default_rng(seed)
    for _ in range(500):
        edges = random_edges(rng)
        if not edges:
            continue
        a, b, value = (np.array(column) for column in zip(*edges, strict=True))
        chosen = most_and_heaviest(a, b, np.floor(value * 2.0**53).astype(np.int64))
        total = (len(chosen), sum((Fraction(value[edge]) for edge in chosen), Fraction(0)))
        assert total == best_by_trying(edges)
        for bits, t in zip(*matched(a, b, value), strict=True):
            at = [edges[edge] for edge in np.flatnonzero(bits)]
            assert len({x for x, _, _ in at}) == len({y for _, y, _ in at}) == len(at)
            reached = [edge for edge in edges if edge[2] >= RULES.effective_thresholds[t]]
            assert (len(at), sum((Fraction(x) for *_, x in at), Fraction(0))) == best_by_trying(reached)


@pytest.mark.parametrize("seed", range(4))
def test_the_greatest_sum_of_all_matchings_however_many_pairs(seed: int) -> None:
    """One good pair instead of two poor ones, where the sum says so: overlaps from nearly 0 on."""
    rng, fewer = np.random.default_rng(seed), 0
    for _ in range(250):
        edges = [(a, b, float(rng.uniform(0, 1) ** 3)) for a, b, _ in random_edges(rng)]
        if not edges:
            continue
        a, b, value = (np.array(column) for column in zip(*edges, strict=True))
        chosen = most_and_heaviest(a, b, np.floor(value * 2.0**53).astype(np.int64), sum_alone=True)
        taken = [edges[edge] for edge in chosen]
        assert len({x for x, _, _ in taken}) == len({y for _, y, _ in taken}) == len(taken)
        total = math.fsum(x for *_, x in taken)
        assert total == pytest.approx(greatest_sum(edges), abs=1e-12)
        fewer += len(taken) < best_by_trying(edges)[0]
    assert fewer > 0


def greatest_sum(edges: list[tuple[int, int, float]]) -> float:
    """Return the greatest sum of all matchings."""
    of_row: dict[int, list[tuple[int, float]]] = {}
    for a, b, value in edges:
        of_row.setdefault(a, []).append((b, value))
    best = 0.0
    for choice in itertools.product(*([None, *options] for options in of_row.values())):
        taken = [one for one in choice if one is not None]
        if len({b for b, _ in taken}) == len(taken):
            best = max(best, math.fsum(value for _, value in taken))
    return best


def matched(a: np.ndarray, b: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, range]:
    """Whether each edge is matched at each threshold, [T, P]."""
    flags = np.ones((5, 1), dtype=bool)
    boxes = (lambda rows: rows[:, None] * np.ones(4), lambda rows: rows[:, None] * np.ones(4))
    outcome = match_whole_groups(
        [Pairs(a, b, value)], np.zeros(5, dtype=np.int64), flags, ~flags[:, 0], RULES, boxes=boxes
    )
    count = len(RULES.iou_thresholds)
    return (outcome.bits[:, 0] >> np.arange(count)[:, None].astype(outcome.bits.dtype)) & 1, range(count)


def crowded(rng: np.random.Generator) -> tuple[GroundTruth, Detections]:
    """Two images of boxes near each other, some equal, some in crowds."""
    corners = np.round(rng.uniform(0, 12, (40, 2)))
    boxes = np.hstack([corners, corners + np.round(rng.uniform(6, 12, (40, 2)))])
    image, kind = rng.integers(0, 2, 40), rng.integers(0, 2, 40)
    truth = GroundTruth.from_arrays(
        image[:18], kind[:18], boxes[:18], crowd=rng.random(18) < 0.15, images=[0, 1], categories=[0, 1]
    )
    shifted = boxes[rng.integers(0, 18, 40)] + np.round(rng.uniform(-1, 1, (40, 4)))
    found = Detections.from_arrays(image, kind, shifted, images=[0, 1], categories=[0, 1])
    return truth, found


@each(range(20))
def test_no_order_of_the_rows_decides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, found = crowded(rng)

    def outcome(truths: np.ndarray, rows: np.ndarray) -> set[tuple[object, ...]]:
        matches = evaluate(truth[truths], found[rows], digest=False).matched
        pairs = matches.matched_bits[:, 0] > 0
        return {
            (
                *found.boxes[rows[matches.row[d]]].tolist(),
                *truth.boxes[truths[matches.truth_row[g]]].tolist(),
                bits,
            )
            for d, g, bits in zip(
                matches.pair_detection[pairs].tolist(),
                matches.pair_truth[pairs].tolist(),
                matches.matched_bits[pairs, 0].tolist(),
                strict=True,
            )
        }

    every = np.arange(18), np.arange(40)
    first = outcome(*every)
    assert first == outcome(every[0][::-1], every[1][::-1])
    assert first == outcome(rng.permutation(18), rng.permutation(40))


def test_groups_that_blocks_cut_are_matched_whole() -> None:
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(6), 3)  # of 18 ground truths
    found = np.sort(rng.integers(0, 30, 60))
    truth = np.array([rng.choice(np.flatnonzero(group == row // 5)) for row in found])
    once = np.unique(np.stack([found, truth]), axis=1)
    pairs = Pairs(once[0], once[1], rng.uniform(0.5, 1, once.shape[1]))
    flags, boxes = np.ones((18, 1), dtype=bool), (lambda rows: rows[:, None] * np.ones(4),) * 2
    whole = match_whole_groups([pairs], group, flags, ~flags[:, 0], RULES, boxes=boxes)
    for size in (1, 2, 7):
        cuts = [
            pairs.take(np.arange(low, min(low + size, once.shape[1])))
            for low in range(0, once.shape[1], size)
        ]
        cut = match_whole_groups(cuts, group, flags, ~flags[:, 0], RULES, boxes=boxes)
        assert np.array_equal(whole.bits, cut.bits)
        assert np.array_equal(whole.pairs.iou, cut.pairs.iou)


def test_a_crowd_takes_what_is_left_over() -> None:
    """Two detections in a crowd, one of them on an object: the other is ignored, a third is false."""
    truth = GroundTruth.from_arrays([1] * 2, [1] * 2, [[0, 0, 10, 10], [0, 0, 40, 40]], crowd=[0, 1])
    found = Detections.from_arrays([1] * 3, [1] * 3, [[0, 0, 10, 10], [20, 20, 30, 30], [60, 60, 70, 70]])
    outcome = evaluate(truth, found, digest=False).matched.detection_outcomes(0, 0)
    assert outcome.true.tolist() == [True, False, False]
    assert outcome.counted.tolist() == [True, False, True]


@pytest.mark.long
def test_very_many_equal_boxes_take_no_time() -> None:
    """300 times one box on 300 times one object: 90,000 edges in one component."""
    truth = GroundTruth.from_arrays([1] * 300, [1] * 300, [[0, 0, 10, 10]] * 300)
    found = Detections.from_arrays([1] * 400, [1] * 400, [[0, 0, 10, 10]] * 400)
    outcome = evaluate(truth, found, digest=False).matched.detection_outcomes(0, 0)
    assert outcome.true.sum() == 300


def test_components_of_chains() -> None:
    random = np.random.default_rng(4)
    for _ in range(200):
        count = int(random.integers(1, 25))
        first, second = random.integers(0, 12, (2, count))
        number = components(first, second)
        joined = {row: row for row in range(count)}

        def root(row: int, joined: dict[int, int] = joined) -> int:
            return row if joined[row] == row else root(joined[row])

        for i, j in itertools.combinations(range(count), 2):
            if first[i] == first[j] or second[i] == second[j]:
                low, high = sorted((root(i), root(j)))
                joined[high] = low
        assert number.tolist() == [root(row) for row in range(count)]
    chain = random.permutation(60_000)
    edges = np.concatenate([chain, chain[:-1]]), np.concatenate([chain, chain[1:]])
    assert len(set(components(*edges).tolist())) == 1  # a round for each link would take minutes


@pytest.mark.parametrize("false", [900, 5_000, 60_000])
def test_a_single_true_detection_is_expected_exactly(false: int) -> None:
    """Also where orders are drawn: precision 1 / M of the first true one has a heavy tail."""
    boxes = np.array([[0.0, 0.0, 9.0, 9.0]] + [[50.0, 50.0, 60.0, 60.0]] * false)
    truth = GroundTruth.from_arrays([1], ["a"], boxes[:1])
    found = Detections.from_arrays([1] * (false + 1), ["a"] * (false + 1), boxes)
    harmonic = math.fsum(1 / n for n in range(1, false + 2)) / (false + 1)
    assert evaluate(truth, found, protocol="scoreless")["AP_expected"] == pytest.approx(harmonic, rel=1e-12)
