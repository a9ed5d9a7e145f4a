"""Define overlapping pairs of a detection and a ground truth, and flags of the matched ones."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import ragged_ranges
from boxscore._utils.records import NamedTuple
from boxscore.matching.matches import Bits


class Pairs(NamedTuple):
    """Overlapping pairs in group order, and inside one detection in file order of the ground truths."""

    detection: NDArray[np.intp]  # [P] positions in class order (Ranking.rows)
    ground_truth: NDArray[np.intp]  # [P] rows of the table
    iou: NDArray[np.float64]  # [P]

    def take(self, chosen: NDArray[Any]) -> Pairs:
        """Keep some pairs, by flags or positions."""
        return Pairs(self.detection[chosen], self.ground_truth[chosen], self.iou[chosen])

    def of_detections(self, chosen: NDArray[np.bool_]) -> Pairs:
        """Keep the pairs of some detections, [D]."""
        return self.take(np.flatnonzero(chosen[self.detection]))

    @classmethod
    def joined(cls, parts: Iterable[Pairs]) -> Pairs:
        """Concatenate pairs."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Overlaps(NamedTuple):
    """The pairs of all rows of two tables that reach a floor; the pairs of a detection are contiguous."""

    starts: NDArray[np.intp]
    """Where the pairs of each detection start, [D]."""
    counts: NDArray[np.intp]
    """Number of its pairs, [D]."""
    truth: NDArray[np.intp]
    """Row of the ground truth of each pair, [P]."""
    value: NDArray[np.float64]
    """Overlap of each pair, [P]."""

    @classmethod
    def of(cls, pairs: Pairs, rows: NDArray[np.intp]) -> Overlaps:
        """Index pairs, which ascend by position, by row; ``rows`` [D] has the row of each position."""
        of_position = np.bincount(pairs.detection, minlength=len(rows))
        starts, counts = np.empty_like(of_position), np.empty_like(of_position)
        starts[rows], counts[rows] = np.cumsum(of_position) - of_position, of_position
        return cls(starts, counts, pairs.ground_truth, pairs.iou)

    def under(self, rows: NDArray[np.intp], positions: NDArray[np.intp], floor: float) -> Pairs:
        """Return the pairs of some rows that reach a floor; the detection is a position in a ranking."""
        counts = self.counts[rows]
        pairs = ragged_ranges(self.starts[rows], counts)
        detection, iou = np.repeat(positions, counts), self.value[pairs]
        enough = np.flatnonzero(iou >= floor)
        if len(enough) < len(pairs):
            detection, pairs, iou = detection[enough], pairs[enough], iou[enough]
        return Pairs(detection, self.truth[pairs], iou)


class Outcome(NamedTuple):
    """The result of matching pairs."""

    pairs: Pairs
    bits: Bits
    """Bit ``t``: a match at threshold ``t``, [P, A]."""
    every_pair: bool
    """Whether all pairs are present; False if only matches were kept."""
    left: Sequence[list[Pairs]] = ()
    """Pairs left for each later pass, for rules that match in several passes."""
    absorbed: Bits | None = None
    """The bits at which another detection has the group, [P, A]; None if nothing is absorbed."""

    @classmethod
    def joined(cls, parts: Sequence[Outcome]) -> Outcome:
        """Concatenate outcomes of separate matchings; all parts absorb, or none."""
        absorbed = [part.absorbed for part in parts if part.absorbed is not None]
        return cls(
            Pairs.joined(part.pairs for part in parts),
            np.concatenate([part.bits for part in parts]),
            all(part.every_pair for part in parts),
            [functools.reduce(operator.add, lists) for lists in zip(*(p.left for p in parts), strict=True)],
            np.concatenate(absorbed) if absorbed else None,
        )
