"""Curves of blocks of classes, drawn one block after the other and joined: numbers, no detections.

Goal
----
A curve depends on the detections of its class alone. Where all detections are too many to be sorted at once,
each block of classes is drawn by :class:`~boxscore.scoring.curves.Curves` and forgotten; what summary
metrics, per-class values and pycocotools' arrays are made of stays, to the bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.protocols.protocol import ApRules, FrocRules, MissRateRules, Protocol
from boxscore.scoring.curves import Curves
from boxscore.scoring.jaccard import jaccard_areas

__all__ = ["JoinedCurves"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class JoinedCurves:
    """The numbers of :class:`~boxscore.scoring.curves.Curves` at one area range and detection cap.

    Attributes
    ----------
    rules : ApRules
    class_columns : mapping of str to ndarray, [K]
        What else is known of the classes.
    positive : ndarray, [K]
        Counted ground truths.
    recall, average_precision : ndarray of float64, [T, K]
    interpolated, scores : ndarray of float64, [T, R, K]
    froc, missed : ndarray of float64, [T, F, K], or None
        Sensitivity, and miss rate, at the protocol's false positives per image, where its summary asks.
    jaccard : ndarray of float64, [T, K], or None
        Jaccard index, where the summary asks for it at this area range.
    images_of_class : ndarray of int64, [K], or None
        Images with an object of each class, where the mean over classes is by them.
    """

    rules: ApRules
    class_columns: Mapping[str, NDArray[Any]]
    positive: NDArray[Any]
    recall: FloatArray
    average_precision: FloatArray
    interpolated: FloatArray
    scores: FloatArray
    froc: FloatArray | None = None
    missed: FloatArray | None = None
    jaccard: FloatArray | None = None
    images_of_class: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, curves: Curves, protocol: Protocol) -> JoinedCurves:
        """Take the numbers of one block."""
        kinds = {row.metric for row in protocol.rows}
        of_crowds = "JI" in kinds and curves.counts.outcomes.area in jaccard_areas(protocol)
        return cls(
            curves.rules,
            curves.class_columns,
            curves.positive,
            curves.recall,
            curves.average_precision,
            curves.interpolated,
            curves.scores,
            curves.sensitivity(protocol.froc) if "FROC" in kinds else None,
            curves.miss_rates(protocol.miss_rate) if "MR" in kinds else None,
            curves.jaccard_indices(protocol) if of_crowds else None,
            curves.images_of_class if protocol.ap.class_mean == "by_images" else None,
        )

    @classmethod
    def join(cls, blocks: Sequence[JoinedCurves], class_columns: Mapping[str, NDArray[Any]]) -> JoinedCurves:
        """Join blocks of classes, in their order."""
        names = [field.name for field in dataclasses.fields(cls)[2:]]
        columns = {
            name: np.concatenate([getattr(block, name) for block in blocks], axis=-1)
            for name in names
            if getattr(blocks[0], name) is not None
        }
        return cls(blocks[0].rules, class_columns, **columns)

    @property
    def cells(self) -> FloatArray:
        """:attr:`interpolated`, [T, R, K]."""
        return self.interpolated

    @property
    def reached_scores(self) -> FloatArray:
        """:attr:`scores`, NaN at the recall points that are not reached, [T, R, K]."""
        points = np.array(self.rules.recall_points)
        return np.where(points[:, None] <= self.recall[:, None], self.scores, np.nan)

    def at(self, threshold: int) -> tuple[FloatArray, FloatArray]:
        """:attr:`interpolated` and :attr:`reached_scores` of one threshold (position on T), each [R, K]."""
        return self.interpolated[threshold], self.reached_scores[threshold]

    def sensitivity(self, rules: FrocRules) -> FloatArray:
        """Sensitivity at false positives per image, [T, F, K], which was read when the curves were there."""
        assert self.froc is not None, "the summary has no FROC"
        return self.froc

    def miss_rates(self, rules: MissRateRules) -> FloatArray:
        """Miss rate at false positives per image, [T, F, K], which was read when the curves were there."""
        assert self.missed is not None, "the summary has no MR"
        return self.missed

    def jaccard_indices(self, protocol: Protocol) -> FloatArray:
        """Jaccard index of crowds, [T, K], which was computed when the matches were there."""
        assert self.jaccard is not None, "the summary has no JI at this area range"
        return self.jaccard
