"""detectron2's interface: the results of its COCO evaluator, which are those of pycocotools.

detectron2 is not on the package index; its objects are stood in for by plain ones with the attributes that its
documentation names, and its conversions (sizes in single precision, keypoints moved by half a pixel) are done
here in the slow way.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from coco_batches import NAMES, dataset, predictions
from pycocotools import mask as codes
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from boxscore import BoxscoreWarning
from boxscore.integrations.detectron2 import DetectionEvaluator

IDS = sorted(NAMES)


class Instances(SimpleNamespace):
    """What the interface reads of detectron2's class of this name."""


def instances(prediction: dict[str, Any]) -> Instances:
    return Instances(
        image_size=(60, 80),
        pred_boxes=SimpleNamespace(tensor=prediction["boxes"]),
        scores=prediction["scores"],
        pred_classes=prediction["labels"],
        pred_masks=prediction["masks"],
        pred_keypoints=prediction["keypoints"],
    )


def expected(data: Any, found: Any, task: str, cap: int = 100, sigmas: Any = None) -> dict[str, float]:
    """The steps of detectron2's evaluator, with pycocotools."""
    rows = []
    for image, prediction in found.items():
        boxes = prediction["boxes"].copy()
        boxes[:, 2:] -= boxes[:, :2]  # in single precision
        for k in range(len(boxes)):
            row = {"image_id": image, "category_id": IDS[prediction["labels"][k]], "bbox": boxes[k].tolist()}
            row |= {"score": float(prediction["scores"][k])}
            if task == "segm":
                del row["bbox"]
                row["segmentation"] = codes.encode(np.asfortranarray(prediction["masks"][k].astype(np.uint8)))
            if task == "keypoints":
                points = prediction["keypoints"][k].copy()
                points[:, :2] -= 0.5
                row["keypoints"] = points.ravel().tolist()
            rows.append(row)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = json.loads(json.dumps(data))
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(rows), task)
        if task != "keypoints":
            evaluation.params.maxDets = [1, 10, cap]
        elif sigmas is not None:
            evaluation.params.kpt_oks_sigmas = np.array(sigmas)
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"]

    def mean(values: Any) -> float:
        return float(np.mean(values[values > -1])) * 100 if (values > -1).any() else float("nan")

    areas = range(1, precision.shape[3])
    of_size = [mean(precision[..., area, -1]) for area in areas]
    values = [
        mean(precision[..., 0, -1]),
        mean(precision[0, ..., 0, -1]),
        mean(precision[5, ..., 0, -1]),
        *of_size,
    ]
    keys = ["AP", "AP50", "AP75", "APs", "APm", "APl"]
    if task == "keypoints":
        keys.remove("APs")
    of_class = {f"AP-{NAMES[number]}": mean(precision[:, :, k, 0, -1]) for k, number in enumerate(IDS)}
    return dict(zip(keys, values, strict=True)) | of_class


def metadata(data: Any, folder: Path) -> SimpleNamespace:
    path = folder / "instances.json"
    path.write_text(json.dumps(data))
    return SimpleNamespace(
        json_file=str(path),
        thing_classes=[NAMES[number] for number in IDS],
        thing_dataset_id_to_contiguous_id={number: row for row, number in enumerate(IDS)},
    )


def run(evaluator: Any, found: Any) -> dict[str, Any]:
    """``inference_on_dataset``: reset, process by batches, evaluate."""
    evaluator.reset()
    images = list(found)
    for start in range(0, len(images), 3):
        batch = images[start : start + 3]
        inputs = [{"image_id": image, "file_name": "", "height": 60, "width": 80} for image in batch]
        evaluator.process(inputs, [{"instances": instances(found[image])} for image in batch])
    return dict(evaluator.evaluate())


@pytest.mark.parametrize(
    "tasks", [("bbox",), ("bbox", "segm"), ("keypoints",), ("bbox", "segm", "keypoints")]
)
def test_results_of_its_evaluator(tasks: tuple[str, ...], tmp_path: Path) -> None:
    data = dataset()
    found = predictions(data)
    evaluator = DetectionEvaluator(metadata(data, tmp_path), tasks)
    results = run(evaluator, found)
    assert list(results) == list(tasks)
    for task in tasks:
        truth = expected(data, found, task)
        assert 5 < truth["AP"] < 95
        assert list(results[task]) == list(truth)
        assert results[task] == pytest.approx(truth, rel=0, abs=0, nan_ok=True)
        assert evaluator.evaluations[task]["AP"] == pytest.approx(truth["AP"] / 100)
    assert repr(run(evaluator, found)) == repr(results)  # the next round forgets this one


@pytest.mark.parametrize("cap", [3, 300])
def test_max_dets_and_sigmas(cap: int, tmp_path: Path) -> None:
    data = dataset(joints=4)
    found = predictions(data)
    sigmas = [0.1, 0.2, 0.05, 0.1]
    evaluator = DetectionEvaluator(
        metadata(data, tmp_path), ("bbox", "keypoints"), max_dets_per_image=cap, kpt_oks_sigmas=sigmas
    )
    results = run(evaluator, found)
    assert results["bbox"] == pytest.approx(expected(data, found, "bbox", cap), rel=0, abs=0, nan_ok=True)
    truth = expected(data, found, "keypoints", sigmas=sigmas)
    assert results["keypoints"] == pytest.approx(truth, rel=0, abs=0, nan_ok=True)


def test_images_that_did_not_arrive_are_counted_and_said(tmp_path: Path) -> None:
    data = dataset()
    found = dict(list(predictions(data).items())[:9])
    evaluator = DetectionEvaluator(metadata(data, tmp_path))
    with pytest.warns(
        BoxscoreWarning,
        match=r"^7 of 16 images of the annotation file were not passed to process\(\), such as 109",
    ):
        results = run(evaluator, found)
    assert results["bbox"] == pytest.approx(expected(data, found, "bbox"), rel=0, abs=0, nan_ok=True)


def test_nothing_arrived(tmp_path: Path) -> None:
    assert run(DetectionEvaluator(metadata(dataset(), tmp_path)), {}) == {}


def test_keypoints_after_its_own_evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shifts the keypoints of the output in place; made to shift a copy, either may run first."""

    class Keypoints(np.ndarray[Any, Any]):
        clone = np.ndarray.copy

    class Given(Instances):
        def has(self, name: str) -> bool:
            return hasattr(self, name)

    def instances_to_coco_json(given: Any, img_id: int) -> list[Any]:
        for points in given.pred_keypoints:
            points[:, :2] -= 0.5
        return [points.ravel().tolist() for points in given.pred_keypoints]

    module = SimpleNamespace(instances_to_coco_json=instances_to_coco_json)
    monkeypatch.setitem(sys.modules, "detectron2.evaluation.coco_evaluation", module)  # type: ignore[arg-type]
    data = dataset()
    found = predictions(data)
    evaluator = DetectionEvaluator(metadata(data, tmp_path), ("keypoints",))
    alone = run(evaluator, found)
    evaluator.reset()
    for image, prediction in found.items():
        output = Given(**vars(instances(prediction)))
        output.pred_keypoints = given = output.pred_keypoints.copy().view(Keypoints)
        rows = module.instances_to_coco_json(output, image)
        for row, points in zip(rows, prediction["keypoints"], strict=True):
            moved = points - np.array([0.5, 0.5, 0], dtype=points.dtype)
            assert row == moved.ravel().tolist()  # its own results are as before
        assert output.pred_keypoints is given
        output.pred_keypoints = np.asarray(given)
        evaluator.process([{"image_id": image}], [{"instances": output}])
    assert repr(evaluator.evaluate()) == repr(alone)
