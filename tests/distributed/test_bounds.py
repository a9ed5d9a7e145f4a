"""The exact value lies inside the bounds, always; bounds add up in any order."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.distributed import BoundedEvaluation, Interval, Part, merge
from support import crowd_cases, every_kind, limits
from support.every_kind import Drawn, every, seeds
from support.examples import examples
from support.insides import bounds_of, largest_cell
from support.parted import Tables, drawn_parts, parts_of
from support.running import Run
from support.samples import DT, GT, SHAPES


def check(tables: Tables, protocol: Any, data: st.DataObject) -> None:
    parts = drawn_parts(tables, protocol, data)
    if parts:
        check_parts(parts, data)


def check_parts(parts: list[Part], data: st.DataObject) -> BoundedEvaluation:
    """Check bounds of drawn size against the exact values of the same parts."""
    exact = merge(parts)
    with pytest.MonkeyPatch.context() as patch:
        most = data.draw(st.sampled_from([1, 8, 20, 50, 1 << 20]), label="most")
        limits.few_bins_of_bounds(patch, most)
        together = bounds_of(parts)
        shuffled = data.draw(st.permutations(parts))
        half = len(shuffled) // 2
        bounds = bounds_of(*(some for some in (shuffled[:half], shuffled[half:]) if some))
    assert bounds.counts == exact.counts
    assert bounds.to_json() == together.to_json()
    for key, value in exact.metrics.items():
        assert_inside(value, bounds[key].low, bounds[key].high)
    for key, values in exact.class_values.items():
        assert_inside(values, *bounds.class_values[key].T)
    for name, counts in exact.class_counts.items():
        assert bounds.class_counts[name].tolist() == counts.tolist()
    assert "Bounds" in repr(bounds)
    assert json.loads(bounds.to_json())["exact"] is False
    return bounds


def assert_inside(value: Any, low: Any, high: Any) -> None:
    value, low, high = np.asarray(value), np.asarray(low), np.asarray(high)
    np.testing.assert_array_equal(np.isnan(value), np.isnan(low))
    np.testing.assert_array_equal(np.isnan(value), np.isnan(high))
    defined = ~np.isnan(value)
    assert (low[defined] <= value[defined]).all()
    assert (value[defined] <= high[defined]).all()


def lvis(draw: Any, folder: Path) -> Drawn:
    pool, seed = draw(st.sampled_from(["none", "classes"]), label="pool"), draw(seeds, label="seed")
    protocol = {"extends": "lvis", "name": "case", "ap": {"pool": pool}}
    return every_kind.federated_tables(seed, protocol, folder), protocol


test_coco = every(every_kind.coco, check, 40)
test_voc = every(every_kind.voc, check, 20)
test_federated = every(lvis, check, 10)


IDS: dict[str, Any] = {
    "small": list,
    "negative": lambda rows: [row - 3 for row in rows],
    "far apart": lambda rows: [(row - 3) * (1 << 45) for row in rows],
    "hashes": lambda rows: [10**18 + row for row in rows],
    "beyond 64 bits": lambda rows: [row * (1 << 62) for row in rows],
    "strings": lambda rows: [f"{row:06d}" for row in rows],
    "strings alike": lambda rows: [f"COCO_val2014_{row:012d}" for row in rows],
    "mixed": lambda rows: [str(row) if row % 2 else row for row in rows],
}
SCORES: dict[str, list[float]] = {
    "one": [0.5],
    "two": [0.25, 0.75],
    "denormal": [5e-324, 1e-323, 1e-320],
    "signed": [-1.0, -0.0, 0.0, 5e-324, -5e-324],
    "near": [0.5, 0.5 + 2**-53, 0.5 + 2**-52],
}
ROWS_ARE_KNOWN = {"image_order": {"own", "shared"}, "file_order": {"shared"}}


@pytest.mark.long
@given(
    seed=st.integers(0, 10_000),
    ids=st.sampled_from(list(IDS)),
    scores=st.sampled_from(list(SCORES)),
    equal_scores=st.sampled_from(["image_order", "file_order", "last_first"]),
    tie_order=st.sampled_from(["as_ranked", "true_positives_first", "true_positives_last"]),
    interpolation=st.sampled_from(["points", "area"]),
    epsilon=st.sampled_from([0.0, 2.0**-52, 1e-9, 1e-16]),
    own=st.booleans(),
    data=st.data(),
)
@settings(max_examples=examples(100))
def test_ties(
    seed: int,
    ids: str,
    scores: str,
    equal_scores: str,
    tie_order: str,
    interpolation: str,
    epsilon: float,
    own: bool,
    data: st.DataObject,
) -> None:
    """Many equal scores, in every order that a protocol may have, under every kind of id."""
    random = np.random.default_rng(seed)
    names = np.array(IDS[ids](range(8)), dtype=object)
    image, found = random.integers(0, 8, 12), random.integers(0, 8, 60)
    truth = boxscore.GroundTruth.from_arrays(
        names[image].tolist(),
        random.choice(["cat", "dog"], 12).tolist(),
        random.choice([0, 20], (12, 1)) + np.array([[0, 0, 10, 10]]),
        images=names.tolist(),
    )
    detections = boxscore.Detections.from_arrays(
        names[found].tolist(),
        random.choice(["cat", "dog"], 60).tolist(),
        random.choice([0, 1, 2, 20, 50], (60, 1)) + np.array([[0, 0, 10, 10]]),
        random.choice(SCORES[scores], 60),
    )
    protocol = {
        "extends": "coco",
        "matching": {"equal_scores": equal_scores},
        "ap": {"tie_order": tie_order, "interpolation": interpolation, "precision_epsilon": epsilon},
    }
    parts = parts_of((truth, detections), protocol, random.integers(0, 3, 8))
    if own:
        parts = [dataclasses.replace(part, row_order="own") for part in parts]
    bounds = check_parts(parts, data)
    known = ("own" if own else "shared") in ROWS_ARE_KNOWN.get(equal_scores, set())
    apart = equal_scores == "file_order" or ids in ("small", "negative")
    if known and apart and tie_order == "as_ranked" and largest_cell(bounds) == 1:
        assert all(one.width == 0 or one.width != one.width for one in bounds.metrics.values())


@given(seed=st.integers(0, 10_000), most=st.integers(1, 4), data=st.data())
@settings(max_examples=examples(15))
def test_recall_over_all_and_caps_of_an_image(seed: int, most: int, data: st.DataObject) -> None:
    """What lies beyond the smaller cap of an image is not counted there."""
    name = "recall over all at points"
    caps = {"ranked_files": False, "max_detections": [most, 500]}
    check(crowd_cases.crowd_case(seed, name), {**crowd_cases.crowd_protocol(name), "matching": caps}, data)


def drawn_bounds(count: int, scores: Any, protocol: Any = "coco", first_id: int = 0) -> BoundedEvaluation:
    """Return the bounds of many detections of one class."""
    random = np.random.default_rng(5)
    ids = first_id + np.arange(count)
    truth = boxscore.GroundTruth.from_arrays(ids, ["cat"] * count, [[0, 0, 10, 10]] * count)
    boxes = np.where(random.random((count, 1)) < 0.6, [[0, 0, 10, 9]], [[50, 50, 60, 60]])
    found = boxscore.Detections.from_arrays(ids, ["cat"] * count, boxes, scores(random, count))
    parts = parts_of((truth, found), protocol, np.arange(count) % 3)
    bounds = bounds_of(parts)
    for key, value in merge(parts).metrics.items():
        assert_inside(value, bounds[key].low, bounds[key].high)
    return bounds


@pytest.mark.parametrize("first_id", [0, 2**50, 10**18])
def test_few_detections_have_no_width(first_id: int) -> None:
    bounds = drawn_bounds(3_000, lambda random, count: random.random(count).round(2), first_id=first_id)
    assert {one.width for one in bounds.metrics.values() if one.width == one.width} == {0.0}


@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
def test_many_detections_have_little_width(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits.few_bins_of_bounds(monkeypatch, 2_000)
    limits.few_true_positives_of_exact_areas(monkeypatch, 100)
    metric = "AP" if protocol == "coco" else "mAP"
    drawn = drawn_bounds(3_000, lambda random, count: random.random(count), protocol)[metric].width
    assert 0 < drawn < 0.02
    # Equal scores are told apart by their images.
    if protocol == "coco":
        equal = drawn_bounds(3_000, lambda random, count: np.ones(count), protocol)[metric].width
        assert 0 < equal < 0.02


SIZE = 100 * 8 * 6 + (1 << 10) * (8 + 8 + 1 + 4) + (1 << 10) * 3
"""Counts of a class, of bins, and of outcomes, of which few occur here."""


@pytest.mark.parametrize("count", [1_000, 4_000, 30_000])
def test_size_is_bounded(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits.few_bins_of_bounds(monkeypatch, 1 << 10)
    bounds = drawn_bounds(count, lambda random, count: random.random(count))
    assert bounds.histogram.nbytes <= SIZE
    assert len(pickle.dumps(bounds.histogram)) <= SIZE + 20_000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["equal", "drawn"])
def test_a_million_detections_of_one_class(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits.few_bins_of_bounds(monkeypatch, 1 << 17)
    scores = {"equal": lambda random, count: np.full(count, 0.5), "drawn": lambda random, n: random.random(n)}
    bounds = drawn_bounds(1_000_000, scores[kind])
    assert 0 < bounds["AP"].width < 2e-4
    assert bounds.histogram.nbytes < 1_500_000


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
    with pytest.raises(boxscore.ProtocolError, match=message):
        boxscore.scan(truth, found, protocol=protocol, exact=False)


def test_intervals_are_printed_with_what_they_hold() -> None:
    assert str(Interval(0.12345678, 0.12345679)) == "0.123456 to 0.123457"
    assert str(Interval(0.5, 0.5)) == "0.500000"
    assert str(Interval(np.nan, np.nan)) == "nan"


def test_scan_bounds() -> None:
    paths = SHAPES / "instances.json", SHAPES / "detections.json"
    exact = boxscore.evaluate(*paths).metrics
    bounds = boxscore.scan(*paths, partitions=40, exact=False)
    assert {key: (one.low, one.high) for key, one in bounds.metrics.items()} == {
        key: (value, value) for key, value in exact.items()
    }
    with pytest.raises(boxscore.InputError, match="map must give the histogram of every task"):
        boxscore.scan(*paths, partitions=2, exact=False, map=lambda function, tasks: [])


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
@pytest.mark.parametrize("parquet", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_command_line(protocol: str, parquet: bool, tmp_path: Path, run: Run) -> None:
    truth, found = SHAPES / "instances.json", SHAPES / "detections.json"
    if parquet:
        pytest.importorskip("pyarrow")
        common = ["convert", "--lossy", "--gt", str(truth), "--output"]
        run(*common, tmp_path / "truth.parquet")
        run(*common, tmp_path / "found.parquet", "--dt", found)
        truth, found = tmp_path / "truth.parquet", tmp_path / "found.parquet"
    command = ["evaluate", str(truth), str(found), "--protocol", protocol, "--no-digest"]
    exact = json.loads(run(*command, "--output", "json").out)
    bounds = json.loads(run(*command, "--output", "json", "--bounds").out)
    assert bounds["exact"] is False
    assert bounds["metrics"] == {key: [value, value] for key, value in exact["metrics"].items()}
    assert run(*command, "--bounds").out.startswith(
        "Bounds of 24 images, 113 ground truths, 282 detections, 7 classes"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "csv"], "--output must be text or json with --bounds"),
        (["--per-class"], "--per-class must be left out with --bounds"),
        (["--save-part", "part.npz"], "--save-part must be left out with --bounds"),
        (["--memory-limit", "2GB"], "--memory-limit must be of detections in Parquet"),
        (["--verify"], "--verify must be left out with --bounds"),
        (["--protocol", "lvis-fixed"], "matching.cap_scope must be 'class' or 'image', for bounds"),
    ],
)
def test_what_bounds_cannot_have_is_one_line(options: list[str], message: str, run: Run) -> None:
    paths = [GT, DT]
    assert run.error("evaluate", *paths, "--bounds", *options).startswith(f"boxscore: error: {message}")
