"""Validators for ultralytics that add COCO's numbers, and a report in the run's folder.

Conventions
-----------
- ultralytics' own mAP uses the padded ("letterboxed") pixels of the network's input; COCO's uses the original
  pixels and clips predictions to the image. The keys name the space.
- Images are identified by their paths, which are unique.
- The objects come from the labels, unless a validator sets ``annotations`` to COCO's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import distributed
from ultralytics.models.yolo.detect import DetectionValidator
from ultralytics.models.yolo.obb import OBBValidator
from ultralytics.models.yolo.pose import PoseValidator
from ultralytics.models.yolo.segment import SegmentationValidator
from ultralytics.utils import LOGGER, ops

from boxscore import Evaluation, Evaluator, load_ground_truth
from boxscore.extensions.data_tools.invalid_rows import Invalid
from boxscore.extensions.masks.column import Masks

AREA_OF_PERSON = 0.53
"""Area of a person as a share of its box, as in ultralytics, whose labels lack areas."""

Sides = dict[str, tuple[dict[str, Any], dict[str, Any]]]
"""Prediction and objects of one image, by the name of the evaluation."""


class Mixin:
    """Validate as ultralytics does, and evaluate the same predictions with boxscore.

    ``model.val(validator=...)`` returns ultralytics' metrics with two more attributes: ``boxscore``, the
    :class:`~boxscore.Evaluation` in original pixels, and ``boxscore_evaluations``, all evaluations by name.
    The report is in the run's folder, and the results include the numbers, as ``boxscore/original/AP``. A
    subclass may change:

    Attributes
    ----------
    protocol : str
        Protocol of the evaluation in original pixels.
    fitness : str
        Metric of that evaluation that selects the best epoch; empty for ultralytics' own.
    annotations : str or Path
        A file with the objects, in any format that boxscore reads, for evaluations in original pixels: COCO's
        file has crowds and areas, which labels lack. Classes are matched by name.
    invalid : {"error", "drop", "false_positive"}
        What to do with NaN, infinite and inverted predictions, as in :class:`boxscore.Evaluator`.
    """

    protocol: str = "coco"
    fitness: str = ""
    annotations: str | Path = ""
    invalid: Invalid = "false_positive"
    main: str = "original"
    """The name of the reported evaluation."""

    def protocols(self) -> dict[str, Any]:
        """Return the protocol of each evaluation, by its name."""
        return {"letterboxed": "ultralytics", "original": self.protocol}

    def sides(self, prediction: Mapping[str, Any], target: Mapping[str, Any]) -> Sides:
        """Return the prediction and the objects of one image for each evaluation."""
        shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
        original = ops.scale_boxes(shape[0], target["bboxes"].clone(), *shape[1:])
        scaled = DetectionValidator.scale_preds(self, prediction, target)  # boxes alone
        return {
            "letterboxed": ({"boxes": prediction["bboxes"]}, {"boxes": target["bboxes"]}),
            "original": ({"boxes": scaled["bboxes"]}, {"boxes": original}),
        }

    def init_metrics(self, model: Any) -> None:
        """Start an epoch."""
        super().init_metrics(model)  # type: ignore[misc]
        names = dict(self.names)  # type: ignore[attr-defined]
        self._evaluators: dict[str, Evaluator] = {}
        for name, protocol in self.protocols().items():
            options: dict[str, Any] = {"classes": names}
            if self.annotations and name.startswith("original"):
                truth = load_ground_truth(self.annotations)
                options = {"ground_truth": truth, "prediction_class_names": names}
            self._evaluators[name] = Evaluator(
                protocol=protocol, duplicates="ignore", invalid=self.invalid, **options
            )
        self._evaluations: dict[str, Evaluation] = {}

    def update_metrics(self, preds: list[dict[str, Any]], batch: dict[str, Any]) -> None:
        """Add a batch to each evaluation."""
        super().update_metrics(preds, batch)  # type: ignore[misc]
        for position, prediction in enumerate(preds):
            target = self._prepare_batch(position, batch)  # type: ignore[attr-defined]
            scored = {"scores": prediction["conf"], "labels": prediction["cls"].long()}
            labels, image = target["cls"].long(), str(target["im_file"])
            for name, (predicted, objects) in self.sides(prediction, target).items():
                evaluator = self._evaluators[name]
                targets = None if evaluator.ground_truth else [{"labels": labels, **objects}]
                evaluator.update([{**scored, **predicted}], targets, image_ids=[image])

    def gather_stats(self) -> None:
        """Gather the data of all processes in the first one."""
        super().gather_stats()  # type: ignore[misc]
        if not (distributed.is_available() and distributed.is_initialized()):
            return
        first = distributed.get_rank() == 0
        shares: list[Any] = [None] * distributed.get_world_size()
        distributed.gather_object(self._evaluators, shares if first else None, dst=0)
        for share in shares[1:] if first else ():
            for name, evaluator in share.items():
                self._evaluators[name].merge(evaluator)

    def get_stats(self) -> dict[str, Any]:
        """Return ultralytics' results and the numbers of each evaluation."""
        stats = dict(super().get_stats())  # type: ignore[misc]
        for name, evaluator in self._evaluators.items():
            if len(evaluator):
                self._evaluations[name] = evaluation = evaluator.compute()
                stats |= evaluation.flat(prefix=f"boxscore/{name}")
        if self.fitness and self._reported is not None:
            stats["fitness"] = self._reported[self.fitness]
        return stats

    @property
    def _reported(self) -> Evaluation | None:
        return self._evaluations.get(self.main, self._evaluations.get("original"))

    def finalize_metrics(self) -> None:
        """Write the report, if the validation has a folder for its plots."""
        super().finalize_metrics()  # type: ignore[misc]
        evaluation, its = self._reported, self.metrics  # type: ignore[attr-defined]
        if evaluation is None or self.training:  # type: ignore[attr-defined]
            return
        its.boxscore, its.boxscore_evaluations = evaluation, self._evaluations
        if self.args.plots:  # type: ignore[attr-defined]
            folder = Path(self.save_dir)  # type: ignore[attr-defined]
            evaluation.report(folder / "boxscore", title=f"ultralytics {folder.name}")

    def print_results(self) -> None:
        """Print ultralytics' table, and a line for each evaluation."""
        super().print_results()  # type: ignore[misc]
        for name, evaluation in self._evaluations.items():
            numbers = "  ".join(f"{key} {value:.4f}" for key, value in [*evaluation.metrics.items()][:3])
            LOGGER.info(f"boxscore, {name} ({evaluation.protocol.name}): {numbers}")


class BoxscoreValidator(Mixin, DetectionValidator):  # type: ignore[misc]
    """Evaluate boxes: see :class:`Mixin`."""


class BoxscoreSegmentationValidator(Mixin, SegmentationValidator):  # type: ignore[misc]
    """Evaluate masks and boxes: see :class:`Mixin`.

    Original pixels need ``save_json=True``: without it ultralytics makes masks at a quarter of the input's
    size. The objects there are the polygons of the labels, rasterized like COCO's.
    """

    protocol = "coco-segm"
    main = "original/masks"

    def init_metrics(self, model: Any) -> None:
        """Start an epoch."""
        super().init_metrics(model)
        self._labels = {label["im_file"]: label for label in self.dataloader.dataset.labels}
        if self.process is not ops.process_mask_native:
            LOGGER.info("boxscore: masks in original pixels need save_json=True; these are a quarter in size")

    def protocols(self) -> dict[str, Any]:
        """Return the protocol of each evaluation, by its name."""
        own = {"extends": "ultralytics", "title": "ultralytics masks (mAP50-95)", "similarity": "mask"}
        spaces = {"letterboxed": "ultralytics", "original": "coco"}
        return {**spaces, "letterboxed/masks": own, "original/masks": self.protocol}

    def sides(self, prediction: Mapping[str, Any], target: Mapping[str, Any]) -> Sides:
        """Return the prediction and the objects of one image for each evaluation."""
        sides = super().sides(prediction, target)
        sides["letterboxed/masks"] = {"masks": prediction["masks"]}, {"masks": target["masks"]}
        label = self._labels[target["im_file"]]  # in the order of the file; a batch may have another
        if self.process is ops.process_mask_native and len(label["segments"]) == len(label["cls"]):
            size = np.array(target["ori_shape"][::-1])
            polygons = [[(points.astype(np.float64) * size).ravel().tolist()] for points in label["segments"]]
            masks = Masks(polygons, image_sizes=np.tile(size, (len(polygons), 1)))
            labels = label["cls"].astype(np.int64).ravel()
            objects = {"masks": masks.codes(), "area": masks.area, "labels": labels}
            sides["original/masks"] = {"masks": self.scale_preds(prediction, target)["masks"]}, objects
        return sides


class BoxscorePoseValidator(Mixin, PoseValidator):  # type: ignore[misc]
    """Evaluate keypoints and boxes: see :class:`Mixin`.

    Labels lack the area of a person, which OKS needs: it is ultralytics' estimate, .53 of the box, in both
    spaces. With ``annotations`` it is COCO's.
    """

    protocol = "coco-keypoints"
    main = "original/keypoints"

    def protocols(self) -> dict[str, Any]:
        """Return the protocol of each evaluation, by its name."""
        names = {"letterboxed/keypoints": "ultralytics-pose", "original/keypoints": self.protocol}
        keypoints: dict[str, Any] = {"sigmas": [float(sigma) for sigma in self.sigma]}
        if len(self.sigma) != 17:
            keypoints |= {"names": [], "skeleton": []}
        chosen = {
            name: {"extends": known, "name": known, "keypoints": keypoints} for name, known in names.items()
        }
        return {"letterboxed": "ultralytics", "original": "coco", **chosen}

    def sides(self, prediction: Mapping[str, Any], target: Mapping[str, Any]) -> Sides:
        """Return the prediction and the objects of one image for each evaluation."""
        # Use boxes as for detection, and keypoints in the same two spaces.
        sides = super().sides(prediction, target)
        shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
        true = target["keypoints"]
        joints = {
            "letterboxed": (prediction["keypoints"], true),
            "original": (
                self.scale_preds(prediction, target)["keypoints"],
                ops.scale_coords(shape[0], true.clone(), shape[1], ratio_pad=shape[2]),
            ),
        }
        for space, (predicted, objects) in joints.items():
            # Use a fixed share of the box as the area of a person, like ultralytics.
            boxes = sides[space][1]["boxes"].double()
            area = (boxes[:, 2:] - boxes[:, :2]).prod(1) * AREA_OF_PERSON
            sides[f"{space}/keypoints"] = (
                {**sides[space][0], "keypoints": _with_visibility(predicted)},
                {**sides[space][1], "keypoints": objects, "area": area},
            )
        return sides


class BoxscoreOBBValidator(Mixin, OBBValidator):  # type: ignore[misc]
    """Evaluate rotated boxes: see :class:`Mixin`.

    ultralytics compares them by ProbIoU, COCO's rules by IoU.
    """

    protocol = "coco-rotated"

    def protocols(self) -> dict[str, Any]:
        """Return the protocol of each evaluation, by its name."""
        return {"letterboxed": "ultralytics-obb", "original": self.protocol}

    def sides(self, prediction: Mapping[str, Any], target: Mapping[str, Any]) -> Sides:
        """Return the prediction and the objects of one image for each evaluation."""
        shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
        original = ops.scale_boxes(shape[0], target["bboxes"].clone(), *shape[1:], xywh=True)
        scaled = self.scale_preds(prediction, target)["bboxes"]
        return {
            "letterboxed": ({"rotated": prediction["bboxes"]}, {"rotated": target["bboxes"]}),
            "original": ({"rotated": scaled}, {"rotated": original}),
        }


def _with_visibility(keypoints: Any) -> Any:
    """Return keypoints [N, J, 3], with visibility added if the network does not predict it."""
    if keypoints.shape[-1] == 3:
        return keypoints
    return np.concatenate([keypoints.cpu().numpy(), np.ones((*keypoints.shape[:-1], 1))], axis=-1)
