"""Paired comparison."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore._utils.text import signed_text
from boxscore.diagnostics import bootstrap_intervals, compare_detectors
from boxscore.extensions.decisions.swapping import holm
from boxscore.extensions.decisions.wording import answers, p_text


def two(scene, *, noise):
    """A detector, and the same with noise on its scores."""
    truth, detections = scene(0, images=80)
    random = np.random.default_rng(0)
    worse = dataclasses.replace(
        detections, scores=detections.scores + noise * random.normal(size=len(detections))
    )
    return {"good": boxscore.evaluate(truth, detections), "noisy": boxscore.evaluate(truth, worse)}


def test_equal_detectors(scene):
    results = two(scene, noise=0)
    row = compare_detectors(results, metrics=["AP"], resamples=50).total_frame().iloc[0]
    assert (row["delta"], row["low"], row["high"], row["other_wins"]) == (0, 0, 0, 0.5)
    assert row["verdict"] == "cannot tell"


@pytest.mark.long
def test_deltas_are_of_the_scores(scene):
    results = two(scene, noise=0.3)
    comparison = compare_detectors(results, resamples=50)
    table = comparison.to_frame()
    for row in comparison.total_frame().itertuples():
        assert row.delta == pytest.approx(
            results["noisy"].metrics[row.metric] - results["good"].metrics[row.metric], abs=1e-12, nan_ok=True
        )
    assert set(table["class"]) == {*results["good"].labels}
    for row in table.itertuples():
        k = results["good"].labels.index(row._3)
        values = [result.class_values[row.metric][k] for result in results.values()]
        assert (row.value_first, row.value_other) == pytest.approx(tuple(values), abs=1e-12, nan_ok=True)


def test_pairing_is_surer_than_two_intervals(scene):
    results = two(scene, noise=0.05)
    apart = [bootstrap_intervals(r, metrics=["AP50"]).total.standard_error[0] for r in results.values()]
    paired = compare_detectors(results, metrics=["AP50"], resamples=200).total.standard_error[0, 0]
    assert paired < 0.7 * np.hypot(*apart)


@pytest.mark.long
def test_a_real_difference_is_found(scene):
    truth, detections = scene(0, images=80)
    shifted = dataclasses.replace(detections, boxes=detections.boxes + 8)
    results = {"good": boxscore.evaluate(truth, detections), "shifted": boxscore.evaluate(truth, shifted)}
    row = compare_detectors(results, metrics=["AP"], resamples=200).total_frame().iloc[0]
    assert row["verdict"] == "worse"
    assert row["other_wins"] < 0.025
    assert row["decided_by_ties"] is False


def test_decided_by_ties():
    truth = boxscore.GroundTruth.from_arrays([1, 2], [1, 1], [[0, 0, 9, 9]] * 2)
    boxes = [[0, 0, 9, 9], [50, 50, 59, 59]]
    results = {
        name: boxscore.evaluate(truth, boxscore.Detections.from_arrays([1, 1], [1, 1], order, [0.5, 0.5]))
        for name, order in (("hit first", boxes), ("hit last", boxes[::-1]))
    }
    row = compare_detectors(results, metrics=["AP"], resamples=5).total_frame().iloc[0]
    assert row["delta"] < 0
    assert row["decided_by_ties"] is True


def test_refusals(scene):
    results = two(scene, noise=0)
    with pytest.raises(boxscore.InputError, match="two results or more"):
        compare_detectors({"one": results["good"]})
    with pytest.raises(boxscore.InputError, match="the same ground truth"):
        compare_detectors({"a": results["good"], "b": boxscore.evaluate(*scene(1))})
    truth, detections = scene(0, images=80)
    with pytest.raises(boxscore.InputError, match="the same protocol"):
        compare_detectors(
            {"a": results["good"], "b": boxscore.evaluate(truth, detections, protocol="voc2012")}
        )


@pytest.fixture
def four(scene):
    """Two that are nearly equal, and two that place their boxes worse."""
    truth, detections = scene(0, images=60)
    noise = np.random.default_rng(0).normal(size=len(detections))
    changes = {
        "a": {},
        "b": {"scores": detections.scores + 0.02 * noise},
        "c": {"boxes": detections.boxes + 1},
        "d": {"boxes": detections.boxes + 8},
    }
    return {
        name: boxscore.evaluate(truth, dataclasses.replace(detections, **change))
        for name, change in changes.items()
    }


def test_own_intervals_are_those_of_one_detector(four):
    comparison = compare_detectors(four, resamples=40, seed=2, metrics=["AP", "AP75"])
    assert comparison.names == list(four)
    for i, result in enumerate(four.values()):
        alone = bootstrap_intervals(result, seed=2, metrics=["AP", "AP75"]).total
        for mine, its in zip(comparison.intervals, alone, strict=True):
            np.testing.assert_array_equal(mine[i], its)


@pytest.mark.long
def test_every_pair_is_what_two_alone_are(four):
    every = compare_detectors(four, resamples=25, metrics=["AP", "AP75"])
    names, pairs = every.names, every.pairs
    for i, one in enumerate(names):
        assert np.isnan(pairs.delta[i, i]).all()
        assert not pairs.significant[i, i].any()
        for j, other in enumerate(names[:i]):
            both = {other: four[other], one: four[one]}
            alone = compare_detectors(both, resamples=25, metrics=["AP", "AP75"])
            np.testing.assert_array_equal(pairs.delta[i, j], alone.total.delta[0])
            np.testing.assert_array_equal(pairs.low[j, i], -pairs.high[i, j])
            # Alone a pair is not adjusted; among others it is never more significant, nor its interval narrower.
            assert (pairs.low[i, j] <= alone.total.low[0]).all()
            assert (pairs.high[i, j] >= alone.total.high[0]).all()
            apart = alone.total.verdict[0] != "cannot tell"
            np.testing.assert_array_equal(alone.pairs.significant[1, 0], apart)
            assert (pairs.p_value[i, j] >= alone.total.p_value[0]).all()
            np.testing.assert_array_equal(pairs.significant[i, j], pairs.significant[j, i])


@pytest.mark.long
def test_the_family_of_pairs_by_hand(four):
    """Swap tests of two alone, and Holm's steps from the smallest p-value on."""
    resamples, names = 200, list(four)
    every = compare_detectors(four, resamples=resamples, metrics=["AP"])
    alone = {}
    for a, b in itertools.combinations(names, 2):
        two = compare_detectors({a: four[a], b: four[b]}, resamples=resamples, metrics=["AP"])
        alone[a, b] = float(two.total.p_value[0, 0])
    largest, left = 0.0, len(alone)
    for (a, b), p_value in sorted(alone.items(), key=lambda item: item[1]):
        largest = max(largest, min(1.0, p_value * left))
        left -= 1
        j, i = names.index(a), names.index(b)
        assert every.pairs.p_value[i, j, 0] == pytest.approx(largest, abs=1e-12)
        assert every.pairs.significant[i, j, 0] == (largest <= 0.05)
    assert 0 < every.pairs.significant[..., 0].sum() / 2 < len(alone)


@pytest.mark.long
def test_verdicts_allow_for_the_detectors_and_the_classes(four):
    every = compare_detectors(four, resamples=200, metrics=["AP", "AP75"])
    every_p = np.stack([every.pairs.p_value[i, j] for i, j in itertools.combinations(range(4), 2)])
    np.testing.assert_array_equal(every.total.p_value, every_p[:3])
    assert (holm(every.unadjusted) <= every.total.p_value).all()
    for i, name in enumerate(every.others):
        two = compare_detectors({"a": four["a"], name: four[name]}, resamples=200, metrics=["AP", "AP75"])
        np.testing.assert_array_equal(every.unadjusted[i], two.total.p_value[0])
        adjusted = np.minimum(two.per_class.p_value[0] * len(every.others), 1)
        np.testing.assert_array_equal(every.per_class.p_value[i], adjusted)
    for part in (every.per_class, every.total):
        told = np.isin(part.verdict, ["better", "worse"])
        np.testing.assert_array_equal(told, part.p_value <= 0.05)


@pytest.mark.long
def test_the_best_is_clear_only_where_the_second_is_not_as_good(four):
    every = compare_detectors(four, resamples=40, metrics=["AP", "AP75", "AR100"])
    for m, key in enumerate(every.metrics):
        values = [result.metrics[key] for result in four.values()]
        best, second = sorted(range(4), key=lambda i: -values[i])[:2]
        expected = best if every.pairs.significant[best, second, m] else None
        assert every.clear_best(m) == expected
    twin = compare_detectors({"x": four["a"], "y": four["a"], "z": four["d"]}, resamples=99, metrics=["AP"])
    assert twin.clear_best(0) is None
    assert twin.pairs.significant[0, 2, 0]


def test_the_table_of_a_terminal_says_what_its_columns_are(scene, tmp_path, run):

    truth, detections = scene(0, images=20)
    paths = [tmp_path / name for name in ("truth.npz", "one.npz", "two.npz")]
    boxscore.save_columns(truth, paths[0])
    for path in paths[1:]:
        boxscore.save_columns(detections, path)
    printed = " ".join(run("compare", *paths, "--metrics", "AP", "--resamples", "5").out.split())
    assert printed.startswith("one and two have the same AP, ")
    assert (
        "delta: other minus first; low, high: its 95% interval Verdict: better or worse if the p-value"
        in printed
    )
    assert "so it excludes 0 exactly if the verdict is better or worse" in printed
    assert "-0.0000" not in printed


def test_text_without_draws_says_what_json_says_with_them(scene, tmp_path, run):
    """Text shows nothing that follows from draws of images, so none are made; JSON has their numbers."""
    truth, detections = scene(0, images=20)
    paths = [tmp_path / name for name in ("truth.npz", "one.npz", "two.npz")]
    boxscore.save_columns(truth, paths[0])
    boxscore.save_columns(detections, paths[1])
    boxscore.save_columns(detections.take(np.arange(0, len(detections), 2)), paths[2])
    call = ["compare", *paths, "--resamples", "40", "--workers", "1"]
    told = json.loads(run(*call, "--output", "json").out)
    assert {len(row) for row in told["rows"]} == {14}
    assert all(row["standard_error"] > 0 for row in told["rows"] if row["metric"] == "AP")
    assert all(0 <= row["other_wins"] <= 1 for row in told["rows"] if row["metric"] == "AP")
    text = run(*call).out
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    names = ("value_first", "value_other", "delta", "low", "high", "p_value")
    known = [row for row in told["rows"] if None not in [row[name] for name in names]]
    assert len(known) > 4
    for row in known:
        assert lines[row["metric"]][1:7] == [f"{row[name]:.4f}" for name in names]
    assert " ".join(text.split()).startswith(told["sentences"][0])


WORDS = {"better": 1, "worse": -1}
"""The sign of the difference that a verdict states; others state none."""


def random_results(random: np.random.Generator, count: int, images: int, classes: int) -> dict[str, Any]:
    """Detectors with a random number of misses, false positives, noise and ties, and rare classes."""
    objects = random.poisson(random.uniform(0.3, 3), images)
    image = np.repeat(np.arange(images), objects)
    label = np.minimum(random.geometric(0.4, len(image)) - 1, classes - 1)
    corner = random.uniform(0, 400, (len(image), 2))
    boxes = np.hstack([corner, corner + random.uniform(10, 90, (len(image), 2))])
    truth = boxscore.GroundTruth.from_arrays(
        image, label, boxes, images=range(images), categories=range(classes)
    )
    results = {}
    for number in range(count):
        seen = random.random(len(image)) < random.uniform(0, 1)
        false = random.integers(0, images, random.integers(0, images + 1))
        moved = boxes[seen] + np.tile(random.normal(0, random.uniform(0, 8), (seen.sum(), 2)), 2)
        apart = np.tile([500.0, 500, 540, 540], (len(false), 1))
        found = boxscore.Detections.from_arrays(
            np.concatenate([image[seen], false]),
            np.concatenate([label[seen], random.integers(0, classes, len(false))]),
            np.concatenate([moved, apart]),
            np.round(random.random(seen.sum() + len(false)), int(random.integers(1, 4))),
        )
        results[f"detector {number}"] = boxscore.evaluate(truth, found, digest=False)
    return results


def check_agreement(part: Any, level: float) -> None:
    """Check that verdict, p-value, interval and difference of every entry agree."""
    columns = (part.verdict, part.p_value, part.low, part.high, part.delta)
    entries = zip(*(np.ravel(column).tolist() for column in columns), strict=True)
    for word, p_value, low, high, delta in entries:
        side = WORDS.get(word, 0)
        assert (p_value <= level) == bool(side)
        if side:
            assert delta * side > 0
        if np.isfinite(low):
            assert low <= delta <= high
            assert (low > 0) - (high < 0) == side
            shown = [float(signed_text(end)) for end in (low, high)]
            assert (shown[0] > 0) - (shown[1] < 0) == side or min(abs(low), abs(high)) < 1e-6
        assert (float(p_text(p_value, level)) <= level) == bool(side) or np.isnan(p_value)


@pytest.mark.parametrize("seed", range(12))
def test_verdict_p_value_and_interval_never_contradict(seed: int) -> None:
    """Every total, pair and class of random detectors, and the words made of them."""
    random = np.random.default_rng(seed)
    results = random_results(random, int(random.integers(2, 4)), int(random.integers(3, 40)), 4)
    confidence = float(random.choice([0.5, 0.8, 0.9, 0.95]))
    comparison = compare_detectors(results, resamples=99, confidence=confidence, seed=seed)
    level = comparison.resampling.level
    for part in (comparison.total, comparison.per_class):
        check_agreement(part, level)
    check_agreement(comparison.pairs, level)
    # The rows of the tables are the same.
    frame = comparison.pair_frame()
    for row in frame.itertuples():
        i, j = (comparison.names.index(name) for name in (row.detector, row.against))
        m = comparison.metrics.index(row.metric)
        assert row.verdict == comparison.pairs.verdict[i, j, m] != "worse"
    # The first sentence states the verdict of the two best.
    said = answers(comparison)[0].statement
    best, second = frame.iloc[0]["detector"], frame.iloc[0]["against"]
    word, delta = frame.iloc[0]["verdict"], frame.iloc[0]["delta"]
    if np.isfinite(delta):
        clear = said.startswith((f"{best} is better than {second}", f"{best} is the best of"))
        assert clear == (word == "better")
        assert said.startswith("The data cannot tell") == (word == "cannot tell" and bool(delta))


@pytest.mark.parametrize("method", ["expanded_percentile", "percentile", "bias_corrected"])
def test_bootstrap_intervals_decide_alone(four, method: str) -> None:
    comparison = compare_detectors(four, resamples=40, metrics=["AP", "AP75"], method=method)
    for part in (comparison.total, comparison.per_class):
        assert np.isnan(part.p_value).all()
        excluded = (part.low > 0) | (part.high < 0)
        np.testing.assert_array_equal(np.isin(part.verdict, [*WORDS]), excluded)
    assert "bootstrap interval of one difference" in comparison.verdict_text()
    assert "p = " not in answers(comparison)[0].statement


def test_known_intervals_go_with_one_of_the_others(scene, monkeypatch):
    """They are taken, not computed again, and are what the pair gives that never computed them."""
    results = {**two(scene, noise=6), "third": two(scene, noise=3)["good"]}
    fresh = compare_detectors(results, metrics=["AP"], resamples=20).with_other("third").intervals
    comparison = compare_detectors(results, metrics=["AP"], resamples=20)
    _ = comparison.intervals
    monkeypatch.setattr("boxscore.extensions.decisions.compare._intervals", None)
    for mine, theirs in zip(comparison.with_other("third").intervals, fresh, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert not mine.flags.writeable
