"""Sections of the report that show diagnostics: reshaped for drawing, never recomputed.

Conventions
-----------
- Each function returns plain lists for JSON, classes as row numbers, or None when it has nothing to show.
- Curves are thinned by ``reports/curve_view.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Workers
from boxscore._utils.text import counted, verb
from boxscore.diagnostics import (
    bootstrap_intervals,
    calibration_error,
    confidence_curve,
    confusion_matrix,
    error_areas,
    error_curves,
    error_types,
    operating_points,
    reliability,
    top_confusions,
)
from boxscore.diagnostics.confidence import Rates
from boxscore.evaluation import Evaluation
from boxscore.reports.curve_view import significant, thin
from boxscore.reports.gallery import Gallery
from boxscore.scoring.blocks import mean_of_lines
from boxscore.scoring.kinds import kind_of

MOST_CONFUSED = 80
"""Most classes in the confusion matrix: those with most confusions."""

MOST_CELLS = 100
"""Cells whose images are in the report: of two classes, and again with the background."""

MOST_NAMED, IMAGES_IN_A_CELL = 40, 4
"""Images of a cell that are named, and of these the ones that are shown."""

MOST_ANALYSED = 200
"""Most classes in COCO's analysis of errors: those with most objects."""

STEP_TOLERANCE = 0.004
"""Largest vertical distance between a thinned step of it and the whole one, a pixel in the report."""

FEWEST_IMAGES = 10
"""Fewest images that are resampled."""


def confidence_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Precision, recall and F1 against confidence, per class (by row) and for all classes together.

    A curve is ``[score, precision, recall, F1]``, the rates in ten-thousandths. ``best`` has one such row per
    class, with the rates as they are, and all classes together last.
    """
    if not evaluation.detections.scored or not len(evaluation.detections) or not len(evaluation.ground_truth):
        return None
    curves, best = confidence_curve(evaluation), operating_points(evaluation)
    if not len(curves.total.score):  # all are ignored
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
    score = curve.score
    rates = [np.nan_to_num(rate) for rate in (curve.precision, curve.recall, curve.f_score)]
    coarse = np.unique(np.linspace(0, len(score) - 1, 600).round().astype(int))  # then by shape
    coarse = np.union1d(coarse, [int(np.argmax(rates[2]))])
    keep = np.zeros(len(coarse), dtype=bool)
    for rate in rates:
        keep[thin(score[coarse], rate[coarse], tolerance=0.004)] = True
    keep |= coarse == int(np.argmax(rates[2]))
    points = coarse[keep]
    return [
        significant(score[points], 4),
        *(np.round(rate[points] * 10_000).astype(int).tolist() for rate in rates),
    ]


def confusion_view(evaluation: Evaluation, gallery: Gallery) -> dict[str, Any] | None:
    """Confusion matrix at the operating score, and the images behind its largest cells, for the gallery.

    ``shown`` are class rows, K for background last; ``cells`` are ``[truth, predicted, count]``; ``top`` are
    ``[truth, predicted, count, share, [[image id, record or None], ...], images]``.
    """
    if not len(evaluation.ground_truth) and not len(evaluation.detections):
        return None
    score = max(gallery.score_threshold, -1e300)
    matrix = confusion_matrix(evaluation, score_threshold=score)
    K = len(matrix.labels) - 1
    present = np.zeros(K + 1, dtype=bool)
    present[matrix.truth] = present[matrix.predicted] = True
    if not present.any():
        return None
    confused = matrix.most_confused(MOST_CONFUSED)
    shown = [*confused[present[confused]].tolist(), K]
    inside = np.zeros(K + 1, dtype=bool)
    inside[shown] = True
    keep = inside[matrix.truth] & inside[matrix.predicted]
    cells = np.column_stack([matrix.truth, matrix.predicted, matrix.count])[keep]

    top: list[list[Any]] = []
    listed = top_confusions(evaluation, score_threshold=score, limit=MOST_CELLS)
    columns = (listed.truth, listed.predicted, listed.count, listed.share_of_truth)
    for *cell, share, images in zip(*(column.tolist() for column in columns), listed.images, strict=True):
        named = _named(listed.image_ids[images[:MOST_NAMED]], images.tolist(), gallery)
        top.append([*cell, significant([share])[0], named, len(images)])
    return {
        "score": gallery.score_threshold,
        "shown": shown,
        "classes": K,
        "present": int(present[:K].sum()),
        "cells": cells.tolist(),
        "top": top,
    }


def _named(ids: NDArray[Any], images: list[int], gallery: Gallery) -> list[list[Any]]:
    """Ids of images, and for the first few their records."""
    named = zip(ids.tolist(), images, strict=False)
    return [
        [str(identifier), gallery.add(image) if number < IMAGES_IN_A_CELL else None]
        for number, (identifier, image) in enumerate(named)
    ]


def errors_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Cost of each kind of mistake over all classes: ``rows`` are ``[error, count, cost]``."""
    if not len(evaluation.ground_truth):
        return None
    result = error_types(evaluation)
    counts, costs = result.total.counts.tolist(), significant(result.total.cost)
    rows = [list(row) for row in zip(result.errors, counts, costs, strict=True)]
    return {"value": significant(result.total.value[:1])[0], "unit": result.metric, "rows": rows}


def analysis_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """COCO's analysis of errors: areas and curves of the mean and of each class, by row.

    Without the last step, which is 1. A curve is ``[recall, precision]`` in hundredths and
    thousandths, or 0 where it is that of the step before.
    """
    if not evaluation.detections.scored:
        return None
    curves, areas = error_curves(evaluation), error_areas(evaluation)
    defined = np.flatnonzero(~np.isnan(curves.precision[:, 0, 0]))
    if not len(defined):
        return None
    objects = np.bincount(evaluation.ground_truth.category, minlength=len(curves.classes))[defined]
    shown = defined[np.sort(np.argsort(-objects, kind="stable")[:MOST_ANALYSED])].tolist()
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
    """AP of each IoU threshold and class, [T, K], and its means over classes, [T]; without scores F1.

    That is of all classes together where it is over classes.
    """
    weights = evaluation.class_weights
    if evaluation.detections.scored:
        values = evaluation.ap_by_iou()
        defined = ~np.isnan(values[0])
        if not defined.any():
            return values, np.full(len(values), np.nan)
        return values, mean_of_lines(values[:, defined], None if weights is None else weights[defined])
    ratios = kind_of("micro_F1").values_of(evaluation.curves_of(0, -1), evaluation.protocol)
    each = [ratios[[t]] for t in range(len(evaluation.protocol.matching.iou_thresholds))]
    every = [one.mean_of_defined() if weights is None else one.weighted_mean(weights) for one in each]
    return np.stack([one.mean_per_class() for one in each]), np.array(every)


class Intervals(NamedTuple):
    """Confidence intervals of the summary metrics, and of the first one per class."""

    metrics: dict[str, tuple[float, float]]
    classes: dict[str, list[float]]  # "low" and "high", [K] each; empty when not asked for
    text: str


def intervals(
    evaluation: Evaluation,
    *,
    resamples: int,
    seed: int = 0,
    progress: bool = False,
    workers: Workers = "auto",
) -> Intervals:
    """Bootstrap intervals over images; where there are none, ``text`` says why."""
    images = len(evaluation.ground_truth.images)
    if not resamples or images < FEWEST_IMAGES or not len(evaluation.ground_truth):
        reason = f"No intervals: {counted(images, 'image')} {verb(images, 'are')} too few to resample."
        if not resamples:
            reason = (
                "No intervals: none were requested, or the data are so large that they take longer than a "
                "minute (--resamples 200)."
            )
        return Intervals({}, {}, reason)
    result = bootstrap_intervals(
        evaluation, resamples=resamples, seed=seed, progress=progress, workers=workers
    )
    text = (
        f"95 % intervals from {counted(resamples, 'bootstrap resample')} of the {counted(images, 'image')}"
        "; none for a class in fewer than 5 of them, or a metric over objects in fewer than 10."
    )
    ends = zip(result.total.low.tolist(), result.total.high.tolist(), strict=True)
    first = {"low": result.per_class.low[:, 0].tolist(), "high": result.per_class.high[:, 0].tolist()}
    metrics = dict(zip(result.metrics, ends, strict=True))
    return Intervals(metrics, first, " ".join(filter(None, [text, result.note])))


def calibration_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Reliability of all classes together, in the bins with detections; None for scores outside [0, 1]."""
    scores = evaluation.detections.given_scores
    if scores is None or not len(scores) or scores.min() < 0 or scores.max() > 1:
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
        "text": f"On average they differ by {errors.expected_error:.3f} (expected calibration error), by "
        f"{max(errors.debiased_error, 0):.3f} without what chance adds.",
    }
