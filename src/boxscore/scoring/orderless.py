"""AP over all orders, of every threshold and class of curves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves, needed_true_positives
from boxscore.scoring.expected import OrderlessAP, orderless_ap


def orderless_numbers(curves: Curves, protocol: Protocol) -> dict[str, FloatArray]:
    """Return the fields of :class:`~boxscore.scoring.expected.OrderlessAP`, [T, K] each; once computed."""

    def compute() -> dict[str, FloatArray]:
        totals, rules = curves.totals, protocol.ap
        needed = needed_true_positives(np.array(rules.recall_points), totals.positive.astype(np.int64))
        numbers = {name: np.zeros(totals.recalled.shape) for name in OrderlessAP._fields}
        for t, k in np.ndindex(totals.recalled.shape):
            if totals.positive[k] and totals.recalled[t, k]:
                true, counted = int(totals.recalled[t, k]), int(totals.counted[t, k])
                positive = int(totals.positive[k])
                value = orderless_ap(true, counted - true, positive, rules, needed[k])
                for name, number in value._asdict().items():
                    numbers[name][t, k] = number
        return {name: curves.with_undefined(values) for name, values in numbers.items()}

    return curves.once("orderless", compute)


def orderless_values(curves: Curves, protocol: Protocol, *, end: str) -> Values:
    """Return the values of one end of the interval, or of the expectation."""
    return HeldValues(orderless_numbers(curves, protocol)[end])


def error_of_mean(row: SummaryRow, protocol: Protocol, curves_of: Callable[[int, int], Curves]) -> float:
    """Return the standard error of the mean over classes and thresholds; 0 where all are exact.

    NaN where only values are left of the curves, as on a cluster.
    """
    curves = curves_of(*protocol.position_of(row))
    if not curves.has_counts:
        return float("nan")
    errors = orderless_numbers(curves, protocol)["error"]
    if row.iou is not None:
        errors = errors[[protocol.matching.iou_thresholds.index(row.iou)]]
    defined = errors[~np.isnan(errors)]
    return float(np.sqrt((defined**2).sum()) / defined.size) if defined.size else 0.0
