"""ultralytics: its validators, with COCO's numbers beside their own and a report in the run's folder.

Conventions
-----------
- Its own mAP is of boxes in the pixels of the network's input, padded; COCO's is of the original pixels,
  where boxes are cut at the image. The keys name the space.
- Images are named by their paths, of which two are never equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import distributed
from ultralytics.models.yolo.detect import DetectionValidator
from ultralytics.utils import LOGGER, ops

from boxscore.evaluation import Evaluation
from boxscore.evaluator import Evaluator

SPACES = {"original": "coco", "letterboxed": "ultralytics"}
"""The spaces in which boxes are evaluated, and the protocol there; ``ultralytics`` gives its own mAP."""


class BoxscoreValidator(DetectionValidator):  # type: ignore[misc]
    """Validate as ultralytics does, and evaluate the same predictions with boxscore.

    ``model.val(validator=BoxscoreValidator)`` returns ultralytics' metrics with one more attribute,
    ``boxscore``: the :class:`~boxscore.Evaluation` in original pixels. Its report is in the run's folder, and
    the numbers of both spaces are among the results, as ``boxscore/original/AP``. A subclass may change:

    Attributes
    ----------
    protocol : str
        Of the evaluation in original pixels.
    fitness : str
        A metric of that evaluation by which the best epoch is chosen; empty for ultralytics' own.
    """

    protocol: str = "coco"
    fitness: str = ""

    def init_metrics(self, model: Any) -> None:
        """Begin an epoch."""
        super().init_metrics(model)
        protocols = {**SPACES, "original": self.protocol}
        self._evaluators = {
            space: Evaluator(
                protocol=protocols[space], classes=dict(self.names), duplicates="ignore", invalid="drop"
            )
            for space in SPACES
        }
        self._evaluations: dict[str, Evaluation] = {}

    def update_metrics(self, preds: list[dict[str, Any]], batch: dict[str, Any]) -> None:
        """Add a batch, in both spaces."""
        super().update_metrics(preds, batch)
        sides: dict[str, tuple[list[Any], list[Any]]] = {space: ([], []) for space in SPACES}
        for position, prediction in enumerate(preds):
            target = self._prepare_batch(position, batch)
            shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
            truth = target["bboxes"].clone()
            boxes = {
                "letterboxed": (prediction["bboxes"], truth),
                "original": (
                    self.scale_preds(prediction, target)["bboxes"],
                    ops.scale_boxes(shape[0], truth.clone(), *shape[1:]),
                ),
            }
            scored = {"scores": prediction["conf"], "labels": prediction["cls"].long()}
            true = {"labels": target["cls"].long(), "image_id": str(target["im_file"])}
            for space, (predicted, objects) in boxes.items():
                sides[space][0].append({**scored, "boxes": predicted})
                sides[space][1].append({**true, "boxes": objects})
        for space, (predictions, targets) in sides.items():
            self._evaluators[space].update(predictions, targets)

    def gather_stats(self) -> None:
        """Collect what all processes saw, in the first one."""
        super().gather_stats()
        if not (distributed.is_available() and distributed.is_initialized()):
            return
        first = distributed.get_rank() == 0
        shares: list[Any] = [None] * distributed.get_world_size()
        distributed.gather_object(self._evaluators, shares if first else None, dst=0)
        for share in shares[1:] if first else ():
            for space, evaluator in share.items():
                self._evaluators[space].merge(evaluator)

    def get_stats(self) -> dict[str, Any]:
        """Return ultralytics' results, and the numbers of both spaces."""
        stats = dict(super().get_stats())
        for space, evaluator in self._evaluators.items():
            if len(evaluator):
                self._evaluations[space] = evaluation = evaluator.compute()
                stats |= evaluation.flat(prefix=f"boxscore/{space}")
        if self.fitness and "original" in self._evaluations:
            stats["fitness"] = self._evaluations["original"][self.fitness]
        return stats

    def finalize_metrics(self) -> None:
        """Write the report, where a validation has a folder for its plots."""
        super().finalize_metrics()
        evaluation = self._evaluations.get("original")
        if evaluation is None or self.training:
            return
        self.metrics.boxscore = evaluation
        if self.args.plots:
            evaluation.report(
                Path(self.save_dir) / "boxscore", title=f"ultralytics {Path(self.save_dir).name}"
            )

    def print_results(self) -> None:
        """Print ultralytics' table, and a line for each space."""
        super().print_results()
        for space, evaluation in self._evaluations.items():
            numbers = "  ".join(f"{key} {value:.4f}" for key, value in [*evaluation.metrics.items()][:3])
            LOGGER.info(f"boxscore, {space} pixels ({evaluation.protocol.name}): {numbers}")
