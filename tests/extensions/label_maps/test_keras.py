"""Mean IoU of label maps: the number of Keras' MeanIoU."""

from __future__ import annotations

import numpy as np
import pytest

from boxscore import semantic_iou


def by_definition(truth: np.ndarray, prediction: np.ndarray, classes: int) -> float:
    """Mean of TP / (TP + FP + FN) over the classes that occur in either map."""
    values = []
    for label in range(classes):
        both = int(((truth == label) & (prediction == label)).sum())
        either = int(((truth == label) | (prediction == label)).sum())
        values += [both / either] if either else []
    return sum(values) / len(values)


def maps(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two images whose classes 0 to 4 do not all occur."""
    rng = np.random.default_rng(seed)
    shape = (2, 5, 7)
    return rng.integers(0, rng.integers(1, 5), shape), rng.integers(0, rng.integers(1, 6), shape)


@pytest.mark.parametrize("seed", range(8))
def test_the_definition(seed: int) -> None:
    truth, prediction = maps(seed)
    metrics = semantic_iou(truth, prediction, classes=5).metrics
    assert metrics["mIoU"] == pytest.approx(by_definition(truth, prediction, 5), rel=1e-14)


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(8))
def test_keras_has_the_same(seed: int) -> None:
    keras = pytest.importorskip("keras")  # with the backend that is there: KERAS_BACKEND
    truth, prediction = maps(seed)
    metric = keras.metrics.MeanIoU(num_classes=5)
    for image in range(len(truth)):  # as in training: it adds up
        metric.update_state(truth[image], prediction[image])
    ours = semantic_iou(truth, prediction, classes=5).metrics["mIoU"]
    assert ours == pytest.approx(float(metric.result()), abs=1e-6)  # it has float32
