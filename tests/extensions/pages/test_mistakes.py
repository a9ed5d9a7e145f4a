"""What the gallery says of a mistake."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import error_list
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.mistakes import KINDS, Mistakes
from support.evaluations import evaluation

CLASSES = {1: "cat", 2: "dog"}


def said(
    objects: list[tuple[int, list[float]]],
    found: list[tuple[int, list[float], float]],
    score_threshold: float = -np.inf,
) -> list[list[object]]:
    """Outcome and mistake of each box of one image, detections first."""
    truth = boxscore.GroundTruth.from_arrays(
        [1] * len(objects), [k for k, _ in objects], [box for _, box in objects], categories=CLASSES
    )
    detections = boxscore.Detections.from_arrays(
        [1] * len(found), [k for k, _, _ in found], [box for _, box, _ in found], [s for _, _, s in found]
    )
    result = boxscore.evaluate(truth, detections)
    gallery = Gallery(result, score_threshold=score_threshold)
    gallery.add(0)
    names = [*KINDS]
    return [
        [box[4], names[box[8]], *box[9:]] if len(box) > 8 else [box[4], "none"]
        for box in gallery.records[0]["boxes"]
    ]


OBJECT = [0, 0, 100, 100]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((2, [0, 0, 100, 80], 0.9), [1, "classification", 0, 0.8, None]),
        ((1, [0, 0, 100, 42], 0.9), [0, "localization", 0, 0.42, None]),
        ((2, [0, 0, 100, 42], 0.9), [1, "both", 0, 0.42, None]),
        ((1, [300, 300, 350, 350], 0.9), [0, "background", None, None, None]),
        ((1, [0, 0, 100, 9], 0.9), [0, "background", None, None, None]),
    ],
)
def test_what_a_false_positive_hit(found: tuple[int, list[float], float], expected: list[object]) -> None:
    assert said([(1, OBJECT)], [found])[0] == expected


def test_a_duplicate_names_the_detection_that_found_the_object() -> None:
    found = [(1, OBJECT, 0.9), (1, [0, 0, 100, 71], 0.5)]
    assert said([(1, OBJECT)], found) == [[0, "none"], [0, "duplicate", 0, 0.71, 0.9]]


def test_what_came_nearest_to_a_missed_object() -> None:
    box = [0, 0, 100, 42]
    assert said([(1, OBJECT)], [(1, box, 0.9)])[1] == [0, "missed", 0, 0.42, 0.9]
    assert said([(1, OBJECT)], [(2, box, 0.9), (1, [0, 0, 100, 30], 0.8)])[2] == [0, "missed", 1, 0.42, 0.9]
    assert said([(1, OBJECT)], []) == [[0, "missed", None, None, None]]
    assert said([(1, OBJECT)], [(1, box, 0.2)], 0.5) == [[0, "missed", None, None, None]]
    assert said([(1, OBJECT)], [(1, OBJECT, 0.2)], 0.5) == [[0, "below_threshold", 0, 1.0, 0.2]]


@pytest.mark.parametrize("seed", range(5))
def test_kinds_are_those_of_the_errors(seed: int) -> None:
    result = evaluation(images=40, boxes=12, noise=15.0, seed=seed, protocol="voc2012")
    errors = error_list(result)
    known = {
        (i, c, s, *box): kind
        for kind, i, c, s, box in zip(
            errors.error, errors.image_id, errors.category, errors.score, errors.boxes.tolist(), strict=True
        )
    }
    mistakes, table = Mistakes(result, score_threshold=-np.inf), result.detections
    labels, agree = result.labels, 0
    false = np.flatnonzero(result.matches["outcome"] == "false positive")
    for row in false.tolist():
        key = (table.images.ids[table.image[row]], labels[table.category[row]], table.scores[row])
        kind = known.get((*key, *table.boxes[row].tolist()))
        agree += kind is None or KINDS[mistakes.of_detection(row)[0]] == kind
    assert len(false) > 50
    matches = result.matches
    found = matches[matches["outcome"] == "true positive"]["annotation_id"].tolist()
    assert agree >= 0.98 * len(false)  # the two match by different rules
    missed = result.outcomes.counted & ~np.isin(result.ground_truth.ids, found)
    assert missed.any()
    for row in np.flatnonzero(missed).tolist():
        assert KINDS[mistakes.of_truth(row)[0]] == "missed"
