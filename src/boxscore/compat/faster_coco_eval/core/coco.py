"""``faster_coco_eval.core.coco``: that library's ``COCO``, on the drop-in for pycocotools."""

from __future__ import annotations

import copy
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from boxscore.compat.pycocotools import coco as reference

__all__ = ["COCO"]

_log = logging.getLogger(__name__)


class COCO(reference.COCO):
    """A data set in COCO's format, from a file or from memory.

    Parameters
    ----------
    annotation_file : path, dict or list, optional
    use_deepcopy : bool
        Deep-copy data given in memory, instead of its first level only.
    print_function : callable
        Called with the text that pycocotools prints.
    """

    def __init__(
        self,
        annotation_file: Any = None,
        use_deepcopy: bool = False,
        print_function: Callable[..., Any] = _log.debug,
    ) -> None:
        self.print_function = print_function
        self.use_deepcopy = use_deepcopy
        self.annotation_file = annotation_file
        super().__init__()
        if annotation_file is None:
            return
        self._say("loading annotations into memory...")
        if not isinstance(annotation_file, (str, os.PathLike, dict, list)):
            raise TypeError(f"type {type(annotation_file)} is not supported")
        dataset: Any = self.load_json(annotation_file, use_deepcopy)
        assert type(dataset) is dict, f"annotation file format {type(dataset)} not supported"
        self.dataset = dataset
        self.createIndex()

    def _say(self, text: Any) -> None:
        self.print_function(text)

    def _empty(self) -> COCO:
        return COCO()

    @staticmethod
    def load_json(json_file: Any, use_deepcopy: bool | None = False) -> Any:
        """Return the content of a file, or a copy of the given data."""
        if isinstance(json_file, (str, os.PathLike)):
            return json.loads(Path(json_file).read_text())
        return copy.deepcopy(json_file) if use_deepcopy else json_file.copy()

    def createIndex(self) -> None:
        """Build the look-ups from ``dataset``; image ids become integers, as in that library."""
        for key, name in (("images", "id"), ("annotations", "image_id")):
            for record in self.dataset.get(key, []):
                if type(record[name]) is not int:
                    record[name] = int(record[name])
        super().createIndex()

    def loadRes(self, resFile: Any, min_score: float = 0.0) -> COCO:
        """Return results as a data set with this one's images and categories; an empty list is valid.

        Parameters
        ----------
        resFile : path, list of dict or ndarray [N, 7]
        min_score : float
            Results with lower scores are dropped.
        """
        # Read the argument like the original, with its messages.
        results = resFile
        if isinstance(resFile, (str, os.PathLike, dict, list)):
            results = self.load_json(resFile, self.use_deepcopy)
        elif type(resFile) is np.ndarray:
            results = self.loadNumpyAnnotations(resFile)
        else:
            raise TypeError(f"type {type(resFile)} is not supported")
        assert type(results) is list, "results in not an array of objects"
        if min_score != 0.0:
            results = [result for result in results if result.get("score", 1) >= min_score]
        # Accept an empty list, which pycocotools rejects.
        loaded: Any
        if results:
            loaded = super().loadRes(results)
        else:
            loaded = self._empty()
            loaded.dataset = {
                "info": reference.copied(self.dataset.get("info", {})),
                "images": list(self.dataset["images"]),
                "categories": reference.copied(self.dataset.get("categories", [])),
                "annotations": [],
            }
            loaded.createIndex()
        return loaded  # type: ignore[no-any-return]

    def getAnnIds(
        self, imgIds: Any = None, catIds: Any = None, areaRng: Any = None, iscrowd: Any = None
    ) -> list[Any]:
        """Return the ids of annotations that pass every filter; None passes all."""
        return super().getAnnIds(_given(imgIds), _given(catIds), _given(areaRng), iscrowd)

    def getCatIds(self, catNms: Any = None, supNms: Any = None, catIds: Any = None) -> list[Any]:
        """Return the ids of categories that pass every filter; None passes all."""
        return super().getCatIds(*map(_given, (catNms, supNms, catIds)))

    def getImgIds(self, imgIds: Any = None, catIds: Any = None) -> list[Any]:
        """Return the ids of images that pass every filter; None passes all."""
        return super().getImgIds(*map(_given, (imgIds, catIds)))

    def get_ann_ids(
        self, img_ids: Any = None, cat_ids: Any = None, area_rng: Any = None, iscrowd: Any = None
    ) -> list[Any]:
        """As :meth:`getAnnIds`."""
        return self.getAnnIds(img_ids, cat_ids, area_rng, iscrowd)

    def get_cat_ids(self, cat_names: Any = None, sup_names: Any = None, cat_ids: Any = None) -> list[Any]:
        """As :meth:`getCatIds`."""
        return self.getCatIds(cat_names, sup_names, cat_ids)

    def get_img_ids(self, img_ids: Any = None, cat_ids: Any = None) -> list[Any]:
        """As :meth:`getImgIds`."""
        return self.getImgIds(img_ids, cat_ids)

    def load_anns(self, ids: Any) -> Any:
        """As :meth:`loadAnns`."""
        return self.loadAnns(ids)

    def load_cats(self, ids: Any) -> Any:
        """As :meth:`loadCats`."""
        return self.loadCats(ids)

    def load_imgs(self, ids: Any) -> Any:
        """As :meth:`loadImgs`."""
        return self.loadImgs(ids)

    @property
    def img_ann_map(self) -> Any:
        """Annotations of each image."""
        return self.imgToAnns

    @property
    def cat_img_map(self) -> Any:
        """Image ids of each category, one for each annotation."""
        return self.catToImgs


def _given(value: Any) -> Any:
    return [] if value is None else value
