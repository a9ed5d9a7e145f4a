"""Bin counted detections by score: select the rows of every partition, compute bin edges, add up cells.

Conventions
-----------
- Bins are ``(low, high]``; the first includes 0. With quantile edges (interpolated as in
  :func:`numpy.quantile`), each bin of all classes together has equally many detections.
- A *cell* is a bin of one class that contains detections. Its number is class * bins + bin.
- Sums use exact digits, so neither order nor partitioning changes them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray, KeyArray, Positions
from boxscore._utils.exact_sums import added
from boxscore._utils.ordering import distinct
from boxscore.data.vocabulary import rows_among_all
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.questions import Pieces, Place
from boxscore.extensions.large.ranks import lower_in, quantiles, sorted_keys
from boxscore.scoring.score_counts import counted_detections

Binning = Literal["width", "count"]


class ScoredRows(NamedTuple):
    """The N counted detections of a partition at or above a score threshold, in class order; arrays [N]."""

    category: IntArray
    image: IntArray
    """Row in the table of all images."""
    score: FloatArray
    true: BoolArray
    iou: FloatArray
    """0 for detections that are not true positives."""


def scored_rows(
    evaluation: Evaluation, place: Place, threshold: int, area: int, score_threshold: float
) -> ScoredRows:
    """Select the detections of a partition."""
    counted = counted_detections(evaluation.matched, threshold, area)
    rows = np.flatnonzero(counted.score >= score_threshold)
    return ScoredRows(
        counted.category[rows].astype(np.int64),
        rows_among_all(counted.image[rows], place),
        counted.score[rows],
        counted.true[rows],
        np.nan_to_num(counted.iou[rows]),
    )


def check_probabilities(pieces: Pieces) -> None:
    """Reject scores outside [0, 1]; the error names the highest of the first class."""
    outside = [one for one in pieces.results(_outside) if one is not None]
    if outside:
        score = -min(outside)[1]
        raise InputError(
            "scores", "be in [0, 1] for calibration", got=score, cause="are they logits, or percentages?"
        )


def _outside(rows: ScoredRows) -> tuple[int, float] | None:
    outside = np.flatnonzero((rows.score < 0) | (rows.score > 1))
    return (int(rows.category[outside[0]]), -float(rows.score[outside[0]])) if len(outside) else None


# ---------------------------------------------------------------- bin edges


def ends_of_bins(pieces: Pieces, bins: int, binning: Binning) -> FloatArray:
    """Divide [0, 1], or the detections of all partitions, into bins; [bins + 1]."""
    shares = np.linspace(0, 1, bins + 1)
    if binning == "width":
        return shares
    ordered = pieces.then(_keys)
    count = sum(ordered.results(len))
    if not count:
        return shares
    return quantiles(count, shares, lambda tried: functools.reduce(np.add, ordered.results(lower_in, tried)))


def _keys(rows: ScoredRows) -> KeyArray:
    return sorted_keys(rows.score)


# ---------------------------------------------------------------- sums


class CellSums(NamedTuple):
    """Sums over the detections of each cell, [P]; exact digits are [digits, P]."""

    cell: IntArray
    """Cell; ascending."""
    detections: IntArray
    true: IntArray
    score: IntArray
    iou: IntArray
    squares: IntArray
    """Sum of squared residuals: 1 (true) or 0 (false) minus the score."""
    variance: IntArray
    """Variance of the residuals if scores are calibrated: s (1 - s)."""


def sums_of_cells(pieces: Pieces, ends: FloatArray) -> CellSums:
    """Add up the cells of all partitions."""
    answers = pieces.results(_sums, ends)
    cells = distinct(np.concatenate([one.cell for one in answers]))
    columns: Mapping[str, Any] = {
        name: np.zeros((*getattr(answers[0], name).shape[:-1], len(cells)), dtype=np.int64)
        for name in CellSums._fields[1:]
    }
    for one in answers:
        at = np.searchsorted(cells, one.cell)
        for name, column in columns.items():
            column[..., at] += getattr(one, name)
    return CellSums(cells, **columns)


def _sums(rows: ScoredRows, ends: FloatArray) -> CellSums:
    place, cells = numbered(cells_of(rows, ends))
    size = len(cells)
    true, score = rows.true.astype(np.float64), rows.score
    return CellSums(
        cells,
        np.bincount(place, minlength=size),
        np.bincount(place[rows.true], minlength=size),
        *(added(place, each, size) for each in (score, rows.iou, (true - score) ** 2, score * (1 - score))),
    )


def cells_of(rows: ScoredRows, ends: FloatArray) -> Positions:
    """Return the cell of each detection, [N]."""
    return rows.category * (len(ends) - 1) + np.searchsorted(ends[1:-1], rows.score, side="left")


def numbered(keys: IntArray) -> tuple[Positions, Positions]:
    """Assign a number to each key, ascending; return the number of each entry, and the key of each number."""
    is_there = np.zeros(int(keys.max(initial=-1)) + 1, dtype=bool)
    is_there[keys] = True
    present = np.flatnonzero(is_there)
    number = np.empty(len(is_there), dtype=np.int32 if len(present) < 1 << 31 else np.intp)
    number[present] = np.arange(len(present))
    return number[keys].astype(np.intp), present
