"""``lvis.results``: results in memory, with the data set's images and categories."""

from __future__ import annotations

import copy
import logging
from collections import defaultdict
from typing import Any

from boxscore._utils.memory import paused_collector
from boxscore.compat.lvis.lvis import LVIS, Record
from boxscore.compat.pycocotools import mask as mask_utils

__all__ = ["LVISResults"]


class LVISResults(LVIS):
    """Results of a data set.

    Parameters
    ----------
    lvis_gt : LVIS or str
        The data set, or its file.
    results : list of dict or str
        Results, or their file. The dictionaries are completed in place with ``id``, ``area`` and other
        missing keys; the first one decides whether boxes or masks define the area.
    max_dets : int
        Detections per image over all classes; negative for all.

    Raises
    ------
    AssertionError
        When the results are not a list, or one belongs to an image outside the data set.
    IndexError
        When the results are empty.
    """

    def __init__(self, lvis_gt: Any, results: Any, max_dets: Any = 300) -> None:
        if isinstance(lvis_gt, LVIS):
            # Do not copy annotations, which are replaced below.
            others = {key: value for key, value in lvis_gt.dataset.items() if key != "annotations"}
            copied = copy.deepcopy(others)
            self.dataset = {key: copied.get(key) for key in lvis_gt.dataset}
        elif isinstance(lvis_gt, str):
            self.dataset = self._load_json(lvis_gt)
        else:
            raise TypeError(f"Unsupported type {lvis_gt} of lvis_gt.")
        self.logger = logging.getLogger("lvis.results")
        # Complete the rows of a path or a list in place, like lvis-api.
        self.logger.info("Loading and preparing results.")
        if isinstance(results, str):
            anns = self._load_json(results)
        else:
            self.logger.warning("Assuming user provided the results in correct format.")
            anns = results
        assert isinstance(anns, list), "results is not a list."
        # Pause the garbage collector: millions of dictionaries without cycles would only slow it down.
        with paused_collector():
            if max_dets >= 0:
                anns = self.limit_dets_per_image(anns, max_dets)
            if "bbox" in anns[0]:
                _complete_boxes(anns)
            elif "segmentation" in anns[0]:
                _complete_masks(anns)
        # Reject results of unknown images, with lvis-api's message.
        self.dataset["annotations"] = anns
        self._create_index()
        assert {ann["image_id"] for ann in anns} <= self.imgs.keys(), (
            "Results do not correspond to current LVIS set."
        )

    def limit_dets_per_image(self, anns: list[Record], max_dets: Any) -> list[Record]:
        """Keep the best of each image above the limit; stable, images by first appearance."""
        by_image: defaultdict[Any, list[Record]] = defaultdict(list)
        for ann in anns:
            by_image[ann["image_id"]].append(ann)
        limited: list[Record] = []
        for of_image in by_image.values():
            if len(of_image) > max_dets:
                of_image = sorted(of_image, key=lambda ann: ann["score"], reverse=True)[:max_dets]
            limited += of_image
        return limited

    def get_top_results(self, img_id: Any, score_thrs: Any) -> list[Record]:
        """Return an image's results with higher scores."""
        return [
            ann for ann in self.load_anns(self.get_ann_ids(img_ids=[img_id])) if ann["score"] > score_thrs
        ]


def _complete_boxes(anns: list[Record]) -> None:
    for number, ann in enumerate(anns, 1):
        x1, y1, w, h = ann["bbox"]
        if "segmentation" not in ann:
            x2, y2 = x1 + w, y1 + h
            ann["segmentation"] = [[x1, y1, x1, y2, x2, y2, x2, y1]]
        ann["area"] = w * h
        ann["id"] = number


def _complete_masks(anns: list[Record]) -> None:
    for number, ann in enumerate(anns, 1):
        ann["area"] = mask_utils.area(ann["segmentation"])
        if "bbox" not in ann:
            ann["bbox"] = mask_utils.toBbox(ann["segmentation"])
        ann["id"] = number
