"""Compute PCK and PCKh, the fraction of keypoints within a distance of the truth, for paired persons.

Conventions
-----------
- Predictions and persons are paired row by row, without scores or matching. A distance is Euclidean, divided
  by a normalizer of the person; it is undefined if that is 0 or the keypoint is unlabeled.
- Results are a fraction per keypoint and their mean: weighted by the number of labels (MPII), or plain over
  keypoints with any label (mmpose's PCKAccuracy).
- A PCK is only comparable with the same normalizer, threshold, mean and comparison; the result names the last
  three.

References
----------
HRNet and SimpleBaseline, ``lib/dataset/mpii.py``; mmpose 759b39c13, ``mmpose/evaluation/metrics/keypoint_2d_
metrics.py`` and ``functional/keypoint_eval.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.errors import InputError
from boxscore.extensions.diagnostics._result import DiagnosticResult

if TYPE_CHECKING:
    import pandas as pd

Mean = Literal["weighted", "plain"]
Precision = Literal["double", "single"]
AUC_STEPS = 20
"""Number of thresholds for the area under the PCK curve: 0, 1/20, ... 19/20."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CorrectKeypoints(DiagnosticResult):
    """Fractions of correct keypoints.

    Attributes
    ----------
    names : ndarray of object, [J]
    labeled : ndarray of int64, [J]
        Number of defined distances per keypoint.
    share : ndarray of float64, [J]
        PCK of each keypoint; NaN without labels.
    mean : float
        Mean over the keypoints that are not left out.
    area : float
        Mean of the plain PCK at the thresholds 0, 1/20, ... 19/20, exclusive (AUC).
    distance : float
        Mean of all distances: EPE if the normalizer is 1, otherwise NME.
    rule : str
        Threshold, comparison and mean.
    """

    names: NDArray[np.object_]
    labeled: NDArray[np.int64]
    share: FloatArray
    mean: float
    area: float
    distance: float
    rule: str

    def to_frame(self) -> pd.DataFrame:
        """Return one row per keypoint, and the mean in the last row."""
        import pandas as pd

        return pd.DataFrame(
            {
                "keypoint": [*self.names.tolist(), "(mean)"],
                "labeled": [*self.labeled.tolist(), int(self.labeled.sum())],
                "PCK": [*self.share.tolist(), self.mean],
            }
        )


def correct_keypoints(
    predicted: ArrayLike,
    truth: ArrayLike,
    normalizer: ArrayLike,
    *,
    labeled: ArrayLike | None = None,
    threshold: float = 0.5,
    closed: bool = True,
    mean: Mean = "weighted",
    precision: Precision = "double",
    leave_out: Sequence[int] = (),
    names: Sequence[str] | None = None,
) -> CorrectKeypoints:
    """Compute the fraction of keypoints within a threshold of the truth.

    Parameters
    ----------
    predicted, truth : array_like, [N, J, 2]
        Pixel coordinates; rows pair persons. For MPII, add 1 to zero-based predictions.
    normalizer : array_like, [N] or a number
        Divisor of distances: 0.6 times the diagonal of the head box (PCKh), the longer side of the person's
        box (PCK), a torso length, or a number of pixels.
    labeled : array_like of bool, [N, J], optional
        Which keypoints are labeled. Default: all.
    threshold : float, default 0.5
    closed : bool, default True
        Whether a distance equal to the threshold is correct: ``<=`` in HRNet's MPII code, ``<`` in mmpose.
    mean : {"weighted", "plain"}, default "weighted"
        Weight keypoints by their number of labels, or equally.
    precision : {"double", "single"}, default "double"
        Precision of distances. With ``"single"``, as in mmpose, they are float32 and divided before the root,
        which may change the result at the threshold.
    leave_out : sequence of int, default ()
        Zero-based keypoints to exclude from the mean, such as 6 and 7 of MPII (pelvis and thorax).
    names : sequence of str, optional
        Names of the keypoints. Default: their numbers from 1.

    Returns
    -------
    CorrectKeypoints

    Raises
    ------
    InputError
        If shapes differ or a number is not finite.

    Examples
    --------
    >>> truth = [[[0, 0], [10, 0]], [[0, 0], [10, 0]]]
    >>> found = [[[0, 4], [10, 0]], [[0, 6], [10, 1]]]
    >>> correct_keypoints(found, truth, 10, threshold=0.5).share.tolist()
    [0.5, 1.0]
    """
    # Check shapes: places [N, J, 2], ``normalizer`` [N], ``labeled`` [N, J].
    checks.one_of(mean, ("weighted", "plain"), name="mean")
    checks.one_of(precision, ("double", "single"), name="precision")
    places = [_points(values, name) for values, name in ((predicted, "predicted"), (truth, "truth"))]
    if places[0].shape != places[1].shape:
        raise InputError(
            "truth",
            f"have the shape of predicted, {list(places[0].shape)}",
            got=f"shape {list(places[1].shape)}",
        )
    # Use one scale per person, or one for all.
    N, J, _ = places[0].shape
    scale = np.broadcast_to(
        checks.float_array(np.atleast_1d(np.asarray(normalizer)), name="normalizer"), (N,)
    )
    # Distances of persons with a scale of 0 are undefined.
    known = np.ones((N, J), dtype=bool) if labeled is None else np.asarray(labeled, dtype=bool)
    if known.shape != (N, J):
        raise InputError("labeled", f"have shape [{N}, {J}]", got=f"shape {list(known.shape)}")
    known = known & (scale > 0)[:, None]
    checks.number_between(threshold, 0, np.inf, name="threshold")
    # Set undefined distances to NaN, which fails every comparison.
    distance = _distances(places[0], places[1], scale, precision)
    distance[~known] = np.nan
    hit = (distance <= threshold) if closed else (distance < threshold)
    # Compute the fraction per keypoint, and the mean over keypoints that are labeled and not left out.
    count = known.sum(axis=0)
    share = np.divide(hit.sum(axis=0), count, out=np.full(J, np.nan), where=count > 0)
    part = np.ones(J, dtype=bool)
    part[list(leave_out)] = False
    part &= count > 0
    weights = count[part] if mean == "weighted" else np.ones(int(part.sum()))
    total = float(np.average(share[part], weights=weights)) if part.any() else np.nan
    # Compute the mean distance, and the area over 20 thresholds: mmpose's AUC, always with a strict
    # comparison.
    every = distance[known]
    steps = [_plain_mean(distance < step / AUC_STEPS, count) for step in range(AUC_STEPS)]
    given = tuple(str(n + 1) for n in range(J)) if names is None else tuple(names)
    checks.same_length(J, of="keypoints", names=given)
    return CorrectKeypoints(
        np.array(given, dtype=object),
        count.astype(np.int64),
        share,
        total,
        float(np.mean(steps)),
        float(every.mean()) if len(every) else np.nan,
        f"distance {'<=' if closed else '<'} {threshold:g}, {mean} mean, {precision} precision",
    )


def _points(values: ArrayLike, name: str) -> FloatArray:
    array = checks.numbers(values, name=name, rule="have shape [N, J, 2], every row alike")
    if array.ndim != 3 or array.shape[2] != 2:
        raise InputError(name, "have shape [N, J, 2]", got=f"shape {list(array.shape)}")
    checks.finite(array.reshape(len(array), -1), name=name, place=lambda row: f"row {row}")
    return array


def _distances(predicted: FloatArray, truth: FloatArray, scale: FloatArray, precision: str) -> FloatArray:
    """Return distances over the normalizer, [N, J]."""
    with np.errstate(all="ignore"):  # the caller drops normalizers of 0
        if precision == "double":
            length: FloatArray = np.linalg.norm(predicted - truth, axis=2)
            return length / scale[:, None]
        single = np.linalg.norm((predicted - truth) / scale[:, None, None], axis=2).astype(np.float32)
        return np.asarray(single, dtype=np.float64)


def _plain_mean(hit: NDArray[np.bool_], count: NDArray[np.int64]) -> float:
    """Return the mean over keypoints with any label."""
    some = count > 0
    return float((hit.sum(axis=0)[some] / count[some]).mean()) if some.any() else np.nan
