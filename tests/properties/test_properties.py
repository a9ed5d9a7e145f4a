"""What must not change a number: blocks, workers, the order of files, names, scale."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.data.alignment import align
from boxscore.protocols import load_protocol
from boxscore.similarity import pairs as overlaps
from support import instances, limits, voc_cases
from support.cases import Case, coco_cases
from support.examples import examples, first_of
from support.insides import Matches
from support.insides import merge_matches as merge
from support.matches import assert_same_matches, match_tables
from support.quiet import quiet

Tables = tuple[boxscore.GroundTruth, boxscore.Detections]


def bits(evaluation: boxscore.Evaluation) -> dict[str, bytes]:
    """Every cell of the arrays, and the headline numbers."""
    arrays = {name: array.tobytes() for name, array in evaluation.arrays().items()}
    return {**arrays, "metrics": np.array(list(evaluation.metrics.values())).tobytes()}


def evaluate(tables: Tables, protocol: Any, **options: Any) -> boxscore.Evaluation:
    with quiet():
        return boxscore.evaluate(*tables, protocol=protocol, **options)


# ---------------------------------------------------------------- blocks


def matched_in_blocks(tables: Tables, protocol: boxscore.Protocol, block_of_image: Any) -> list[Matches]:
    truth, found = tables
    parts = []
    for block in np.unique(block_of_image):
        truths = np.flatnonzero(block_of_image[truth.image] == block)
        rows = np.flatnonzero(block_of_image[found.image] == block)
        part = match_tables(truth.take(truths), found.take(rows), protocol)
        parts.append(dataclasses.replace(part, row=rows[part.row], truth_row=truths[part.truth_row]))
    return parts


def check_blocks(tables: Tables, protocol: boxscore.Protocol, data: st.DataObject) -> None:
    images = len(tables[0].images)
    if not images:
        return
    blocks = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=images, max_size=images), label="blocks")
    )
    parts = matched_in_blocks(tables, protocol, blocks)
    parts = data.draw(st.permutations(parts), label="order of the parts")
    whole = match_tables(*tables, protocol)
    assert_same_matches(merge(parts), whole)
    cut = data.draw(st.integers(1, len(parts)), label="merged in two steps at")
    assert_same_matches(merge([merge(parts[:cut]), *parts[cut:]]), whole)


@given(case=coco_cases(), data=st.data())
@settings(max_examples=examples(150))
def test_any_blocks_of_images_merge_to_the_same_matches(
    case: Case, folder: Path, data: st.DataObject
) -> None:
    protocol = load_protocol({**case.protocol, "matching": {**case.protocol["matching"], "per_class": True}})
    check_blocks(case.load(folder), protocol, data)


@given(case=voc_cases.voc_cases(), data=st.data())
@settings(max_examples=examples(100))
def test_any_blocks_of_images_merge_to_the_same_matches_by_voc_rules(
    case: voc_cases.Case, data: st.DataObject
) -> None:
    truth, found = voc_cases.tables(case)
    with quiet():
        found = align(found, truth)
    check_blocks((truth, found), load_protocol(case.rules), data)


@given(case=coco_cases(), workers=st.integers(2, 9))
@settings(max_examples=examples(50))
def test_any_number_of_workers(case: Case, folder: Path, workers: int) -> None:
    tables = case.load(folder)
    one, many = evaluate(tables, case.protocol), evaluate(tables, case.protocol, workers=workers)
    assert_same_matches(many.matched, one.matched)
    assert bits(many) == bits(one)
    assert many.matches.equals(one.matches)


@given(case=voc_cases.voc_cases(), workers=st.integers(2, 9))
@settings(max_examples=examples(50))
def test_any_number_of_workers_by_voc_rules(case: voc_cases.Case, workers: int) -> None:
    tables = voc_cases.tables(case)
    one, many = evaluate(tables, case.rules), evaluate(tables, case.rules, workers=workers)
    assert_same_matches(many.matched, one.matched)
    assert bits(many) == bits(one)


@pytest.mark.long
@given(case=coco_cases(), wide=st.integers(0, 4))
@settings(max_examples=examples(150))
def test_detections_taken_one_by_one_or_slot_by_slot(case: Case, folder: Path, wide: int) -> None:
    """Those with many candidates are matched apart from the others, with the same result."""
    tables = case.load(folder)
    results = []
    for limit in (1 << 30, wide):
        with pytest.MonkeyPatch.context() as patch:
            limits.wide_from(patch, limit)
            results.append(evaluate(tables, case.protocol))
    assert_same_matches(results[1].matched, results[0].matched)
    assert bits(results[1]) == bits(results[0])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_any_size_of_chunks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(size)
    count = 600
    corner = rng.integers(0, 6, (count, 2)).astype(float)
    boxes = np.hstack([corner, corner + rng.integers(0, 9, (count, 2))])
    images, labels = rng.integers(0, 7, count), rng.integers(0, 3, count)
    truth = boxscore.GroundTruth.from_arrays(
        images[:150], labels[:150], boxes[:150], crowd=rng.random(150) < 0.1, images=range(8)
    )
    found = boxscore.Detections.from_arrays(
        images[150:], labels[150:], boxes[150:], rng.integers(0, 20, 450) / 20
    )
    for protocol in ("coco", "voc2012"):
        monkeypatch.undo()
        whole = evaluate((truth, found), protocol)
        assert len(whole.matched.iou) > 64
        monkeypatch.setattr(overlaps, "CHUNK_PAIRS", size)
        chunked = evaluate((truth, found), protocol)
        assert_same_matches(chunked.matched, whole.matched)
        assert bits(chunked) == bits(whole)


# ---------------------------------------------------------------- the order of files


def shuffled(rows: list[Any], rng: np.random.Generator, key: str) -> list[Any]:
    """Shuffle records of different images past each other; an image's own keep their order."""
    order = rng.permutation(len(rows)).tolist()
    queues: dict[Any, list[Any]] = {}
    for row in rows:
        queues.setdefault(row[key], []).append(row)
    return [queues[rows[place][key]].pop(0) for place in order]


@given(case=coco_cases(repeated_ids=False), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(100))
def test_order_of_images_classes_and_records_of_different_images(case: Case, folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = {
        "images": rng.permutation(np.array(case.truth["images"], dtype=object)).tolist(),
        "categories": rng.permutation(np.array(case.truth["categories"], dtype=object)).tolist(),
        "annotations": shuffled(case.truth["annotations"], rng, "image_id"),
    }
    other = dataclasses.replace(case, truth=truth, results=shuffled(case.results, rng, "image_id"))
    assert bits(evaluate(other.load(folder), case.protocol)) == bits(
        evaluate(case.load(folder), case.protocol)
    )


@given(case=coco_cases(repeated_ids=False), kind=st.sampled_from(["far", "text", "negative"]))
@settings(max_examples=examples(100))
def test_names_of_images_and_classes(case: Case, folder: Path, kind: str) -> None:
    """Other ids in the same order: only the order is part of the answer."""
    rename = {
        "far": lambda identifier: identifier * 10**12,
        "text": lambda identifier: f"{identifier:05d}",
        "negative": lambda identifier: identifier - 10**6,
    }[kind]
    truth = {
        "images": [{**row, "id": rename(row["id"])} for row in case.truth["images"]],
        "categories": [{**row, "id": rename(row["id"])} for row in case.truth["categories"]],
        "annotations": [
            {**row, "image_id": rename(row["image_id"]), "category_id": rename(row["category_id"])}
            for row in case.truth["annotations"]
        ],
    }
    results = [
        {**row, "image_id": rename(row["image_id"]), "category_id": rename(row["category_id"])}
        for row in case.results
    ]
    other = dataclasses.replace(case, truth=truth, results=results)
    assert bits(evaluate(other.load(folder), case.protocol)) == bits(
        evaluate(case.load(folder), case.protocol)
    )


@given(case=coco_cases(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(50))
def test_order_of_detections_whose_scores_differ(case: Case, folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permutation(len(case.results)) / 64
    distinct = [{**row, "score": score} for row, score in zip(case.results, scores.tolist(), strict=True)]
    first = dataclasses.replace(case, results=distinct)
    second = dataclasses.replace(
        case, results=[distinct[place] for place in rng.permutation(len(distinct)).tolist()]
    )
    assert bits(evaluate(second.load(folder), case.protocol)) == bits(
        evaluate(first.load(folder), case.protocol)
    )


@given(case=coco_cases())
@settings(max_examples=examples(50))
def test_images_with_nothing_in_them(case: Case, folder: Path) -> None:
    more = [{"id": 1000 + number} for number in range(5)]
    other = dataclasses.replace(case, truth={**case.truth, "images": [*more, *case.truth["images"]]})
    assert bits(evaluate(other.load(folder), case.protocol)) == bits(
        evaluate(case.load(folder), case.protocol)
    )


# ---------------------------------------------------------------- the measure


@pytest.mark.long
@given(case=coco_cases(), power=st.integers(-8, 8))
@settings(max_examples=examples(100))
def test_scale_of_coordinates(case: Case, folder: Path, power: int) -> None:
    """A power of two loses no bit: everything scales, the area ranges with it."""
    factor = 2.0**power
    truth = {
        **case.truth,
        "annotations": [
            {**row, "bbox": [factor * side for side in row["bbox"]], "area": factor * factor * row["area"]}
            for row in case.truth["annotations"]
        ],
    }
    results = [{**row, "bbox": [factor * side for side in row["bbox"]]} for row in case.results]
    other = dataclasses.replace(case, truth=truth, results=results)
    ranges = load_protocol("coco").ignore.area_ranges
    scaled = {
        **case.protocol,
        "ignore": {
            "area_ranges": {k: [factor**2 * low, factor**2 * high] for k, (low, high) in ranges.items()}
        },
    }
    assert bits(evaluate(other.load(folder), scaled)) == bits(evaluate(case.load(folder), case.protocol))


@given(case=voc_cases.voc_cases(), shift=st.integers(-1000, 1000))
@settings(max_examples=examples(50))
def test_place_of_the_origin(case: voc_cases.Case, shift: int) -> None:
    """Whole-number coordinates, moved by a whole number."""
    whole = [
        [item._replace(box=tuple(round(side) + move for side in item.box)) for item in items]
        for move in (0, shift)
        for items in (case.objects, case.found)
    ]
    first = dataclasses.replace(case, objects=whole[0], found=whole[1])
    second = dataclasses.replace(case, objects=whole[2], found=whole[3])
    assert bits(evaluate(voc_cases.tables(second), case.rules)) == bits(
        evaluate(voc_cases.tables(first), case.rules)
    )


@given(case=coco_cases())
@settings(max_examples=examples(50))
def test_only_the_order_of_scores_counts(case: Case, folder: Path) -> None:
    other = dataclasses.replace(case, results=[{**row, "score": row["score"] * 8} for row in case.results])
    first, second = (evaluate(each.load(folder), case.protocol).arrays() for each in (case, other))
    assert first["precision"].tobytes() == second["precision"].tobytes()
    assert first["recall"].tobytes() == second["recall"].tobytes()
    assert (8 * first["scores"]).tobytes() == second["scores"].tobytes()


# ---------------------------------------------------------------- doubling


def doubled(case: Case) -> Case:
    """Every image once more under another id, with everything in it."""

    def again(row: dict[str, Any], **changes: int) -> dict[str, Any]:
        return {**row, **{key: row[key] + shift for key, shift in changes.items()}}

    truth = {
        **case.truth,
        "images": case.truth["images"] + [again(row, id=1000) for row in case.truth["images"]],
        "annotations": case.truth["annotations"]
        + [again(row, id=1000, image_id=1000) for row in case.truth["annotations"]],
    }
    results = case.results + [again(row, image_id=1000) for row in case.results]
    return dataclasses.replace(case, truth=truth, results=results)


@pytest.mark.long
@given(case=coco_cases(repeated_ids=False))
@settings(max_examples=examples(100))
def test_a_doubled_data_set_scores_the_same(case: Case, folder: Path) -> None:
    """With scores that differ, and without pycocotools' epsilon, which weighs a lone detection less."""
    results = [{**row, "score": (7 * place % 61) / 61} for place, row in enumerate(case.results)]
    case = dataclasses.replace(case, results=results)
    protocol = {**case.protocol, "ap": {"precision_epsilon": 0.0}}
    once = evaluate(case.load(folder), protocol)
    twice = evaluate(doubled(case).load(folder), protocol)
    assert bits(twice) == bits(once)
    for name in ("ground_truths", "ignored", "detections", "true_positives"):
        assert (twice.class_counts[name] == 2 * once.class_counts[name]).all()


# ---------------------------------------------------------------- evaluators


def as_batches(case: Case) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What a training loop has: a prediction and a target an image."""
    pairs = []
    for image in case.truth["images"]:
        truth = [row for row in case.truth["annotations"] if row["image_id"] == image["id"]]
        found = [row for row in case.results if row["image_id"] == image["id"]]
        sides = [
            {"boxes": [row["bbox"] for row in rows], "labels": [row["category_id"] for row in rows]}
            for rows in (found, truth)
        ]
        prediction = {**sides[0], "scores": [row["score"] for row in found]}
        flags = {"iscrowd": [row["iscrowd"] for row in truth], "area": [row["area"] for row in truth]}
        pairs.append((prediction, {**sides[1], **flags, "image_id": image["id"]}))
    return pairs


@given(case=coco_cases(repeated_ids=False), data=st.data())
@settings(max_examples=examples(60))
def test_merged_evaluators(case: Case, folder: Path, data: st.DataObject) -> None:
    """Images dealt to several evaluators, as to ranks, which are merged in any order: what the files score."""
    pairs = as_batches(case)
    if not pairs:
        return
    names = {row["id"]: row["name"] for row in case.truth["categories"]}

    def evaluator() -> boxscore.Evaluator:
        return boxscore.Evaluator(protocol=case.protocol, box_format="xywh", classes=names)

    number = st.integers(0, 2)
    dealt = data.draw(st.lists(number, min_size=len(pairs), max_size=len(pairs)), label="rank of each image")
    ranks = [evaluator() for _ in range(3)]
    for (prediction, target), rank in zip(pairs, dealt, strict=True):
        ranks[rank].update([prediction], [target])
    first, *rest = data.draw(st.permutations(ranks), label="order of the ranks")
    for other in rest:
        first.merge(other)
    with quiet():
        assert bits(first.compute()) == bits(evaluate(case.load(folder), case.protocol))


# ---------------------------------------------------------------- masks and keypoints


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
@pytest.mark.parametrize("seed", first_of(2, range(8)))
def test_masks_and_keypoints_in_other_order_under_other_names(kind: str, seed: int, tmp_path: Path) -> None:
    make = instances.mask_case if kind == "segm" else instances.keypoint_case
    truth, results = make(seed)
    rng = np.random.default_rng(seed)

    def moved(row: dict[str, Any], key: str) -> dict[str, Any]:
        return {**row, key: row[key] * 10**9 - 5}

    other = {
        **truth,
        "images": [moved(truth["images"][place], "id") for place in rng.permutation(len(truth["images"]))],
        "annotations": [moved(row, "image_id") for row in shuffled(truth["annotations"], rng, "image_id")],
    }
    found = [moved(row, "image_id") for row in shuffled(results, rng, "image_id")]
    protocol = instances.PROTOCOLS[kind]
    with quiet():
        expected = bits(instances.evaluate(tmp_path, truth, results, protocol))
        assert bits(instances.evaluate(tmp_path, other, found, protocol)) == expected
