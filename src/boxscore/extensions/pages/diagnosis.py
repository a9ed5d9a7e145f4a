"""Reshape diagnostics for the sections of the report; nothing is recomputed.

Conventions
-----------
- Each function returns plain lists for JSON, with classes as row numbers, or None if there is nothing to
  show.
- Curves are thinned by ``extensions/pages/curve_view.py``.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Workers
from boxscore._utils.text import counted, verb
from boxscore.diagnostics import (
    bootstrap_intervals,
    calibration_error,
    error_areas,
    error_curves,
    error_types,
    operating_points,
    reliability,
)
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.bootstrap import Intervals as NumbersOfMetrics
from boxscore.extensions.diagnostics.confidence import Rates, outlined_curves
from boxscore.extensions.diagnostics.confusion import ClassOrder
from boxscore.extensions.pages.choices import IMAGES_IN_A_CELL, Choices, Named, Scores
from boxscore.extensions.pages.curve_view import significant, thin
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.weights.left_out import groups_of, is_corrected
from boxscore.extensions.weights.resampling import LEAST_UNITS_OF_CLASS
from boxscore.scoring.blocks import mean_of_lines
from boxscore.scoring.kinds import kind_of

MOST_CONFUSED = 80
"""Maximum number of classes in the confusion matrix: those with the most confusions."""

MOST_ANALYZED = 200
"""Maximum number of classes in COCO's error analysis: those with the most objects."""

STEP_TOLERANCE = 0.004
"""Maximum vertical distance between a thinned step and the original, a pixel in the report."""

RATE_TOLERANCE = 0.004
"""Maximum vertical distance between a thinned curve of rates and the outlined one, a pixel in the report."""


def confidence_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return precision, recall and F1 against confidence, per class (by row) and for all classes together.

    A curve is ``[score, precision, recall, F1]`` with rates in ten-thousandths. ``best`` has one such row per
    class, with exact rates, and all classes together last.
    """
    counts = evaluation.counts
    if not evaluation.has_scores or not counts["detections"] or not counts["ground_truths"]:
        return None
    curves, best = outlined_curves(evaluation), operating_points(evaluation)
    # All detections are ignored.
    if not len(curves.total.score):
        return None
    classes = {}
    for k in range(len(curves.classes)):
        curve = curves.of_class(k)
        if len(curve.score) and np.isfinite(curve.recall).all():
            classes[str(k)] = _confidence_curve(curve)
    names = ("score", "precision", "recall", "f_score")
    lines = np.stack([np.append(getattr(best.per_class, n), getattr(best.total, n)) for n in names], axis=1)
    return {
        "all": _confidence_curve(curves.total),
        "classes": classes,
        "best": [significant(line, 4) for line in lines],
    }


def _confidence_curve(curve: Rates) -> list[Any]:
    score, best = curve.score, int(np.argmax(np.nan_to_num(curve.f_score)))
    rates = [np.nan_to_num(rate) for rate in (curve.precision, curve.recall, curve.f_score)]
    points = functools.reduce(np.union1d, (thin(score, rate, tolerance=RATE_TOLERANCE) for rate in rates))
    points = np.union1d(points, [best])
    return [
        significant(score[points], 4),
        *(np.round(rate[points] * 10_000).astype(int).tolist() for rate in rates),
    ]


def confusion_view(evaluation: Evaluation, choices: Choices, gallery: Gallery) -> dict[str, Any] | None:
    """Return the confusion matrix at the operating score, and images of its largest cells for the gallery.

    ``shown`` are class rows, with K for background last, and ``orders`` the same classes in each other order;
    ``cells`` are ``[truth, predicted, count]``; ``top``
    are ``[truth, predicted, count, share, [[image id, record or None], ...], images]``.
    """
    # Leave out classes without any cell.
    matrix = choices.matrix
    K = len(matrix.labels) - 1
    present = np.zeros(K + 1, dtype=bool)
    present[matrix.truth] = present[matrix.predicted] = True
    if not present.any():
        return None
    # Keep the most confused classes; background is the last row and column.
    confused = matrix.most_confused(MOST_CONFUSED)
    shown = [*confused[present[confused]].tolist(), K]
    inside = np.zeros(K + 1, dtype=bool)
    inside[shown] = True
    # Look up class rows to select the cells of these classes without a dense matrix.
    keep = inside[matrix.truth] & inside[matrix.predicted]
    cells = np.column_stack([matrix.truth, matrix.predicted, matrix.count])
    shares = significant(matrix.shares_of_truth[choices.cells])
    # List the largest cells with their images.
    top = [
        [*cell, share, _named(named, gallery), named.every]
        for cell, share, named in zip(cells[choices.cells].tolist(), shares, choices.named, strict=True)
    ]
    return {
        "score": gallery.score_threshold,
        "shown": shown,
        "orders": {
            name: matrix.ordered(confused[present[confused]], name, evaluation).tolist()
            for name in get_args(ClassOrder)
        },
        "metric": next(iter(evaluation.class_values), ""),
        "classes": K,
        "present": int(present[:K].sum()),
        "cells": cells[keep].tolist(),
        "top": top,
    }


def _named(named: Named, gallery: Gallery) -> list[list[Any]]:
    """Return the ids of images, and records for the first few."""
    return [
        [identifier, gallery.add(image) if number < IMAGES_IN_A_CELL else None]
        for number, (identifier, image) in enumerate(zip(named.ids, named.images.tolist(), strict=True))
    ]


def errors_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the cost of each kind of mistake over all classes: ``rows`` are ``[error, count, cost]``."""
    if not evaluation.counts["ground_truths"]:
        return None
    result = error_types(evaluation)
    counts, costs = result.total.counts.tolist(), significant(result.total.cost)
    rows = [list(row) for row in zip(result.errors, counts, costs, strict=True)]
    return {"value": significant(result.total.value[:1])[0], "unit": result.metric, "rows": rows}


def analysis_view(evaluation: Evaluation, choices: Choices) -> dict[str, Any] | None:
    """Return COCO's error analysis: areas and curves of the mean and of each class, by row.

    The last step, which is always 1, is left out. A curve is ``[recall, precision]`` in hundredths and
    thousandths, or 0 if it equals that of the previous step.
    """
    if not evaluation.has_scores:
        return None
    curves, areas = error_curves(evaluation), error_areas(evaluation)
    defined = np.flatnonzero(~np.isnan(curves.precision[:, 0, 0]))
    if not len(defined):
        return None
    shown = defined[np.sort(np.argsort(-choices.objects[defined], kind="stable")[:MOST_ANALYZED])].tolist()
    by_class = np.array(areas.per_class).T  # [K,7]
    return {
        "steps": list(curves.steps),
        "mean": [significant(areas.total, 3), _step_curves(curves.recall, curves.mean)],
        "classes": {
            str(k): [significant(by_class[k], 3), _step_curves(curves.recall, curves.precision[k])]
            for k in shown
        },
        "left_out": len(defined) - len(shown),
    }


def _step_curves(recall: NDArray[np.float64], precision: NDArray[np.float64]) -> list[Any]:
    lines: list[Any] = []
    for step, line in enumerate(precision[:-1]):
        if step and np.array_equal(line, precision[step - 1]):
            lines.append(0)
            continue
        points = thin(recall, line, tolerance=STEP_TOLERANCE)
        x, y = np.round(recall[points] * 100), np.round(line[points] * 1000)
        lines.append([x.astype(int).tolist(), y.astype(int).tolist()])
    return lines


def values_by_iou(evaluation: Evaluation) -> tuple[FloatArray, FloatArray]:
    """Return AP per IoU threshold and class, [T, K], and over classes, [T]; without scores F1.

    AP over classes is the mean; F1 counts all classes together.
    """
    weights = evaluation._class_weights
    if evaluation.has_scores:
        values = evaluation.ap_by_iou()
        defined = ~np.isnan(values[0])
        if not defined.any():
            return values, np.full(len(values), np.nan)
        return values, mean_of_lines(values[:, defined], None if weights is None else weights[defined])
    ratios = kind_of("micro_F1").values_of(evaluation.curves_of(0, -1), evaluation.protocol)
    each = [ratios[[t]] for t in range(len(evaluation.protocol.matching.iou_thresholds))]
    every = [one.mean_of_defined() if weights is None else one.weighted_mean(weights) for one in each]
    return np.stack([one.mean_per_class() for one in each]), np.array(every)


class Interval(NamedTuple):
    """The estimate of a metric without the bias of few images, and its interval; NaN without one."""

    estimate: float
    low: float
    high: float


NO_INTERVAL = Interval(math.nan, math.nan, math.nan)


class Intervals(NamedTuple):
    """Confidence intervals of the summary metrics, and of the first one per class."""

    metrics: dict[str, Interval]
    classes: list[Interval]
    """Those of the first metric of each class, [K]; empty if no class has one."""
    text: str
    """How intervals are computed, and which metrics have none."""
    corrected: frozenset[str]
    """Metrics whose estimate can differ from the value."""

    def corrects_classes(self, evaluation: Evaluation) -> bool:
        """Tell whether the estimate of the first metric of each class can differ from its value."""
        keys = [row.key for row in evaluation.protocol.rows if row.key in evaluation.protocol.class_keys]
        return bool(self.classes) and keys[0] in self.corrected

    def sentence(self, key: str, value: float) -> str:
        """State the value of a metric, its estimate and its interval; empty without an interval."""
        of_key = self.metrics.get(key, NO_INTERVAL)
        if math.isnan(of_key.low):
            return ""
        ends = f"(95% interval {of_key.low:.3f} to {of_key.high:.3f})"
        if key not in self.corrected:
            return f"{key} {value:.3f} {ends}"
        return f"{key} {value:.3f}; without the bias of few images {of_key.estimate:.3f} {ends}"


def intervals(
    evaluation: Evaluation,
    *,
    requested: bool,
    seed: int = 0,
    progress: bool = False,
    workers: Workers = "auto",
) -> Intervals:
    """Compute intervals over images; if there are none, ``text`` explains it."""
    # Explain why there are no intervals: too few images, or disabled.
    images = evaluation._image_count
    if not requested:
        reason = (
            "No intervals: not requested, or skipped because they would take longer than a minute "
            "(use --resamples 1)."
        )
        return Intervals({}, [], reason, frozenset())
    if images < LEAST_UNITS_OF_CLASS or not evaluation.counts["ground_truths"]:
        reason = f"No intervals: {counted(images, 'image')} {verb(images, 'are')} too few."
        return Intervals({}, [], reason, frozenset())
    result = bootstrap_intervals(evaluation, seed=seed, progress=progress, workers=workers)
    text = (
        "95% intervals say where a metric would be on very many images like these: their width comes from "
        f"leaving out {counted(groups_of(images, None, seed)[1], 'group')} of images in turn. Classes in "
        f"fewer than {LEAST_UNITS_OF_CLASS} images have none."
    )
    metrics = dict(zip(result.metrics, _each_interval(result.total), strict=True))
    rows = evaluation.protocol.rows
    corrected = frozenset(row.key for row in rows if is_corrected(row))
    # Show those of the first metric of each class, if there is one.
    keys = [row.key for row in rows if row.key in evaluation.protocol.class_keys]
    first: list[Interval] = []
    if keys and keys[0] in result.metrics:
        at = result.metrics.index(keys[0])
        first = _each_interval(NumbersOfMetrics(*(column[:, at] for column in result.per_class)))
    if all(math.isnan(one.low) for one in first):
        first = []
    if all(math.isnan(one.low) for one in metrics.values()):
        text = ""
    return Intervals(metrics, first, " ".join(filter(None, [text, result.note])), corrected)


def _each_interval(numbers: NumbersOfMetrics) -> list[Interval]:
    columns = (numbers.estimate.tolist(), numbers.low.tolist(), numbers.high.tolist())
    return [Interval(*line) for line in zip(*columns, strict=True)]


def calibration_view(evaluation: Evaluation, scores: Scores) -> dict[str, Any] | None:
    """Return the reliability of all classes together, in nonempty bins; None for scores outside [0, 1]."""
    outside = scores.lowest < 0 or scores.highest > 1
    if not evaluation.has_scores or not evaluation.counts["detections"] or outside:
        return None
    bins = reliability(evaluation).total
    filled = bins.detections > 0
    if filled.sum() < 2:
        return None
    errors = calibration_error(evaluation, resamples=0).total
    return {
        "confidence": significant(bins.confidence[filled]),
        "precision": significant(bins.accuracy[filled]),
        "count": bins.detections[filled].tolist(),
        "text": f"Expected calibration error (ECE) {errors.expected_error:.3f}; "
        f"{max(errors.debiased_error, 0):.3f} after correcting for sampling noise.",
    }
