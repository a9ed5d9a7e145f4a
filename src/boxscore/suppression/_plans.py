"""Suppress a block of ranked boxes greedily.

Goal
----
The result of the textbook loop (take the best box left, drop what overlaps it, repeat) without the loop.

Plans
-----
- **Lockstep**, for many groups: every group takes its best box left at the same time. The work of the
  textbook loop, in as many rounds as the most survivors of a group. Large groups are rows of a table of
  rounded coordinates, which finds the boxes to measure.
- **Rounds over pairs**, for few boxes: collect the overlapping pairs by a sweep along x, then in every
  round keep boxes without an undecided better neighbor and drop their neighbors. Rounds are few: a box waits
  only for boxes it overlaps, not for its rank.
- **Grid and stages**, for large groups: the pairs come from ``Grid``. If there would be many, the best boxes
  of each group are decided first, by rounds; survivors drop the boxes that they overlap in the whole grid;
  the next stage takes more of the remaining boxes. Most boxes of dense input are dropped before they are
  paired. Among boxes that are equal to the last bit, only the best takes part: it drops its copies, or they
  are dropped with it. A stage with more pairs than remaining boxes is made smaller, so that the work grows
  with the number of boxes, not with the pairs of similar ones.

If the block holds its pairs already (``share_pairs``), only the rounds remain. All plans give the same result
to the last index: a test compares them.

Conventions
-----------
``suppressor`` [n] is -1 for a survivor. For a dropped box it is the position of the best survivor that
overlaps it, or, when the caller does not ask for ``owners``, any position: finding the best costs a pass
over the pairs. Positions are counted from the start of the block; a better box has a lower position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import rank_in_runs
from boxscore.similarity.measures import Measure
from boxscore.similarity.pairs import shared_length
from boxscore.suppression._grid import HASH_FACTOR, Grid, Pairs, expand
from boxscore.suppression._pairs import FEW, PairStore, Sweep, inner_bounds
from boxscore.suppression._ranked import Block, ValuedPairs

_Steps = NDArray[np.uint16]  # coordinates rounded to steps

Plan = Literal["auto", "lockstep", "sweep", "grid"]

SWEEP_PAIRS = 60
"""A sweep with more candidates per box than this does not pay off."""

HEIGHTS_FIRST = 2048
"""From this many candidates on, comparing heights first is cheaper than measuring all of them."""

LOCKSTEP_LARGEST = 1500
"""Larger groups are better off with a grid: lockstep compares the best box with all that are left."""

LOCKSTEP_SHARE = 30
"""Lockstep needs this many times more boxes than its largest group: a round costs some 30 calls."""

WIDE = 128
"""Lockstep runs in a table while its groups have this many boxes left on average; a row is a fixed cost."""

LAST_STEP = (1 << 16) - 1
"""Coordinates of the table of lockstep are rounded to whole numbers from 1 to this."""

LAST_PAIRS = 1 << 16
"""Groups with fewer pairs than this together are decided in one call: more rounds would be as many calls."""

CROWDED = 2.5
"""Grids with more boxes than this within reach in a row are decided in stages."""

FIRST_STAGE, STAGE_GROWTH = 1024, 4

SMALLEST_STAGE = 16
"""A stage is a fixed number of calls."""

VERY_CROWDED, FIRST_BEST = 64, 8
"""In grids more crowded than this the best boxes are queried first, so many of each group."""


def greedy(block: Block, threshold: float, *, owners: bool = False, plan: Plan = "auto") -> IntArray:
    """Suppress greedily inside each group where the overlap exceeds ``threshold``."""
    suppressor = np.full(len(block), -1)
    if threshold >= 1:  # an overlap is at most 1, even if rounding exceeds it
        return suppressor
    # Pairs that the block holds are measured already: select those above the threshold and run the rounds.
    if plan == "auto" and block.held is not None and block.held.threshold <= threshold:
        better, worse, _ = block.held.above(threshold)
        _rounds((better, worse), suppressor, owners)
        return suppressor
    # Choose the plan by cost. Every plan gives the same indices, so the choice changes the time alone.
    counts = np.diff(block.starts)
    chosen = plan
    if plan == "auto":
        if len(block) <= FEW:
            chosen = "sweep"
        else:
            # Lockstep runs as many rounds as one group has survivors, so it needs many more boxes than its
            # largest group has.
            small = counts <= LOCKSTEP_LARGEST
            share = int(counts[small].sum())
            if share < LOCKSTEP_SHARE * int(counts[small].max(initial=0)):
                chosen = "grid"
            elif share == len(block):
                chosen = "lockstep"
            else:
                # Groups never meet: the small ones run in lockstep, and all boxes of the large ones use the
                # grid.
                heads = block.starts[:-1][small]
                _lockstep(block.measure, heads, counts[small], threshold, suppressor, owners)
                _staged(block, np.flatnonzero(np.repeat(~small, counts)), threshold, suppressor, owners)
                return suppressor
    # Run the plan. A sweep with too many candidates per box changes nothing and leaves the block to the grid.
    if chosen == "lockstep":
        _lockstep(block.measure, block.starts[:-1], counts, threshold, suppressor, owners)
    else:
        members = np.arange(len(block))
        most = np.inf if plan == "sweep" else SWEEP_PAIRS
        if chosen == "grid" or not _swept(block, members, threshold, suppressor, owners, most=most):
            _staged(block, members, threshold, suppressor, owners)
    return suppressor


def best_overlapping(block: Block, threshold: float) -> IntArray:
    """Position [n] of the best better box, dropped or not, that overlaps each by more than ``threshold``.

    A box without such a box names itself.
    """
    best = np.arange(len(block))
    if threshold >= 1:
        return best
    grid = _crowded(block, threshold)
    if grid is not None:
        _best_in_stages(block, grid, threshold, best)
        return best
    for better, worse, _ in PairStore(block, threshold):
        np.minimum.at(best, worse, better)
    return best


def pairs_with(block: Block, threshold: float, keep: BoolArray) -> Iterable[ValuedPairs]:
    """Pairs (better, worse, overlap) above ``threshold`` whose better box survives: ``keep`` [n].

    May be iterated over several times; a pair may come twice.
    """
    grid = _crowded(block, threshold)
    return (
        _PairsWith(PairStore(block, threshold), keep)
        if grid is None
        else _Around(block, grid, threshold, keep)
    )


class _PairsWith:
    """The pairs of a store whose better box survives."""

    def __init__(self, store: PairStore, keep: BoolArray) -> None:
        self._store, self._keep = store, keep

    def __iter__(self) -> Iterator[ValuedPairs]:
        """Iterate over the pairs."""
        for better, worse, overlap in self._store:
            some = np.flatnonzero(self._keep.take(better))
            yield better.take(some), worse.take(some), overlap.take(some)


class _Around:
    """The pairs of a crowded grid whose better box survives: only survivors query the grid."""

    def __init__(self, block: Block, grid: Grid, threshold: float, keep: BoolArray) -> None:
        self._measure, self._grid, self._threshold = block.measure, grid, threshold
        self._survivors = np.flatnonzero(keep)

    def __iter__(self) -> Iterator[ValuedPairs]:
        """Iterate over the pairs."""
        for better, worse in self._grid.neighbors(self._survivors):
            real = np.flatnonzero(better < worse)
            better, worse = better.take(real), worse.take(real)
            overlap = np.minimum(self._measure.between(better, worse), 1)
            above = np.flatnonzero(overlap > self._threshold)
            yield better.take(above), worse.take(above), overlap.take(above)


def _crowded(block: Block, threshold: float) -> Grid | None:
    """Return the grid of a block in which boxes have very many neighbors; None for any other block."""
    if len(block) <= FEW or block.held is not None:
        return None
    grid = Grid(block.measure, np.arange(len(block)), threshold, block.group)
    return grid if grid.crowding() > VERY_CROWDED else None


def _best_in_stages(block: Block, grid: Grid, threshold: float, best: IntArray) -> None:
    """Query the grid with the best boxes of each group, then the next; what they overlap is decided."""
    # Rank each box in its group, [n]. The first stage queries the best few of each group.
    group = block.group
    rank = np.arange(len(block)) if group is None else rank_in_runs(group)
    undecided, low, high = np.arange(len(block)), 0, FIRST_BEST
    while len(undecided):
        # Later stages need a grid of the queries and the undecided boxes alone, which shrinks from stage to
        # stage.
        queries = np.flatnonzero((rank >= low) & (rank < high))
        if low:
            grid = Grid(block.measure, np.union1d(queries, undecided), threshold, group)
        # Keep pairs whose query is the better box. A minimum over positions finds the best one, in any order
        # of the pairs and if a pair comes twice.
        for better, worse in grid.neighbors(queries):
            real = np.flatnonzero(better < worse)
            better, worse = better.take(real), worse.take(real)
            above = np.flatnonzero(block.measure.between(better, worse) > threshold)
            np.minimum.at(best, worse.take(above), better.take(above))
        # A box is decided if a query overlaps it, because later queries are worse, or if all better boxes
        # were queried.
        undecided = undecided.compress((best.take(undecided) == undecided) & (rank.take(undecided) >= high))
        low, high = high, high * STAGE_GROWTH


def _lockstep(
    measure: Measure,
    heads: IntArray,
    counts: IntArray,
    threshold: float,
    suppressor: IntArray,
    owners: bool,
) -> None:
    """In each round the best remaining box of every group drops what it overlaps, until few are left."""
    # A box alone in its group survives.
    several = counts > 1
    heads, counts = heads[several], counts[several]
    if len(heads) == 0:
        return
    # ``running`` [R] lists the undecided positions, group after group; the first of each group is its head,
    # the best box left.
    running = np.repeat(heads - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    # A pair above the threshold shares a minimum of x. The bounds allow for rounding, so no such pair is
    # missed.
    low_x, high_x = inner_bounds(measure.x1, measure.x2, measure, threshold)
    # Large groups of similar size start in a table: its rows are compared as they are, in steps of 16 bits.
    # Rounding loses no pair, and the overlaps are measured from the boxes themselves.
    if len(running) >= WIDE * len(counts) and 2 * len(running) > int(counts.max()) * len(counts):
        x = _narrow(measure.x1, measure.x2, low_x, high_x)
        y = _narrow(measure.y1, measure.y2, *inner_bounds(measure.y1, measure.y2, measure, threshold))
        while len(running) >= WIDE * len(counts) > 0:
            running, counts = _table_rounds(measure, x, y, running, counts, threshold, suppressor)
        heads = running.take(counts.cumsum() - counts)
    # A group of n boxes has n * (n - 1) / 2 pairs. Run rounds until all groups together have few.
    while int(counts @ counts) - len(running) > 2 * LAST_PAIRS:
        # Find the undecided boxes that share enough x with their head: four gathers, before any overlap is
        # measured.
        near = measure.x2.take(running) >= low_x.take(heads).repeat(counts)
        near &= measure.x1.take(running) <= high_x.take(heads).repeat(counts)
        meets = near.nonzero()[0]
        # Measure these pairs and drop what exceeds the threshold, strictly. Heads come in rank order, so the
        # head that drops a box is the best survivor that overlaps it.
        first, second = heads.repeat(counts).take(meets), running.take(meets)
        stays = np.ones(len(running), dtype=bool)
        above = (measure.between(first, second) > threshold).nonzero()[0]
        dropped = second.take(above)
        suppressor[dropped] = first.take(above)
        stays[meets.take(above)] = False
        # A head meets itself in its group: reset it to a survivor, and take it out of the undecided ones.
        starts = counts.cumsum() - counts
        stays[starts] = False  # the heads themselves
        suppressor[heads] = -1
        # Close the gaps. The best box left of each group becomes its head.
        counts = np.add.reduceat(stays, starts, dtype=np.int64)
        running = running.compress(stays)
        counts = counts.compress(counts > 0)
        heads = running.take(counts.cumsum() - counts)
    _decide_small(measure, running, counts, (low_x, high_x), threshold, suppressor, owners)


def _narrow(low: FloatArray, high: FloatArray, *bounds: FloatArray) -> list[_Steps]:
    """Round the ends of extents, and bounds, to steps from 1 on; this keeps the order of any two numbers."""
    # Bounds outside the extents are clipped. A span too small to divide by puts everything on one step.
    least = float(low.min())
    span = float(high.max()) - least
    scale = LAST_STEP / span if span > 1e-300 else 0.0
    columns = ((column - least) * scale + 1 for column in (low, high, *bounds))
    return [np.clip(column, 1, LAST_STEP, out=column).astype(np.uint16) for column in columns]


def _table_rounds(
    measure: Measure,
    x: list[_Steps],
    y: list[_Steps],
    running: IntArray,
    counts: IntArray,
    threshold: float,
    suppressor: IntArray,
) -> tuple[IntArray, IntArray]:
    """Run rounds of lockstep in a table with a row for each group until half of the boxes are decided.

    ``x`` and ``y`` hold steps [n]: low and high ends, then the bounds for partners. ``running`` [R] lists the
    undecided positions and ``counts`` how many each group has. Returns the undecided positions and counts
    that remain.
    """
    # Fill the table [groups, widest] in rank order. A cell that is empty or decided ends at 0, which meets
    # nothing.
    groups, wide = len(counts), int(counts.max())
    alive = np.arange(wide) < counts[:, np.newaxis]
    flat, rows = alive.ravel(), np.arange(groups) * wide
    cells = flat.nonzero()[0]
    position = np.zeros(alive.size, np.int64)
    position[cells] = running
    table = np.zeros((4, alive.size), np.uint16)
    for row, column in zip(table, (*x[:2], *y[:2]), strict=True):
        row[cells] = column.take(running)
    ends = table[1]
    x1, x2, y1, y2 = table.reshape(4, groups, wide)
    left = len(running)
    enough = left // 2
    while left > enough:
        # Take the first undecided box of each group as its head. A group without one meets nothing.
        head = rows + alive.argmax(axis=1)
        left -= int(np.count_nonzero(flat.take(head)))
        best = position.take(head)
        flat[head] = False
        ends[head] = 0
        # Find the boxes that share enough of both axes with the head of their row.
        near = x2 >= x[2].take(best)[:, np.newaxis]
        near &= x1 <= x[3].take(best)[:, np.newaxis]
        near &= y2 >= y[2].take(best)[:, np.newaxis]
        near &= y1 <= y[3].take(best)[:, np.newaxis]
        meets = near.ravel().nonzero()[0]
        # Measure these pairs and drop what exceeds the threshold, strictly. Heads come in rank order, so the
        # head that drops a box is the best survivor that overlaps it.
        first, second = best.take(meets // wide), position.take(meets)
        above = (measure.between(first, second) > threshold).nonzero()[0]
        suppressor[second.take(above)] = first.take(above)
        dropped = meets.take(above)
        flat[dropped] = False
        ends[dropped] = 0
        left -= len(dropped)
    # Close the gaps.
    counts = np.count_nonzero(alive, axis=1)
    return position.compress(flat), counts.compress(counts > 0)


def _decide_small(
    measure: Measure,
    running: IntArray,
    counts: IntArray,
    bounds: tuple[FloatArray, FloatArray],
    threshold: float,
    suppressor: IntArray,
    owners: bool,
) -> None:
    """Decide groups with few pairs by comparing all: ``counts`` of the positions ``running`` each."""
    # Gather the columns of the undecided boxes once, so that the pairs read them in order.
    low_x, high_x = bounds
    x1, x2 = measure.x1.take(running), measure.x2.take(running)
    low_x, high_x = low_x.take(running), high_x.take(running)
    # Pair each position with the later ones of its group: each pair once, chunk by chunk. Measure only pairs
    # that share enough x.
    parts = []
    for first, second in expand(np.arange(1, len(running) + 1), counts.cumsum().repeat(counts)):
        near = x2.take(second) >= low_x.take(first)
        near &= x1.take(second) <= high_x.take(first)
        meets = near.nonzero()[0]
        pairs = running.take(first.take(meets)), running.take(second.take(meets))
        parts.append(_exceeding(measure, *pairs, threshold))
    _rounds(_join(parts), suppressor, owners)


def _swept(
    block: Block,
    members: IntArray,
    threshold: float,
    suppressor: IntArray,
    owners: bool,
    *,
    most: float,
) -> bool:
    """Decide by a sweep along x and rounds; False, and nothing done, for over ``most`` candidates per box."""
    # The sweep counts its candidates before it lists any, so giving up costs one sort.
    sweep = Sweep(block.measure, members, threshold)
    if len(sweep) > most * len(members):
        return False
    pairs = [
        _exceeding(block.measure, first, second, threshold) for first, second in sweep.pairs(block.group)
    ]
    _rounds(_join(pairs), suppressor, owners)
    return True


def _tall_enough(measure: Measure, first: IntArray, second: IntArray, threshold: float) -> Pairs:
    """Pairs that share enough height: comparing heights first is cheaper than measuring all."""
    if not measure.at_most_iou or len(first) <= HEIGHTS_FIRST:
        return first, second
    # IoU above t needs a shared height above t times either height; the factor leaves room for rounding.
    low, high = measure.y1, measure.y2
    tall = shared_length(low, high, low, high, measure.offset, first, second)
    height = high - low
    height += measure.offset
    height *= threshold * (1 - 1e-6)
    near = np.flatnonzero(tall > height.take(first))
    return first.take(near), second.take(near)


def _exceeding(measure: Measure, first: IntArray, second: IntArray, threshold: float) -> Pairs:
    """Pairs that overlap by more than the threshold, as (better, worse)."""
    above = (measure.between(first, second) > threshold).nonzero()[0]
    first, second = first.take(above), second.take(above)
    return np.minimum(first, second), np.maximum(first, second)


def _join(parts: list[Pairs]) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _rounds(pairs: Pairs, suppressor: IntArray, owners: bool) -> None:
    """Decide all boxes that are in a pair; pairs are (better, worse)."""
    better, worse = pairs
    if len(better) == 0:
        return
    # ``dead`` [n] marks the boxes dropped so far; all others survive in the end.
    dead = np.zeros(len(suppressor), dtype=bool)
    while len(better):
        # A box that is worse in no pair left survives, and drops what it overlaps; pairs with a dropped box
        # are removed. By induction over the rank this is the result of taking the boxes one by one.
        waits = np.zeros(len(suppressor), dtype=bool)
        waits[worse] = True
        waits_for = waits.take(better)
        dead[worse.compress(~waits_for)] = True
        better, worse = better.compress(waits_for), worse.compress(waits_for)
        alive = ~(dead.take(better) | dead.take(worse))
        better, worse = better.compress(alive), worse.compress(alive)
    # Name the best survivor only on request: it costs a pass over all pairs.
    if owners:
        _credit(pairs, dead, suppressor)
    else:
        suppressor[dead] = 0


def _credit(pairs: Pairs, dead: BoolArray, suppressor: IntArray) -> None:
    """Record for each dropped box the best survivor that overlaps it."""
    # A survivor drops every worse box it overlaps. The least position is the best survivor, in any order of
    # the pairs.
    better, worse = pairs
    by_survivor = np.flatnonzero(~dead.take(better))
    better, worse = better.take(by_survivor), worse.take(by_survivor)
    best = np.full(len(suppressor), len(suppressor))
    np.minimum.at(best, worse, better)
    dropped = np.flatnonzero(best < len(suppressor))
    suppressor[dropped] = best.take(dropped)


def _staged(block: Block, members: IntArray, threshold: float, suppressor: IntArray, owners: bool) -> None:
    """Decide large groups from a grid, in one run or the best boxes first."""
    measure = block.measure
    group = block.group
    # Few neighbors per box: measure all candidates and decide the block in one run of rounds.
    grid = Grid(measure, members, threshold, group)
    crowding = grid.crowding()
    if crowding <= CROWDED:
        _decide(block, grid, threshold, suppressor, owners)
        return
    # Very crowded: many boxes may be equal to the last bit. A copy overlaps the same boxes by the same bits,
    # so it is dropped by its best copy if that survives, else by the suppressor of that. Decide only the
    # distinct boxes.
    if crowding > VERY_CROWDED:
        first = _first_copies(measure, members, group, threshold)
        copies = np.flatnonzero(first < members)
        if 2 * len(copies) > len(members):
            _staged(block, members.compress(first == members), threshold, suppressor, owners)
            # Give each copy its best copy as suppressor, or the suppressor of that one.
            best = first.take(copies)
            by = suppressor.take(best)
            suppressor[members.take(copies)] = np.where(by < 0, best, by)
            return
    # Decide in stages. Only better boxes drop a box, so the best ``size`` boxes left of each group need no
    # others.
    left, size = members, FIRST_STAGE
    while len(left):
        if group is None:
            best = left[:size]
        else:
            best = left.compress(rank_in_runs(group.take(left)) < size)
        # Sweep a small stage; use a grid for a large one. If a stage has more pairs than boxes are left,
        # retry with a smaller one: its survivors drop many of the others before they are paired.
        if len(best) > FEW or not _swept(block, best, threshold, suppressor, owners, most=SWEEP_PAIRS):
            of_best = Grid(measure, best, threshold, group)
            if size > SMALLEST_STAGE and len(best) * of_best.crowding() > len(left) + LAST_PAIRS:
                size //= STAGE_GROWTH
                continue
            _decide(block, of_best, threshold, suppressor, owners)
        if len(best) == len(left):
            return
        # ``waiting`` [n] marks the boxes left outside the stage. Only the survivors query the grid of all
        # members, so dropped boxes are never paired with waiting ones.
        waiting = np.zeros(len(suppressor), dtype=bool)
        waiting[left] = True
        waiting[best] = False
        best_by = np.full(len(suppressor) if owners else 0, len(suppressor))
        # Drop waiting boxes above the threshold, strictly. Pairs come in any order, some twice: for owners, a
        # minimum over positions names the best survivor.
        for better, worse in grid.neighbors(best.compress(suppressor.take(best) < 0)):
            undecided = np.flatnonzero(waiting.take(worse))
            better, worse = better.take(undecided), worse.take(undecided)
            above = np.flatnonzero(measure.between(better, worse) > threshold)
            better, worse = better.take(above), worse.take(above)
            # Without owners, the position of any survivor that overlaps the box is enough.
            if owners:
                np.minimum.at(best_by, worse, better)
            else:
                suppressor[worse] = better
        if owners:
            dropped = np.flatnonzero(best_by < len(suppressor))
            suppressor[dropped] = best_by.take(dropped)
        # The other boxes enter the next, larger stage, in rank order.
        waiting &= suppressor < 0
        left = left.compress(waiting.take(left))
        size *= STAGE_GROWTH


def _first_copies(measure: Measure, members: IntArray, group: IntArray | None, threshold: float) -> IntArray:
    """Return the best box [M] that equals each member to the last bit, itself if its area is 0."""
    # Without columns that decide every overlap, no box is known to be a copy.
    if not measure.identity:
        return members
    # Read floats as bits, so that equal means equal to the last bit. The group is one more column.
    columns = [column.take(members).view(np.uint64) for column in measure.identity]
    if group is not None:
        columns.append(group.take(members).view(np.uint64))
    # Hash the columns of each box into one key [M]: one sort replaces a sort by up to six columns. The sort
    # is stable, so the best of equal boxes comes first.
    keys = np.zeros(len(members), dtype=np.uint64)
    for column in columns:
        keys ^= column
        keys *= HASH_FACTOR
        keys ^= keys >> np.uint64(32)
    order = np.argsort(keys, kind="stable")
    # A run of copies ends where any column changes, because different boxes may have equal keys. Copies
    # separated by such a box form two runs, which costs time but changes no result.
    ordered = members.take(order)
    starts = np.arange(len(members)) == 0
    for column in columns:  # keys may be equal by chance
        values = column.take(order)
        starts[1:] |= values[1:] != values[:-1]
    # Give each box the first one of its run, [M], in the order of ``members``.
    heads = np.maximum.accumulate(np.where(starts, np.arange(len(members)), 0))
    first = np.empty_like(members)
    first[order] = ordered.take(heads)
    # A box without area overlaps nothing, not even its copy: it represents itself.
    copies = np.flatnonzero(first < members)
    alike = measure.between(first.take(copies), members.take(copies)) > threshold
    apart = copies.compress(~alike)  # boxes without area
    first[apart] = members.take(apart)
    return first


def _decide(block: Block, grid: Grid, threshold: float, suppressor: IntArray, owners: bool) -> None:
    measure = block.measure
    parts = [
        _exceeding(measure, *_tall_enough(measure, first, second, threshold), threshold)
        for first, second in grid.pairs()
    ]
    _rounds(_join(parts), suppressor, owners)
