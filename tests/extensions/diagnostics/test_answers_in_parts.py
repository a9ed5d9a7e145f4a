"""What answers over partitions need beside rows: room, images behind cells, units, rules that are refused."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.diagnostics import (
    bootstrap_intervals,
    localization_recall_precision,
    tie_bounds,
    top_confusions,
)
from boxscore.errors import InputError
from extensions.diagnostics.test_calibration_in_parts import drawn
from extensions.diagnostics.test_tide import crowded_scene as scene
from support import limits
from support.examples import examples
from support.insides import asked_again
from support.quiet import quiet
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.formats.parquet import FORMAT
from boxscore.protocols import load_protocol


def equal(one: Any, other: Any) -> None:
    """Compare results field by field, to the last bit."""
    assert one.classes == other.classes
    for side in ("per_class", "total", "mean"):
        if hasattr(one, side):
            for name, value in getattr(one, side)._asdict().items():
                np.testing.assert_array_equal(value, getattr(getattr(other, side), name), f"{side} {name}")


@pytest.mark.parametrize("options", [{}, {"limit": 2}, {"limit": None, "score_threshold": 0.5}])
def test_confusions_and_the_images_behind_them(options: dict[str, Any], tmp_path: Path) -> None:
    truth, found = scene(6)
    FORMAT.save(found, tmp_path / "found.parquet")
    whole = boxscore.evaluate(truth, boxscore.load_detections(tmp_path / "found.parquet", truth))
    opened = truth, tmp_path / "found.parquet", load_protocol("coco")
    with asked_again(*opened, partition=150) as result:
        one, other = (top_confusions(each, **options) for each in (whole, result))
        np.testing.assert_equal(vars(one), vars(other))
        assert len(one.count) > 3
    with (
        asked_again(*opened, partition=150, room=5_000) as result,
        pytest.raises(
            InputError, match=r"--memory-limit must leave a process .* ask for fewer confusions \(--top\)"
        ),
    ):
        top_confusions(result, **options)


@pytest.mark.parametrize("group", [None, "camera"])
def test_intervals_count_the_units_with_objects(
    group: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends of intervals depend on how many images, or groups, have an object of a class and size."""
    truth, found = scene(7)
    camera = np.where(np.arange(len(truth.images)) % 12 < 2, "left", np.arange(len(truth.images)) % 7)
    columns = {"camera": camera.astype(object)}
    truth = truth.replaced(images=dataclasses.replace(truth.images, columns=columns))
    FORMAT.save(found, tmp_path / "found.parquet")
    whole = boxscore.evaluate(truth, boxscore.load_detections(tmp_path / "found.parquet", truth))
    with asked_again(truth, tmp_path / "found.parquet", load_protocol("coco"), partition=150) as result:
        one, other = (bootstrap_intervals(each, group=group) for each in (whole, result))
        for side in ("per_class", "total"):
            for name, values in getattr(one, side)._asdict().items():
                np.testing.assert_array_equal(values, getattr(getattr(other, side), name), name)
        assert len(np.unique(one.total.images)) > 1


@pytest.mark.long
@given(
    seed=st.integers(0, 10_000),
    images=st.integers(2, 60),
    decimals=st.sampled_from([None, 1]),
    partition=st.integers(1, 300),
    most=st.sampled_from([1, 5, 40, 1 << 22]),
    at_score=st.sampled_from([None, None, 0.3]),
)
@settings(max_examples=examples(60))
def test_lrp_of_any_partitions(
    seed: int, images: int, decimals: int | None, partition: int, most: int, at_score: float | None
) -> None:
    """Overlaps add up to the same bits in any partitions and ranges of scores."""
    truth, found = drawn(seed, images, decimals)
    with tempfile.TemporaryDirectory() as folder, quiet(), pytest.MonkeyPatch.context() as patch:
        limits.few_scores_together(patch, most)
        path = Path(folder) / "found.parquet"
        FORMAT.save(found, path)
        whole = boxscore.evaluate(truth, boxscore.load_detections(path, truth))
        with asked_again(truth, path, load_protocol("coco"), partition=partition, at_least=1) as result:
            options = {"at_score": at_score, "iou_threshold": 0.6}
            equal(
                localization_recall_precision(whole, **options),
                localization_recall_precision(result, **options),
            )


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (
            {"extends": "openimages-v2", "group": {"weight": 0.25}},
            r"LRP must be computed with all images in memory\. .*gives ground truths weights",
        ),
        (
            "lvis-fixed",
            r"LRP must be computed with all images in memory\. .*uses the scores of the whole data set",
        ),
    ],
)
def test_rules_that_partitions_cannot_keep_are_named(protocol: Any, message: str, tmp_path: Path) -> None:
    truth, found = scene(2)
    groups = truth.replaced(crowd=np.zeros(len(truth), dtype=bool), group=truth.crowd)
    FORMAT.save(found, tmp_path / "found.parquet")
    with (
        asked_again(groups, tmp_path / "found.parquet", load_protocol(protocol), partition=200) as result,
        pytest.raises(boxscore.InputError, match=message),
    ):
        localization_recall_precision(result)


def test_a_class_too_large_has_no_expectation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds and counts are there; the note says what is left out."""
    limits.few_detections_asked_again(monkeypatch, 25)
    truth, found = scene(3)
    FORMAT.save(found, tmp_path / "found.parquet")
    whole = tie_bounds(boxscore.evaluate(truth, boxscore.load_detections(tmp_path / "found.parquet", truth)))
    with asked_again(truth, tmp_path / "found.parquet", load_protocol("coco"), partition=200) as result:
        bounds = tie_bounds(result)
    assert bounds.note == (
        "expected: excludes 3 classes with more detections than fit in one process, also in means over classes"
    )
    assert np.isnan(bounds.per_class.expected[:3]).all()
    for name in ("value", "lowest", "highest", "tied", "contested"):
        np.testing.assert_array_equal(getattr(bounds.total, name), getattr(whole.total, name))


GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"


def test_the_commands(tmp_path: Path, run: Run) -> None:
    found = str(tmp_path / "found")
    run("convert", "--gt", GT, "--dt", DT, "--to", "parquet", "--partitions", "3", "--output", found)
    limit = ["--memory-limit", "2GB", "--workers", "1"]
    for call in (
        ["operating-points"],
        ["froc", "--fppi", "0.5", "1"],
        ["ties", "--per-class"],
        ["confusion"],
        ["presence"],
        ["presence", "--counts"],
        ["lrp"],
        ["lrp", "--at-score", "0.4"],
    ):
        asked = [call[0], GT, found, *call[1:], "--output", "csv"]
        assert run(*asked, *limit).out == run(*asked).out
