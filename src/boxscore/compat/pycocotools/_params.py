"""Define ``Params`` of ``COCOeval`` with the reference's fields and defaults, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from boxscore.compat.pycocotools.coco import copied


class Params:
    """Parameters of an evaluation.

    Parameters
    ----------
    iouType : {"segm", "bbox", "keypoints"}

    Attributes
    ----------
    imgIds, catIds : list
        Images and categories to evaluate.
    iouThrs, recThrs : ndarray, [T] and [R]
    maxDets : list of int, [M]
    areaRng, areaRngLbl : list, [A]
        Square pixels, closed at both ends, and their names.
    useCats : int
        0 pools all categories.
    kpt_oks_sigmas : ndarray
        For keypoints.
    useSegm : int or None
        Deprecated: 1 for masks, 0 for boxes.
    """

    def __init__(self, iouType: str = "segm") -> None:
        if iouType in ("segm", "bbox"):
            self.setDetParams()
        elif iouType == "keypoints":
            self.setKpParams()
        else:
            raise Exception("iouType not supported")
        self.iouType = iouType
        self.useSegm: int | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Params:
        """Copy every field; ``evaluate`` does it at each call, and image ids are many."""
        made = object.__new__(type(self))
        vars(made).update({name: copied(value, memo) for name, value in vars(self).items()})
        return made

    def setDetParams(self) -> None:
        """Set the parameters for boxes and masks."""
        self._set_common()
        self.maxDets = [1, 10, 100]
        self._set_areas("all", "small", "medium", "large")

    def setKpParams(self) -> None:
        """Set the parameters for keypoints."""
        self._set_common()
        self.maxDets = [20]
        self._set_areas("all", "medium", "large")
        # COCO's constants, divided as pycocotools divides them, so that they have its bits.
        tenths = [
            0.26,
            0.25,
            0.25,
            0.35,
            0.35,
            0.79,
            0.79,
            0.72,
            0.72,
            0.62,
            0.62,
            1.07,
            1.07,
            0.87,
            0.87,
            0.89,
            0.89,
        ]
        self.kpt_oks_sigmas = np.array(tenths) / 10.0

    def _set_common(self) -> None:
        self.imgIds: list[Any] = []
        self.catIds: list[Any] = []
        self.iouThrs: Any = np.linspace(0.5, 0.95, 10)
        self.recThrs: Any = np.linspace(0.0, 1.0, 101)
        self.useCats = 1

    def _set_areas(self, *labels: str) -> None:
        ends: dict[str, list[float]] = {
            "all": [0, 1e10],
            "small": [0, 1024],
            "medium": [1024, 9216],
            "large": [9216, 1e10],
        }
        self.areaRng: list[list[float]] = [ends[label] for label in labels]
        self.areaRngLbl = list(labels)
