"""COCO's analysis of errors over partitions has the bits of one process, under every protocol."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.data.vocabulary import SUPERCATEGORY
from boxscore.diagnostics import error_areas, error_curves
from extensions.diagnostics.test_calibration_in_parts import drawn as drawn_classes
from extensions.diagnostics.test_tide import crowded_scene as scene
from support.drawn import ALWAYS, drawn, each_protocol
from support.examples import examples
from support.insides import asked_again
from support.limits import few_detections_asked_again
from support.quiet import quiet
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.distributed import DistributedEvaluation
from boxscore.formats.parquet import FORMAT
from boxscore.protocols import load_protocol

GROUPS = np.array(["thing", "thing", None, "thing", "other"], dtype=object)


def with_groups(truth: GroundTruth) -> GroundTruth:
    """Let some classes be of one supercategory."""
    groups = {SUPERCATEGORY: GROUPS[: len(truth.categories)]}
    return truth.replaced(categories=dataclasses.replace(truth.categories, columns=groups))


def equal(one: boxscore.Evaluation, other: boxscore.Evaluation, **options: Any) -> None:
    """Compare both answers, to the last bit."""
    mine, yours = (error_curves(result, **options) for result in (one, other))
    assert (mine.classes, mine.steps) == (yours.classes, yours.steps)
    for name in ("recall", "precision", "mean"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(yours, name), name)
    first, second = (error_areas(result, **options) for result in (one, other))
    assert first.classes == second.classes
    np.testing.assert_array_equal(np.array(first.per_class), np.array(second.per_class))
    np.testing.assert_array_equal(np.array(first.total), np.array(second.total))


@contextlib.contextmanager
def both(
    truth: GroundTruth, found: Detections, protocol: Any, folder: Path, *, partition: int, at_least: int = 2
) -> Iterator[tuple[boxscore.Evaluation, DistributedEvaluation]]:
    """Evaluate at once, and in partitions."""
    path = folder / "found.parquet"
    FORMAT.save(found, path)
    with quiet():
        whole = boxscore.evaluate(truth, boxscore.load_detections(path, truth), protocol=protocol)
        rules = load_protocol(protocol)
        with asked_again(truth, path, rules, partition=partition, at_least=at_least) as result:
            yield whole, result


WITHOUT = {
    "cgf1": "annotators",
    "omnilabel": "harmonic_of",
    "coco-wholebody": "no columns",
    "widerface": "scaled",
}
"""Protocols that partitions refuse, or whose keypoints Parquet does not hold."""


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("protocol", each_protocol(ranked=True))
def test_under_every_protocol(protocol: str, tmp_path: Path) -> None:
    """Ties, crowds, regions, groups, columns, masks, keypoints and rotated boxes, an image a partition."""
    if protocol.startswith(tuple(WITHOUT)):
        return
    options: tuple[dict[str, Any], ...] = ({}, {"max_detections": 2, "absent_classes": "zero"})
    for seed, chosen in zip((0, 5), options, strict=True):
        truth, found = drawn(protocol, seed)
        with both(with_groups(truth), found, protocol, tmp_path, partition=24) as (whole, result):
            for each in options if protocol in ALWAYS else (chosen,):
                equal(whole, result, **each)


@pytest.mark.long
@given(
    seed=st.integers(0, 10_000),
    images=st.integers(2, 60),
    decimals=st.sampled_from([None, 1]),
    partition=st.integers(1, 300),
    most=st.sampled_from([1, 5, 40, 1 << 22]),
    protocol=st.sampled_from(["coco", "coco", "voc2012", "openimages-v2", "nuscenes-distance", "lvis-fixed"]),
    cap=st.sampled_from([100, 1, 3]),
)
@settings(max_examples=examples(60))
def test_any_partitions(
    seed: int, images: int, decimals: int | None, partition: int, most: int, protocol: str, cap: int
) -> None:
    truth, found = drawn_classes(seed, images, decimals)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        few_detections_asked_again(patch, most)
        rules = with_groups(truth), found, protocol, Path(folder)
        with both(*rules, partition=partition, at_least=1) as (whole, result):
            equal(whole, result, max_detections=cap)


def test_what_is_refused_says_why(tmp_path: Path) -> None:
    """Scores that are scaled over the data set, options out of range, and parts without partitions."""
    truth, found = drawn("widerface", 0)
    message = (
        r"error curves must be computed with all images in memory\. .*uses the scores of the whole data set"
    )
    with (
        both(truth, found, "widerface", tmp_path, partition=24) as (_, result),
        pytest.raises(boxscore.InputError, match=message),
    ):
        error_curves(result)
    truth, found = scene(1)
    with both(truth, found, "coco", tmp_path, partition=200) as (_, result):
        with pytest.raises(boxscore.InputError, match="max_detections must be"):
            error_areas(result, max_detections=0)
        merged = boxscore.distributed.merge(result.parts.parts)
        with pytest.raises(
            boxscore.InputError, match="error curves of merged parts must be computed from tables"
        ):
            error_curves(merged)


GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_the_command(workers: str, tmp_path: Path, run: Run) -> None:
    found = str(tmp_path / "found")
    run("convert", "--gt", GT, "--dt", DT, "--to", "parquet", "--partitions", "3", "--output", found)
    limit = ["--memory-limit", "2GB", "--workers", workers]
    for options in (
        [],
        ["--absent-classes", "zero", "--output", "csv"],
        ["--curve", "--output", "csv"],
        ["--protocol", "voc2012", "--classes", "star", "circle", "--output", "json"],
        ["--max-detections", "2", "--protocol", "coco-segm", "--output", "csv"],
    ):
        call = ["error-curves", GT, found, *options]
        assert run(*call, *limit).out == run(*call).out
    error = run.error("error-curves", GT, found, "--protocol", "scoreless", *limit)
    assert "the detections must have scores for this. Got none; boxes without scores are counted" in error
