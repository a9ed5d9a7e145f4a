"""Evaluate with boxscore in RF-DETR: a back-end for its metric, and its metric in one pass over columns.

Call ``install()`` before training; every ``eval_backend`` then runs boxscore. The numbers equal those of the
other back-ends to the last bit, in less time.

Conventions
-----------
The replaced classes are internal to RF-DETR 1.11. With an incompatible version, importing this file or making
the metric raises an error; numbers are never wrong.
"""

from __future__ import annotations

from typing import Any

import rfdetr.training.callbacks.coco_eval as callback
import torch
from rfdetr.training import coco_map

from boxscore.compat import faster_coco_eval
from boxscore.extensions.data_tools.invalid_rows import Invalid
from boxscore.integrations.torchmetrics import MeanAveragePrecision


class CocoBackend(coco_map._RfdetrCocoBackend):  # type: ignore[misc]
    """The back-end ``"boxscore"`` of RF-DETR's metric: the drop-in for faster_coco_eval."""

    def __init__(self) -> None:
        super().__init__("faster_coco_eval")

    coco = property(lambda self: faster_coco_eval.COCO)
    cocoeval = property(lambda self: faster_coco_eval.COCOeval_faster)
    mask_utils = property(lambda self: faster_coco_eval.core.mask)


class OnePassMeanAveragePrecision(coco_map.OnePassCocoMeanAveragePrecision):  # type: ignore[misc]
    """RF-DETR's metric with its state evaluated as columns, for any back-end name.

    Attributes
    ----------
    invalid : {"error", "drop", "false_positive"}
        What to do with NaN, infinite and inverted predictions, as in :class:`boxscore.Evaluator`.
    """

    invalid: Invalid = "false_positive"

    def __init__(self, *args: Any, backend: str = "boxscore", **options: Any) -> None:
        coco_map._BACKENDS.setdefault("boxscore", CocoBackend)  # also without install()
        super().__init__(*args, backend="boxscore", **options)

    def compute(self) -> dict[str, Any]:
        """Return RF-DETR's mapping of names to tensors."""
        metric = MeanAveragePrecision(
            iou_type=self.iou_type,
            iou_thresholds=self.iou_thresholds,
            rec_thresholds=self.rec_thresholds,
            max_detection_thresholds=self.max_detection_thresholds,
            class_metrics=self.class_metrics,
            backend="faster_coco_eval",
            invalid=self.invalid,
        )
        for name in coco_map._MAP_STATE_ATTRS:
            values = getattr(self, name)
            if name.endswith("_mask"):
                values = [code for image in values for code in image]
            elif name.endswith("_box"):  # torchmetrics stores an empty set of boxes as [1, 0]
                values = [boxes.reshape(-1, 4) for boxes in values]
            setattr(metric, name, values)
        for side in ("detection", "groundtruth"):
            labels = getattr(self, f"{side}_labels")
            setattr(
                metric, f"{side}_counts", [torch.tensor([len(image) for image in labels], dtype=torch.int64)]
            )
        metric.image_ids = [None] * len(self.groundtruth_labels)
        metric._update_count, metric.sync_on_compute, metric._to_sync = 1, False, False
        result: dict[str, Any] = {}
        for iou_type in self.iou_type:  # RF-DETR has these keys even without images
            prefix = "" if len(self.iou_type) == 1 else f"{iou_type}_"
            result |= self._per_class_sentinels(prefix, self._observed_classes())
        return result | metric.compute()


_ORIGINAL = coco_map.OnePassCocoMeanAveragePrecision


def install() -> None:
    """Make RF-DETR's training, validation and test evaluate with boxscore, for any ``eval_backend``."""
    coco_map._BACKENDS["boxscore"] = CocoBackend
    callback.OnePassCocoMeanAveragePrecision = OnePassMeanAveragePrecision


def uninstall() -> None:
    """Undo :func:`install`; existing metrics are unchanged."""
    coco_map._BACKENDS.pop("boxscore", None)
    callback.OnePassCocoMeanAveragePrecision = _ORIGINAL
