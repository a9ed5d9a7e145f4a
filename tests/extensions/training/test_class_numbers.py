"""Predictions that number classes otherwise than the targets: the boxes tell, and both scores are said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from boxscore import BoxscoreWarning, Evaluator

Samples = list[dict[str, Any]]


def samples(images: int, lowest: int, step: int) -> tuple[Samples, Samples]:
    """Return predictions near the targets of five classes; their labels are higher by ``step``."""
    rng = np.random.default_rng(0)
    predictions, targets = [], []
    for number in range(images):
        corner, side = rng.uniform(0, 200, (4, 2)), rng.uniform(30, 90, (4, 2))
        boxes, labels = np.hstack([corner, corner + side]), rng.integers(lowest, lowest + 5, 4)
        targets.append({"image_id": number, "boxes": boxes, "labels": labels})
        near = boxes + rng.normal(0, 2, boxes.shape)
        predictions.append({"boxes": near, "labels": labels + step, "scores": rng.uniform(0.3, 1, 4)})
    return predictions, targets


def fed(predictions: Samples, targets: Samples, **options: Any) -> Evaluator:
    evaluator = Evaluator(**options)
    evaluator.update(predictions, targets)
    return evaluator


@pytest.mark.parametrize(
    ("lowest", "step", "classes"),
    [(1, -1, range(6)), (1, -1, None), (0, 1, range(6)), (0, 1, None), (1, 3, range(1, 20))],
)
def test_the_boxes_tell_other_numbers(lowest: int, step: int, classes: Iterable[int] | None) -> None:
    right = fed(*samples(30, lowest, 0), classes=classes).compute().metrics["AP"]
    wrong = fed(*samples(30, lowest, step), classes=classes)
    with pytest.warns(BoxscoreWarning) as caught:
        result = wrong.compute()
    [said] = [str(one.message) for one in caught]
    assert "classes seem to be numbered differently: with class ids as given, 0 of 120 confident" in said
    assert f"AP is {result.metrics['AP']:.4f} now and would be {right:.4f}. Pass prediction_class" in said
    assert "--" not in said  # no option of the command


def test_what_the_warning_advises() -> None:
    names = {number: f"class {number}" for number in range(1, 6)}
    right = fed(*samples(30, 1, 0), classes=names).compute()
    named = fed(*samples(30, 1, -1), classes=names, prediction_class_names=[*names.values()]).compute()
    assert named.flat() == pytest.approx(right.flat(), abs=0, nan_ok=True)
