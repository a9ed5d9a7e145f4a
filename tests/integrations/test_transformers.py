"""The Trainer of transformers with a small model of random weights: its numbers are those of the same detections in tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, InputError

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

NAMES = {0: "cat", 1: "dog", 2: "traffic light"}


def processor() -> Any:
    return transformers.DetrImageProcessor(size={"height": 64, "width": 64}, do_pad=False)


def data(count: int) -> list[tuple[Any, dict[str, Any]]]:
    """Images of several sizes with their annotations, as COCO has them."""
    random = np.random.default_rng(2)
    items = []
    for number in range(count):
        width, height = random.integers(80, 160, 2).tolist()
        image = random.integers(0, 255, (height, width, 3), dtype=np.uint8)
        annotations = [
            {
                "bbox": [x, y, 30.0, 20.0],
                "category_id": int(random.integers(0, 3)),
                "area": 600.0,
                "iscrowd": 0,
            }
            for x, y in random.uniform(0, 50, (int(random.integers(1, 6)), 2)).tolist()
        ]
        items.append((image, {"image_id": 100 + number, "annotations": annotations}))
    return items


def evaluated(items: Any, folder: Path, metrics: Any, **options: Any) -> dict[str, float]:
    """Evaluate a small YOLOS of random weights by the Trainer."""
    torch.manual_seed(1)
    config = transformers.YolosConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=[64, 64],
        num_detection_tokens=12,
        id2label=NAMES,
        label2id={name: number for number, name in NAMES.items()},
    )
    model = transformers.YolosForObjectDetection(config)
    prepare = processor()

    def collate(batch: Any) -> dict[str, Any]:
        encoded = prepare(
            images=[image for image, _ in batch],
            annotations=[target for _, target in batch],
            return_tensors="pt",
        )
        return {"pixel_values": encoded["pixel_values"], "labels": encoded["labels"]}

    arguments = transformers.TrainingArguments(
        str(folder),
        per_device_eval_batch_size=4,
        remove_unused_columns=False,
        report_to="none",
        use_cpu=True,
        **{"eval_do_concat_batches": False, **options},
    )
    trainer = transformers.Trainer(
        model, arguments, data_collator=collate, eval_dataset=items, compute_metrics=metrics
    )
    return trainer.evaluate()


def metrics_of(items: Any, **options: Any) -> Any:
    from boxscore.integrations.transformers import DetectionMetrics

    expected = {target["image_id"]: len(target["annotations"]) for _, target in items}
    return DetectionMetrics(processor(), NAMES, expected=expected, **options)


@pytest.mark.parametrize("options", [{}, {"batch_eval_metrics": True}])
def test_batches_that_divide_the_set(options: Any, tmp_path: Path) -> None:
    items = data(12)
    metrics = metrics_of(items, per_class=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BoxscoreWarning)
        result = evaluated(items, tmp_path, metrics, **options)
    evaluation = metrics.evaluation
    assert len(evaluation.ground_truth) == sum(len(target["annotations"]) for _, target in items)
    assert len(evaluation.detections) == 12 * 12
    for key, value in evaluation.flat(classes=True).items():
        assert result[f"eval_{key}"] == pytest.approx(value, nan_ok=True, abs=0)
    assert "eval_per_class/AP/traffic_light" in result
    # Targets come back from fractions of the image to the pixels of the annotations.
    first = evaluation.ground_truth.boxes[evaluation.ground_truth.image == 0]
    given = np.array([a["bbox"] for a in items[0][1]["annotations"]])
    assert first[:, :2] == pytest.approx(given[:, :2], abs=1e-4)


def test_both_ways_have_the_same_bits(tmp_path: Path) -> None:
    items = data(8)
    values = []
    for options in ({}, {"batch_eval_metrics": True}):
        metrics = metrics_of(items)
        evaluated(items, tmp_path, metrics, **options)
        values.append(np.array(list(metrics.evaluation.metrics.values())).tobytes())
    assert values[0] == values[1]


def test_a_cut_batch_is_warned_of(tmp_path: Path) -> None:
    items = data(14)
    metrics = metrics_of(items)
    total = sum(len(target["annotations"]) for _, target in items)
    with pytest.warns(BoxscoreWarning, match="objects"):
        evaluated(items, tmp_path, metrics)
    assert len(metrics.evaluation.ground_truth) < total


def test_a_batch_cut_to_one_is_refused(tmp_path: Path) -> None:
    items = data(13)
    with pytest.raises(InputError, match="a batch size that divides the set"):
        evaluated(items, tmp_path, metrics := metrics_of(items))
    assert len(metrics._evaluator) == 0


def test_outputs_of_another_model() -> None:
    metrics = metrics_of(data(4))
    outputs = (np.zeros((2, 5)), np.zeros((2, 5, 7)), np.zeros((2, 5, 3)))
    with pytest.raises(InputError, match="begin with logits"):
        metrics(SimpleNamespace(predictions=outputs, label_ids=[]))
    assert boxscore.__version__
