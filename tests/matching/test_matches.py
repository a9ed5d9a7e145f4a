"""Matches as a value: merging, asking, leaving out, pickling."""

from __future__ import annotations

import dataclasses
import pickle
from typing import get_args

import numpy as np
import pytest

from boxscore import Detections, GroundTruth, InputError, evaluate, load_protocol
from boxscore.protocols.tables.labels import GROUP_TRUE_POSITIVES
from boxscore.protocols.tables.matching import EqualScores
from support.insides import Matches
from support.insides import merge_matches as merge
from support.limits import few_sorted_together
from support.matches import assert_same_matches, match_tables

BOX, AWAY = [0, 0, 10, 10], [50, 50, 60, 60]


def part(
    image: object, label: object, *, scores: tuple[float, ...] = (0.9,), protocol: str = "coco"
) -> Matches:
    """One object of a class in an image, and detections on it; vocabularies of its own."""
    truth = GroundTruth.from_arrays([image], [label], [BOX])
    count = len(scores)
    detections = Detections.from_arrays([image] * count, [label] * count, [BOX] * count, scores)
    return evaluate(truth, detections, protocol=protocol).matched


def renumbered(matches: Matches, rows: list[int], truth_rows: list[int]) -> Matches:
    return dataclasses.replace(
        matches, row=np.array(rows)[matches.row], truth_row=np.array(truth_rows)[matches.truth_row]
    )


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
def test_parts_with_other_vocabularies_merge(protocol: str) -> None:
    """The second part has an earlier image and another class: all row numbers change."""
    parts = [
        renumbered(part("b", "dog", protocol=protocol), [1], [1]),
        renumbered(part("a", "cat", protocol=protocol), [0], [0]),
    ]
    truth = GroundTruth.from_arrays(["a", "b"], ["cat", "dog"], [BOX, BOX])
    detections = Detections.from_arrays(["a", "b"], ["cat", "dog"], [BOX, BOX], [0.9, 0.9])
    whole = match_tables(truth, detections, load_protocol(protocol))
    assert_same_matches(merge(parts), whole)
    assert_same_matches(merge(parts[::-1]), whole)


@pytest.mark.parametrize("equal_scores", get_args(EqualScores))
@pytest.mark.parametrize("together", [1, 7, 40])
def test_class_order_by_some_classes_at_a_time(
    equal_scores: EqualScores, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against sorting Python tuples; few scores, so that ties decide, and a class without detections."""
    random = np.random.default_rng(together)
    count = 60
    image, label = random.integers(0, 9, count), random.choice([0, 1, 3, 4], count)
    truth = GroundTruth.from_arrays([0], [0], [BOX], images=range(9), categories=range(5))
    detections = Detections.from_arrays(image, label, [BOX] * count, random.integers(0, 3, count) / 4)
    matches = evaluate(truth, detections).matched
    hit = random.random(count) < 0.5
    matches = dataclasses.replace(
        matches, equal_scores=equal_scores, extra={GROUP_TRUE_POSITIVES.name: hit}
    ).reordered(random.permutation(count))
    few_sorted_together(monkeypatch, together)
    ordered = matches.in_class_order()

    def key(one: int) -> tuple[object, ...]:
        row = int(ordered.row[one])
        by_image = (int(ordered.image[one]), int(ordered.rank[one]))
        last_first = (-int(ordered.image[one]), not ordered.extra[GROUP_TRUE_POSITIVES.name][one], row)
        ties = {"image_order": by_image, "file_order": (row,), "last_in_file_first": (-row,)}
        return int(ordered.category[one]), -float(ordered.score[one]), *ties.get(equal_scores, last_first)

    keys = [key(one) for one in range(count)]
    assert keys == sorted(keys)
    assert sorted(ordered.row.tolist()) == list(range(count))


def test_an_image_in_two_parts_is_refused() -> None:
    """Merged without a word, its objects would count twice and AP would be half."""
    with pytest.raises(
        InputError, match=r"an image must be in one of the parts to merge. Got 7 in two; 1 such"
    ):
        merge([part(7, "cat"), part(7, "cat")])
    truth = GroundTruth.from_arrays([1, 2], [1, 1], [BOX, BOX])
    detections = Detections.from_arrays([1, 2], [1, 1], [BOX, BOX], [0.9, 0.8])
    whole = evaluate(truth, detections).matched
    with pytest.raises(InputError, match="in two"):  # one vocabulary: only images that occur are compared
        merge([whole, whole])


def test_parts_of_other_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="same thresholds, area ranges, groups and order"):
        merge([part(1, "cat"), part(2, "cat", protocol="voc2007")])
    with pytest.raises(InputError, match=r"matches to merge must be one part or more. Got none"):
        merge([])
    named = [
        evaluate(
            GroundTruth.from_arrays([image], [1], [BOX], categories={1: name}),
            Detections.from_arrays([image], [1], [BOX], [0.5]),
        ).matched
        for image, name in ((1, "cat"), (2, "dog"))
    ]
    with pytest.raises(InputError, match=r"class 1 must have one name. Got 'cat' and 'dog'"):
        merge(named)


def test_what_is_asked_is_what_the_table_says() -> None:
    truth = GroundTruth.from_arrays([1, 1, 1], [1, 1, 1], [BOX, AWAY, [200, 0, 300, 90]], crowd=[0, 1, 0])
    boxes = [BOX, BOX, AWAY, [400, 400, 410, 410]]
    detections = Detections.from_arrays([1] * 4, [1] * 4, boxes, [0.9, 0.8, 0.7, 0.6])
    result = evaluate(truth, detections)
    matches = result.matched
    outcomes = matches.detection_outcomes(0, 0)
    assert outcomes.true.tolist() == [True, False, False, False]
    assert outcomes.matched.tolist() == [True, False, True, False]  # the third lies on the crowd
    assert outcomes.counted.tolist() == [True, True, False, True]
    assert outcomes.truth.tolist() == [0, -1, 1, -1]
    assert matches.counted(0).tolist() == [True, False, True]
    assert matches.positives(0).tolist() == [2]
    assert matches.counted(1).tolist() == [True, False, False]  # small objects alone
    assert [threshold.tolist() for threshold in matches.highest_true(0)] == [[0], [9]]
    assert result.matches["outcome"].tolist() == [
        "true positive",
        "false positive",
        "ignored",
        "false positive",
    ]


def test_images_and_low_scores_can_be_left_out() -> None:
    truth = GroundTruth.from_arrays([1, 2, 3], [1, 1, 1], [BOX] * 3)
    detections = Detections.from_arrays([1, 2, 3], [1, 1, 1], [BOX] * 3, [0.9, 0.5, 0.7])
    protocol = load_protocol("coco")
    whole = match_tables(truth, detections, protocol)
    kept = np.array([True, False, True])
    rows = np.flatnonzero(kept)
    alone = match_tables(
        GroundTruth.from_arrays([1, 3], [1, 1], [BOX] * 2),
        Detections.from_arrays([1, 3], [1, 1], [BOX] * 2, [0.9, 0.7]),
        protocol,
    )
    assert_same_matches(whole.take_images(kept), renumbered(alone, rows.tolist(), rows.tolist()))
    assert whole.take_images(np.ones(3, dtype=bool)) is whole
    assert whole.take_scores_from(0.6).row.tolist() == [0, 2]
    assert whole.take_scores_from(0.5) is whole


def test_pickles_without_what_was_computed() -> None:
    matches = part(1, "cat", scores=(0.9, 0.8))
    size = len(pickle.dumps(matches))
    assert len(matches.pairs_ever_true(0)) == 1
    assert len(pickle.dumps(matches)) == size
    assert_same_matches(pickle.loads(pickle.dumps(matches)), matches)
    assert repr(matches) == "Matches(2 detections, 1 ground truth, 2 pairs, 1 image, 1 class)"
