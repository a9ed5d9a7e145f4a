"""``pycocotools.cocoeval``: COCO evaluation with the reference's interface.

Goal
----
``COCOeval`` and ``Params`` on boxscore's core, with every attribute, method and printed line that code
written for the reference uses.

Conventions
-----------
- ``evaluate`` keeps the core's matches and the values of the annotations; ``evalImgs``, ``ious``, ``_gts``
  and ``_dts`` are made lazily from them. Annotations that change afterwards count at the next call. After the
  first access the attributes replace the matches, because the caller may have changed them.
- A subclass that overrides ``computeIoU``, ``computeOks`` or ``evaluateImg`` is evaluated through them.
- Axis letters as in :mod:`boxscore.data.tables`; undefined is -1.

References
----------
pycocotools 2.0.11; https://cocodataset.org/#detection-eval.
"""

from __future__ import annotations

import copy
import datetime
import time
from collections import defaultdict
from typing import Any

import numpy as np

from boxscore._utils.memory import paused_collector
from boxscore.compat.pycocotools import _core, _per_image
from boxscore.compat.pycocotools import mask as maskUtils
from boxscore.compat.pycocotools._accumulate import accumulate_images
from boxscore.compat.pycocotools._encode import encode_annotations
from boxscore.compat.pycocotools._eval_imgs import eval_imgs
from boxscore.compat.pycocotools._params import Params
from boxscore.compat.pycocotools._summary import summary

__all__ = ["COCOeval", "Params", "maskUtils"]

Record = dict[str, Any]
Groups = defaultdict[tuple[Any, Any], list[Record]]


class COCOeval:
    """Evaluate results against a data set.

    Parameters
    ----------
    cocoGt, cocoDt : COCO
        The data set, and results from ``cocoGt.loadRes``.
    iouType : {"segm", "bbox", "keypoints"}

    Attributes
    ----------
    params : Params
        Change its fields before :meth:`evaluate`.
    evalImgs : list of dict or None
        The outcome of each category, area range and image, in this order.
    eval : dict
        ``precision`` and ``scores`` [T, R, K, A, M], ``recall`` [T, K, A, M]; -1 for undefined. ``params``,
        ``counts``, ``date``.
    stats : ndarray
        The numbers that :meth:`summarize` prints.
    ious : dict
        Overlaps [D, G] by image and category.
    """

    def __init__(self, cocoGt: Any = None, cocoDt: Any = None, iouType: Any = "segm") -> None:
        if not iouType:
            self._say("iouType not specified. use default iouType segm")
        # Attributes of the original; large ones are made when they are read.
        self.cocoGt = cocoGt
        self.cocoDt = cocoDt
        self._run: _core.CoreRun | None = None
        self._measured: _core.CoreRun | None = None  # the last run, whose overlaps ``_prepare`` keeps
        self._flat: dict[str, _core.Grouped] = {}
        self._made: dict[str, Any] = {}
        self.evalImgs = defaultdict(list)
        self.eval: Record = {}
        self._gts = defaultdict(list)
        self._dts = defaultdict(list)
        self.params = Params(iouType=iouType)
        self._paramsEval: Any = {}
        self._evaluated: Any = {}
        self.stats: Any = []
        self.ious = {}
        # Everything is evaluated by default.
        if cocoGt is not None:
            self.params.imgIds = sorted(cocoGt.getImgIds())
            self.params.catIds = sorted(cocoGt.getCatIds())

    def _say(self, text: str) -> None:
        print(text)

    def __setstate__(self, state: Record) -> None:
        self._run, self._measured, self._flat, self._made = None, None, {}, {}
        for name, value in state.items():
            setattr(self, name, dict(value) if name in ("_flat", "_made") else value)

    @property
    def evalImgs(self) -> Any:
        """The outcome of each category, area range and image."""
        if "evalImgs" not in self._made and self._run is not None:
            with paused_collector():
                self._made["evalImgs"] = eval_imgs(self._run.matched, self._evaluated)
        return self._made["evalImgs"]

    @evalImgs.setter
    def evalImgs(self, value: Any) -> None:
        self._made["evalImgs"] = value

    @property
    def ious(self) -> Any:
        """Overlaps by image and category, [D, G] each; an empty list if a side is empty."""
        if "ious" not in self._made:
            with paused_collector():
                self._made["ious"] = self._all_ious()
        return self._made["ious"]

    @ious.setter
    def ious(self, value: Any) -> None:
        self._made["ious"] = value

    @property
    def _gts(self) -> Groups:
        """Ground truths by image and category."""
        return self._groups("_gts")

    @_gts.setter
    def _gts(self, value: Groups) -> None:
        self._made["_gts"] = value

    @property
    def _dts(self) -> Groups:
        """Detections by image and category."""
        return self._groups("_dts")

    @_dts.setter
    def _dts(self, value: Groups) -> None:
        self._made["_dts"] = value

    def _groups(self, name: str) -> Groups:
        if name not in self._made:
            groups: Groups = defaultdict(list)
            for image, category, record in zip(*self._flat[name], strict=True):
                groups[image, category].append(record)
            self._made[name] = groups
        made: Groups = self._made[name]
        return made

    def _grouped(self, name: str) -> _core.Grouped:
        """Return the flat list; taken from the dictionary if that was read or set."""
        if name not in self._made:
            return self._flat[name]
        return _core.Grouped.of(self._made[name])

    def _chosen(self) -> tuple[list[Record], list[Record]]:
        """Collect the annotations of both sides in pycocotools' order, which ties depend on."""
        chosen = {"imgIds": self.params.imgIds}
        if self.params.useCats:
            chosen["catIds"] = self.params.catIds
        gts = self.cocoGt.loadAnns(self.cocoGt.getAnnIds(**chosen))
        return gts, self.cocoDt.loadAnns(self.cocoDt.getAnnIds(**chosen))

    def _prepare(self) -> None:
        """Choose the annotations to evaluate, set their ``ignore`` and, for masks, encode them."""
        params = self.params
        gts, dts = self._chosen()
        # Encode masks in place, like pycocotools.
        if params.iouType == "segm":
            encode_annotations(self.cocoGt, gts)
            encode_annotations(self.cocoDt, dts)
        # Write "ignore" into the user's annotations, like pycocotools.
        for gt in gts:
            ignore = "iscrowd" in gt and gt["iscrowd"]
            if params.iouType == "keypoints":
                ignore = (gt["num_keypoints"] == 0) or ignore
            gt["ignore"] = ignore
        # Make flat lists of ids and annotations; the dictionaries by image and class are made lazily.
        self._made.pop("_gts", None)
        self._made.pop("_dts", None)
        for name, anns in (("_gts", gts), ("_dts", dts)):
            self._flat[name] = _core.Grouped(
                [ann["image_id"] for ann in anns], [ann["category_id"] for ann in anns], anns
            )
        self._run = None
        self.evalImgs = defaultdict(list)
        self.eval = {}

    def evaluate(self) -> None:
        """Match every image and category; ``evalImgs`` holds the outcome."""
        # Sort and deduplicate the same lists as pycocotools, in its order.
        tic = time.time()
        self._say("Running per image evaluation...")
        params = self.params
        if params.useSegm is not None:
            params.iouType = "segm" if params.useSegm == 1 else "bbox"
            self._say(f"useSegm (deprecated) is not None. Running {params.iouType} evaluation")
        self._say(f"Evaluate annotation type *{params.iouType}*")
        # Ids are unique and ascend; limits ascend too.
        params.imgIds = list(np.unique(params.imgIds))
        if params.useCats:
            params.catIds = list(np.unique(params.catIds))
        params.maxDets = sorted(params.maxDets)
        self.params = params
        self._prepare()
        # Match everything with the core in one call, unless a subclass changed a step.
        run = None
        if _core.is_plain(self, _REPLACED_METHODS):
            run = _core.run(self._grouped("_gts"), self._grouped("_dts"), params)
        if run is not None:
            self._run = self._measured = run
            for name in ("evalImgs", "ious"):
                self._made.pop(name, None)
            run.mark_ignored_truths()
        else:
            # Otherwise go step by step, so that overridden methods are called.
            compute = self.computeOks if params.iouType == "keypoints" else self.computeIoU
            categories = _core.categories_of(params)
            self.ious = {(i, k): compute(i, k) for i in params.imgIds for k in categories}
            self.evalImgs = [
                self.evaluateImg(image, category, area, params.maxDets[-1])
                for category in categories
                for area in params.areaRng
                for image in params.imgIds
            ]
        # Copy the parameters, because users change them between steps.
        self._paramsEval = self._evaluated = copy.deepcopy(self.params)
        self._say(f"DONE (t={time.time() - tic:0.2f}s).")

    def _all_ious(self) -> dict[tuple[Any, Any], Any]:
        """Return overlaps under the parameters of the last ``evaluate``."""
        params = self._evaluated
        return {(i, k): self._measure(i, k) for i in params.imgIds for k in _core.categories_of(params)}

    def _measure(self, imgId: Any, catId: Any) -> Any:
        """Return overlaps of an image and category as they were at the last ``evaluate``."""
        params, run = self._evaluated, self._measured
        if run is None or imgId not in params.imgIds or catId not in _core.categories_of(params):
            raise KeyError((imgId, catId))
        gts, dts = run.measured(imgId, catId)
        if params.iouType == "keypoints":
            return _per_image.keypoint_similarities(gts, dts, params)
        return _per_image.overlaps(gts, dts, params)

    def _of(self, groups: Groups, imgId: Any, catId: Any) -> list[Record]:
        if self.params.useCats:
            return groups[imgId, catId]
        return [record for category in self.params.catIds for record in groups[imgId, category]]

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Overlaps of an image's detections and ground truths of a category, [D, G], best detection first."""
        gts, dts = self._of(self._gts, imgId, catId), self._of(self._dts, imgId, catId)
        return _per_image.overlaps(gts, dts, self.params)

    def computeOks(self, imgId: Any, catId: Any) -> Any:
        """Keypoint similarities of an image's detections and ground truths of a category, [D, G]."""
        gts, dts = self._gts[imgId, catId], self._dts[imgId, catId]
        return _per_image.keypoint_similarities(gts, dts, self.params)

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: Any) -> Record | None:
        """Match one image and category in one area range; an entry of ``evalImgs``."""
        gts, dts = self._of(self._gts, imgId, catId), self._of(self._dts, imgId, catId)
        if not gts and not dts:
            return None
        where = {"image_id": imgId, "category_id": catId, "aRng": aRng, "maxDet": maxDet}
        return _per_image.evaluate_image(gts, dts, lambda: self._iou(imgId, catId), self.params, where)

    def _iou(self, imgId: Any, catId: Any) -> Any:
        if "ious" in self._made:
            return self._made["ious"][imgId, catId]
        return self._measure(imgId, catId)

    def accumulate(self, p: Any = None) -> None:
        """Turn the outcomes into precision, recall and scores: ``eval``.

        Parameters
        ----------
        p : Params, optional
            Parameters to use instead of ``params``; they select a part of the evaluation of :meth:`evaluate`.
        """
        self._say("Accumulating evaluation results...")
        tic = time.time()
        if not self._made.get("evalImgs", True):
            self._say("Please run evaluate() first")
        if p is None:
            p = self.params
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        self.eval = {
            "params": p,
            "counts": [
                len(p.iouThrs),
                len(p.recThrs),
                len(p.catIds) if p.useCats else 1,
                len(p.areaRng),
                len(p.maxDets),
            ],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            **self._arrays(p),
        }
        self._say(f"DONE (t={time.time() - tic:0.2f}s).")

    def _arrays(self, params: Any) -> dict[str, Any]:
        # Outcomes that were neither read nor changed do not need to exist for accumulation: use the core's
        # arrays if it covers the parameters. Otherwise accumulate the outcomes, like pycocotools.
        arrays = None
        untouched = "evalImgs" not in self._made and self._paramsEval is self._evaluated
        if untouched and self._run is not None and _core.asks_for_all(params, self._evaluated):
            arrays = self._run.matched.arrays(params.recThrs)
        return accumulate_images(self.evalImgs, self._paramsEval, params) if arrays is None else arrays

    def summarize(self) -> None:
        """Compute ``stats`` and print them. Meant for the default parameters: other caps give -1."""
        if not self.eval:
            raise Exception("Please run accumulate() first")
        self.stats = summary(self.eval, self.params, self._say)

    def __str__(self) -> str:
        self.summarize()
        return ""


_REPLACED_METHODS = {name: getattr(COCOeval, name) for name in ("computeIoU", "computeOks", "evaluateImg")}
