"""``lvis.lvis``: an LVIS data set in memory, and its look-ups."""

from __future__ import annotations

import logging
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.request import urlretrieve

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.memory import paused_collector
from boxscore.compat.pycocotools import mask as mask_utils
from boxscore.compat.pycocotools.coco import _read_json, rle_of

__all__ = ["LVIS"]

Record = dict[str, Any]


class LVIS:
    """A data set in LVIS's format.

    Parameters
    ----------
    annotation_path : str
        A JSON file.

    Attributes
    ----------
    dataset : dict
        The file's content.
    anns, cats, imgs : dict
        Records by id; the last record of a repeated id.
    img_ann_map, cat_img_map : defaultdict of list
        Annotations of an image, and image ids of a category (one for each annotation).
    """

    def __init__(self, annotation_path: Any) -> None:
        self.logger = logging.getLogger("lvis.lvis")
        self.logger.info("Loading annotations.")
        self.dataset: Any = self._load_json(annotation_path)
        assert type(self.dataset) is dict, f"Annotation file format {type(self.dataset)} not supported."
        self._create_index()

    def _load_json(self, path: Any) -> Any:
        return _read_json(path)

    def _create_index(self) -> None:
        """Build the look-ups from ``dataset``."""
        self.logger.info("Creating index.")
        self.img_ann_map: defaultdict[Any, list[Record]] = defaultdict(list)
        self.cat_img_map: defaultdict[Any, list[Any]] = defaultdict(list)
        annotations = self.dataset["annotations"]
        with paused_collector():
            for annotation in annotations:
                self.img_ann_map[annotation["image_id"]].append(annotation)
            self.anns, self.imgs, self.cats = (
                {record["id"]: record for record in self.dataset[key]}
                for key in ("annotations", "images", "categories")
            )
            for annotation in annotations:
                self.cat_img_map[annotation["category_id"]].append(annotation["image_id"])
        self.logger.info("Index created.")

    def get_ann_ids(self, img_ids: Any = None, cat_ids: Any = None, area_rng: Any = None) -> list[Any]:
        """Return ids of annotations of images, of categories, and with an area inside an open range.

        With ``cat_ids`` the default range is 0 to infinity: annotations without area are left out.
        """
        if img_ids is None:
            chosen = self.dataset["annotations"]
        else:
            chosen = [record for image in img_ids for record in self.img_ann_map[image]]
        if cat_ids is None and area_rng is None:
            return [record["id"] for record in chosen]
        wanted = set(cat_ids)
        low, high = (0, float("inf")) if area_rng is None else (area_rng[0], area_rng[1])
        return [
            record["id"]
            for record in chosen
            if record["category_id"] in wanted and record["area"] > low and record["area"] < high
        ]

    def get_cat_ids(self) -> list[Any]:
        """Return the ids of all categories."""
        return list(self.cats)

    def get_img_ids(self) -> list[Any]:
        """Return the ids of all images."""
        return list(self.imgs)

    def _load_helper(self, _dict: dict[Any, Record], ids: Any) -> list[Record]:
        return list(_dict.values()) if ids is None else [_dict[identifier] for identifier in ids]

    def load_anns(self, ids: Any = None) -> list[Record]:
        """Return annotations by id; all without ids."""
        return self._load_helper(self.anns, ids)

    def load_cats(self, ids: Any) -> list[Record]:
        """Return categories by id; all for None."""
        return self._load_helper(self.cats, ids)

    def load_imgs(self, ids: Any) -> list[Record]:
        """Return images by id; all for None."""
        return self._load_helper(self.imgs, ids)

    def download(self, save_dir: Any, img_ids: Any = None) -> None:
        """Download images from their ``coco_url`` into a folder; existing files are kept."""
        images = self.load_imgs(img_ids)
        folder = Path(save_dir)
        folder.mkdir(parents=True, exist_ok=True)
        for image in images:
            target = folder / image["coco_url"].split("/")[-1]
            if not target.exists():
                urlretrieve(image["coco_url"], str(target))

    def ann_to_rle(self, ann: Record) -> Any:
        """Return an annotation's mask, in any form, as compressed RLE."""
        return rle_of(ann, self.imgs[ann["image_id"]])

    def ann_to_mask(self, ann: Record) -> NDArray[np.uint8]:
        """Return an annotation's mask [h, w]."""
        return mask_utils.decode(self.ann_to_rle(ann))
