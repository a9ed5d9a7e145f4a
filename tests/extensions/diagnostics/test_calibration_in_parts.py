"""Calibration over partitions has the bits of one process, whatever the partitions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.diagnostics import bootstrap_intervals, calibration_error, reliability
from extensions.diagnostics.test_tide import crowded_scene as scene
from support.examples import examples
from support.insides import asked_again
from support.limits import few_weights_together
from support.quiet import quiet
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.formats.parquet import FORMAT
from boxscore.protocols import load_protocol

Question = Callable[..., Any]


def equal(one: Any, other: Any) -> None:
    """Compare results field by field, to the last bit."""
    assert one.classes == other.classes
    for side in ("per_class", "total", "mean", "low", "high"):
        mine, yours = getattr(one, side, None), getattr(other, side, None)
        for name, value in getattr(mine, "_asdict", lambda mine=mine: {"": mine})().items():
            expected = getattr(yours, name) if name else yours
            np.testing.assert_array_equal(value, expected, f"{side} {name}")


def drawn(seed: int, images: int, decimals: int | None) -> tuple[GroundTruth, Detections]:
    """Draw a few classes whose scores are of any scale, and images without anything."""
    rng = np.random.default_rng(seed)
    objects, found = int(rng.integers(1, 4 * images)), int(rng.integers(0, 12 * images))
    corner = rng.integers(0, 60, (objects, 2)).astype(float)
    boxes = np.hstack([corner, corner + rng.integers(10, 30, (objects, 2))])
    image, label = rng.integers(0, images, objects), rng.integers(0, 3, objects)
    of = rng.integers(0, objects, found)
    near = boxes[of] + rng.integers(-4, 5, (found, 4))
    near[:, 2:] = np.maximum(near[:, 2:], near[:, :2])
    scores = rng.random(found) ** int(rng.integers(1, 40))
    scores = scores if decimals is None else scores.round(decimals)
    truth = GroundTruth.from_arrays(image, label, boxes, images=range(images), categories=range(4))
    kind = np.where(rng.random(found) < 0.8, label[of], rng.integers(0, 4, found))
    return truth, Detections.from_arrays(image[of], kind, near, scores)


@pytest.mark.long
@given(
    seed=st.integers(0, 10_000),
    images=st.integers(2, 60),
    decimals=st.sampled_from([None, 1]),
    partition=st.integers(1, 300),
    bins=st.integers(1, 12),
    binning=st.sampled_from(["width", "count"]),
    video=st.sampled_from([None, 1, 4, 60]),
    threshold=st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=examples(60))
def test_bits_of_one_process(
    seed: int,
    images: int,
    decimals: int | None,
    partition: int,
    bins: int,
    binning: str,
    video: int | None,
    threshold: float,
) -> None:
    truth, found = drawn(seed, images, decimals)
    group = None if video is None else np.random.default_rng(seed).integers(0, video, images).tolist()
    options = {"bins": bins, "binning": binning, "score_threshold": threshold}
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder) / "found.parquet"
        FORMAT.save(found, path)
        whole = boxscore.evaluate(truth, boxscore.load_detections(path, truth))
        with asked_again(truth, path, load_protocol("coco"), partition=partition, at_least=1) as result:
            equal(reliability(whole, **options), reliability(result, **options))
            further = {**options, "group": group, "resamples": 7, "seed": seed}
            equal(calibration_error(whole, **further), calibration_error(result, **further))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"iou_threshold": 0.75, "area": "small", "bins": 3},
    {"resamples": 0, "score_threshold": 1.0},
    {"group": [image % 7 for image in range(30)], "binning": "count"},
]


@pytest.mark.parametrize("room", [1 << 27, 1])
def test_few_weights_at_a_time(room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sets of weights are sent together, and in the same draws as at once."""
    truth, found = scene(4)
    FORMAT.save(found, tmp_path / "found.parquet")
    whole = boxscore.evaluate(truth, boxscore.load_detections(tmp_path / "found.parquet", truth))
    expected = [calibration_error(whole, **{"resamples": 20, **options}) for options in OPTIONS]
    few_weights_together(monkeypatch, room)
    with asked_again(truth, tmp_path / "found.parquet", load_protocol("coco"), partition=90) as result:
        for one, options in zip(expected, OPTIONS, strict=True):
            equal(one, calibration_error(result, **{"resamples": 20, **options}))


def test_no_order_of_images_decides() -> None:
    """The same detections under other ids, in another order: the sums are the same to the bit."""
    truth, found = drawn(3, 40, None)
    renamed = np.random.default_rng(1).permutation(40)
    other = boxscore.evaluate(
        GroundTruth.from_arrays(
            renamed[truth.image], truth.category, truth.boxes, images=range(40), categories=range(4)
        ),
        Detections.from_arrays(
            renamed[found.images.ids[found.image]],
            found.categories.ids[found.category],
            found.boxes,
            found.scores,
        ),
    )
    equal(reliability(boxscore.evaluate(truth, found), bins=7), reliability(other, bins=7))


def test_scores_that_are_no_probabilities_are_named_as_at_once(tmp_path: Path) -> None:
    truth, found = scene(5)
    found = found.replaced(scores=found.scores * 3 - 0.5)
    FORMAT.save(found, tmp_path / "found.parquet")
    whole = boxscore.evaluate(truth, boxscore.load_detections(tmp_path / "found.parquet", truth))
    with pytest.raises(boxscore.InputError) as error:
        reliability(whole)
    parquet = tmp_path / "found.parquet"
    with (
        asked_again(truth, parquet, load_protocol("coco"), partition=90) as result,
        pytest.raises(boxscore.InputError) as other,
    ):
        calibration_error(result)
    assert str(error.value) == str(other.value)
    assert str(error.value).startswith("scores must be in [0, 1] for calibration. Got 2.5; ")


GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"


def test_the_command(tmp_path: Path, run: Run) -> None:
    found = str(tmp_path / "found")
    run("convert", "--gt", GT, "--dt", DT, "--to", "parquet", "--partitions", "3", "--output", found)
    for more in (
        ["--resamples", "20"],
        ["--reliability", "--binning", "count"],
        ["--protocol", "voc2012", "--score-threshold", "0.3"],
        ["--group", "0*([0-9]).*"],
    ):
        asked = ["calibration", GT, found, *more, "--output", "csv"]
        assert run(*asked, "--memory-limit", "2GB", "--workers", "1").out == run(*asked).out


def test_groups_are_read_off_file_names(tmp_path: Path) -> None:
    """Ids are other numbers; parts that were saved hold no names, and say so."""
    truth, found = scene(6)
    names = [f"{'park' if image % 3 else 'street'}_{image * 37 % 100}.jpg" for image in range(30)]
    images = Images.build(truth.images.ids, file_names=names)
    truth = truth.replaced(images=images)
    for table, name in ((truth, "truth"), (found, "found")):
        FORMAT.save(table, tmp_path / f"{name}.parquet")
    path, options = tmp_path / "found.parquet", {"group": r"(.)_?[0-9]"}
    whole = boxscore.evaluate(truth, boxscore.load_detections(path, truth))
    for side in (truth, tmp_path / "truth.parquet"):
        with asked_again(side, path, load_protocol("coco"), partition=200) as result:
            assert result._image_names("") == names
            drawn = {**options, "resamples": 9}
            equal(calibration_error(whole, **drawn), calibration_error(result, **drawn))
            mine, yours = (bootstrap_intervals(one, **options).to_frame() for one in (whole, result))
            assert mine.equals(yours)
    rule = "group must be a column of the images, or a label for each image. Got .*do not store file names"
    with pytest.raises(boxscore.InputError, match=rule):
        bootstrap_intervals(boxscore.scan(truth, found, partitions=3), **options)
