"""The worst classes and what is said of them, by plain loops; the mistakes that the first screen shows."""

from __future__ import annotations

import re

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import error_types
from boxscore.extensions.diagnostics.tide import ERROR_TYPES, error_list
from boxscore.extensions.pages.choices import Choices
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.html import render_page
from boxscore.extensions.pages.view import report_view
from boxscore.extensions.pages.worst import (
    CROP_SHAPE,
    ClassMistakes,
    Worst,
    lowest_classes,
    surest_crops,
    worst_classes,
)
from boxscore.reports import ReportOptions
from support.evaluations import empty_evaluation, evaluation, shapes
from support.real_data import real

Corners = list[float]


def overlap(a: Corners, b: Corners) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def slow_predicted(result: boxscore.Evaluation, score: float) -> list[int | None]:
    """Class as which each object is predicted, by a greedy match within classes and the largest overlap."""
    truth, detections = result.ground_truth, result.detections
    order = sorted(range(len(detections)), key=lambda d: -detections.scores[d])
    order = [d for d in order if detections.scores[d] >= score]
    predicted: list[int | None] = [None] * len(truth)
    taken: set[int] = set()
    crowd = truth.crowd.tolist()
    iou = {
        (d, g): overlap(detections.boxes[d].tolist(), truth.boxes[g].tolist())
        for d in order
        for g in range(len(truth))
        if detections.image[d] == truth.image[g]
    }
    for d in order:
        same = [
            g
            for g in range(len(truth))
            if iou.get((d, g), 0) >= 0.5
            and truth.category[g] == detections.category[d]
            and not crowd[g]
            and g not in taken
        ]
        if same:
            best = max(same, key=lambda g: iou[d, g])
            taken.add(best)
            predicted[best] = int(detections.category[d])
    for g in range(len(truth)):
        near = [d for d in order if iou.get((d, g), 0) >= 0.5]
        if g not in taken and near and not crowd[g]:
            predicted[g] = int(detections.category[max(near, key=lambda d: iou[d, g])])
    return predicted


def worst_at(result: boxscore.Evaluation, *, score_threshold: float) -> Worst:
    mistakes = ClassMistakes.of(result, lowest_classes(result)[0], score_threshold)
    return worst_classes(result, mistakes, score_threshold=score_threshold)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_a_class_is_counted(seed: int) -> None:
    result = evaluation(seed=seed, classes=7, images=25, boxes=5, noise=9.0)
    truth, detections, score = result.ground_truth, result.detections, result.operating_score
    predicted = slow_predicted(result, score)
    listed = error_list(result)
    errors = error_types(result).per_class
    costs = errors.cost.copy()
    none = errors.value[:, 0] == 0
    costs[none, 5] = errors.counts[none, 5] / result.class_counts["ground_truths"][none]
    counted = [not crowd for crowd in truth.crowd.tolist()]
    said = set()
    for each in worst_at(result, score_threshold=score).classes:
        k = each.row
        assert each.value == result.class_values["AP"][k]
        objects = [g for g in range(len(truth)) if truth.category[g] == k and counted[g]]
        numbers = [int(text) for text in re.findall(r"\d+", each.text.partition("(")[0])]
        said.add(each.kind)
        alike = [predicted[g] for g in objects if predicted[g] not in (None, k)]
        most = max(map(alike.count, alike), default=0)
        if most >= 3 and 2 * most > sum(predicted[g] is not None for g in objects):
            assert (each.kind, each.cell[0]) == ("classification", k)
        if each.kind == "missed":
            missed = [g for g in objects if predicted[g] != k]
            assert numbers == [len(missed), len(objects)]
        elif each.kind == "classification" and each.cell[0] == k:
            other = [predicted[g] for g in objects if predicted[g] not in (None, k)]
            assert numbers == [
                other.count(each.cell[1]),
                sum(predicted[g] is not None for g in objects),
            ]
            assert other.count(each.cell[1]) == max(map(other.count, other))
        else:
            label = result.labels[k]
            wrong = [
                row
                for row in range(len(listed.error))
                if listed.error[row] == each.kind and listed.category[row] == label
                if listed.score[row] >= score
            ]
            if each.cell is not None:
                wrong = [row for row in wrong if listed.true_class[row] == result.labels[each.cell[0]]]
            assert numbers[0] == len(wrong)
            of_class = (detections.category == k) & (detections.scores >= score)
            missed = sum(predicted[g] != k for g in objects)
            also = re.search(r"; (\d+) of (\d+) missed$", each.text)
            assert (also is not None) == (each.cell is None and 2 * missed > len(objects))
            assert also is None or [int(also[1]), int(also[2])] == [missed, len(objects)]
            assert numbers[1] == int((of_class & (result.outcomes.detection != 2)).sum())
        if each.kind in ERROR_TYPES and costs[k, ERROR_TYPES.index(each.kind)] == np.nanmax(costs[k, :6]):
            said.add("dearest")
    assert "dearest" in said


def is_false(result: boxscore.Evaluation) -> np.ndarray:
    """Whether each detection is a false positive."""
    return np.asarray(result.matches["outcome"] == "false positive")


def table_of_names(objects: int, called: int, detected: int) -> boxscore.Evaluation:
    """Objects of one class, some called another and some detected, beside a class without mistakes."""
    truth = ["hot dog"] * objects + ["dog"] * 10
    found = ["dog"] * called + ["hot dog"] * detected + ["dog"] * 10
    rows = [*range(called), *range(called, called + detected), *range(objects, objects + 10)]
    boxes = [[60 * row, 0, 60 * row + 50, 60] for row in range(len(truth))]
    image = [0] * len(truth)
    tables = boxscore.GroundTruth.from_arrays(image, truth, boxes, categories=["dog", "hot dog"])
    scores = np.linspace(0.9, 0.1, len(found))
    return boxscore.evaluate(
        tables,
        boxscore.Detections.from_arrays(
            image[: len(found)],
            found,
            [boxes[row] for row in rows],
            scores,
            images=tables.images,
            categories=tables.categories,
        ),
    )


@pytest.mark.parametrize(
    ("objects", "called", "detected", "text"),
    [
        (20, 8, 0, "8 of 8 localized are predicted as"),
        (20, 8, 7, "8 of 15 localized are predicted as"),
        (20, 2, 0, "all 20 missed"),
        (20, 2, 1, "19 of 20 missed"),
    ],
)
def test_a_class_that_is_called_another_is_said_before_it_is_missed(
    objects: int, called: int, detected: int, text: str
) -> None:
    result = table_of_names(objects, called, detected)
    (each,) = (
        each for each in worst_at(result, score_threshold=0.0).classes if result.labels[each.row] == "hot dog"
    )
    assert each.text == text
    assert each.cell == ((1, 0) if "predicted" in text else None)


def slow_order(result: boxscore.Evaluation, least: int) -> list[int]:
    values = result.class_values["AP"].tolist()
    objects = result.class_counts["ground_truths"].tolist()
    known = [k for k in range(len(values)) if values[k] == values[k] and objects[k] >= least]
    return sorted(known, key=lambda k: (values[k], -objects[k], k))[:5]


def test_a_class_of_few_objects_is_no_worst_class_while_others_are_there() -> None:
    result = evaluation(classes=40, images=30, boxes=4)
    objects = result.class_counts["ground_truths"]
    assert (objects >= 5).sum() >= 5
    assert ((objects > 0) & (objects < 5)).any()
    chosen = worst_at(result, score_threshold=0.0)
    assert [each.row for each in chosen.classes] == slow_order(result, 5)
    assert chosen.rule == (
        f"Lowest AP of {(objects >= 5).sum()} classes with 5 objects or more; counts use score >= 0."
    )
    few = evaluation(classes=40, images=12, boxes=4, seed=3)
    objects = np.sort(few.class_counts["ground_truths"])
    least = int(min(5, objects[-5]))
    assert least < 5
    chosen = worst_at(few, score_threshold=-np.inf)
    assert [each.row for each in chosen.classes] == slow_order(few, least)
    assert "scores" not in chosen.rule


def test_classes_without_detections_are_missed() -> None:
    result = evaluation(classes=3, images=20)
    detections = result.detections.take(np.flatnonzero(result.detections.category != 1))
    without = boxscore.evaluate(result.ground_truth, detections)
    first = worst_at(without, score_threshold=0.5).classes[0]
    objects = int(without.class_counts["ground_truths"][1])
    assert (first.row, first.value, first.kind) == (1, 0.0, "missed")
    assert first.text == f"all {objects} missed"
    none = boxscore.evaluate(result.ground_truth, detections.take(np.arange(0)))
    assert [each.kind for each in worst_at(none, score_threshold=-np.inf).classes] == ["missed"] * 3


@pytest.mark.parametrize("make", [empty_evaluation, lambda: evaluation(classes=["only"], images=5)])
def test_one_class_has_no_worst(make) -> None:  # type: ignore[no-untyped-def]
    result = make()
    assert worst_at(result, score_threshold=0.0).classes == []
    assert 'id="class-bars"' not in render_page(report_view(result, options=ReportOptions(resamples=0)))


def test_the_surest_mistakes_are_of_different_classes_and_images() -> None:
    result = evaluation(classes=6, images=40)
    detections, score = result.detections, result.operating_score
    gallery = Gallery(result, score_threshold=score)
    crops = surest_crops(gallery, Choices.of(result).surest)
    false = np.flatnonzero(is_false(result) & (detections.scores >= score))
    order = false[np.argsort(-detections.scores[false], kind="stable")]
    expected: list[int] = []
    images: set[int] = set()
    for row in order.tolist():
        if detections.image[row] in images:
            continue
        images.add(int(detections.image[row]))
        if detections.category[row] not in [detections.category[other] for other in expected]:
            expected.append(row)
    shown = [gallery.records[crop.record]["boxes"][crop.box] for crop in crops]
    assert [(gallery.rows[crop.record], box[4], box[6]) for crop, box in zip(crops, shown, strict=True)] == [
        (int(detections.image[row]), int(detections.category[row]), float(f"{detections.scores[row]:.3g}"))
        for row in expected[:3]
    ]
    for crop, box in zip(crops, shown, strict=True):
        record, (left, top, width, height) = gallery.records[crop.record], crop.part
        assert left >= 0
        assert top >= 0
        assert left + width <= record["width"] + 0.1
        assert top + height <= record["height"] + 0.1
        inside = min(box[0] + box[2], record["width"]), min(box[1] + box[3], record["height"])
        assert left <= max(box[0], 0)
        assert inside[0] <= left + width + 0.1
        assert top <= max(box[1], 0)
        assert inside[1] <= top + height + 0.1
        assert width / height == pytest.approx(CROP_SHAPE, abs=0.01) or width == record["width"]


def test_images_of_a_class() -> None:
    result = evaluation(classes=5, images=40)
    score = result.operating_score
    false = is_false(result)
    by_class: list[dict[int, int]] = [{} for _ in range(5)]
    for row in range(len(result.detections)):
        if false[row] and result.detections.scores[row] >= score:
            images = by_class[result.detections.category[row]]
            images[int(result.detections.image[row])] = images.get(int(result.detections.image[row]), 0) + 1
    for row in range(len(result.ground_truth)):
        if result.outcomes.truth(score)[row] == 3:
            images = by_class[result.ground_truth.category[row]]
            images[int(result.ground_truth.image[row])] = (
                images.get(int(result.ground_truth.image[row]), 0) + 1
            )
    choices = Choices.of(result)
    assert choices.of_class.tolist() == [len(images) for images in by_class]
    worst = [
        sorted(by_class[k], key=lambda image: (-by_class[k][image], image))[:4]
        for k in lowest_classes(result)[0]
    ]
    assert choices.of_worst == [image for images in worst for image in images]


def test_the_first_screen_says_which_classes_and_links_to_them() -> None:
    result = shapes()
    view = report_view(result, options=ReportOptions(resamples=0, date=""))
    page = render_page(view)
    assert 'href="#gallery?class=hexagon"' in page
    assert 'href="#confusion?truth=hexagon&amp;predicted=circle"' in page
    assert "5 of 5 localized are predicted as" in page
    assert len(view["surest"]) == 3


@pytest.mark.real
def test_teddy_bears_are_called_bears() -> None:
    """The counts of the finding about the class list, which are computed elsewhere."""
    truth = boxscore.load_ground_truth(real("coco_val2017", "ground_truth_boxes.json"))
    detections = boxscore.load_detections(real("coco_val2017", "yolov2_608.json"), truth)
    with pytest.warns(boxscore.BoxscoreWarning):
        result = boxscore.evaluate(truth, detections)
    chosen = worst_at(result, score_threshold=result.operating_score).classes
    said = {result.labels[each.row]: each for each in chosen}
    assert [*said] == ["carrot", "teddy bear", "hot dog", "hair drier", "toaster"]
    assert said["teddy bear"].text == "91 of 94 localized are predicted as"
    assert [result.labels[k] for k in said["teddy bear"].cell or ()] == ["teddy bear", "bear"]
    assert said["carrot"].text == "35 of 40 localized are predicted as"
    assert said["hot dog"].text == "39 of 48 localized are predicted as"
    assert said["toaster"].text == "all 9 missed"
