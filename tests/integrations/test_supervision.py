"""supervision's own metric, on targets with crowds, areas and flags in their ``data``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from support.real_data import real

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


REAL = [
    ("coco_val2017_masks206", "instances.json", "yolov2_608.json", 0.218325, 0.218125),
    (
        "coco_val2014_fake100",
        "instances_val2014_100.json",
        "instances_val2014_fakebbox100_results.json",
        0.504581,
        0.502346,
    ),
]


def of_files(truth: dict[str, Any], results: list[Any], keys: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    number = {category: row for row, category in enumerate(sorted(one["id"] for one in truth["categories"]))}
    sides: list[list[Any]] = [[], []]
    for image in sorted(one["id"] for one in truth["images"]):
        for side, rows in zip(sides, (results, truth["annotations"]), strict=True):
            here = [row for row in rows if row["image_id"] == image]
            boxes = np.array([row["bbox"] for row in here], dtype=float).reshape(-1, 4)
            given: dict[str, Any] = {
                "class_id": np.array([number[row["category_id"]] for row in here], dtype=int)
            }
            if side is sides[0]:
                given["confidence"] = np.array([row["score"] for row in here], dtype=float)
            elif here:
                given["data"] = {
                    key: np.array([row.get(key, 0) for row in here], dtype=float) for key in keys
                }
            boxes = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
            side.append(supervision.Detections(boxes, **given))
    return sides[0], sides[1]


@pytest.mark.real
@pytest.mark.parametrize(
    ("folder", "truth", "results", "flagged", "plain"), REAL, ids=[row[0] for row in REAL]
)
def test_crowds_of_real_data(folder: str, truth: str, results: str, flagged: float, plain: float) -> None:
    """Without the flags crowds count as objects, in supervision as here."""
    files = [json.loads(real(folder, name).read_text()) for name in (truth, results)]
    for keys, expected in ((("iscrowd", "area"), flagged), ((), plain)):
        predictions, targets = of_files(*files, keys)
        evaluator = Evaluator(protocol="supervision")
        evaluator.update(predictions, targets)
        got = evaluator.compute()["AP"]
        assert got == pytest.approx(expected, abs=5e-7)
        assert got == pytest.approx(
            MeanAveragePrecision().update(predictions, targets).compute().map50_95, abs=1e-8
        )
