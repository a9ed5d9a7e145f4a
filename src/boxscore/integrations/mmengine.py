"""A metric for MMEngine and MMDetection, with the keys and numbers of MMDetection's ``CocoMetric``.

Conventions
-----------
- In a config, set ``BoxscoreMetric`` as type and list this module in ``custom_imports``. It takes all
  arguments of ``CocoMetric``, also those that a base config sets.
- Labels number the classes of ``dataset_meta`` in the order of the annotation file, as in MMDetection.
- Results of an image are stored as arrays on the CPU, masks as RLE; MMEngine gathers them.
- Numbers are not rounded (MMDetection rounds them to three digits); undefined is -1, as in MMDetection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from mmengine.evaluator import BaseMetric
from mmengine.fileio import dump, get_local_path
from mmengine.registry import METRICS

from boxscore import Evaluation, InputError, load_ground_truth
from boxscore.extensions.data_tools.invalid_rows import Invalid, checked
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.training.tensors import as_array
from boxscore.formats.coco import listed_classes
from boxscore.integrations.detr import CocoEvaluator

AREAS = ("s", "m", "l")

RECALLS = ("AR@100", "AR@300", "AR@1000", *(f"AR_{area}@1000" for area in AREAS))
"""Names of recall at each of ``proposal_nums``, and by area at the last."""

ITEMS = ("mAP", "mAP_50", "mAP_75", *(f"mAP_{area}" for area in AREAS))
"""The numbers that are reported by default."""


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
    metric_items : sequence of str, optional
        The numbers to report, such as ``mAP_50`` or ``AR@100``; by default the six of mAP. Recalls have the
        names of the default ``proposal_nums``: ``AR@100`` is at the first.
    format_only : bool, default False
        Write the results files, and do not evaluate: for a test set without annotations.
    outfile_prefix : str, optional
        Also write COCO's results files, ``PREFIX.bbox.json`` and, with masks, ``PREFIX.segm.json``.
    backend_args : dict, optional
        MMEngine's storage of ``ann_file`` and the results files.
    sort_categories : bool, default False
        Number the classes in the order of their ids, as ``Objects365V1Dataset`` does.
    use_mp_eval : bool, default False
        Without effect.
    file_client_args : None
        Replaced by ``backend_args``.
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
        iou_thrs: float | Sequence[float] | None = None,
        metric_items: Sequence[str] | None = None,
        format_only: bool = False,
        outfile_prefix: str | None = None,
        file_client_args: Mapping[str, Any] | None = None,
        backend_args: Mapping[str, Any] | None = None,
        sort_categories: bool = False,
        use_mp_eval: bool = False,
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
        known = (*ITEMS, *RECALLS[: len(proposal_nums)], *RECALLS[3:])
        unknown = [item for item in metric_items or () if item not in known]
        if unknown:
            raise InputError("metric_items", f"be of {', '.join(known)}", got=repr(unknown[0]))
        if format_only and outfile_prefix is None:
            raise InputError("outfile_prefix", "be given with format_only", got="None")
        if file_client_args is not None:
            cause = "MMDetection has replaced it: pass backend_args"
            raise InputError("file_client_args", "be None", got=file_client_args, cause=cause)
        self.metric_items, self.format_only, self.outfile_prefix = metric_items, format_only, outfile_prefix
        self.backend_args = None if backend_args is None else dict(backend_args)
        self.classwise, self.proposal_nums, self.iou_thrs = classwise, list(proposal_nums), iou_thrs
        self.invalid = checked(invalid)
        self.evaluations: dict[str, Evaluation] = {}
        # Keep the order of the classes, which the table sorts.
        self._truth, self._listed = None, None
        if ann_file is not None:
            with get_local_path(ann_file, backend_args=self.backend_args) as path:
                self._listed = listed_classes(Path(path))
                if not format_only:
                    self._truth = load_ground_truth(path, format="coco")
            if sort_categories:
                self._listed.sort(key=lambda category: category[0])

    def process(self, data_batch: Any, data_samples: Sequence[Mapping[str, Any]]) -> None:
        """Add a batch of data samples with ``img_id``, ``pred_instances`` and maybe ``instances``."""
        for sample in data_samples:
            found = sample["pred_instances"]
            result: dict[str, Any] = {
                key: as_array(found[key], key) for key in ("bboxes", "scores", "labels")
            }
            if "mask_scores" in found:
                result["mask_scores"] = as_array(found["mask_scores"], "mask_scores")
            if "segm" in self.metrics or (self.outfile_prefix is not None and "masks" in found):
                masks = found["masks"]
                given = isinstance(masks, (list, tuple))
                result["masks"] = list(masks) if given else Masks(as_array(masks, "masks") > 0.5).codes()
            self.results.append((sample["img_id"], result, self._annotated(sample)))

    def _annotated(self, sample: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Return the size and the objects of an image if an annotation file is missing."""
        if self._listed is not None or self.format_only:
            return None
        if "instances" not in sample:
            cause = "give ann_file, or meta_keys of PackDetInputs with 'instances'"
            raise InputError("a data sample", "have instances", got=f"keys {list(sample)}", cause=cause)
        return sample["ori_shape"], sample["instances"]

    def compute_metrics(self, results: Sequence[Any]) -> dict[str, float]:
        """Return MMDetection's mapping of names to numbers."""
        names = list(self.dataset_meta["classes"])
        ids = list(range(len(names)))
        if self._listed is not None:
            ids, names = self._classes(names)
        if self.outfile_prefix is not None:
            self._write(results, ids)
        if self.format_only:
            return {}
        truth: Any = self._truth if self._truth is not None else _annotations(results, names)
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

    def _classes(self, wanted: Sequence[str]) -> tuple[list[Any], list[str]]:
        """Return ids and names of the classes in the order of their labels, which is that of the file."""
        known = [str(number if name is None else name) for number, name in self._listed or ()]
        unknown = [name for name in wanted if name not in known]
        if unknown:
            rule, got = "be classes of the annotation file", repr(unknown[0])
            raise InputError("classes of dataset_meta", rule, got=got, cause=f"it has {known[:9]}")
        rows = [row for row, name in enumerate(known) if name in wanted]
        return [(self._listed or ())[row][0] for row in rows], [known[row] for row in rows]

    def _write(self, results: Sequence[Any], ids: list[Any]) -> None:
        """Write COCO's results files."""
        files: dict[str, list[Any]] = {"bbox": []}
        for image, result, _ in results:
            scores = result["scores"].tolist()
            boxes = [[x1, y1, x2 - x1, y2 - y1] for x1, y1, x2, y2 in result["bboxes"].tolist()]
            rows = [
                {"image_id": image, "bbox": box, "score": score, "category_id": ids[label]}
                for box, score, label in zip(boxes, scores, result["labels"].tolist(), strict=True)
            ]
            files["bbox"] += rows
            if "masks" in result:
                scores = result.get("mask_scores", result["scores"]).tolist()
                files.setdefault("segm", []).extend(
                    {**row, "score": score, "segmentation": {**code, "counts": _text(code["counts"])}}
                    for row, score, code in zip(rows, scores, result["masks"], strict=True)
                )
        for kind, rows in files.items():
            dump(rows, f"{self.outfile_prefix}.{kind}.json", backend_args=self.backend_args)

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
        numbers |= {f"mAP_{name}": mean(metric, area=row) for row, name in enumerate(AREAS, 1)}
        if self.metric_items is None:
            return numbers
        # Recall at each limit, and by area at the last.
        for cap, name in enumerate(RECALLS[: len(caps)]):
            numbers[name] = mean(metric, "recall", cap=cap)
        for area, name in enumerate(RECALLS[3:], 1):
            numbers[name] = mean(metric, "recall", area=area)
        return {name: numbers[name] for name in self.metric_items}


def _text(counts: Any) -> Any:
    return counts.decode() if isinstance(counts, bytes) else counts


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
