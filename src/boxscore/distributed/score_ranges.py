"""Counts at score thresholds where no process holds all scores: operating points, FROC.

Conventions
-----------
- A question reads few points of a curve: the best F-score, the last point with a precision. Each range of
  scores keeps the points that it may read, with the counts of all higher scores added; of these few points
  the question is then asked as in one process, and reads the same.
- Counts are whole numbers: no order of detections decides a bit. Overlaps are not in parts.
- The curve of all classes together is cut by scores like that of a large class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.distributed.merging import MergedParts
from boxscore.distributed.parts import Part
from boxscore.distributed.pieces import Cut, cut, edges_between, sample_of
from boxscore.distributed.plan import MOST, ClassPlan, name_of
from boxscore.distributed.weighing import HeldParts
from boxscore.matching.matches import Matches
from boxscore.scoring.score_counts import ScoreCounts, counted_detections

PER_SCORE = 150
"""Bytes of a detection whose scores are counted."""

Keep = Callable[[ScoreCounts], Sequence[int]]
"""Takes the counts of one curve, or of a range of it, and returns the positions that a question may read."""


class Reading(NamedTuple):
    """What is counted: positions on the axes T and A, and what is kept."""

    threshold: int
    area: int
    keep: Keep


class Kept(NamedTuple):
    """The points of one curve that a range keeps."""

    score: FloatArray
    true: IntArray
    false: IntArray


def can_be_thinned(held: HeldParts) -> bool:
    """Whether counts of parts are whole numbers."""
    return not any(header.weighted for header in held.headers)


def thinned_counts(held: HeldParts, reading: Reading, *, most: int | None = None) -> ScoreCounts:
    """Return the points that are kept of the curves of all classes, and of all classes together.

    Parameters
    ----------
    held : HeldParts
        Whose ground truths have no weights.
    reading : Reading
    most : int, optional
        Detections that are merged at a time; what fits into the room when not given.

    Returns
    -------
    ScoreCounts
        Distances are NaN.
    """
    if most is None:
        most = MOST if held.room is None else min(MOST, held.room // PER_SCORE)
    engine = held.engine
    with engine.asked_again():
        plan = ClassPlan(engine, held.parts, held.headers, most)
        counted = [engine.submit("objects", _objects, part, reading.area) for part in held.parts]
        positive = np.sum(engine.results(counted), axis=0)
        K = len(positive)
        jobs = [_Job(block, False) for block in plan.blocks()] + [_Job(Cut(0, K), True)]
        edges = _edges(plan, jobs, most)
        up_to = _counts_up_to(plan, edges, reading)
        tasks: list[Any] = []
        owners: list[_Job] = []
        for job in jobs:
            for number, piece in enumerate(job.block.between(edges.get(job, []))):
                name = f"{'all' if job.together else name_of(job.block)}-{number}"
                before = up_to[job][:, number - 1] if number else np.zeros(2, dtype=np.int64)
                asked = plan.pieces(piece, name), job, before, positive, reading
                tasks.append(engine.submit(f"points-{name}", _kept, *asked))
                owners.append(job)
        answers = engine.results(tasks)
    curves: list[list[Kept]] = [[] for _ in range(K + 1)]
    for job, answer in zip(owners, answers, strict=True):
        for number, kept in zip(job.curves(K), answer, strict=True):
            curves[number].append(kept)
    return _joined(curves, np.append(positive, positive.sum()))


class _Job(NamedTuple):
    """The curves of some classes, or that of all classes together."""

    block: Cut
    together: bool

    def curves(self, K: int) -> range:
        """Return their numbers; that of all classes together is K."""
        return range(K, K + 1) if self.together else range(self.block.low, self.block.high)


def _objects(part: Part, area: int) -> IntArray:
    """Count the counted ground truths of each class, [K]."""
    packed = part.matches
    counted = (packed.truth_counted >> packed.truth_counted.dtype.type(area)) & 1
    up_to: IntArray = np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])[packed.bounds[2]]
    return np.diff(up_to)


def _edges(plan: ClassPlan, jobs: Sequence[_Job], most: int) -> dict[_Job, list[float]]:
    """Choose scores between the ranges of curves with too many detections, descending, from samples."""
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
    plan: ClassPlan, edges: Mapping[_Job, Sequence[float]], reading: Reading
) -> dict[_Job, IntArray]:
    """Count the true and the false detections from each edge on, [2, edges]."""
    if not edges:
        return {}
    tasks = [plan.engine.submit("count", _part_up_to, part, edges, reading) for part in plan.parts]
    every = plan.engine.results(tasks)
    return {job: np.sum([one[job] for one in every], axis=0) for job in edges}


def _part_up_to(part: Part, edges: Mapping[_Job, Sequence[float]], reading: Reading) -> dict[_Job, IntArray]:
    counts = {}
    for job, scores in edges.items():
        counted = counted_detections(_matches([cut(part, 0, job.block)]), reading.threshold, reading.area)
        above = counted.score >= np.array(scores)[:, None]
        counts[job] = np.stack([(above & side).sum(axis=1) for side in (counted.true, ~counted.true)])
    return counts


def _matches(pieces: Sequence[Part]) -> Matches:
    return MergedParts(pieces).matches()


def _kept(
    pieces: Sequence[Part], job: _Job, before: IntArray, positive: IntArray, reading: Reading
) -> list[Kept]:
    """Merge a range, and keep points of its curves."""
    counts = ScoreCounts.of(counted_detections(_matches(pieces), reading.threshold, reading.area))
    K = len(positive)
    answer = []
    for number in job.curves(K):
        part = counts.part(len(counts.positive) - 1 if job.together else number - job.block.low)
        objects = positive.sum() if job.together else positive[number]
        curve = _curve(
            counts.score[part], counts.true[part] + before[0], counts.false[part] + before[1], objects
        )
        at = np.unique(np.array(reading.keep(curve), dtype=np.intp))
        answer.append(Kept(curve.score[at], curve.true[at], curve.false[at]))
    return answer


def _curve(score: FloatArray, true: IntArray, false: IntArray, positive: int) -> ScoreCounts:
    """Return the counts of one curve."""
    nothing = np.full(len(score), np.nan)
    return ScoreCounts(score, true, false, nothing, np.array([0, len(score)]), np.array([positive]))


def _joined(curves: Sequence[Sequence[Kept]], positive: IntArray) -> ScoreCounts:
    """Put the points of all curves behind each other, the highest scores of each first."""
    ends = np.cumsum([0, *(sum(len(kept.score) for kept in curve) for curve in curves)])
    every = [kept for curve in curves for kept in curve]
    score, true, false = (np.concatenate([kept[side] for kept in every]) for side in range(3))
    return ScoreCounts(score, true, false, np.full(len(score), np.nan), ends, positive)
