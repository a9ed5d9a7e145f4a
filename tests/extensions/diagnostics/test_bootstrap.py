"""The bootstrap against one that evaluates every draw anew, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import bootstrap_intervals, compare_detectors
from boxscore.extensions.diagnostics.bootstrap import chosen_rows
from boxscore.extensions.weights.resampling import Draws
from support.examples import first_of
from support.scenes import CROWDS
from support.shipped import box_protocols
from support.weights import evaluated_anew

BOX_PROTOCOLS = box_protocols(*CROWDS)  # crowds ask for more than boxes


def with_classes(evaluation):
    """Positions of the metrics that a class has for itself: those of groups of classes are left out."""
    keys = evaluation.protocol.class_keys
    return [row for row, key in enumerate(evaluation.metrics) if key in keys]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*IL_MCC is")
@pytest.mark.parametrize("protocol", BOX_PROTOCOLS)
@pytest.mark.parametrize("seed", first_of(1, range(3)))
def test_equal_to_evaluating_every_draw(scene, seed, protocol):
    truth, detections = scene(seed, images=15)
    evaluation = boxscore.evaluate(truth, detections, protocol=protocol)
    draws = Draws.of_seed(15, 8, seed)
    drawn = evaluation._weighted_metrics(evaluation.protocol.rows, draws).values
    for weights, fast in zip(draws, drawn, strict=True):
        slow = evaluated_anew(truth, detections, weights, protocol)
        np.testing.assert_allclose(fast[:, -1], list(slow.metrics.values()), atol=1e-12, rtol=0)
        rows = fast[with_classes(evaluation), :-1]
        by_class = np.reshape(list(slow.class_values.values()), rows.shape)
        np.testing.assert_allclose(rows, by_class, atol=1e-12, rtol=0)


@pytest.mark.parametrize("protocol", BOX_PROTOCOLS)
def test_weights_of_one_give_the_scores_to_the_last_bit(sample, protocol):
    evaluation = boxscore.evaluate(*sample, protocol=protocol)
    result = bootstrap_intervals(evaluation, resamples=2, metrics=list(evaluation.metrics))
    assert result.metrics == list(evaluation.metrics)
    np.testing.assert_array_equal(result.total.value, list(evaluation.metrics.values()))
    by_class = result.per_class.value.T[with_classes(evaluation)]
    np.testing.assert_array_equal(
        by_class, np.reshape(list(evaluation.class_values.values()), by_class.shape)
    )


@pytest.mark.parametrize("protocol", ["coco", "scoreless"])
def test_all_metrics_have_intervals_but_the_expectation_over_orders(sample, protocol):
    evaluation = boxscore.evaluate(*sample, protocol=protocol)
    expected = [key for key in evaluation.metrics if key != "AP_expected"]
    assert [row.key for row in chosen_rows(evaluation, None)] == expected


def test_table(sample):
    evaluation = boxscore.evaluate(*sample)
    result = bootstrap_intervals(evaluation, resamples=5, metrics=["AP", "AR1"])
    frame, total = result.to_frame(), result.total_frame()
    assert frame["class"].tolist() == np.repeat(evaluation.labels, 2).tolist()
    np.testing.assert_array_equal(frame["value"], result.per_class.value.ravel())
    assert total["class"].tolist() == ["(all)", "(all)"]
    assert total["metric"].tolist() == ["AP", "AR1"]
    assert total["high"].tolist() == result.total.high.tolist()


def test_seeded(scene):
    evaluation = boxscore.evaluate(*scene(0))
    one, same, other = (
        bootstrap_intervals(evaluation, resamples=20, seed=seed).printed_frame() for seed in (7, 7, 8)
    )
    assert one.equals(same)
    assert not one.equals(other)


def test_interval_holds_the_value_and_widens(scene):
    evaluation = boxscore.evaluate(*scene(0, images=60))
    narrow, wide = (
        bootstrap_intervals(evaluation, metrics=["AP50"], resamples=300, confidence=level)
        .total_frame()
        .iloc[0]
        for level in (0.5, 0.99)
    )
    assert wide["low"] < narrow["low"] < narrow["value"] < narrow["high"] < wide["high"]


def test_quiet_unless_asked(scene, capsys):
    bootstrap_intervals(boxscore.evaluate(*scene(0)), resamples=3)
    assert capsys.readouterr() == ("", "")


def detector(random, images):
    """One class; images differ in difficulty, which is what makes their number matter."""
    truth_rows, rows = [], []
    for image in range(images):
        ease = random.normal()
        for place in range(random.poisson(2.0)):
            box = [100.0 * place, 0, 50, 50]
            truth_rows.append((image, box))
            quality = random.normal() + 1 + 0.6 * ease
            if quality > 0:
                rows.append((image, box, quality + 0.5 * random.normal()))
        rows += [(image, [0, 500.0, 9, 9], 0.8 * random.normal()) for _ in range(random.poisson(0.8))]
    truth = boxscore.GroundTruth.from_arrays(
        [row[0] for row in truth_rows],
        [1] * len(truth_rows),
        [row[1] for row in truth_rows],
        box_format="xywh",
        images=range(images),
    )
    found = boxscore.Detections.from_arrays(
        [row[0] for row in rows],
        [1] * len(rows),
        [row[1] for row in rows],
        [row[2] for row in rows],
        box_format="xywh",
    )
    rules = {"extends": "coco", "name": "one threshold", "matching": {"iou_thresholds": [0.5]}}
    return boxscore.evaluate(truth, found, protocol=rules)


@pytest.mark.slow
def test_intervals_cover_at_their_nominal_rate():
    """Of 150 data sets, about 95 % of the intervals hold the true AP; without repetitions far fewer."""
    random = np.random.default_rng(1)
    true_ap = detector(random, 20_000).metrics["AP"]
    covered, covered_without, widths, widths_without = 0, 0, [], []
    for trial in range(150):
        evaluation = detector(random, 100)
        total = bootstrap_intervals(evaluation, metrics=["AP"], resamples=200, seed=trial).total
        covered += total.low[0] <= true_ap <= total.high[0]
        widths.append(total.high[0] - total.low[0])
        once = [(weights > 0).astype(float) for weights in Draws.of_seed(100, 200, trial)]
        once = evaluation._weighted_metrics(chosen_rows(evaluation, ["AP"]), once).values[:, 0, -1]
        low, high = np.quantile(once, [0.025, 0.975])
        covered_without += low <= true_ap <= high
        widths_without.append(high - low)
    assert 0.90 <= covered / 150 <= 0.99  # 95 % +- 2.8 standard errors
    assert covered_without / 150 < 0.90
    assert 0.65 < np.mean(widths_without) / np.mean(widths) < 0.85


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resamples": 0}, "resamples must be a whole number"),
        ({"confidence": 0}, "confidence must be"),
        ({"metrics": ["AP5"]}, "metrics must be one of"),
        ({"method": "best"}, "method must be one of"),
    ],
)
def test_refusals(scene, options, message):
    with pytest.raises(boxscore.InputError, match=message):
        bootstrap_intervals(boxscore.evaluate(*scene(0)), **options)


def test_a_protocol_without_metrics_has_no_intervals():
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[0, 0, 9, 9]])
    found = boxscore.Detections.from_arrays([1], ["a"], [[0, 0, 9, 9]], [0.5])
    protocol = {"extends": "coco", "name": "bare", "summary": []}
    result = boxscore.evaluate(truth, found, protocol=protocol)
    message = "the summary of bare must have a metric. Got none; the field summary of the protocol is empty."
    with pytest.raises(boxscore.InputError, match=message):
        bootstrap_intervals(result)
    with pytest.raises(boxscore.InputError, match=message):
        compare_detectors({"one": result, "other": result})
