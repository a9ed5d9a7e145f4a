"""faster_coco_eval as D-FINE and RT-DETR call it: outcomes batch by batch, merged over ranks, then accumulated.

The numbers are those of pycocotools on all images at once; ``RECORDED`` are those of faster-coco-eval 1.8.0.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import json
import pickle
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from side_by_side import REFERENCE, load, random_dataset
from test_faster_coco_eval import plain_json

import boxscore
from boxscore import compat
from support.samples import SHAPES

RECORDED = {
    "AP_all": 0.2511027494573746,
    "AP_50": 0.42296357892443076,
    "AP_75": 0.20504307573614503,
    "AP_small": 0.28944444444444445,
    "AP_medium": 0.21122212221222125,
    "AP_large": 0.27004950495049507,
    "AR_all": 0.1920022624434389,
    "AR_second": 0.28979638009049774,
    "AR_third": 0.28979638009049774,
    "AR_small": 0.31346666666666667,
    "AR_medium": 0.2513076923076923,
    "AR_large": 0.26875,
    "AR_50": 0.4650075414781297,
    "AR_75": 0.2516214177978884,
}


@pytest.fixture(autouse=True)
def swapped() -> Iterator[None]:
    boxscore.init_as_faster_coco_eval()
    yield
    compat.restore_faster_coco_eval()


def outcomes(evaluation: Any, library: Any, truth: Any, found: list[Any], images: list[int]) -> Any:
    """One batch: results of its images alone, none at all where nothing was found."""
    evaluation.cocoDt = truth.loadRes(found) if found else library.COCO()
    evaluation.params.imgIds = list(np.unique(images))
    evaluation.evaluate()
    params = evaluation.params
    axes = len(params.catIds), len(params.areaRng), len(params.imgIds)
    return np.array(evaluation._evalImgs_cpp).reshape(axes)


def test_batches_of_outcomes() -> None:
    """The second batch finds nothing, the last repeats two images, as a sampler that fills up does."""
    library = importlib.import_module("faster_coco_eval")
    truth = library.COCO(json.loads((SHAPES / "instances.json").read_text()))
    rows = json.loads((SHAPES / "detections.json").read_text())
    evaluation = library.COCOeval_faster(
        truth, iouType="bbox", print_function=lambda *_: None, separate_eval=True
    )
    images = sorted(truth.getImgIds())
    batches = [images[low : low + 5] for low in range(0, len(images), 5)] + [images[:2]]
    blocks = []
    for number, batch in enumerate(batches):
        found = [
            {key: row[key] for key in ("image_id", "category_id", "bbox", "score")}
            for row in rows
            if row["image_id"] in batch and number != 1
        ]
        block = outcomes(evaluation, library, truth, found, batch)
        blocks.append(pickle.loads(pickle.dumps(block)))  # as it goes to another rank
    ids, first = np.unique(np.concatenate(batches), return_index=True)
    evaluation.params.imgIds = ids.tolist()
    evaluation._paramsEval = copy.deepcopy(evaluation.params)
    evaluation._evalImgs_cpp = np.concatenate(blocks, axis=2)[..., first].ravel().tolist()
    evaluation.accumulate()
    evaluation.summarize()
    assert evaluation.stats_as_dict == RECORDED


def predictions_of(dataset: Any, results: list[Any], kind: str) -> dict[int, dict[str, Any]]:
    """Results as a model returns them: by image, corners, masks and points as arrays."""
    made: dict[int, dict[str, Any]] = {}
    for image in [one["id"] for one in dataset["images"]]:
        rows = [row for row in results if row["image_id"] == image]
        if not rows:
            made[image] = {}
            continue
        made[image] = {
            key: np.array([row[name] for row in rows])
            for key, name in (("scores", "score"), ("labels", "category_id"))
        }
        if kind == "bbox":
            boxes = np.array([row["bbox"] for row in rows], dtype=float)
            made[image]["boxes"] = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
        elif kind == "segm":
            codes = [
                {**row["segmentation"], "counts": row["segmentation"]["counts"].encode()} for row in rows
            ]
            made[image]["masks"] = np.stack([REFERENCE.mask.decode(code)[None] for code in codes]) * 0.9
        else:
            made[image]["keypoints"] = np.array([row["keypoints"] for row in rows], dtype=float).reshape(
                len(rows), -1, 3
            )
    return made


@pytest.mark.parametrize(
    ("kind", "seed"), [("bbox", 6), ("bbox", 7), ("segm", 0), ("segm", 5), ("keypoints", 4)]
)
def test_the_evaluator_of_batches(kind: str, seed: int) -> None:
    """Of generated data that have matches."""
    module = importlib.import_module("faster_coco_eval.utils.pytorch")
    assert module.__name__ == "boxscore.compat.faster_coco_eval.utils.pytorch"
    dataset, results = map(plain_json, random_dataset(np.random.default_rng(seed), kind))
    if kind == "segm":
        results = [row for row in results if isinstance(row["segmentation"]["counts"], str)]
    truth = importlib.import_module("faster_coco_eval").COCO(copy.deepcopy(dataset))
    evaluator = module.FasterCocoEvaluator(truth, [kind])
    predictions = predictions_of(dataset, results, kind)
    images = list(predictions)
    printed = io.StringIO()
    for batch in (images[::2], images[1::2], images[:1]):
        with contextlib.redirect_stdout(printed):
            evaluator.update({image: predictions[image] for image in batch})
    assert printed.getvalue() == ""
    prepared = [row for image in images for row in evaluator.prepare({image: predictions[image]}, kind)]
    with contextlib.redirect_stdout(printed):
        evaluator.synchronize_between_processes()
        evaluator.accumulate()
        evaluator.summarize()
        theirs = REFERENCE.COCOeval(*load(REFERENCE, dataset, plain_json(prepared)), kind)
        if kind == "keypoints":  # that library leaves out categories without annotations
            theirs.params.catIds = sorted({row["category_id"] for row in dataset["annotations"]})
        theirs.evaluate()
        theirs.accumulate()
        theirs.summarize()
    assert f"\nIoU metric: {kind}\n" in printed.getvalue()
    evaluation = evaluator.coco_eval[kind]
    for name in ("precision", "recall", "scores"):
        assert np.array_equal(evaluation.eval[name], theirs.eval[name]), name
    assert (evaluation.eval["recall"] > 0).any()
    assert evaluator.stats_as_dict[kind] == evaluation.stats_as_dict
    evaluator.cleanup()
    assert (evaluator.img_ids, evaluator.eval_imgs) == ([], {kind: []})


@pytest.mark.parametrize(("kind", "seed"), [("bbox", 6), ("segm", 5), ("keypoints", 4)])
def test_an_image_without_detections_has_arrays_without_rows(kind: str, seed: int) -> None:
    """As RT-DETRv2 and DEIM v2 pass them on, boxes [0, 4], masks [0, 1, H, W] and keypoints [0, J, 3]."""
    module = importlib.import_module("faster_coco_eval.utils.pytorch")
    dataset, results = map(plain_json, random_dataset(np.random.default_rng(seed), kind))
    if kind == "segm":
        results = [row for row in results if isinstance(row["segmentation"]["counts"], str)]
    predictions = predictions_of(dataset, results, kind)
    first, *images = list(predictions)
    none = {"scores": np.zeros(0), "labels": np.zeros(0, dtype=int), "boxes": np.zeros((0, 4))}
    none |= {"masks": np.zeros((0, 1, 50, 60)), "keypoints": np.zeros((0, 17, 3))}
    evaluated = []
    for empty in ({}, none):
        evaluator = module.FasterCocoEvaluator(
            importlib.import_module("faster_coco_eval").COCO(copy.deepcopy(dataset)), [kind]
        )
        with contextlib.redirect_stdout(io.StringIO()):
            evaluator.update({first: empty})
            evaluator.update({image: predictions[image] for image in images})
            evaluator.synchronize_between_processes()
            evaluator.accumulate()
            evaluator.summarize()
        evaluated.append(evaluator.coco_eval[kind])
    assert evaluated[0].stats.tobytes() == evaluated[1].stats.tobytes()
    assert (evaluated[0].eval["recall"] > 0).any()


def test_boxes_keep_their_precision() -> None:
    """torch subtracts corners of float32 as float32."""
    module = importlib.import_module("faster_coco_eval.utils.pytorch.coco_eval")
    corners = np.array([[0.1, 0.2, 10.3, 20.7]], dtype=np.float32)
    (row,) = module.convert_to_xywh(corners).tolist()
    assert row == [*corners[0, :2].tolist(), *(corners[0, 2:] - corners[0, :2]).tolist()]
    assert row[2] != float(corners[0, 2]) - float(corners[0, 0])


def test_what_is_not_here_says_so() -> None:
    module = importlib.import_module("faster_coco_eval.utils.pytorch")
    truth = importlib.import_module("faster_coco_eval").COCO(
        {"images": [], "annotations": [], "categories": []}
    )
    with pytest.raises(NotImplementedError, match="without lvis_style"):
        module.FasterCocoEvaluator(truth, ["bbox"], lvis_style=True)
    evaluator = module.FasterCocoEvaluator(truth, ["bbox"])
    with pytest.raises(ValueError, match="Unknown iou type boundary"):
        evaluator.prepare({}, "boundary")


def test_the_data_set_of_torchvision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With torchvision's classes played by others, which open nothing."""

    class VisionDataset:
        def __init__(self, root: Any, transforms: Any, transform: Any, target_transform: Any) -> None:
            self.root, self.given = root, (transforms, transform, target_transform)

    class CocoDetection(VisionDataset):
        pass

    for name, content in (
        ("torchvision", {}),
        ("torchvision.datasets", {"VisionDataset": VisionDataset}),
        ("torchvision.datasets.coco", {"CocoDetection": CocoDetection}),
    ):
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    package = importlib.import_module("faster_coco_eval.utils.pytorch")
    data = package.FasterCocoDetection("images", SHAPES / "instances.json", None, "target", "both")
    assert pickle.loads(pickle.dumps(type(data))) is type(data)
    del package.coco_dataset.FasterCocoDetection
    assert data.ids == sorted(data.coco.getImgIds())
    assert (data.root, data.given) == ("images", ("both", None, "target"))
    assert type(data.coco).__module__ == "boxscore.compat.faster_coco_eval.core.coco"
