"""The index of mistakes: every filter and order against a loop over single mistakes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import boxscore
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.index import Filter, MistakeIndex, Order
from boxscore.extensions.pages.mistakes import KINDS
from support.each import each
from support.evaluations import empty_evaluation, evaluation, shapes

FALSE_POSITIVE, MISSED = 1, 3


class One(NamedTuple):
    """A mistake, as a loop over the two tables gives it."""

    image: int
    row: int
    category: int
    other: int
    kind: int
    score: float
    overlap: float
    area: float
    outcome: int


def every_mistake(gallery: Gallery) -> list[One]:
    """False positives, then missed objects, one by one."""
    result, score = gallery.evaluation, gallery.score_threshold
    found, truth, outcomes = result.detections, result.ground_truth, result.outcomes
    listed = []
    for row in range(len(found)):
        if outcomes.detection[row] == FALSE_POSITIVE and found.scores[row] >= score:
            named = gallery.mistakes.detections
            area = found.sizes[row, 0] * found.sizes[row, 1]
            listed.append(_one(found, row, named, found.scores[row], area, FALSE_POSITIVE))
    missed = outcomes.truth(score) == MISSED
    return listed + [
        _one(truth, row, gallery.mistakes.truths, math.nan, truth.area[row], MISSED)
        for row in range(len(truth))
        if missed[row]
    ]


def _one(table: Any, row: int, named: Any, score: float, area: float, outcome: int) -> One:
    place = int(table.image[row]), row, int(table.category[row])
    what = int(named.category[row]), int(named.kind[row]), float(score), float(named.overlap[row])
    return One(*place, *what, float(area), outcome)


def passes(one: One, asked: Filter, bounds: list[tuple[float, float]]) -> bool:
    if asked.category is not None and asked.category not in (one.category, one.other):
        return False
    if asked.kind is not None and one.kind != asked.kind:
        return False
    for value, low, high in (
        (one.score, asked.score_from, asked.score_to),
        (one.overlap, asked.iou_from, asked.iou_to),
    ):
        if (low, high) != (-math.inf, math.inf) and not low <= value <= high:
            return False
    if asked.size is not None and not bounds[asked.size][0] <= one.area <= bounds[asked.size][1]:
        return False
    return one.outcome not in asked.hidden


def slowly(gallery: Gallery, asked: Filter, order: Order) -> tuple[list[int], int]:
    """Images in order, and how many mistakes pass in them."""
    result = gallery.evaluation
    bounds = [(0.0, 1024.0), (1024.0, 9216.0), (9216.0, 1e10)]
    of_image: dict[int, list[One]] = {row: [] for row in range(len(result.images))}
    for one in every_mistake(gallery):
        if passes(one, asked, bounds):
            of_image[one.image].append(one)
    names = [
        f"{i} {n or ''}".lower() for i, n in zip(result.images.ids, result.images.file_names, strict=True)
    ]
    left = [
        row
        for row, mistakes in of_image.items()
        if (mistakes or not asked.of_mistakes) and asked.image in names[row]
    ]
    if order == "worst":
        left.sort(key=lambda row: -len(of_image[row]))
    if order == "confident":

        def surest(row: int) -> tuple[bool, float]:
            scores = [one.score for one in of_image[row] if not math.isnan(one.score)]
            return not of_image[row], -max(scores, default=-math.inf)

        left.sort(key=surest)
    return left, sum(len(of_image[row]) for row in left)


FILTERS = [
    Filter(),
    Filter(category=1),
    Filter(kind=KINDS.index("localization")),
    Filter(kind=KINDS.index("missed"), category=0),
    Filter(score_from=0.4, score_to=0.8),
    Filter(iou_from=0.2, iou_to=0.6),
    Filter(size=0),
    Filter(size=2, score_from=0.3),
    Filter(image="1"),
    Filter(hidden=(FALSE_POSITIVE,)),
    Filter(hidden=(MISSED,), kind=KINDS.index("background")),
    Filter(category=2, kind=KINDS.index("classification"), iou_from=0.6, hidden=(MISSED,)),
    Filter(image="no such image"),
    Filter(score_from=2.0),
]


@pytest.mark.oracle
@each([(number, order) for order in ["confident", "worst", "listed"] for number in range(len(FILTERS))])
def test_every_filter_is_that_of_a_loop(number: int, order: Order) -> None:
    result = evaluation(images=25, boxes=9, noise=14.0, seed=number)
    gallery = Gallery(result, score_threshold=0.2)
    index = MistakeIndex(gallery)
    assert index.sizes == ["small", "medium", "large"]
    chosen = index.chosen(FILTERS[number], order)
    assert (chosen.images.tolist(), chosen.mistakes) == slowly(gallery, FILTERS[number], order)


@pytest.mark.oracle
def test_the_boxes_that_stand_out_are_those_that_pass() -> None:
    result = shapes()
    gallery = Gallery(result, score_threshold=0.3)
    index = MistakeIndex(gallery)
    asked = Filter(category=1, hidden=(MISSED,))
    chosen = index.chosen(asked, "worst")
    images = chosen.images.tolist()
    assert len(images) > 3
    for image, positions in zip(images, index.boxes(chosen, images), strict=True):
        record = gallery.record(image)
        expected = [
            at
            for at, box in enumerate(record["boxes"])
            if len(box) > 8 and box[5] == FALSE_POSITIVE and 1 in (box[4], box[9])
        ]
        assert positions == expected


def test_the_tallies_count_every_mistake() -> None:
    gallery = Gallery(shapes(), score_threshold=0.3)
    index, listed = MistakeIndex(gallery), every_mistake(gallery)
    kinds, classes = index.tallies()
    assert sum(kinds.values()) == len(index) == len(listed)
    assert kinds["localization"] == sum(KINDS[one.kind] == "localization" for one in listed)
    for k, count in enumerate(classes.tolist()):
        assert count == sum(k in (one.category, one.other) for one in listed)
    assert index.counts[:, :2].sum() == len(index)


@pytest.mark.parametrize("make", [empty_evaluation, lambda: evaluation(images=3, boxes=0)])
def test_nothing_is_an_answer(make: Any) -> None:
    index = MistakeIndex(Gallery(make()))
    chosen = index.chosen(Filter())
    assert len(index) == chosen.mistakes == 0
    assert len(chosen.images) in (0, 3)
    assert index.tallies()[0] == {}


def test_under_voc_there_are_no_sizes() -> None:
    result = evaluation(images=10, protocol="voc2007")
    assert isinstance(result, boxscore.Evaluation)
    index = MistakeIndex(Gallery(result))
    assert index.sizes == []
    assert len(index.chosen(Filter()).images) == 10
    assert np.array_equal(index.chosen(Filter(), "listed").images, np.arange(10))
