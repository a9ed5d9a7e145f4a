"""``compute_metrics`` for the ``Trainer`` of Hugging Face transformers, for object detection.

Conventions
-----------
- The model's outputs are a tuple of arrays: logits [B, Q, C + 1] and boxes [B, Q, 4] are the first two with
  three axes. The processor converts them to detections.
- Targets are in the processor's form: boxes as fractions of the image, and ``orig_size``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.evaluator import Evaluator
from boxscore.extensions.data_tools.invalid_rows import Invalid


class DetectionMetrics:
    """Pass it to ``Trainer(compute_metrics=...)``.

    ``TrainingArguments`` need ``eval_do_concat_batches=False``, because images have different numbers of
    objects; with ``batch_eval_metrics=True`` as well, the outputs of the whole set are not kept in memory.

    Parameters
    ----------
    processor : object
        The image processor; its ``post_process_object_detection`` converts outputs to detections.
    classes : mapping of int to str
        The model's ``config.id2label``.
    protocol : str, default "coco"
    threshold : float, default 0.0
        Lowest score of evaluated detections; AP needs all.
    expected : optional
        The expected images and objects, as for :class:`boxscore.Evaluator`: the Trainer truncates the
        last batch, and objects get lost. A warning then reports how many.
    invalid : {"error", "drop", "false_positive"}, default "false_positive"
        What to do with NaN, infinite and inverted predictions, as in :class:`boxscore.Evaluator`.
    per_class : bool or sequence of str, default False
        Also report metrics of each class, as in :meth:`boxscore.Evaluation.flat`.

    Attributes
    ----------
    evaluation : Evaluation or None
        The last evaluation.

    Examples
    --------
    ::

        metrics = DetectionMetrics(processor, model.config.id2label)
        Trainer(..., compute_metrics=metrics)   # metric_for_best_model="eval_AP"
    """

    def __init__(
        self,
        processor: Any,
        classes: Mapping[int, str],
        *,
        protocol: str = "coco",
        threshold: float = 0.0,
        expected: Any = None,
        invalid: Invalid = "false_positive",
        per_class: bool | Sequence[str] = False,
    ) -> None:
        self.processor, self.threshold, self.per_class = processor, threshold, per_class
        self.evaluation: Evaluation | None = None
        self._evaluator = Evaluator(
            protocol=protocol,
            classes={int(number): name for number, name in classes.items()},
            duplicates="ignore",
            invalid=invalid,
            expected=expected,
        )

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, float]:
        """Add an ``EvalPrediction`` of one batch or of all; return the metrics after the last."""
        outputs, labels = prediction.predictions, prediction.label_ids
        batches = [(outputs, labels)] if isinstance(outputs, tuple) else zip(outputs, labels, strict=True)
        is_last = True  # also after an error, so that the next evaluation starts empty
        try:
            for batch in batches:
                self._update(*batch)
            if not compute_result:
                is_last = False
                return {}
            self.evaluation = self._evaluator.compute()
        finally:
            if is_last:
                self._evaluator.reset()
        return self.evaluation.flat(classes=self.per_class)

    def _update(self, outputs: Sequence[Any], labels: Sequence[Mapping[str, Any]]) -> None:
        logits, boxes = _logits_and_boxes(outputs)
        sizes = [np.asarray(torch.as_tensor(label["orig_size"]).cpu()).ravel() for label in labels]
        if any(len(size) != 2 for size in sizes):
            raise InputError(
                "orig_size of a target",
                "be height and width",
                got=f"{min(map(len, sizes))} number",
                cause="the Trainer cuts what is in the last batch: use a batch size that divides the set",
            )
        detections = self.processor.post_process_object_detection(
            SimpleNamespace(logits=torch.as_tensor(logits), pred_boxes=torch.as_tensor(boxes)),
            threshold=self.threshold,
            target_sizes=torch.as_tensor(np.stack(sizes)),
        )
        self._evaluator.update(detections, list(labels))


def _logits_and_boxes(outputs: Sequence[Any]) -> tuple[Any, Any]:
    """Return the logits and boxes among the outputs of a model."""
    arrays = [each for each in outputs if getattr(each, "ndim", 0) == 3][:2]
    if len(arrays) < 2 or arrays[1].shape[-1] != 4:
        shapes = [list(each.shape) for each in outputs if hasattr(each, "shape")]
        raise InputError(
            "the model's outputs",
            "begin with logits [B, Q, C] and boxes [B, Q, 4]",
            got=f"arrays of shapes {shapes}",
            cause="is it a model for object detection, with eval_do_concat_batches=False?",
        )
    return arrays[0], arrays[1]
