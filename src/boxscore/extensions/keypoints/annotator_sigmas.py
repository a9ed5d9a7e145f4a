"""Estimate keypoint sigmas for OKS of a custom skeleton, from persons that two annotators labeled.

Conventions
-----------
- Persons are paired by annotation id. A keypoint counts if both annotators labeled it.
- A sigma is the root mean of ``d^2 / area``, with the distance ``d`` in the image plane and the area of the
  first annotator. COCO does not define the two points: the two annotators, one annotator and the truth (half
  the variance, if annotators are independent and alike), or each annotator and the mean of both (a quarter).
- OKS uses twice the sigma, so that one, two and three standard deviations give .88, .61 and .32. A protocol
  should use the scatter of one annotator.

References
----------
https://cocodataset.org/#keypoints-eval
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.data.tables import GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.diagnostics._result import DiagnosticResult

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class KeypointSigmas(DiagnosticResult):
    """Sigmas of each keypoint, by definition of the distance.

    Attributes
    ----------
    pairs : ndarray of int64, [J]
        Persons in which both annotators labeled the keypoint.
    one, between, to_mean : ndarray of float64, [J]
        Scatter of one annotator about the truth, between the two, and of each about their mean; NaN without
        pairs.
    """

    pairs: NDArray[np.int64]
    one: FloatArray
    between: FloatArray
    to_mean: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return one row per keypoint."""
        import pandas as pd

        columns = {"pairs": self.pairs, "sigma": self.one, "between": self.between, "to_mean": self.to_mean}
        return pd.DataFrame({"keypoint": np.arange(1, len(self.pairs) + 1), **columns})


def keypoint_sigmas(first: GroundTruth, second: GroundTruth) -> KeypointSigmas:
    """Estimate sigmas from two annotations of the same persons.

    Parameters
    ----------
    first, second : GroundTruth
        Tables with the same annotation ids for the same persons.

    Returns
    -------
    KeypointSigmas

    Raises
    ------
    InputError
        If a table lacks keypoints, their numbers differ, or the tables share no person.

    Examples
    --------
    >>> person = dict(image_ids=[1], category_ids=["person"], boxes=None, area=[100])
    >>> one, other = (
    ...     GroundTruth.from_arrays(**person, keypoints=[[[0, y, 2], [5, 5, 2]]]) for y in (0, 2)
    ... )
    >>> keypoint_sigmas(one, other).between.tolist()
    [0.2, 0.0]
    """
    # Both tables need the same number of keypoints, [N, J, 3].
    points = []
    for table in (first, second):
        if table.keypoints is None:
            rule = "have keypoints, of which sigmas are estimated"
            raise InputError("ground truth", rule, got="none", place=table.source)
        points.append(table.keypoints)
    if points[0].shape[1] != points[1].shape[1]:
        raise InputError(
            "the second annotator's ground truth",
            f"have {points[0].shape[1]} keypoints, as the first's",
            got=points[1].shape[1],
            place=second.source,
        )
    # Pair the persons by annotation id.
    row_of = {identifier: row for row, identifier in enumerate(second.ids.tolist())}
    pairs = [(row, row_of[one]) for row, one in enumerate(first.ids.tolist()) if one in row_of]
    if not pairs:
        raise InputError(
            "the second annotator's ground truth",
            "have annotation ids of the first's",
            got="no common one",
            place=second.source,
            cause="persons are matched by annotation id",
        )
    # Select the keypoints that both annotators labeled, on persons with an area, [P, J].
    a, b = (np.array(rows) for rows in zip(*pairs, strict=True))
    one, other = points[0][a], points[1][b]
    area = first.area[a]
    known = (one[:, :, 2] > 0) & (other[:, :, 2] > 0) & (area > 0)[:, None]
    # Average squared distance over area, per keypoint; the three sigmas are fractions of this variance.
    squared = ((one[:, :, :2] - other[:, :, :2]) ** 2).sum(axis=2)
    share = np.divide(squared, area[:, None], out=np.zeros_like(squared), where=known)
    count = known.sum(axis=0)
    variance = np.divide(share.sum(axis=0), count, out=np.full(len(count), np.nan), where=count > 0)
    return KeypointSigmas(
        count.astype(np.int64), np.sqrt(variance / 2), np.sqrt(variance), np.sqrt(variance / 4)
    )
