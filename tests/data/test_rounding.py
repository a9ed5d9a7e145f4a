"""Detections rounded to text: numbers, ties, and that evaluate does what explain says."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from support.insides import rounded


def table() -> Detections:
    boxes = [[0.04, 0.06, 10.25, 20.35], [1, 2, 3, 4.1]]
    return Detections.from_arrays([1, 1], ["a", "b"], boxes, [0.12345, 0.9996])


def test_nothing_is_rounded_unasked() -> None:
    detections = table()
    assert rounded(detections, scores=None, boxes=None) is detections


def test_scores_alone() -> None:
    detections = rounded(table(), scores=3, boxes=None)
    assert detections.scores.tolist() == [0.123, 1.0]
    assert detections.boxes.tolist() == table().boxes.tolist()


def test_boxes_alone() -> None:
    detections = rounded(table(), scores=None, boxes=1)
    assert detections.scores.tolist() == table().scores.tolist()
    assert detections.boxes[0].tolist() == [0.0, 0.1, 10.2, float(np.round(20.35, 1))]
    assert np.array_equal(detections.sizes, detections.boxes[:, 2:] - detections.boxes[:, :2])
    assert rounded(table(), scores=None, boxes=0).boxes[0].tolist() == [0, 0, 10, 20]


@pytest.mark.parametrize("name", ["detectron2-voc2007", "detectron2-voc2012"])
def test_a_protocol_that_rounds_scores_what_the_written_files_would(name: str) -> None:
    """Two scores that differ in the fourth decimal tie, and the one that comes first in the file counts first."""
    truth = GroundTruth.from_arrays([1, 1], ["a", "a"], [[0, 0, 99, 99], [200, 200, 299, 299]])
    detections = Detections.from_arrays(
        [1, 1],
        ["a", "a"],
        [[400, 400, 410, 410], [200, 200, 299, 299.04]],
        [0.8001, 0.8004],
    )
    protocol = boxscore.load_protocol(name)
    assert (protocol.rounding.scores, protocol.rounding.boxes) == (3, 1)
    result = boxscore.evaluate(truth, detections, protocol=protocol)
    by_hand = boxscore.evaluate(
        truth,
        rounded(detections, scores=3, boxes=1),
        protocol={"extends": name, "rounding": {"scores": "none", "boxes": "none"}},
    )
    plain = boxscore.evaluate(truth, detections, protocol=name.replace("detectron2", "py-faster-rcnn"))
    assert result.metrics == by_hand.metrics
    assert result.metrics != plain.metrics
    assert result.detections.scores.tolist() == [0.8, 0.8]
    assert result.detections.boxes[1].tolist() == [200, 200, 299, 299]


@pytest.mark.parametrize("batch", [1, 7])
def test_an_evaluator_rounds_as_evaluate_does(batch: int) -> None:
    random = np.random.default_rng(3)
    predictions, targets = [], []
    for image in range(30):
        boxes = np.array([[0.0, 0, 50, 50], [100, 0, 150, 50]])
        shifts = random.uniform(12, 20, (2, 1)) * [1, 0, 1, 0]
        scores = random.uniform(0.5, 0.502, 2)
        targets.append({"image_id": image, "boxes": boxes, "labels": [1, 1]})
        predictions.append({"image_id": image, "boxes": boxes + shifts, "labels": [1, 1], "scores": scores})
    values = {}
    for protocol in ("detectron2-voc2012", "py-faster-rcnn-voc2012"):
        evaluator = boxscore.Evaluator(protocol=protocol)
        for first in range(0, 30, batch):
            evaluator.update(predictions[first : first + batch], targets[first : first + batch])
        result = evaluator.compute()
        again = boxscore.evaluate(result.ground_truth, result.detections, protocol=protocol)
        values[protocol] = result.metrics["mAP"]
        assert again.metrics == result.metrics
    assert len(set(values.values())) == 2
