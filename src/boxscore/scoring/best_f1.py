"""Compute the best F1: the largest F1 that a class reaches at any score threshold.

Conventions
-----------
- F1 at a score threshold is ``2 TP / (TP + FP + P)`` for ``P`` ground truths. It rises only at true
  positives. A threshold keeps all detections of one score or none, so the true positives of a tie come last.
- Every class and IoU threshold has its own score threshold; the metric is the mean of the best F1 values.
- F1 is 0 with ground truth but no true positive, and NaN (undefined) without ground truth.
"""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import LARGEST, Curves, State
from boxscore.scoring.kinds import Kind


def _fields(curves: Curves, protocol: Protocol) -> State:
    nth, counted = curves.joined_lines("true_positives_last")
    weights = curves.counts.weights_up_to
    true = nth if weights is None else weights
    f1 = 2 * true / (counted - nth + true + curves.of_runs(curves.positive))
    return {"best_f1": curves.largest(f1)}


def _values(curves: Curves, protocol: Protocol) -> Values:
    return HeldValues(curves.defined(BEST_F1.state(curves, protocol)["best_f1"]))


BEST_F1 = Kind(
    "F1",
    "Best F1            (F1)",
    _values,
    lambda protocol: {"best_f1": LARGEST},
    _fields,
    of_classes_alone=True,
)
KINDS = (BEST_F1,)
