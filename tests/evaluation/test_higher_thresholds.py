"""What a higher IoU threshold does: never more true positives, so never more precision, but for crowds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BOX = st.tuples(*[st.integers(0, 4)] * 2, *[st.integers(5, 9)] * 2)


def counts(truth: Any, found: Any, threshold: float, base: str) -> tuple[int, int]:
    """True and false positives at one threshold."""
    protocol = {
        "extends": base,
        "matching": {"iou_thresholds": [threshold]},
        "summary": [{"key": "AP"}],
    }
    outcome = boxscore.evaluate(truth, found, protocol=protocol, digest=False).matches["outcome"]
    return int((outcome == "true positive").sum()), int((outcome == "false positive").sum())


@pytest.mark.long
@pytest.mark.parametrize("base", ["coco", "voc2012"])
@given(st.lists(BOX, min_size=1, max_size=5), st.lists(BOX, min_size=1, max_size=8))
def test_true_positives_never_increase(base: str, objects: Any, detections: Any) -> None:
    truth = boxscore.GroundTruth.from_arrays([1] * len(objects), ["a"] * len(objects), objects)
    scores = [1 - at / 10 for at in range(len(detections))]
    found = boxscore.Detections.from_arrays([1] * len(scores), ["a"] * len(scores), detections, scores)
    rows = [counts(truth, found, threshold, base) for threshold in THRESHOLDS]
    true = [one for one, _ in rows]
    assert true == sorted(true, reverse=True)
    assert {one + other for one, other in rows} == {len(detections)}  # so precision goes as they do


def test_a_crowd_can_raise_precision() -> None:
    """At 0.5 the first takes the object; at 0.7 the crowd excuses it, and the second takes the object."""
    truth = boxscore.GroundTruth.from_arrays(
        [1, 1], ["a", "a"], [[0, 0, 10, 10], [0, 0, 10, 5]], crowd=[False, True]
    )
    boxes = [[0, 0, 10, 6], [0, 2, 10, 10]]  # IoU 0.6 and 0.8; IoF with the crowd 0.83 and 0.375
    found = boxscore.Detections.from_arrays([1, 1], ["a", "a"], boxes, [0.9, 0.8])
    assert counts(truth, found, 0.5, "coco") == (1, 1)
    assert counts(truth, found, 0.7, "coco") == (1, 0)
