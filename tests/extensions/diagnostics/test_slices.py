"""Slices of images and of objects."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import boxscore
from boxscore import InputError
from boxscore.diagnostics import slice_names, slice_scores


def with_columns(tables):
    truth, detections = tables
    count = len(truth.images)
    camera = np.array(["left", "right", "top"], dtype=object)[np.arange(count) % 3]
    images = dataclasses.replace(truth.images, columns={"camera": camera, "lux": np.arange(count) * 1.5})
    truth = dataclasses.replace(truth, images=images, columns={"truncated": np.arange(len(truth)) % 2 == 0})
    return truth, dataclasses.replace(detections, images=images)


def test_by_image_column_is_evaluating_the_images_alone(scene):
    truth, detections = with_columns(scene(0, images=60))
    table = slice_scores(boxscore.evaluate(truth, detections), by="camera").to_frame().set_index("slice")
    assert table.index.tolist() == ["left", "right", "top"]
    for camera in table.index:
        chosen = truth.images.ids[truth.images.columns["camera"] == camera].tolist()
        alone = boxscore.evaluate(truth, detections, images=chosen)
        for name, key in (("AP", "AP"), ("AP50", "AP50"), ("AP75", "AP75"), ("AR", "AR100")):
            assert table.loc[camera, name] == pytest.approx(alone.metrics[key], abs=1e-12)
        assert table.loc[camera, "images"] == 20
        assert table.loc[camera, "detections"] == len(alone.detections)


def test_by_size_is_cocos(sample):
    evaluation = boxscore.evaluate(*sample)
    table = slice_scores(evaluation, by="size").to_frame().set_index("slice")
    for name, short in (("small", "s"), ("medium", "m"), ("large", "l")):
        assert table.loc[name, "AP"] == pytest.approx(evaluation.metrics[f"AP{short}"], abs=1e-15)
        assert table.loc[name, "AR"] == pytest.approx(evaluation.metrics[f"AR{short}"], abs=1e-15)


@pytest.mark.parametrize("by", ["size", "relative_size", "aspect_ratio"])
def test_bins_hold_every_object_once(scene, by):
    truth, detections = scene(0, images=40)
    table = slice_scores(boxscore.evaluate(truth, detections), by=by, bins=4).to_frame()
    assert table["ground_truths"].sum() == (~truth.crowd).sum()


def test_percentiles_are_even(scene):
    truth, detections = scene(0, images=80)
    counts = slice_scores(boxscore.evaluate(truth, detections), by="size", bins=4).to_frame()["ground_truths"]
    assert counts.max() - counts.min() <= 2


def test_crowdedness(scene):
    truth, detections = scene(0, images=40)
    table = slice_scores(boxscore.evaluate(truth, detections), by="crowdedness").to_frame()
    assert table["slice"].tolist() == ["0", "1", "2-4", "5-9", ">= 10"]
    assert table["images"].sum() == 40
    assert table["ground_truths"].sum() == (~truth.crowd).sum()


def test_by_annotation_column(scene):
    truth, detections = with_columns(scene(0, images=40))
    table = slice_scores(boxscore.evaluate(truth, detections), by="truncated").to_frame().set_index("slice")
    flags = truth.columns["truncated"]
    assert table.loc["True", "ground_truths"] == (flags & ~truth.crowd).sum()
    # The same by hand: the others are ignored objects, which absorb nothing twice.
    ranges = {"all": [0, 1e10], "True": [1, 1], "False": [0, 0]}
    rules = {"extends": "coco", "name": "x", "ignore": {"area_ranges": ranges}}
    rules["summary"] = [{"key": "AR", "metric": "AR", "area": "True"}]
    recoded = dataclasses.replace(truth, area=flags.astype(float))
    by_hand = boxscore.evaluate(recoded, detections, protocol=rules)
    assert table.loc["True", "AR"] == pytest.approx(by_hand.metrics["AR"], abs=1e-12)


def test_numeric_column_in_bins(scene):
    truth, detections = with_columns(scene(0, images=40))
    evaluation = boxscore.evaluate(truth, detections)
    table = slice_scores(evaluation, by="lux", bins=[0, 15, 30, 100]).to_frame()
    assert table["images"].tolist() == [10, 10, 20]
    assert {"camera", "lux", "truncated"} < set(slice_names(evaluation))


def test_a_name_of_several_is_said_in_full(scene):
    truth, detections = with_columns(scene(0, images=40))
    plain = boxscore.evaluate(truth, detections)
    size, camera, truncated = (
        slice_scores(plain, by=name).values for name in ("size", "camera", "truncated")
    )
    images = dataclasses.replace(truth.images, columns={"size": truth.images.columns["camera"]})
    own = {"size": truth.columns["truncated"], "crowdedness": truth.columns["truncated"]}
    evaluation = boxscore.evaluate(truth.replaced(images=images, columns=own), detections)
    names = ["boxes.size", "images.size", "annotations.size"]
    for name, values in zip(names, (size, camera, truncated), strict=True):
        assert slice_scores(evaluation, by=name).values.tobytes() == values.tobytes()
    assert {*names, "boxes.crowdedness", "annotations.crowdedness"} < {*slice_names(evaluation)}
    with pytest.raises(InputError) as error:
        slice_scores(evaluation, by="size")
    assert str(error.value) == (
        "by must have one meaning. Got 'size', which is of boxes and of images and of annotations; "
        "use one of boxes.size, images.size, annotations.size."
    )


def test_voc(scene):
    table = slice_scores(boxscore.evaluate(*scene(0, images=40), protocol="voc2012"), by="size").to_frame()
    assert "AP75" not in table
    assert table["AP"].equals(table["AP50"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "weather"}, "by must be one of"),
        ({"by": "size", "bins": [5, 1]}, "ascending edges"),
        ({"by": "camera", "bins": 3}, "column with bins must hold numbers"),
    ],
)
def test_refusals(scene, options, message):
    with pytest.raises(boxscore.InputError, match=message):
        slice_scores(boxscore.evaluate(*with_columns(scene(0))), **options)


def test_relative_size_needs_the_images_sizes():
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 9, 9]])
    found = boxscore.Detections.from_arrays([1], [1], [[0, 0, 9, 9]], [0.5])
    with pytest.raises(boxscore.InputError, match="width and height"):
        slice_scores(boxscore.evaluate(truth, found), by="relative_size")


def test_a_column_without_values_has_no_slices():
    columns = {"lens": np.array([], dtype=object)}
    truth = boxscore.GroundTruth.from_arrays([], [], np.zeros((0, 4)), columns=columns)
    found = boxscore.Detections.from_arrays([], [], np.zeros((0, 4)), [])
    with pytest.raises(
        InputError, match=r"slices by lens must have values to slice by\. Got no annotations\."
    ):
        slice_scores(boxscore.evaluate(truth, found), by="lens")


def test_a_combination_is_slicing_the_images_alone(scene):
    truth, detections = with_columns(scene(0, images=60))
    result = boxscore.evaluate(truth, detections, digest=False)
    table = slice_scores(result, by="camera, size").to_frame().set_index("slice")
    for camera in ("left", "right", "top"):
        chosen = truth.images.ids[truth.images.columns["camera"] == camera].tolist()
        alone = slice_scores(boxscore.evaluate(truth, detections, images=chosen, digest=False), by="size")
        for row, size in enumerate(alone.slices):
            both = table.loc[f"{camera}, {size}"]
            assert both[["images", "ground_truths", "detections"]].tolist() == [
                alone.images[row],
                alone.ground_truths[row],
                alone.detections[row],
            ]
            np.testing.assert_allclose(both[alone.metrics].astype(float), alone.values[row], atol=1e-12)


def test_columns_of_images_combine(scene):
    truth, detections = with_columns(scene(0, images=40))
    result = boxscore.evaluate(truth, detections, digest=False)
    table = slice_scores(result, by="camera,crowdedness").to_frame()
    assert len(table) == 3 * 5
    assert table["images"].sum() == 40
    camera = slice_scores(result, by="camera").to_frame()
    assert table["ground_truths"].sum() == camera["ground_truths"].sum()
    with pytest.raises(InputError, match="a column of annotations"):
        slice_scores(result, by="camera,truncated")
    with pytest.raises(InputError, match="bins must not be used with several names"):
        slice_scores(result, by="camera,size", bins=3)
