"""An evaluator for detectron2: its ``DatasetEvaluator`` interface, with the results of ``COCOEvaluator``.

Conventions
-----------
- detectron2 is not imported: the data set is described by its metadata, ``MetadataCatalog.get(name)``.
- Results are in percent, NaN where undefined, under detectron2's names; other processes return ``{}``.
- All images of the annotation file are evaluated; missing images count as images without detections, with a
  warning.
- With the task keypoints, detectron2's ``COCOEvaluator`` no longer moves the keypoints of the model's output
  in place, so that both can run, in any order.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boxscore import BoxscoreWarning, Evaluation, load_ground_truth
from boxscore.extensions.data_tools.invalid_rows import Invalid, checked
from boxscore.extensions.training.tensors import as_array
from boxscore.integrations.detr import CocoEvaluator

NAMES = {
    "bbox": ("AP", "AP50", "AP75", "APs", "APm", "APl"),
    "segm": ("AP", "AP50", "AP75", "APs", "APm", "APl"),
    "keypoints": ("AP", "AP50", "AP75", "APm", "APl"),
}
"""Result names of each task: over all thresholds, at two, and by area."""


class DetectionEvaluator:
    """Pass it to ``inference_on_dataset``, or return it from a trainer's ``build_evaluator``.

    Parameters
    ----------
    metadata : object
        ``MetadataCatalog.get(name)`` with ``json_file``, ``thing_classes`` and
        ``thing_dataset_id_to_contiguous_id``.
    tasks : sequence of {"bbox", "segm", "keypoints"}, default ("bbox",)
    max_dets_per_image : int, default 100
        Limit for boxes and masks; every result uses it.
    kpt_oks_sigmas : sequence of float, optional
        By default COCO's.
    invalid : {"error", "drop", "false_positive"}, default "false_positive"
        What to do with NaN, infinite and inverted predictions, as in :class:`boxscore.Evaluator`.

    Attributes
    ----------
    evaluations : dict of str to Evaluation
        The last evaluation of each task, with every table, diagnostic and report.
    """

    def __init__(
        self,
        metadata: Any,
        tasks: Sequence[str] = ("bbox",),
        *,
        max_dets_per_image: int = 100,
        kpt_oks_sigmas: Sequence[float] = (),
        invalid: Invalid = "false_positive",
    ) -> None:
        self.invalid = checked(invalid)
        self.tasks, self.max_dets_per_image, self.kpt_oks_sigmas = tasks, max_dets_per_image, kpt_oks_sigmas
        self.evaluations: dict[str, Evaluation] = {}
        self._truth = load_ground_truth(metadata.json_file, format="coco")
        ids: Mapping[Any, int] = getattr(metadata, "thing_dataset_id_to_contiguous_id", None) or {}
        self._ids = {contiguous: identifier for identifier, contiguous in ids.items()}
        self._names: Sequence[str] = getattr(metadata, "thing_classes", None) or ()
        self.reset()

    def reset(self) -> None:
        """Start a new evaluation."""
        if "keypoints" in self.tasks:
            _shift_copies()
        self._evaluator = CocoEvaluator(self._truth, self.tasks, invalid=self.invalid)
        self._evaluator.boxes_of_keypoints = True
        for task in self.tasks:
            params = self._evaluator.coco_eval[task].params
            if task != "keypoints":
                params.maxDets = [1, 10, self.max_dets_per_image]
            elif len(self.kpt_oks_sigmas):
                params.kpt_oks_sigmas = np.array(self.kpt_oks_sigmas)

    def process(self, inputs: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]]) -> None:
        """Add a batch.

        Parameters
        ----------
        inputs : sequence of mapping
            Mappings with the ``image_id`` of each image.
        outputs : sequence of mapping
            Mappings with ``instances``: ``pred_boxes``, ``scores``, ``pred_classes`` and, by task,
            ``pred_masks`` and ``pred_keypoints``, in pixels of the original image.
        """
        for given, output in zip(inputs, outputs, strict=True):
            instances = output["instances"]
            classes = as_array(instances.pred_classes, "pred_classes")
            prediction: dict[str, Any] = {
                "labels": np.array([self._ids.get(number, number) for number in classes.tolist()], dtype=int),
                "scores": instances.scores,
                "boxes": instances.pred_boxes.tensor,
            }
            if "segm" in self.tasks:
                prediction["masks"] = as_array(instances.pred_masks, "pred_masks")[:, None]
            if "keypoints" in self.tasks:  # detectron2's pixels have their centers at .5, COCO's at 0
                keypoints = as_array(instances.pred_keypoints, "pred_keypoints")
                prediction["keypoints"] = keypoints - np.array([0.5, 0.5, 0], dtype=keypoints.dtype)
            self._evaluator.update({given["image_id"]: prediction if len(classes) else {}})

    def evaluate(self) -> dict[str, dict[str, float]]:
        """Evaluate the images of all processes.

        Returns
        -------
        dict of str to dict of str to float
            By task, in detectron2's form: ``{"bbox": {"AP": 37.2, ..., "AP-cat": 41.0}}``. ``{}`` without
            input, and in every process but the first.
        """
        # Only the first process returns a result.
        self._evaluator.synchronize_between_processes()
        seen = self._evaluator.img_ids
        if _rank() or not seen:
            return {}
        # Count missing images as images without detections, as in a file.
        missing = set(self._truth.images.ids.tolist()) - set(seen)
        if missing:
            warnings.warn(
                f"{len(missing):,} of {len(self._truth.images):,} images of the annotation file were not "
                f"passed to process(), such as {min(missing, key=str)!r}: they count as images without "
                "detections.",
                BoxscoreWarning,
                stacklevel=2,
            )
            self._evaluator.update({image: {} for image in missing})
        self._evaluator.accumulate()
        # Print what detectron2 prints, through its logger.
        with contextlib.redirect_stdout(io.StringIO()) as table:
            for task in self.tasks:
                if self.max_dets_per_image == 100 or task == "keypoints":
                    self._evaluator.coco_eval[task].summarize()
        logging.getLogger(__name__).info("\n%s", table.getvalue())
        self.evaluations = {task: self._evaluator.evaluation(task) for task in self.tasks}
        return {task: self._results(task) for task in self.tasks}

    def _results(self, task: str) -> dict[str, float]:
        mean = self._evaluator.mean
        areas = range(1, len(self._evaluator.coco_eval[task].params.areaRng))
        values = [mean(task), mean(task, iou=0.5), mean(task, iou=0.75), *(mean(task, area=a) for a in areas)]
        results = dict(zip(NAMES[task], values, strict=True))
        if len(self._names) > 1:
            known = self._truth.categories.ids
            ids = [self._ids.get(number, known[number]) for number in range(len(self._names))]
            rows = np.searchsorted(known, ids).tolist()
            results |= {
                f"AP-{name}": mean(task, category=row) for name, row in zip(self._names, rows, strict=True)
            }
        return {name: 100 * value for name, value in results.items()}


def _shift_copies() -> None:
    """Make detectron2's own evaluator shift a copy of the keypoints.

    It moves those of the model's output by half a pixel, on the CPU in place: an evaluator that runs after it
    would get other keypoints. Its results stay the same.
    """
    module = sys.modules.get("detectron2.evaluation.coco_evaluation")
    convert = getattr(module, "instances_to_coco_json", None)
    if convert is None or hasattr(convert, "copies_keypoints"):
        return

    @functools.wraps(convert)
    def of_copies(instances: Any, img_id: Any) -> Any:
        if not instances.has("pred_keypoints"):
            return convert(instances, img_id)
        given = instances.pred_keypoints
        instances.pred_keypoints = given.clone()
        try:
            return convert(instances, img_id)
        finally:
            instances.pred_keypoints = given

    of_copies.copies_keypoints = True  # type: ignore[attr-defined]
    module.instances_to_coco_json = of_copies  # type: ignore[union-attr]


def _rank() -> int:
    """Return the rank of this process."""
    torch = sys.modules.get("torch")
    if torch is None or not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 0
    return int(torch.distributed.get_rank())
