"""``lvis.eval``: LVIS evaluation with the reference's interface.

Conventions
-----------
- ``evaluate`` keeps the core's matches; ``eval_imgs`` and ``ious`` are made lazily from them. After the first
  access they replace the matches, because the caller may have changed them.
- A subclass that overrides ``compute_iou``, ``evaluate_img`` or ``_get_gt_dt`` is evaluated through them.
- As in the reference, a second ``evaluate`` adds the same objects and detections again.
- Axis letters as in :mod:`boxscore.data.tables`; undefined is -1.
"""

from __future__ import annotations

import copy
import datetime
import logging
from collections import OrderedDict, defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.memory import paused_collector
from boxscore.compat.lvis.lvis import LVIS, Record
from boxscore.compat.lvis.results import LVISResults
from boxscore.compat.pycocotools import _core, _per_image
from boxscore.compat.pycocotools._accumulate import accumulate_images
from boxscore.compat.pycocotools._encode import encode_annotations
from boxscore.compat.pycocotools._eval_imgs import eval_imgs

__all__ = ["LVISEval", "Params"]

Groups = defaultdict[tuple[Any, Any], list[Record]]

_KEYS = {
    "image_id": "image_id",
    "category_id": "category_id",
    "aRng": "area_rng",
    "dtIds": "dt_ids",
    "gtIds": "gt_ids",
    "dtMatches": "dt_matches",
    "gtMatches": "gt_matches",
    "dtScores": "dt_scores",
    "gtIgnore": "gt_ignore",
    "dtIgnore": "dt_ignore",
}
"""Keys of an outcome in pycocotools and here."""

_NO_CAP = 1 << 62
"""No limit: detections are capped when they are loaded."""


class LVISEval:
    """Evaluate results against a data set.

    Parameters
    ----------
    lvis_gt : LVIS or str
        The data set, or its file.
    lvis_dt : LVISResults, str or list of dict
        Results, or their file, or the records themselves.
    iou_type : {"segm", "bbox"}

    Attributes
    ----------
    params : Params
        Change its fields before :meth:`evaluate`.
    eval_imgs : list of dict or None
        The outcome of each category, area range and image, in this order.
    eval : dict
        ``precision`` [T, R, K, A] and ``recall`` [T, K, A]; -1 for undefined. ``params``, ``counts``,
        ``date``, ``dt_pointers``.
    results : OrderedDict
        The 13 numbers, by name.
    ious : dict
        Overlaps [D, G] by image and category.
    freq_groups : list of list of int
        Positions of the rare, common and frequent categories.
    """

    def __init__(self, lvis_gt: Any, lvis_dt: Any, iou_type: Any = "segm") -> None:
        # Both sides may be paths or objects, as in lvis-api.
        self.logger = logging.getLogger("lvis.eval")
        if iou_type not in ("bbox", "segm"):
            raise ValueError(f"iou_type: {iou_type} is not supported.")
        if isinstance(lvis_gt, LVIS):
            self.lvis_gt = lvis_gt
        elif isinstance(lvis_gt, str):
            self.lvis_gt = LVIS(lvis_gt)
        else:
            raise TypeError(f"Unsupported type {lvis_gt} of lvis_gt.")
        # Results may also be a list of records.
        if isinstance(lvis_dt, LVISResults):
            self.lvis_dt = lvis_dt
        elif isinstance(lvis_dt, (str, list)):
            self.lvis_dt = LVISResults(self.lvis_gt, lvis_dt)
        else:
            raise TypeError(f"Unsupported type {lvis_dt} of lvis_dt.")
        # Attributes of the original; large ones are made when they are read.
        self._run: _core.CoreRun | None = None
        self._evaluated: Any = None
        self._made: dict[str, Any] = {"eval_imgs": defaultdict(list), "ious": {}}
        self.eval: Record = {}
        self._gts: Groups = defaultdict(list)
        self._dts: Groups = defaultdict(list)
        self.params = Params(iou_type=iou_type)
        self.results: OrderedDict[str, Any] = OrderedDict()
        self.params.img_ids = sorted(self.lvis_gt.get_img_ids())
        self.params.cat_ids = sorted(self.lvis_gt.get_cat_ids())

    @property
    def eval_imgs(self) -> Any:
        """The outcome of each category, area range and image."""
        if "eval_imgs" not in self._made and self._run is not None:
            with paused_collector():
                outcomes = eval_imgs(self._run.matched, self._evaluated)
                self._made["eval_imgs"] = [_renamed(outcome, _KEYS) for outcome in outcomes]
        return self._made["eval_imgs"]

    @eval_imgs.setter
    def eval_imgs(self, value: Any) -> None:
        self._made["eval_imgs"] = value

    @property
    def ious(self) -> Any:
        """Overlaps by image and category, [D, G] each; an empty list if a side is empty."""
        if "ious" not in self._made:
            with paused_collector():
                self._made["ious"] = {
                    (image, category): self._measure(image, category)
                    for image in self._evaluated.imgIds
                    for category in _core.categories_of(self._evaluated)
                }
        return self._made["ious"]

    @ious.setter
    def ious(self, value: Any) -> None:
        self._made["ious"] = value

    def _to_mask(self, anns: list[Record], lvis: Any) -> None:
        encode_annotations(lvis, anns, base=LVIS, method="ann_to_rle")

    def _prepare(self) -> None:
        """Choose objects with an area, and detections of classes verified in the image."""
        # Collect both sides as the original does.
        params = self.params
        cat_ids = params.cat_ids if params.cat_ids else None
        gts, dts = (
            side.load_anns(side.get_ann_ids(img_ids=params.img_ids, cat_ids=cat_ids))
            for side in (self.lvis_gt, self.lvis_dt)
        )
        if params.iou_type == "segm":
            self._to_mask(gts, self.lvis_gt)
            self._to_mask(dts, self.lvis_dt)
        # Objects by image and class.
        for gt in gts:
            gt.setdefault("ignore", 0)
            self._gts[gt["image_id"], gt["category_id"]].append(gt)
        # A class counts in an image if it has an object there, or is listed as absent.
        images = self.lvis_gt.load_imgs(ids=params.img_ids)
        verified = {image["id"]: set(image["neg_category_ids"]) for image in images}
        for gt in gts:
            verified[gt["image_id"]].add(gt["category_id"])
        self.img_nel = {image["id"]: image["not_exhaustive_category_ids"] for image in images}
        # Detections of other classes are dropped.
        for dt in dts:
            image, category = dt["image_id"], dt["category_id"]
            if category in verified[image]:
                self._dts[image, category].append(dt)
        self.freq_groups = self._prepare_freq_group()

    def _prepare_freq_group(self) -> list[list[int]]:
        """Return the positions of each group's categories."""
        groups: list[list[int]] = [[] for _ in self.params.img_count_lbl]
        for position, category in enumerate(self.lvis_gt.load_cats(self.params.cat_ids)):
            groups[self.params.img_count_lbl.index(category["frequency"])].append(position)
        return groups

    def evaluate(self) -> None:
        """Match every image and category; ``eval_imgs`` holds the outcome."""
        # Use the original's messages and order of steps.
        params = self.params
        self.logger.info("Running per image evaluation.")
        self.logger.info(f"Evaluate annotation type *{params.iou_type}*")
        params.img_ids = list(np.unique(params.img_ids))
        # Match everything with the core in one call, unless a subclass changed a step.
        self._run = None
        with paused_collector():
            self._prepare()
            self._evaluated = _spelled_as_pycocotools(params)
            if _core.is_plain(self, _REPLACED_METHODS):
                truths, detections = map(_core.Grouped.of, (self._gts, self._dts))
                self._run = _core.run(truths, detections, self._evaluated, not_exhaustive=self.img_nel)
        # Outcomes are made lazily; flags on annotations are set now, as in lvis-api.
        if self._run is not None:
            self._made = {}
            self._run.mark_ignored_truths()
            return
        # Otherwise go step by step, so that overridden methods are called.
        categories = _core.categories_of(self._evaluated)
        self.ious = {(i, k): self.compute_iou(i, k) for i in params.img_ids for k in categories}
        self.eval_imgs = [
            self.evaluate_img(image, category, area)
            for category in categories
            for area in params.area_rng
            for image in params.img_ids
        ]

    def _get_gt_dt(self, img_id: Any, cat_id: Any) -> tuple[list[Record], list[Record]]:
        """Return objects and detections of an image and category; without ``use_cats``, of all categories."""
        if self.params.use_cats:
            return self._gts[img_id, cat_id], self._dts[img_id, cat_id]
        gts, dts = (
            [record for category in self.params.cat_ids for record in groups[img_id, category]]
            for groups in (self._gts, self._dts)
        )
        return gts, dts

    def compute_iou(self, img_id: Any, cat_id: Any) -> Any:
        """Overlaps of an image's detections and objects of a category, [D, G], best detection first."""
        gts, dts = self._get_gt_dt(img_id, cat_id)
        if not gts and not dts:
            return []
        return _per_image.overlaps(gts, dts, _spelled_as_pycocotools(self.params), crowds=False)

    def _measure(self, img_id: Any, cat_id: Any) -> Any:
        """Return overlaps of an image and category as they were at the last ``evaluate``."""
        if self._run is None:
            return self.compute_iou(img_id, cat_id)
        gts, dts = self._run.measured(img_id, cat_id)
        return _per_image.overlaps(gts, dts, self._evaluated, crowds=False)

    def evaluate_img(self, img_id: Any, cat_id: Any, area_rng: Any) -> Record | None:
        """Match one image and category in one area range; an entry of ``eval_imgs``."""
        gts, dts = self._get_gt_dt(img_id, cat_id)
        if not gts and not dts:
            return None
        outcome = _per_image.evaluate_image(
            gts,
            dts,
            lambda: self.ious[img_id, cat_id] if "ious" in self._made else self._measure(img_id, cat_id),
            _spelled_as_pycocotools(self.params),
            {"image_id": img_id, "category_id": cat_id, "aRng": area_rng, "maxDet": _NO_CAP},
            crowds=False,
            not_exhaustive=self.img_nel,
        )
        return _renamed(outcome, _KEYS)

    def accumulate(self) -> None:
        """Turn the outcomes into precision and recall: ``eval``."""
        self.logger.info("Accumulating evaluation results.")
        lazy = "eval_imgs" not in self._made and self._run is not None
        if not lazy and not self.eval_imgs:
            self.logger.warning("Please run evaluate first.")
        # Outcomes that were neither read nor changed do not need to exist for accumulation.
        params = _spelled_as_pycocotools(self.params)
        arrays = None
        if lazy and self._run is not None and _same(params, self._evaluated):
            arrays = self._run.matched.arrays(params.recThrs)
        # Otherwise accumulate the outcomes, like lvis-api.
        if arrays is None:
            outcomes = [_renamed(outcome, _TO_PYCOCOTOOLS) for outcome in self.eval_imgs]
            # Pooled categories are one, -1.
            params.catIds = _core.categories_of(params)
            arrays = accumulate_images(outcomes, params, params)
        # Drop the axis of caps, which has length one.
        precision, recall = (np.ascontiguousarray(arrays[key][..., 0]) for key in ("precision", "recall"))
        T, R, K, A = precision.shape
        self.eval = _Eval(
            params=self.params,
            counts=[T, R, K, A],
            date=datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            precision=precision,
            recall=recall,
        )
        self.eval.made_from = self

    def _summarize(
        self, summary_type: Any, iou_thr: Any = None, area_rng: Any = "all", freq_group_idx: Any = None
    ) -> Any:
        """Return the mean of the defined values; -1 if all are undefined."""
        areas = [a for a, label in enumerate(self.params.area_rng_lbl) if label == area_rng]
        values = self.eval["precision" if summary_type == "ap" else "recall"]
        if iou_thr is not None:
            values = values[np.where(iou_thr == self.params.iou_thrs)[0]]
        if summary_type == "ap" and freq_group_idx is not None:
            values = values[:, :, self.freq_groups[freq_group_idx], areas]
        else:
            values = values[..., areas]
        defined = values[values > -1]
        return np.mean(defined) if len(defined) else -1

    def summarize(self) -> None:
        """Compute ``results``: the 13 numbers."""
        if not self.eval:
            raise RuntimeError("Please run accumulate() first.")
        sizes = {"s": "small", "m": "medium", "l": "large"}
        cap = f"@{self.params.max_dets}"
        self.results["AP"] = self._summarize("ap")
        for threshold in (50, 75):
            self.results[f"AP{threshold}"] = self._summarize("ap", iou_thr=threshold / 100)
        for letter, area in sizes.items():
            self.results[f"AP{letter}"] = self._summarize("ap", area_rng=area)
        for group, letter in enumerate("rcf"):
            self.results[f"AP{letter}"] = self._summarize("ap", freq_group_idx=group)
        self.results[f"AR{cap}"] = self._summarize("ar")
        for letter, area in sizes.items():
            self.results[f"AR{letter}{cap}"] = self._summarize("ar", area_rng=area)

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    def print_results(self) -> None:
        """Print a line for each of the ``results``."""
        thresholds = self.params.iou_thrs
        for key, value in self.results.items():
            title, kind = ("Average Precision", "(AP)") if "AP" in key else ("Average Recall", "(AR)")
            letter = key[2:3]
            iou = (
                f"{float(key[2:]) / 100:0.2f}"
                if letter.isdigit()
                else f"{thresholds[0]:0.2f}:{thresholds[-1]:0.2f}"
            )
            area = letter if letter and letter in "sml" else "all"
            group = letter if letter and letter in "rcf" else "all"
            print(
                f" {title:<18} {kind} @[ IoU={iou:<9} | area={area:>6s} | "
                f"maxDets={self.params.max_dets:>3d} catIds={group:>3s}] = {value:0.3f}"
            )

    def get_results(self) -> OrderedDict[str, Any]:
        """Return ``results``."""
        if not self.results:
            self.logger.warning("results is empty. Call run().")
        return self.results


class Params:
    """Parameters of an evaluation.

    Parameters
    ----------
    iou_type : {"segm", "bbox"}

    Attributes
    ----------
    img_ids, cat_ids : list
        Images and categories to evaluate.
    iou_thrs, rec_thrs : ndarray, [T] and [R]
    max_dets : int
        Limit per image; only used in the names of results, since detections are capped when they are loaded.
    area_rng, area_rng_lbl : list, [A]
        Square pixels, closed at both ends, and their names.
    use_cats : int
        0 pools all categories.
    img_count_lbl : list of str
        Letters of the frequency groups.
    """

    def __init__(self, iou_type: Any) -> None:
        self.img_ids: Any = []
        self.cat_ids: Any = []
        self.iou_thrs: Any = np.linspace(0.5, 0.95, 10)
        self.rec_thrs: Any = np.linspace(0.0, 1.0, 101)
        self.max_dets: Any = 300
        self.area_rng: list[list[float]] = [[0, 1e10], [0, 1024], [1024, 9216], [9216, 1e10]]
        self.area_rng_lbl = ["all", "small", "medium", "large"]
        self.use_cats: Any = 1
        self.img_count_lbl = ["r", "c", "f"]
        self.iou_type = iou_type


class _Eval(dict[str, Any]):
    """The dictionary ``eval``, which makes ``dt_pointers`` lazily."""

    made_from: LVISEval | None = None

    def __missing__(self, key: str) -> Any:
        if key != "dt_pointers" or self.made_from is None:
            raise KeyError(key)
        self[key] = _pointers(self.made_from.eval_imgs, self.made_from._evaluated)
        return self[key]


def _pointers(outcomes: Any, params: Any) -> dict[int, dict[int, dict[str, NDArray[Any]]]]:
    """Ids and outcomes of the detections of each category and area range, by descending score."""
    I, A = len(params.imgIds), len(params.areaRng)  # noqa: E741 - the axis of images
    pointers: dict[int, dict[int, dict[str, NDArray[Any]]]] = {}
    for k in range(len(_core.categories_of(params))):
        pointers[k] = {a: {} for a in range(A)}
        for a in range(A):
            # The outcomes of a category and range are one slice of the list.
            first = (k * A + a) * I
            present = [outcome for outcome in outcomes[first : first + I] if outcome is not None]
            if not present or not any((outcome["gt_ignore"] == 0).any() for outcome in present):
                continue
            # Sort the detections of all images by score; mergesort keeps ties in the order of the images, as
            # lvis-api does.
            order = np.argsort(
                -np.concatenate([outcome["dt_scores"] for outcome in present]), kind="mergesort"
            )
            # Flags [T, D] in that order: ignored detections are neither true nor false.
            matched, ignored = (
                np.concatenate([outcome[key] for outcome in present], axis=1)[:, order].astype(bool)
                for key in ("dt_matches", "dt_ignore")
            )
            pointers[k][a] = {
                "dt_ids": np.concatenate([outcome["dt_ids"] for outcome in present])[order],
                "tps": matched & ~ignored,
                "fps": ~matched & ~ignored,
            }
    return pointers


_TO_PYCOCOTOOLS = {ours: theirs for theirs, ours in _KEYS.items()}


def _renamed(outcome: Record | None, keys: dict[str, str]) -> Record | None:
    return None if outcome is None else {name: outcome[key] for key, name in keys.items()}


def _spelled_as_pycocotools(params: Any) -> SimpleNamespace:
    """Return the current parameters under the names that the shared code reads."""
    return SimpleNamespace(
        imgIds=copy.copy(params.img_ids),
        catIds=copy.copy(params.cat_ids),
        useCats=params.use_cats,
        iouType=params.iou_type,
        iouThrs=copy.copy(params.iou_thrs),
        recThrs=copy.copy(params.rec_thrs),
        areaRng=copy.copy(params.area_rng),
        maxDets=[_NO_CAP],
    )


def _same(params: Any, done: Any) -> bool:
    """Whether the parameters ask for exactly what ``evaluate`` did, in the same order."""
    return (
        len(params.iouThrs) == len(done.iouThrs)
        and bool(params.useCats) == bool(done.useCats)
        and list(params.imgIds) == list(done.imgIds)
        and list(params.catIds) == list(done.catIds)
        and len(params.areaRng) == len(done.areaRng)
    )


_REPLACED_METHODS = {name: getattr(LVISEval, name) for name in ("compute_iou", "evaluate_img", "_get_gt_dt")}
"""Methods that the core replaces."""
