"""Scale scores by minimum and maximum, and check that file order is the ranking (WIDER FACE).

Conventions
-----------
- Scaling needs the minimum and maximum score of all detections. The given scores and both ends are kept in
  columns, so that several files can be scaled together later (:class:`GivenScores`).

References
----------
WIDER FACE, ``norm_score.m``.
"""

from __future__ import annotations

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.ordering import stable_order
from boxscore._utils.records import NamedTuple
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.protocols.protocol import Protocol


class GivenScores(NamedTuple):
    """Scores before min-max scaling, stored in table columns with these names."""

    score_as_given: FloatArray
    """[D]"""
    least_given: FloatArray
    """Minimum over all detections, at most 1; the same in every row, [D]."""
    largest_given: FloatArray
    """Maximum over all detections, at least 0; the same in every row, [D]."""

    @classmethod
    def of(cls, detections: Detections) -> GivenScores:
        """Read the columns of a prepared table."""
        return cls(*(np.asarray(detections.columns[name], dtype=np.float64) for name in cls._fields))

    @classmethod
    def keep(cls, detections: Detections) -> Detections:
        """Add the columns to a table."""
        scores = detections.scores
        ends = min(1.0, float(scores.min(initial=1.0))), max(0.0, float(scores.max(initial=0.0)))
        given = cls(scores, *(np.broadcast_to(end, len(scores)) for end in ends))
        return detections.replaced(columns={**detections.columns, **given._asdict()})

    @property
    def ends(self) -> tuple[float, float] | None:
        """Minimum and maximum score; None without detections."""
        if not len(self.score_as_given):
            return None
        return float(self.least_given[0]), float(self.largest_given[0])


def stretched(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Scale scores to [0, 1] by minimum and maximum; scores of a partition stay as given."""
    detections = GivenScores.keep(detections)
    ends = GivenScores.of(detections).ends
    if ends is not None and not share:
        detections = detections.replaced(scores=min_max_scaled(detections.scores, *ends))
    return ground_truth, detections


def min_max_scaled(scores: FloatArray, low: float, high: float) -> FloatArray:
    """Scale scores to [0, 1] by the minimum and maximum of all."""
    if high == low:
        cause = "all scores are the same: does the detector write its confidences?"
        raise InputError("scores", "differ, to be stretched over [0, 1]", got=f"{low:g} alone", cause=cause)
    return np.asarray((scores - low) / (high - low))


def check_ranked(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Raise if the detections of an image are not in the order of descending scores."""
    if not detections.scored:
        return ground_truth, detections
    # Sort the detections by image, stably, so that file order stays within an image. A score above the
    # previous one breaks the ranking.
    order = stable_order(detections.image, len(detections.images))
    image, score = detections.image[order], detections.scores[order]
    rising = np.flatnonzero((image[1:] == image[:-1]) & (score[1:] > score[:-1]))
    if len(rising):
        # Report the first such detection with its image and both scores.
        at = int(rising[0])
        names = detections.images.ids.tolist()
        raise InputError(
            "the detections of an image",
            "come by descending score, since the benchmark reads their order as their rank",
            got=f"{score[at + 1]:g} after {score[at]:g}",
            place=f"image {names[int(image[at])]!r} of {detections.source}",
            cause="sort the lines of each file by score, the highest first",
        )
    return ground_truth, detections
