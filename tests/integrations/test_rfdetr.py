"""RF-DETR's evaluation by boxscore: its five parity cases and no image, at rtol 0 and atol 0."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("faster_coco_eval")
coco_map = pytest.importorskip("rfdetr.training.coco_map")
from framework_batches import batches, fed, unlike  # noqa: E402

from boxscore.integrations import rfdetr as integration  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

LIMITS = {"max_detection_thresholds": [1, 10, 500]}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "500 detections": (LIMITS, {}),
    "classes": (LIMITS | {"class_metrics": True}, {}),
    "boxes and masks": (LIMITS | {"class_metrics": True, "iou_type": ("bbox", "segm")}, {}),
    "masks": (LIMITS | {"class_metrics": True, "iou_type": "segm"}, {}),
    "half": (LIMITS | {"class_metrics": True}, {"dtype": torch.float16}),
    "bfloat16": (LIMITS | {"class_metrics": True}, {"dtype": torch.bfloat16}),
    "nothing": (LIMITS | {"class_metrics": True, "iou_type": ("bbox", "segm")}, {"count": 0}),
}


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    integration.install()
    yield
    integration.uninstall()


def made(way: str, options: dict[str, Any]) -> Any:
    if way == "native":
        return integration.callback.OnePassCocoMeanAveragePrecision(backend="vernier", **options)
    return coco_map.OnePassCocoMeanAveragePrecision(backend=way, **options)


@pytest.mark.parametrize("way", ["boxscore", "native"])
@pytest.mark.parametrize("name", CASES)
def test_equal_in_every_bit(name: str, way: str) -> None:
    options, data = CASES[name]
    predictions, targets = batches(len(name), **{"count": 14, **data})
    results = []
    for each in ("faster_coco_eval", way):
        metric = fed(made(each, options), predictions, targets, size=4)
        metric = pickle.loads(pickle.dumps(metric))
        results.append(metric.compute())
        for key, values in results[-1].items():
            torch.testing.assert_close(values, results[0][key], rtol=0, atol=0)
    assert unlike(*results) == set()


def test_the_callback_evaluates_with_boxscore() -> None:
    callback = integration.callback.COCOEvalCallback(eval_backend="vernier")
    assert callback._eval_backend == "vernier"
    assert isinstance(made("native", {}), coco_map.OnePassCocoMeanAveragePrecision)
    integration.uninstall()
    assert integration.callback.OnePassCocoMeanAveragePrecision is coco_map.OnePassCocoMeanAveragePrecision
    assert "boxscore" not in coco_map._BACKENDS


def test_the_metric_before_install() -> None:
    integration.uninstall()
    predictions, targets = batches(5, count=6)
    results = [
        fed(each, predictions, targets, size=3).compute()
        for each in (
            integration.OnePassMeanAveragePrecision(**LIMITS),
            coco_map.OnePassCocoMeanAveragePrecision(backend="faster_coco_eval", **LIMITS),
        )
    ]
    assert unlike(*results) == set()
