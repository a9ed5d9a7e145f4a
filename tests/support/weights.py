"""Whole-number image weights, spelled out: every image stands in the data as often as its weight says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import boxscore


def evaluated_anew(
    truth: boxscore.GroundTruth, detections: boxscore.Detections, weights: NDArray[Any], protocol: Any
) -> boxscore.Evaluation:
    """Evaluate a data set in which every image stands as often as its weight says."""
    tables = []
    for table in (truth, detections):
        copies = weights[table.image].astype(int)
        rows = np.repeat(np.arange(len(table)), copies)
        number = np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)
        ids = [f"{table.image[row]:05d}-{copy:03d}" for row, copy in zip(rows, number, strict=True)]
        tables.append((rows, ids))
    images = [f"{image:05d}-{copy:03d}" for image, w in enumerate(weights) for copy in range(int(w))]
    (truth_rows, truth_ids), (rows, ids) = tables
    again = boxscore.GroundTruth.from_arrays(
        truth_ids,
        truth.categories.ids[truth.category[truth_rows]],
        np.concatenate([truth.boxes[truth_rows, :2], truth.sizes[truth_rows]], axis=1),
        box_format="xywh",
        area=truth.area[truth_rows],
        crowd=truth.crowd[truth_rows],
        images=images,
        categories=truth.categories,
    )
    found = boxscore.Detections.from_arrays(
        ids,
        detections.categories.ids[detections.category[rows]],
        np.concatenate([detections.boxes[rows, :2], detections.sizes[rows]], axis=1),
        detections.scores[rows],
        box_format="xywh",
        images=again.images,
        categories=again.categories,
    )
    return boxscore.evaluate(again, found, protocol=protocol)
