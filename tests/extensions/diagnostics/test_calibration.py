"""Calibration errors against direct loops."""

from __future__ import annotations

import dataclasses
import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import calibration_error, reliability
from boxscore.extensions.diagnostics._residuals import BinnedResiduals, half_sampled
from boxscore.extensions.diagnostics._score_bins import ScoredRows, sums_of_cells
from boxscore.extensions.large.questions import OnePiece
from boxscore.extensions.weights.resampling import Draws, interval
from support.each import each
from support.examples import first_of


def direct(evaluation, label, bins):
    """ECE, MCE and LaECE of one class by a loop over bins."""
    rows = evaluation.matches
    rows = rows[rows["outcome"].isin(["true positive", "false positive"])]
    if label != "(all)":
        rows = rows[rows["class"] == label]
    expected, worst, localized = 0.0, 0.0, 0.0
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        inside = rows[((rows["score"] > low) | (b == 0)) & (rows["score"] <= high + 1e-15)]
        if not len(inside):
            continue
        hits = inside[inside["outcome"] == "true positive"]
        accuracy, confidence = len(hits) / len(inside), inside["score"].mean()
        gap = abs(accuracy - confidence)
        overlap = hits["iou"].mean() if len(hits) else 0.0
        share = len(inside) / len(rows)
        expected += share * gap
        worst = max(worst, gap)
        localized += share * abs(accuracy * overlap - confidence)
    return expected, worst, localized


@pytest.mark.long
@pytest.mark.parametrize("bins", [10, 7])
@pytest.mark.parametrize("seed", first_of(1, range(3)))
def test_equal_to_a_loop(scene, seed, bins):
    evaluation = boxscore.evaluate(*scene(seed, images=40))
    table = calibration_error(evaluation, bins=bins).printed_frame().set_index("class")
    for label in [*evaluation.labels, "(all)"]:
        if table.loc[label, "detections"]:
            row = table.loc[label, ["expected_error", "maximum_error", "localization_expected_error"]]
            np.testing.assert_allclose(row.astype(float), direct(evaluation, label, bins), atol=1e-12)


def test_mean_over_classes(scene):
    result = calibration_error(boxscore.evaluate(*scene(1, images=40)))
    mean = result.to_frame()["expected_error"].mean()
    assert result.mean.expected_error == pytest.approx(mean)
    assert result.total_frame()["class"].tolist() == ["(all)", "(mean)"]


def test_equal_counts(scene):
    counts = reliability(boxscore.evaluate(*scene(1, images=40)), bins=5, binning="count").total.detections
    assert counts.max() - counts.min() <= 1


def test_perfect_detector():
    truth = boxscore.GroundTruth.from_arrays(range(50), [1] * 50, [[0, 0, 9, 9]] * 50)
    found = boxscore.Detections.from_arrays(range(50), [1] * 50, [[0, 0, 9, 9]] * 50, [1.0] * 50)
    errors = calibration_error(boxscore.evaluate(truth, found)).per_class
    assert errors.expected_error.tolist() == [0]
    assert errors.maximum_error.tolist() == [0]
    assert errors.localization_expected_error.tolist() == [0]


def test_scores_must_be_probabilities(scene):
    truth, detections = scene(0)
    percent = dataclasses.replace(detections, scores=detections.scores * 100)
    with pytest.raises(boxscore.InputError, match=r"scores must be in \[0, 1\] for calibration"):
        calibration_error(boxscore.evaluate(truth, percent))


def binned_rows(evaluation, label, bins, unit_of=lambda image: image):
    """Detections of a class, or of all, in a dictionary by bin: unit, residual and s (1 - s) of each."""
    rows = evaluation.matches
    rows = rows[rows["outcome"].isin(["true positive", "false positive"])]
    if label != "(all)":
        rows = rows[rows["class"] == label]
    found = {}
    for image, score, outcome in zip(rows["image_id"], rows["score"], rows["outcome"], strict=True):
        bin_ = next(b for b in range(bins) if score <= (b + 1) / bins)
        residual = (outcome == "true positive") - score
        found.setdefault(bin_, []).append((unit_of(image), residual, score * (1 - score)))
    return found


def noises(in_bins):
    """Standard error of the residual of each bin, one detection at a time."""
    dependent = independent = 0.0
    for rows in in_bins.values():
        n, units = len(rows), {unit for unit, _, _ in rows}
        if len(units) < 2:
            continue
        gap = sum(residual for _, residual, _ in rows) / n
        sums = [sum(residual - gap for unit, residual, _ in rows if unit == one) for one in units]
        shares = [sum(unit == one for unit, _, _ in rows) / n for one in units]
        dependent += sum(each**2 for each in sums) / (1 - sum(share**2 for share in shares))
        independent += sum((residual - gap) ** 2 for _, residual, _ in rows) * n / (n - 1)
    effect = max(dependent / independent, 1) if independent else 1
    return {bin_: math.sqrt(effect * sum(row[2] for row in rows)) for bin_, rows in in_bins.items()}


def debiased(in_bins):
    """Debiased error of one class by the formula, one bin at a time."""
    total, normal, noise = 0.0, NormalDist(), noises(in_bins)
    for bin_, rows in in_bins.items():
        size, s = abs(sum(residual for _, residual, _ in rows)), noise[bin_]
        total += size * (2 * normal.cdf(size / s) - 1) - 2 * s * normal.pdf(size / s)
    return total / sum(map(len, in_bins.values()))


@pytest.mark.parametrize("bins", [10, 3])
@pytest.mark.parametrize("seed", first_of(1, range(3)))
def test_debiased_equals_a_loop(scene, seed, bins):
    evaluation = boxscore.evaluate(*scene(seed, images=40))
    table = calibration_error(evaluation, bins=bins).printed_frame().set_index("class")
    for label in [*evaluation.labels, "(all)"]:
        if table.loc[label, "detections"]:
            expected = debiased(binned_rows(evaluation, label, bins))
            assert table.loc[label, "debiased_error"] == pytest.approx(expected, abs=1e-12)
    assert table.loc["(mean)", "debiased_error"] == pytest.approx(
        np.nanmean(table["debiased_error"][:-2]), abs=1e-15
    )


def test_debiased_of_groups(scene):
    evaluation = boxscore.evaluate(*scene(0, images=40))
    ids = evaluation.images.ids.tolist()
    groups = [row // 4 for row in range(40)]
    result = calibration_error(evaluation, group=groups)
    expected = debiased(binned_rows(evaluation, "(all)", 10, lambda image: groups[ids.index(image)]))
    assert result.total.debiased_error == pytest.approx(expected, abs=1e-12)
    assert result.total.debiased_error != calibration_error(evaluation).total.debiased_error


@each([0.0, 0.3, -1.0, 2.5])
def test_half_sampled_is_the_mean_over_random_halves(residual):
    """Halves r + d and r - d, d normal: one gives the sign, the other the size; by quadrature."""
    noise, step = 0.7, 1e-4
    d = np.arange(-8, 8, step) * noise
    density = np.exp(-((d / noise) ** 2) / 2) / math.sqrt(2 * math.pi) * step
    expected = (density * np.sign(residual + d) * (residual - d)).sum()
    assert half_sampled(np.array([residual]), np.array([noise]))[0] == pytest.approx(expected, abs=2e-4)


def test_half_sampled_beside_every_half():
    """Of 14 images, all 16,384 ways of splitting them."""
    sums = np.random.default_rng(3).normal(0.2, 1, 14)
    splits = []
    for signs in itertools.product([-1, 1], repeat=len(sums)):
        first, second = sums[np.array(signs) > 0].sum(), sums[np.array(signs) < 0].sum()
        splits.append(np.sign(first) * second + np.sign(second) * first)
    noise = math.sqrt((sums**2).sum())
    formula = half_sampled(np.array([sums.sum()]), np.array([noise]))[0]
    assert formula == pytest.approx(np.mean(splits), abs=0.05 * noise)


def test_certain_bins_are_as_they_are():
    assert half_sampled(np.array([0.0, 2.0, -3.0]), np.zeros(3)).tolist() == [0, 2, 3]


def residuals_of(random, images, curve):
    """Residuals of one class, twelve detections an image."""
    image = np.repeat(np.arange(images), 12)
    score = random.random(len(image))
    true = random.random(len(image)) < curve(score)
    nothing = np.zeros(len(image), dtype=np.int64)
    rows = OnePiece(ScoredRows(nothing, image, score, true, np.zeros(len(image))))
    ends = np.linspace(0, 1, 11)
    return BinnedResiduals.of(rows, ends, sums_of_cells(rows, ends), images, 1)


@pytest.mark.long
@each([15, 60])
def test_bias(images):
    """Of 400 calibrated detectors: a design effect of 1 at least leaves the debiased error a little low."""
    random, ones = np.random.default_rng(images), np.ones(images)
    errors = [residuals_of(random, images, lambda score: score).errors([ones]) for _ in range(400)]
    plain, unbiased = (np.array([one[column][0, 0] for one in errors]) for column in (0, 1))
    assert plain.mean() > 10 * abs(unbiased.mean())


def test_a_large_error_has_no_bias():
    random, ones = np.random.default_rng(0), np.ones(2000)
    result = residuals_of(random, 2000, lambda score: score**3).errors([ones])
    assert result.debiased[0, 0] == pytest.approx(result.plain[0, 0], abs=1e-6)
    assert result.plain[0, 0] == pytest.approx(0.25, abs=0.01)  # the integral of s - s^3


@pytest.mark.parametrize("scores", ["uncalibrated", "one", "few"])
def test_ends_equal_a_loop(scene, scores):
    """Draws by repeating detections; what they vary too little is added as normal noise."""
    truth, detections = scene(4, images=30 if scores == "few" else 60)
    if scores == "one":
        detections = dataclasses.replace(detections, scores=np.full(len(detections), 0.6))
    evaluation = boxscore.evaluate(truth, detections)
    in_bins, ids = binned_rows(evaluation, "(all)", 10), evaluation.images.ids.tolist()
    noise, count = noises(in_bins), sum(map(len, in_bins.values()))
    normal, seed = NormalDist(), 7
    draws = []
    for weights in Draws.of_seed(len(ids), 50, seed):
        times = dict(zip(ids, weights, strict=True))
        plain = unbiased = drawn = 0.0
        for bin_, rows in in_bins.items():
            size = abs(sum(times[unit] * residual for unit, residual, _ in rows))
            inside, s = sum(times[unit] for unit, _, _ in rows), noise[bin_]
            drawn += inside
            plain += size
            if inside:
                unbiased += size * (2 * normal.cdf(size / s) - 1) - 2 * s * normal.pdf(size / s)
        draws.append((plain / drawn, unbiased / drawn))
    result = calibration_error(evaluation, seed=seed, resamples=50, confidence=0.8).total
    value = np.array([result.expected_error, result.debiased_error])
    least = math.sqrt(sum(s**2 for s in noise.values())) / count
    lacking = np.sqrt(np.maximum(least**2 - np.var(draws, axis=0, ddof=1), 0))
    shifted = np.array(draws) - np.mean(draws, axis=0) + value
    shifted += lacking * np.random.default_rng(seed).standard_normal(50)[:, None]
    holders = len({unit for rows in in_bins.values() for unit, _, _ in rows})
    low, high = interval(shifted, value, 0.8, "expanded_percentile", holders)
    assert result.low == pytest.approx(max(low[1], 0), abs=1e-12)
    assert result.high == pytest.approx(min(high[0], 1), abs=1e-12)


def test_the_mean_is_resampled_itself(scene):
    evaluation = boxscore.evaluate(*scene(4, images=60))
    result = calibration_error(evaluation)
    assert result.mean.low <= result.mean.debiased_error
    assert result.mean.expected_error <= result.mean.high
    columns = result.per_class.low, result.per_class.high
    means = [np.nanmean(column) for column in columns]  # of classes that err together, which they do not
    assert result.mean.high - result.mean.low < means[1] - means[0]


def calibrated_of(images, scores, true):
    """One class, one detection an image; a detection that is not true is apart from the object."""
    boxes = np.array([[0, 0, 9, 9] if is_true else [50, 50, 59, 59] for is_true in true])
    truth = boxscore.GroundTruth.from_arrays(images, ["cat"] * len(images), [[0, 0, 9, 9]] * len(images))
    detections = boxscore.Detections.from_arrays(
        images, ["cat"] * len(images), boxes, scores, images=truth.images
    )
    return boxscore.evaluate(truth, detections)


def test_no_interval_of_few_images():
    of_nine = calibration_error(calibrated_of(range(9), [0.5] * 9, [True] * 9))
    assert np.isnan([of_nine.total.low, of_nine.mean.high]).all()
    assert np.isfinite(of_nine.per_class.low).all()
    of_ten = calibration_error(calibrated_of(range(10), [0.5] * 10, [True] * 10))
    assert of_ten.total.low > 0
    of_four = calibration_error(calibrated_of(range(4), [0.5] * 4, [True] * 4)).per_class
    assert np.isnan([of_four.low, of_four.high]).all()
    assert np.isfinite(of_four.debiased_error).all()


def test_outcomes_that_are_all_the_same_make_nothing_certain():
    """Six of six at 0.9, which happens in every second case: calibrated, and perhaps far from it."""
    errors = calibration_error(calibrated_of(range(6), [0.9] * 6, [True] * 6)).per_class
    assert errors.expected_error[0] == pytest.approx(0.1)
    assert errors.debiased_error[0] < 0.1
    assert errors.low[0] == 0
    assert errors.high[0] > 0.25


def test_without_intervals(scene):
    evaluation = boxscore.evaluate(*scene(1, images=40))
    plain, full = calibration_error(evaluation, resamples=0), calibration_error(evaluation)
    assert np.isnan([plain.total.low, plain.mean.high]).all()
    assert plain.total.debiased_error == full.total.debiased_error
    assert full.total.low < full.total.expected_error < full.total.high


def test_more_confidence_is_wider(scene):
    evaluation = boxscore.evaluate(*scene(1, images=40))
    narrow, wide = (calibration_error(evaluation, confidence=share).total for share in (0.5, 0.99))
    assert narrow.high < wide.high
    assert narrow.low > wide.low


@each(
    [
        ({"resamples": -1}, "resamples must be a whole number >= 0"),
        ({"confidence": 0}, "confidence must be a number in"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"group": "video"}, "group must be a column of the images"),
    ]
)
def test_refused(options, message):
    with pytest.raises(boxscore.InputError) as error:
        calibration_error(calibrated_of(range(12), [0.5] * 12, [True] * 12), **options)
    assert str(error.value).startswith(message)


@pytest.mark.long
@each([0.2, 0.9])
def test_calibrated_scores_may_be_calibrated(score):
    """Of 40 calibrated detectors of one score, with 40 detections each; 2.5% are 1."""
    random = np.random.default_rng(1)
    ends = np.array(
        [
            (errors.low, errors.high)
            for seed in range(40)
            for true in [random.random(40) < score]
            for errors in [
                calibration_error(
                    calibrated_of(range(40), [score] * 40, true), seed=seed, resamples=100
                ).total
            ]
        ]
    )
    assert (ends[:, 0] > 0).sum() <= 3
    assert (ends[:, 1] > 0.05).all()


@pytest.mark.long
def test_the_interval_of_overconfident_scores():
    """Of 40 detectors that are right in 60% of cases at 0.8, with 40 detections each."""
    random = np.random.default_rng(2)
    holds = [
        errors.low <= 0.2 <= errors.high
        for seed in range(40)
        for true in [random.random(40) < 0.6]
        for errors in [
            calibration_error(calibrated_of(range(40), [0.8] * 40, true), seed=seed, resamples=100).total
        ]
    ]
    assert sum(holds) >= 36
