"""``faster_coco_eval.core.faster_eval_api``: ``COCOeval_faster`` on the drop-in for pycocotools.

Conventions
-----------
Its first number uses the largest of ``maxDets`` (pycocotools asks for 100), and ``all_stats`` appends recall
at IoU .5 and .75 to pycocotools' numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from boxscore.compat.faster_coco_eval.core._outcomes import Batch, Outcome, arrays_of_outcomes, listed
from boxscore.compat.pycocotools import cocoeval as reference
from boxscore.compat.pycocotools._core import categories_of
from boxscore.compat.pycocotools._summary import Row, averages

__all__ = ["COCOeval", "COCOeval_faster", "Params"]

_log = logging.getLogger(__name__)

_FIRST = (Row(True), Row(True, 0.5), Row(True, 0.75))
Params = reference.Params


class COCOeval_faster(reference.COCOeval):
    """Evaluate results against a data set.

    Parameters
    ----------
    cocoGt, cocoDt : COCO
        The data set, and results from ``cocoGt.loadRes``.
    iouType : {"segm", "bbox", "keypoints"}
    ranges : mapping of str to [low, high], optional
        Area ranges in addition to ``all``.
    print_function : callable
        Called with the text that pycocotools prints.
    kpt_oks_sigmas : sequence of float, optional
    extra_calc, lvis_style : bool
        Only False is supported.
    use_area : bool
        Only True is supported.
    separate_eval, boundary_dilation_ratio, boundary_cpu_count, rle_iou_max_workers
        Without effect.

    Attributes
    ----------
    stats, all_stats : ndarray
        The numbers without and with recall at IoU .5 and .75.

    Raises
    ------
    NotImplementedError
        For features of that library that are not supported.
    """

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: Any = "segm",
        ranges: Mapping[str, Sequence[float]] | None = None,
        print_function: Callable[..., Any] = _log.info,
        extra_calc: bool = False,
        kpt_oks_sigmas: Sequence[float] | None = None,
        use_area: bool | None = True,
        lvis_style: bool = False,
        separate_eval: bool = False,
        boundary_dilation_ratio: float = 0.02,
        boundary_cpu_count: int = 1,
        rle_iou_max_workers: int = 8,
    ) -> None:
        # Reject unsupported features, so that numbers never follow other rules.
        missing = {
            f"iouType {iouType!r}": iouType in ("boundary", "keypoints_crowd"),
            "extra_calc": extra_calc,
            "use_area=False": not use_area,
            "lvis_style": lvis_style,
        }
        for option, given in missing.items():
            if given:
                raise NotImplementedError(
                    f"boxscore stands in for faster_coco_eval without {option}; "
                    "boxscore.compat.restore_faster_coco_eval() brings faster_coco_eval back"
                )
        # Apply the original's settings.
        self.print_function = print_function
        super().__init__(cocoGt, cocoDt, iouType)
        self.lvis_style = False
        self.all_stats: Any = []
        # Append the given area ranges to the range of all.
        if ranges is not None and iouType != "keypoints":
            self.params.areaRng = [[0, 1e10], *(list(ends) for ends in ranges.values())]
            self.params.areaRngLbl = ["all", *ranges]
        # For keypoints, use the classes of the data and the sigmas of the caller.
        if iouType == "keypoints":
            if kpt_oks_sigmas is not None:
                self.params.kpt_oks_sigmas = np.array(kpt_oks_sigmas)
            if cocoGt is not None:
                self.params.catIds = sorted(cocoGt.catToImgs)

    @property
    def evalImgs(self) -> Any:
        """The outcome of each category, area range and image, as dictionaries."""
        made = super().evalImgs
        if isinstance(made, list) and any(isinstance(one, Outcome) for one in made):
            made = [one.entry() if isinstance(one, Outcome) else one for one in made]
            self._made["evalImgs"] = made
        return made

    @evalImgs.setter
    def evalImgs(self, value: Any) -> None:
        self._made["evalImgs"] = value

    @property
    def _evalImgs_cpp(self) -> Any:
        """Opaque outcomes in the order of ``evalImgs``, which D-FINE and others read, merge and set."""
        if "evalImgs" not in self._made and self._run is not None:
            batch, count = Batch(self._run.matched, self._evaluated), len(categories_of(self._evaluated))
            self._made["evalImgs"] = listed(batch, count)
        return self._made["evalImgs"]

    @_evalImgs_cpp.setter
    def _evalImgs_cpp(self, value: Any) -> None:
        self.evalImgs = value

    def _arrays(self, params: Any) -> dict[str, Any]:
        given = self._made.get("evalImgs")
        arrays = None if given is None else arrays_of_outcomes(given, self._paramsEval, params)
        return super()._arrays(params) if arrays is None else arrays

    def _say(self, text: str) -> None:
        self.print_function(text)

    def _chosen(self) -> tuple[list[Any], list[Any]]:
        """As in pycocotools; annotations may lack ``iscrowd`` and ``num_keypoints``."""
        truths, detections = super()._chosen()
        for truth in truths:
            truth.setdefault("iscrowd", 0)
            if self.params.iouType == "keypoints":
                truth.setdefault("num_keypoints", 0)
        return truths, detections

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    def summarize(self) -> None:
        """Compute ``stats`` and ``all_stats``, and print them."""
        if not self.eval:
            raise Exception("Please run accumulate() first")
        caps = self.params.maxDets
        rows = ((row, caps[-1 if row.cap is None else row.cap]) for row in self._rows().values())
        self.all_stats = averages(rows, self.eval, self.params, self._say)
        keypoints = self.params.iouType == "keypoints"
        self.stats = self.all_stats if keypoints else self.all_stats[:-2]

    def _rows(self) -> dict[str, Row]:
        """Return the printed rows, by name in :attr:`stats_as_dict`."""
        areas = [label for label in self.params.areaRngLbl if label != "all"]
        rows = dict(zip(("AP_all", "AP_50", "AP_75"), _FIRST, strict=True))
        rows |= {f"AP_{label}": Row(True, area=label) for label in areas}
        of_half = {"AR_50": Row(False, 0.5), "AR_75": Row(False, 0.75)}
        of_areas = {f"AR_{label}": Row(False, area=label) for label in areas}
        if self.params.iouType == "keypoints":
            return {**rows, "AR_all": Row(False), **of_half, **of_areas}
        caps = [f"AR_{cap}" for cap in self.params.maxDets]
        if list(self.params.maxDets) == [1, 10, 100]:
            caps = ["AR_all", "AR_second", "AR_third"]
        of_caps = {name: Row(False, cap=position) for position, name in enumerate(caps)}
        return {**rows, **of_caps, **of_areas, **of_half}

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """``all_stats`` by name."""
        return dict(zip(self._rows(), map(float, self.all_stats), strict=True))


COCOeval = COCOeval_faster
