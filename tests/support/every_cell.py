"""Summaries of every threshold, area range and cap alone, and all that a summary says."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boxscore


def with_every_cell(values: Any, *metrics: str) -> boxscore.Protocol:
    """Load a protocol whose summary is some metrics at each threshold, area range and cap."""
    protocol = boxscore.load_protocol(values)
    areas, caps = protocol.ignore.area_ranges, range(len(protocol.caps))
    summary = [
        {"key": f"{metric} {iou} {area} {cap}", "metric": metric, "iou": iou, "area": area, "cap": cap}
        for metric in metrics
        for iou, area, cap in itertools.product(protocol.matching.iou_thresholds, areas, caps)
    ]
    extended = values if isinstance(values, dict) else {"extends": values}
    return boxscore.load_protocol({"name": "case", **extended, "summary": summary})


def summary_of(evaluation: boxscore.Evaluation) -> NDArray[np.float64]:
    """Return each summary metric of each class and, last, over all of them; [rows, K + 1]."""
    keys, nothing = evaluation.protocol.class_keys, np.full(len(evaluation.labels), np.nan)
    rows = [
        np.append(evaluation.class_values[keys[key]] if key in keys else nothing, value)
        for key, value in evaluation.metrics.items()
    ]
    return np.array(rows).reshape(len(rows), -1)


def weighted_summary(evaluation: boxscore.Evaluation, weights: Any) -> NDArray[np.float64]:
    """Return :func:`summary_of` with each image counted as often as its weight says."""
    sets: Any = [np.asarray(weights, dtype=np.float64)]
    values = evaluation._weighted_metrics(evaluation.protocol.rows, sets).values[0]
    of_classes = [row.key not in evaluation.protocol.class_keys for row in evaluation.protocol.rows]
    values[of_classes, :-1] = np.nan
    return values
