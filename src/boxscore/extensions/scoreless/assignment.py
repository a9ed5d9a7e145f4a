"""Match without ranking: maximize the number of pairs, then the total overlap.

Goal
----
There is one matching for each IoU threshold and area range, which depends only on the pairs: neither scores
nor file order nor the choice of a first side affect it.

Conventions
-----------
- A detection and a ground truth that overlap form an edge. Edges form components that share no rows, and
  nearly all components need no search: if every detection has a different best ground truth, or every ground
  truth a different best detection, these are the matching, at this threshold and all higher ones.
- Sums of overlaps are compared as whole multiples of 2 ** -53: exactly, for overlaps of at least one half.
- If two matchings are equally good, rows are taken in the order of their boxes, not in file order.
- The remaining components are solved one by one by shortest augmenting paths over their edges, a detection at
  a time: R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear
  assignment problems", Computing 1987.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray, Positions
from boxscore._utils.ordering import inverse_order, run_starts, stable_order
from boxscore.matching.pairs import Pairs

UNIT = 1 << 53
"""An overlap of 1."""

BoxesOf = Callable[[Positions], FloatArray]
"""Function that returns the boxes of some rows, [N, 4]."""


def ranks(rows: Positions, boxes: BoxesOf) -> Positions:
    """Rank the row of each edge by its box; ties by row, [E]."""
    distinct, at = np.unique(rows, return_inverse=True)
    order = np.lexsort((distinct, *boxes(distinct).T[::-1]))
    return inverse_order(order)[at]


def up_to(level: Positions) -> NDArray[np.uint64]:
    """Return as many of the lowest bits as the level says, [P]."""
    return (np.uint64(1) << level.astype(np.uint64)) - np.uint64(1)


def most_pairs(
    pairs: Pairs, level: Positions, boxes: tuple[BoxesOf, BoxesOf], *, sum_alone: bool = False
) -> NDArray[np.uint64]:
    """Match at all thresholds and return bits, [P]; ``boxes`` are of detections and of ground truths.

    With ``sum_alone``, maximize the total overlap only, for any number of pairs.
    """
    bits = np.zeros(len(level), dtype=np.uint64)
    if not len(level):
        return bits
    # Most components settle without a search. Their edges are the matching at every threshold that they
    # reach, so one write sets the bits of all thresholds.
    graph = _Graph(pairs.detection, pairs.ground_truth, pairs.iou)
    settled = graph.settled()
    bits[settled] = up_to(level[settled])
    hard = np.flatnonzero(graph.hard)
    if not len(hard):
        return bits
    # Keep the H edges of the other components. Rows get the rank of their box, so that file order does not
    # matter; overlaps become whole multiples of 2 ** -53, so that sums are exact.
    detection, truth = ranks(pairs.detection[hard], boxes[0]), ranks(pairs.ground_truth[hard], boxes[1])
    weight = np.floor(np.clip(pairs.iou[hard], 0, 1) * UNIT).astype(np.int64)
    level = level[hard]
    # Thresholds at which an edge's component is solved.
    done = np.zeros(len(hard), dtype=np.intp)
    # Go up the thresholds. An edge takes part if it reaches threshold t and no lower threshold has solved its
    # component for t.
    for t in range(int(level.max())):
        left = np.flatnonzero((level > t) & (done <= t))
        if not len(left):
            continue
        component = components(detection[left], truth[left])
        # Sort the edges by component, detection and ground truth: a component is one slice [low, high), and
        # its edges are in an order that does not depend on the file.
        order = left[np.lexsort((truth[left], detection[left], component))]
        label = np.sort(component)
        bounds = [*run_starts(label).tolist(), len(order)]
        # Solve one component with integer weights. Every edge in it reaches the thresholds below ``end``, so
        # the component is the same there, and one search sets bits t to end - 1.
        for low, high in itertools.pairwise(bounds):
            edges = order[low:high]
            # Up to here the component does not change.
            end = int(level[edges].min())
            rows = detection[edges], truth[edges], weight[edges]
            chosen = edges[heaviest(*rows, sum_alone=sum_alone)]
            bits[hard[chosen]] |= np.uint64((1 << end) - (1 << t))
            done[edges] = end
    return bits


class _Graph:
    """Edges by detection, and which of them are settled without a search."""

    def __init__(self, detection: Positions, truth: Positions, iou: FloatArray) -> None:
        self._iou, self._ends = iou, (detection, truth)
        self._settled = (self._degree(0) == 1) & (self._degree(1) == 1)
        self.hard = np.zeros(len(iou), dtype=bool)
        rest = np.flatnonzero(~self._settled)
        if len(rest):
            self._settle(rest)

    def settled(self) -> Positions:
        """Edges of the matching, at all thresholds that they reach."""
        return np.flatnonzero(self._settled)

    def _degree(self, side: int) -> IntArray:
        """Return the number of edges of the row that each edge ends in, [P]."""
        rows = self._ends[side]
        return np.bincount(rows)[rows]

    def _best(self, rows: Positions, iou: FloatArray) -> BoolArray:
        """Return whether each edge is the only one of its row with the greatest overlap."""
        order = stable_order(rows, int(rows.max()) + 1)
        starts = run_starts(rows[order])
        widths = np.diff(np.append(starts, len(rows)))
        greatest = iou[order] == np.repeat(np.maximum.reduceat(iou[order], starts), widths)
        alone = np.repeat(np.add.reduceat(greatest.astype(np.intp), starts) == 1, widths)
        best = np.empty(len(rows), dtype=bool)
        best[order] = greatest & alone
        return best

    def _settle(self, rest: Positions) -> None:
        """Settle the components in which the rows of one side all have different best partners."""
        ends = [side[rest] for side in self._ends]
        component = components(*ends)
        count = int(component.max()) + 1
        unsettled = np.ones(count, dtype=bool)
        # For each side, ``best`` [E] marks the edge of each row with a unique greatest overlap.
        for side in (0, 1):
            best = self._best(ends[side], self._iou[rest])
            with_best = np.bincount(component[best], minlength=count)
            # A component passes if every row of this side has such an edge. Counting per component avoids a
            # walk over its rows.
            first = np.unique(ends[side], return_index=True)[1]
            every = with_best == np.bincount(component[first], minlength=count)
            # It also passes only if these edges end in different rows of the other side: then they match
            # every row of this side, and any other matching has a smaller sum.
            first = np.unique(ends[1 - side][best], return_index=True)[1]
            apart = with_best == np.bincount(component[best][first], minlength=count)
            settles = every & apart & unsettled
            unsettled &= ~settles
            self._settled[rest[best & settles[component]]] = True
        # The search gets the edges of the components that neither side settles.
        self.hard[rest[unsettled[component]]] = True


def components(first: Positions, second: Positions) -> Positions:
    """Return the number of the connected component of each edge of a bipartite graph, [E]."""
    _, a = np.unique(first, return_inverse=True)
    _, b = np.unique(second, return_inverse=True)
    # Spread the smallest label over either end of the edges in turn, until neighboring edges agree.
    label = np.arange(len(first))
    while True:
        # Take the smallest label over the edges of each node, on one side and then on the other.
        of_a = np.full(int(a.max(initial=-1)) + 1, len(label))
        np.minimum.at(of_a, a, label)
        spread = of_a[a]
        of_b = np.full(int(b.max(initial=-1)) + 1, len(label))
        np.minimum.at(of_b, b, spread)
        spread = of_b[b]
        if (spread == label).all():
            return label
        # Labels are edges: pass the label that a label has reached on to all edges that have it; otherwise a
        # chain takes as many rounds as it is long.
        np.minimum.at(spread, label, spread.copy())
        label = spread[spread]


def heaviest(
    first: Positions,
    second: Positions,
    weight: NDArray[Any],
    *,
    sum_alone: bool = False,
    unit: int = UNIT,
) -> list[int]:
    """Return the edges of the matching with the most edges, then the greatest weight.

    With ``sum_alone``, maximize the weight only, for any number of edges. ``first`` ascends; weights are
    whole numbers from 0 to ``unit``. The result follows from the order of the edges.
    """
    rows, ends = first.tolist(), second.tolist()
    # More than all weights together, so that as few rows as possible stay unmatched; or as much as an edge
    # without weight.
    alone = unit if sum_alone else (len({*rows}) + 1) * unit
    search = _Search(rows, ends, [unit - value for value in weight.tolist()], alone)
    for row in dict.fromkeys(rows):
        search.place(row)
    return sorted(search.edge_at.values())


class _Search:
    """A matching of the rows of the first side placed so far, with integer costs of the edges.

    ``alone`` is the cost of an unmatched row, at least that of an edge.
    """

    def __init__(self, rows: list[int], ends: list[int], cost: list[int], alone: int) -> None:
        self._rows, self._ends, self._cost, self._alone = rows, ends, cost, alone
        self._edges_of: dict[int, list[int]] = {}
        for edge, row in enumerate(rows):
            self._edges_of.setdefault(row, []).append(edge)
        self._price = dict.fromkeys(ends, 0)
        self.edge_at: dict[int, int] = {}
        """The edge of each matched row of the second side."""
        self._edge_of: dict[int, int] = {}
        """The edge of each matched row of the first side."""

    def place(self, start: int) -> None:
        """Place another row along the cheapest path, which ends at a free row or at one left unmatched."""
        settled: dict[int, int] = {}
        through: dict[int, int] = {}
        least: dict[int, int] = {}
        heap: list[tuple[int, int]] = []
        # Run Dijkstra over the rows of the first side, with integer costs reduced by prices. There are two
        # kinds of ends: a row that gives up its edge (``loser``), or a free row of the second side (``end``).
        row, distance, paid = start, 0, 0
        shortest, loser = self._alone, start
        end: int | None = None
        while True:
            # This row can give up its edge and stay unmatched; keep the cheapest such row.
            if distance + self._alone - paid < shortest:
                shortest, loser = distance + self._alone - paid, row
            # Relax the edges of the row. Costs are integers, so comparisons are exact and ties follow the
            # order of the edges.
            for edge in self._edges_of[row]:
                other = self._ends[edge]
                length = distance + self._cost[edge] - self._price[other] - paid
                if other not in settled and length < least.get(other, length + 1):
                    least[other], through[other] = length, edge
                    heapq.heappush(heap, (length, other))
            # Drop heap entries that a shorter path has overtaken. If leaving a row unmatched is at least as
            # cheap as the next entry, the search ends, and the old partner of the loser starts the flip.
            while heap and heap[0][1] in settled:
                heapq.heappop(heap)
            if not heap or heap[0][0] >= shortest:
                lost = self._edge_of.pop(loser, None)
                end = None if lost is None else self._ends[lost]
                break
            # Settle the nearest row of the second side. A free row ends the search; otherwise continue from
            # the row matched to it.
            distance, other = heapq.heappop(heap)
            if other not in self.edge_at:
                shortest, end = distance, other
                break
            settled[other] = distance
            edge = self.edge_at[other]
            row, paid = self._rows[edge], self._cost[edge] - self._price[other]
        # Lower the prices of the settled rows, so that reduced costs stay nonnegative for the next search.
        for other, length in settled.items():
            self._price[other] += min(length - shortest, 0)
        # Flip the path back to ``start``: each row takes the edge by which the search reached its new
        # partner.
        while end is not None:
            edge = through[end]
            before = self._edge_of.get(self._rows[edge])
            self.edge_at[end], self._edge_of[self._rows[edge]] = edge, edge
            end = None if before is None else self._ends[before]
