"""Pairs across classes: those of a few detections are those of all, but for the others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import boxscore
from support import every_kind
from support.every_kind import every
from support.limits import small_share


def check_some(given: Any, protocol: Any, data: st.DataObject) -> None:
    """Ask the same of a matcher that compares all detections, and of one that compares only those asked for."""
    score = data.draw(st.floats(0, 1), label="score threshold")
    iou = data.draw(st.sampled_from([0.0, 0.1, 0.5]), label="IoU threshold")
    most = data.draw(st.sampled_from([None, 1, 3]), label="max detections")
    options = {"iou_threshold": iou, "score_threshold": score, "max_detections": most}
    found = []
    for small in (1 << 60, 0):  # one in so many: never, and always
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matcher = boxscore.evaluate(*given, protocol=protocol)._matcher
        with pytest.MonkeyPatch.context() as patch:
            small_share(patch, small)
            found.append(matcher.across_classes(**options))
    for name, of_all, of_some in zip(found[0]._fields, *found, strict=True):
        assert np.array_equal(of_all, of_some), name


test_boxes = every(every_kind.coco, check_some, 30)
test_masks_and_keypoints = every(every_kind.masks_and_keypoints, check_some, 10)
test_federated = every(every_kind.federated, check_some, 10)
test_rotated = every(every_kind.rotated_boxes, check_some, 10)


def test_questions_that_are_repeated_compare_all_once() -> None:
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (40, 1))
    truth = boxscore.GroundTruth.from_arrays(range(40), [0] * 40, boxes)
    found = boxscore.Detections.from_arrays(range(40), [0] * 40, boxes, np.arange(40) / 40)
    matcher = boxscore.evaluate(truth, found, digest=False)._matcher
    plain, all_compared = matcher._known.of, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher._known, "of", lambda *given: all_compared.append(True) or plain(*given))
        for number in range(5):
            pairs = matcher.across_classes(iou_threshold=0.5, score_threshold=0.9)
            assert len(pairs.iou) == 4
            assert len(all_compared) == max(number - 1, 0)  # the first two compare 4 of 40 detections
