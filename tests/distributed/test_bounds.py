"""The exact value lies inside the bounds, always; bounds add up in any order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.distributed import merge
from boxscore.distributed.bounds import BoundedEvaluation, added, bin_of, bounded, histogram_of
from boxscore.protocols import load_protocol
from support import crowd_cases, federated_cases, voc_cases
from support.cases import Case, coco_cases
from support.examples import examples
from support.parted import Tables, parts_of, whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that one example after the other writes its files into."""
    return tmp_path_factory.mktemp("case")


def check(tables: Tables, protocol: Any, data: st.DataObject) -> None:
    images = len(tables[0].images)
    if not images:
        return
    drawn = st.lists(st.integers(0, 3), min_size=images, max_size=images)
    parts = parts_of(tables, protocol, data.draw(drawn, label="partition"))
    exact = merge(parts)
    histograms = [histogram_of(part) for part in data.draw(st.permutations(parts))]
    half = len(histograms) // 2
    halves = [added(some) for some in (histograms[:half], histograms[half:]) if some]
    bounds = bounded(added(halves))
    assert bounds.counts == exact.counts
    for key, value in exact.metrics.items():
        assert_inside(value, bounds[key].low, bounds[key].high)
    for key, values in exact.class_values.items():
        assert_inside(values, *bounds.class_values[key].T)
    for name, counts in exact.class_counts.items():
        assert bounds.class_counts[name].tolist() == counts.tolist()
    assert "Bounds" in repr(bounds)
    assert json.loads(bounds.to_json())["exact"] is False


def assert_inside(value: Any, low: Any, high: Any) -> None:
    value, low, high = np.asarray(value), np.asarray(low), np.asarray(high)
    np.testing.assert_array_equal(np.isnan(value), np.isnan(low))
    np.testing.assert_array_equal(np.isnan(value), np.isnan(high))
    defined = ~np.isnan(value)
    assert (low[defined] <= value[defined]).all()
    assert (value[defined] <= high[defined]).all()


@given(case=coco_cases(), data=st.data())
@settings(max_examples=examples(40))
def test_coco(case: Case, folder: Path, data: st.DataObject) -> None:
    if not load_protocol(case.protocol).ap.interpolation.startswith("trapezoid"):
        check(case.load(folder), case.protocol, data)


@given(case=voc_cases.voc_cases(), data=st.data())
@settings(max_examples=examples(20))
def test_voc(case: voc_cases.Case, data: st.DataObject) -> None:
    check(voc_cases.tables(case), case.rules, data)


@given(seed=st.integers(0, 10_000), pool=st.sampled_from(["none", "classes"]), data=st.data())
@settings(max_examples=examples(10))
def test_federated(seed: int, pool: str, folder: Path, data: st.DataObject) -> None:
    truth, results = federated_cases.federated_case(seed)
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    protocol = {"extends": "lvis", "name": "case", "ap": {"pool": pool}}
    result = whole((folder / "truth.json", folder / "results.json"), protocol)
    check((result.ground_truth, result.detections), protocol, data)


@given(scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2))
def test_bins_are_in_the_order_of_scores(scores: list[float]) -> None:
    ordered = np.sort(np.array(scores))[::-1]
    assert (np.diff(bin_of(ordered)) >= 0).all()


def test_equal_scores_share_a_bin() -> None:
    zero, other, least = bin_of(np.array([0.0, -0.0, -1e-300])).tolist()
    assert zero == other == least


@given(seed=st.integers(0, 10_000), most=st.integers(1, 4), data=st.data())
@settings(max_examples=examples(15))
def test_recall_over_all_and_caps_of_an_image(seed: int, most: int, data: st.DataObject) -> None:
    """What lies beyond the smaller cap of an image is not counted there."""
    name = "recall over all at points"
    caps = {"ranked_files": False, "max_detections": [most, 500]}
    check(crowd_cases.crowd_case(seed, name), {**crowd_cases.crowd_protocol(name), "matching": caps}, data)


def crowd_of_one_class(count: int) -> BoundedEvaluation:
    """Return the bounds of many detections with drawn scores."""
    random = np.random.default_rng(5)
    truth = boxscore.GroundTruth.from_arrays(np.arange(count), ["cat"] * count, [[0, 0, 10, 10]] * count)
    boxes = np.where(random.random((count, 1)) < 0.6, [[0, 0, 10, 9]], [[50, 50, 60, 60]])
    found = boxscore.Detections.from_arrays(np.arange(count), ["cat"] * count, boxes, random.random(count))
    return bounded(
        added([histogram_of(part) for part in parts_of((truth, found), "coco", np.arange(count) % 3)])
    )


def test_bounds_are_tight() -> None:
    small, large = crowd_of_one_class(300), crowd_of_one_class(3_000)
    assert 0 < large["AP"].width < 2e-3
    assert small["AP"].width < 0.02
    assert small["AR100"].width == 0


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({"extends": "lvis-fixed"}, "matching.cap_scope must be 'class' or 'image', for bounds"),
        (
            {"extends": "coco", "ap": {"interpolation": "trapezoid"}},
            "ap.interpolation must be 'points' or 'area'",
        ),
        (
            {"extends": "coco", "summary": [{"key": "MR", "metric": "MR"}]},
            "summary must have no MR, for bounds",
        ),
        ({"extends": "coco", "summary": [{"key": "F", "metric": "FROC"}]}, "summary must have no FROC"),
        ({"extends": "coco", "ap": {"class_mean": "by_images"}}, "ap.class_mean must be 'of_defined'"),
        ({"extends": "coco", "ap": {"interpolation": "area", "score_steps": 9}}, "ap.score_steps must be 0"),
        (
            {
                "extends": "coco",
                "rounding": {"stretch_scores": True},
                "matching": {"ranked_files": True},
            },
            "rounding.stretch_scores must be false",
        ),
    ],
)
def test_what_has_no_bounds_is_refused(protocol: dict[str, Any], message: str) -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[1, 1, 9, 9]])
    found = boxscore.Detections.from_arrays([1, 1], ["cat"] * 2, [[1, 1, 9, 9]] * 2, [0.75, 0.5])
    parts = parts_of((truth, found), protocol, [0])
    with pytest.raises(boxscore.ProtocolError, match=message):
        histogram_of(parts[0])
