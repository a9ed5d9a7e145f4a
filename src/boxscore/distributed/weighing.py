"""Summary metrics under image weights where no process may hold all parts: bootstrap, slices, comparisons.

Goal
----
:func:`boxscore.scoring.weighing.weighed`, with its bits, where the parts are. A curve depends on its class
alone, under weights too: whoever owns a class counts its detections as often as their images, and its cells
travel on, from which the same code takes means.

Conventions
-----------
- Weights are made anew wherever they are needed (:class:`~boxscore._utils.resampling.WeightSets`): nobody
  holds images times resamples, but at most :data:`HELD` of them, as long as a task lasts.
- Sets go in batches, as many as keep the cells of all classes within :data:`BATCH`. A batch of a block of
  classes is one task, and prepares one area range and cap at a time, which is what takes memory.
- A class that is too large for one process is weighed range by range of scores, the highest first. Each range
  takes up how many true and counted detections came before it, set by set, and hands on the best precision so
  far: whole numbers and maxima, so that the bits are those of one process.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.progress import progress as shown
from boxscore._utils.resampling import WeightSets
from boxscore.data.vocabulary import Images, rows_where
from boxscore.distributed.engine import Engine
from boxscore.distributed.headers import PartHeader
from boxscore.distributed.merging import MergedParts
from boxscore.distributed.parts import Part
from boxscore.distributed.pieces import Cut, cut, edges_between, sample_of
from boxscore.distributed.reduction import (
    RangeNumbers,
    can_be_split,
    join_ranges,
    numbers_of_range,
    places_of,
)
from boxscore.errors import InputError
from boxscore.matching.matches import Matches
from boxscore.matching.packed import narrowed
from boxscore.protocols.protocol import Protocol, SummaryRow
from boxscore.scoring.curves import MOST_CELLS, Curves
from boxscore.scoring.joined import JoinedCurves
from boxscore.scoring.kinds import KINDS, Key, SummaryCells, summary_keys, summary_table
from boxscore.scoring.weighing import Weighed, weighed
from boxscore.scoring.weighted import ImageWeights

__all__ = ["HeldParts", "weighed_parts", "weighs_by_class"]

FloatArray = NDArray[np.float64]
Counts = NDArray[np.int64]
Kinds = Mapping[Key, Sequence[str]]
"""Kinds of summary metrics by area range and cap."""
Item = TypeVar("Item")

WEIGHED, WEIGHED_ALONE = 150, 400
"""Bytes of a detection that is weighed at one area range and cap at a time, and at all of COCO's together."""

MOST = 1 << 22
"""Detections that one process weighs at a time."""

ALONE = 1 << 20
"""Detections that one process weighs at all area ranges and caps together."""

MOST_OWNED = 1 << 25
"""Detections of a class that cannot be cut, 5 GB."""

HELD = 1 << 27
"""Weights that a task holds, of a byte each; more are made again each time."""

BATCH = 1 << 28
"""Bytes of the cells of one batch of weights, all classes together."""

LONGEST_BATCH = 1 << 7
"""Sets of weights in a batch."""

TOGETHER = 4
"""Batches that are started at a time."""

LONGEST_CHAIN = 1 << 5
"""Ranges that wait for each other before the driver takes the numbers: calls nest as deep."""


def weighs_by_class(protocol: Protocol) -> bool:
    """Whether classes can be weighed apart; what is asked of crowds takes all matches together."""
    return protocol.scope.allows("weights") and all(
        row.metric in ("AP", "AR", "FROC") for row in protocol.rows
    )


class HeldParts(NamedTuple):
    """Parts, wherever they are."""

    engine: Engine
    parts: Sequence[Any]
    """The engine's."""
    headers: Sequence[PartHeader]
    room: int | None = None
    """Bytes that one process may take; None for no limit."""


class _Block(NamedTuple):
    """Classes that are weighed together, or one curve of a selection of classes."""

    piece: Cut
    edges: tuple[float, ...] = ()
    """Scores between the ranges that it is cut into, descending."""

    @property
    def name(self) -> str:
        """What tasks are called."""
        low, high = self.piece[:2]
        return "pooled" if self.piece.pooled is not None else f"classes-{low}-{high}"


class _BlockCells(NamedTuple):
    """What W sets of weights give for the k curves of a block."""

    cells: Mapping[Key, Mapping[str, FloatArray]]
    """By kind of metric, [W, ..., k]."""
    positive: Mapping[Key, Counts]
    """Counted ground truths, [W, k]."""
    ground_truths: Counts
    """Of all curves, in the first area range, [W]."""
    detections: Counts
    """Of all curves, [W]."""


# ---------------------------------------------------------------- whole classes


def _weigh_alone(
    pieces: Sequence[Part], weights: WeightSets, rows: Sequence[SummaryRow], images: int
) -> Weighed:
    """Weigh all classes at once."""
    return weighed(_matches(pieces, images), pieces[0].protocol, rows, weights)


def _weigh_block(
    pieces: Sequence[Part], piece: Cut, weights: WeightSets, kinds: Kinds, images: int
) -> _BlockCells:
    """Merge the pieces of some classes, and read their curves under each set of weights."""
    matches, protocol = _matches(pieces, images, piece.pooled), pieces[0].protocol
    sets = _held(weights, images)
    truth_image = matches.truth_image[matches.counted(0)]
    cells, positive = {}, {}
    for key, names in kinds.items():
        prepared = ImageWeights(matches, protocol, *key)
        every = []
        for own in sets:
            curves = Curves(prepared.counts(own), protocol.ap)
            every.append((_cells(curves, names, protocol), curves.positive))
        cells[key] = {name: np.stack([one[name] for one, _ in every]) for name in names}
        positive[key] = np.stack([count for _, count in every])
    counts = [(own[truth_image].sum(), own[matches.image].sum()) for own in sets]
    truths, detections = np.array(counts).astype(np.int64).T
    return _BlockCells(cells, positive, truths, detections)


def _matches(pieces: Sequence[Part], images: int, pooled: str | None = None) -> Matches:
    """Merge pieces; images have the row numbers that they have among all."""
    parts = MergedParts(pieces)
    merged = parts.matches()
    every = Images.of_ids(np.broadcast_to(np.int64(0), images))  # known by their number alone
    place = parts.ids.astype(np.int32)
    merged = dataclasses.replace(
        merged, images=every, image=place[merged.image], truth_image=place[merged.truth_image]
    )
    return merged if pooled is None else merged.pooled(pooled)


def _held(weights: WeightSets, images: int) -> Iterable[NDArray[Any]]:
    """Hold sets that are few enough, in few bytes, since they are asked for at each area range and cap."""
    return [narrowed(own) for own in weights] if images * len(weights) <= HELD else weights


def _cells(curves: Curves | JoinedCurves, names: Sequence[str], protocol: Protocol) -> dict[str, Any]:
    return {name: KINDS[name].cells(curves, protocol) for name in names}


# ---------------------------------------------------------------- one class by ranges of scores


class _Truths(NamedTuple):
    """The ground truths of a class of a part, [G] each."""

    place: NDArray[np.int64]
    """Row of its image among all."""
    counted: NDArray[np.unsignedinteger[Any]]
    """Bits over area ranges."""


class _Running(NamedTuple):
    """What ranges of a class have come to, the highest scores first, under W sets of weights."""

    positive: Mapping[int, Counts]
    """Counted ground truths by area range, [W]."""
    hits: Mapping[Key, Counts]
    """True positives so far, [W, T]."""
    counted: Mapping[Key, Counts]
    """Counted detections so far, [W, T]."""
    best: Mapping[Key, FloatArray]
    """Best precision so far at or after each recall point, [W, T, R]."""
    found: Mapping[Key, NDArray[np.bool_]]
    """Whether there was any detection, [W]; where the rule for absent classes asks."""
    detections: Counts
    """So far, [W]."""


def _truths_of(part: Part, place: int | NDArray[np.int64], piece: Cut) -> _Truths:
    """Return the ground truths of a block."""
    own, (low, high) = part.matches, piece[:2]
    bounds = own.bounds[2, low : high + 1]
    chosen = np.arange(bounds[0], bounds[-1])
    if piece.pooled:
        taken = rows_where(part.categories.columns, piece.pooled, high - low)
        chosen = chosen[np.repeat(taken, np.diff(bounds))]
    image = own.truth_image[chosen].astype(np.int64)
    return _Truths(image + place if isinstance(place, int) else place[image], own.truth_counted[chosen])


def _begun(truths: Sequence[_Truths], weights: WeightSets, kinds: Kinds, protocol: Protocol) -> _Running:
    """Count the ground truths of a class, before any range."""
    place = np.concatenate([one.place for one in truths])
    bits = np.concatenate([one.counted for one in truths])
    counted = {
        area: place[(bits >> bits.dtype.type(area)) & 1 == 1] for area in {0, *(area for area, _ in kinds)}
    }
    sums = [{area: own[rows].sum() for area, rows in counted.items()} for own in weights]
    W, T, R = len(sums), len(protocol.matching.iou_thresholds), len(protocol.ap.recall_points)
    return _Running(
        {area: np.array([one[area] for one in sums]).astype(np.int64) for area in counted},
        {key: np.zeros((W, T), dtype=np.int64) for key in kinds},
        {key: np.zeros((W, T), dtype=np.int64) for key in kinds},
        {key: np.zeros((W, T, R)) for key, names in kinds.items() if "AP" in names},
        {key: np.zeros(W, dtype=bool) for key in kinds},
        np.zeros(W, dtype=np.int64),
    )


def _weigh_range(
    before: _Running,
    pieces: Sequence[Part],
    piece: Cut,
    weights: WeightSets,
    kinds: Kinds,
    images: int,
) -> _Running:
    """Merge one range of scores, and take up its share of the curves."""
    matches, protocol = _matches(pieces, images, piece.pooled), pieces[0].protocol
    sets = _held(weights, images)
    hits, counted, best, found = {}, {}, {}, {}
    for key, names in kinds.items():
        prepared = ImageWeights(matches, protocol, *key)
        own_hits, own_counted = before.hits[key].copy(), before.counted[key].copy()
        own_found = before.found[key].copy()
        own_best = [np.zeros(0)] * len(own_hits)
        for w, own in enumerate(sets):
            counts = prepared.counts(own)
            if "AP" in names:
                numbers = numbers_of_range(
                    counts, (own_hits[w], own_counted[w]), int(before.positive[key[0]][w]), protocol
                )
                own_best[w] = np.maximum(before.best[key][w], numbers.best)
                own_counted[w] += counts.totals()[:, 0]
            own_hits[w] += counts.hits[:, 0]
            if protocol.ap.absent_classes == "zero":  # nothing else asks whether there is a detection
                own_found[w] |= counts.first_detections()[1][0]
        hits[key], counted[key], found[key] = own_hits, own_counted, own_found
        if "AP" in names:
            best[key] = np.stack(own_best)
    detections = np.array([own[matches.image].sum() for own in sets]).astype(np.int64)
    detections += before.detections
    return _Running(before.positive, hits, counted, best, found, detections)


def _ended(running: _Running, kinds: Kinds, protocol: Protocol) -> _BlockCells:
    """Draw the curves when all ranges are done."""
    cells, positive = {}, {}
    T, R = len(protocol.matching.iou_thresholds), len(protocol.ap.recall_points)
    unasked = np.full((T, R), np.nan)
    for key, names in kinds.items():
        every = []
        for w, found in enumerate(running.found[key].tolist()):
            best = running.best[key][w] if key in running.best else unasked
            one = RangeNumbers(best, unasked, 0.0 if found else np.nan, None)
            total = int(running.positive[key[0]][w])
            hits, counted = running.hits[key][w], running.counted[key][w]
            curves = join_ranges([one], hits, total, counted, protocol, {})
            every.append(_cells(curves, names, protocol))
        cells[key] = {name: np.stack([one[name] for one in every]) for name in names}
        positive[key] = running.positive[key[0]][:, None]
    return _BlockCells(cells, positive, running.positive[0], running.detections)


# ---------------------------------------------------------------- all classes


def _summaries(
    blocks: Sequence[_BlockCells],
    pooled: Sequence[_BlockCells],
    selections: Sequence[str],
    rows: Sequence[SummaryRow],
    protocol: Protocol,
    class_columns: Mapping[str, NDArray[Any]],
) -> Weighed:
    """Join the blocks of a batch, and compute summary rows for each set of weights."""
    sources: dict[str | None, Sequence[_BlockCells]] = {None: blocks}
    sources |= {name: [one] for name, one in zip(selections, pooled, strict=True)}
    values = []
    for w in range(len(blocks[0].detections)):

        @functools.cache
        def curves_of(area: int, cap: int, pooled: str | None = None, /, w: int = w) -> SummaryCells:
            key, own = (area, cap), sources[pooled]
            cells = {
                name: np.concatenate([block.cells[key][name][w] for block in own], axis=-1)
                for name in own[0].cells[key]
            }
            positive = np.concatenate([block.positive[key][w] for block in own])
            return SummaryCells(cells, positive, class_columns if pooled is None else {})

        values.append(summary_table(rows, protocol, curves_of))
    return Weighed(
        np.stack(values),
        np.sum([block.ground_truths for block in blocks], axis=0),
        np.sum([block.detections for block in blocks], axis=0),
    )


def weighed_parts(
    held: HeldParts,
    rows: Sequence[SummaryRow],
    weights: WeightSets,
    *,
    most: int | None = None,
    alone: int | None = None,
    progress: bool = False,
) -> Weighed:
    """Compute summary rows for each set of weights of the images of parts.

    Parameters
    ----------
    held : HeldParts
    rows : sequence of SummaryRow
    weights : WeightSets
        Of all images, in the order of their ids.
    most, alone : int, optional
        :data:`MOST` and :data:`ALONE`, or what fits into the room, when not given.
    progress : bool, default False
        Show a progress bar, where the engine shows none.

    Returns
    -------
    Weighed

    Raises
    ------
    InputError
        When a class is too large, and the protocol does not let it be cut; when ground truths have weights.
    """
    K = len(held.headers[0].detections)
    if not len(weights):
        return Weighed(np.zeros((0, len(rows), K + 1)), np.zeros(0, np.int64), np.zeros(0, np.int64))
    share = (1 << 62) if held.room is None else held.room // 2  # the cells of a batch take the rest
    most = min(MOST, share // WEIGHED) if most is None else most
    alone = min(ALONE, share // WEIGHED_ALONE) if alone is None else alone
    with held.engine.asked_again():
        job = _Job(held, rows, most, alone, min(BATCH, share // 2))
        batches = list(weights.batches(job.batch_size))
        windows = [batches[low : low + TOGETHER] for low in range(0, len(batches), TOGETHER)]
        every: list[Weighed] = []
        for window in shown(windows, desc="bootstrap", unit="batch") if progress else windows:
            every += held.engine.results([job.start(batch) for batch in window], shown="weighing")
    return Weighed(*(np.concatenate(column) for column in zip(*every, strict=True)))


class _Job:
    """One question: which blocks there are, and the tasks of a batch of weights."""

    def __init__(
        self, held: HeldParts, rows: Sequence[SummaryRow], most: int, alone: int, batch: int
    ) -> None:
        first, engine = held.headers[0], held.engine
        self._engine, self._held, self._rows, self._most, self._batch = engine, held, rows, most, batch
        self._protocol = protocol = first.protocol
        self._columns = first.categories.columns if protocol.matching.per_class else {}
        self._places = places_of(engine, held.parts, held.headers)
        self._images = sum(header.images for header in held.headers)
        self._detections: Counts = np.sum([header.detections for header in held.headers], axis=0)
        self._kinds = summary_keys(rows, protocol)
        self._alone = int(self._detections.sum()) <= alone
        self._made: dict[Cut, list[Any]] = {}
        self._blocks: list[_Block] = []
        self._pooled: list[_Block] = []
        if not self._alone:
            self._blocks = [self._cut(piece) for piece in self._cut_classes()]
            if protocol.ap.pool == "classes":
                names = dict.fromkeys(row.classes for row in rows)
                every = Cut(0, len(self._detections))
                self._pooled = [self._cut(every._replace(pooled=name)) for name in names]

    @property
    def batch_size(self) -> int:
        """How many sets of weights are done together."""
        per_curve = sum(self._cells_of(name) for names in self._kinds.values() for name in names)
        size = self._batch // max(8 * per_curve * len(self._detections), 1)
        return LONGEST_BATCH if self._alone else max(1, min(LONGEST_BATCH, size))

    def _cells_of(self, kind: str) -> int:
        T = len(self._protocol.matching.iou_thresholds)
        return T * len(self._protocol.ap.recall_points) if kind == "AP" else T

    def _cut_classes(self) -> Iterator[Cut]:
        """Cut the classes into runs that one process weighs, of few enough cells to be held."""
        low, held = 0, 0
        classes = max(1, MOST_CELLS // self._cells_of("AP"))
        for k, count in enumerate(self._detections.tolist()):
            if k > low and (held + count > self._most or k - low == classes):
                yield Cut(low, k)
                low, held = k, 0
            held += count
        yield Cut(low, len(self._detections))

    def _cut(self, piece: Cut) -> _Block:
        """Cut a block of one curve by scores where it is too large."""
        count, headers = int(self._detections[piece.low : piece.high].sum()), self._held.headers
        if count <= self._most or (piece.pooled is None and piece.high - piece.low > 1):
            return _Block(piece)
        weighted = any(header.weighted for header in headers)
        # An area needs every true positive under every set of weights: it stays with one owner.
        if self._protocol.ap.interpolation != "points" or not can_be_split(self._protocol, weighted=weighted):
            if count > MOST_OWNED:
                raise self._too_large(piece, count)
            return _Block(piece)
        tasks = [self._engine.submit("sample", sample_of, part, [piece]) for part in self._held.parts]
        sample = [one for own in self._engine.results(tasks) for one in own[0]]
        return _Block(piece, tuple(edges_between(sample, count, self._most)))

    def _too_large(self, piece: Cut, count: int) -> InputError:
        labels = self._held.headers[0].categories.labels
        alone = piece.high - piece.low == 1 and self._protocol.matching.per_class
        return InputError(
            f"class {labels[piece.low]!r}" if alone else "classes that share a curve",
            f"have at most {MOST_OWNED:,} detections to be resampled or sliced",
            got=f"{count:,}",
            cause=f"the protocol {self._protocol.name} needs a curve as a whole; a higher score threshold or "
            "a cap leaves fewer detections",
        )

    def start(self, weights: WeightSets) -> Any:
        """Start a batch; the task gives :class:`Weighed`."""
        submit = self._engine.submit
        sent = submit("weights", _same, weights)
        if self._alone:
            pieces = self._pieces(Cut(0, len(self._detections)), "classes")
            return submit("weigh-classes", _weigh_alone, pieces, sent, self._rows, self._images)
        return submit(
            "summarise",
            _summaries,
            [self._weigh(block, sent) for block in self._blocks],
            [self._weigh(block, sent) for block in self._pooled],
            [block.piece.pooled for block in self._pooled],
            self._rows,
            self._protocol,
            self._columns,
        )

    def _weigh(self, block: _Block, weights: Any) -> Any:
        submit, piece, common = self._engine.submit, block.piece, (weights, self._kinds)
        if not block.edges:
            pieces = self._pieces(piece, block.name)
            return submit(f"weigh-{block.name}", _weigh_block, pieces, piece, *common, self._images)
        truths = [
            submit(f"truths-{block.name}", _truths_of, part, place, piece)
            for part, place in zip(self._held.parts, self._places, strict=True)
        ]
        running = submit(f"begin-{block.name}", _begun, truths, *common, self._protocol)
        for number, scores in enumerate(piece.between(block.edges), start=1):
            name = f"{block.name}-{number}"
            pieces = self._pieces(scores, name)
            running = submit(f"weigh-{name}", _weigh_range, running, pieces, piece, *common, self._images)
            if not number % LONGEST_CHAIN:
                running = self._engine.results([running])[0]
        return submit(f"end-{block.name}", _ended, running, self._kinds, self._protocol)

    def _pieces(self, piece: Cut, name: str) -> list[Any]:
        """Cut all parts; once for all batches, where an engine keeps what it made."""
        if piece not in self._made:
            self._made[piece] = [
                self._engine.submit(f"cut-{name}", cut, part, place, piece)
                for part, place in zip(self._held.parts, self._places, strict=True)
            ]
        return self._made[piece]


def _same(value: Item) -> Item:
    return value
