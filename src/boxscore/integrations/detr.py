"""The ``CocoEvaluator`` of torchvision's references, DETR, RT-DETR, D-FINE, DEIM and others.

Provides the five methods of that class, and ``coco_eval[iou_type].stats`` and ``.eval`` like pycocotools, to
the last bit. Predictions are stored as columns and evaluated in one pass.

Conventions
-----------
- Only images passed to ``update`` are evaluated, in the order of their ids.
- A repeated image, as from a sampler that fills up its last batch, counts one time.
- No framework is imported. Predictions are gathered with ``torch.distributed`` if torch is loaded.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from boxscore import Detections, Evaluation, GroundTruth, InputError, evaluate
from boxscore.compat.pycocotools import mask as run_lengths
from boxscore.compat.pycocotools.cocoeval import COCOeval
from boxscore.data.vocabulary import Categories, Images
from boxscore.evaluator import gather_with_torch
from boxscore.extensions.data_tools.invalid_rows import Invalid, checked, without_invalid
from boxscore.extensions.training.tensors import as_array

PROTOCOLS = {"bbox": "coco", "segm": "coco-segm", "keypoints": "coco-keypoints"}

Image = dict[str, Any]
"""Predictions of one image: arrays by key."""


class CocoEvaluator:
    """Evaluate predictions batch by batch, on one process or several.

    Parameters
    ----------
    coco_gt : COCO or GroundTruth
        The annotations: pycocotools' object, a drop-in, any object with their ``dataset``, or a table.
    iou_types : sequence of {"bbox", "segm", "keypoints"}
    invalid : {"error", "drop", "false_positive"}, default "false_positive"
        What to do with a prediction that is NaN or infinite, or a box that ends before it begins, as in
        :class:`boxscore.Evaluator`; :meth:`accumulate` warns with their number and an image.

    Attributes
    ----------
    coco_eval : dict of str to COCOeval
        By IoU type. Thresholds, areas and caps of its ``params`` may be changed before :meth:`accumulate`;
        ``stats`` is filled by :meth:`summarize`, ``eval`` by :meth:`accumulate`.
    img_ids : list
        The images seen so far.
    """

    boxes_of_keypoints: bool = False
    """Whether a prediction's own box defines its size, as in results files; else the box around its
    keypoints."""

    def __init__(
        self, coco_gt: Any, iou_types: Sequence[str], *, invalid: Invalid = "false_positive"
    ) -> None:
        for iou_type in iou_types:
            if iou_type not in PROTOCOLS:
                raise ValueError(f"Unknown iou type {iou_type}")
        self.coco_gt, self.iou_types, self.invalid = coco_gt, list(iou_types), checked(invalid)
        self._truth: dict[str, GroundTruth] = {}
        self.cleanup()

    def cleanup(self) -> None:
        """Clear all images, before the next epoch."""
        self.coco_eval: dict[str, Any] = {kind: COCOeval(iouType=kind) for kind in self.iou_types}
        self._images: dict[Any, Image] = {}
        self._evaluations: dict[str, Evaluation] = {}

    @property
    def img_ids(self) -> list[Any]:
        """The images seen so far; after :meth:`synchronize_between_processes`, those of all processes."""
        return list(self._images)

    def update(self, predictions: Mapping[Any, Mapping[str, Any]]) -> None:
        """Add a batch.

        Parameters
        ----------
        predictions : mapping of image id to mapping
            ``boxes`` [N, 4] as ``x1, y1, x2, y2``, ``masks`` [N, 1, H, W] above 0.5 or RLEs, or ``keypoints``
            [N, J, 3]; ``labels`` [N], ids of categories; ``scores`` [N]. Empty without predictions.
        """
        for identifier, given in predictions.items():
            number = identifier.item() if hasattr(identifier, "item") else identifier
            if number not in self._images:
                self._images[number] = self._columns(given) if len(given) else {}

    def synchronize_between_processes(self) -> None:
        """Collect the predictions of all processes."""
        shares = gather_with_torch(self._images) if "torch" in sys.modules else [self._images]
        self._images = {
            identifier: image for share in reversed(shares) for identifier, image in share.items()
        }

    def accumulate(self) -> None:
        """Evaluate; fill ``coco_eval[iou_type].eval``."""
        for iou_type in self.iou_types:
            made = self._evaluations[iou_type] = self._evaluated(iou_type)
            arrays = {name: np.nan_to_num(array, nan=-1.0) for name, array in made.arrays().items()}
            params = self.coco_eval[iou_type].params
            self.coco_eval[iou_type].eval = {
                "params": params,
                "counts": list(arrays["precision"].shape),
                "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
                **arrays,
            }

    def summarize(self) -> None:
        """Print pycocotools' table of each IoU type; fill ``coco_eval[iou_type].stats``."""
        for iou_type, evaluation in self.coco_eval.items():
            print(f"IoU metric: {iou_type}")
            evaluation.summarize()

    def evaluation(self, iou_type: str | None = None) -> Evaluation:
        """Return boxscore's evaluation, with every table, diagnostic and report.

        Parameters
        ----------
        iou_type : {"bbox", "segm", "keypoints"}, optional
            By default the first.

        Returns
        -------
        Evaluation

        Raises
        ------
        InputError
            When :meth:`accumulate` was not called.
        """
        chosen = iou_type or self.iou_types[0]
        if chosen not in self._evaluations:
            raise InputError("an evaluation", "come after accumulate()", got=f"none of {chosen!r}")
        return self._evaluations[chosen]

    def mean(
        self,
        iou_type: str,
        name: str = "precision",
        *,
        iou: float | None = None,
        area: int = 0,
        cap: int = -1,
        category: int | None = None,
    ) -> float:
        """Return the mean of the defined values of an array of ``eval``, like pycocotools; NaN without any.

        Parameters
        ----------
        iou_type : {"bbox", "segm", "keypoints"}
        name : {"precision", "recall"}, default "precision"
        iou : float, optional
            One threshold; by default all.
        area, cap : int, default 0, -1
            Positions of the area range and of the limit of detections.
        category : int, optional
            Position of one class in ``params.catIds``; by default all.

        Returns
        -------
        float
        """
        evaluation = self.coco_eval[iou_type]
        values = evaluation.eval[name][..., area, cap]
        if iou is not None:
            values = values[np.asarray(evaluation.params.iouThrs) == iou]
        if category is not None:
            values = values[..., category]
        defined = values[values > -1]
        return float(np.mean(defined)) if defined.size else float("nan")

    def _columns(self, given: Mapping[str, Any]) -> Image:
        """Return one image's predictions as arrays."""
        image = {key: as_array(given[key], key) for key in ("labels", "scores")}
        if "bbox" in self.iou_types or self.boxes_of_keypoints:
            boxes = as_array(given["boxes"], "boxes").reshape(-1, 4)
            image["boxes"] = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])  # in the given precision
        if "segm" in self.iou_types:
            image["masks"] = _codes(given["masks"])
        if "keypoints" in self.iou_types:
            image["keypoints"] = as_array(given["keypoints"], "keypoints")
        return image

    def _evaluated(self, iou_type: str) -> Evaluation:
        # Sort images in ascending order, like pycocotools; empty ones have zero rows.
        params = self.coco_eval[iou_type].params
        if not params.useCats:
            raise InputError("useCats", "be 1", got="0", cause="boxscore.init_as_pycocotools() has it")
        truth = self._ground_truth(iou_type)
        ids = sorted(self._images)
        images = [(identifier, self._images[identifier]) for identifier in ids if self._images[identifier]]
        params.imgIds, params.catIds = ids, params.catIds or truth.categories.ids.tolist()
        # Join the shapes of all images into one column.
        counts = [len(image["labels"]) for _, image in images]
        key = {"bbox": "boxes", "segm": "masks", "keypoints": "keypoints"}[iou_type]
        shapes: Any = _joined(image[key] for _, image in images)
        if iou_type == "segm":
            shapes = [code for _, image in images for code in image["masks"]]
        given: dict[str, Any] = {"boxes": None, key: shapes} if images else {"boxes": np.empty((0, 4))}
        # Keep given boxes next to keypoints.
        if iou_type == "keypoints" and self.boxes_of_keypoints:
            given["boxes"] = _joined(image["boxes"] for _, image in images).reshape(-1, 4)
        given["image_ids"] = np.repeat(np.array([identifier for identifier, _ in images]), counts)
        given["category_ids"] = _joined(image["labels"] for _, image in images).astype(np.int64)
        given["scores"] = _joined(image["scores"] for _, image in images)
        given = without_invalid(given, given["image_ids"], invalid=self.invalid)
        found = Detections.from_arrays(**given, box_format="xywh", source="predictions")
        # Turn changed parameters into fields of the protocol.
        protocol: dict[str, Any] = {
            "extends": PROTOCOLS[iou_type],
            "name": PROTOCOLS[iou_type],
            "matching": {"iou_thresholds": list(params.iouThrs), "max_detections": list(params.maxDets)},
            "ignore": {"area_ranges": dict(zip(params.areaRngLbl, params.areaRng, strict=True))},
            "ap": {"recall_points": list(params.recThrs)},
        }
        if iou_type == "keypoints":
            protocol["keypoints"] = {"sigmas": list(params.kpt_oks_sigmas), "names": [], "skeleton": []}
        return evaluate(truth, found, protocol=protocol, images=ids, classes=params.catIds, digest=False)

    def _ground_truth(self, iou_type: str) -> GroundTruth:
        """Return the annotations as a cached table, with the columns that the IoU type needs."""
        given: Any = self.coco_gt
        if isinstance(given, GroundTruth):
            return given
        if iou_type not in self._truth:
            self._truth[iou_type] = _table(given.dataset, iou_type)
        return self._truth[iou_type]


def _table(data: Mapping[str, Any], iou_type: str) -> GroundTruth:
    """Make a table from the content of a COCO file."""
    # The content is in memory already, so do not write and read it again.
    images, rows = data["images"], data.get("annotations") or []
    categories = data.get("categories") or [{"id": number} for number in {row["category_id"] for row in rows}]
    sizes = np.array([[image.get(side, np.nan) for side in ("width", "height")] for image in images])
    boxes = [row["bbox"] for row in rows]
    given: dict[str, Any] = {}
    if iou_type == "segm":
        given["masks"] = [row["segmentation"] for row in rows]
    # Objects without keypoints get zeros, which are unlabeled.
    if iou_type == "keypoints":
        length = max((len(row.get("keypoints") or ()) for row in rows), default=0)
        points = [row.get("keypoints") or [0] * length for row in rows]
        given["keypoints"] = np.array(points, dtype=np.float64).reshape(len(rows), -1, 3)
        given["keypoint_count"] = [row.get("num_keypoints", 0) for row in rows]
    # Missing keys have pycocotools' defaults.
    return GroundTruth.from_arrays(
        [row["image_id"] for row in rows],
        [row["category_id"] for row in rows],
        np.array(boxes, dtype=np.float64).reshape(-1, 4),
        box_format="xywh",
        area=[
            row.get("area", width * height) for row, (_, _, width, height) in zip(rows, boxes, strict=True)
        ],
        crowd=[bool(row.get("iscrowd", 0)) for row in rows],
        ids=[row.get("id", number) for number, row in enumerate(rows, 1)],
        images=Images.build([image["id"] for image in images], sizes=sizes.reshape(-1, 2)),
        categories=Categories.build(
            [category["id"] for category in categories],
            names=[str(category.get("name", category["id"])) for category in categories],
        ),
        source="annotations",
        **given,
    )


def _codes(masks: Any) -> Any:
    """Encode masks [N, 1, H, W]; RLEs are unchanged."""
    if isinstance(masks, (list, tuple)) and all(isinstance(mask, Mapping) for mask in masks):
        return list(masks)
    pixels = np.asfortranarray((as_array(masks, "masks")[:, 0] > 0.5).transpose(1, 2, 0), dtype=np.uint8)
    return run_lengths.encode(pixels) if pixels.size else []


def _joined(columns: Iterable[Any]) -> Any:
    """Concatenate the arrays of images, if any."""
    given = list(columns)
    return np.concatenate(given) if given else np.empty(0)
