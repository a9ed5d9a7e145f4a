"""Reduce parts to numbers block by block, and large classes in chunks by score, in bounded memory.

Conventions
-----------
- Every function depends only on its arguments. An :class:`~boxscore.extensions.large.engine.Engine` runs
  them: in this process, in several processes, or on a cluster.
- The totals of a large class are counted first, so that each chunk knows the counts of higher scores; chunks
  are computed in parallel and fold. Every number is a quotient of the same integers as in one process, so the
  bits are the same.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.data.vocabulary import Categories
from boxscore.evaluation import counts_of_classes
from boxscore.extensions.large.engine import Engine
from boxscore.extensions.large.headers import PartHeader, header_of
from boxscore.extensions.large.merging import MergedParts
from boxscore.extensions.large.parts import Part, TruthIdentity
from boxscore.extensions.large.pieces import Cut, cut
from boxscore.extensions.large.plan import MOST, ClassPlan, every_key, name_of
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
from boxscore.scoring.curves import JOINED, Curves, State, folded, folds_of_numbers
from boxscore.scoring.kinds import Kind, folds_of, kind_of
from boxscore.scoring.summary import Key, summary_keys
from boxscore.scoring.totals import Before, Totals


class BlockNumbers(NamedTuple):
    """The numbers of a block of classes."""

    class_counts: Mapping[str, NDArray[Any]]
    curves: Mapping[Key, Curves]


# ---------------------------------------------------------------- whole classes


def score_classes(pieces: Sequence[Part], block: Cut, keys: Sequence[Key], images: int) -> BlockNumbers:
    """Merge the pieces of a block and reduce its curves to numbers."""
    matches, protocol = _matches(pieces, block), pieces[0].protocol
    curves = {
        key: _closed(Curves(_counts(matches, protocol, key, images), protocol.ap), protocol, key)
        for key in keys
    }
    return BlockNumbers(counts_of_classes(matches), curves)


def curves_of_block(pieces: Sequence[Part], block: Cut, key: Key, images: int) -> Curves:
    """Merge the pieces of a block and return its curves with their counts."""
    protocol = pieces[0].protocol
    return Curves(_counts(_matches(pieces, block), protocol, key, images), protocol.ap)


def _matches(pieces: Sequence[Part], block: Cut) -> Matches:
    matches = MergedParts(pieces).matches()
    return matches if block.pooled is None else matches.pooled(block.pooled)


def _counts(matches: Matches, protocol: Protocol, key: Key, images: int) -> TruePositiveCounts:
    outcomes = Outcomes.of(matches, protocol, *key)._replace(images=images)
    return TruePositiveCounts(outcomes, protocol.ap.tie_order)


def _closed(curves: Curves, protocol: Protocol, key: Key) -> Curves:
    kinds = [kind for kind in _kinds_at(key, protocol) if not kind.of_numbers]
    return curves.closed(protocol, {kind.name: kind.values_of(curves, protocol) for kind in kinds})


def _kinds_at(key: Key, protocol: Protocol) -> list[Kind]:
    """Return the metric kinds that the summary needs at an area range and max detections."""
    return [kind_of(name) for name in summary_keys(protocol.rows, protocol).get(key, [])]


# ---------------------------------------------------------------- one curve in chunks by score


class RangeTotals(NamedTuple):
    """Counts for one large block: in total, and from the top down to the end of each of S chunks."""

    class_counts: Mapping[str, NDArray[Any]]
    totals: Mapping[Key, Totals]
    up_to: Mapping[Key, Before]
    """True positives and counted detections, [T, S, 1] each."""

    def __add__(self, other: RangeTotals) -> RangeTotals:  # type: ignore[override]
        """Add the counts of disjoint images."""
        counts = {name: count + other.class_counts[name] for name, count in self.class_counts.items()}
        totals = {key: self.totals[key] + other.totals[key] for key in self.totals}
        up_to = {
            key: Before(*(one + more for one, more in zip(self.up_to[key], other.up_to[key], strict=True)))
            for key in self.up_to
        }
        return RangeTotals(counts, totals, up_to)

    def before(self, number: int) -> dict[Key, Before]:
        """Return the counts of all chunks with higher scores, [T, 1] each."""
        return {
            key: Before(*(side[:, number - 1] if number else np.zeros_like(side[:, 0]) for side in up_to))
            for key, up_to in self.up_to.items()
        }


def totals_of_ranges(
    part: Part, edges: Mapping[Cut, Sequence[float]], keys: Sequence[Key]
) -> dict[Cut, RangeTotals]:
    """Count the large blocks of a part, in total and down to each edge; edges descend."""
    protocol, every = part.protocol, {}
    for block, scores in edges.items():
        matches = _matches([cut(part, 0, block)], block)
        counts = {key: _counts(matches, protocol, key, len(part.image_ids)) for key in keys}
        every[block] = RangeTotals(
            counts_of_classes(matches),
            {key: Totals.of(counts[key], protocol) for key in keys},
            {key: Before(*counts[key].at_scores(np.array(scores))) for key in keys},
        )
    return every


def score_range(
    pieces: Sequence[Part],
    piece: Cut,
    before: Mapping[Key, Before],
    totals: Mapping[Key, Totals],
) -> dict[Key, State]:
    """Merge one chunk and compute its state of the curves; ``totals`` are those of the whole class."""
    protocol, matches = pieces[0].protocol, _matches(pieces, piece)
    states: dict[Key, State] = {}
    for key, total in totals.items():
        counts = _counts(matches, protocol, key, total.images)
        curves = Curves(counts, protocol.ap, totals=total, before=before[key])
        state = dict(curves.state_of_numbers())
        for kind in _kinds_at(key, protocol):
            state |= kind.state(curves, protocol)
        states[key] = state
    return states


def fold_ranges(
    ranges: Sequence[Mapping[Key, State]],
    total: RangeTotals,
    protocol: Protocol,
    categories: Categories | None,
) -> BlockNumbers:
    """Fold the states of the chunks of a large block, from the highest scores down."""
    curves = {}
    for key, totals in total.totals.items():
        folds = {**folds_of_numbers(protocol.ap), **folds_of(_kinds_at(key, protocol), protocol)}
        state = folded([one[key] for one in ranges], folds)
        whole = Curves(None, protocol.ap, totals=totals, state=state, categories=categories)
        curves[key] = _closed(whole, protocol, key)
    return BlockNumbers(total.class_counts, curves)


# ---------------------------------------------------------------- the driver


class Numbers(NamedTuple):
    """Everything that the driver gets back."""

    protocol: Protocol
    categories: Categories
    """The classes of the ground truth."""
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    class_counts: Mapping[str, NDArray[Any]]
    curves: Mapping[tuple[int, int, str | None], Curves]
    """By area range, max detections, and the selection of classes that share a curve."""
    labels: list[str]
    nbytes: int
    """Size of all parts."""
    identity: TruthIdentity


def reduced(
    engine: Engine,
    parts: Sequence[Any],
    *,
    most: int = MOST,
    headers: Sequence[PartHeader] | None = None,
    keys: Sequence[Key] | None = None,
) -> Numbers:
    """Reduce parts to numbers.

    Parameters
    ----------
    engine : Engine
    parts : sequence of tasks
        Handles to the parts.
    most : int
        Maximum number of detections that one process merges at a time.
    headers : sequence of PartHeader, optional
        Headers of the parts, if known.
    keys : sequence of Key, optional
        Area ranges and max detections of the curves. Default: all of the protocol.
    """
    # Plan from counts per class which blocks one process can merge.
    if headers is None:
        headers = engine.results([engine.submit("header", header_of, part) for part in parts])
    plan = ClassPlan(engine, parts, headers, most)
    protocol = plan.protocol
    keys = every_key(protocol) if keys is None else keys
    blocks, pooled = list(plan.blocks()), plan.pooled([row.classes for row in protocol.rows])
    # Score all blocks in parallel, including those that share a curve.
    scored = _scored(plan, [*blocks, *pooled], keys)
    of_classes = scored[: len(blocks)]
    # Concatenate the curves of the blocks in class order; shared curves have keys of their own.
    curves: dict[tuple[int, int, str | None], Curves] = {
        (*key, None): Curves.beside([block.curves[key] for block in of_classes], plan.categories)
        for key in keys
    }
    for block, numbers in zip(pooled, scored[len(blocks) :], strict=True):
        curves |= {(*key, block.pooled): one for key, one in numbers.curves.items()}
    # Concatenate the counts per class in the same way.
    class_counts = {
        name: np.concatenate([block.class_counts[name] for block in of_classes])
        for name in of_classes[0].class_counts
    }
    return Numbers(
        protocol,
        plan.whole.categories,
        plan.whole.result_counts,
        plan.whole.left_out,
        class_counts,
        curves,
        plan.categories.labels,
        plan.whole.nbytes,
        plan.whole.identity,
    )


def _scored(plan: ClassPlan, blocks: Sequence[Cut], keys: Sequence[Key]) -> list[BlockNumbers]:
    """Score blocks in parallel, large ones in chunks."""
    # Split blocks that are too large by score, and count what precedes each chunk.
    engine, edges = plan.engine, plan.edges(blocks) if plan.can_be_split() else {}
    totals = _totals(plan, edges, keys)
    # Areas need all true positives, so chunks are folded on the workers and only numbers return.
    joined = JOINED in folds_of_numbers(plan.protocol.ap).values()
    tasks: list[Any] = []
    ends = []
    # Submit everything before waiting, so that no worker is idle; ``ends`` delimits the tasks of each block.
    for block in blocks:
        name = name_of(block)
        # Score a block that is too large chunk by chunk, then fold.
        if block in edges:
            ranges = _range_tasks(plan, block, edges[block], totals[block])
            folding = ranges, totals[block], plan.protocol, plan.classes_of(block)
            tasks += [engine.submit(f"join-{name}", fold_ranges, *folding)] if joined else ranges
        # Score any other block in one task.
        else:
            pieces = plan.pieces(block, name)
            tasks.append(engine.submit(f"score-{name}", score_classes, pieces, block, keys, plan.images))
        ends.append(len(tasks))
    results = engine.results(tasks)
    # Fold the chunks of large blocks from the highest scores down. Integers and maxima fold exactly.
    scored: list[BlockNumbers] = []
    for block, (low, high) in zip(blocks, itertools.pairwise([0, *ends]), strict=True):
        numbers = results[low:high]
        if block in edges and not joined:
            numbers = [fold_ranges(numbers, totals[block], plan.protocol, plan.classes_of(block))]
        scored += numbers
    return scored


def _totals(
    plan: ClassPlan, edges: Mapping[Cut, Sequence[float]], keys: Sequence[Key]
) -> dict[Cut, RangeTotals]:
    """Add up the counts of all parts for the large blocks."""
    if not edges:
        return {}
    tasks = [plan.engine.submit("count", totals_of_ranges, part, edges, keys) for part in plan.parts]
    every = plan.engine.results(tasks)
    return {block: functools.reduce(operator.add, [one[block] for one in every]) for block in edges}


def _range_tasks(plan: ClassPlan, block: Cut, edges: Sequence[float], total: RangeTotals) -> list[Any]:
    """Start scoring a large block in chunks."""
    tasks: list[Any] = []
    for number, piece in enumerate(block.between(edges)):
        name = f"{name_of(block)}-{number}"
        asked = plan.pieces(piece, name), piece, total.before(number), total.totals
        tasks.append(plan.engine.submit(f"score-{name}", score_range, *asked))
    return tasks
