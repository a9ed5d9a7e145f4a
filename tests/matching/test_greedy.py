"""Merging and chunks where the bounds of the fast orders matter."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import boxscore
from boxscore.protocols import load_protocol
from boxscore.similarity.pairs import chunks
from support import limits
from support.examples import first_of
from support.insides import Matches
from support.insides import merge_matches as merge
from support.matches import assert_same_matches as assert_same
from support.matches import match_tables


def parts_of(images: int, protocol: str) -> tuple[Matches, list[Matches]]:
    """Match one object and one detection an image: as a whole, and image by image."""
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (images, 1))
    rows = np.arange(images)
    labels = rows % 2
    truth = boxscore.GroundTruth.from_arrays(rows, labels, boxes, images=rows, categories=[0, 1])
    found = boxscore.Detections.from_arrays(
        rows, labels, boxes, [0.5] * images, images=rows, categories=[0, 1]
    )
    rules = load_protocol(protocol)
    parts = []
    for row in rows:
        one = np.array([row])
        part = match_tables(truth.take(one), found.take(one), rules)
        parts.append(dataclasses.replace(part, row=one, truth_row=one))
    return match_tables(truth, found, rules), parts


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
@pytest.mark.parametrize("images", [1, 2, 3])
def test_parts_in_any_order(images: int, protocol: str) -> None:
    whole, parts = parts_of(images, protocol)
    for order in itertools.permutations(parts):
        assert_same(merge(order), whole)


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
def test_two_detections_of_an_image_keep_their_ranks(protocol: str) -> None:
    """The second image comes first in the parts; both have two detections of one score."""
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (4, 1))
    images = np.array([0, 0, 1, 1])
    found = boxscore.Detections.from_arrays(images, [0] * 4, boxes, [0.5] * 4, images=[0, 1], categories=[0])
    truth = boxscore.GroundTruth.from_arrays([0, 1], [0, 0], boxes[:2], images=[0, 1], categories=[0])
    rules = load_protocol(protocol)
    parts = []
    for image in (1, 0):
        rows, truths = np.flatnonzero(images == image), np.array([image])
        part = match_tables(truth.take(truths), found.take(rows), rules)
        parts.append(dataclasses.replace(part, row=rows[part.row], truth_row=truths))
    assert_same(merge(parts), match_tables(truth, found, rules))


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
@pytest.mark.parametrize("images", [(1 << 16) + shift for shift in (0, 1)])
def test_as_many_rows_as_sixteen_bits_hold(images: int, protocol: str) -> None:
    """A radix sort of 16 bits orders 65,536 rows; the next needs a second digit."""
    rows = np.arange(images)
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (images, 1))
    zeros = np.zeros(images, dtype=int)
    truth = boxscore.GroundTruth.from_arrays(rows, zeros, boxes, images=rows, categories=[0])
    found = boxscore.Detections.from_arrays(rows, zeros, boxes, zeros + 0.5, images=rows, categories=[0])
    rules = load_protocol(protocol)
    whole = match_tables(truth, found, rules)
    halves = []
    for half in (rows[images // 2 :], rows[: images // 2]):
        part = match_tables(truth.take(half), found.take(half), rules)
        halves.append(dataclasses.replace(part, row=half[part.row], truth_row=half))
    assert_same(merge(halves), whole)


@pytest.mark.long
def test_more_rounds_than_sixteen_bits_hold() -> None:
    """One image with 33,000 detections, one with 32,999: their rounds alternate."""
    counts = [33_000, 32_999]
    images = np.repeat([0, 1], counts)
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (len(images), 1))
    found = boxscore.Detections.from_arrays(
        images, images * 0, boxes, np.linspace(1, 0, len(images)), images=[0, 1], categories=[0]
    )
    truth = boxscore.GroundTruth.from_arrays([0, 1], [0, 0], boxes[:2], images=[0, 1], categories=[0])
    rules = load_protocol({"extends": "coco", "matching": {"max_detections": []}, "summary": []})
    whole = match_tables(truth, found, rules)
    assert_same(match_tables(truth, found, rules, workers=2), whole)
    assert whole.pair_detection[whole.pairs_matched(0, 0)].tolist() == [0, 33_000]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_chunks_leave_nothing_out(size: int) -> None:
    rng = np.random.default_rng(size)
    for length in range(12):
        for high in (1, 2, 6):
            counts = rng.integers(0, high, length)
            cuts = chunks(counts, size)
            assert [row for low, end in cuts for row in range(low, end)] == list(range(length))[
                : cuts[-1][1] if cuts else 0
            ]
            assert counts[cuts[-1][1] if cuts else 0 :].sum() == 0
            assert all(counts[low : end - 1].sum() < size for low, end in cuts)


def test_a_table_without_keypoints_has_no_pairs() -> None:
    """Where there are no rows, there may be no column of keypoints."""
    truth = boxscore.GroundTruth.from_arrays([], [], [], images=[1], categories=["person"])
    found = boxscore.Detections.from_arrays([], [], [], [])
    evaluation = boxscore.evaluate(truth, found, protocol="coco-keypoints")
    assert len(evaluation.matches) == 0
    assert np.isnan(evaluation.metrics["AP"])


def test_a_similarity_equal_to_the_threshold_matches() -> None:
    points = np.full((1, 17, 3), 2.0)
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 9, 9]], keypoints=points)
    found = boxscore.Detections.from_arrays([1], [1], [[0, 0, 9, 9]], [0.5], keypoints=points)
    matching = {"iou_thresholds": [1.0], "largest_threshold": 1.0}
    protocol = {"extends": "coco-keypoints", "matching": matching, "summary": [{"key": "AP"}]}
    assert boxscore.evaluate(truth, found, protocol=protocol).metrics["AP"] > 0.99


@pytest.mark.parametrize("seed", first_of(2, range(6)))
def test_a_crowded_place(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every detection overlaps every object, more of them than WIDE: crowds, sizes in and out of ranges."""
    random = np.random.default_rng(seed)
    objects, detections = 150, 90
    side = random.choice([31.0, 33.0, 95.0, 97.0])
    base = np.array([0, 0, side, side])
    truth = boxscore.GroundTruth.from_arrays(
        [1] * objects,
        [1] * objects,
        base + random.integers(0, 5, (objects, 4)),
        crowd=random.random(objects) < 0.1,
    )
    found = boxscore.Detections.from_arrays(
        [1] * detections,
        [1] * detections,
        base + random.integers(0, 5, (detections, 4)),
        random.integers(0, 9, detections) / 9,
    )
    rules = load_protocol("coco")
    here = match_tables(truth, found, rules)
    assert len(here.iou) > 64 * detections
    for wide in (0, objects):  # one by one, and in rounds
        limits.wide_from(monkeypatch, wide)
        assert_same(here, match_tables(truth, found, rules))
