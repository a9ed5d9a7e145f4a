"""The confusion matrix against a slow oracle that reads like the rule."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, evaluate, save_as
from boxscore.diagnostics import confusion_matrix, top_confusions
from support.running import Run


def oracle(truth, detections, *, iou_threshold, score_threshold, assign):
    """One image at a time, one pair at a time."""
    K = len(truth.categories)
    counts = np.zeros((K + 1, K + 1), dtype=int)
    for image in range(len(truth.images)):
        objects = [g for g in range(len(truth)) if truth.image[g] == image]
        found = [
            d
            for d in range(len(detections))
            if detections.image[d] == image and detections.scores[d] >= score_threshold
        ]
        found.sort(key=lambda d: -detections.scores[d])
        overlap = {
            (d, g): one_overlap(detections, d, truth, g, crowd=truth.crowd[g]) for d in found for g in objects
        }
        pairs = [pair for pair in overlap if overlap[pair] >= iou_threshold and not truth.crowd[pair[1]]]
        place = {d: i for i, d in enumerate(found)}
        if assign == "score":
            pairs.sort(key=lambda pair: (place[pair[0]], -overlap[pair], pair[1]))
        else:
            pairs.sort(key=lambda pair: (-overlap[pair], place[pair[0]], pair[1]))
        taken_detections, taken_objects = set(), set()
        for d, g in pairs:
            if d not in taken_detections and g not in taken_objects:
                taken_detections.add(d)
                taken_objects.add(g)
                counts[truth.category[g], detections.category[d]] += 1
        for g in objects:
            if g not in taken_objects and not truth.crowd[g]:
                counts[truth.category[g], K] += 1
        for d in found:
            excused = any(
                truth.crowd[g]
                and truth.category[g] == detections.category[d]
                and overlap[d, g] >= iou_threshold
                for g in objects
            )
            if d not in taken_detections and not excused:
                counts[K, detections.category[d]] += 1
    return counts


def one_overlap(detections, d, truth, g, *, crowd):
    ax, ay, aw, ah = *detections.boxes[d, :2], *detections.sizes[d]
    bx, by, bw, bh = *truth.boxes[g, :2], *truth.sizes[g]
    width = min(ax + aw, bx + bw) - max(ax, bx)
    height = min(ay + ah, by + bh) - max(ay, by)
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / (aw * ah if crowd else aw * ah + bw * bh - shared)


@pytest.mark.parametrize("assign", ["score", "iou"])
@pytest.mark.parametrize("seed", range(5))
def test_equal_to_the_oracle(scene, seed, assign):
    truth, detections = scene(seed, images=20)
    options = {"iou_threshold": 0.4, "score_threshold": 0.2, "assign": assign}
    matrix = confusion_matrix(boxscore.evaluate(truth, detections), **options)
    np.testing.assert_array_equal(matrix.counts, oracle(truth, detections, **options))


@pytest.mark.parametrize("assign", ["score", "iou"])
def test_sample(sample, assign):
    options = {"iou_threshold": 0.5, "score_threshold": 0.3, "assign": assign}
    matrix = confusion_matrix(boxscore.evaluate(*sample), **options)
    np.testing.assert_array_equal(matrix.counts, oracle(*sample, **options))


@pytest.mark.real
@pytest.mark.parametrize("assign", ["score", "iou"])
def test_faster_coco_eval_example(fake100, assign):
    options = {"iou_threshold": 0.5, "score_threshold": 0.0, "assign": assign}
    evaluation = boxscore.evaluate(*fake100)
    matrix = confusion_matrix(evaluation, **options)
    expected = oracle(*fake100, **options)
    for k, label in enumerate(evaluation.labels):
        np.testing.assert_array_equal(matrix.to_frame().loc[label].to_numpy(), expected[k])
    np.testing.assert_array_equal(matrix.counts, expected)


def test_rows_are_objects(scene):
    evaluation = boxscore.evaluate(*scene(2, images=30))
    matrix = confusion_matrix(evaluation)
    rows = matrix.counts.sum(axis=1)[:-1]
    np.testing.assert_array_equal(rows, evaluation.per_class["ground_truths"].to_numpy())


@pytest.mark.parametrize(("normalize", "axis"), [("truth", 1), ("predicted", 0)])
def test_shares(scene, normalize, axis):
    shares = confusion_matrix(boxscore.evaluate(*scene(2)), normalize=normalize)
    sums = shares.to_frame().sum(axis=axis, min_count=1).dropna()
    assert sums.to_numpy() == pytest.approx(1.0)


def test_top_confusions_are_the_cells(scene):
    evaluation = boxscore.evaluate(*scene(4, images=40))
    matrix, top = confusion_matrix(evaluation), top_confusions(evaluation, limit=None)
    listed, table = top.to_frame(), matrix.to_frame()
    off = matrix.counts.sum() - np.trace(matrix.counts)
    assert listed["count"].sum() == off
    with_background = listed.isin(["(background)"]).any(axis=1)
    assert with_background.is_monotonic_increasing  # confusions between classes come first
    assert top.missed == listed["count"][listed["predicted"] == "(background)"].sum()
    assert top.unassigned == listed["count"][listed["truth"] == "(background)"].sum()
    for part in (listed[~with_background], listed[with_background]):
        assert len(part) > 3
        assert part["count"].is_monotonic_decreasing
        few = top_confusions(evaluation, limit=3).to_frame()
        assert part.head(3).to_numpy().tolist() in (
            few.head(3).to_numpy().tolist(),
            few[3:].to_numpy().tolist(),
        )
    for row in listed.itertuples():
        assert table.loc[row.truth, row.predicted] == row.count
        assert 1 <= len(row.image_ids) <= row.count
    among_classes = top_confusions(evaluation, limit=None, background=False).to_frame()
    assert not among_classes.isin(["(background)"]).to_numpy().any()


def test_no_detections(scene):
    truth, detections = scene(0)
    matrix = confusion_matrix(boxscore.evaluate(truth, detections.take(np.arange(0))))
    assert matrix.counts[:, :-1].sum() == 0
    assert matrix.counts[:, -1].sum() == (~truth.crowd).sum()


def test_a_part_of_the_matrix(scene):
    """The cells that occur say the same as the matrix, whatever classes are taken."""
    matrix = confusion_matrix(boxscore.evaluate(*scene(4, images=40)), score_threshold=0)
    assert (matrix.count > 0).all()
    assert (matrix.counts[matrix.truth, matrix.predicted] == matrix.count).all()
    assert matrix.counts.sum() == matrix.count.sum()
    assert not matrix.counts.flags.writeable
    last = len(matrix.labels) - 1
    for rows in ([0], [last, 1], [2, 0, last]):
        assert (matrix.counts_of(rows) == matrix.counts[np.ix_(rows, rows)]).all()
    right = np.diag(matrix.counts)[:last]
    wrong = matrix.counts[:last, :last] - np.diag(right)
    order = np.lexsort((-right, -(wrong.sum(axis=0) + wrong.sum(axis=1))))
    for most in range(1, last + 1):
        assert matrix.most_confused(most).tolist() == sorted(order[:most].tolist())


@pytest.mark.long
def test_very_many_classes_have_cells_and_no_matrix():
    """100,000 classes: 74.5 GiB as a matrix."""
    K = 100_000
    rows = np.arange(50)
    box = np.tile([0.0, 0.0, 10.0, 10.0], (50, 1))
    truth = boxscore.GroundTruth.from_arrays(rows, rows, box, images=rows, categories=range(K))
    found = boxscore.Detections.from_arrays(rows, rows // 2, box, [0.5] * 50)
    evaluation = boxscore.evaluate(truth, found, protocol="voc2012")
    matrix = confusion_matrix(evaluation)
    assert matrix.count.tolist() == [1] * 50
    assert matrix.predicted.tolist() == (rows // 2).tolist()
    assert matrix.counts_of([0, 1]).tolist() == [[1, 0], [1, 0]]
    with pytest.raises(boxscore.InputError, match=r"Got 100,001 x 100,001, 74.5 GiB; .*--top"):
        _ = matrix.counts
    assert "the first of 50 cells" in repr(matrix)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("truth", "truth (2)"),
        ("(background)", "(background) (2)"),
        ("(all)", "(all) (2)"),
        ("predicted", "predicted"),
    ],
)
def test_no_class_is_called_as_what_stands_beside_the_classes(
    name: str, label: str, tmp_path: Path, run: Run
) -> None:
    names = {1: "cat", 2: name}
    boxes = [[0, 0, 9, 9], [20, 0, 29, 9], [40, 0, 49, 9]]
    truth = GroundTruth.from_arrays([1, 1, 1], [1, 2, 2], boxes, categories=names)
    found = Detections.from_arrays([1, 1], [2, 2], boxes[:2], [0.9, 0.8], categories=names)
    matrix = confusion_matrix(evaluate(truth, found))
    assert matrix.labels == ["cat", label, "(background)"]
    assert matrix.counts.tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert matrix.to_frame().columns.tolist() == matrix.labels
    save_as(truth, tmp_path / "gt.json", lossy=True)
    save_as(found, tmp_path / "dt.json")
    command = ["confusion", str(tmp_path / "gt.json"), str(tmp_path / "dt.json"), "--score-threshold", "0.1"]
    for form in ("text", "csv", "markdown", "latex"):
        assert label in run(*command, "-o", form).out
    rows = json.loads(run(*command, "-o", "json").out)["rows"]
    assert rows == [
        {"truth": "cat", "cat": 0, label: 1, "(background)": 0},
        {"truth": label, "cat": 0, label: 1, "(background)": 1},
        {"truth": "(background)", "cat": 0, label: 0, "(background)": 0},
    ]
