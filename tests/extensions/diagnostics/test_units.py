"""What intervals count: images with an object, or groups of them."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.diagnostics import bootstrap_intervals, compare_detectors
from boxscore.errors import InputError
from boxscore.extensions.decisions import compare
from boxscore.extensions.diagnostics import bootstrap
from boxscore.extensions.diagnostics._units import units_of_images, units_of_values
from boxscore.extensions.weights.resampling import Draws


def evaluation_of(names, *, columns=None, classes=("cat",), per_image=1):
    """An evaluation of images with these names, every object found."""
    count = len(names)
    image = np.repeat(np.arange(count), per_image)
    boxes = np.array(
        [[10.0 + 40 * (n % per_image), 10, 40 + 40 * (n % per_image), 50] for n in range(len(image))]
    )
    labels = [classes[n % len(classes)] for n in range(len(image))]
    images = Images.build(np.arange(count), file_names=list(names), columns=columns)
    truth = boxscore.GroundTruth.from_arrays(image, labels, boxes, images=images)
    scores = np.linspace(0.2, 0.9, len(image))
    return boxscore.evaluate(truth, boxscore.Detections.from_arrays(image, labels, boxes, scores))


VIDEOS = [f"park{video}_{frame:04d}.jpg" for video in range(4) for frame in range(10)]


def test_a_group_is_a_column_a_pattern_or_a_label_for_each_image():
    video = np.repeat([7, 8, 9, 10], 10)
    evaluation = evaluation_of(VIDEOS, columns={"video": video})
    expected = np.repeat(np.arange(4), 10)
    for group in ("video", r"(.+)_[0-9]+", video.tolist(), [str(name)[:5] for name in VIDEOS]):
        units = units_of_images(evaluation, group)
        assert len(set(zip(units.tolist(), expected.tolist(), strict=True))) == 4
    assert units_of_images(evaluation, None) is None


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("camera", r"group must be a column of the images \('video'\). Got 'camera'"),
        ("(", "group must be a regular expression"),
        (
            r"(street)_",
            r"group must match the name of every image. Got '\(street\)_', not in 'park0_0000.jpg'",
        ),
        (r"(?:park)", r"group must have a group in parentheses: '\(\.\+\)_\[0-9\]\+'\. Got '\(\?:park\)'"),
        ([1, 2], "group"),
        (["a"] * 39 + [None], "group must be known for every image. Got none in image 39"),
    ],
)
def test_groups_that_are_refused(group, message):
    evaluation = evaluation_of(VIDEOS, columns={"video": np.repeat([1, 2], 20)})
    with pytest.raises(InputError, match=message):
        units_of_images(evaluation, group)


def test_draws_of_groups_are_whole():
    units = np.array([0, 0, 1, 2, 1, 2, 2], dtype=np.int32)
    draws = list(Draws.of_seed(7, 200, 5, units))
    for weights in draws:
        of_units = [set(weights[units == unit].tolist()) for unit in range(3)]
        assert all(len(values) == 1 for values in of_units)
        assert sum(values.pop() for values in of_units) == 3
    cut = [weights for batch in Draws.of_seed(7, 200, 5, units).batches(33) for weights in batch]
    np.testing.assert_array_equal(draws, cut)


def test_frames_of_one_video_say_little():
    """Every video easy or hard as a whole: its frames tell nothing more."""
    random = np.random.default_rng(0)
    names = [f"video{video}_{frame:03d}" for video in range(8) for frame in range(25)]
    image = np.arange(200)
    boxes = np.tile([10.0, 10.0, 50.0, 50.0], (200, 1))
    images = Images.build(image, file_names=names)
    truth = boxscore.GroundTruth.from_arrays(image, ["cat"] * 200, boxes, images=images)
    seen = np.repeat(random.random(8) < 0.5, 25)
    detections = boxscore.Detections.from_arrays(
        image[seen], ["cat"] * seen.sum(), boxes[seen], random.random(seen.sum())
    )
    evaluation = boxscore.evaluate(truth, detections)
    options = {"metrics": ["AR100"]}
    with pytest.warns(UserWarning, match="look like frames of 8 videos"):
        images_alone = bootstrap_intervals(evaluation, **options).total
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        videos = bootstrap_intervals(evaluation, **options, group="(.+)_").total
    assert videos.images.tolist() == [8]
    assert images_alone.images.tolist() == [200]
    assert (videos.high - videos.low) > 3 * (images_alone.high - images_alone.low)


@pytest.mark.parametrize(
    "names",
    [
        [f"{number:012d}.jpg" for number in np.random.default_rng(0).permutation(90000)[:60]],
        [f"COCO_val2014_{number:012d}.jpg" for number in np.random.default_rng(0).permutation(90000)[:60]],
        [
            f"200{n % 4}_{number:06d}.jpg"
            for n, number in enumerate(np.random.default_rng(0).permutation(9000)[:60])
        ],
        [f"img{number}" for number in range(60)],
        ["one.jpg", "two.jpg", "three.jpg"] * 20,
        [*VIDEOS, "cover.jpg"],
    ],
)
def test_other_names_are_no_frames(names):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bootstrap_intervals(evaluation_of(names), metrics=["AP"])


def test_groups_are_read_once_and_share_their_draws(monkeypatch):
    evaluation = evaluation_of(VIDEOS, columns={"video": np.repeat([6, 7, 8, 9], 10)})
    read = []

    def counted(of, group):
        read.append(group)
        return units_of_images(of, group)

    for module in (bootstrap, compare):
        monkeypatch.setattr(module, "units_of_images", counted)
    options = {"metrics": ["AP"]}
    others = {name: dataclasses.replace(evaluation) for name in "bc"}
    comparison = compare_detectors({"a": evaluation, **others}, group="video", resamples=20, **options)
    assert read == ["video"]
    assert comparison.intervals is comparison.intervals
    assert read == ["video"] * 2  # intervals of each detector are computed when first used
    monkeypatch.setattr(type(evaluation), "_weighted_metrics", None)  # of the same groups nothing is computed
    bootstrap_intervals(evaluation, group="(.+)_", **options)


def test_units_by_loops(scene):
    truth, detections = scene(0, images=25)
    evaluation = boxscore.evaluate(truth, detections)
    matched, protocol = evaluation.matched, evaluation.protocol
    units = (np.arange(25) // 4).astype(np.int32)
    for of_images in (None, units):
        counts = units_of_values(evaluation, protocol.rows, of_images)
        for m, row in enumerate(protocol.rows):
            area = protocol.position_of(row)[0]
            seen = [set() for _ in evaluation.labels]
            for n in np.flatnonzero(matched.counted(area)):
                image = int(matched.truth_image[n])
                seen[matched.truth_category[n]].add(image if of_images is None else int(units[image]))
            expected = [*map(len, seen), len(set().union(*seen))]
            assert counts[m].tolist() == expected


def test_no_interval_where_none_holds():
    """A class in four images, and 19 images in all, have none."""
    for images, of_class, of_all in ((19, True, False), (4, False, False), (20, True, True)):
        result = bootstrap_intervals(evaluation_of([f"x{n}y" for n in range(images)]))
        assert np.isfinite(result.per_class.low[0, 0]) == of_class
        assert np.isfinite(result.total.low[0]) == of_all
        assert result.total.images[0] == images


def test_groups_are_drawn_in_a_comparison(scene):
    truth, detections = scene(0, images=40)
    worse = dataclasses.replace(detections, boxes=detections.boxes + 4)
    results = {name: boxscore.evaluate(truth, table) for name, table in (("a", detections), ("b", worse))}
    group = (np.arange(40) // 5).tolist()
    comparison = compare_detectors(results, metrics=["AP"], resamples=100, group=group)
    alone = bootstrap_intervals(results["a"], metrics=["AP"], group=group).total
    assert comparison.resampling.units == 8
    assert comparison.intervals.low[0, 0] == alone.low[0]
    assert "paired permutation test over groups" in comparison.verdict_text()
