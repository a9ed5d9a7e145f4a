"""``accumulate`` of lists that ``evaluate`` would not make, beside the reference."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from side_by_side import OURS, REFERENCE, Library

from support.each import each

RECALL_POINTS = [
    np.linspace(0, 1, 101),
    np.array([0.9, 0.1]),  # nothing is read after the first that is not reached
    np.array([-0.5, 0.5, 1.2, 0.3]),
    np.array([0.1, np.nan, 0.2]),
    np.array([]),
    np.array([0.1, 0.3, 0.7], dtype=np.float32),
]
CAPS = [[1, 10, 100], [2, 2, 3], [3, 1], [100]]


def results(rng: np.random.Generator, thresholds: int) -> dict[str, Any] | None:
    """What a subclass may give: scores in any order or NaN, more matches than objects, all ignored at will."""
    if rng.random() < 0.3:
        return None
    detections, truths = int(rng.integers(0, 8)), int(rng.integers(0, 4))
    scores = np.sort(np.round(rng.random(detections), 1))[::-1]
    if rng.random() < 0.2:
        scores = rng.permutation(scores)
    if rng.random() < 0.1 and detections:
        scores[rng.integers(detections)] = np.nan
    shape = thresholds, detections
    return {
        "dtScores": scores.tolist(),
        "gtIgnore": (rng.random(truths) < 0.3).astype(int),
        "dtMatches": (rng.random(shape) < 0.4) * rng.integers(1, 9, shape).astype(float),
        "dtIgnore": rng.random(shape) < 0.2,
    }


def accumulated(library: Library, lists: list[Any], values: dict[str, Any]) -> dict[str, Any]:
    evaluation = library.COCOeval(iouType="bbox")
    for name, value in values.items():
        setattr(evaluation.params, name, value)
    evaluation._paramsEval = evaluation.params
    evaluation.evalImgs = lists
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.accumulate()
    return {name: evaluation.eval[name] for name in ("precision", "recall", "scores")}


@each(range(60))
def test_any_list(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, classes, thresholds = (int(rng.integers(1, high)) for high in (5, 4, 4))
    areas = [[0, 1e10], [0, 10]][: rng.integers(1, 3)]
    values = {
        "imgIds": list(range(images)),
        "catIds": list(range(classes)),
        "iouThrs": np.linspace(0.5, 0.9, thresholds),
        "recThrs": RECALL_POINTS[seed % len(RECALL_POINTS)],
        "maxDets": CAPS[seed % len(CAPS)],
        "areaRng": areas,
    }
    lists = [results(rng, thresholds) for _ in range(classes * len(areas) * images)]
    reference, ours = (accumulated(library, lists, values) for library in (REFERENCE, OURS))
    for name in reference:
        assert ours[name].tobytes() == reference[name].tobytes(), name
