"""Best F1 against every score threshold that occurs, tried one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import boxscore
from support.curves import RANGES, tables
from support.every_cell import with_every_cell


def best_f1(evaluation: boxscore.Evaluation, k: int, threshold: int, area: int) -> float:
    """Keep all detections of at least each score, and count what is true and false of the class."""
    matched = evaluation.matched
    made = matched.detection_outcomes(threshold, area)
    own = matched.category == k
    positive = int(matched.positives(area)[k])
    if not positive:
        return np.nan
    best = 0.0
    for score in np.unique(matched.score[own]).tolist():
        kept = own & (matched.score >= score)
        true, counted = int(made.true[kept].sum()), int(made.counted[kept].sum())
        best = max(best, 2 * true / (counted + positive))
    return best


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ["as_ranked", "true_positives_first"])
def test_every_threshold_and_area_range(seed: int, order: str) -> None:
    rules = {
        "extends": "coco",
        "matching": {"iou_thresholds": [0.2, 0.5, 0.7], "max_detections": [100]},
        "ignore": {"area_ranges": RANGES},
        "ap": {"tie_order": order},
    }
    evaluation = boxscore.evaluate(*tables(seed, scores=7), protocol=with_every_cell(rules, "F1"))
    cells = [(t, a) for t in range(3) for a in range(len(RANGES))]
    assert len(cells) == len(evaluation.class_values)
    for values, (t, a) in zip(evaluation.class_values.values(), cells, strict=True):
        expected = [best_f1(evaluation, k, t, a) for k in range(len(values))]
        assert values.tobytes() == np.array(expected).tobytes()


def test_it_is_that_of_the_operating_points() -> None:
    evaluation = boxscore.evaluate(
        "datasets/shapes_coco/instances.json",
        "datasets/shapes_coco/detections.json",
        protocol={"extends": "coco", "summary": [{"key": "F1", "metric": "F1", "iou": 0.5}]},
    )
    points: Any = boxscore.diagnostics.operating_points(evaluation).per_class
    has_truth = evaluation.class_counts["ground_truths"] > 0
    expected = np.where(has_truth, np.nan_to_num(points.f_score), np.nan)  # no point without a detection
    assert evaluation.class_values["F1"].tobytes() == expected.tobytes()


def test_a_tie_is_kept_or_left_as_a_whole() -> None:
    box, other = [0, 0, 9, 9], [50, 0, 59, 9]
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["cat", "cat"], [box, box])
    found = boxscore.Detections.from_arrays([1, 2, 2], ["cat"] * 3, [box, box, other], [0.5, 0.5, 0.5])
    protocol = {"extends": "coco", "summary": [{"key": "F1", "metric": "F1", "iou": 0.5}]}
    assert boxscore.evaluate(truth, found, protocol=protocol)["F1"] == 4 / 5
