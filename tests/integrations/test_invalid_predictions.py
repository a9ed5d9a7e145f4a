"""One NaN, infinite or inverted prediction ends no training: every adapter counts it and names the image."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, GroundTruth, InputError

pytestmark = pytest.mark.filterwarnings("ignore")

nan, inf = float("nan"), float("inf")
NAMES = ["a", "b"]
BOX = [10.0, 10, 50, 50]
OTHER = [55.0, 55, 95, 95]
IMAGES = (11, 12, 13)
TRUTH = {image: ([BOX, OTHER], [0, 1]) for image in IMAGES}
FOUND: dict[int, tuple[Any, Any, Any]] = {
    11: ([BOX, OTHER], [0, 1], [0.9, 0.8]),
    # inverted, NaN and infinite boxes, and an exact box whose score is NaN, among two that are right
    12: (
        [[60.0, 60, 20, 20], [nan] * 4, BOX, [0, 0, inf, 50], OTHER, OTHER],
        [0, 1, 0, 0, 1, 1],
        [0.95, 0.85, 0.7, 0.75, nan, 0.4],
    ),
    13: ([BOX, OTHER], [0, 1], [0.6, 0.5]),
}
BAD = [0, 1, 3, 4]
"""The rows of image 12 that mean nothing."""

Found = dict[int, tuple[Any, Any, Any]]


def expected(invalid: str) -> float:
    """AP of the same predictions without the bad rows, or with them where no object is."""
    boxes, labels, scores = (np.array(column, dtype=float) for column in FOUND[12])
    boxes[BAD], scores[4] = [900, 900, 910, 910], 0
    kept = np.arange(len(boxes)) if invalid == "false_positive" else np.delete(np.arange(len(boxes)), BAD)
    found = {**FOUND, 12: (boxes[kept].tolist(), labels[kept].astype(int).tolist(), scores[kept].tolist())}
    truth = GroundTruth.from_arrays(
        [image for image in IMAGES for _ in range(2)],
        [label for _, labels in TRUTH.values() for label in labels],
        [box for boxes, _ in TRUTH.values() for box in boxes],
    )
    detections = Detections.from_arrays(
        [image for image, (_, labels, _) in found.items() for _ in labels],
        [label for _, labels, _ in found.values() for label in labels],
        [box for boxes, *_ in found.values() for box in boxes],
        scores=[score for *_, scores in found.values() for score in scores],
    )
    return float(boxscore.evaluate(truth, detections)["AP"])


def file_of(folder: Path) -> Path:
    rows = [
        {
            "id": 2 * number + label + 1,
            "image_id": image,
            "category_id": label + 1,
            "bbox": [x1, y1, x2 - x1, y2 - y1],
            "area": (x2 - x1) * (y2 - y1),
            "iscrowd": 0,
        }
        for number, image in enumerate(IMAGES)
        for (x1, y1, x2, y2), label in zip(*TRUTH[image], strict=True)
    ]
    path = folder / "instances.json"
    data = {
        "images": [{"id": image, "width": 100, "height": 100} for image in IMAGES],
        "annotations": rows,
        "categories": [{"id": number, "name": name} for number, name in enumerate(NAMES, 1)],
    }
    path.write_text(json.dumps(data))
    return path


# ---------------------------------------------------------------- one loop per adapter


def detr(found: Found, folder: Path, **option: Any) -> float:
    from boxscore.compat.pycocotools.coco import COCO
    from boxscore.integrations.detr import CocoEvaluator

    evaluator = CocoEvaluator(COCO(str(file_of(folder))), ["bbox"], **option)
    for image, (boxes, labels, scores) in found.items():
        evaluator.update(
            {
                image: {
                    "boxes": np.array(boxes, dtype=np.float32),
                    "labels": np.array(labels) + 1,
                    "scores": np.array(scores, dtype=np.float32),
                }
            }
        )
    evaluator.synchronize_between_processes()
    evaluator.accumulate()
    evaluator.summarize()
    return float(evaluator.coco_eval["bbox"].stats[0])


def detectron2(found: Found, folder: Path, **option: Any) -> float:
    from boxscore.integrations.detectron2 import DetectionEvaluator

    metadata = SimpleNamespace(
        json_file=str(file_of(folder)),
        thing_classes=NAMES,
        thing_dataset_id_to_contiguous_id={1: 0, 2: 1},
    )
    evaluator = DetectionEvaluator(metadata, **option)
    for image, (boxes, labels, scores) in found.items():
        instances = SimpleNamespace(
            pred_boxes=SimpleNamespace(tensor=np.array(boxes)),
            pred_classes=np.array(labels),
            scores=np.array(scores),
        )
        evaluator.process([{"image_id": image}], [{"instances": instances}])
    return evaluator.evaluate()["bbox"]["AP"] / 100


def mmengine(found: Found, folder: Path, **option: Any) -> float:
    from boxscore.integrations.mmengine import BoxscoreMetric

    metric = BoxscoreMetric(ann_file=str(file_of(folder)), **option)
    metric.dataset_meta = {"classes": NAMES}
    for image, (boxes, labels, scores) in found.items():
        instances = {"bboxes": np.array(boxes), "labels": np.array(labels), "scores": np.array(scores)}
        metric.process({}, [{"img_id": image, "ori_shape": (100, 100), "pred_instances": instances}])
    return float(metric.evaluate(len(found))["coco/bbox_mAP"])


def in_tensors(found: Found, *, ids: bool = True) -> tuple[list[Any], list[Any]]:
    import torch

    predictions = [
        {"boxes": torch.tensor(boxes), "labels": torch.tensor(labels), "scores": torch.tensor(scores)}
        for boxes, labels, scores in found.values()
    ]
    targets = [
        {"boxes": torch.tensor(TRUTH[image][0]), "labels": torch.tensor(TRUTH[image][1])}
        | ({"image_id": image} if ids else {})
        for image in found
    ]
    return predictions, targets


def torchmetrics(found: Found, folder: Path, **option: Any) -> float:
    from boxscore.integrations.torchmetrics import MeanAveragePrecision

    metric = MeanAveragePrecision(**option)
    metric.update(*in_tensors(found))
    return float(metric.compute()["map"])


def rfdetr(found: Found, folder: Path, invalid: Any = None) -> float:
    from boxscore.integrations import rfdetr as integration

    integration.install()
    try:
        metric = integration.OnePassMeanAveragePrecision(iou_type="bbox")
        metric.invalid = invalid or metric.invalid
        metric.update(*in_tensors(found, ids=False))
        return float(metric.compute()["map"])
    finally:
        integration.uninstall()


def transformers(found: Found, folder: Path, **option: Any) -> float:
    import torch

    from boxscore.integrations.transformers import DetectionMetrics

    predictions, targets = in_tensors(found)
    processor = SimpleNamespace(post_process_object_detection=lambda *_, **__: predictions)
    metrics = DetectionMetrics(processor, dict(enumerate(NAMES)), **option)
    outputs = torch.zeros(3, 1, 3), torch.zeros(3, 1, 4)
    labels = [target | {"orig_size": [100, 100]} for target in targets]
    return metrics(SimpleNamespace(predictions=outputs, label_ids=labels))["AP"]


def ultralytics(found: Found, folder: Path, **option: Any) -> float:
    import torch

    from boxscore.integrations.ultralytics import Mixin

    class Validator:
        """The methods of ultralytics' validator that the mixin extends, for one image at a time."""

        def init_metrics(self, model: Any) -> None:
            self.names = dict(enumerate(NAMES))

        def update_metrics(self, preds: Any, batch: Any) -> None: ...
        def get_stats(self) -> dict[str, Any]:
            return {}

        def _prepare_batch(self, position: int, batch: Any) -> Any:
            return batch

    class Mixed(Mixin, Validator):
        def protocols(self) -> dict[str, Any]:
            return {"original": "coco"}

        def sides(self, prediction: Any, target: Any) -> Any:
            return {"original": ({"boxes": prediction["bboxes"]}, {"boxes": target["bboxes"]})}

    validator = Mixed()
    vars(validator).update(option)
    validator.init_metrics(None)
    for image, prediction, target in zip(found, *in_tensors(found), strict=True):
        given = {"bboxes": prediction["boxes"], "conf": prediction["scores"], "cls": prediction["labels"]}
        batch = {"bboxes": target["boxes"], "cls": target["labels"], "im_file": f"{image}.jpg"}
        assert torch.is_tensor(given["bboxes"])
        validator.update_metrics([given], batch)
    return validator.get_stats()["boxscore/original/AP"]


def fiftyone(found: Found, folder: Path, **option: Any) -> float:
    from boxscore.integrations.fiftyone import evaluate_samples

    def sample(image: int) -> Any:
        sides: dict[str, Any] = {"predictions": [], "ground_truth": []}
        for side, (boxes, labels, *scores) in (
            ("predictions", found[image]),
            ("ground_truth", TRUTH[image]),
        ):
            for row, (box, label) in enumerate(zip(boxes, labels, strict=True)):
                x1, y1, x2, y2 = box
                one: Any = Label(
                    id=f"{side} {image} {row}",
                    label=NAMES[label],
                    bounding_box=[x1 / 100, y1 / 100, (x2 - x1) / 100, (y2 - y1) / 100],
                )
                one.confidence = scores[0][row] if scores else None
                sides[side].append(one)
        made = Label({side: SimpleNamespace(detections=labels) for side, labels in sides.items()})
        made.filepath, made.metadata = f"{image}.jpg", SimpleNamespace(width=100, height=100)
        return made

    samples = [sample(image) for image in found]
    value = float(evaluate_samples(samples, eval_key="eval", **option)["AP"])
    said = [label["eval"] for label in samples[1]["predictions"].detections]
    bad = "ignored" if option.get("invalid") == "drop" else "fp"
    assert said == [bad, bad, "tp", bad, bad, "tp"]
    return value


class Label(dict[str, Any]):
    """A label or sample of FiftyOne: items and attributes."""

    __setattr__ = dict.__setitem__

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


ADAPTERS: dict[str, Callable[..., float]] = {
    "detectron2": detectron2,
    "detr": detr,
    "fiftyone": fiftyone,
    "mmengine": mmengine,
    "rfdetr": rfdetr,
    "torchmetrics": torchmetrics,
    "transformers": transformers,
    "ultralytics": ultralytics,
}
NO_ADAPTERS = {
    "__init__",
    "loggers",
    "torch_columns",
    "lightning",
}  # lightning has an Evaluator, and its tests
"""Files of the folder that evaluate nothing of their own."""

NAMED = {"rfdetr": "1", "fiftyone": "'12.jpg'", "ultralytics": "'12.jpg'"}
"""How an adapter without image ids names the image: by its number, or its file."""


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> Any:
    """An adapter's name and its loop, skipped where its framework is not installed."""
    try:
        importlib.import_module(f"boxscore.integrations.{request.param}")
    except ImportError as error:
        pytest.skip(f"{request.param}: {error}")
    return request.param, ADAPTERS[request.param], NAMED.get(request.param, "12")


@pytest.mark.parametrize("invalid", [None, "false_positive", "drop"])
def test_the_training_goes_on(invalid: Any, adapter: Any, tmp_path: Path) -> None:
    _, loop, image = adapter
    became = "dropped" if invalid == "drop" else "counted as false positives"
    with pytest.warns(
        BoxscoreWarning, match=f"^4 predictions of 1 image {became}: .*; the first in image {image}"
    ):
        value = loop(FOUND, tmp_path, **({} if invalid is None else {"invalid": invalid}))
    values = {way: expected(way) for way in ("false_positive", "drop")}
    assert abs(values["false_positive"] - values["drop"]) > 0.1
    assert value == pytest.approx(values[invalid or "false_positive"], abs=1e-6)


def test_an_error_names_the_image(adapter: Any, tmp_path: Path) -> None:
    _, loop, image = adapter
    with pytest.raises(InputError, match=f"in row . of the prediction of image {image}; .*invalid='drop'"):
        loop(FOUND, tmp_path, invalid="error")


def test_valid_predictions_are_not_warned_of(
    adapter: Any, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    name, loop, _ = adapter
    if name == "fiftyone":  # checks what becomes of the bad rows
        pytest.skip("in test_fiftyone")
    found = {**FOUND, 12: ([BOX, OTHER], [0, 1], [0.7, 0.4])}
    values = [loop(found, tmp_path, invalid=way) for way in ("error", "drop", "false_positive")]
    assert values == [pytest.approx(1)] * 3
    assert [str(one.message) for one in recwarn if "prediction" in str(one.message)] == []


def test_an_unknown_value_is_refused_before_the_first_batch() -> None:
    from boxscore.integrations.detr import CocoEvaluator

    with pytest.raises(InputError, match=r"^invalid must be one of 'error', 'drop', 'false_positive'"):
        CocoEvaluator(None, ["bbox"], invalid="ignore")  # type: ignore[arg-type]


def test_every_adapter_is_here() -> None:
    files = {path.stem for path in (Path(boxscore.__file__).parent / "integrations").glob("*.py")}
    assert files - NO_ADAPTERS == set(ADAPTERS)


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
@pytest.mark.parametrize("invalid", ["false_positive", "drop"])
def test_masks_and_keypoints(kind: str, invalid: Any, tmp_path: Path) -> None:
    """A score that is NaN among masks, and a point that is NaN among keypoints."""
    from boxscore.integrations.detr import CocoEvaluator

    joints = 17
    points = np.concatenate([np.linspace(12, 40, joints)[:, None]] * 2 + [np.full((joints, 1), 2.0)], axis=1)
    row: dict[str, Any] = {"id": 1, "image_id": 5, "category_id": 1, "bbox": [10, 10, 32, 32], "area": 900}
    row |= {"segmentation": [[10, 10, 42, 10, 42, 42, 10, 42]], "iscrowd": 0}
    row |= {"keypoints": points.ravel().tolist(), "num_keypoints": joints}
    data = {"images": [{"id": 5, "width": 64, "height": 64}], "categories": [{"id": 1, "name": "a"}]}
    mask = np.zeros((2, 1, 64, 64), dtype=bool)
    mask[:, 0, 10:42, 10:42] = True
    both = np.stack([points, points])
    scores = [nan, 0.5] if kind == "segm" else [0.9, 0.5]
    both[0, 3] = nan
    given = {"scores": np.array(scores), "labels": np.array([1, 1]), "masks": mask, "keypoints": both}
    evaluator = CocoEvaluator(SimpleNamespace(dataset=data | {"annotations": [row]}), [kind], invalid=invalid)
    evaluator.update({5: given})
    before = both.tobytes(), given["scores"].tobytes()
    with pytest.warns(BoxscoreWarning, match=r"^1 prediction of 1 image .*; the first in image 5\."):
        evaluator.accumulate()
    assert (both.tobytes(), given["scores"].tobytes()) == before
    # the exact one comes before the bad mask, whose score became 0, and after the bad keypoints
    worse = invalid == "false_positive" and kind == "keypoints"
    assert evaluator.mean(kind) == pytest.approx(0.5 if worse else 1)
    made = evaluator.evaluation(kind).detections
    assert sorted(made.scores.tolist()) == (
        [0.5] if invalid == "drop" else sorted([0.9 if worse else 0, 0.5])
    )
