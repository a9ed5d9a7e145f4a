"""Match objects to detections separately at every score threshold (KITTI).

This computes the counts of ``computeStatistics`` in KITTI's devkit for all score thresholds at once: the
counts of an image change only at the scores of its detections, so each detection stores those that hold from
its score on.

Conventions
-----------
- *First pass*, without a threshold: each object, in file order, takes the free detection with the highest
  score among those that overlap it enough. Thresholds are chosen among the scores of the true positives.
- *Second pass*, at a threshold: each object takes the free detection of at least that score with the largest
  overlap. The rest are false positives, unless they are in a region without annotations.
- Equal scores and overlaps are ordered by file. Detections below the least height of a range are ignored: in
  the first pass those of any class compete; in the second they have no effect.
- Adding a detection moves detections along a chain: an object that prefers the new one frees its own for
  later objects. So all thresholds together cost about as much as one.
- Objects of neighbor classes, and those outside a range, are ignored: detections that they take do not count.

References
----------
``evaluate_object.cpp`` of KITTI's devkit: ``cleanData``, ``computeStatistics``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import ragged_ranges
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.candidates import Asked
from boxscore.matching.ignoring import evaluated
from boxscore.matching.matches import Matches
from boxscore.matching.pairs import Overlaps
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.crowds import LEVEL_COUNTS, LEVEL_SIMILARITY, ORIENTED

UNKNOWN_ANGLE = -10.0
"""KITTI's alpha for an unknown orientation."""


class ScoreLevels(NamedTuple):
    """Counts stored with each detection; see :mod:`boxscore.protocols.tables.crowds`."""

    counts: NDArray[np.int64]
    """[D, T, A, 3]"""
    similarity: FloatArray
    """[D, T, A]"""
    oriented: BoolArray
    """[D]"""


def with_score_levels(asked: Asked, matches: Matches) -> Matches:
    """Add the columns with counts at every score level."""
    truth, detections, protocol = asked.ground_truth, asked.detections, asked.protocol
    scores, ranked = detections.scores.copy(), np.zeros(len(detections), dtype=bool)
    scores[asked.rows], ranked[asked.rows] = asked.score, True
    regions = asked.ignoring.by_foreground
    overlaps = asked.across(protocol.matching.lowest_threshold, regions)
    levels = score_levels(
        truth, detections, overlaps, scores, ranked, asked.ranges.counted, regions, protocol
    )
    columns = (LEVEL_COUNTS, LEVEL_SIMILARITY, ORIENTED)
    return matches.with_extra(
        {column.name: values[asked.rows] for column, values in zip(columns, levels, strict=True)}
    )


def score_levels(
    ground_truth: GroundTruth,
    detections: Detections,
    overlaps: Overlaps,
    scores: FloatArray,
    ranked: BoolArray,
    counted: BoolArray,
    region: BoolArray,
    protocol: Protocol,
) -> ScoreLevels:
    """Count at every score level of every image and class.

    ``overlaps`` are across classes; with a ``region`` [G], they are intersection over the detection.
    ``scores`` [D] and ``ranked`` [D] define the competing detections; ``counted`` is [G, A].
    """
    # Allocate the counts [D, T, A, 3] and the orientation similarity [D, T, A] of each detection.
    T, A = len(protocol.matching.iou_thresholds), len(protocol.ignore.area_ranges)
    angles = _angles(ground_truth), _angles(detections)
    levels = ScoreLevels(
        np.zeros((len(detections), T, A, 3), dtype=np.int64),
        np.zeros((len(detections), T, A)),
        angles[1] != UNKNOWN_ANGLE,
    )
    # Overlaps are indexed by detection; ``with_row`` [P] gives the detection of each pair.
    least = [_least_height(protocol, name) for name in protocol.ignore.area_ranges]
    height, with_row = detections.sizes[:, 1], np.empty(len(overlaps.truth), dtype=np.intp)
    with_row[ragged_ranges(overlaps.starts, overlaps.counts)] = np.repeat(
        np.arange(len(detections)), overlaps.counts
    )
    # Detections too small for a range compete in the first pass, even if their class is not
    # evaluated, as in the devkit.
    is_evaluated = evaluated(ground_truth.categories, protocol)
    takes_part = ranked | ~is_evaluated[detections.category]
    names = ground_truth.categories.names.tolist()
    for k in np.flatnonzero(is_evaluated).tolist():
        # Objects of the class and of its neighbors can take detections; neighbors do not count.
        others = protocol.score_levels.neighbors.get(names[k], ())
        of_class = np.isin(
            ground_truth.category, [k, *(names.index(name) for name in others if name in names)]
        )
        own = (detections.category == k) & ranked
        for t, floor in enumerate(protocol.matching.effective_thresholds_of(names[k]).tolist()):
            # Select the pairs that reach the threshold: pairs with a region only mark the detection, the
            # others compete.
            enough = overlaps.value >= floor
            of_region = region[overlaps.truth]
            in_region = np.zeros(len(detections), dtype=bool)
            in_region[with_row[enough & of_region]] = True
            chosen = enough & ~of_region & of_class[overlaps.truth]
            for a in range(A):
                # Each range has its own least height, and so its own pairs and counted objects.
                small = height < least[a]
                pairs = chosen & (takes_part & (own | small))[with_row]
                scene = _Scene(
                    with_row[pairs],
                    overlaps.truth[pairs],
                    overlaps.value[pairs],
                    counted[:, a] & (ground_truth.category == k),
                    scores,
                    own & ~small,
                    in_region,
                    *angles,
                )
                # The first pass marks the true positives whose scores become thresholds. The second pass adds
                # detections one at a time, which gives the counts at every score.
                first = scene.first_pass()
                levels.counts[first, t, a, 0] = 1
                for row, true, false, similarity in scene.second_pass(detections.image):
                    levels.counts[row, t, a, 1:] = true, false
                    levels.similarity[row, t, a] = similarity
                # Copy the level of the detection above to those that do not count.
                rows = np.flatnonzero(own)
                _carry_down(levels, rows, detections.image[rows], scores[rows], (own & ~small)[rows], t, a)
    return levels


def _angles(table: GroundTruth | Detections) -> FloatArray:
    """Return the column ``alpha``, [N]; unknown angles if it is missing."""
    if "alpha" not in table.columns:
        return np.full(len(table), UNKNOWN_ANGLE)
    return np.asarray(table.columns["alpha"], dtype=np.float64)


def _least_height(protocol: Protocol, name: str) -> float:
    """Return the lower bound on heights of a range."""
    return protocol.ignore.column_ranges.get(name, {}).get("height", (-math.inf, math.inf))[0]


def _carry_down(
    levels: ScoreLevels,
    rows: NDArray[np.intp],
    image: NDArray[np.int32],
    scores: FloatArray,
    counts: BoolArray,
    t: int,
    a: int,
) -> None:
    """Copy the level of the counting row above, in the same image, to rows that do not count."""
    order = np.lexsort((rows, ~counts, -scores, image))
    above = -1
    for position in order.tolist():
        if counts[position]:
            above = position
        elif above >= 0 and image[above] == image[position]:
            levels.counts[rows[position], t, a, 1:] = levels.counts[rows[above], t, a, 1:]
            levels.similarity[rows[position], t, a] = levels.similarity[rows[above], t, a]


class _Scene:
    """The pairs of one class, threshold and range, in all images."""

    def __init__(
        self,
        detection: NDArray[np.intp],
        truth: NDArray[np.intp],
        value: FloatArray,
        counted: BoolArray,
        scores: FloatArray,
        counts: BoolArray,
        in_region: BoolArray,
        truth_angles: FloatArray,
        angles: FloatArray,
    ) -> None:
        # Make lists of pairs by object and by detection.
        self._counted, self._scores, self._counts = counted, scores, counts
        self._in_region, self._angles = in_region, (truth_angles, angles)
        self._of_truth: dict[int, list[int]] = {}
        self._of_detection: dict[int, list[tuple[int, float]]] = {}
        # Sort by object and detection, so that every list ascends.
        order = np.lexsort((detection, truth))
        for d, g, overlap in zip(
            detection[order].tolist(), truth[order].tolist(), value[order].tolist(), strict=True
        ):
            self._of_truth.setdefault(g, []).append(d)
            if counts[d]:
                self._of_detection.setdefault(d, []).append((g, overlap))

    def first_pass(self) -> list[int]:
        """Return the detections whose scores are candidates for thresholds."""
        taken: set[int] = set()
        true = []
        for g, candidates in self._of_truth.items():  # ascending
            free = [d for d in candidates if d not in taken]
            if free:
                best = max(free, key=lambda d: (self._scores[d], -d))
                taken.add(best)
                if self._counted[g] and self._counts[best]:
                    true.append(best)
        return true

    def second_pass(self, image: NDArray[np.int32]) -> Iterator[tuple[int, int, int, float]]:
        """Yield each counting detection with the counts of its image from its score on."""
        # Go image by image from the highest score down, equal scores in file order.
        rows = np.flatnonzero(self._counts)
        order = rows[np.lexsort((rows, -self._scores[rows], image[rows]))].tolist()
        holder: dict[int, tuple[int, float]] = {}
        true = false = start = 0
        for position, row in enumerate(order):
            # Reset objects and counts for a new image.
            if position and image[row] != image[order[position - 1]]:
                holder, true, false = {}, 0, 0
            # Adding a detection changes one count: a free object is taken (one more true positive, unless the
            # object is ignored), or one detection is left over (one more false positive, unless it is in a
            # region).
            added = self._let_in(row, holder)
            if added is None:
                true += 1
            elif added >= 0:
                false += not self._in_region[added]
            # Equal scores pass a threshold together, so all have the counts after the last one.
            following = order[position + 1] if position + 1 < len(order) else None
            tied = following is not None and (
                image[following] == image[row] and self._scores[following] == self._scores[row]
            )
            if not tied:
                similarity = self._similarity(holder)
                for same in order[start : position + 1]:
                    yield same, true, false, similarity
                start = position + 1

    def _let_in(self, row: int, holder: dict[int, tuple[int, float]]) -> int | None:
        """Add one detection; return the one left over, or None or -1 if an object was free.

        None: the object counts; -1: it is ignored.
        """
        behind = -1
        while True:
            for g, overlap in self._of_detection.get(row, ()):
                held = holder.get(g)
                if g > behind and (held is None or (overlap, -row) > (held[1], -held[0])):
                    break
            else:
                return row
            holder[g] = row, overlap
            if held is None:
                return None if self._counted[g] else -1
            row, behind = held[0], g

    def _similarity(self, holder: dict[int, tuple[int, float]]) -> float:
        truth_angles, angles = self._angles
        return sum(
            (1.0 + math.cos(truth_angles[g] - angles[holder[g][0]])) / 2.0
            for g in sorted(holder)
            if self._counted[g]
        )
