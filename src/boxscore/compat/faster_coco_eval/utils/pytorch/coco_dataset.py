"""``faster_coco_eval.utils.pytorch.coco_dataset``: torchvision's COCO data set on the drop-in.

``FasterCocoDetection`` is created lazily: it inherits from torchvision, which nothing else here needs.
"""

from __future__ import annotations

from typing import Any

from boxscore.compat.faster_coco_eval.core.coco import COCO

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name != "FasterCocoDetection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = _data_set()
    return globals()[name]


def _data_set() -> Any:
    from torchvision.datasets import VisionDataset
    from torchvision.datasets.coco import CocoDetection

    # Create the class lazily, since importing torchvision is slow.
    class FasterCocoDetection(CocoDetection):  # type: ignore[misc]
        """Images and annotations of a COCO file; ``coco`` is the drop-in's ``COCO``."""

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

    FasterCocoDetection.__module__, FasterCocoDetection.__qualname__ = __name__, "FasterCocoDetection"
    return FasterCocoDetection
