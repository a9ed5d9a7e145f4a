"""Plans of a comparison: against exact power of the t test, means of differences by hand, and verdicts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import ComparisonPlan, plan_comparison
from boxscore.extensions.decisions.power import (
    _freedom_of_spread,
    _level_among_classes,
    _Test,
    _variance_range,
)
from boxscore.extensions.decisions.swapping import swapped_differences
from boxscore.extensions.diagnostics.bootstrap import chosen_rows
from boxscore.extensions.weights.resampling import student_quantile
from support.each import each

BOX = [0, 0, 9, 9]


def two_that_miss(first, other, *, labels=None, images=None):
    """Evaluate two detectors; which of one object an image each detects. AR100 is the share."""
    ids = list(range(len(first)))
    labels = ["cat"] * len(ids) if labels is None else labels
    truth = boxscore.GroundTruth.from_arrays(ids, labels, [BOX] * len(ids), images=range(images or len(ids)))
    tables = []
    for seen in (first, other):
        chosen = np.flatnonzero(seen).tolist()
        tables.append(
            boxscore.Detections.from_arrays(
                chosen, [labels[i] for i in chosen], [BOX] * len(chosen), [0.5] * len(chosen)
            )
        )
    return [boxscore.evaluate(truth, table, digest=False) for table in tables]


def some(images, seed=0, rates=(0.6, 0.75)):
    random = np.random.default_rng(seed)
    return [random.random(images) < rate for rate in rates]


def exact_power(standardized, units):
    """Power of the t test of one sample, two-sided at 5%, one side counted: the noncentral t by quadrature."""
    freedom = units - 1
    critical = student_quantile(0.975, freedom)
    root = np.linspace(1e-6, 3, 1501)  # of chi-square over its degrees of freedom
    log = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
    density = np.exp(log + (freedom - 1) * np.log(root) - freedom * root**2 / 2)
    normal = np.array([0.5 * math.erfc((critical * r - standardized) / math.sqrt(2)) for r in root])
    return float((density * normal).sum() * (root[1] - root[0]))


@each([(units, standardized) for units in [6, 10, 20, 50, 200] for standardized in [0.5, 1.5, 2.5, 3.5]])
def test_power_is_that_of_the_t_test(units, standardized):
    test = _Test(1 / math.sqrt(units), 1 / math.sqrt(units), units, 1.0, 0.975)
    ours = test.power(standardized / math.sqrt(units), units)
    assert ours == pytest.approx(exact_power(standardized, units), abs=0.015 if units < 20 else 0.005)


# G*Power 3.1, difference from a constant (one sample), two-sided, alpha .05.
@pytest.mark.parametrize(
    ("effect", "power", "expected"),
    [(0.2, 0.8, 199), (0.3, 0.8, 90), (0.5, 0.8, 34), (0.8, 0.8, 15), (0.5, 0.9, 44), (0.2, 0.9, 265)],
)
def test_published_sample_sizes(effect, power, expected):
    for size in (1, 25, 1000):  # what the spread is of does not matter
        test = _Test(size**-0.5, size**-0.5, size, 1.0, 0.975)
        assert math.ceil(test.needed(effect, power)) == pytest.approx(expected, abs=1)


@pytest.mark.long
def test_a_mean_by_hand():
    first, other = some(80)
    difference = other.astype(float) - first
    pair = two_that_miss(first, other)
    plan = plan_comparison(*pair, metrics=["AR100"], resamples=5000, difference=0.05).total
    variance = difference.var(ddof=1) / 80
    assert plan.delta[0] == pytest.approx(difference.mean(), abs=1e-12)
    assert plan.standard_error[0] == pytest.approx(math.sqrt(variance), rel=0.04)
    test = _Test(math.sqrt(variance), math.sqrt(variance), 80, 1.0, 0.975)
    assert plan.images_needed[0] == pytest.approx(test.needed(0.05, 0.8), rel=0.08)
    assert plan.detectable[0] == pytest.approx(test.detectable(0.8), rel=0.04)
    assert plan.power[0] == pytest.approx(test.power(0.05, 80), abs=0.01)
    # The range is that of a variance by its fourth moment.
    centered = (difference - difference.mean()) ** 2
    uneven = (centered**2).sum() / centered.sum() ** 2 - 1 / 80
    freedom = 2 / (max(uneven, 2 / 79) + 2 / 5000)
    low, high = _variance_range(freedom)
    assert plan.images_needed_low[0] / plan.images_needed[0] == pytest.approx(low, rel=0.01)
    assert plan.images_needed_high[0] / plan.images_needed[0] == pytest.approx(high, rel=0.01)


def test_every_exchange_gives_the_sum_of_squares():
    first, other = some(11, seed=3)
    difference = other.astype(float) - first
    (one, two), rows = two_that_miss(first, other), None
    rows = chosen_rows(one, ["AR100"])
    values = swapped_differences(one, two, rows, resamples=1024, seed=0).values[:, 0, -1]
    assert len(values) == 1024
    assert (values**2).mean() == pytest.approx((difference**2).sum() / 11**2, rel=1e-12)


def test_the_spread_of_the_spread_by_leaving_out():
    first, other = some(50, seed=1)
    one, two = two_that_miss(first, other)
    rows = chosen_rows(one, ["AR100"])
    counts = np.full((1, 2), 50)
    freedom = _freedom_of_spread(one, two, rows, None, 50, 0, 10**9, counts, workers=1)
    left = np.array([np.delete(other.astype(float) - first, i).mean() for i in range(50)])
    squares = (left - left.mean()) ** 2
    expected = 2 / max((squares**2).sum() / squares.sum() ** 2 - 1 / 50, 2 / 49)
    np.testing.assert_allclose(freedom, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("freedom", "low", "high"), [(10, 3.247, 20.483), (30, 16.791, 46.979), (100, 74.222, 129.561)]
)
def test_ranges_of_a_variance_are_those_of_chi_square(freedom, low, high):
    """Quantiles .025 and .975 of chi-square, of the usual tables."""
    shares = _variance_range(freedom)
    assert shares == pytest.approx((freedom / high, freedom / low), rel=0.01)


def test_the_critical_value_among_classes_by_a_loop():
    values = np.random.default_rng(0).normal(size=(400, 2, 6)) * [1, 2, 3, 0, 5, 9]
    for m, level in enumerate(_level_among_classes(values, 0.9)):
        scale = [math.sqrt((values[:, m, k] ** 2).mean()) for k in range(5)]
        largest = [max(abs(row[k]) / scale[k] for k in (0, 1, 2, 4)) for row in values[:, m]]
        critical = np.quantile(largest, 0.9)
        assert level == pytest.approx(0.5 * math.erfc(-critical / math.sqrt(2)), abs=1e-9)
        assert level > 0.95


@pytest.mark.long
def test_empty_images_are_to_be_collected_too():
    first, other = some(60)
    options = {"metrics": ["AR100"], "resamples": 1500, "difference": 0.1}
    full = plan_comparison(*two_that_miss(first, other), **options).total
    half = plan_comparison(*two_that_miss(first, other, images=120), **options).total
    assert (full.images[0], half.images[0]) == (60, 60)
    assert half.detectable[0] == pytest.approx(full.detectable[0], rel=0.1)
    assert half.images_needed[0] == pytest.approx(2 * full.images_needed[0], rel=0.2)


@pytest.mark.long
def test_copies_in_one_group_are_one():
    first, other = some(30)
    options = {"metrics": ["AR100"], "resamples": 300, "difference": 0.1}
    single = plan_comparison(*two_that_miss(first, other), **options)
    pair = two_that_miss(np.repeat(first, 3), np.repeat(other, 3))
    groups = [f"{i // 3:02}" for i in range(90)]  # in the order of the images
    grouped = plan_comparison(*pair, group=groups, **options)
    for ours, theirs in zip(grouped.total, single.total, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert (grouped.image_count, grouped.unit) == (30, "group")
    assert "This data set (30 groups)" in grouped.sentences[0]
    alone = plan_comparison(*pair, **options)
    assert alone.total.images_needed[0] == pytest.approx(single.total.images_needed[0], rel=0.15)
    assert alone.total.detectable[0] < 0.65 * single.total.detectable[0]


@pytest.mark.long
def test_a_class_among_others_needs_more_and_a_rare_one_gets_no_plan():
    labels = ["cat"] * 40 + ["dog"] * 36 + ["owl"] * 4
    pair = two_that_miss(*some(80), labels=labels)
    plan = plan_comparison(*pair, metrics=["AR100"], resamples=999, difference=0.1)
    cat, dog, owl = (dict(zip(plan.classes, range(3), strict=True))[name] for name in ("cat", "dog", "owl"))
    each = columns_of(plan.per_class)
    assert [each["images"][k] for k in (cat, dog, owl)] == [40, 36, 4]
    assert math.isnan(each["images_needed"][owl])
    assert math.isnan(each["detectable"][owl])
    alone = plan_comparison(
        *two_that_miss(*(one[:40] for one in some(80))), metrics=["AR100"], difference=0.1
    )
    # Of 80 images 40 have cats: twice as many images; and the largest of three classes decides.
    more = each["images_needed"][cat] / alone.total.images_needed[0]
    assert 2.2 < more < 4
    frame = plan.printed_frame()
    assert frame["images_needed"].isna().tolist() == [name == "owl" for name in frame["class"]]
    assert str(frame["images_needed"].dtype) == "Int64"


def columns_of(part):
    """Return the columns of one metric."""
    return {name: values[:, 0] for name, values in part._asdict().items()}


def test_the_number_needed_is_the_first_that_is_enough():
    pair = two_that_miss(*some(60))
    plan = plan_comparison(*pair, metrics=["AR100"], resamples=500, difference=0.08, power=0.9)
    needed = plan.total.images_needed[0]
    curve = plan.curve_frame()
    assert (np.diff(curve["power"]) >= -1e-3).all()
    assert ((curve["low"] <= curve["power"]) & (curve["power"] <= curve["high"])).all()
    here = curve[curve["images"] == 60].iloc[0]
    assert here["power"] == plan.total.power[0]
    above = curve[curve["power"] >= 0.9]["images"].min()
    below = curve[curve["power"] < 0.9]["images"].max()
    assert below < needed <= above
    again = plan_comparison(
        *pair, metrics=["AR100"], resamples=500, difference=float(plan.total.detectable[0]), power=0.9
    )
    assert again.total.images_needed[0] == pytest.approx(60, abs=1)
    assert again.total.power[0] == pytest.approx(0.9, abs=0.005)


@pytest.mark.long
def test_the_observed_difference_is_planned_with_its_interval():
    pair = two_that_miss(*some(100, rates=(0.6, 0.62)))
    plan = plan_comparison(*pair, metrics=["AR100"], resamples=500)
    compared = pair[0].compare(pair[1], metrics=["AR100"], resamples=500).total
    assert compared.low[0, 0] < 0 < compared.high[0, 0]
    assert plan.is_observed
    assert plan.total.difference[0] == plan.total.delta[0] == compared.delta[0, 0]
    assert math.isinf(plan.total.images_needed_high[0])
    assert plan.total_frame()["images_needed_high"].isna().all()
    assert "or more: it may be 0)" in plan.sentences[1]
    assert plan.sentences[-1].startswith("Planning for the observed difference is optimistic")
    # One that is clear has an upper end, wider than that of the same difference as given.
    clear = two_that_miss(*some(100, rates=(0.4, 0.8)))
    observed = plan_comparison(*clear, metrics=["AR100"], resamples=500)
    size = abs(float(observed.total.delta[0]))
    given = plan_comparison(*clear, metrics=["AR100"], resamples=500, difference=size)
    assert given.total.images_needed[0] == observed.total.images_needed[0]
    assert observed.total.images_needed_high[0] > given.total.images_needed_high[0]
    assert len(given.sentences) == 2


def test_the_worse_detector_first_or_last_is_the_same_plan():
    one, two = two_that_miss(*some(60))
    there = plan_comparison(one, two, metrics=["AR100"], resamples=300).total
    back = plan_comparison(two, one, metrics=["AR100"], resamples=300).total
    assert there.delta[0] == -back.delta[0]
    assert there.images_needed[0] == pytest.approx(back.images_needed[0], rel=0.1)


def test_sentences():
    pair = two_that_miss(*some(60))
    plan = plan_comparison(*pair, metrics=["AR100"], resamples=300, difference=0.05)
    total = {name: float(values[0]) for name, values in plan.total._asdict().items()}
    ends = [f"{100 * total[name]:.0f}" for name in ("detectable", "detectable_low", "detectable_high")]
    assert plan.sentences == [
        f"This data set (60 images) can show differences in AR100 of {ends[0]} points or more ({ends[1]} to {ends[2]}) with power 0.8 at the 5% level.",
        f"A difference of 5.0 AR100 needs {total['images_needed']:,.0f} images "
        f"({total['images_needed_low']:,.0f} to {total['images_needed_high']:,.0f}); with 60 images the power is "
        f"{total['power']:.2f}.",
    ]


def test_nothing_to_plan(scene):
    truth, detections = scene(0, images=30)
    result = boxscore.evaluate(truth, detections)
    plan = result.plan(result, resamples=20)
    assert isinstance(plan, ComparisonPlan)
    assert plan.metrics == ["AP"]
    assert plan.sentences[0] == "No plan for AP: the results do not differ."
    assert np.isnan(plan.total.images_needed).all()
    seen = np.arange(40) % 2 == 0
    balanced = plan_comparison(*two_that_miss(seen, ~seen), metrics=["AR100"], resamples=50)
    assert (
        balanced.sentences[1]
        == "The observed difference in AR100 is 0: set the difference to plan for with --difference (in Python difference=)."
    )


def test_refusals(scene):
    one, two = two_that_miss(*some(9))
    with pytest.raises(boxscore.InputError) as error:
        plan_comparison(one, two)
    assert str(error.value) == (
        "images with objects must be at least 10 to plan from. Got 9; fewer do not determine the "
        "variance of a difference well enough."
    )
    one, two = two_that_miss(*some(25))
    with pytest.raises(boxscore.InputError, match=r"groups of images with objects must be at least 6.*Got 5"):
        plan_comparison(one, two, group=[i % 5 for i in range(25)])
    for options, message in (
        ({"difference": 0}, r"difference must be a number in \(0, 1\]. Got 0"),
        ({"difference": 2}, r"difference must be a number in \(0, 1\]. Got 2"),
        ({"power": 1}, r"power must be a number in \[0.5, 0.999\]. Got 1"),
        ({"confidence": 1}, r"confidence must be a number in \[0.5, 0.9999\]. Got 1"),
        ({"metrics": ["APx"]}, "metrics"),
    ):
        with pytest.raises(boxscore.InputError, match=message):
            plan_comparison(one, two, **options)
    with pytest.raises(boxscore.InputError, match="the same ground truth"):
        one.plan(boxscore.evaluate(*scene(1)))
    with pytest.raises(boxscore.InputError, match=r"other must be an Evaluation\. Got a str"):
        one.plan("two.json")


@pytest.mark.long
def test_the_power_reached_is_the_power_asked_for():
    """Plans from 60 images, and verdicts on as many new ones as they say: 0.8 within four standard errors."""
    rates, verdicts = (0.6, 0.8), []
    random = np.random.default_rng(5)
    draw = lambda images: two_that_miss(*(random.random(images) < rate for rate in rates))  # noqa: E731
    for seed in range(60):
        plan = plan_comparison(*draw(60), metrics=["AR100"], resamples=99, difference=0.2, seed=seed)
        one, two = draw(int(plan.total.images_needed[0]))
        row = one.compare(two, metrics=["AR100"], resamples=199, seed=seed).total
        verdicts.append(row.verdict[0, 0] == "better")
    assert abs(np.mean(verdicts) - 0.8) < 4 * math.sqrt(0.8 * 0.2 / 60)


# ---------------------------------------------------------------- the command


@pytest.fixture
def files(scene, tmp_path):
    truth, detections = scene(0, images=40)
    paths = [tmp_path / name for name in ("truth.npz", "one.npz", "two.npz")]
    tables = truth, detections, detections.replaced(boxes=detections.boxes + 1.5)
    for table, path in zip(tables, paths, strict=True):
        boxscore.save_columns(table, path)
    return paths


@pytest.mark.long
def test_the_command_says_the_sentence_first(files, run):
    call = ["compare", *files, "--plan", "--difference", "0.02", "--resamples", "50"]
    text = run(*call).out
    value = json.loads(run(*call, "--output", "json").out)
    assert text.startswith("This data set (40 images) can show differences in ")
    assert " ".join(value["sentences"]) in " ".join(text.split())
    assert [row["class"] for row in value["rows"]] == ["(all)"]
    assert value["rows"][0]["difference"] == 0.02
    assert {"metric", "images", "power", "low", "high"} == set(value["curve"][0])
    pair = [boxscore.evaluate(files[0], path) for path in files[1:]]
    plan = plan_comparison(*pair, difference=0.02, resamples=50)
    assert value["rows"][0]["images_needed"] == plan.total.images_needed[0]


@pytest.mark.long
def test_the_command_plans_per_class(files, run):
    call = ["compare", *files, "--plan", "--per-class", "--resamples", "50", "--metrics", "AP", "AP50"]
    rows = json.loads(run(*call, "--output", "json").out)["rows"]
    classes = [row["class"] for row in rows]
    assert classes[-2:] == ["(all)"] * 2
    assert len(set(classes[:-2])) == len(classes[:-2]) / 2 > 1
    csv = run(*call, "--output", "csv").out.splitlines()
    assert len(csv) == len(rows) + 1
    assert "Statistical power by number of images" in run(*call).out
    assert run(*call, "--output", "markdown").out.startswith(
        "## Images needed to tell one (first) and two (other)"
    )
