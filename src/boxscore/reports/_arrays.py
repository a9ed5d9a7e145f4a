"""Diagnostics as the arrays that pages and plots draw."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore import diagnostics
from boxscore.evaluation import Evaluation

__all__ = [
    "ErrorCosts",
    "Intervals",
    "Rates",
    "Reliability",
    "best_rates",
    "error_costs",
    "metric_intervals",
    "rates_by_score",
    "reliability",
]

FloatArray = NDArray[np.float64]


class Rates(NamedTuple):
    """Columns of a confidence curve, or of the best points of all classes; [N]."""

    score: FloatArray
    precision: FloatArray
    recall: FloatArray
    f_score: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class ErrorCosts:
    """What each kind of mistake costs over all classes; [E]."""

    ap: float
    kinds: list[str]
    count: NDArray[np.int64]
    cost: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class Reliability:
    """Bins of all classes together that are not empty, and the expected calibration error."""

    confidence: FloatArray
    precision: FloatArray
    count: NDArray[np.int64]
    error: float


class Intervals(NamedTuple):
    """Ends of the bootstrap's intervals: of each metric [M], and of each class and metric [K, M]."""

    low: FloatArray
    high: FloatArray
    class_low: FloatArray
    class_high: FloatArray


def best_rates(evaluation: Evaluation) -> Rates:
    """Best operating point of each class and, last, of all together; [K + 1]."""
    frame = diagnostics.operating_points(evaluation)
    return Rates(*(frame[name].to_numpy(dtype=np.float64) for name in Rates._fields))


def rates_by_score(evaluation: Evaluation) -> list[Rates]:
    """Confidence curve of each class, empty for one without detections, and, last, of all together."""
    frame = diagnostics.confidence_curve(evaluation)
    columns = [frame[name].to_numpy(dtype=np.float64) for name in Rates._fields]
    names = frame["class"].to_numpy()
    change = np.flatnonzero(names[1:] != names[:-1]) + 1
    bounds = np.append(change, len(names)).tolist()
    curves = [Rates(*(column[:0] for column in columns))] * (len(evaluation.labels) + 1)
    position = {label.rstrip("\0"): k for k, label in enumerate(evaluation.labels)}
    for low, high in zip([0, *bounds], bounds, strict=False):
        k = -1 if high == len(names) else position[names[low].rstrip("\0")]
        curves[k] = Rates(*(column[low:high] for column in columns))
    return curves


def error_costs(evaluation: Evaluation) -> ErrorCosts:
    """Costs of the kinds of error over all classes."""
    frame = diagnostics.error_types(evaluation)
    ap, cost = (frame[name].to_numpy(dtype=np.float64) for name in ("ap", "cost"))
    count = frame["count"].to_numpy(dtype=np.int64)
    return ErrorCosts(float(ap[0]), frame["error"].tolist(), count, cost)


def reliability(evaluation: Evaluation, *, bins: int = 10) -> Reliability:
    """Reliability of all classes together."""
    frame = diagnostics.reliability(evaluation, bins=bins).iloc[-bins:]
    frame = frame[frame["detections"] > 0]
    error = float(diagnostics.calibration(evaluation, bins=bins)["expected_error"].iloc[-2])
    confidence, precision = (frame[name].to_numpy(dtype=np.float64) for name in ("confidence", "accuracy"))
    return Reliability(confidence, precision, frame["detections"].to_numpy(dtype=np.int64), error)


def metric_intervals(evaluation: Evaluation, *, resamples: int, seed: int) -> Intervals:
    """Bootstrap intervals of all metrics, and of each class."""
    frame = diagnostics.bootstrap(evaluation, resamples=resamples, seed=seed, per_class=True)
    metrics, K = len(evaluation.protocol.rows), len(evaluation.labels)
    low, high = (frame[name].to_numpy(dtype=np.float64).reshape(K + 1, metrics) for name in ("low", "high"))
    return Intervals(low[0], high[0], low[1:], high[1:])
