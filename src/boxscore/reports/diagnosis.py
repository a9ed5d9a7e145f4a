"""Sections of the report that stand on the diagnostics: reshaped for drawing, never recomputed.

Conventions
-----------
- Each function returns plain lists for JSON, classes as row numbers, or None when it has nothing to show.
- Curves are thinned by ``reports/curve_view.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.diagnostics.confusion import confusion_matrix, top_confusions
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.reports._arrays import (
    Rates,
    best_rates,
    error_costs,
    metric_intervals,
    rates_by_score,
    reliability,
)
from boxscore.reports.curve_view import significant, thin
from boxscore.reports.gallery import Gallery

__all__ = [
    "Intervals",
    "calibration_view",
    "confidence_view",
    "confusion_view",
    "errors_view",
    "intervals",
    "operating_score",
]

MOST_CONFUSED = 80
"""Classes in the confusion matrix; of more, those with most confusions are shown."""

MOST_CELLS = 100
"""Cells whose images are in the report: of two classes, and again with the background."""

MOST_NAMED, IMAGES_IN_A_CELL = 40, 4
"""Images of a cell that are named, and of these the ones that are shown."""

FEWEST_IMAGES = 10
"""Fewer images are not resampled: the spread of so few says nothing."""


def operating_score(evaluation: Evaluation) -> float:
    """Score of the best F1 over all classes; minus infinity where there is none."""
    best = float(best_rates(evaluation).score[-1])
    return best if best == best else -np.inf


def confidence_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Precision, recall and F1 against confidence, of each class and of all together.

    Returns
    -------
    dict
        ``all`` and ``classes`` (class row to curve): ``[score, precision, recall, F1]`` lists, the rates in
        ten-thousandths; ``best``: ``[score, precision, recall, F1]`` of each class, all together last.
    """
    if not len(evaluation.detections) or not len(evaluation.ground_truth):
        return None
    *classes, whole = rates_by_score(evaluation)
    return {
        "all": _confidence_curve(whole),
        "classes": {
            str(k): _confidence_curve(rates)
            for k, rates in enumerate(classes)
            if len(rates.score) and np.isfinite(rates.recall).all()
        },
        "best": [significant(line, 4) for line in np.column_stack(best_rates(evaluation))],
    }


def _confidence_curve(curve: Rates) -> list[Any]:
    score = curve.score
    rates = [np.nan_to_num(values) for values in (curve.precision, curve.recall, curve.f_score)]
    coarse = np.unique(np.linspace(0, len(score) - 1, 600).round().astype(int))  # then by shape
    coarse = np.union1d(coarse, [int(np.argmax(rates[2]))])
    kept = np.zeros(len(coarse), dtype=bool)
    for rate in rates:
        kept[thin(score[coarse], rate[coarse], tolerance=0.004)] = True
    kept |= coarse == int(np.argmax(rates[2]))
    points = coarse[kept]
    return [
        significant(score[points], 4),
        *(np.round(rate[points] * 10_000).astype(int).tolist() for rate in rates),
    ]


def confusion_view(evaluation: Evaluation, gallery: Gallery) -> dict[str, Any] | None:
    """Confusion matrix at the operating score, and the images behind its largest cells.

    Parameters
    ----------
    evaluation : Evaluation
    gallery : Gallery
        Gets the images.

    Returns
    -------
    dict
        ``shown``: class rows, K for background last; ``cells``: ``[truth, predicted, count]``, class rows;
        ``top``: ``[truth, predicted, count, share, [[image id, record or None], ...], images]``.
    """
    if not len(evaluation.ground_truth) and not len(evaluation.detections):
        return None
    score = max(gallery.score_threshold, -1e300)
    matrix = confusion_matrix(evaluation, score_threshold=score)
    K = len(matrix.counts) - 1
    shown = [*matrix.most_confused(MOST_CONFUSED).tolist(), K]
    inside = np.zeros(K + 1, dtype=bool)
    inside[shown] = True
    truth, predicted = np.nonzero(matrix.counts)
    keep = inside[truth] & inside[predicted]
    cells = np.column_stack([truth, predicted, matrix.counts[truth, predicted]])[keep]

    top: dict[tuple[int, int], list[Any]] = {}
    for background in (False, True):
        listed = top_confusions(evaluation, score_threshold=score, limit=MOST_CELLS, background=background)
        columns = (listed.truth, listed.predicted, listed.count, listed.share_of_truth)
        lines = zip(*(column.tolist() for column in columns), listed.images, strict=True)
        for said, taken_for, count, share, images in lines:
            if (said, taken_for) not in top:
                named = _named(listed.image_ids[images[:MOST_NAMED]], images.tolist(), gallery)
                top[said, taken_for] = [
                    said,
                    taken_for,
                    count,
                    significant([share])[0],
                    named,
                    len(images),
                ]
    return {
        "score": gallery.score_threshold,
        "shown": shown,
        "classes": K,
        "cells": cells.tolist(),
        "top": list(top.values()),
    }


def _named(ids: NDArray[Any], images: list[int], gallery: Gallery) -> list[list[Any]]:
    """Ids of images, and for the first few their records."""
    named = zip(ids.tolist(), images, strict=False)
    return [
        [str(identifier), gallery.add(image) if number < IMAGES_IN_A_CELL else None]
        for number, (identifier, image) in enumerate(named)
    ]


def errors_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Cost of each kind of mistake, over all classes.

    Returns
    -------
    dict
        ``ap`` as it is, and ``rows``: ``[error, count, cost]``, AP as a fraction.
    """
    if not len(evaluation.ground_truth):
        return None
    costs = error_costs(evaluation)
    rows = zip(costs.kinds, costs.count.tolist(), significant(costs.cost), strict=True)
    return {"ap": significant([costs.ap])[0], "rows": [list(row) for row in rows]}


class Intervals(NamedTuple):
    """Confidence intervals of the headline numbers, and of the first number of each class."""

    metrics: dict[str, tuple[float, float]]
    classes: dict[str, list[float]]  # "low" and "high", [K] each; empty when not asked for
    text: str


def intervals(evaluation: Evaluation, *, resamples: int, seed: int = 0) -> Intervals:
    """Bootstrap intervals over images.

    Parameters
    ----------
    evaluation : Evaluation
    resamples : int
        0 for none.
    seed : int

    Returns
    -------
    Intervals
        Empty, with the reason as ``text``, where there are too few images or the protocol has
        no weighted form.
    """
    images = len(evaluation.ground_truth.images)
    if not resamples or images < FEWEST_IMAGES or not len(evaluation.ground_truth):
        reason = f"No intervals: {images:,} images are too few to resample."
        if not resamples:
            reason = "No intervals: none were asked for, or the data are too many for a quick report."
        return Intervals({}, {}, reason)
    try:
        made = metric_intervals(evaluation, resamples=resamples, seed=seed)
    except InputError as error:
        return Intervals({}, {}, f"No intervals: {error}")
    keys = [row.key for row in evaluation.protocol.rows]
    ends = zip(made.low.tolist(), made.high.tolist(), strict=True)
    classes = {"low": made.class_low[:, 0].tolist(), "high": made.class_high[:, 0].tolist()} if keys else {}
    text = f"95 % intervals from {resamples:,} bootstrap resamples of the {images:,} images."
    return Intervals(dict(zip(keys, ends, strict=True)), classes, text)


def calibration_view(evaluation: Evaluation) -> dict[str, Any] | None:
    """Reliability of all classes together, in ten bins; None where scores are not in [0, 1].

    Returns
    -------
    dict
        ``confidence``, ``precision`` and ``count`` of each bin that is not empty, and ``text``.
    """
    scores = evaluation.detections.scores
    if not len(scores) or scores.min() < 0 or scores.max() > 1:
        return None
    bins = reliability(evaluation)
    if len(bins.count) < 2:
        return None
    text = f"On average they differ by {bins.error:.3f} (expected calibration error)."
    return {
        "confidence": significant(bins.confidence),
        "precision": significant(bins.precision),
        "count": bins.count.tolist(),
        "text": text,
    }
