"""The ``CocoEvaluator`` of torchvision's references, DETR, RT-DETR, D-FINE, DEIM and others.

Goal
----
The five methods of that class, and ``coco_eval[iou_type].stats`` and ``.eval`` as pycocotools has them, to
the last bit: predictions are stored as columns, and evaluated once.

Conventions
-----------
- The images that were given to ``update`` are evaluated, in the order of their ids, and no others.
- An image that comes twice, as from a sampler that fills up its last batch, counts once.
- No framework is imported. Predictions are gathered with ``torch.distributed`` where torch is loaded.
"""

from __future__ import annotations

import datetime
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boxscore import Detections, Evaluation, InputError, evaluate, load_ground_truth
from boxscore.compat.pycocotools import mask as run_lengths
from boxscore.compat.pycocotools.cocoeval import COCOeval
from boxscore.data.tensors import as_array
from boxscore.evaluator import gather_with_torch

PROTOCOLS = {"bbox": "coco", "segm": "coco-segm", "keypoints": "coco-keypoints"}

UNREAD = {"bbox": {"segmentation", "keypoints"}, "segm": {"keypoints"}, "keypoints": {"segmentation"}}
"""Columns of annotations that an IoU type does not need."""

Image = dict[str, Any]
"""One image's predictions: arrays by key."""


class CocoEvaluator:
    """Evaluate predictions batch by batch, on one process or several.

    Parameters
    ----------
    coco_gt : COCO
        The annotations: pycocotools' object, a drop-in, or anything with their ``dataset``.
    iou_types : sequence of {"bbox", "segm", "keypoints"}

    Attributes
    ----------
    coco_eval : dict of str to COCOeval
        By IoU type. Thresholds, areas and caps of its ``params`` may be changed before :meth:`accumulate`;
        ``stats`` is filled by :meth:`summarize`, ``eval`` by :meth:`accumulate`.
    img_ids : list
        The images that were seen.
    """

    def __init__(self, coco_gt: Any, iou_types: Sequence[str]) -> None:
        for iou_type in iou_types:
            if iou_type not in PROTOCOLS:
                raise ValueError(f"Unknown iou type {iou_type}")
        self.coco_gt, self.iou_types = coco_gt, list(iou_types)
        self._truth: dict[str, Any] = {}
        self.cleanup()

    def cleanup(self) -> None:
        """Forget every image, before the next epoch."""
        self.coco_eval: dict[str, Any] = {kind: COCOeval(iouType=kind) for kind in self.iou_types}
        self._images: dict[Any, Image] = {}
        self._evaluations: dict[str, Evaluation] = {}

    @property
    def img_ids(self) -> list[Any]:
        """The images that were seen, those of all processes after :meth:`synchronize_between_processes`."""
        return list(self._images)

    def update(self, predictions: Mapping[Any, Mapping[str, Any]]) -> None:
        """Add a batch.

        Parameters
        ----------
        predictions : mapping of image id to mapping
            ``boxes`` [N, 4] as ``x1, y1, x2, y2``, ``masks`` [N, 1, H, W] above 0.5, or ``keypoints``
            [N, J, 3]; ``labels`` [N], ids of categories; ``scores`` [N]. Empty where there is none.
        """
        for identifier, given in predictions.items():
            number = identifier.item() if hasattr(identifier, "item") else identifier
            if number not in self._images:
                self._images[number] = self._columns(given) if len(given) else {}

    def synchronize_between_processes(self) -> None:
        """Put the predictions of all processes together."""
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
        """Return boxscore's evaluation, of which every table, diagnostic and report can be made.

        Parameters
        ----------
        iou_type : {"bbox", "segm", "keypoints"}, optional
            The first when not given.

        Returns
        -------
        Evaluation

        Raises
        ------
        InputError
            When nothing was accumulated.
        """
        chosen = iou_type or self.iou_types[0]
        if chosen not in self._evaluations:
            raise InputError("an evaluation", "come after accumulate()", got=f"none of {chosen!r}")
        return self._evaluations[chosen]

    def _columns(self, given: Mapping[str, Any]) -> Image:
        """Return one image's predictions as arrays."""
        image = {key: as_array(given[key], key) for key in ("labels", "scores")}
        if "bbox" in self.iou_types:
            boxes = as_array(given["boxes"], "boxes").reshape(-1, 4)
            image["boxes"] = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])  # in their own precision
        if "segm" in self.iou_types:
            pixels = np.asfortranarray(
                (as_array(given["masks"], "masks")[:, 0] > 0.5).transpose(1, 2, 0), dtype=np.uint8
            )
            image["masks"] = run_lengths.encode(pixels) if pixels.size else []
        if "keypoints" in self.iou_types:
            image["keypoints"] = as_array(given["keypoints"], "keypoints")
        return image

    def _evaluated(self, iou_type: str) -> Evaluation:
        params = self.coco_eval[iou_type].params
        if not params.useCats:
            raise InputError("useCats", "be 1", got="0", cause="boxscore.init_as_pycocotools() has it")
        truth = self._ground_truth(iou_type)
        ids = sorted(self._images)
        images = [(identifier, self._images[identifier]) for identifier in ids if self._images[identifier]]
        params.imgIds, params.catIds = ids, params.catIds or truth.categories.ids.tolist()
        counts = [len(image["labels"]) for _, image in images]
        key = {"bbox": "boxes", "segm": "masks", "keypoints": "keypoints"}[iou_type]
        shapes: Any = _joined(image[key] for _, image in images)
        if iou_type == "segm":
            shapes = [code for _, image in images for code in image["masks"]]
        given = {"boxes": None, key: shapes} if images else {"boxes": np.empty((0, 4))}
        found = Detections.from_arrays(
            np.repeat(np.array([identifier for identifier, _ in images]), counts),
            _joined(image["labels"] for _, image in images).astype(np.int64),
            scores=_joined(image["scores"] for _, image in images),
            box_format="xywh",
            source="predictions",
            **given,
        )
        protocol = {
            "extends": PROTOCOLS[iou_type],
            "name": PROTOCOLS[iou_type],
            "matching": {"iou_thresholds": list(params.iouThrs), "max_detections": list(params.maxDets)},
            "ignore": {"area_ranges": dict(zip(params.areaRngLbl, params.areaRng, strict=True))},
            "ap": {"recall_points": list(params.recThrs)},
        }
        return evaluate(truth, found, protocol=protocol, images=ids, classes=params.catIds, digest=False)

    def _ground_truth(self, iou_type: str) -> Any:
        """Read the annotations, once, by way of a file, with the columns that the IoU type needs."""
        if iou_type not in self._truth:
            data = self.coco_gt.dataset
            rows = [
                {key: value for key, value in row.items() if key not in UNREAD[iou_type]}
                for row in data.get("annotations", ())
            ]
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "annotations.json"
                path.write_text(json.dumps({**data, "annotations": rows}, default=_plain), encoding="utf-8")
                truth = self._truth[iou_type] = load_ground_truth(path, format="coco")
                _ = truth.masks, truth.keypoints, truth.keypoint_count  # read while the file is there
        return self._truth[iou_type]


def _joined(columns: Iterable[Any]) -> Any:
    """Concatenate the arrays of images; there may be none."""
    given = list(columns)
    return np.concatenate(given) if given else np.empty(0)


def _plain(value: Any) -> Any:
    """Return what JSON can hold of a value of an annotation."""
    return value.decode() if isinstance(value, bytes) else value.tolist()
