"""Count at score thresholds where no process can hold all scores: operating points, FROC, LRP.

Conventions
-----------
- An analysis reads few points of a curve: the best F-score, or the last point with some precision. Each chunk
  keeps the points that may be read, with the counts of all higher scores added. The analysis then runs on
  these points as in one process, with the same result.
- Counts and digits of overlaps are integers, so the order of detections does not matter.
- Parts do not store overlaps. If an analysis needs them, the partitions are read again, and the counted rows
  are split as parts are.
- The curve of all classes together is split into chunks like that of a large class.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.exact_sums import added
from boxscore._utils.ordering import descending_order, group_starts
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.merging import MergedParts
from boxscore.extensions.large.parts import Part
from boxscore.extensions.large.pieces import Cut, edges_between, sample_of
from boxscore.extensions.large.plan import MOST, ClassPlan, name_of
from boxscore.extensions.large.questions import ClassRows
from boxscore.extensions.large.source import cut_rows, joined_rows
from boxscore.extensions.large.weighing import HeldParts
from boxscore.matching.matches import Matches
from boxscore.scoring.score_counts import DIGITS, CountsBefore, ScoreCounts, counted_detections, counts_up_to

PER_SCORE = 150
"""Bytes per detection while scores are counted."""

Keep = Callable[[ScoreCounts], Sequence[int]]
"""Takes the counts of a curve, or of a chunk of it, and returns the positions that an analysis may read."""


class Reading(NamedTuple):
    """Positions on the axes T and A to count at, and the points to keep."""

    threshold: int
    area: int
    keep: Keep
    overlaps: bool = False
    """Whether the analysis reads overlaps."""


class Kept(NamedTuple):
    """The points of one curve that a chunk keeps."""

    score: FloatArray
    true: IntArray
    false: IntArray
    distance: FloatArray


def counted_rows(matches: Matches, threshold: int, area: int) -> ClassRows:
    """Select the counted detections: score, whether true, and overlap (NaN unless true)."""
    counted = counted_detections(matches, threshold, area)
    bounds = group_starts(counted.category, len(counted.positive))
    return ClassRows(bounds, counted.score, (counted.true, counted.iou))


def can_be_thinned(held: HeldParts) -> bool:
    """Return whether counts of the parts are integers."""
    return not any(header.weighted for header in held.headers)


def thinned_counts(held: HeldParts, reading: Reading, *, most: int | None = None) -> ScoreCounts:
    """Return the kept points of the curves of each class, and of all classes together.

    Parameters
    ----------
    held : HeldParts
        Parts with unweighted ground truths.
    reading : Reading
    most : int, optional
        Detections to merge at a time. Default: as many as fit in memory.

    Returns
    -------
    ScoreCounts
        Distances are NaN unless overlaps are read.
    """
    # Plan by memory; count the ground truths of each class on the engine, [K].
    if most is None:
        most = MOST if held.room is None else min(MOST, held.room // PER_SCORE)
    engine = held.engine
    with engine.asked_again():
        plan = ClassPlan(engine, held.parts, held.headers, most)
        counted = [engine.submit("objects", _objects, part, reading.area) for part in held.parts]
        positive = np.sum(engine.results(counted), axis=0)
        # One job per block of classes, and one for all classes together; split large ones by score.
        source = _Source(plan, _reread_rows(held, reading) if reading.overlaps else None)
        K = len(positive)
        jobs = [_Job(block, False) for block in plan.blocks()] + [_Job(Cut(0, K), True)]
        edges = _edges(plan, jobs, most)
        # Count what precedes each chunk; integers add up exactly.
        up_to = _counts_up_to(source, edges, reading)
        tasks: list[Any] = []
        owners: list[_Job] = []
        # Let each chunk keep the few points that may be read, with the preceding counts added.
        for job in jobs:
            for number, piece in enumerate(job.block.between(edges.get(job, []))):
                name = f"{'all' if job.together else name_of(job.block)}-{number}"
                before = up_to[job][:, number - 1] if number else np.zeros(2 + DIGITS, dtype=np.int64)
                asked = source.pieces(piece, name), job, before, positive, reading
                tasks.append(engine.submit(f"points-{name}", _kept, *asked))
                owners.append(job)
        answers = engine.results(tasks)
    # Join the points of each curve, highest scores first.
    curves: list[list[Kept]] = [[] for _ in range(K + 1)]
    for job, answer in zip(owners, answers, strict=True):
        for number, kept in zip(job.curves(K), answer, strict=True):
            curves[number].append(kept)
    return _joined(curves, np.append(positive, positive.sum()))


class _Source(NamedTuple):
    """The parts, or the counted rows of the partitions, to cut pieces from."""

    plan: ClassPlan
    rows: Sequence[Any] | None

    def pieces(self, piece: Cut, name: str) -> list[Any]:
        """Cut a piece out of each part or partition."""
        if self.rows is None:
            return self.plan.pieces(piece, name)
        return [self.plan.engine.submit(f"cut-{name}", cut_rows, one, piece) for one in self.rows]

    def each(self, piece: Cut, name: str) -> list[Any]:
        """Cut a piece out of each, as lists with one piece."""
        return [[one] for one in self.pieces(piece, name)]


def _reread_rows(held: HeldParts, reading: Reading) -> list[Any]:
    """Read the partitions again; their counted rows stay on the engine."""
    options = {"threshold": reading.threshold, "area": reading.area}
    tasks = [held.engine.submit("ask", _rows_of_task, task, options) for task in held.tasks]
    return held.engine.held(tasks, shown="reading again")


def _rows_of_task(task: Any, options: Mapping[str, Any]) -> ClassRows:
    rows: ClassRows = task.asked(_rows_of, options)
    return rows


def _rows_of(evaluation: Evaluation, threshold: int, area: int) -> ClassRows:
    return counted_rows(evaluation.matched, threshold, area)


class _Job(NamedTuple):
    """The curves of some classes, or the curve of all classes together."""

    block: Cut
    together: bool

    def curves(self, K: int) -> range:
        """Return the numbers of the curves; that of all classes together is K."""
        return range(K, K + 1) if self.together else range(self.block.low, self.block.high)


def _objects(part: Part, area: int) -> IntArray:
    """Return the number of counted ground truths per class, [K]."""
    packed = part.matches
    counted = (packed.truth_counted >> packed.truth_counted.dtype.type(area)) & 1
    up_to: IntArray = np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])[packed.bounds[2]]
    return np.diff(up_to)


def _edges(plan: ClassPlan, jobs: Sequence[_Job], most: int) -> dict[_Job, list[float]]:
    """Choose the edges of chunks of curves with too many detections, descending, from samples."""
    large = [
        job for job in jobs if plan.count_of(job.block) > most and len(job.curves(len(plan.detections))) == 1
    ]
    if not large:
        return {}
    blocks = [job.block for job in large]
    samples = plan.engine.results(
        [plan.engine.submit("sample", sample_of, part, blocks) for part in plan.parts]
    )
    return {
        job: edges_between([one for sample in samples for one in sample[at]], plan.count_of(job.block), most)
        for at, job in enumerate(large)
    }


def _counts_up_to(
    source: _Source, edges: Mapping[_Job, Sequence[float]], reading: Reading
) -> dict[_Job, IntArray]:
    """Count true and false detections down to each edge, and the digits of overlaps; [4, edges]."""
    submit, up_to = source.plan.engine.submit, {}
    for job, scores in edges.items():
        name = f"{'all' if job.together else name_of(job.block)}-all"
        tasks = [submit("count", _up_to, one, scores, reading) for one in source.each(job.block, name)]
        up_to[job] = np.sum(source.plan.engine.results(tasks), axis=0)
    return up_to


def _up_to(pieces: Sequence[Any], scores: Sequence[float], reading: Reading) -> IntArray:
    # Count per chunk, then accumulate from the highest chunk down.
    rows = _rows(pieces, reading)
    at = np.searchsorted(-np.array(scores), -rows.score)  # first edge that a score reaches
    size, (true, iou) = len(scores) + 1, rows.columns
    overlaps = np.zeros((DIGITS, size), dtype=np.int64)
    if reading.overlaps:
        overlaps = added(at[true], 1 - iou[true], size, DIGITS)
    counts = [np.bincount(at[side], minlength=size) for side in (true, ~true)]
    return np.cumsum([*counts, *overlaps], axis=1)[:, :-1]


def _rows(pieces: Sequence[Any], reading: Reading) -> ClassRows:
    """Merge pieces of parts or of rows."""
    if isinstance(pieces[0], ClassRows):
        return joined_rows(pieces)
    return counted_rows(MergedParts(pieces).matches(), reading.threshold, reading.area)


def _kept(
    pieces: Sequence[Any], job: _Job, before: IntArray, positive: IntArray, reading: Reading
) -> list[Kept]:
    """Merge a chunk, and keep points of its curves."""
    rows, higher = _rows(pieces, reading), CountsBefore(int(before[0]), int(before[1]), before[2:])
    if job.together:
        parts: list[Any] = [descending_order(rows.score)]
        objects = [int(positive.sum())]
    else:
        parts = [slice(*ends) for ends in itertools.pairwise(rows.bounds.tolist())]
        objects = positive[job.block.low : job.block.high].tolist()
    answer, (true, iou) = [], rows.columns
    for part, count in zip(parts, objects, strict=True):
        ends, columns = counts_up_to(rows.score[part], true[part], iou[part], before=higher)
        at = np.unique(np.array(reading.keep(ScoreCounts(*columns, ends, np.array([count]))), dtype=np.intp))
        answer.append(Kept._make(column[at] for column in columns))
    return answer


def _joined(curves: Sequence[Sequence[Kept]], positive: IntArray) -> ScoreCounts:
    """Concatenate the points of all curves, highest scores first in each."""
    ends = np.cumsum([0, *(sum(len(kept.score) for kept in curve) for curve in curves)])
    every = [kept for curve in curves for kept in curve]
    columns = Kept._make(np.concatenate([kept[side] for kept in every]) for side in range(4))
    return ScoreCounts(*columns, ends, positive)
