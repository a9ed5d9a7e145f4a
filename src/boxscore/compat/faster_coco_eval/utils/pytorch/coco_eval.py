"""``faster_coco_eval.utils.pytorch.coco_eval``: an evaluator of batches, like torchvision's references.

Goal
----
For subclasses and callers such as RT-DETR and RF-DETR: ``update`` with predictions by image id, then
``synchronize_between_processes``, ``accumulate``, ``summarize``.

Conventions
-----------
Tensor libraries are not imported; outcomes are gathered with ``torch.distributed`` if it is initialized.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boxscore.compat.faster_coco_eval.core import mask
from boxscore.compat.faster_coco_eval.core.coco import COCO
from boxscore.compat.faster_coco_eval.core.faster_eval_api import COCOeval_faster
from boxscore.evaluator import gather_with_torch
from boxscore.extensions.training.tensors import as_array

__all__ = ["FasterCocoEvaluator", "all_gather", "convert_to_xywh", "merge"]

RANGES: Mapping[str, Sequence[float]] = {"small": [0, 1024], "medium": [1024, 9216], "large": [9216, 1e10]}


class FasterCocoEvaluator:
    """Evaluate predictions batch by batch, on one process or several.

    Parameters
    ----------
    coco_gt : COCO
    iou_types : list of {"bbox", "segm", "keypoints"}
    lvis_style : bool
        Only False is supported.
    ranges : mapping of str to [low, high]
        Area ranges in addition to ``all``.

    Attributes
    ----------
    coco_eval : dict of str to COCOeval_faster
        By IoU type; change its ``params`` before the first ``update``.
    stats_as_dict : dict of str to dict
        The numbers by name, by IoU type, after :meth:`summarize`.
    """

    def __init__(
        self,
        coco_gt: Any,
        iou_types: Sequence[str],
        lvis_style: bool = False,
        ranges: Mapping[str, Sequence[float]] | None = RANGES,
    ) -> None:
        assert isinstance(iou_types, (list, tuple))
        self.coco_gt = copy.deepcopy(coco_gt)
        self.iou_types, self.lvis_style, self.ranges = iou_types, lvis_style, ranges
        self.world_size: int | None = None
        self.stats_as_dict: dict[str, Any] = {kind: [] for kind in iou_types}
        self.cleanup()

    def cleanup(self) -> None:
        """Clear all images."""
        self.coco_eval = {
            kind: COCOeval_faster(
                self.coco_gt,
                iouType=kind,
                ranges=self.ranges,
                lvis_style=self.lvis_style,
                print_function=print,
                separate_eval=True,
            )
            for kind in self.iou_types
        }
        self.img_ids: list[Any] = []
        self.eval_imgs: dict[str, list[Any]] = {kind: [] for kind in self.iou_types}

    def update(self, predictions: Mapping[Any, Any]) -> None:
        """Add predictions by image id, each with ``scores``, ``labels`` and the shapes of the IoU types."""
        ids = list(np.unique(list(predictions)))
        self.img_ids.extend(ids)
        for kind in self.iou_types:
            results, evaluation = self.prepare(predictions, kind), self.coco_eval[kind]
            print_function, evaluation.print_function = evaluation.print_function, _nothing
            evaluation.cocoDt = self.coco_gt.loadRes(results) if results else COCO()
            evaluation.params.imgIds = list(ids)
            evaluation.evaluate()
            evaluation.print_function = print_function
            params = evaluation.params
            shape = len(params.catIds), len(params.areaRng), len(params.imgIds)
            self.eval_imgs[kind].append(np.array(evaluation._evalImgs_cpp).reshape(shape))

    def synchronize_between_processes(self) -> None:
        """Collect the outcomes of all batches and processes."""
        for kind in self.iou_types:
            ids, outcomes = merge(self.img_ids, self.eval_imgs[kind], self.world_size)
            evaluation = self.coco_eval[kind]
            evaluation._evalImgs_cpp = outcomes
            evaluation.params.imgIds = ids
            evaluation._paramsEval = copy.deepcopy(evaluation.params)

    def accumulate(self) -> None:
        """Turn the outcomes into precision and recall."""
        for evaluation in self.coco_eval.values():
            evaluation.accumulate()

    def summarize(self) -> None:
        """Print the numbers, and keep them by name."""
        for kind, evaluation in self.coco_eval.items():
            print(f"IoU metric: {kind}")
            evaluation.summarize()
            self.stats_as_dict[kind] = evaluation.stats_as_dict

    def prepare(self, predictions: Mapping[Any, Any], iou_type: str) -> list[dict[str, Any]]:
        """Return predictions as COCO results."""
        prepare_by_type = {
            "bbox": self.prepare_for_coco_detection,
            "segm": self.prepare_for_coco_segmentation,
            "keypoints": self.prepare_for_coco_keypoint,
        }
        if iou_type not in prepare_by_type:
            raise ValueError(f"Unknown iou type {iou_type}")
        return prepare_by_type[iou_type](predictions)

    def prepare_for_coco_detection(self, predictions: Mapping[Any, Any]) -> list[dict[str, Any]]:
        """Return boxes, corners [N, 4], as COCO results."""
        return _results(predictions, "bbox", lambda prediction: convert_to_xywh(prediction["boxes"]).tolist())

    def prepare_for_coco_segmentation(self, predictions: Mapping[Any, Any]) -> list[dict[str, Any]]:
        """Return masks, probabilities [N, 1, H, W], as COCO results."""
        return _results(predictions, "segmentation", lambda prediction: _codes(prediction["masks"]))

    def prepare_for_coco_keypoint(self, predictions: Mapping[Any, Any]) -> list[dict[str, Any]]:
        """Return keypoints [N, J, 3] as COCO results."""

        def flat(prediction: Any) -> list[Any]:
            return [points.ravel().tolist() for points in as_array(prediction["keypoints"], "keypoints")]

        return _results(predictions, "keypoints", flat)


def _nothing(*_: Any) -> None:
    """Print nothing."""


def _results(predictions: Mapping[Any, Any], key: str, values_of: Any) -> list[dict[str, Any]]:
    results = []
    for image, prediction in predictions.items():
        if not len(prediction):
            continue
        scores, labels = (as_array(prediction[name], name).tolist() for name in ("scores", "labels"))
        for value, score, label in zip(values_of(prediction), scores, labels, strict=True):
            results.append({"image_id": image, "category_id": int(label), key: value, "score": score})
    return results


def _codes(masks: Any) -> list[dict[str, Any]]:
    pixels = as_array(masks, "masks") > 0.5
    codes = [mask.encode(np.asfortranarray(inside[0, :, :, None], dtype=np.uint8))[0] for inside in pixels]
    return [{**code, "counts": code["counts"].decode()} for code in codes]


def convert_to_xywh(boxes: Any) -> Any:
    """Return corners [N, 4] as ``x, y, w, h``, in the precision that they have."""
    corners = as_array(boxes, "boxes")
    return np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)


def all_gather(data: Any, world_size: int | None = None) -> list[Any]:
    """Return the data of every process; for a single process, only its own."""
    return [data] if world_size == 1 else gather_with_torch(data) if _has_torch() else [data]


def _has_torch() -> bool:
    """Whether torch is loaded: without it, this process is the only one."""
    import sys

    return "torch" in sys.modules


def merge(img_ids: Any, eval_imgs: Any, world_size: int | None = None) -> tuple[list[Any], list[Any]]:
    """Return image ids, unique and ascending, and their outcomes [K, A, I] in one list."""
    ids = np.array([image for part in all_gather(img_ids, world_size) for image in part])
    blocks = [block for part in all_gather(eval_imgs, world_size) for block in part]
    ids, first = np.unique(ids, return_index=True)
    return ids.tolist(), np.concatenate(blocks, axis=2)[..., first].ravel().tolist()
