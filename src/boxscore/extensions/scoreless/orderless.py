"""Compute AP over all orders of the detections: the lowest, the expected and the highest."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.extensions.scoreless.expected import expected_ap
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind, no_fields


def _reached(curves: Curves, protocol: Protocol) -> FloatArray:
    """Return AP with the true detections first, [T, K]: the fraction of recall that is reached."""
    totals, rules = curves.totals, protocol.ap
    true = totals.recalled
    if rules.interpolation == "area":
        reached: FloatArray = true / np.maximum(totals.positive, 1)
        return reached
    points = np.maximum(curves.needed(), 1)
    return np.array([(points <= one[:, None]).mean(axis=1) for one in true]).reshape(true.shape)


def _ends(curves: Curves, protocol: Protocol) -> dict[str, FloatArray]:
    """Return the lowest and the highest AP over all orders, [T, K] each."""
    totals = curves.totals
    precision = totals.recalled / np.maximum(totals.counted, 1)
    highest = _reached(curves, protocol)
    ends = {"lowest": precision * highest, "highest": highest}
    return {name: curves.with_undefined(values) for name, values in ends.items()}


def _expected(curves: Curves, protocol: Protocol) -> dict[str, FloatArray]:
    """Return the expectation over all orders, and its standard error, [T, K] each."""
    totals = curves.totals
    needed = curves.needed()
    numbers = {name: np.zeros(totals.recalled.shape) for name in ("expected", "error")}
    for t, k in zip(*np.nonzero(totals.recalled * (totals.positive > 0)), strict=True):
        true, counted = int(totals.recalled[t, k]), int(totals.counted[t, k])
        of_class = expected_ap(true, counted - true, int(totals.positive[k]), protocol.ap, needed[k])
        numbers["expected"][t, k], numbers["error"][t, k] = of_class
    return {name: curves.with_undefined(values) for name, values in numbers.items()}


def _values(curves: Curves, protocol: Protocol, *, end: str) -> Values:
    """Return the values of one end of the interval, or of the expectation."""
    compute = _expected if end == "expected" else _ends
    return HeldValues(curves.once(compute.__name__, lambda: compute(curves, protocol))[end])


def error_of_mean(row: SummaryRow, protocol: Protocol, curves_of: Callable[[int, int], Curves]) -> float:
    """Return the standard error of the mean over classes and thresholds; 0 if all are exact.

    NaN if only values remain of the curves, as on a cluster.
    """
    curves = curves_of(*protocol.position_of(row))
    if not curves.has_counts:
        return float("nan")
    errors = curves.once(_expected.__name__, lambda: _expected(curves, protocol))["error"]
    if row.iou is not None:
        errors = errors[[protocol.matching.iou_thresholds.index(row.iou)]]
    return standard_error_of_mean(errors)


def standard_error_of_mean(errors: FloatArray) -> float:
    """Return the standard error of a mean of estimates with these errors, [T, K], ignoring NaN."""
    defined = errors[~np.isnan(errors)]
    return float(np.sqrt((defined**2).sum()) / defined.size) if defined.size else 0.0


def _kind(end: str, title: str) -> Kind:
    values = functools.partial(_values, end=end)
    return Kind(f"AP_{end}", title, values, no_fields, of_classes_alone=True)


KINDS = (
    # Every false positive before every true one: the minimum over all orders.
    _kind("lowest", "AP, lowest of all orders"),
    _kind("expected", "AP, expected over all orders"),
    # Every true positive before every false one: the maximum over all orders.
    _kind("highest", "AP, highest of all orders"),
)
