"""``pycocotools.coco``: a COCO data set or results file in memory, and its look-ups.

Goal
----
The class ``COCO`` with the reference's attributes, methods, defaults, printed lines and exceptions.

Conventions
-----------
Annotations are the file's dictionaries: shared, never copied, and modified where the reference does.
"""

from __future__ import annotations

import copy
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.request import urlretrieve

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.memory import paused_collector
from boxscore.compat.pycocotools import mask as maskUtils

Record = dict[str, Any]


def _isArrayLike(obj: Any) -> bool:
    return hasattr(obj, "__iter__") and hasattr(obj, "__len__")


def _listed(value: Any) -> Any:
    return value if _isArrayLike(value) else [value]


_FIXED = frozenset(
    {bool, bytes, float, int, str, type(None), np.bool_, np.int32, np.int64, np.float32, np.float64}
)
"""Types of values that ``copy.deepcopy`` returns unchanged, or an equal one."""


def copied(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Return ``copy.deepcopy`` of a value; fast for records of numbers and texts, and for lists of these."""
    if _is_flat(value):
        return value.copy()
    if type(value) is list and all(map(_is_flat, value)) and len(set(map(id, value))) == len(value):
        return [record.copy() for record in value]
    return copy.deepcopy(value, memo)


def _is_flat(value: Any) -> bool:
    """Whether a value is a list or dictionary of values that cannot change."""
    kind = type(value)
    return kind in (list, dict) and _FIXED.issuperset(map(type, value if kind is list else value.values()))


def _member_of(values: Any) -> Callable[[Any], bool]:
    """Return a fast ``in``: by hash if that gives the same answer."""
    plain = isinstance(values, (list, tuple, np.ndarray))
    if plain and all(isinstance(value, (int, str, np.integer)) for value in values):
        return frozenset(values).__contains__
    return lambda value: value in values


def _read_json(path: Any) -> Any:
    """Read a JSON file whole."""
    with paused_collector(), Path(path).open() as file:
        return json.load(file)


class COCO:
    """A data set in COCO's format.

    Parameters
    ----------
    annotation_file : str or Path, optional
        A JSON file; without one the object is empty: set ``dataset`` and call :meth:`createIndex`.

    Attributes
    ----------
    dataset : dict
        The file's content.
    anns, cats, imgs : dict
        Records by id; the last record of a repeated id.
    imgToAnns, catToImgs : defaultdict of list
        Annotations of an image, and image ids of a category (one for each annotation).
    """

    def __init__(self, annotation_file: Any = None) -> None:
        self.dataset: Record = {}
        self.anns: dict[Any, Record] = {}
        self.cats: dict[Any, Record] = {}
        self.imgs: dict[Any, Record] = {}
        self.imgToAnns: defaultdict[Any, list[Record]] = defaultdict(list)
        self.catToImgs: defaultdict[Any, list[Any]] = defaultdict(list)
        if annotation_file is None:
            return
        self._say("loading annotations into memory...")
        tic = time.time()
        dataset = _read_json(annotation_file)
        assert type(dataset) is dict, f"annotation file format {type(dataset)} not supported"
        self._say(f"Done (t={time.time() - tic:0.2f}s)")
        self.dataset = dataset
        self.createIndex()

    def _say(self, text: Any) -> None:
        print(text)

    def _empty(self) -> COCO:
        """Return the data set that :meth:`loadRes` fills."""
        return COCO()

    def createIndex(self) -> None:
        """Build ``anns``, ``cats``, ``imgs``, ``imgToAnns`` and ``catToImgs`` from ``dataset``."""
        self._say("creating index...")
        # One pass for each index, with keys in pycocotools' order; a repeated id keeps the last record.
        annotations = self.dataset.get("annotations", [])
        by_image: defaultdict[Any, list[Record]] = defaultdict(list)
        by_category: defaultdict[Any, list[Any]] = defaultdict(list)
        with paused_collector():
            for annotation in annotations:
                by_image[annotation["image_id"]].append(annotation)
            if "categories" in self.dataset:
                for annotation in annotations:
                    by_category[annotation["category_id"]].append(annotation["image_id"])
            # A dictionary keeps the last record of an id.
            tables = [
                {record["id"]: record for record in self.dataset.get(key, [])}
                for key in ("annotations", "categories", "images")
            ]
        self._say("index created!")
        self.anns, self.cats, self.imgs = tables
        self.imgToAnns, self.catToImgs = by_image, by_category

    def info(self) -> None:
        """Print the ``info`` of the file."""
        for key, value in self.dataset["info"].items():
            self._say(f"{key}: {value}")

    def getAnnIds(
        self, imgIds: Any = [], catIds: Any = [], areaRng: Any = [], iscrowd: Any = None
    ) -> list[Any]:
        """Return the ids of annotations that pass every given filter.

        Parameters
        ----------
        imgIds, catIds : id or sequence of ids
        areaRng : sequence of two numbers
            Open at both ends.
        iscrowd : bool, optional
        """
        imgIds, catIds = _listed(imgIds), _listed(catIds)
        groups: Any
        if len(imgIds):
            groups = (self.imgToAnns[i] for i in imgIds if i in self.imgToAnns)
        else:
            groups = (self.dataset["annotations"],)
        if isinstance(catIds, (list, tuple)) and len(catIds) == 1:  # torchmetrics goes class by class
            (wanted,) = catIds
            anns = [ann for group in groups for ann in group if ann["category_id"] == wanted]
        else:
            anns = list(itertools.chain.from_iterable(groups))
            if len(catIds):
                chosen = map(_member_of(catIds), map(itemgetter("category_id"), anns))
                anns = list(itertools.compress(anns, chosen))
        if len(areaRng):
            anns = [ann for ann in anns if areaRng[0] < ann["area"] < areaRng[1]]
        if iscrowd is not None:
            anns = [ann for ann in anns if ann["iscrowd"] == iscrowd]
        return list(map(itemgetter("id"), anns))

    def getCatIds(self, catNms: Any = [], supNms: Any = [], catIds: Any = []) -> list[Any]:
        """Return the ids of categories that pass every filter: names, supercategories, ids."""
        cats = self.dataset["categories"]
        for key, given in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            values = _listed(given)
            if len(values):
                cats = [cat for cat in cats if cat[key] in values]
        return [cat["id"] for cat in cats]

    def getImgIds(self, imgIds: Any = [], catIds: Any = []) -> list[Any]:
        """Return the ids of images: all, the given ones, or those of them that have every given category."""
        imgIds, catIds = _listed(imgIds), _listed(catIds)
        if len(imgIds) == len(catIds) == 0:
            return list(self.imgs)
        ids = set(imgIds)
        for position, category in enumerate(catIds):
            of_category = set(self.catToImgs[category])
            if position == 0 and not ids:
                ids = of_category
            else:
                ids &= of_category
        return list(ids)

    def loadAnns(self, ids: Any = []) -> Any:
        """Return the annotations with these ids; a list also for one id."""
        return _records(self.anns, ids)

    def loadCats(self, ids: Any = []) -> Any:
        """Return the categories with these ids; a list also for one id."""
        return _records(self.cats, ids)

    def loadImgs(self, ids: Any = []) -> Any:
        """Return the images with these ids; a list also for one id."""
        return _records(self.imgs, ids)

    def showAnns(self, anns: list[Record], draw_bbox: bool = False) -> Any:
        """Draw annotations on the current axes of matplotlib, or print their captions."""
        if len(anns) == 0:
            return 0
        if "segmentation" in anns[0] or "keypoints" in anns[0]:
            from boxscore.compat.pycocotools._draw import draw_annotations

            draw_annotations(anns, self.imgs, self.loadCats, draw_bbox=draw_bbox)
        elif "caption" in anns[0]:
            for ann in anns:
                self._say(ann["caption"])
        else:
            raise Exception("datasetType not supported")
        return None

    def loadRes(self, resFile: Any) -> COCO:
        """Return results as a data set with this one's images and categories.

        Parameters
        ----------
        resFile : str, list of dict or ndarray [N, 7]
            The dictionaries of a list are completed in place with ``id``, ``area``, ``iscrowd`` and other
            keys of their kind; the first one decides the kind.

        Raises
        ------
        AssertionError
            When a result belongs to an image outside this data set.
        IndexError
            When the results are empty.
        """
        # Share images and copy categories, like pycocotools.
        res = self._empty()
        res.dataset["info"] = copied(self.dataset.get("info", {}))
        res.dataset["images"] = list(self.dataset["images"])
        self._say("Loading and preparing results...")
        tic = time.time()
        # Read a path or an array; a list is completed in place.
        if type(resFile) is str:
            anns = _read_json(resFile)
        elif type(resFile) is np.ndarray:
            anns = self.loadNumpyAnnotations(resFile)
        else:
            anns = resFile
        assert type(anns) is list, "results in not an array of objects"
        # Reject results of other images, found by a set of ids.
        of_images = {ann["image_id"] for ann in anns}
        known = set(self.getImgIds())
        assert of_images <= known, _of_other_images(of_images - known, len(of_images), known)
        first = anns[0]
        # The first result decides the kind, and so the keys to complete.
        with paused_collector():
            if "caption" in first:
                res.dataset["images"] = [img for img in res.dataset["images"] if img["id"] in of_images]
                _number(anns)
            else:
                for key, complete in _COMPLETED:
                    if key in first and not (key == "bbox" and first["bbox"] == []):
                        res.dataset["categories"] = copied(self.dataset["categories"])
                        complete(anns)
                        break
        self._say(f"DONE (t={time.time() - tic:0.2f}s)")
        # Keep the caller's records, completed in place like in pycocotools.
        res.dataset["annotations"] = anns
        res.createIndex()
        return res

    def download(self, tarDir: Any = None, imgIds: Any = []) -> Any:
        """Download images from their ``coco_url`` into a folder; existing files are kept."""
        if tarDir is None:
            self._say("Please specify target directory")
            return -1
        images = self.imgs.values() if len(imgIds) == 0 else self.loadImgs(imgIds)
        folder = Path(tarDir)
        folder.mkdir(parents=True, exist_ok=True)
        for number, image in enumerate(images):
            tic = time.time()
            target = folder / image["file_name"]
            if not target.exists():
                urlretrieve(image["coco_url"], str(target))
            self._say(f"downloaded {number}/{len(images)} images (t={time.time() - tic:0.1f}s)")
        return None

    def loadNumpyAnnotations(self, data: NDArray[Any]) -> list[Record]:
        """Turn rows of image id, x, y, w, h, score, category id [N, 7] into results."""
        self._say("Converting ndarray to lists...")
        assert type(data) is np.ndarray
        self._say(data.shape)
        assert data.shape[1] == 7
        results = []
        for number, row in enumerate(data):
            if number % 1_000_000 == 0:
                self._say(f"{number}/{len(data)}")
            image, x, y, w, h, score, category = row
            results.append(
                {"image_id": int(image), "bbox": [x, y, w, h], "score": score, "category_id": int(category)}
            )
        return results

    def annToRLE(self, ann: Record) -> Any:
        """Return an annotation's mask, in any form, as compressed RLE."""
        return rle_of(ann, self.imgs[ann["image_id"]])

    def annToMask(self, ann: Record) -> NDArray[np.uint8]:
        """Return an annotation's mask [h, w]."""
        return maskUtils.decode(self.annToRLE(ann))


def rle_of(ann: Record, image: Record) -> Any:
    """Return the mask of an annotation of an image as compressed RLE."""
    height, width = image["height"], image["width"]
    segmentation = ann["segmentation"]
    if type(segmentation) is list:  # polygons, one per part
        return maskUtils.merge(maskUtils.frPyObjects(segmentation, height, width))
    if type(segmentation["counts"]) is list:
        return maskUtils.frPyObjects(segmentation, height, width)
    return segmentation


def _records(table: dict[Any, Record], ids: Any) -> list[Record] | None:
    if _isArrayLike(ids):
        return [table[identifier] for identifier in ids]
    return [table[ids]] if type(ids) is int else None


def _of_other_images(unknown: set[Any], count: int, known: set[Any]) -> str:
    """List image ids that are not in the data set, after the reference's sentence."""
    first = "Results do not correspond to current coco set"
    example = min(unknown, key=str)
    text = (
        f"{first}: {len(unknown)} of {count} image ids are not among those of the images, such as {example!r}"
    )
    same = next((identifier for identifier in known if str(identifier) == str(example)), None)
    if same is None:
        return text
    return f"{text}, which is {same!r} there; write image_id in the results as {type(same).__name__}"


def _number(anns: list[Record]) -> None:
    for number, ann in enumerate(anns, 1):
        ann["id"] = number


def _complete_boxes(anns: list[Record]) -> None:
    for number, ann in enumerate(anns, 1):
        box = ann["bbox"]
        x1, y1, w, h = box[0], box[1], box[2], box[3]
        if "segmentation" not in ann:
            x2, y2 = x1 + w, y1 + h
            ann["segmentation"] = [[x1, y1, x1, y2, x2, y2, x2, y1]]
        ann["area"] = w * h
        ann["id"] = number
        ann["iscrowd"] = 0


def _complete_masks(anns: list[Record]) -> None:
    for number, ann in enumerate(anns, 1):
        ann["area"] = maskUtils.area(ann["segmentation"])
        if "bbox" not in ann:
            ann["bbox"] = maskUtils.toBbox(ann["segmentation"])
        ann["id"] = number
        ann["iscrowd"] = 0


def _complete_keypoints(anns: list[Record]) -> None:
    for number, ann in enumerate(anns, 1):
        x, y = ann["keypoints"][0::3], ann["keypoints"][1::3]
        x0, y0 = np.min(x), np.min(y)
        w, h = np.max(x) - x0, np.max(y) - y0
        ann["area"] = w * h
        ann["id"] = number
        ann["bbox"] = [x0, y0, w, h]


_COMPLETED = (
    ("bbox", _complete_boxes),
    ("segmentation", _complete_masks),
    ("keypoints", _complete_keypoints),
)
"""The function that completes results, by the first of these keys in the first result."""
