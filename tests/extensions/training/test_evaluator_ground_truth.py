"""Predictions alone, batch by batch, against a ground truth: the bits of ``evaluate`` on tables."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pycocotools import mask

import boxscore
from boxscore import BoxscoreWarning, Detections, Evaluator, GroundTruth, InputError
from boxscore.data.vocabulary import Images

SHAPES = Path(__file__).parents[3] / "datasets" / "shapes_coco"

PROTOCOLS = ("coco", "coco-segm", "voc2012", "ultralytics")


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return boxscore.load_ground_truth(SHAPES / "instances.json")


@pytest.fixture(scope="module")
def by_image(truth: GroundTruth) -> dict[Any, list[dict[str, Any]]]:
    rows = json.loads((SHAPES / "detections.json").read_text())
    found: dict[Any, list[dict[str, Any]]] = {image: [] for image in truth.images.ids.tolist()}
    for row in rows:
        width, height = (
            truth.images.sizes[truth.images.rows(np.array([row["image_id"]]))[0]].astype(int).tolist()
        )
        x, y, w, h = row["bbox"]
        code = mask.frPyObjects([[x, y, x + w, y, x + w, y + h, x, y + h]], height, width)[0]
        found[row["image_id"]].append({**row, "segmentation": code})
    order = np.random.default_rng(5).permutation(list(found)).tolist()
    return {image: found[image] for image in order}


def fed(evaluator: Evaluator, by_image: dict[Any, list[Any]], size: int = 3) -> Evaluator:
    images = list(by_image)
    for start in range(0, len(images), size):
        batch = images[start : start + size]
        evaluator.update([by_image[image] for image in batch], image_ids=batch)
    return evaluator


def assert_same(one: boxscore.Evaluation, other: boxscore.Evaluation) -> None:
    assert list(one.metrics) == list(other.metrics)
    assert np.array(list(one.metrics.values())).tobytes() == np.array(list(other.metrics.values())).tobytes()
    pd.testing.assert_frame_equal(one.per_class, other.per_class)
    keys = ["image_id", "class", "outcome", "annotation_id", "score"]
    frames = [each.matches[keys].sort_values(keys, ignore_index=True) for each in (one, other)]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.long
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_bits_of_evaluate(
    protocol: str, truth: GroundTruth, by_image: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # equal scores are taken in file order: that of the ids of images
    rows = [row for image in sorted(by_image) for row in by_image[image]]
    detections = Detections.from_arrays(
        [row["image_id"] for row in rows],
        [row["category_id"] for row in rows],
        None if protocol == "coco-segm" else [row["bbox"] for row in rows],
        [row["score"] for row in rows],
        masks=[row["segmentation"] for row in rows],
        box_format="xywh",
        images=truth.images,
        categories=truth.categories,
    )
    expected = boxscore.evaluate(truth, detections, protocol=protocol, digest=False)
    assert 0 < expected["AP"] < 1
    assert_same(fed(Evaluator(protocol=protocol, ground_truth=truth), by_image).compute(), expected)
    monkeypatch.setattr("boxscore.extensions.training.evaluating.MATCHED_TOGETHER", 1)
    images = list(by_image)
    halves = [Evaluator(protocol=protocol, ground_truth=truth) for _ in range(2)]
    for half, part in zip(halves, (images[::2], images[1::2]), strict=True):
        fed(half, {image: by_image[image] for image in part}, 1)
    first = pickle.loads(pickle.dumps(halves[0]))
    first.merge(halves[1])
    assert_same(first.compute(), expected)


def test_what_a_table_knows_stays() -> None:
    images = Images.build(
        [1, 2], file_names=["a.png", "b.png"], sizes=[[80, 60], [90, 70]], columns={"night": [True, False]}
    )
    truth = GroundTruth.from_arrays(
        [2, 1],
        [1, 1],
        [[0, 0, 9, 9], [0, 0, 9, 9]],
        ids=[70, 60],
        area=[3, 4],
        images=images,
        categories={1: "cat"},
        columns={"occluded": [1, 2]},
    )
    evaluator = Evaluator(ground_truth=truth)
    prediction = {"boxes": [[0, 0, 9, 9]], "labels": ["cat"], "scores": [0.5]}
    evaluator.update([prediction], image_ids=["b.png"])
    evaluator.update([{**prediction, "image_id": "a.png"}])
    made = evaluator.compute().ground_truth
    rows = zip(made.ids.tolist(), made.area.tolist(), made.columns["occluded"].tolist(), strict=True)
    assert sorted(rows) == [(60, 4, 2), (70, 3, 1)]
    assert made.images.file_names.tolist() == ["a.png", "b.png"]
    assert made.images.sizes.tolist() == [[80, 60], [90, 70]]
    assert made.images.columns["night"].tolist() == [True, False]


def test_the_images_that_came_are_evaluated(truth: GroundTruth, by_image: Any) -> None:
    few = dict(list(by_image.items())[:7])
    rows = [row for image in sorted(few) for row in few[image]]
    detections = Detections.from_arrays(
        [row["image_id"] for row in rows],
        [row["category_id"] for row in rows],
        [row["bbox"] for row in rows],
        [row["score"] for row in rows],
        box_format="xywh",
        images=truth.images,
        categories=truth.categories,
    )
    expected = boxscore.evaluate(truth, detections, images=list(few), digest=False)
    evaluator = fed(Evaluator(ground_truth=truth), few)
    with pytest.warns(BoxscoreWarning, match=r"^7 of 24 expected images arrived, without image "):
        assert_same(evaluator.compute(), expected)


def test_an_empty_batch_and_a_repeated_image(truth: GroundTruth, by_image: Any) -> None:
    evaluator = fed(Evaluator(ground_truth=truth, duplicates="ignore"), by_image)
    expected = dict(evaluator.compute().metrics)
    evaluator.update([], image_ids=[])
    evaluator.update([[]], image_ids=[next(iter(by_image))])
    assert dict(evaluator.compute().metrics) == expected


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ([[]],),
            {},
            "image_id must be in every prediction. Got none in image 0 of the batch; pass image_ids=",
        ),
        (
            ([[]],),
            {"image_ids": [999]},
            "image_id must be in the ground truth. Got 999 in image 0 of the batch",
        ),
        (([[], []],), {"image_ids": [1]}, "image_ids must be as long as predictions"),
        (([[]], [[]]), {"image_ids": [1]}, "targets must not be combined with a ground_truth. Got some"),
    ],
)
def test_what_update_refuses(arguments: Any, options: Any, message: str, truth: GroundTruth) -> None:
    evaluator = Evaluator(ground_truth=truth)
    with pytest.raises(InputError) as caught:
        evaluator.update(*arguments, **options)
    assert message in str(caught.value)
    assert len(evaluator) == 0


def test_what_else_is_refused(truth: GroundTruth) -> None:
    with pytest.raises(InputError, match=r"a GroundTruth. Got a str; boxscore.load_ground_truth reads files"):
        Evaluator(ground_truth="instances.json")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="classes must not be combined with a ground_truth"):
        Evaluator(ground_truth=truth, classes=["cat"])
    with pytest.raises(InputError, match=r"targets must be given. Got none; Evaluator\(ground_truth=...\)"):
        Evaluator().update([[]])


def test_ids_beside_targets() -> None:
    evaluator = Evaluator()
    target = {"boxes": [[0, 0, 9, 9]], "labels": [1]}
    evaluator.update([{**target, "scores": [1.0]}], [target], image_ids=["a"])
    assert evaluator.compute().ground_truth.images.ids.tolist() == ["a"]
