"""Thresholds with a guarantee: against slow loops in fractions, another program, and what was promised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from boxscore.diagnostics import threshold_guarantee
from boxscore.extensions.decisions.guarantee import (
    GRID,
    STARTS,
    Sample,
    guaranteed_precision,
    guaranteed_recall,
    lowest_passed,
    p_value,
)
from support.each import each
from support.guarantees import drawn_sample

LEVELS = (0.1, 0.25, 0.4, 0.5, 0.6)
BOX = [0, 0, 9, 9]
AWAY = [500, 500, 509, 509]


# ---------------------------------------------------------------- slow and obvious


class Loss:
    """Scores of true and false positives of one image, and how many objects it has."""

    def __init__(self) -> None:
        self.right: list[float] = []
        self.wrong: list[float] = []
        self.objects = 0

    def missed(self, threshold: float) -> Fraction:
        return 1 - Fraction(sum(score >= threshold for score in self.right), self.objects)

    def false(self, threshold: float, most: int) -> int:
        return min(sum(score >= threshold for score in self.wrong), most)

    def share_false(self, threshold: float) -> Fraction | None:
        right, wrong = (sum(score >= threshold for score in side) for side in (self.right, self.wrong))
        return Fraction(wrong, right + wrong) if right + wrong else None


def losses(evaluation: boxscore.Evaluation) -> Iterator[tuple[str, list[Loss]]]:
    """Every class, then all, with its images; read from the public rows."""
    outcomes, truth, found = evaluation.outcomes, evaluation.ground_truth, evaluation.detections
    for k, label in enumerate([*evaluation.labels, "(all)"]):
        images = [Loss() for _ in range(len(truth.images))]
        for row, (image, category) in enumerate(zip(truth.image, truth.category, strict=True)):
            if outcomes.counted[row] and category in (k, k if label != "(all)" else category):
                images[image].objects += 1
        for row, (image, category) in enumerate(zip(found.image, found.category, strict=True)):
            if category == k or label == "(all)":
                if outcomes.detection[row] == 0:
                    images[image].right.append(float(found.scores[row]))
                elif outcomes.detection[row] == 1:
                    images[image].wrong.append(float(found.scores[row]))
        yield label, images


def scores_of(images: list[Loss]) -> list[float]:
    return sorted({score for one in images for score in one.right + one.wrong}, reverse=True)


def recall_threshold(images: list[Loss], level: Fraction) -> float:
    """The highest score with n / (n + 1) times the mean loss + 1 / (n + 1) <= 1 - level."""
    images = [one for one in images if one.objects]
    n = len(images)
    for score in scores_of(images) if n else []:
        mean = Fraction(sum(one.missed(score) for one in images), n)
        if Fraction(n, n + 1) * mean + Fraction(1, n + 1) <= 1 - level:
            return score
    return math.nan


def fppi_threshold(images: list[Loss], level: Fraction, most: int) -> float:
    n, chosen = len(images), math.nan
    for score in scores_of(images):
        mean = Fraction(sum(one.false(score, most) for one in images), n)
        if Fraction(n, n + 1) * mean + Fraction(most, n + 1) <= level:
            chosen = score
    return chosen


def exact_p_value(shares: list[Fraction], risk: Fraction) -> float:
    """Hoeffding's bound, and e times Bentkus's tail in whole fractions."""
    n = len(shares)
    if not n or sum(shares) >= n * risk:
        return 1.0
    mean = float(sum(shares) / n)
    inside = mean * math.log(mean / risk) if mean else 0.0
    hoeffding = math.exp(-n * (inside + (1 - mean) * math.log((1 - mean) / (1 - risk))))
    most = math.ceil(sum(shares))
    tail = sum(math.comb(n, k) * risk**k * (1 - risk) ** (n - k) for k in range(most + 1))
    return min(hoeffding, math.e * float(tail))


def precision_threshold(images: list[Loss], level: Fraction, confidence: float) -> float:
    passes = []
    for hundredth in range(100):
        shares = [share for one in images if (share := one.share_false(hundredth / 100)) is not None]
        passes.append(exact_p_value(shares, 1 - level) <= (1 - confidence) / 10)
    lowest = math.nan
    for start in range(99, 0, -10):
        hundredth = start
        while hundredth >= 0 and passes[hundredth]:
            lowest, hundredth = hundredth / 100, hundredth - 1
    return lowest


def same(first: Any, second: float) -> bool:
    return bool(first == second or (np.isnan(first) and math.isnan(second)))


def rows(result: Any) -> dict[str, dict[str, Any]]:
    return {row["class"]: row for row in result.printed_frame().to_dict("records")}


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(4))
def test_recall_is_that_of_slow_loops(scene: Any, seed: int) -> None:
    evaluation = boxscore.evaluate(*scene(seed, images=20 + 7 * seed, decimals=1 if seed % 2 else None))
    answered = 0
    for level in LEVELS:
        found = rows(threshold_guarantee(evaluation, recall=level))
        for label, images in losses(evaluation):
            expected = recall_threshold(images, Fraction(str(level)))
            assert same(found[label]["score"], expected), (label, level)
            assert found[label]["images"] == sum(one.objects > 0 for one in images)
            if math.isnan(expected):
                assert found[label]["note"]
                continue
            answered += 1
            some = [one for one in images if one.objects]
            mean = 1 - float(sum(one.missed(expected) for one in some) / len(some))
            assert found[label]["value"] == pytest.approx(mean, abs=1e-12)
            right = sum(score >= expected for one in some for score in one.right)
            assert found[label]["pooled"] == right / sum(one.objects for one in some)
            lowest = [1 - one.missed(-math.inf) for one in some]
            most, spread = sum(lowest) / (len(some) + 1), np.std([float(one) for one in lowest])
            is_near = float(most) - level < 2 * spread / math.sqrt(len(some))
            shown = math.floor(most * 10_000) / 10_000
            assert found[label]["note"] == (f"close to the limit {shown:g}" if is_near else "")
    assert answered > 5


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(4))
def test_false_positives_are_those_of_slow_loops(scene: Any, seed: int) -> None:
    evaluation = boxscore.evaluate(*scene(seed, images=40, decimals=1 if seed % 2 else None))
    for most in (1, 2, 8):
        for level in (0.25, 0.5, 1.5):
            if most / (len(evaluation.images) + 1) > level:
                continue
            found = rows(threshold_guarantee(evaluation, fppi=level, at_most=most))
            for label, images in losses(evaluation):
                expected = fppi_threshold(images, Fraction(level), most)
                assert same(found[label]["score"], expected), (label, level, most)
                if math.isnan(expected):
                    assert found[label]["note"]
                    continue
                mean = sum(one.false(expected, most) for one in images) / len(images)
                more = sum(one.false(expected, 99) > most for one in images)
                assert found[label]["value"] == pytest.approx(mean, abs=1e-12)
                assert found[label]["note"].startswith(f"more than {most} in {more} image" if more else "")
                assert bool(found[label]["note"]) == bool(more)


@pytest.mark.long
@pytest.mark.oracle
@pytest.mark.parametrize("seed", [0, 3, 6])
def test_precision_is_that_of_slow_loops(scene: Any, seed: int) -> None:
    evaluation = boxscore.evaluate(*scene(seed, images=70, decimals=2 if seed % 2 else None))
    answered = 0
    for level, confidence in ((0.1, 0.95), (0.2, 0.6)):
        found = rows(threshold_guarantee(evaluation, precision=level, confidence=confidence))
        for label, images in losses(evaluation):
            expected = precision_threshold(images, Fraction(str(level)), confidence)
            assert same(found[label]["score"], expected), (label, level)
            if math.isnan(expected):
                assert found[label]["note"]
                continue
            answered += 1
            shares = [share for one in images if (share := one.share_false(expected)) is not None]
            assert found[label]["images"] == len(shares)
            assert found[label]["value"] == pytest.approx(1 - float(sum(shares) / len(shares)), abs=1e-12)
    assert answered > 2


def test_the_threshold_gives_its_value_when_it_is_used(scene: Any) -> None:
    truth, found = scene(2, images=90)
    evaluation = boxscore.evaluate(truth, found)
    total = threshold_guarantee(evaluation, recall=0.15).total
    again = boxscore.evaluate(truth, found.take(np.flatnonzero(found.scores >= total.score)))
    assert np.nanmean(diagnostics.image_scores(again).recall) == pytest.approx(total.value, abs=1e-12)
    total = threshold_guarantee(evaluation, fppi=1, at_most=20).total
    again = boxscore.evaluate(truth, found.take(np.flatnonzero(found.scores >= total.score)))
    assert diagnostics.image_scores(again).false_positives.mean() == pytest.approx(total.value, abs=1e-12)
    total = threshold_guarantee(evaluation, precision=0.1).total
    again = boxscore.evaluate(truth, found.take(np.flatnonzero(found.scores >= total.score)))
    assert np.nanmean(diagnostics.image_scores(again).precision) == pytest.approx(total.value, abs=1e-12)


# ---------------------------------------------------------------- how many images


def of_perfect(count: int, **options: Any) -> boxscore.Evaluation:
    images, labels, scores = range(count), ["cat"] * count, np.linspace(0.9, 0.1, count)
    truth = boxscore.GroundTruth.from_arrays(images, labels, [BOX] * count)
    found = boxscore.Detections.from_arrays(images, labels, [BOX] * count, scores)
    return boxscore.evaluate(truth, found, **options)


@each([(0.5, 1), (0.7, 3), (0.8, 4), (0.9, 9), (0.95, 19), (0.975, 39), (0.99, 99), (0.999, 999)])
def test_recall_needs_images(level: float, needed: int) -> None:
    total = threshold_guarantee(of_perfect(needed), recall=level).total
    assert (total.images, total.images_needed, total.value, total.note) == (needed, needed, 1.0, "")
    assert total.score == pytest.approx(0.1 if needed > 1 else 0.9)
    if needed > 1:
        with pytest.raises(boxscore.InputError, match=f"images with objects must be at least {needed} to "):
            threshold_guarantee(of_perfect(needed - 1), recall=level)


@each([(1, 100, 99), (0.5, 100, 199), (0.1, 1, 9), (2.5, 5, 1), (0.3, 3, 9)])
def test_false_positives_need_images(level: float, most: int, needed: int) -> None:
    total = threshold_guarantee(of_perfect(needed), fppi=level, at_most=most).total
    assert (total.images_needed, total.value, total.note) == (needed, 0.0, "")
    if needed > 1:
        with pytest.raises(boxscore.InputError, match=f"images must be at least {needed} to guarantee fppi"):
            threshold_guarantee(of_perfect(needed - 1), fppi=level, at_most=most)


@each([(0.9, 0.95, 51), (0.5, 0.95, 8), (0.9, 0.5, 29), (0.99, 0.95, 528)])
def test_precision_needs_images(level: float, confidence: float, needed: int) -> None:
    def asked(count: int) -> Any:
        found = [1.0] * count
        truth = boxscore.GroundTruth.from_arrays(range(count), ["cat"] * count, [BOX] * count)
        detections = boxscore.Detections.from_arrays(range(count), ["cat"] * count, [BOX] * count, found)
        evaluation = boxscore.evaluate(truth, detections)
        return threshold_guarantee(evaluation, precision=level, confidence=confidence).total

    assert level**needed <= (1 - confidence) / 10 < level ** (needed - 1)
    total = asked(needed)
    assert (total.score, total.value, total.images, total.images_needed) == (0.0, 1.0, needed, needed)
    with pytest.raises(boxscore.InputError, match=f"images with detections must be at least {needed} to "):
        asked(needed - 1)


def test_a_class_with_too_few_images_says_so() -> None:
    images, labels = [*range(12), 0, 1], ["cat"] * 12 + ["dog"] * 2
    truth = boxscore.GroundTruth.from_arrays(images, labels, [BOX] * 14, categories=["cat", "cow", "dog"])
    found = boxscore.Detections.from_arrays(images, labels, [BOX] * 14, [0.5] * 14)
    found = rows(threshold_guarantee(boxscore.evaluate(truth, found), recall=0.9))
    assert [found[name]["note"] for name in ("cat", "dog", "cow", "(all)")] == [
        "",
        "needs 9 images with objects, has 2",
        "needs 9 images with objects, has 0",
        "",
    ]
    assert np.isnan(found["dog"]["score"])


def test_images_without_objects_take_no_part_in_recall() -> None:
    truth = boxscore.GroundTruth.from_arrays([0], ["cat"], [BOX], images=range(50))
    found = boxscore.Detections.from_arrays([0], ["cat"], [BOX], [0.5])
    with pytest.raises(
        boxscore.InputError, match=r"at least 9 .* Got 1; these images can guarantee 0.5 at best"
    ):
        threshold_guarantee(boxscore.evaluate(truth, found), recall=0.9)


def test_a_detector_that_misses_too_much_says_how_much_could_be() -> None:
    truth = boxscore.GroundTruth.from_arrays(range(20), ["cat"] * 20, [BOX] * 20)
    found = boxscore.Detections.from_arrays(range(12), ["cat"] * 12, [BOX] * 12, [0.5] * 12)
    evaluation = boxscore.evaluate(truth, found)
    total = threshold_guarantee(evaluation, recall=0.9).total
    assert np.isnan(total.score)
    assert total.note == "highest possible: 0.5714"  # 12 of 20 + 1
    assert threshold_guarantee(evaluation, recall=0.5714).total.note == "close to the limit 0.5714"
    assert threshold_guarantee(evaluation, recall=0.3).total.note == ""
    assert threshold_guarantee(evaluation, recall=0.5715).total.note
    nothing = boxscore.Detections.from_arrays([0], ["cat"], [AWAY], [0.5])
    evaluation = boxscore.evaluate(truth, nothing)
    assert threshold_guarantee(evaluation, recall=0.9).total.note == "no object is detected"
    highest = threshold_guarantee(evaluation, fppi=0.05, at_most=1).total
    assert (np.isnan(highest.score), highest.note) == (True, "false positives score highest")


# ---------------------------------------------------------------- what counts


def test_ignored_objects_and_detections_take_no_part() -> None:
    truth = boxscore.GroundTruth.from_arrays(
        [*range(9), *range(9)], ["cat"] * 18, [BOX] * 9 + [AWAY] * 9, crowd=[False] * 9 + [True] * 9
    )
    boxes, scores = [BOX] * 9 + [AWAY] * 9, [0.5] * 9 + [0.9] * 9
    found = boxscore.Detections.from_arrays([*range(9), *range(9)], ["cat"] * 18, boxes, scores)
    evaluation = boxscore.evaluate(truth, found)
    total = threshold_guarantee(evaluation, recall=0.9).total
    assert (total.score, total.value, total.images) == (0.5, 1.0, 9)
    total = threshold_guarantee(evaluation, fppi=1, at_most=9).total
    assert (total.score, total.value) == (0.5, 0.0)


def test_parts_of_objects_weigh_as_in_recall() -> None:
    rules = boxscore.load_protocol("openimages-challenge")
    rules = dataclasses.replace(rules, group=dataclasses.replace(rules.group, weight=0.5))
    images = [*range(10), *range(10)]
    truth = boxscore.GroundTruth.from_arrays(
        images, ["cat"] * 20, [BOX] * 10 + [AWAY] * 10, group=[False] * 10 + [True] * 10
    )
    found = boxscore.Detections.from_arrays(
        images, ["cat"] * 20, [BOX] * 10 + [AWAY] * 10, [0.4] * 10 + [0.8] * 10
    )
    evaluation = boxscore.evaluate(truth, found, protocol=rules)
    total = threshold_guarantee(evaluation, recall=0.3).total
    assert (total.score, total.value) == (0.8, pytest.approx(1 / 3, abs=1e-12))
    total = threshold_guarantee(evaluation, recall=0.31).total
    assert (total.score, total.value) == (0.4, 1.0)


def test_parts_of_objects_weigh_as_in_precision() -> None:
    images = np.repeat(np.arange(60), 2)
    true, weight = np.tile([True, False], 60), np.tile([0.25, 1.0], 60)
    sample = Sample(
        *(images, np.full(120, 0.7), true, weight),
        *(np.arange(60), np.full(60, 0.7), np.full(60, 0.25)),
    )
    answer = guaranteed_precision(sample, 0.05, 0.9)
    assert (answer.value, answer.pooled) == (pytest.approx(0.2, abs=1e-12), 0.2)


def test_one_object_is_detected_once() -> None:
    """Though a protocol may count two true positives of it."""
    images = [*range(9), *range(9)]
    sample = Sample(
        *(np.array(images), np.array([0.9] * 9 + [0.8] * 9), np.ones(18, bool), np.ones(18)),
        *(np.arange(9), np.full(9, 0.9), np.ones(9)),
    )
    assert guaranteed_recall(sample, 0.9).value == 1.0


def test_an_area_and_a_threshold_of_the_protocol(scene: Any) -> None:
    evaluation = boxscore.evaluate(*scene(4, images=80))
    strict = threshold_guarantee(evaluation, recall=0.1, iou_threshold=0.75).total
    loose = threshold_guarantee(evaluation, recall=0.1).total
    assert strict.score < loose.score
    small = threshold_guarantee(evaluation, recall=0.1, area="small").total
    assert small.images < loose.images
    assert threshold_guarantee(evaluation, recall=0.1) is threshold_guarantee(evaluation, recall=0.1)


@each(
    [
        ({}, "be for one of recall, precision and fppi. Got none"),
        ({"recall": 0.5, "fppi": 1}, "Got recall and fppi"),
        ({"recall": 1}, "recall must be below 1. Got 1; no number of images is enough for a guarantee of 1"),
        ({"recall": 0}, r"recall must be a number in \(0, 1]"),
        ({"precision": 1.5}, "precision must be a number"),
        ({"precision": 0.5, "confidence": 1.0}, "confidence must be below 1"),
        ({"fppi": 0}, "fppi must be a number"),
        ({"fppi": 1, "at_most": 0}, "at_most must be a whole number >= 1"),
        ({"recall": 0.5, "at_most": 5}, "at_most must not be set for a guarantee of recall"),
        ({"fppi": 0.5, "confidence": 0.9}, "confidence must not be set for a guarantee of fppi"),
        ({"recall": 0.5, "iou_threshold": 0.61}, "threshold of the protocol"),
        ({"recall": 0.5, "area": "tiny"}, "area must be one of"),
        ({"fppi": 0.5}, "at least 199 to guarantee fppi 0.5 with at most 100 counted per image. Got 60"),
    ]
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(boxscore.InputError, match=message):
        threshold_guarantee(of_perfect(60), **options)


def test_false_positives_without_a_bound_are_refused() -> None:
    with pytest.raises(
        boxscore.InputError, match="at_most must be set for a guarantee of fppi: protocol voc2012 does not"
    ):
        threshold_guarantee(of_perfect(60, protocol="voc2012"), fppi=1)
    two = boxscore.GroundTruth.from_arrays([0], ["cat"], [BOX], images=range(300), categories=["cat", "dog"])
    found = boxscore.Detections.from_arrays([0], ["cat"], [BOX], [0.5])
    assert threshold_guarantee(boxscore.evaluate(two, found), fppi=1).promise.endswith(
        "at most 1 false positives per image over new images of the same source, "
        "counting up to 100 per class and 200 in total"
    )


def test_too_few_images_for_all_classes_may_do_for_each() -> None:
    truth = boxscore.GroundTruth.from_arrays(
        range(150), ["cat"] * 150, [BOX] * 150, categories=["cat", "dog"]
    )
    found = boxscore.Detections.from_arrays(range(150), ["cat"] * 150, [BOX] * 150, [0.5] * 150)
    evaluation = boxscore.evaluate(truth, found)
    table = rows(threshold_guarantee(evaluation, fppi=1))
    assert (table["cat"]["score"], table["cat"]["images_needed"]) == (0.5, 99)
    assert table["(all)"]["note"] == "needs 199 images, has 150"
    with pytest.raises(
        boxscore.InputError, match=r"at least 199 to guarantee fppi 0.5 with at most 100 .*. Got 150"
    ):
        threshold_guarantee(evaluation, fppi=0.5)


def test_scores_outside_the_grid_are_refused() -> None:
    truth = boxscore.GroundTruth.from_arrays(range(60), ["cat"] * 60, [BOX] * 60)
    found = boxscore.Detections.from_arrays(range(60), ["cat"] * 60, [BOX] * 60, [0.5] * 59 + [73.0])
    with pytest.raises(
        boxscore.InputError, match=r"be between 0 and 1 for a guarantee of precision. Got 73; only thres"
    ):
        threshold_guarantee(boxscore.evaluate(truth, found), precision=0.5)


def test_a_protocol_that_cuts_over_all_images_is_refused() -> None:
    with pytest.raises(boxscore.InputError, match=r"matches each image separately. Got lvis-fixed"):
        threshold_guarantee(of_perfect(60, protocol="lvis-fixed"), recall=0.5)


# ---------------------------------------------------------------- another program


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(5))
def test_mapie_chooses_the_same_thresholds(seed: int) -> None:
    methods = pytest.importorskip("mapie.risk_control.methods")
    testing = pytest.importorskip("mapie.risk_control.fwer_control")
    random = np.random.default_rng(seed)
    n = int(random.integers(40, 300))
    sample = drawn_sample(random, n)
    thresholds = np.unique(sample.truth_score[np.isfinite(sample.truth_score)])
    objects = np.bincount(sample.truth_image, minlength=n)
    table = np.stack(
        [
            1 - np.bincount(sample.truth_image[sample.truth_score >= s], minlength=n) / objects
            for s in thresholds
        ],
        axis=1,
    )
    _, bound = methods.get_r_hat_plus(table, thresholds, "crc", None, None, None)
    for level in random.uniform(0.2, 0.85, 10):
        (theirs,) = methods.find_best_predict_param(thresholds, bound, np.array([1 - level]))
        assert guaranteed_recall(sample, float(level)).score == theirs

    for level in random.uniform(0.3, 0.9, 6):
        shares = []
        for s in GRID:
            left = sample.score >= s
            kept = np.bincount(sample.image[left], minlength=n)
            wrong = np.bincount(sample.image[left & ~sample.true], minlength=n)
            shares.append(wrong[kept > 0] / kept[kept > 0])
        means = np.array([one.mean() if len(one) else 1.0 for one in shares])
        sizes = np.array([max(len(one), 1) for one in shares], dtype=float)
        values = methods.compute_hoeffding_bentkus_p_value(means, sizes, float(1 - level))[:, 0]
        ours = np.array([p_value(one, float(1 - level)) for one in shares])
        np.testing.assert_allclose(ours[ours < 1], values[ours < 1], rtol=1e-9)
        procedure = testing.FWERFixedSequenceTesting(n_starts=len(STARTS))
        passed = testing.control_fwer(values, 0.05, fwer_method=procedure)
        theirs = GRID[max(passed)] if len(passed) else math.nan
        assert same(guaranteed_precision(sample, float(level), 0.95).score, theirs)


# ---------------------------------------------------------------- p-values


@pytest.mark.oracle
def test_p_values_are_those_of_whole_fractions() -> None:
    random = np.random.default_rng(1)
    for _ in range(60):
        n, risk = int(random.integers(1, 200)), Fraction(int(random.integers(1, 40)), 40)
        if risk == 1:
            continue
        below = random.random() * float(risk) * 1.2
        shares = [Fraction(int(4 * (random.random() < below)), 4) for _ in range(n)]
        expected = exact_p_value(shares, risk)
        value = p_value(np.array([float(one) for one in shares]), float(risk))
        assert value == pytest.approx(expected, rel=1e-9)


def test_a_p_value_is_seldom_small_where_the_risk_is_met() -> None:
    random = np.random.default_rng(2)
    for risk in (0.05, 0.2, 0.5):
        values = [p_value((random.random(80) < risk).astype(float), risk) for _ in range(2000)]
        for error in (0.005, 0.05, 0.2):
            assert np.mean(np.array(values) <= error) <= error


def test_sequences_stop_at_the_first_test_that_fails() -> None:
    passing = {*range(5), 10, 11, 12, *range(40, 47), 48, 49, 99}
    asked: list[int] = []

    def value(position: int) -> float:
        asked.append(position)
        return 0.0 if position in passing else 1.0

    assert lowest_passed(value, 0.005) == 46
    assert asked == [*range(6), *range(10, 14), 20, 30, *range(40, 48), *range(50, 100, 10)]
    asked.clear()
    passing = {*range(25)}
    assert lowest_passed(value, 0.005) == 24
    assert asked == [*range(26), *range(30, 100, 10)]  # none twice
    assert lowest_passed(lambda _: 1.0, 0.005) == -1
    assert lowest_passed(lambda _: 0.0, 0.005) == 99


def test_frames_of_videos_are_warned_of() -> None:
    names = [f"v{video}_{frame:04d}.jpg" for video in range(4) for frame in range(10)]
    truth = boxscore.GroundTruth.from_arrays(names, ["cat"] * 40, [BOX] * 40)
    found = boxscore.Detections.from_arrays(names, ["cat"] * 40, [BOX] * 40, np.linspace(0.1, 0.9, 40))
    text = (
        r"look like frames of 4 videos: .* so a guarantee that treats them as independent images may not "
        r"hold\. Use one frame of each video\.$"
    )
    with pytest.warns(boxscore.BoxscoreWarning, match=text):
        warned = threshold_guarantee(boxscore.evaluate(truth, found), recall=0.9)
    plain = [f"{n * n}.jpg" for n in range(40)]
    truth, found = (
        boxscore.GroundTruth.from_arrays(plain, ["cat"] * 40, [BOX] * 40),
        boxscore.Detections.from_arrays(plain, ["cat"] * 40, [BOX] * 40, np.linspace(0.1, 0.9, 40)),
    )
    assert threshold_guarantee(boxscore.evaluate(truth, found), recall=0.9).total == warned.total
