"""A metric for MMEngine and MMDetection, with the keys and numbers of MMDetection's ``CocoMetric``.

Conventions
-----------
- In a config, set ``BoxscoreMetric`` as type and list this module in ``custom_imports``.
- Results of an image are stored as arrays on the CPU, masks as RLE; MMEngine gathers them.
- Numbers are not rounded (MMDetection rounds them to three digits); undefined is -1, as in MMDetection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from mmengine.evaluator import BaseMetric
from mmengine.registry import METRICS

from boxscore import Evaluation, InputError, load_ground_truth
from boxscore.extensions.data_tools.invalid_rows import Invalid, checked
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.training.tensors import as_array
from boxscore.integrations.detr import CocoEvaluator

AREAS = ("s", "m", "l")


@METRICS.register_module()
class BoxscoreMetric(BaseMetric):  # type: ignore[misc]
    """COCO's metrics of boxes and masks.

    Parameters
    ----------
    ann_file : str, optional
        COCO's annotation file; ``dataset_meta`` names its classes. Without it the objects are the
        ``instances`` of the data samples, in which the ignored ones count as crowds.
    metric : {"bbox", "segm"} or list of them, default "bbox"
    classwise : bool, default False
        Also report AP of each class, as ``cat_precision``.
    proposal_nums : sequence of int, default (100, 300, 1000)
        Max detections. As with pycocotools, mAP uses 100 and the other metrics the last.
    iou_thrs : sequence of float, optional
        By default COCO's ten.
    invalid : {"error", "drop", "false_positive"}, default "false_positive"
        What to do with NaN, infinite and inverted predictions, as in :class:`boxscore.Evaluator`.
    collect_device, prefix
        Passed to MMEngine.

    Attributes
    ----------
    evaluations : dict of str to Evaluation
        The last evaluation of each metric, with every table, diagnostic and report.
    """

    default_prefix = "coco"

    def __init__(
        self,
        ann_file: str | None = None,
        metric: str | Sequence[str] = "bbox",
        *,
        classwise: bool = False,
        proposal_nums: Sequence[int] = (100, 300, 1000),
        iou_thrs: Sequence[float] | None = None,
        invalid: Invalid = "false_positive",
        collect_device: str = "cpu",
        prefix: str | None = None,
    ) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)
        self.metrics = [metric] if isinstance(metric, str) else list(metric)
        for name in self.metrics:
            if name not in ("bbox", "segm"):
                cause = "proposals lack classes: evaluate them with MMDetection's CocoMetric"
                raise InputError("metric", "be bbox or segm", got=repr(name), cause=cause)
        self.classwise, self.proposal_nums, self.iou_thrs = classwise, list(proposal_nums), iou_thrs
        self.invalid = checked(invalid)
        self.evaluations: dict[str, Evaluation] = {}
        self._truth = None if ann_file is None else load_ground_truth(ann_file, format="coco")

    def process(self, data_batch: Any, data_samples: Sequence[Mapping[str, Any]]) -> None:
        """Add a batch of data samples with ``img_id``, ``pred_instances`` and maybe ``instances``."""
        for sample in data_samples:
            found = sample["pred_instances"]
            result: dict[str, Any] = {
                key: as_array(found[key], key) for key in ("bboxes", "scores", "labels")
            }
            if "mask_scores" in found:
                result["mask_scores"] = as_array(found["mask_scores"], "mask_scores")
            if "segm" in self.metrics:
                masks = found["masks"]
                given = isinstance(masks, (list, tuple))
                result["masks"] = list(masks) if given else Masks(as_array(masks, "masks") > 0.5).codes()
            self.results.append((sample["img_id"], result, self._annotated(sample)))

    def _annotated(self, sample: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Return the size and the objects of an image if an annotation file is missing."""
        if self._truth is not None:
            return None
        if "instances" not in sample:
            cause = "give ann_file, or meta_keys of PackDetInputs with 'instances'"
            raise InputError("a data sample", "have instances", got=f"keys {list(sample)}", cause=cause)
        return sample["ori_shape"], sample["instances"]

    def compute_metrics(self, results: Sequence[Any]) -> dict[str, float]:
        """Return MMDetection's mapping of names to numbers."""
        names = list(self.dataset_meta["classes"])
        truth: Any = self._truth if self._truth is not None else _annotations(results, names)
        ids = list(range(len(names))) if self._truth is None else self._ids(names)
        values: dict[str, float] = {}
        for metric in self.metrics:
            evaluator = self._evaluated(metric, truth, ids, results)
            self.evaluations[metric] = evaluator.evaluation(metric)
            values |= {f"{metric}_{name}": value for name, value in self._numbers(evaluator, metric).items()}
            if self.classwise:
                values |= {
                    f"{name}_precision": evaluator.mean(metric, category=sorted(ids).index(identifier))
                    for name, identifier in zip(names, ids, strict=True)
                }
        return {name: -1.0 if np.isnan(value) else value for name, value in values.items()}

    def _ids(self, names: Sequence[str]) -> list[Any]:
        """Return the class ids of the annotation file."""
        assert self._truth is not None
        known = self._truth.categories
        rows = known.rows_by_id_or_name(names, place="dataset_meta")
        if (rows < 0).any():
            rule, got = "be classes of the annotation file", repr(names[int(np.argmin(rows))])
            raise InputError(
                "classes of dataset_meta", rule, got=got, cause=f"it has {known.names.tolist()[:9]}"
            )
        return known.ids[rows].tolist()  # type: ignore[no-any-return]

    def _evaluated(self, metric: str, truth: Any, ids: list[Any], results: Sequence[Any]) -> CocoEvaluator:
        # Use the drop-in for DETR's evaluator, with mmdetection's parameters.
        evaluator = CocoEvaluator(truth, [metric], invalid=self.invalid)
        params = evaluator.coco_eval[metric].params
        params.maxDets, params.catIds = self.proposal_nums, ids
        if self.iou_thrs is not None:
            params.iouThrs = np.atleast_1d(self.iou_thrs)
        # Map labels, which are positions in the list of classes.
        for image, result, _ in results:
            prediction = {
                "labels": np.array(ids)[result["labels"]],
                "scores": result["mask_scores" if metric == "segm" and "mask_scores" in result else "scores"],
                "boxes": result["bboxes"].astype(np.float64),
                "masks": result.get("masks"),
            }
            evaluator.update({image: prediction if len(result["labels"]) else {}})
        # Count missing images of the file as images without detections.
        images = self._truth.images.ids.tolist() if self._truth is not None else ()
        evaluator.update({image: {} for image in set(images).difference(evaluator.img_ids)})
        evaluator.accumulate()
        return evaluator

    def _numbers(self, evaluator: CocoEvaluator, metric: str) -> dict[str, float]:
        caps, mean = self.proposal_nums, evaluator.mean
        first = mean(metric, cap=caps.index(100)) if 100 in caps else float("nan")
        numbers = {"mAP": first, "mAP_50": mean(metric, iou=0.5), "mAP_75": mean(metric, iou=0.75)}
        return numbers | {f"mAP_{name}": mean(metric, area=row) for row, name in enumerate(AREAS, 1)}


def _annotations(results: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the objects of data samples in the form of a COCO file."""
    images: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for image, _, (size, instances) in results:
        images.append({"id": image, "height": size[0], "width": size[1]})
        for instance in instances:
            x1, y1, x2, y2 = (float(value) for value in instance["bbox"])
            row = {"image_id": image, "category_id": int(instance["bbox_label"]), "id": len(rows) + 1}
            row |= {"bbox": [x1, y1, x2 - x1, y2 - y1], "iscrowd": instance.get("ignore_flag", 0)}
            rows.append(row | ({"segmentation": instance["mask"]} if "mask" in instance else {}))
    categories = [{"id": number, "name": name} for number, name in enumerate(names)]
    return SimpleNamespace(dataset={"images": images, "annotations": rows, "categories": categories})
