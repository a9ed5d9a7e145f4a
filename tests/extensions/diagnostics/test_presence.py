"""Presence of classes in images and counts of objects: the same from one loop over images and classes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import count_errors, image_presence
from extensions.diagnostics.test_answers_in_parts import equal
from support.drawn import ALWAYS, drawn, names_in_order
from support.each import each
from support.insides import asked_again
from support.running import Run
from support.samples import DT, GT

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

EVERYTHING = -1e9
CLASSES = ("cat", "dog")


def slow(result: boxscore.Evaluation, least: float) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Look at every image and class: rows of presence (TP, FP, FN, TN, left out, AUC), and of counts."""
    matches, truth = result.matches, result.ground_truth
    ignored = truth.crowd | truth.difficult | truth.ignore
    names = zip(truth.image.tolist(), truth.category.tolist(), ignored.tolist(), strict=True)
    objects = [(truth.images.ids[i], truth.categories.labels[c], is_ignored) for i, c, is_ignored in names]
    presence: dict[str, list[Any]] = {}
    counts: dict[str, list[Any]] = {}
    for name in [*result.labels, "(all)"]:
        tallies, yes, no, errors = [0] * 5, [], [], []
        for image in truth.images.ids.tolist():
            in_image = (matches["image_id"] == image) & ((matches["class"] == name) | (name == "(all)"))
            rows = matches[in_image & matches["outcome"].isin(["true positive", "false positive"])]
            here = [
                is_ignored for at, label, is_ignored in objects if at == image and name in (label, "(all)")
            ]
            count = here.count(False)
            scores = rows["score"].tolist()
            found = sum(score >= least for score in scores)
            errors.append(found - count)
            if here and not count:
                tallies[4] += 1
                continue
            tallies[(0 if found else 2) if count else (1 if found else 3)] += 1
            (yes if count else no).append(max(scores, default=-math.inf))
        pairs = [(a > b) + (a == b) / 2 for a in yes for b in no]
        presence[name] = [*tallies, sum(pairs) / len(pairs) if pairs else math.nan]
        squares = sum(error * error for error in errors) / len(errors)
        mean, mae = sum(errors) / len(errors), sum(map(abs, errors)) / len(errors)
        counts[name] = [errors.count(0) / len(errors), mean, mae, math.sqrt(squares)]
    return presence, counts


def assert_as_slow(result: boxscore.Evaluation, least: float) -> None:
    presence, counts = slow(result, least)
    got = image_presence(result, score_threshold=least).printed_frame().set_index("class")
    for name, expected in presence.items():
        row = got.loc[name, ["TP", "FP", "FN", "TN", "left_out", "AUC"]].tolist()
        assert row[:5] == expected[:5], name
        np.testing.assert_allclose(row[5], expected[5], rtol=1e-14)
        true, false, missed, negative = expected[:4]
        rates = [
            part / whole if whole else math.nan
            for part, whole in (
                (true, true + false),
                (true, true + missed),
                (negative, negative + false),
                (2 * true, 2 * true + false + missed),
            )
        ]
        np.testing.assert_array_equal(
            got.loc[name, ["precision", "recall", "specificity", "F1"]].tolist(), rates
        )
    got = count_errors(result, score_threshold=least).printed_frame().set_index("class")
    for name, expected in counts.items():
        np.testing.assert_allclose(
            got.loc[name, ["exact", "mean_error", "MAE", "RMSE"]].tolist(), expected, rtol=1e-14
        )


@pytest.mark.parametrize("least", [EVERYTHING, 0.3, 0.8])
def test_the_same_as_a_loop_over_images_and_classes(least: float, scene: Any) -> None:
    for seed in range(4):
        assert_as_slow(boxscore.evaluate(*scene(seed, decimals=1 if seed % 2 else None)), least)


@pytest.mark.long
@each(["voc2007", "voc2012"])
def test_the_same_where_difficult_objects_are_ignored(protocol: str) -> None:
    for seed in (0, 3, 5):
        assert_as_slow(boxscore.evaluate(*drawn(protocol, seed), protocol=protocol), EVERYTHING)


@each(names_in_order(ranked=True), first=len(ALWAYS))
def test_no_image_is_counted_twice(protocol: str) -> None:
    for seed in (0, 5):
        result = boxscore.evaluate(*drawn(protocol, seed), protocol=protocol)
        area = next(iter(result.protocol.ignore.area_ranges))
        presence = image_presence(result, area=area, score_threshold=EVERYTHING)
        per_class, total = presence.per_class, presence.total
        for one in (per_class, total):
            assert all(np.all(column >= 0) for column in one[:5])
        images = sum(np.asarray(column) for column in per_class[:5])
        assert (images <= len(result.ground_truth.images)).all()
        assert sum(int(column) for column in total[:5]) == len(result.ground_truth.images)
        counts = count_errors(result, area=area, score_threshold=EVERYTHING).per_class
        if result.protocol.labels.not_exhaustive == "count":
            np.testing.assert_array_equal(counts.objects, result.class_counts["ground_truths"])
            np.testing.assert_array_equal(counts.images, images)


def federated() -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Four images: cats in 0 and 1, not all of them in 1; no cat in 2; nobody looked in 3."""
    truth = boxscore.GroundTruth.from_arrays(
        [0, 1, 3],
        [1, 1, 2],
        [[0, 0, 9, 9]] * 3,
        images=[0, 1, 2, 3],
        categories={1: "cat", 2: "dog"},
    )
    labels = boxscore.ImageLabels.from_arrays(
        [2, 1],
        ["cat", "cat"],
        ["negative", "not_exhaustive"],
        images=truth.images,
        categories=truth.categories,
    )
    boxes = [[0, 0, 9, 9], [0, 0, 9, 9], [50, 50, 59, 59], [0, 0, 9, 9], [0, 0, 9, 9]]
    found = boxscore.Detections.from_arrays(
        [0, 1, 1, 2, 3],
        [1] * 5,
        boxes,
        [0.9, 0.8, 0.7, 0.6, 0.5],
        images=truth.images,
        categories=truth.categories,
    )
    return truth.replaced(image_labels=labels), found


def test_an_image_where_nobody_looked_is_no_true_negative() -> None:
    result = boxscore.evaluate(*federated(), protocol="lvis")
    cat = image_presence(result).to_frame().iloc[0]
    assert cat[["TP", "FP", "FN", "TN", "left_out"]].tolist() == [2, 1, 0, 0, 0]  # image 3 is none of them
    dog = image_presence(result).to_frame().iloc[1]
    assert dog[["TP", "FP", "FN", "TN", "left_out"]].tolist() == [0, 0, 1, 0, 0]


def test_objects_that_are_not_all_annotated_are_not_counted() -> None:
    counts = count_errors(boxscore.evaluate(*federated(), protocol="lvis")).to_frame()
    assert counts.loc[0, ["images", "objects", "detections", "MAE"]].tolist() == [2, 1, 2, 0.5]


def test_an_image_with_crowds_alone_says_neither() -> None:
    truth = boxscore.GroundTruth.from_arrays(
        [1], ["cat"], [[0, 0, 50, 50]], crowd=[True], images=[1, 2], categories=["cat"]
    )
    found = boxscore.Detections.from_arrays([1, 1], ["cat"] * 2, [[0, 0, 9, 9], [70, 70, 79, 79]], [0.9, 0.8])
    result = boxscore.evaluate(truth, found)
    assert image_presence(result).to_frame().loc[0, ["TP", "FP", "FN", "TN", "left_out"]].tolist() == [
        *(0, 0, 0, 1),
        1,
    ]
    counts = count_errors(result).to_frame()  # one detection is outside the crowd
    assert counts.loc[0, ["images", "objects", "detections", "MAE"]].tolist() == [2, 0, 1, 0.5]


def test_without_scores_there_is_no_auc(scene: Any) -> None:
    truth, found = scene(1)
    result = boxscore.evaluate(truth, found.without_scores())
    frame = image_presence(result).to_frame()
    assert "AUC" not in frame
    assert frame["TP"].sum() > 0
    with pytest.raises(boxscore.InputError, match="be 0 or less if detections lack scores"):
        count_errors(result, score_threshold=0.5)


def test_partitions_answer_the_same(tmp_path: Path, scene: Any) -> None:
    pytest.importorskip("pyarrow", reason="needs boxscore[tables]")
    from boxscore.formats.parquet import FORMAT
    from boxscore.protocols import load_protocol

    truth, found = scene(6, images=40, decimals=1)
    FORMAT.save(found, tmp_path / "found.parquet")
    whole = boxscore.evaluate(truth, boxscore.load_detections(tmp_path / "found.parquet", truth))
    with asked_again(truth, tmp_path / "found.parquet", load_protocol("coco"), partition=30) as result:
        for question in (image_presence, count_errors):
            equal(question(whole, score_threshold=0.4), question(result, score_threshold=0.4))


def test_command(run: Run) -> None:
    head, first, *_ = run("presence", GT, DT, "--output", "csv", "--score-threshold", "0.5").out.splitlines()
    assert head == "class,TP,FP,FN,TN,left_out,precision,recall,specificity,F1,AUC"
    assert sum(map(int, first.split(",")[1:6])) == 24
    text = run("presence", GT, DT, "--counts", "--sort", "MAE").out
    assert text.startswith(
        "Number of objects per image, detections with score >= 0.55, sorted by highest\nMAE"
    )
    assert "Presence of classes in images at score 0.55" in run("presence", GT, DT).out
