"""pycocotools on dictionaries in COCO form."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

METRICS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")


def run_pycocotools(
    truth: dict[str, Any],
    results: list[dict[str, Any]],
    *,
    images: Sequence[int] | None = None,
    caps: Sequence[int] = (1, 10, 100),
    thresholds: Sequence[float] | None = None,
    area_ranges: Sequence[Sequence[float]] | None = None,
    recall_points: Sequence[float] | None = None,
    per_class: bool = True,
) -> COCOeval:
    """Evaluate boxes; the twelve numbers are in ``stats`` where caps, thresholds and
    area ranges are COCO's.

    Parameters
    ----------
    truth, results
        As json.load gives them. Segmentations are left aside: with them, pycocotools would take another
        area for the detections.
    """
    truth = copy.deepcopy(truth)
    results = [{k: v for k, v in row.items() if k not in ("segmentation", "keypoints")} for row in results]
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = truth
        reference.createIndex()
        if results:
            found = reference.loadRes(results)
        else:  # loadRes raises IndexError
            found = COCO()
            found.dataset = {**truth, "annotations": []}
            found.createIndex()
        run = COCOeval(reference, found, "bbox")
        if images is not None:
            run.params.imgIds = list(images)
        run.params.maxDets = list(caps)
        if thresholds is not None:
            run.params.iouThrs = np.array(thresholds)
        if area_ranges is not None:
            run.params.areaRng = [list(pair) for pair in area_ranges]
        if recall_points is not None:
            run.params.recThrs = np.array(recall_points)
        run.params.useCats = int(per_class)
        run.evaluate()
        run.accumulate()
        if list(caps) == [1, 10, 100] and area_ranges is None and thresholds is None:
            run.summarize()
    return run


def same_bits(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    """Whether two float64 arrays are equal bit for bit, NaN here standing for -1 there."""
    assert ours.dtype == theirs.dtype == np.float64
    filled = np.where(np.isnan(ours), -1.0, ours)
    return filled.shape == theirs.shape and filled.tobytes() == np.ascontiguousarray(theirs).tobytes()


def assert_equal_to_pycocotools(evaluation: Any, reference: COCOeval) -> None:
    """Every cell of precision, recall and scores, and the twelve numbers where the reference has them."""
    arrays = evaluation.arrays()
    assert sorted(arrays) == ["precision", "recall", "scores"]
    for name, ours in arrays.items():
        theirs = reference.eval[name]
        if not same_bits(ours, theirs):
            filled = np.where(np.isnan(ours), -1.0, ours)
            assert filled.shape == theirs.shape
            cells = np.argwhere(filled != theirs)
            cell = tuple(cells[0].tolist()) if len(cells) else ()
            raise AssertionError(f"{name}{cell}: {filled[cell]!r} here, {theirs[cell]!r} in pycocotools")
    if len(reference.stats):
        ours = np.array([evaluation.metrics[name] for name in METRICS])
        assert list(evaluation.metrics) == list(METRICS)
        assert same_bits(ours, reference.stats), (evaluation.metrics, reference.stats)
