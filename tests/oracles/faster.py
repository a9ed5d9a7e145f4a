"""faster-coco-eval on dictionaries in COCO form: pycocotools' answer, written again in C++ by others.

It leaves pycocotools' epsilon out of the denominator of precision, or sums in another order: precision may be
off in the last bits, :data:`TOLERANCE`. Recall and scores are equal to the bit.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

INSTALLED = importlib.util.find_spec("faster_coco_eval") is not None

TOLERANCE = 1e-12


def run_faster_coco_eval(
    truth: dict[str, Any],
    results: list[dict[str, Any]],
    *,
    caps: Sequence[int],
    thresholds: Sequence[float] | None,
    per_class: bool,
) -> dict[str, Any]:
    """Evaluate boxes; return precision, recall and scores, -1 for undefined."""
    from faster_coco_eval import COCO, COCOeval_faster

    results = [{k: v for k, v in row.items() if k not in ("segmentation", "keypoints")} for row in results]
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO(copy.deepcopy(truth))
        found = reference.loadRes(results) if results else COCO({**copy.deepcopy(truth), "annotations": []})
        run = COCOeval_faster(reference, found, "bbox", print_function=lambda *_: None)
        run.params.maxDets = list(caps)
        if thresholds is not None:
            run.params.iouThrs = np.array(thresholds)
        run.params.useCats = int(per_class)
        run.evaluate()
        run.accumulate()
    return {name: np.asarray(run.eval[name]) for name in ("precision", "recall", "scores")}


def assert_close_to_faster_coco_eval(evaluation: Any, reference: dict[str, Any]) -> None:
    """Every cell of precision within the tolerance, of recall and scores to the bit."""
    for name, ours in evaluation.arrays().items():
        filled = np.where(np.isnan(ours), -1.0, ours)
        theirs = reference[name]
        assert filled.shape == theirs.shape, name
        apart = np.abs(filled - theirs)
        limit = TOLERANCE if name == "precision" else 0.0
        cell = np.unravel_index(int(apart.argmax()), apart.shape) if apart.size else ()
        assert not apart.size or apart[cell] <= limit, (
            f"{name}{tuple(map(int, cell))}: {filled[cell]!r} here, {theirs[cell]!r} in faster-coco-eval"
        )
