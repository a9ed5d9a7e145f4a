"""Thousands of generated cases against the slow oracles; whichever plan is chosen."""

import warnings

import numpy as np
import pytest

from boxscore._utils import ordering as order_module
from boxscore.data.boxes import box_convert
from boxscore.suppression import _grid as grid_module
from boxscore.suppression import _pairs as pairs_module
from boxscore.suppression import _plans as plans
from boxscore.suppression import (
    batched_nms,
    cluster_nms,
    diou_nms,
    greedy_nmm,
    matrix_nms,
    nmm,
    nms,
    nmw,
    soft_nms,
    weighted_boxes_fusion,
)
from boxscore.suppression._pairs import share_pairs
from boxscore.suppression._ranked import BoxOptions, prepare
from boxscore.suppression.hard import select
from boxscore.suppression.soft import soften
from oracles.suppression import (
    average_into_survivors,
    chained,
    fast,
    fuse,
    hard,
    matrix_decay,
    overlaps,
    random_case,
    soft,
)
from support import limits
from support.examples import examples

CASES = max(500, examples(1500))
pytestmark = pytest.mark.filterwarnings("ignore:boxes are given as:boxscore.errors.BoxscoreWarning")


@pytest.fixture
def stages(monkeypatch):
    """Make the grid settle in stages, however few the boxes; small chunks, so that cuts are met."""
    monkeypatch.setattr(plans, "CROWDED", -1.0)
    monkeypatch.setattr(plans, "FIRST_STAGE", 3)
    monkeypatch.setattr(plans, "FEW", 4)
    monkeypatch.setattr(pairs_module, "FEW", 4)
    monkeypatch.setattr(grid_module, "QUERIES", 16)


@pytest.fixture
def tables(monkeypatch):
    """Make lockstep decide in tables, however small the groups, until no box is left."""
    monkeypatch.setattr(plans, "WIDE", 1)
    monkeypatch.setattr(plans, "LAST_PAIRS", 0)


@pytest.fixture
def radix(monkeypatch):
    """Sort by radix, however few the boxes, and cut keys so short that they must be repaired."""
    monkeypatch.setattr(order_module, "SMALL", 0)
    monkeypatch.setattr(order_module, "KEY_BITS", 34)
    monkeypatch.setattr(order_module, "SCORE_BITS", 18)


def check_hard(seed, plan, overlap):
    boxes, scores, groups, threshold, options = random_case(seed)
    matrix = overlaps(boxes, overlap=overlap, **options)
    expected, dropped_by = hard(matrix, scores, groups, threshold)
    ranked = prepare(boxes, scores, groups, BoxOptions(overlap=overlap, **options))
    kept, _, _, by = select(ranked, threshold, owners=True, plan=plan)
    assert kept.tolist() == expected
    assert by.tolist() == dropped_by.tolist()
    assert select(ranked, threshold, plan=plan).indices.tolist() == expected


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_plans_equal_the_loop(part):
    for seed in range(part, CASES, 10):
        for plan in ("auto", "lockstep", "sweep", "grid"):
            check_hard(seed, plan, "iou")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_plans_equal_the_loop_in_20000_cases(part):
    for seed in range(1000 * part, 1000 * part + 1000):
        for plan in ("auto", "lockstep", "sweep", "grid"):
            check_hard(seed, plan, "iou")
        check_hard(seed, "grid", ("ios", "diou")[seed % 2])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("stages", "radix")
@pytest.mark.parametrize("part", range(20))
def test_stages_equal_the_loop_in_20000_cases(part):
    for seed in range(1000 * part, 1000 * part + 1000):
        check_hard(seed, "grid", ("iou", "ios", "diou")[seed % 3])


@pytest.mark.long
@pytest.mark.parametrize("overlap", ["ios", "diou"])
def test_other_overlaps_equal_the_loop(overlap):
    for seed in range(CASES // 5):
        for plan in ("lockstep", "sweep", "grid"):
            check_hard(seed, plan, overlap)


@pytest.mark.long
@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("overlap", ["iou", "ios", "diou"])
def test_tables_equal_the_loop(overlap):
    for seed in range(CASES // 5):
        check_hard(seed, "lockstep", overlap)


@pytest.mark.parametrize("scale", [1e-320, 1e-6, 1.0, 1e99])
@pytest.mark.parametrize("groups", [40, 41])  # 41: of sizes that differ
def test_tables_of_large_groups_equal_the_sweep(scale, groups):
    random = np.random.default_rng(groups)
    size = random.uniform(0.02, 0.2, (8000, 2))
    corner = random.random((8000, 2)) - 0.5
    boxes = np.hstack([corner, corner + size]) * scale
    boxes[::50] = boxes[7]
    scores = random.random(8000).round(2)
    group = np.arange(8000) % groups
    if groups == 41:
        group = random.binomial(groups - 1, 0.5, 8000) // 2
    ranked = prepare(boxes, scores, group, BoxOptions())
    for threshold in (0.0, 0.3, 0.5):
        kept, _, _, by = select(ranked, threshold, owners=True, plan="lockstep")
        expected, _, _, expected_by = select(ranked, threshold, owners=True, plan="sweep")
        assert kept.tolist() == expected.tolist()
        assert by.tolist() == expected_by.tolist()


@pytest.mark.long
@pytest.mark.usefixtures("stages")
@pytest.mark.parametrize("overlap", ["iou", "ios", "diou"])
def test_stages_equal_the_loop(overlap):
    for seed in range(CASES // 5):
        check_hard(seed, "grid", overlap)


@pytest.mark.long
@pytest.mark.usefixtures("radix")
def test_radix_order_equals_the_loop():
    for seed in range(CASES // 5):
        check_hard(seed, "auto", "iou")
        check_hard(seed, "grid", "iou")


@pytest.mark.long
def test_held_pairs_equal_the_loop():
    held = 0
    for seed in range(CASES // 5):
        boxes, scores, groups, threshold, options = random_case(seed)
        overlap = ("iou", "ios", "diou")[seed % 3]
        matrix = overlaps(boxes, overlap=overlap, **options)
        ranked = prepare(boxes, scores, groups, BoxOptions(overlap=overlap, **options))
        for lowest in (0.0, threshold / 2, threshold):
            shared = share_pairs(ranked, lowest)
            held += sum(len(block.held.better) for block in shared.blocks())
            for higher in {threshold, (threshold + 1) / 2}:
                kept, _, _, by = select(shared, higher, owners=True)
                expected, dropped_by = hard(matrix, scores, groups, higher)
                assert kept.tolist() == expected
                assert by.tolist() == dropped_by.tolist()
    assert held > 60 * CASES


@pytest.mark.long
@pytest.mark.parametrize("plan", ["few", "grid", "held", "held in a grid"])
def test_lowered_scores_are_the_same_to_the_last_bit_whatever_the_plan(plan, monkeypatch):
    different = 0
    for seed in range(CASES // 5):
        boxes, scores, groups, threshold, options = random_case(seed)
        given = prepare(boxes, scores, groups, BoxOptions(**options))
        for method in ("linear", "gaussian"):
            soft_options = {"method": method, "iou_threshold": threshold, "score_threshold": 0.0}
            expected = soften(given, **soft_options)
            with monkeypatch.context() as patch:
                if "grid" in plan:
                    patch.setattr(pairs_module, "FEW", 4)
                    patch.setattr(grid_module, "QUERIES", 16)
                ranked = share_pairs(given, 0.0) if "held" in plan else given
                got = soften(ranked, **soft_options)
            different += not np.array_equal(expected[1], np.sort(scores)[::-1])
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    assert different > CASES // 15


@pytest.mark.long
def test_pairs_beyond_what_may_be_held_are_found_again(monkeypatch):
    monkeypatch.setattr(pairs_module, "MOST_HELD", 0)
    boxes, scores, groups, *_ = random_case(7)
    shared = share_pairs(prepare(boxes, scores, groups, BoxOptions()), 0.0)
    assert all(block.held is None for block in shared.blocks())
    expected = hard(overlaps(boxes), scores, groups, 0.3)[0]
    assert select(shared, 0.3).indices.tolist() == expected


@pytest.mark.long
def test_public_functions_equal_the_loop():
    for seed in range(CASES // 5):
        boxes, scores, groups, threshold, options = random_case(seed)
        for overlap in ("iou", "ios"):
            matrix = overlaps(boxes, overlap=overlap, **options)
            kept = batched_nms(boxes, scores, groups, iou_threshold=threshold, overlap=overlap, **options)
            assert kept.tolist() == hard(matrix, scores, groups, threshold)[0]
            kept = nms(boxes, scores, iou_threshold=threshold, overlap=overlap, **options)
            assert kept.tolist() == hard(matrix, scores, groups * 0, threshold)[0]
        matrix = overlaps(boxes, overlap="diou", **options)
        kept = diou_nms(boxes, scores, groups=groups, iou_threshold=threshold, **options)
        assert kept.tolist() == hard(matrix, scores, groups, threshold)[0]


@pytest.mark.long
@pytest.mark.parametrize("count", [700, 2500])
@pytest.mark.parametrize("groups", [1, 3, 400])
def test_larger_cases_equal_the_loop(count, groups):
    random = np.random.default_rng(count + groups)
    for threshold, side, decimals in ((0.5, 600, 9), (0.3, 300, 0), (0.05, 2000, 1), (0.9, 100, 0)):
        corner, size = random.random((count, 2)) * side - side / 2, 10 ** random.uniform(0.5, 2, (count, 2))
        boxes = np.concatenate([corner, corner + size], axis=1).round(decimals)
        scores, group = random.random(count).round(2), random.integers(0, groups, count)
        matrix = overlaps(boxes)
        expected, dropped_by = hard(matrix, scores, group, threshold)
        for plan in ("auto", "lockstep", "sweep", "grid"):
            kept, _, _, by = select(
                prepare(boxes, scores, group, BoxOptions()), threshold, owners=True, plan=plan
            )
            assert kept.tolist() == expected
            assert by.tolist() == dropped_by.tolist()


def check_scores(result, lowered, floor):
    """The same boxes with the same scores, but for boxes within rounding of the floor; sorted."""
    indices, scores = result
    clear = np.abs(lowered - floor) > 1e-12
    expected = np.flatnonzero((lowered >= floor) & clear)
    assert set(indices.tolist()) >= set(expected.tolist())
    assert (lowered[indices] >= floor - 1e-12).all()
    assert np.allclose(scores, lowered[indices], rtol=1e-12, atol=1e-15)
    order = np.lexsort((indices, -scores))
    assert (order == np.arange(len(order))).all()


@pytest.mark.long
@pytest.mark.parametrize("method", ["linear", "gaussian"])
@pytest.mark.parametrize("hold", [True, False], ids=["rounds", "one by one"])
def test_soft_equals_the_loop(method, hold, monkeypatch):
    if not hold:
        monkeypatch.setattr(pairs_module.PairStore, "join", lambda _: None)
    for seed in range(CASES // 10):
        check_soft(seed, method)


@pytest.mark.long
@pytest.mark.parametrize("hold", [True, False], ids=["rounds", "one by one"])
def test_overlaps_that_round_above_1_lower_nothing_at_threshold_1(hold, monkeypatch):
    if not hold:
        monkeypatch.setattr(pairs_module.PairStore, "join", lambda _: None)
    boxes, scores, groups, threshold, options = random_case(11816)
    measure = next(prepare(boxes, scores, groups, BoxOptions(**options)).blocks()).measure
    assert measure.between(np.array([0]), np.array([1]))[0] > 1 == threshold
    check_soft(11816, "linear")
    # Copies of one box: where they are lowered, to exactly 0, which a threshold of 0 keeps.
    kept, lowered = soft_nms(boxes, scores, 0.5, groups=groups, method="linear", score_threshold=0, **options)
    assert len(kept) == len(boxes)
    assert (lowered[1:] == 0).all()


def check_soft(seed, method):
    boxes, scores, groups, threshold, options = random_case(seed)
    if len(boxes) > 60:
        return
    floor = 0.05
    matrix = overlaps(boxes, **options)
    if method == "linear":
        lowered = soft(matrix, scores, groups, lambda iou: 1 - iou, threshold, floor)
    else:
        lowered = soft(matrix, scores, groups, lambda iou: np.exp(-(iou**2) / 0.4), 0, floor)
    result = soft_nms(
        boxes,
        scores,
        groups=groups,
        method=method,
        iou_threshold=threshold,
        sigma=0.4,
        score_threshold=floor,
        **options,
    )
    check_scores(result, lowered, floor)


@pytest.mark.long
@pytest.mark.parametrize("method", ["linear", "gaussian"])
def test_matrix_equals_the_loop(method):
    for seed in range(CASES // 10):
        check_matrix(seed, method)


def check_matrix(seed, method):
    boxes, scores, groups, _, options = random_case(seed)
    if len(boxes) > 60:
        return
    decay = (lambda iou: 1 - iou) if method == "linear" else (lambda iou: np.exp(-2 * iou**2))
    lowered = matrix_decay(overlaps(boxes, **options), scores, groups, decay)
    for floor in (0.0, 0.3):
        result = matrix_nms(boxes, scores, groups=groups, method=method, score_threshold=floor, **options)
        check_scores(result, lowered, floor)


@pytest.mark.long
@pytest.mark.parametrize("rounds", [1, 2, 3, 200])
def test_cluster_equals_the_loop(rounds):
    for seed in range(CASES // 25):
        check_cluster(seed, rounds)


def check_cluster(seed, rounds):
    boxes, scores, groups, threshold, options = random_case(seed)
    if len(boxes) > 60:
        return
    matrix = overlaps(boxes, **options)
    kept = cluster_nms(boxes, scores, groups=groups, iou_threshold=threshold, max_rounds=rounds, **options)
    assert kept.tolist() == fast(matrix, scores, groups, threshold, min(rounds, len(boxes) + 1))
    if rounds == 200:
        assert (
            kept.tolist() == batched_nms(boxes, scores, groups, iou_threshold=threshold, **options).tolist()
        )
        assert (
            kept.tolist()
            == cluster_nms(boxes, scores, groups=groups, iou_threshold=threshold, **options).tolist()
        )


@pytest.mark.long
@pytest.mark.parametrize("overlap", ["iou", "ios"])
def test_merging_equals_the_loop(overlap):
    for seed in range(CASES // 10):
        check_merging(seed, overlap)


def check_merging(seed, overlap):
    boxes, scores, groups, threshold, options = random_case(seed)
    matrix = overlaps(boxes, overlap=overlap, **options)
    _, dropped_by = hard(matrix, scores, groups, threshold)
    everyone = np.arange(len(boxes))
    for function, owner in (
        (greedy_nmm, np.where(dropped_by < 0, everyone, dropped_by)),
        (nmm, np.array(chained(matrix, scores, groups, threshold), dtype=int)),
    ):
        merged = function(boxes, scores, groups=groups, iou_threshold=threshold, overlap=overlap, **options)
        assert merged.suppressed_by.tolist() == np.where(owner == everyone, -1, owner).tolist()
        order = np.lexsort((everyone, -scores))
        assert merged.indices.tolist() == [i for i in order if owner[i] == i]
        assert merged.scores.tolist() == [float(scores[i]) for i in merged.indices]
        corners = box_convert(boxes, options["box_format"], "xyxy")
        for i, box in zip(
            merged.indices, box_convert(merged.boxes, options["box_format"], "xyxy"), strict=True
        ):
            members = corners[owner == i]
            around = [*members[:, :2].min(0), *members[:, 2:].max(0)]
            assert box == pytest.approx(around, rel=1e-9, abs=1e-9)


def small_ensemble(seed):
    random = np.random.default_rng(seed)
    models = int(random.integers(1, 4))
    boxes, scores, groups = [], [], []
    centers = random.random((4, 2))
    for _ in range(models):
        count = int(random.integers(0, 14))
        corner = centers[random.integers(0, 4, count)] + random.normal(0, 0.03, (count, 2))
        boxes.append(np.concatenate([corner, corner + 0.3 + random.normal(0, 0.03, (count, 2))], axis=1))
        scores.append(random.integers(0, 6, count) / 5 if random.random() < 0.3 else random.random(count))
        groups.append(random.integers(0, 3, count))
    weights = None if random.random() < 0.3 else random.integers(1, 4, models).tolist()
    return boxes, scores, groups, weights


CONFIDENCES = ["average", "max", "box_and_model_average", "absent_model_aware_average"]


@pytest.mark.long
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("overflow", [True, False])
def test_fusion_equals_the_loop(confidence, overflow):
    for seed in range(CASES // 20):
        check_fusion(seed, confidence, overflow)


def check_fusion(seed, confidence, overflow):
    boxes, scores, groups, weights = small_ensemble(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fused = weighted_boxes_fusion(
            boxes, scores, groups, weights=weights, confidence=confidence, allow_overflow=overflow
        )
    # Several boxes of a model with a large weight may average above 1, which the user is told.
    assert bool(caught) == (not overflow and fused.scores.max(initial=0) > 1 + 1e-9)
    models = np.repeat(np.arange(len(boxes)), [len(some) for some in boxes])
    expected = fuse(
        np.concatenate(boxes),
        np.concatenate(scores).tolist(),
        np.concatenate(groups).tolist(),
        models.tolist(),
        weights or [1] * len(boxes),
        0.55,
        confidence,
        overflow,
    )
    check_fused(fused, expected[0], expected[1], expected[2], expected[3])


def check_fused(fused, boxes, scores, groups, clusters):
    assert len(fused.boxes) == len(boxes)
    assert (np.diff(fused.scores) <= 0).all()
    for box, score, group, cluster in zip(boxes, scores, groups, clusters, strict=True):
        row = fused.fused_into[cluster[0]]
        assert sorted(np.flatnonzero(fused.fused_into == row)) == sorted(cluster)
        assert fused.boxes[row] == pytest.approx(box, abs=1e-12)
        assert fused.scores[row] == pytest.approx(score, abs=1e-12)
        assert fused.groups[row] == group


@pytest.mark.long
def test_non_maximum_weighted_equals_the_loop():
    for seed in range(CASES // 10):
        check_non_maximum_weighted(seed)


def check_non_maximum_weighted(seed):
    boxes, scores, groups, _ = small_ensemble(seed)
    fused = nmw(boxes[:1], scores[:1], groups[:1])
    got = average_into_survivors(boxes[0], scores[0].tolist(), groups[0].tolist(), 0.55)
    owners = [groups[0][cluster[0]] for cluster in got[2]]
    check_fused(fused, got[0], got[1], owners, got[2])


@pytest.mark.parametrize("way", ["sweep", "grid", "crowd"])
def test_equal_overlaps_join_the_best_survivor_however_pairs_are_cut(way, monkeypatch):
    if way != "sweep":
        monkeypatch.setattr(plans, "FEW", 0)
        monkeypatch.setattr(pairs_module, "FEW", 0)
        monkeypatch.setattr(plans, "VERY_CROWDED", -1.0 if way == "crowd" else np.inf)
    for seed in range(2):
        random = np.random.default_rng(seed)
        corner = random.integers(0, 10, (60, 2)).astype(float)
        boxes, scores = np.concatenate([corner, corner + 8], axis=1), random.random(60)
        groups = random.integers(0, 1 + seed % 2, 60)
        expected = average_into_survivors(boxes, scores.tolist(), groups.tolist(), 0.2)
        names = [groups[cluster[0]] for cluster in expected[2]]
        for count in (1, 1 << 20):
            with monkeypatch.context() as patch:
                limits.few_overlaps_at_a_time(patch, count)
                fused = nmw([boxes], [scores], [groups], iou_threshold=0.2)
            check_fused(fused, *expected[:2], names, expected[2])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_the_family_equals_the_loop_in_20000_cases(part):
    for seed in range(1000 * part, 1000 * part + 1000):
        check_soft(seed, ("linear", "gaussian")[seed % 2])
        check_matrix(seed, ("linear", "gaussian")[seed % 2])
        check_cluster(seed, (1, 2, 200)[seed % 3])
        check_merging(seed, ("iou", "ios")[seed % 2])
        check_fusion(seed, CONFIDENCES[seed % 4], bool(seed // 4 % 2))
        check_non_maximum_weighted(seed)
