"""The evaluator of training loops: any order, any split, the same bits."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, Evaluator, GroundTruth, InputError
from boxscore.evaluator import gather_with_torch
from boxscore.extensions.training.shares import POSITIONS, merged

Pairs = list[tuple[dict[str, Any], dict[str, Any]]]


def images(count: int = 12, *, seed: int = 0, ids: bool = True, masks: bool = False) -> Pairs:
    """Predictions and targets of images, with ties, crowds, and images without one or the other."""
    rng = np.random.default_rng(seed)

    def side(scored: bool) -> dict[str, Any]:
        n = int(rng.integers(0, 7))
        corner = rng.integers(0, 5, (n, 2)) * 8
        boxes = np.concatenate([corner, corner + rng.integers(1, 4, (n, 2)) * 8], axis=1).astype(np.float32)
        given: dict[str, Any] = {"boxes": boxes, "labels": rng.integers(0, 4, n)}
        if masks:
            x, y = np.arange(80), np.arange(72)[:, None]
            filled = [(x >= b[0]) & (x < b[2]) & (y >= b[1]) & (y < b[3]) for b in boxes]
            given["masks"] = np.array(filled).reshape(n, 72, 80)
        if scored:
            given["scores"] = rng.choice([0.25, 0.5, 0.75], n).astype(np.float32)
            if masks:
                given["masks"] = np.where(given["masks"], 0.75, 0.5)[:, None].astype(np.float32)
        else:
            given |= {"iscrowd": rng.random(n) < 0.15, "area": rng.uniform(10, 2000, n)}
        return given

    pairs = [(side(True), side(False)) for _ in range(count)]
    if ids:
        for identifier, (_, target) in zip(rng.permutation(1000)[:count].tolist(), pairs, strict=True):
            target["image_id"] = identifier
    return pairs


def fed(evaluator: Evaluator, pairs: Pairs, batch: int = 3) -> Evaluator:
    for low in range(0, len(pairs), batch):
        predictions, targets = zip(*pairs[low : low + batch], strict=True)
        evaluator.update(list(predictions), list(targets))
    return evaluator


def bits(evaluation: boxscore.Evaluation) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in evaluation.arrays().items()} | {
        "metrics": np.array(list(evaluation.metrics.values())).tobytes()
    }


def test_equals_evaluate_on_tables() -> None:
    pairs = sorted(images(), key=lambda pair: pair[1]["image_id"])
    columns: dict[str, list[Any]] = {
        key: [] for key in ("ti", "tl", "tb", "ta", "tc", "pi", "pl", "pb", "ps")
    }
    for prediction, target in pairs:
        columns["ti"] += [target["image_id"]] * len(target["labels"])
        columns["pi"] += [target["image_id"]] * len(prediction["labels"])
        for key, side, name in (
            ("tl", target, "labels"),
            ("tb", target, "boxes"),
            ("ta", target, "area"),
            ("tc", target, "iscrowd"),
            ("pl", prediction, "labels"),
            ("pb", prediction, "boxes"),
            ("ps", prediction, "scores"),
        ):
            columns[key] += side[name].tolist()
    c = columns
    truth = GroundTruth.from_arrays(
        c["ti"], c["tl"], c["tb"], area=c["ta"], crowd=c["tc"], images=[t["image_id"] for _, t in pairs]
    )
    found = Detections.from_arrays(c["pi"], c["pl"], c["pb"], c["ps"])
    expected = boxscore.evaluate(truth, found)
    assert 0 < expected.metrics["AP"] < 1
    assert bits(fed(Evaluator(), pairs).compute()) == bits(expected)


@pytest.mark.long
@pytest.mark.parametrize("masks", [False, True])
def test_any_order_and_any_batches_are_alike(masks: bool) -> None:
    pairs = images(20, masks=masks)
    protocol = "coco-segm" if masks else "coco"
    whole = fed(Evaluator(protocol=protocol), pairs).compute()
    assert 0 < whole.metrics["AP"] < 1
    expected = bits(whole)
    rng = np.random.default_rng(1)
    for batch in (1, 4, 20):
        shuffled = [pairs[i] for i in rng.permutation(len(pairs))]
        assert bits(fed(Evaluator(protocol=protocol), shuffled, batch).compute()) == expected


def test_merging_is_updating() -> None:
    pairs = images(15)
    expected = bits(fed(Evaluator(), pairs).compute())
    one, other = fed(Evaluator(), pairs[7:]), fed(Evaluator(), pairs[:7])
    one.merge(other)
    assert len(one) == 15
    assert len(other) == 7
    assert bits(one.compute()) == expected
    one.merge(Evaluator())
    assert bits(one.compute()) == expected


@pytest.mark.long
@pytest.mark.parametrize("room", [1, 40, 1 << 19])
@pytest.mark.parametrize("protocol", ["coco", "voc2007", "coco-segm", "pooled", "file order", "capped"])
def test_parts_of_one_image(protocol: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts merge at the end, wherever they were put; equal scores fall in the order of the images' ids."""
    rules: Any = {
        "pooled": {"extends": "coco", "matching": {"per_class": False}},
        "file order": {"extends": "coco", "matching": {"equal_scores": "file_order"}},
        "capped": {
            "extends": "coco",
            "matching": {"max_detections": [1]},
            "summary": [{"key": "AP", "metric": "AP"}],
        },
    }.get(protocol, protocol)
    pairs = images(23, masks=protocol == "coco-segm")
    expected = fed(Evaluator(protocol=rules), pairs, 23).compute()
    monkeypatch.setattr("boxscore.extensions.training.evaluating.MATCHED_TOGETHER", 1)
    monkeypatch.setattr("boxscore.extensions.training.evaluating.ROOM", room)
    for each in (pairs, pairs[::-1]):
        evaluator = fed(Evaluator(protocol=rules), each, 1)
        assert len(evaluator._held) >= 4
        result = evaluator.compute()
        assert bits(result) == bits(expected)
        pd.testing.assert_frame_equal(result.matches, expected.matches)
        for name in ("row", "pair_detection", "pair_truth", "matched_bits", "rank", "truth_row"):
            got, wanted = getattr(result.matched, name), getattr(expected.matched, name)
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
        assert len(evaluator._parts()) == 1


def test_what_is_put_in_room_is_joined_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.extensions.training.evaluating.MATCHED_TOGETHER", 1)
    evaluator = fed(Evaluator(classes=range(4)), images(20, ids=False), 1)
    parts = [part for part in evaluator._parts() if len(part.detections)]
    before = [part.detections.boxes for part in parts]
    whole = evaluator.compute().detections
    assert len(before) > 4
    # Classes too; rows of parts are the same numbers, held once, and positions are narrow.
    assert all(np.shares_memory(part.detections.category, whole.category) for part in parts)
    assert all(np.shares_memory(part.matches.row, parts[-1].matches.row) for part in parts[-2:])
    assert {getattr(part.matches, name).dtype for part in parts for name in POSITIONS} == {np.dtype(np.int32)}
    for name in ("boxes", "sizes", "scores"):
        assert not getattr(whole, name).flags.writeable
    assert all(np.shares_memory(boxes, whole.boxes) for boxes in before)
    kept = whole.boxes.copy()
    assert len(fed(evaluator, images(3, ids=False), 1).compute().detections) > len(kept)
    np.testing.assert_array_equal(whole.boxes, kept)


def test_merged_parts_hold_no_box_twice() -> None:
    """In order their tables become views, and stay what they were: a merge that is interrupted loses nothing."""
    pairs = images(20, ids=False)
    for merged_twice in (False, True):
        parts = [
            part
            for low in range(0, 20, 5)
            for part in fed(Evaluator(classes=range(4)), images(20, ids=False)[low : low + 5])._share().parts
        ]
        parts = [part.numbered_from(5 * number) for number, part in enumerate(parts)]
        before = [(part.detections.boxes.copy(), part.detections.scores.copy()) for part in parts]
        whole = merged(parts)
        if merged_twice:
            whole = merged(parts)
        for part, (boxes, scores) in zip(parts, before, strict=True):
            np.testing.assert_array_equal(part.detections.boxes, boxes)
            np.testing.assert_array_equal(part.detections.scores, scores)
            assert not len(boxes) or np.shares_memory(part.detections.boxes, whole.detections.boxes)
            assert part.detections.images is part.matches.images
        together = fed(Evaluator(classes=range(4)), pairs).compute()
        np.testing.assert_array_equal(whole.detections.boxes, together.detections.boxes)
        np.testing.assert_array_equal(whole.matches.row, together.matched.row)


@pytest.mark.long
def test_updates_go_on_after_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing merges all levels into one part; the levels below it stay apart from each other."""
    monkeypatch.setattr("boxscore.extensions.training.evaluating.MATCHED_TOGETHER", 1)
    pairs = images(23)
    evaluator = fed(Evaluator(), pairs[:11], 1)
    assert len(evaluator._held) >= 4
    assert bits(evaluator.compute()) == bits(fed(Evaluator(), pairs[:11]).compute())
    for low in range(11, 23, 3):
        fed(evaluator, pairs[low : low + 3], 1)
        assert bits(evaluator.compute()) == bits(fed(Evaluator(), pairs[: low + 3]).compute())
    assert len(evaluator) == 23


def test_tables_of_the_result_belong_to_the_matches() -> None:
    pairs = images(12)
    frame = fed(Evaluator(), pairs, 2).compute().matches
    whole = fed(Evaluator(), pairs, 12).compute().matches
    pd.testing.assert_frame_equal(frame, whole)
    assert set(frame["outcome"]) >= {"true positive", "false positive"}


def test_what_cannot_be_matched_is_said_by_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.extensions.training.evaluating.MATCHED_TOGETHER", 2)
    pairs = images(4, masks=True)
    prediction = next(p for p, t in pairs if len(p["labels"]) and len(t["labels"]))
    prediction["masks"] = prediction["masks"][:, :, :-1]
    evaluator = fed(Evaluator(protocol="coco-segm"), pairs, 1)
    assert len(evaluator) == 4
    with pytest.raises(InputError, match="a mask must have the size of the mask it is compared with"):
        evaluator.compute()


def test_masks_are_forgotten_unless_asked_for() -> None:
    pairs = images(6, masks=True)
    evaluation = fed(Evaluator(protocol="coco-segm"), pairs).compute()
    assert evaluation.ground_truth.masks is evaluation.detections.masks is None
    with pytest.raises(InputError, match=r"Evaluator\(keep_masks=True\) keeps them"):
        boxscore.diagnostics.confusion_matrix(evaluation)
    kept = fed(Evaluator(protocol="coco-segm", keep_masks=True), pairs).compute()
    assert bits(kept) == bits(evaluation)
    assert len(boxscore.diagnostics.confusion_matrix(kept).counts) == 5


def test_images_without_ids_are_counted() -> None:
    pairs = images(9, ids=False)
    numbered = copy.deepcopy(pairs)
    for number, (_, target) in enumerate(numbered):
        target["image_id"] = number
    expected = bits(fed(Evaluator(), numbered).compute())
    assert bits(fed(Evaluator(), pairs).compute()) == expected
    one, other = fed(Evaluator(), pairs[:4]), fed(Evaluator(), pairs[4:])
    one.merge(other)
    assert bits(one.compute()) == expected


def test_ids_may_be_text() -> None:
    pairs = images(6)
    for _, target in pairs:
        target["image_id"] = f"{target['image_id']:04d}.png"
    evaluation = fed(Evaluator(), pairs).compute()
    assert evaluation.ground_truth.images.ids.tolist() == sorted(t["image_id"] for _, t in pairs)


def test_duplicates() -> None:
    pairs = images(6)
    expected = bits(fed(Evaluator(), pairs).compute())
    lenient = fed(Evaluator(duplicates="ignore"), [*pairs, pairs[0], pairs[3]], batch=8)
    assert len(lenient) == 6
    assert bits(lenient.compute()) == expected
    lenient.merge(fed(Evaluator(), pairs[2:4]))
    assert bits(lenient.compute()) == expected

    strict = fed(Evaluator(), pairs)
    message = r"image_id must occur only once. Got \d+ again; if a distributed sampler .* duplicates='ignore'"
    with pytest.raises(InputError, match=message):
        fed(strict, pairs[:1])
    with pytest.raises(InputError, match=message):
        fed(Evaluator(), [pairs[0], pairs[0]])
    with pytest.raises(InputError, match=message):
        strict.merge(fed(Evaluator(), pairs[:1]))
    assert bits(strict.compute()) == expected


def test_a_refused_batch_leaves_nothing_behind() -> None:
    pairs = images(6)
    evaluator = fed(Evaluator(), pairs[:3])
    broken = copy.deepcopy(pairs[3:])
    broken[2][0]["scores"] = broken[2][0]["scores"][:-1]
    with pytest.raises(InputError, match="scores must be as long as labels of image"):
        fed(evaluator, broken)
    assert len(evaluator) == 3
    assert bits(fed(evaluator, pairs[3:]).compute()) == bits(fed(Evaluator(), pairs).compute())


def test_a_refused_share_leaves_nothing_behind() -> None:
    with_area = (
        {"boxes": [[0, 0, 9, 9]], "labels": [1], "scores": [0.5]},
        {"boxes": [[0, 0, 9, 9]], "labels": [1]},
    )
    plain, given = copy.deepcopy(with_area), copy.deepcopy(with_area)
    given[1]["area"] = [81.0]
    one, other = Evaluator(), Evaluator()
    one.update([{"boxes": [], "labels": [], "scores": []}], [{"boxes": [], "labels": []}], image_ids=[1])
    other.update([given[0]], [given[1]], image_ids=[1])
    with pytest.raises(InputError, match="image_id must occur only once"):
        one.merge(other)
    one.update([plain[0]], [plain[1]], image_ids=[2])
    assert len(one) == 2


def test_other_classes_and_flags_are_another_truth() -> None:
    def result(**changes: Any) -> boxscore.Evaluation:
        truth = GroundTruth.from_arrays(
            [1, 1], ["a", "b"], [[0, 0, 9, 9], [5, 5, 20, 20]], categories=["a", "b"]
        )
        return boxscore.evaluate(
            truth.replaced(**changes), Detections.from_arrays([1], ["a"], [[0, 0, 9, 9]], [1.0])
        )

    assert result()._has_same_truth(result())
    assert not result()._has_same_truth(result(category=np.array([1, 1], dtype=np.int32)))
    assert not result()._has_same_truth(result(crowd=np.array([True, False])))
    assert not result()._has_same_truth(result(difficult=np.array([True, False])))


def test_reset_and_compute_again() -> None:
    first, second = images(5), images(5, seed=9)
    evaluator = fed(Evaluator(), first)
    halfway = bits(evaluator.compute())
    assert bits(evaluator.compute()) == halfway
    evaluator.reset()
    assert len(evaluator) == 0
    assert bits(fed(evaluator, second).compute()) == bits(fed(Evaluator(), second).compute())


def test_pickles_halfway() -> None:
    pairs = images(8, masks=True)
    evaluator = fed(Evaluator(protocol="coco-segm", gather=gather_with_torch), pairs[:4])
    again = pickle.loads(pickle.dumps(evaluator))
    again.gather = None
    assert bits(fed(again, pairs[4:]).compute()) == bits(
        fed(Evaluator(protocol="coco-segm"), pairs).compute()
    )


def test_the_batch_may_be_reused() -> None:
    """Loops write into their buffers again: what was given is copied."""
    pairs = images(5)
    expected = bits(fed(Evaluator(), pairs).compute())
    evaluator = fed(Evaluator(), pairs)
    for prediction, target in pairs:
        for side in (prediction, target):
            for value in side.values():
                if isinstance(value, np.ndarray):
                    value[:] = 0
    assert bits(evaluator.compute()) == expected


def test_classes() -> None:
    prediction = {"boxes": [[0, 0, 9, 9], [0, 0, 9, 9]], "labels": [1, 5], "scores": [0.9, 0.8]}
    target = {"boxes": [[0, 0, 9, 9]], "labels": [1], "image_id": 3}
    named = Evaluator(classes={1: "cat", 2: "dog"})
    named.update([prediction], [target])
    with pytest.warns(BoxscoreWarning, match="ignoring 1 detection of 1 class"):
        evaluation = named.compute()
    assert evaluation.labels == ["cat", "dog"]
    with pytest.raises(InputError, match=r"a target's label must be one of the classes. Got 7 in image 4"):
        named.update([prediction], [{**target, "labels": [7], "image_id": 4}])
    assert len(named) == 1

    free = Evaluator()
    free.update([prediction], [target])
    assert free.compute().labels == ["1", "5"]
    with pytest.raises(InputError, match="evaluators must have the same protocol and classes"):
        free.merge(named)


def test_what_a_dropped_image_leaves_out_is_not_counted() -> None:
    """Two ranks saw image 3: its detection of an unknown class is left out once."""
    prediction = {"boxes": [[0, 0, 9, 9]] * 2, "labels": [1, 5], "scores": [0.9, 0.8]}
    target = {"boxes": [[0, 0, 9, 9]], "labels": [1]}

    def rank(*identifiers: int) -> Evaluator:
        evaluator = Evaluator(classes={1: "cat"}, duplicates="ignore")
        count = len(identifiers)
        evaluator.update([prediction] * count, [{**target, "image_id": i} for i in identifiers])
        return evaluator

    one = rank(3, 4)
    one.merge(rank(3, 7))
    with pytest.warns(BoxscoreWarning, match="ignoring 3 detections of 1 class"):
        evaluation = one.compute()
    assert evaluation.counts["left_out"] == 3
    assert evaluation.detections.left_out == {"5": 3}
    numbered = [Evaluator(classes={1: "cat"}) for _ in range(2)]
    for evaluator in numbered:
        evaluator.update([prediction], [target])
    numbered[0].merge(numbered[1])
    with pytest.warns(BoxscoreWarning, match="ignoring 2 detections"):
        assert numbered[0].compute().counts["left_out"] == 2


def test_box_formats() -> None:
    pairs = images(6)
    expected = bits(fed(Evaluator(), pairs).compute())
    for side in (side for pair in pairs for side in pair):
        side["boxes"] = boxscore.box_convert(side["boxes"], "xyxy", "xywh")
    assert bits(fed(Evaluator(box_format="xywh"), pairs).compute()) == expected


def test_gathered_shares_are_merged() -> None:
    pairs = images(10)
    shares = [fed(Evaluator(), pairs[:6]), fed(Evaluator(), pairs[4:])]
    everyone = [share._share() for share in shares]
    rank = fed(Evaluator(duplicates="ignore", gather=lambda mine: everyone), pairs[:6])
    assert bits(rank.compute()) == bits(fed(Evaluator(), pairs).compute())
    assert len(rank) == 6
    rank.duplicates = "error"
    with pytest.raises(InputError, match="image_id must occur only once"):
        rank.compute()


GOOD = ({"boxes": [[0, 0, 1, 1]], "labels": [1], "scores": [0.5]}, {"boxes": [[0, 0, 1, 1]], "labels": [1]})

BAD: list[tuple[Any, Any, str]] = [
    ({"scores": None}, {}, r"a prediction must have boxes, labels, scores. Got keys \['boxes', 'labels'"),
    ({}, {"labels": None}, "a target must have boxes, labels. Got keys"),
    ({"boxes": None}, {}, "a prediction must have boxes"),
    ({"boxes": [[0, 0, 1]]}, {}, r"prediction boxes must have shape \[N, 4\]"),
    (
        {"boxes": [[5, 5, 1, 9]]},
        {},
        r"boxes must have width >= 0. Got width -4.0 in row 0 of the pre",
    ),
    ({"boxes": [[0, 0, 1, np.nan]]}, {}, "box must be finite"),
    ({"scores": [np.nan]}, {}, "scores must be finite"),
    ({"scores": [0.5, 0.5]}, {}, "scores must be as long as labels of image 0"),
    (
        {"scores": [[0.5, 0.5]] * 3},
        {},
        r"scores must have shape \[N\]. Got shape \[3, 2\] in image 0; one score per class",
    ),
    (
        {"boxes": [[[0, 0, 1, 1]]]},
        {},
        r"boxes must have shape \[N, 4\]. Got shape \[1, 1, 4\] .*; does it contain a whole batch",
    ),
    ({"scores": None, "conf": [1]}, {}, r"'conf'\] in image 0; is 'conf' the scores\?"),
    ({"labels": [1.5]}, {}, "labels must be integers or strings"),
    ({"masks": np.zeros((1, 2, 3, 4))}, {}, r"masks must have shape \[N, H, W\]"),
    ({}, {"area": [1.0, 2.0]}, "area must be as long as"),
    ({}, {"image_id": [1, 2]}, "image_id must be one id"),
    ({}, {"image_id": 1.5}, "image_id must be integers or strings"),
]


def test_predictions_without_scores_are_refused_by_protocols_that_rank() -> None:
    """At once, not when the epoch is over; an image without predictions needs no scores."""
    prediction, target = {"boxes": [[0, 0, 1, 1]], "labels": [1]}, GOOD[1]
    with pytest.raises(InputError, match="; the protocol scoreless counts boxes without ranking them"):
        Evaluator().update([prediction], [target])
    counted = Evaluator(protocol="scoreless")
    counted.update([prediction], [target])
    assert counted.compute()["F1_50"] == 1
    ranked = Evaluator()
    ranked.update([GOOD[0], {"boxes": [], "labels": []}], [target, target])
    assert ranked.compute()["AR100"] == 0.5


@pytest.mark.parametrize(("prediction", "target", "message"), BAD)
def test_bad_batches(prediction: Any, target: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evaluator().update([GOOD[0] | prediction], [GOOD[1] | target])


@pytest.mark.parametrize(
    ("prediction", "target", "message"),
    [
        ({"boxes": [[0, 0, 1, np.nan]]}, {}, "box .* in row 0 of the prediction of image 12"),
        ({"boxes": [[5, 5, 1, 9]]}, {}, "width -4.0 in row 0 of the prediction of image 12"),
        ({"scores": [np.inf]}, {}, "scores .* in row 0 of the prediction of image 12"),
        ({}, {"boxes": [[0, 0, np.nan, 1]]}, "box .* in row 0 of the target of image 12"),
        ({}, {"labels": [7]}, "label must be one of the classes. Got 7 in image 12"),
        ({}, {"area": [4.0]}, "area .* image 12 with them and image 10 without"),
        ({}, {"boxes": [[0, 0, 1, 1], [2, 2, 3, 3]]}, "boxes must be as long as labels of image 12"),
    ],
)
def test_images_of_one_batch_are_named(prediction: Any, target: Any, message: str) -> None:
    """Images that are alike are checked together; what is wrong is of one of them."""
    nothing = {"boxes": np.empty((0, 4)), "labels": np.empty(0, dtype=int)}
    empty = ({**nothing, "scores": np.empty(0)}, nothing)
    batch = [GOOD, empty, (GOOD[0] | prediction, GOOD[1] | target), GOOD]
    evaluator = Evaluator(classes=[1])
    with pytest.raises(InputError, match=message):
        evaluator.update(
            [side[0] for side in batch],
            [{**side[1], "image_id": 10 + number} for number, side in enumerate(batch)],
        )
    assert len(evaluator) == 0


@pytest.mark.parametrize("invalid", ["drop", "false_positive"])
def test_invalid_rows_of_one_image_do_not_move_those_of_others(invalid: Any) -> None:
    pairs = images(9, seed=3)
    bad = next(prediction for prediction, _ in pairs[4:] if len(prediction["labels"]) > 1)
    bad["boxes"][1, 2], bad["scores"][0] = np.nan, np.inf
    one, together = (fed(Evaluator(invalid=invalid), pairs, size) for size in (1, 9))
    assert together.invalid_counts == one.invalid_counts == {"predictions": 2, "targets": 0}
    with pytest.warns(BoxscoreWarning, match="2 predictions"):
        expected = bits(one.compute())
    with pytest.warns(BoxscoreWarning, match="2 predictions"):
        assert bits(together.compute()) == expected


def test_dtypes_of_one_batch_may_differ() -> None:
    pairs = images(8, seed=4)
    expected = bits(fed(Evaluator(), pairs, 1).compute())
    kinds = [(np.float32, np.int64), (np.float64, np.int32), (np.float64, np.uint8), (np.float32, np.uint64)]
    for number, sides in enumerate(pairs):
        for side in sides:
            real, whole = kinds[number % 4]
            side |= {"boxes": side["boxes"].astype(real), "labels": side["labels"].astype(whole)}
    pairs[5][0]["boxes"] = pairs[5][0]["boxes"].tolist()
    assert bits(fed(Evaluator(), pairs, 8).compute()) == expected


def test_other_mistakes() -> None:
    with pytest.raises(InputError, match=r"an evaluator must have seen at least one image. Got none"):
        Evaluator().compute()
    with pytest.raises(InputError, match=r"predictions and targets must have the same length. Got 1 and 0"):
        Evaluator().update([GOOD[0]], [])
    with pytest.raises(InputError, match=r"a target must be a mapping or a known object. Got a list"):
        Evaluator().update([GOOD[0]], [[3]])
    with pytest.raises(InputError, match=r"a prediction must be a mapping or a known object. Got a list"):
        Evaluator().update([[3]], [GOOD[1]])
    with pytest.raises(InputError, match="duplicates must be one of 'error', 'ignore'"):
        Evaluator(duplicates="drop")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="image_id must be in every target or in none"):
        Evaluator().update([GOOD[0]] * 2, [GOOD[1], GOOD[1] | {"image_id": 1}])
    with_id, without = Evaluator(), Evaluator()
    with_id.update([GOOD[0]], [GOOD[1] | {"image_id": 1}])
    without.update([GOOD[0]], [GOOD[1]])
    with pytest.raises(InputError, match="image_id must be in every target or in none"):
        with_id.merge(without)
    rule = "area of targets must be set for every image or for none. Got image 2 with them and image 1"
    with pytest.raises(InputError, match=rule):
        with_id.update([GOOD[0]], [GOOD[1] | {"image_id": 2, "area": [1.0]}])
    assert len(with_id) == 1


def test_difficult_objects() -> None:
    evaluator = Evaluator(protocol="voc2007")
    hard = {"boxes": [[0, 0, 9, 9], [50, 50, 60, 60]], "labels": ["cat", "cat"], "difficult": [0, 1]}
    evaluator.update([{"boxes": [[0, 0, 9, 9]], "labels": ["cat"], "scores": [1.0]}], [hard])
    assert evaluator.compute().metrics["mAP"] == pytest.approx(1.0)


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    pairs = images(8, masks=True)
    expected = bits(fed(Evaluator(), pairs).compute())
    turned = [tuple({k: torch.as_tensor(v) for k, v in side.items()} for side in pair) for pair in pairs]
    turned[0][0]["scores"].requires_grad_()
    assert bits(fed(Evaluator(), turned).compute()) == expected  # type: ignore[arg-type]
    for prediction, _ in turned:
        prediction["scores"] = prediction["scores"].to(torch.bfloat16)  # 0.25, 0.5 and 0.75 are exact in it
    assert bits(fed(Evaluator(), turned).compute()) == expected  # type: ignore[arg-type]


@pytest.mark.long
def test_torch_is_not_imported_for_arrays() -> None:
    code = (
        "import sys, boxscore; e = boxscore.Evaluator(); "
        "e.update([dict(boxes=[[0,0,1,1]], labels=[1], scores=[1])], [dict(boxes=[[0,0,1,1]], labels=[1])]); "
        "e.compute(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


RANK = Path(__file__).with_name("rank.py")


@pytest.mark.slow
def test_two_real_processes(tmp_path: Path) -> None:
    """torch.distributed on gloo; a sampler that gives an image to both."""
    pytest.importorskip("torch")
    pairs = images(9)
    (tmp_path / "pairs.pickle").write_bytes(pickle.dumps(pairs))
    port = 20000 + os.getpid() % 20000
    ranks = [
        subprocess.Popen(
            [sys.executable, str(RANK), str(rank), str(tmp_path), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    answers = []
    for rank in ranks:
        text, errors = rank.communicate(timeout=120)
        assert rank.returncode == 0, errors
        answers.append(json.loads(text))
    expected = fed(Evaluator(), pairs).compute().metrics
    assert answers[0] == answers[1] == [json.loads(json.dumps(expected)), 5]


def test_gather_with_torch_alone() -> None:
    pytest.importorskip("torch")
    pairs = images(4)
    alone = fed(Evaluator(gather=gather_with_torch), pairs)
    assert bits(alone.compute()) == bits(fed(Evaluator(), pairs).compute())


def test_gather_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(boxscore.MissingDependencyError, match="pip install torch"):
        gather_with_torch(1)
