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

pytestmark = pytest.mark.usefixtures("no_findings")

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
    result = bootstrap_intervals(evaluation, metrics=list(evaluation.metrics))
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
    result = bootstrap_intervals(evaluation, metrics=["AP", "AR100"])
    frame, total = result.to_frame(), result.total_frame()
    assert frame["class"].tolist() == np.repeat(evaluation.labels, 2).tolist()
    np.testing.assert_array_equal(frame["value"], result.per_class.value.ravel())
    assert total["class"].tolist() == ["(all)", "(all)"]
    assert total["metric"].tolist() == ["AP", "AR100"]
    assert total["high"].tolist() == result.total.high.tolist()


def test_seeded(scene):
    evaluation = boxscore.evaluate(*scene(0, images=60))
    one, same, other = (bootstrap_intervals(evaluation, seed=seed).printed_frame() for seed in (7, 7, 8))
    assert one.equals(same)
    assert not one.equals(other)


def test_interval_holds_the_value_and_widens(scene):
    evaluation = boxscore.evaluate(*scene(0, images=60))
    narrow, wide = (
        bootstrap_intervals(evaluation, metrics=["AP50"], confidence=level).total_frame().iloc[0]
        for level in (0.5, 0.99)
    )
    assert wide["low"] < narrow["low"] < narrow["value"] < narrow["high"] < wide["high"]


def test_quiet_unless_asked(scene, capsys):
    bootstrap_intervals(boxscore.evaluate(*scene(0)))
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
    """Of 200 data sets, about 95% of the intervals hold the true AP, and the estimate has no bias."""
    random = np.random.default_rng(1)
    true_ap = detector(random, 20_000).metrics["AP"]
    totals = [
        bootstrap_intervals(detector(random, 40), metrics=["AP"], seed=trial).total for trial in range(200)
    ]
    low, high, estimate = (
        np.array([float(getattr(total, name)[0]) for total in totals]) for name in ("low", "high", "estimate")
    )
    assert 0.90 <= np.mean((low <= true_ap) & (true_ap <= high)) <= 0.995  # 95% +- 3.2 standard errors
    assert abs(np.mean(estimate - true_ap)) < 4 * np.std(estimate) / np.sqrt(200)


def test_a_class_that_was_never_found_may_be_found():
    """None of 12 images has a true positive: the upper end is that of 0 of 12, not 0."""
    boxes = [[0, 0, 9, 9]] * 12
    truth = boxscore.GroundTruth.from_arrays(range(12), ["cat"] * 12, boxes)
    found = boxscore.Detections.from_arrays(range(12), ["cat"] * 12, [[50, 50, 60, 60]] * 12, [0.9] * 12)
    result = bootstrap_intervals(boxscore.evaluate(truth, found), metrics=["AP", "AR100"])
    assert result.per_class.low.tolist() == [[0.0, 0.0]]
    assert result.per_class.high.ravel().tolist() == pytest.approx([1 - 0.025 ** (1 / 12)] * 2)
    # All found: the lower end is that of 12 of 12.
    found = boxscore.Detections.from_arrays(range(12), ["cat"] * 12, boxes, [0.9] * 12)
    result = bootstrap_intervals(boxscore.evaluate(truth, found), metrics=["AP", "AR100"])
    assert result.per_class.high.tolist() == [[1.0, 1.0]]
    assert result.per_class.low.ravel().tolist() == pytest.approx([0.025 ** (1 / 12)] * 2)


def test_no_interval_where_none_holds(scene):
    """Too few images of all classes, of one area range and of a class; and the largest F1."""
    rows = [
        {"key": "AP"},
        {"key": "APs", "area": "small"},
        {"key": "F1", "metric": "F1", "iou": 0.5},
    ]
    protocol = {"extends": "coco", "name": "three", "summary": rows}
    few = bootstrap_intervals(boxscore.evaluate(*scene(0, images=15), protocol=protocol))
    assert np.isnan(few.total.low).all()
    assert few.note == (
        "No interval of AP: needs 20 images with objects. No interval of APs: needs 30 images with objects. "
        "No interval of F1: none that was tried holds in simulations."
    )
    many = bootstrap_intervals(boxscore.evaluate(*scene(0, images=60), protocol=protocol))
    assert np.isfinite(many.total.low).tolist() == [True, True, False]
    assert np.isnan(many.total.estimate).tolist() == [False, False, True]
    counts = many.per_class.images[:, 0]
    np.testing.assert_array_equal(np.isfinite(many.per_class.low[:, 0]), counts >= 5)


def test_the_note_names_scores_above_their_interval():
    """One object in each of 40 classes, found first or never: AP is far above its estimate."""
    boxes = [[0, 0, 9, 9]] * 40
    truth = boxscore.GroundTruth.from_arrays(range(40), range(40), boxes)
    wrong = [[50, 50, 60, 60]] * 40
    detections = boxscore.Detections.from_arrays(
        [*range(40), *range(40)],
        [*range(40), *reversed(range(40))],
        [*boxes, *wrong],
        [*np.linspace(0.2, 0.9, 40), *np.linspace(0.1, 0.8, 40)],
    )
    result = bootstrap_intervals(boxscore.evaluate(truth, detections), metrics=["AP"])
    assert result.total.value[0] > result.total.high[0]
    assert result.note == (
        "AP of few images is too high on average; estimate is AP without this bias, so AP is above the "
        "interval."
    )


def test_resamples_have_no_effect_and_say_so(scene):
    evaluation = boxscore.evaluate(*scene(0))
    with pytest.warns(UserWarning, match="has no effect"):
        result = bootstrap_intervals(evaluation, resamples=200)
    assert result.printed_frame().equals(bootstrap_intervals(evaluation).printed_frame())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 0}, "confidence must be"),
        ({"metrics": ["AP5"]}, "metrics must be one of"),
        ({"seed": -1}, "seed must be a whole number"),
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


def test_nothing_has_no_interval() -> None:
    truth = boxscore.GroundTruth.from_arrays([], [], np.empty((0, 4)), images=[1, 2])
    found = boxscore.Detections.from_arrays([], [], np.empty((0, 4)), [], images=[1, 2])
    frame = bootstrap_intervals(boxscore.evaluate(truth, found)).total_frame()
    assert frame[["value", "low", "high"]].isna().all(axis=None)
