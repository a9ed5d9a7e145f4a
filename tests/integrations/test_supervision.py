"""supervision's own metric, on targets with crowds, areas and flags in their ``data``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

supervision = pytest.importorskip("supervision")
from supervision.metrics import MeanAveragePrecision  # noqa: E402

from boxscore import Evaluator  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def made(seed: int, keys: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    predictions, targets = [], []
    for _ in range(30):
        n = int(rng.integers(1, 9))
        corner = rng.uniform(0, 60, (n, 2))
        boxes = np.hstack([corner, corner + rng.uniform(4, 60, (n, 2))])
        labels = rng.integers(0, 3, n)
        data = {
            "iscrowd": (rng.random(n) < 0.25).astype(int),
            "area": rng.uniform(1, 4000, n),
            "ignore": (rng.random(n) < 0.2).astype(int),
        }
        found = np.repeat(boxes, 2, axis=0) + rng.normal(0, 3, (2 * n, 4)).clip(-1.9, 1.9)
        targets.append(supervision.Detections(boxes, class_id=labels, data={key: data[key] for key in keys}))
        predictions.append(
            supervision.Detections(found, class_id=np.repeat(labels, 2), confidence=rng.random(2 * n))
        )
    return predictions, targets


@pytest.mark.parametrize("keys", [(), ("iscrowd",), ("area",), ("ignore",), ("iscrowd", "area", "ignore")])
def test_flags_and_areas_of_targets(keys: tuple[str, ...]) -> None:
    predictions, targets = made(len(keys), keys)
    expected = MeanAveragePrecision().update(predictions, targets).compute()
    evaluator = Evaluator(protocol="supervision")
    evaluator.update(predictions, targets)
    metrics = evaluator.compute().metrics
    assert metrics["AP"] == pytest.approx(expected.map50_95, abs=1e-6)
    assert metrics["AP50"] == pytest.approx(expected.map50, abs=1e-6)
    for name, of_size in (("APs", expected.small_objects), ("APm", expected.medium_objects)):
        assert metrics[name] == pytest.approx(of_size.map50_95, abs=1e-6)
