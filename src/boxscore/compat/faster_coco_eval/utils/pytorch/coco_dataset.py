"""``faster_coco_eval.utils.pytorch.coco_dataset``: torchvision's COCO data set on the drop-in."""

from __future__ import annotations

from typing import Any

from torchvision.datasets import VisionDataset
from torchvision.datasets.coco import CocoDetection

from boxscore.compat.faster_coco_eval.core.coco import COCO

__all__ = ["FasterCocoDetection"]


class FasterCocoDetection(CocoDetection):  # type: ignore[misc]
    """Images and annotations of a COCO file; ``coco`` is the drop-in's ``COCO``.

    Parameters
    ----------
    root : path
        The folder of the images.
    annFile : path
    transform, target_transform, transforms : callable, optional
        As in torchvision.
    """

    def __init__(
        self,
        root: Any,
        annFile: Any,
        transform: Any = None,
        target_transform: Any = None,
        transforms: Any = None,
    ) -> None:
        VisionDataset.__init__(self, root, transforms, transform, target_transform)
        self.coco = COCO(annFile)
        self.ids = sorted(self.coco.imgs)
