"""Everything that a result says, to the bit; and tables cut into parts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import boxscore
from boxscore.data.alignment import align
from boxscore.distributed import Part
from boxscore.distributed.scanning import partitioned
from boxscore.matching.preparing import prepared
from boxscore.protocols import load_protocol

Tables = tuple[boxscore.GroundTruth, boxscore.Detections]


def bits(evaluation: boxscore.Evaluation) -> dict[str, Any]:
    """Everything that a result prints and draws, to the bit."""
    arrays = {name: array.tobytes() for name, array in evaluation.arrays().items()}
    values = {name: array.tobytes() for name, array in evaluation.class_values.items()}
    counts = {name: array.tolist() for name, array in evaluation.class_counts.items()}
    return {
        **arrays,
        **values,
        "class counts": counts,
        "metrics": np.array(list(evaluation.metrics.values())).tobytes(),
        "ap by iou": evaluation.ap_by_iou().tobytes(),
        "counts": evaluation.counts,
        "repr": repr(evaluation),
        "labels": evaluation.labels,
        "json": evaluation.to_json(),
    }


def whole(tables: tuple[Any, Any], protocol: Any) -> boxscore.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        return boxscore.evaluate(*tables, protocol=protocol)


def parts_of(tables: Tables, protocol: Any, partition: Any) -> list[Part]:
    chosen = load_protocol(protocol)
    truth, found = tables
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        found = align(found, truth)
    truth, found = prepared(truth, found, chosen)
    return [task.run() for task in partitioned(truth, found, np.asarray(partition), chosen)]
