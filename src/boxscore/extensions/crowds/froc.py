"""Compute the free-response ROC: sensitivity at some numbers of false positives per image (FPPI).

Conventions
-----------
- See :mod:`boxscore.extensions.crowds.froc_metric` for definitions. Points and interpolation are those of the
  protocol (``[froc]``), so the mean over classes equals the summary metric ``"FROC"``.
- The curve of a class counts only its own false positives. All classes together share one confidence
  threshold; there, false positives of classes without ground truth count too, as in practice.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.evaluation import Evaluation
from boxscore.extensions.crowds.froc_metric import sensitivity_at
from boxscore.extensions.diagnostics._reading import area_index, threshold_index
from boxscore.extensions.diagnostics._result import (
    ClassResultWithMean,
    CurvesByClass,
    Floats,
    mean_over_classes,
    once_per_evaluation,
)
from boxscore.protocols.grids import fppi_points, number_text
from boxscore.scoring.score_counts import ScoreCounts

if TYPE_CHECKING:
    import pandas as pd


class FrocPoints(NamedTuple):
    """Points of a curve; float64 arrays of one shape."""

    score: Floats
    """Confidence threshold."""
    fppi: Floats
    """False positives per image."""
    sensitivity: Floats


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FrocCurves(CurvesByClass):
    """Sensitivity and false positives per image at every distinct confidence.

    Attributes
    ----------
    classes : list of str, [K]
    points : FrocPoints, [N]
        Class by class, then all classes together; scores descend in each curve.
    bounds : ndarray of intp, [K + 2]
        Offset of each class in ``points``, of all classes together, and the end.
    """

    classes: list[str]
    points: FrocPoints
    bounds: NDArray[np.intp]

    def frame_of(self, classes: NDArray[np.object_], rows: slice) -> pd.DataFrame:
        """Return a frame of some points with the class of each."""
        import pandas as pd

        columns = {name: column[rows] for name, column in self.points._asdict().items()}
        return pd.DataFrame({"class": classes, **columns})


class Sensitivities(NamedTuple):
    """Sensitivity at R numbers of false positives per image; NaN without ground truth."""

    sensitivity: Floats
    """Float64, [..., R]."""
    mean: Floats
    """Mean over the R points, LUNA16's competition performance metric (CPM); float64, [...]."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FrocScores(ClassResultWithMean):
    """Sensitivity at some numbers of false positives per image.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Sensitivities, [K, R] and [K]
    total : Sensitivities, [R] and scalar
        All classes together, under one confidence threshold.
    mean : Sensitivities, [R] and scalar
        Mean over classes.
    fppi : ndarray of float64, [R]
        Numbers of false positives per image, ascending.
    """

    per_class: Sensitivities
    total: Sensitivities
    mean: Sensitivities
    fppi: FloatArray

    def frame_of(self, classes: Sequence[str], values: Sensitivities) -> pd.DataFrame:
        """Return a frame with one row per class: a column per number of false positives, and the mean."""
        import pandas as pd

        columns = dict(zip(map(number_text, self.fppi.tolist()), values.sensitivity.T, strict=True))
        return pd.DataFrame({"class": np.array(classes, dtype=object), **columns, "mean": values.mean})


@once_per_evaluation
def froc_scores(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    fppi: Sequence[float] | None = None,
) -> FrocScores:
    """Compute the sensitivity of each class at some numbers of false positives per image, and their mean.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        An IoU threshold of the protocol. Default: the first.
    area : str, default "all"
        An area range of the protocol.
    fppi : sequence of float, optional
        Numbers of false positives per image. Default: those of the protocol, or LUNA16's 0.125, 0.25, 0.5, 1,
        2, 4 and 8.

    Returns
    -------
    FrocScores

    Raises
    ------
    InputError
        If the protocol lacks the threshold or the range, or ``fppi`` is empty or negative.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 2], ["cat"] * 2, [[0, 0, 9, 9]] * 2)
    >>> boxes = [[0, 0, 9, 9], [40, 0, 49, 9], [0, 0, 9, 9]]
    >>> detections = Detections.from_arrays([1, 1, 2], ["cat"] * 3, boxes, [0.9, 0.8, 0.7])
    >>> froc_scores(evaluate(truth, detections), fppi=[0.25, 0.5]).total.sensitivity.tolist()
    [0.5, 1.0]
    """
    # Count at distinct scores; for partitions, fetch only the neighbors of the points.
    rules = evaluation.protocol.froc
    points = np.array(rules.false_positives_per_image if fppi is None else fppi_points(fppi, name="fppi"))
    keep = functools.partial(_kept, points=points, images=evaluation._image_count)
    counts = evaluation._score_counts(
        threshold_index(evaluation, iou_threshold), area_index(evaluation, area), keep
    )
    # Read each class and, last, all classes together, [K + 1, F].
    read = np.array(
        [
            sensitivity_at(
                points,
                counts.false[counts.part(k)],
                counts.true[counts.part(k)],
                positive=positive,
                images=evaluation._image_count,
                interpolation=rules.interpolation,
            )
            for k, positive in enumerate(counts.positive.tolist())
        ]
    )
    # Average over the points, and over classes by weight.
    means, weights = read.mean(axis=1), evaluation._class_weights
    over_classes = Sensitivities(
        np.array([mean_over_classes(column, weights) for column in read[:-1].T]),
        mean_over_classes(means[:-1], weights),
    )
    return FrocScores(
        evaluation.labels,
        Sensitivities(read[:-1], means[:-1]),
        Sensitivities(read[-1], means[-1]),
        over_classes,
        points,
    )


def _kept(counts: ScoreCounts, *, points: FloatArray, images: int) -> list[int]:
    """Keep the neighbors of each point in a curve or a chunk of it, enough for any interpolation."""
    beyond = np.searchsorted(counts.false / max(images, 1), points, side="right")
    near = np.concatenate([beyond - 1, beyond])
    kept: list[int] = near[(near >= 0) & (near < len(counts.score))].tolist()
    return kept


@once_per_evaluation
def froc_curve(
    evaluation: Evaluation, *, iou_threshold: float | None = None, area: str = "all"
) -> FrocCurves:
    """Compute sensitivity and false positives per image at every distinct confidence.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold, area
        As in :func:`froc_scores`.

    Returns
    -------
    FrocCurves

    Raises
    ------
    InputError
        If the protocol lacks the threshold or the range.
    """
    counts = evaluation._score_counts(
        threshold_index(evaluation, iou_threshold), area_index(evaluation, area)
    )
    positive = np.repeat(counts.positive, np.diff(counts.bounds))
    with np.errstate(invalid="ignore"):
        points = FrocPoints(counts.score, counts.false / evaluation._image_count, counts.true / positive)
    return FrocCurves(evaluation.labels, points, counts.bounds)
