"""A callback for Lightning's ``Trainer``: evaluate detections in validation and test.

Conventions
-----------
- The steps of the module return predictions, or predictions and targets; no other code changes.
- Names are ``val/AP`` and ``test/AP``; they are in ``trainer.callback_metrics`` for ``ModelCheckpoint`` and
  ``EarlyStopping``, and every logger of the trainer gets them, NaN only where the logger takes it.
- Lightning's sanity check before training is not evaluated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxscore import Evaluation, Evaluator, InputError
from boxscore.evaluator import gather_with_torch
from boxscore.integrations.loggers import log_evaluation

if TYPE_CHECKING or "pytorch_lightning" not in sys.modules:
    from lightning.pytorch import Callback
else:  # the older name of the same package
    from pytorch_lightning import Callback

KEYS = (("predictions", "preds"), ("targets", "target"))
"""Names of the two sides in a mapping that a step returns."""


class DetectionCallback(Callback):  # type: ignore[misc]
    """Evaluate each epoch of validation and test, and log the result.

    ``validation_step`` and ``test_step`` return ``{"predictions": ..., "targets": ...}``, a pair of these, or
    predictions only; targets are then those of the batch ``(images, targets)``, or of its key ``targets``.
    Both have one item per image, as :meth:`boxscore.Evaluator.update` takes them.

    Parameters
    ----------
    read : callable, optional
        Function of the step's result and the batch that returns predictions and targets, for other forms.
    classes : bool or sequence of str, default False
        Also log metrics of each class, as in :meth:`boxscore.Evaluation.flat`.
    table, figures, images : optional
        As in :func:`boxscore.integrations.loggers.log_evaluation`.
    dataloader : int, default 0
        Index of the data loader to evaluate, if there are several.
    **options
        Of :class:`boxscore.Evaluator`. By default ``invalid="false_positive"``, so that a NaN of a diverged
        model does not end the training, and ``duplicates="ignore"`` with several processes, because samplers
        repeat images.

    Attributes
    ----------
    evaluations : dict of str to Evaluation
        The last evaluation, by ``"val"`` and ``"test"``.
    """

    def __init__(
        self,
        *,
        read: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        classes: bool | Sequence[str] = False,
        table: bool = False,
        figures: bool | Sequence[str] = False,
        images: str | Path | Mapping[Any, Any] | None = None,
        dataloader: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.evaluations: dict[str, Evaluation] = {}
        self._read = read or sides_of
        self._classes, self._dataloader = classes, dataloader
        self._logged: dict[str, Any] = {"table": table, "figures": figures, "images": images}
        self._options: dict[str, Any] = {"invalid": "false_positive"} | options
        self._evaluator = Evaluator(**self._options)  # so that a wrong option is an error now

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget images of an earlier epoch."""
        several: dict[str, Any] = {}
        if trainer.world_size > 1:
            several = {"duplicates": "ignore", "gather": gather_with_torch}
        self._evaluator = Evaluator(**(several | self._options))

    on_test_epoch_start = on_validation_epoch_start

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Add a batch."""
        if not trainer.sanity_checking and dataloader_idx == self._dataloader:
            self._evaluator.update(*self._read(outputs, batch))

    on_test_batch_end = on_validation_batch_end

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate and log."""
        if not trainer.sanity_checking:
            self._evaluate(trainer, pl_module, "val")

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate and log."""
        self._evaluate(trainer, pl_module, "test")

    def _evaluate(self, trainer: Any, pl_module: Any, prefix: str) -> None:
        evaluation = self._evaluator.compute()
        self.evaluations[prefix] = evaluation
        numbers = evaluation.flat(prefix=prefix, classes=self._classes)
        # The same on every process; loggers get the numbers below, in the way of each.
        pl_module.log_dict(numbers, logger=False, rank_zero_only=False, sync_dist=False)
        for logger in trainer.loggers:
            log_evaluation(
                evaluation,
                logger,
                step=trainer.global_step,
                prefix=prefix,
                classes=self._classes,
                **self._logged,
            )


def sides_of(outputs: Any, batch: Any) -> tuple[Any, Any]:
    """Return predictions and targets, from the result of a step or from the batch.

    Parameters
    ----------
    outputs, batch : object
        As Lightning gives them to ``on_validation_batch_end``.

    Returns
    -------
    predictions, targets : sequence
        One item per image each.

    Raises
    ------
    InputError
        When one of them is missing.
    """
    if isinstance(outputs, tuple) and len(outputs) == 2 and not any(isinstance(one, dict) for one in outputs):
        return outputs
    predictions, targets = (_value(outputs, names) for names in KEYS)
    if predictions is None and isinstance(outputs, (list, tuple)):
        predictions = outputs
    if targets is None:
        targets = _value(batch, KEYS[1])
    if targets is None and isinstance(batch, (tuple, list)) and len(batch) == 2:
        targets = batch[1]
    if predictions is None or targets is None:
        raise InputError(
            "validation_step",
            'return {"predictions": ..., "targets": ...}, one of each per image',
            got="nothing" if outputs is None else f"a {type(outputs).__name__}",
            cause="DetectionCallback(read=...) takes a function for other forms",
        )
    return predictions, targets


def _value(mapping: Any, names: Sequence[str]) -> Any:
    """Return the value of the first of some names in a mapping; None without one."""
    if not isinstance(mapping, Mapping):
        return None
    return next((mapping[name] for name in names if name in mapping), None)
